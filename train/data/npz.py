"""Arrays out of npz files, with errors that name the file."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import HEADERS, NPZ_MAGIC, UNREADABLE, array_names, checked_arrays


def read_arrays(path: Path, *choices: Sequence[str]) -> list[NDArray[Any]]:
    """One array for each choice of names: the first of its names that is in the file."""
    found = checked_arrays(path, [name for names in choices for name in names])
    return [found[_name_in(found, names, path)] for names in choices]


def mapped_array(path: Path, name: str) -> NDArray[Any]:
    """Map an array of an npz that is not compressed: read from disk as it is used, shared by all processes."""
    try:
        with path.open("rb") as file:
            with zipfile.ZipFile(file) as archive:
                member = archive.getinfo(f"{name}.npy")
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{name} is compressed")
            file.seek(member.header_offset)
            magic, *lengths = struct.unpack("<4s22xHH", file.read(30))  # a member's own header; a name and more follow
            if magic != NPZ_MAGIC:
                raise ValueError("damaged")
            file.seek(sum(lengths), os.SEEK_CUR)
            shape, fortran, dtype = HEADERS[npy.read_magic(file)](file)
            if fortran or dtype.hasobject:
                raise ValueError(f"{name} is not laid out as plain numbers")
            return np.memmap(path, dtype, "r", file.tell(), shape)
    except UNREADABLE as fault:
        raise AxonnxError(f"{path}: {name} cannot be mapped: {fault}") from None


def _name_in(found: Collection[str], names: Sequence[str], path: Path) -> str:
    for name in names:
        if name in found:
            return name
    present = ", ".join(array_names(path)) if "" not in found else "one without a name"
    raise AxonnxError(f"{path}: has no array {' or '.join(map(repr, names))}; it has {present or 'none'}")
