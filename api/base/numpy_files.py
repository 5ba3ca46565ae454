"""Read arrays from npz and npy files, with a check of their sizes before any array is made.

A compressed archive of 16 MB can state 16 GB. The arrays of a file may take up to 64 times the file's own size, or
1 GiB if that is more. Arrays of Python objects are refused, because reading them would run code from the file.
"""

from __future__ import annotations

import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import refuse_device

if TYPE_CHECKING:
    from io import BufferedReader

NPY_MAGIC = b"\x93NUMPY"
NPZ_MAGIC = b"PK\x03\x04"
ALWAYS_ADMITTED = 2**30
MOST_TIMES_LARGER = 64
PIECE = 2**24
# Exceptions that numpy and zipfile raise on damaged bytes.
UNREADABLE = (
    *(OSError, ValueError, KeyError, EOFError, SyntaxError, TypeError, NotImplementedError, RuntimeError, IndexError),
    *(OverflowError, MemoryError, zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
)
HEADERS: dict[tuple[int, int], Callable[..., Any]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}


def checked_arrays(path: str | Path, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npz by name (all, or those in ``names``), or the array of an npy under an empty name."""
    path = Path(path)
    refuse_device(path)
    try:
        with path.open("rb") as file:
            if file.peek(8).startswith(NPY_MAGIC):
                return {"": read_array(file, most_bytes(path))}
            with zipfile.ZipFile(file) as archive:
                return _from_archive(archive, most_bytes(path), None if names is None else set(names))
    except AxonnxError as fault:
        raise AxonnxError(f"{path}: {fault}") from None
    except UNREADABLE as fault:
        reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault).partition("\n")[0]
        raise AxonnxError(
            f"{path}: is not a readable npz or npy file ({reason}); it was cut off, is damaged, or holds something "
            f"else. "
            f"Copy or write it again"
        ) from None


def array_names(path: str | Path) -> list[str]:
    """Return the names of the arrays in a readable npz."""
    with zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def most_bytes(path: Path) -> int:
    """Return the most bytes that the arrays of a file may take in memory."""
    return max(ALWAYS_ADMITTED, MOST_TIMES_LARGER * path.stat().st_size)


def read_array(stream: IO[bytes], most: int) -> NDArray[Any]:
    """Read the array at the position of ``stream``; refuse more than ``most`` bytes."""
    version = npy.read_magic(stream)
    if version not in HEADERS:
        raise ValueError(f"an array has npy version {version}; expected one of {', '.join(map(str, HEADERS))}")
    shape, by_columns, dtype = HEADERS[version](stream)
    if dtype.hasobject or dtype.itemsize == 0 or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"an array {list(shape)} has type {dtype}; expected plain numbers, not Python objects")
    size = dtype.itemsize * math.prod(shape)
    if size > most:
        raise AxonnxError(
            f"an array {list(shape)} of {dtype} takes {size:,} bytes; at most {most:,} are accepted "
            f"({MOST_TIMES_LARGER} "
            f"times the file's own size, or 1 GiB). Write it without compression, or in parts"
        )
    flat: NDArray[Any] = _exactly(stream, size).view(dtype)
    return flat.reshape(shape, order="F" if by_columns else "C")


def _from_archive(archive: zipfile.ZipFile, most: int, names: set[str] | None) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if names is None or name in names:
            with archive.open(member) as stream:
                found[name] = read_array(stream, most)
            most -= found[name].nbytes
    return found


def _exactly(stream: IO[bytes], size: int) -> NDArray[np.uint8]:
    """Read the next ``size`` bytes, piece by piece."""
    data = np.empty(size, np.uint8)
    for start in range(0, size, PIECE):
        piece = data.data[start : start + PIECE]
        if (found := cast("BufferedReader", stream).readinto(piece)) != len(piece):
            raise EOFError(f"{size:,} bytes are stated, but only {start + found:,} follow")
    return data


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
