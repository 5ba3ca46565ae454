"""Where compiled kernels are kept: a folder for each version of what is compiled in, which nobody else can write to.

numba runs what it finds in its cache, so a folder that another user could fill would let him run code as us.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@cache
def kernel_folder(sources: tuple[Path, ...]) -> Path:
    """The folder of the kernels in these files; the files hold all constants and helpers that are compiled in.

    numba looks at the file of a function, not at the files of what it calls; the folder's name does.
    """
    name = f"kernels-{digest(sources)[:16]}"
    home = os.environ.get("AXONNX_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for parent in (Path(home).expanduser() / "axonnx", Path(tempfile.gettempdir()) / f"axonnx-{os.geteuid()}"):
        folder = own_folder(parent, name)
        if folder is not None:
            return folder
    private = Path(tempfile.mkdtemp(prefix="axonnx-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return private


def digest(sources: Iterable[Path]) -> str:
    """Of the files and of the compilers."""
    versions = f"{numba.__version__} {llvmlite.__version__} {np.__version__}"
    total = hashlib.sha256(versions.encode())
    for source in sources:
        total.update(f"\n{source.name} ".encode() + hashlib.sha256(source.read_bytes()).digest())
    return total.hexdigest()


def own_folder(parent: Path, name: str) -> Path | None:
    """``parent/name``, made where it is missing; None where it cannot be written, or is not ours alone."""
    folder = parent / name
    try:
        for part in (parent, folder):
            part.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _is_ours(part):
                return None
        if not _is_safe(parent.parent.resolve()):
            return None
        folder.chmod(0o700)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _is_ours(folder: Path) -> bool:
    """A folder, no link to one, that belongs to us and that nobody else can write to."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & OTHERS_WRITE


def _is_safe(folder: Path) -> bool:
    """Whether nobody else can put another folder in the place of one inside; who owns "/" is the system itself."""
    trusted = (0, os.geteuid(), Path("/").stat().st_uid)
    for above in (folder, *folder.parents):
        found = above.stat()
        shared = bool(found.st_mode & OTHERS_WRITE) and not found.st_mode & stat.S_ISVTX
        if shared or found.st_uid not in trusted:
            return False
    return True
