"""What ``axonnx doctor`` finds: machine, software, and every engine on small files with known answers."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from importlib import metadata
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from axonnx.base.errors import AxonnxError
from axonnx.native import Core, find_core
from axonnx.runtime.engines.choose import ENGINES, EngineName, SlowEngineWarning
from axonnx.runtime.format.names import LOGITS
from axonnx.runtime.measure.comparison import Comparison
from axonnx.runtime.model import Model, load

CPUINFO = Path("/proc/cpuinfo")
INSTRUCTION_SETS = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_tile"),
    *("neon", "asimd", "asimddp", "sve", "sve2"),
)
PROGRAMS = ("gcc", "clang", "node", "emcc", "nvcc", "arm-none-eabi-gcc", "qemu-arm")
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
PATIENCE_S = 10
ASK = "-" * 2 + "version"  # an option of these programs, not of axonnx
NETWORKS = ("recurrent-int8", "resnet-mfa", "mlp-zero-stochastic")  # recurrence, convolutions, noise


class Finding(BaseModel):
    """A frozen part of the diagnosis without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Extra(Finding):
    """An extra of the package, ``axonnx[name]``."""

    name: str
    missing: tuple[str, ...] = Field(description="packages that it needs but that are not installed")


class Processor(Finding):
    """The processor and the memory of this machine."""

    architecture: str
    model: str = Field(description="empty if the system does not state it")
    processors: int = Field(description="number of logical processors")
    usable: int = Field(description="number of processors that this process may use")
    instruction_sets: tuple[str, ...] = Field(description="instruction sets that the kernels can use")
    memory_bytes: int | None = Field(description="total memory; None if the system does not state it")


class Program(Finding):
    """A compiler or interpreter on the path."""

    name: str
    path: str
    version: str = Field(description="first line of its version text")


class CoreFinding(Finding):
    """The native core: the instruction set in use, or the reason why there is no core."""

    isa: str | None = Field(description="instruction set in use; None if there is no core")
    isas: tuple[str, ...] = Field(description="sets that this build has and this processor supports, the best first")
    forced: str | None = Field(description="value of AXONNX_ISA; None if it is not set")
    note: str = Field(description="why there is no core, and what to do")


class EngineFinding(Finding):
    """The result of an engine on small files with known answers."""

    name: str
    status: Literal["equal", "different", "missing", "failed"]
    numbers: int = Field(description="logits compared with those of the training networks, bit for bit")
    differing: int
    seconds: float = Field(description="time to load and run the files")
    note: str = Field(description="what is missing, or what failed")


class Cache(Finding):
    """A folder of files that can be made again."""

    name: str
    path: str
    files: int
    bytes: int


class Data(Finding):
    """A data set that training knows by name."""

    name: str
    found: str | None = Field(description="its first file, or 'built in'; None if it was not found")


class Diagnosis(Finding):
    """The whole diagnosis, which belongs in every bug report."""

    axonnx: str
    python: str
    system: str
    packages: dict[str, str] = Field(description="installed versions")
    extras: tuple[Extra, ...]
    processor: Processor
    programs: tuple[Program, ...]
    core: CoreFinding
    engines: tuple[EngineFinding, ...]
    caches: tuple[Cache, ...]
    data_root: str | None = Field(description="value of AXONNX_DATA")
    data: tuple[Data, ...]

    @property
    def well(self) -> bool:
        """Whether no available engine fails or gives wrong bits."""
        return all(engine.status in ("equal", "missing") for engine in self.engines)


def packages() -> tuple[dict[str, str], tuple[Extra, ...]]:
    """Return the versions of all installed packages that axonnx may use, and the missing ones of each extra."""
    wanted: dict[str, list[str]] = {}
    for line in metadata.requires("axonnx") or []:
        found = REQUIREMENT.match(line)
        if found is not None and found[1] != "axonnx":
            wanted.setdefault(found[2] or "", []).append(found[1])
    versions = {name: version(name) for names in wanted.values() for name in sorted(names)}
    extras = [
        Extra(name=extra, missing=tuple(name for name in names if versions[name] is None))
        for extra, names in wanted.items()
        if extra not in ("", "dev")
    ]
    return {name: found for name, found in sorted(versions.items()) if found is not None}, tuple(extras)


