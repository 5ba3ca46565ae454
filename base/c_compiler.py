"""C compiled by the machine's own compiler, kept in a private folder, and loaded.

A library's name is the digest of all that decides its code: text, flags, compiler and processor.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.base.private_folders import is_our_file, private_folder

# Products are rounded before they are added: a fused multiply-add has other bits.
FLAGS = ("-std=gnu99", "-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-w")


@cache
def find_compiler() -> str | None:
    """The C compiler: $CC, or cc, gcc or clang; None where there is none."""
    given = os.environ.get("CC")
    for name in [given] if given else ["cc", "gcc", "clang"]:
        found = shutil.which(name)
        if found is not None:
            return found
    return None


def load_library(source: str, flags: Sequence[str] = ()) -> ctypes.CDLL:
    """``source`` as a loaded library, compiled now or found compiled; ``flags`` come after our own."""
    path = _library(source, (*FLAGS, *_native(), *flags))
    try:
        return ctypes.CDLL(str(path))
    except OSError as fault:
        raise AxonnxError(f"{path}: the compiled code cannot be loaded: {fault}. Choose another engine") from None


def _library(source: str, flags: tuple[str, ...]) -> Path:
    compiler = find_compiler()
    if compiler is None:
        raise AxonnxError("no C compiler was found (cc, gcc, clang or $CC). Install one, or choose another engine")
    key = "\n".join([source, *flags, *_compiler_and_processor(compiler)])
    path = _folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"
    if not is_our_file(path):
        with replacing(path) as part:
            _compile(compiler, source, flags, part)
            part.chmod(0o700)
    return path


def _compile(compiler: str, source: str, flags: tuple[str, ...], out: Path) -> None:
    command = [compiler, *flags, "-x", "c", "-", "-o", str(out)]
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise AxonnxError(f"{compiler} does not compile our C: {said[0] if said else 'no reason given'}")


@cache
def _folder() -> Path:
    return private_folder("c")


@cache
def _native() -> tuple[str, ...]:
    """The flag that lets the compiler use all that this processor can do."""
    return ("-mcpu=native",) if platform.machine() in ("aarch64", "arm64") else ("-march=native",)


@cache
def _compiler_and_processor(compiler: str) -> tuple[str, ...]:
    said = subprocess.run([compiler, "-v"], capture_output=True, check=False)  # gcc and clang tell it on stderr
    version = (said.stdout + said.stderr).decode(errors="replace")
    described = Path("/proc/cpuinfo")
    lines = described.read_text(errors="replace").splitlines() if described.exists() else []
    facts = sorted({line for line in lines if line.split(":")[0].strip() in ("model name", "flags", "Features")})
    return version, platform.machine(), *facts
