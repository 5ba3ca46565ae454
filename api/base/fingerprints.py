"""Compute the sha256 of files and folders, which binds a result to its file and its data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.base.files import refuse_device

BLOCK = 1 << 22


def sha256_of(path: str | Path) -> str:
    """Return the sha256 of a file's contents."""
    return _hashed(Path(path)).hexdigest()


def sha256_of_files(paths: Iterable[Path], root: Path) -> str:
    """Return the sha256 of several files: of their paths below ``root`` and their contents, sorted by path."""
    state = hashlib.sha256()
    for place, path in sorted((path.relative_to(root).as_posix(), path) for path in paths):
        state.update(f"{place}\n".encode() + _hashed(path).digest())
    return state.hexdigest()


def _hashed(path: Path) -> hashlib._Hash:
    state = hashlib.sha256()
    refuse_device(path)
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                state.update(block)
    except OSError as fault:
        raise AxonnxError(f"{path}: cannot be read: {fault.strerror or fault}") from None
    return state
