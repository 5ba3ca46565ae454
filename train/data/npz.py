"""Arrays out of npz files, with errors that name the file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import array_names, checked_arrays


def read_arrays(path: Path, *choices: Sequence[str]) -> list[NDArray[Any]]:
    """One array for each choice of names: the first of its names that is in the file."""
    found = checked_arrays(path, [name for names in choices for name in names])
    return [found[_name_in(found, names, path)] for names in choices]


def _name_in(found: Collection[str], names: Sequence[str], path: Path) -> str:
    for name in names:
        if name in found:
            return name
    present = ", ".join(array_names(path)) if "" not in found else "one without a name"
    raise AxonnxError(f"{path}: has no array {' or '.join(map(repr, names))}; it has {present or 'none'}")