def version(package: str) -> str | None:
    """Return the version from a package's metadata, without importing the package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def processor() -> Processor:
    """Return what the system states about the processor."""
    facts = _cpuinfo()
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    return Processor(
        architecture=platform.machine(),
        model=facts.get("model name") or platform.processor(),
        processors=os.cpu_count() or 1,
        usable=len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1,
        instruction_sets=tuple(name for name in INSTRUCTION_SETS if name in flags),
        memory_bytes=_memory(),
    )


def native_core() -> CoreFinding:
    """Return the instruction set of the native core, or the reason why there is no core."""
    forced = os.environ.get("AXONNX_ISA") or None
    found: Core | str
    try:
        found = find_core()
    except AxonnxError as fault:  # AXONNX_ISA names a set that this processor or this build does not support
        found = str(fault)
    if isinstance(found, str):
        return CoreFinding(isa=None, isas=(), forced=forced, note=found)
    return CoreFinding(isa=found.isa, isas=found.isas, forced=forced, note="")


def programs() -> tuple[Program, ...]:
    """Return the compilers and interpreters that generated code can use, the C compiler first."""
    chosen = find_compiler()
    others = ((name, shutil.which(name)) for name in PROGRAMS)
    found = ([("C compiler", chosen)] if chosen else []) + [(name, path) for name, path in others if path]
    return tuple(Program(name=name, path=path, version=_first_line(path)) for name, path in found)


def find_compiler() -> str | None:
    """Return the C compiler: $CC, or else cc, gcc or clang; None if there is none."""
    given = os.environ.get("CC", "").split()[:1]  # as in CC="gcc -O0"
    return next(filter(None, map(shutil.which, given or ["cc", "gcc", "clang"])), None)


def _first_line(program: str) -> str:
    try:
        said = subprocess.run([program, ASK], capture_output=True, timeout=PATIENCE_S, check=False).stdout
    except (OSError, subprocess.SubprocessError) as fault:
        return f"does not say ({type(fault).__name__})"
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    return lines[0].strip() if lines else "does not say"


def _cpuinfo() -> dict[str, str]:
    if not CPUINFO.exists():
        return {}
    lines = (line.partition(":") for line in CPUINFO.read_text(errors="replace").split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def examine_engines(loading: Callable[[Path, EngineName], Model] = load) -> tuple[EngineFinding, ...]:
    """Return the finding for each engine; an error of one engine does not stop the examination."""
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", SlowEngineWarning
        )  # the diagnosis itself reports whether there is a native core
        folder = files("axonnx.runtime.doctor")
        places = [
            tuple(stack.enter_context(as_file(folder / f"{name}.{kind}")) for kind in ("onnx", "npz"))
            for name in NETWORKS
        ]
        return tuple(_examine(name, places, loading) for name in ENGINES)


def _examine(
    name: EngineName, places: list[tuple[Path, ...]], loading: Callable[[Path, EngineName], Model]
) -> EngineFinding:
    began, compared = time.perf_counter(), Comparison(name)
    try:
        for network, kept in places:
            with np.load(kept) as known:
                found = loading(network, name).run(known["x"], seed=int(known["seed"])).member_logits
                compared.add({LOGITS: known["logits"]}, {LOGITS: found})
    except Exception as fault:
        missing = isinstance(fault, ModuleNotFoundError) or (name == "native" and _has_no_core())
        text = f"{type(fault).__name__}: {fault}".splitlines()[0]
        return _finding(compared, "missing" if missing else "failed", began, text)
    return _finding(compared, "different" if compared.differing else "equal", began, str(compared.first or ""))


def _has_no_core() -> bool:
    """Return whether the package has no core; a core that AXONNX_ISA excludes counts as present."""
    try:
        return isinstance(find_core(), str)
    except AxonnxError:
        return False


def _finding(compared: Comparison, status: str, began: float, note: str) -> EngineFinding:
    seconds = round(time.perf_counter() - began, 3)
    facts = {"name": compared.name, "status": status, "numbers": compared.numbers, "differing": compared.differing}
    return EngineFinding.model_validate({**facts, "seconds": seconds, "note": note})
