"""Folders for compiled code that nobody else can write to.

What is found there is run, so a folder that another user could fill would let him run code as us.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_folder(name: str) -> Path:
    """The folder ``name`` in our cache; where that is not ours alone, one that lives as long as this process."""
    home = os.environ.get("AXONNX_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for parent in (Path(home).expanduser() / "axonnx", Path(tempfile.gettempdir()) / f"axonnx-{os.geteuid()}"):
        folder = own_folder(parent, name)
        if folder is not None:
            return folder
    private = Path(tempfile.mkdtemp(prefix="axonnx-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return private


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
