"""C for desktops and for a Cortex-M4 in qemu: the decision and the bits of the runtime, on recordings and frames."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from axonnx.compiling import compile_to
from axonnx.export.collapsed import CollapseSettings
from axonnx.models import SpikingMLP
from axonnx.runtime.binning import Binning, Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.format.contract import FitContract, InputContract
from axonnx.runtime.format.network_input import describe_device
from axonnx.runtime.model import load
from axonnx.train.data.registry import load_data_set

from ...compilers import find_compiler, needs_compiler
from ..readers.event_files import csv_bytes
from ..streams.small_models import BINNING, Sample, export, export_all, samples
from .firmware import decisions, needs_board, run_firmware

EVENTS = ("plain", "merged", "recurrent", "clocked", "noisy", "binary", "first", "ensemble", "counted", "alone")
COUNTER = """
#include <stdio.h>
#include "board.h"
int main(void)
{
    const uint64_t before = board_count();
    __asm volatile("movw r0, #50000\\n 1: subs r0, r0, #1\\n bne 1b" ::: "r0", "cc");
    printf("%lu\\n", (unsigned long)(board_count() - before));
    return 0;
}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return export_all(tmp_path_factory.mktemp("exported"))


def recording(seed: int) -> np.ndarray:
    """In no order; some events are of no polarity, too early or too late, or at the edge of a bin."""
    rng = np.random.default_rng(seed)
    t, *others = (rng.integers(low, high, 250) for low, high in ((-200, 5600), (0, 8), (0, 6), (0, 3)))
    t[:80] = rng.integers(0, 6, 80) * 1000 - rng.integers(0, 2, 80)
    return make_events(t, *others)


def compiled(path: Path, folder: Path, recordings: list, target: str) -> Path:
    """The folder of a file's code, with recordings 0.csv, 1.csv, … in it."""
    made = compile_to(path, folder / target, target).folder
    for number, events in enumerate(recordings):
        (made / f"{number}.csv").write_bytes(csv_bytes(events, "t,x,y,p" if number else "p,y,x,t"))
    return made


def built(folder: Path) -> Path:
    flags = "CFLAGS=-O1 -Wall -Wextra -Wpedantic -Werror"
    subprocess.run(["make", "--silent", "-C", str(folder), f"CC={find_compiler()}", flags], check=True)
    return folder / "network"


def compare(path: Path, told: str, recordings: list) -> None:
    model, found = load(path, "numpy"), decisions(told)
    assert len(found) == len(recordings)
    for (label, logits), events in zip(found, recordings, strict=True):
        expected = model.predict(events)
        assert label == expected.label
        assert np.array_equal(logits, expected.member_logits)
        assert f"({len(events)} events, {expected.outside.total} left out, " in told


@needs_compiler
@pytest.mark.parametrize("name", EVENTS)
def test_a_desktop_prints_the_decision_of_the_runtime(files, tmp_path, name):
    recordings = [recording(1), recording(2)]
    folder = compiled(files[name], tmp_path, recordings, "c")
    command = [built(folder), folder / "0.csv", folder / "1.csv"]
    compare(files[name], subprocess.run(command, capture_output=True, text=True, check=True).stdout, recordings)


@needs_compiler
@pytest.mark.parametrize("name", ["frames", "images"])
def test_frames_are_read_from_lines(files, tmp_path, name):
    folder, model = compiled(files[name], tmp_path, [], "c"), load(files[name], "numpy")
    given = model.contract.input
    values = np.random.default_rng(3).integers(0, 30, (given.steps or 1, *given.shape))
    np.savetxt(folder / "a.csv", values.reshape(len(values), -1), "%d", ",")
    told = subprocess.run([built(folder), folder / "a.csv"], capture_output=True, text=True, check=True).stdout
    prepared = model.prepare(values[:, None] if given.steps else values)
    assert np.array_equal(decisions(told)[0][1], model.run(prepared).member_logits[:, 0])


