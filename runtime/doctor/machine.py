"""The machine, and the software installed on it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.native import Core, find_core
from axonnx.runtime.doctor.findings import CoreFinding, Extra, Processor, Program

CPUINFO = Path("/proc/cpuinfo")
INSTRUCTION_SETS = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_tile"),
    *("neon", "asimd", "asimddp", "sve", "sve2"),
)
PROGRAMS = ("gcc", "clang", "node", "emcc", "nvcc", "arm-none-eabi-gcc", "qemu-arm")
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
PATIENCE_S = 10
ASK = "-" * 2 + "version"  # an option of these programs, not of axonnx


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
    given = os.environ.get("CC")
    return next(filter(None, map(shutil.which, [given] if given else ["cc", "gcc", "clang"])), None)


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
