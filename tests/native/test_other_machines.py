"""The native core as other processors and checked builds run it: golden files, compiled for them, to the same bits.

Every network is one program of generated C, which has the core in it. Sanitizers see every access and every operation
that C leaves undefined; emulators stand for ARM with NEON and for a machine whose bytes are the other way round.

Training passes, which no generated program has, are one more program: it gives the bits of plain C forwards, and its
gradients but for their last bits.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from axonnx.native import core
from axonnx.runtime.codegen.c.network_source import c_source
from axonnx.runtime.codegen.rows import header
from axonnx.runtime.model import load

from ..compilers import find_compiler
from ..released.record import read_record

GOLDEN = Path(__file__).parents[1] / "released" / "version-1-operators"
NETWORKS = (  # together: noise, odd windows, moves, pools, recurrence, negative inputs, weights of every width
    "general-mfa", "two-branches-stochastic", "convolutions-uneven-mfa", "recurrent-int8", "wide-map-int16",
)  # fmt: skip
MAIN = """
#include <stdio.h>
#include <string.h>
#include "network.h"
static network_state n;
static float frame[NETWORK_INPUTS];
int main(void)
{
    float logits[NETWORK_MEMBERS][NETWORK_CLASSES];
    long steps, sample;
    if (network_fuses() || scanf("%ld %ld", &steps, &sample) != 2) return 3;
    network_init(&n, SEED, (uint32_t)sample);
    for (long t = 0; t < steps; t++) {
        for (int i = 0; i < NETWORK_INPUTS; i++)
            if (scanf("%f", &frame[i]) != 1) return 4;
        if (network_step(&n, frame)) return 5;
    }
    network_logits(&n, logits);
    for (int m = 0; m < NETWORK_MEMBERS; m++)
        for (int c = 0; c < NETWORK_CLASSES; c++) {
            uint32_t bits;
            memcpy(&bits, &logits[m][c], sizeof bits);
            printf("%08lx\\n", (unsigned long)bits);
        }
    return 0;
}
"""


class Build(NamedTuple):
    """A compiler with flags, what runs its programs, and for which layout."""

    compiler: str | None
    flags: tuple[str, ...]
    emulator: tuple[str, ...] = ()
    vectors: bool = True

    def why_not(self) -> str | None:
        missing = [name for name in (self.compiler, *self.emulator[:1]) if name is None or shutil.which(name) is None]
        return f"not here: {missing[0] or 'a C compiler'}; .ci/run installs it" if missing else None


CHECKED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1", "-std=gnu99")
AVX512 = ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mfma")
DENSE = ("-DDENSE_FROM=0,0,0,0",)
ARM, S390 = ("qemu-aarch64",), ("qemu-s390x",)
BUILDS = {
    "sanitizers, plain": Build(find_compiler(), CHECKED, vectors=False),
    "sanitizers, generic vectors": Build(find_compiler(), CHECKED),
    "aarch64, NEON": Build("aarch64-linux-gnu-gcc", ("-O3", "-std=c99", "-static"), ARM),
    "aarch64, plain, GNU mode": Build("aarch64-linux-gnu-gcc", ("-O3", "-std=gnu99", "-static"), ARM, vectors=False),
    "s390x, plain, ISO C": Build("s390x-linux-gnu-gcc", ("-O2", "-std=c99", "-static"), S390, vectors=False),
    "s390x, vectors": Build("s390x-linux-gnu-gcc", ("-O2", "-std=c99", "-static"), S390),
}
if core() and "avx2" in core().isas:
    BUILDS |= {"sanitizers, AVX2, dense": Build(find_compiler(), (*CHECKED, "-mavx2", *DENSE))}
if core() and "avx512" in core().isas:
    BUILDS |= {"sanitizers, AVX-512, dense": Build(find_compiler(), (*CHECKED, *AVX512, *DENSE))}


def logits(build: Build, name: str, folder: Path, sample: int) -> np.ndarray:
    """What a golden file's network gives for one of its samples; a pragma alone forbids the compiler to fuse."""
    path = GOLDEN / f"{name}.onnx"
    program, kept = load(path, "numpy").program, read_record(path.with_suffix(".npz"))
    for file, text in {**c_source(program, vectors=build.vectors), "main.c": MAIN}.items():
        (folder / file).write_text(text, "utf-8")
    sources = [str(folder / file) for file in ("main.c", "network.c", "network_core.c")]
    seed = f"-DSEED={int(kept.seed)}"
    subprocess.run([build.compiler, *build.flags, "-Wno-psabi", seed, *sources, "-o", f"{folder}/network"], check=True)
    given = program.contract.input
    frames = kept.x[:, sample] if program.contract.kind == "spiking" else kept.x[sample : sample + 1]
    values = frames * np.float32(2.0**given.shift) + np.float32(given.centre)
    words = " ".join(str(int(value)) for value in values.ravel())
    done = subprocess.run(
        [*build.emulator, f"{folder}/network"],
        input=f"{len(values)} {sample} {words}",
        capture_output=True,
        text=True,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    bits = np.array([int(word, 16) for word in done.stdout.split()], np.uint32)
    return bits.view(np.float32).reshape(len(kept.logits), -1), kept.logits[:, sample]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("build", BUILDS)
def test_golden_files_keep_their_bits(build, name, tmp_path):
    why_not = BUILDS[build].why_not()
    if why_not:
        pytest.skip(why_not)
    found, expected = logits(BUILDS[build], name, tmp_path, sample=2)
    assert np.array_equal(found, expected)
    assert found.any()


TRAINING = Path(__file__).with_name("training_driver.c")


def training_passes(build: Build, folder: Path) -> list[tuple[str, np.ndarray]]:
    """Everything that the training passes give on the same numbers, by kind and name."""
    (folder / "generated.h").write_text(header(), "utf-8")
    plain = () if build.vectors else ("-DCORE_PLAIN",)
    flags = (*build.flags, *plain, f"-I{folder}", f"-I{TRAINING.parents[2] / 'native'}", "-fno-math-errno", "-w")
    command = [build.compiler, *flags, str(TRAINING), "-lm", "-o", f"{folder}/training"]
    subprocess.run(command, check=True)
    done = subprocess.run([*build.emulator, f"{folder}/training"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = (line.partition(":")[::2] for line in done.stdout.splitlines())
    return [(name, np.array([int(word, 16) for word in words.split()], np.uint32)) for name, words in lines]


def test_training_passes_on_arm_are_those_of_plain_c(tmp_path):
    """Equal bits forwards; gradients to 1e-5 of the largest, as tests of ``models/fast`` hold plain C to torch."""
    arm = Build("aarch64-linux-gnu-gcc", ("-O2", "-std=c99", "-static"), ARM)
    if why_not := arm.why_not():
        pytest.skip(why_not)
    here = Build(find_compiler(), ("-O1", "-std=gnu99"), vectors=False)
    expected, found = training_passes(here, tmp_path), training_passes(arm, tmp_path)
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert sum(name[0] == "F" for name, _ in found) == 65
    for (name, bits), (_, others) in zip(found, expected, strict=True):
        numbers, reference = bits.view(np.float32), others.view(np.float32)
        assert reference.any() or name == "G sums", name
        if name[0] == "F":
            assert np.array_equal(bits, others), name
        else:
            assert np.abs(numbers - reference).max() <= 1e-5 * np.abs(reference).max(), name
    for name in ("F by events", "F convolution"):  # events, then the dense product
        same = [bits for given, bits in found if given == name]
        assert all(np.array_equal(*pair) for pair in zip(same[::2], same[1::2], strict=True)), name