@needs_compiler
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a,b\n", "line 1: expected the columns t,x,y,p"),
        ("x,y\n1,2\n", "line 1: expected the columns"),
        ("t,x,y,p\n1,2,3,1\n1,2,three,1\n", "line 3: expected a whole number for each column"),
        ("t,x\n1,2,3\n", "line 2: expected a whole number"),
        (None, "cannot be opened"),
    ],
)
def test_a_desktop_says_what_is_wrong(files, tmp_path, text, why):
    program = built(compiled(files["plain"], tmp_path, [], "c"))
    if text is not None:
        (tmp_path / "a.csv").write_text(text)
    done = subprocess.run([program, tmp_path / "a.csv"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert why in done.stderr


@needs_compiler
def test_a_recording_of_another_sensor_is_refused(files, tmp_path):
    near, far = make_events([0, 1, 2], [1, 2, 7], 1), make_events([0, 1, 2], [1, 80, 90], 1)
    program = built(compiled(files["plain"], tmp_path, [near, far], "c"))
    told = [subprocess.run([program, tmp_path / "c" / f"{n}.csv"], capture_output=True, text=True) for n in (0, 1)]
    assert [each.returncode for each in told] == [0, 2]
    assert told[1].stdout == ""
    assert "1.csv: 2 of 3 events are off the 8 x 6 sensor" in told[1].stderr


@needs_compiler
@pytest.mark.parametrize("name", ["plain", "first", "noisy", "binary", "counted"])
def test_each_window_of_a_stream_has_the_decision_of_the_runtime(files, tmp_path, name):
    """Silent windows between the others are decided one by one; the runtime gives one decision for all of them."""
    parts = [recording(seed) for seed in range(4)]
    for part, window in zip(parts, (0, 1, 4, 5), strict=True):
        part["t"] += 5000 * window
    events = np.sort(np.concatenate(parts), order="t")
    program = built(compiled(files[name], tmp_path, [events], "c"))
    told = subprocess.run([program, "--windows", tmp_path / "c" / "0.csv"], capture_output=True, text=True, check=True)
    session = load(files[name], "numpy").session(every_bin=False)
    expected = {each.window: each for each in [*session.push(events), *session.flush()]}
    found = decisions(told.stdout)
    assert len(found) == 1 + max(expected) > 5
    for window, (label, logits) in enumerate(found):
        if window in expected:
            assert np.array_equal(logits, expected[window].member_logits)
            assert label == expected[window].label


@needs_compiler
def test_a_camera_is_fitted_as_in_training(tmp_path):
    """The code takes events of training's sensor, crops and resizes them itself, and refuses others."""
    fit = FitContract(sensor=Sensor(width=30, height=20), left=3, top=2, width=25, height=17)
    entering = InputContract(name="events", shape=BINNING.frame_shape, steps=5, binning=BINNING, fit=fit, largest=3)
    sample = Sample(samples()["plain"].network, entering=entering)
    path, rng = export(sample, tmp_path / "fitted.onnx"), np.random.default_rng(1)
    events = make_events(np.sort(rng.integers(0, 5000, 400)), *(rng.integers(0, most, 400) for most in (30, 20, 2)))
    folder = compiled(path, tmp_path, [events], "c")
    told = subprocess.run([built(folder), folder / "0.csv"], capture_output=True, text=True, check=True).stdout
    expected = load(path, "numpy").predict(events)
    assert np.array_equal(decisions(told)[0][1], expected.member_logits)
    assert f"(400 events, {expected.outside.total} left out" in told
    assert 0 < expected.outside.total < 400
    for text in ((folder / "README.md").read_text(), (folder / "network.h").read_text()):
        assert describe_device(entering) in " ".join(text.split())


@needs_compiler
def test_times_at_the_ends_of_64_bits_are_left_out(files, tmp_path):
    folder = compiled(files["first"], tmp_path, [], "c")
    (folder / "a.csv").write_text("t,x,y,p\n-9223372036854775808,1,1,1\n9223372036854775807,1,1,1\n5,1,1,0\n")
    told = subprocess.run([built(folder), folder / "a.csv"], capture_output=True, text=True, check=True).stdout
    assert "(3 events, 2 left out, 5 steps)" in told


@needs_board
@pytest.mark.parametrize("name", ["plain", "noisy", "ensemble", "clocked", "counted"])
def test_a_microcontroller_prints_the_decision_of_the_runtime(files, tmp_path, name):
    recordings = [recording(1), recording(2)]
    folder = compiled(files[name], tmp_path, recordings, "cortex-m")
    compare(files[name], run_firmware(folder, "0.csv", "1.csv"), recordings)


@needs_board
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_a_microcontroller_decides_on_real_digits(tmp_path, weights):
    test = load_data_set("digits-saccade").test
    binning = Binning(sensor=Sensor(width=16, height=16), bins=30, bin_us=10_000, clip=3)
    network = SpikingMLP(binning.cells, [64, 32], 4)
    entering = InputContract(name="events", shape=binning.frame_shape, steps=30, binning=binning, largest=3)
    sample = Sample(network, binning, CollapseSettings(weights=weights), entering)
    path = export(sample, tmp_path / "digits.onnx")
    recordings = [test[number] for number in range(4)]
    folder = compiled(path, tmp_path, recordings, "cortex-m")
    told = run_firmware(folder, *(f"{number}.csv" for number in range(4)))
    compare(path, told, recordings)
    assert len({logits.tobytes() for _, logits in decisions(told)}) == 4
    sizes = subprocess.run(["make", "--silent", "-C", str(folder), "size"], capture_output=True, text=True, check=True)
    code = sum(int(size) for size in re.findall(r"^\.text\S*\s+(\d+)", sizes.stdout, re.MULTILINE))
    assert 0 < code < 9000


@needs_board
def test_the_counter_counts_instructions(files, tmp_path):
    """50,000 turns of two instructions, to within some ticks of 40."""
    folder = compiled(files["plain"], tmp_path, [], "cortex-m")
    (folder / "main.c").write_text(COUNTER)
    assert abs(int(run_firmware(folder)) - 100_000) < 200
