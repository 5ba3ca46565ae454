"""Folders for compiled code that no other user can write to.

Code in these folders is run. So a folder that another user can write to would let that user run code as us.
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
    """Return the folder ``name`` in the cache, or a temporary one for this process if others can write to the cache."""
    home = os.environ.get("AXONNX_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for parent in (Path(home).expanduser() / "axonnx", Path(tempfile.gettempdir()) / f"axonnx-{os.geteuid()}"):
        folder = own_folder(parent, name)
        if folder is not None:
            return folder
    private = Path(tempfile.mkdtemp(prefix="axonnx-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return private


def own_folder(parent: Path, name: str) -> Path | None:
    """Make ``parent/name`` and return it; None if it cannot be written, or if other users can write to it."""
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
    """Return whether this is a real folder that belongs to us and that nobody else can write to."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & OTHERS_WRITE


def _is_safe(folder: Path) -> bool:
    """Return whether nobody else can replace a folder inside this one; the owner of "/" is the system itself."""
    trusted = (0, os.geteuid(), Path("/").stat().st_uid)
    for above in (folder, *folder.parents):
        found = above.stat()
        shared = bool(found.st_mode & OTHERS_WRITE) and not found.st_mode & stat.S_ISVTX
        if shared or found.st_uid not in trusted:
            return False
    return True
