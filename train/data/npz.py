"""Arrays out of npz files, with errors that name the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.errors import AxonnxError
from axonnx.runtime.readers.npz import UNREADABLE


def read_arrays(path: Path, *choices: Sequence[str]) -> list[NDArray[Any]]:
    """One array for each choice of names: the first of its names that is in the file."""
    try:
        # Opened here, for numpy leaves a damaged file open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as found:
            return [found[_name_in(found.files, names, path)] for names in choices]
    except AxonnxError:
        raise
    except UNREADABLE as error:
        raise AxonnxError(f"{path}: is no readable npz file ({error}); it may be cut off: fetch it again") from error


def _name_in(present: Sequence[str], names: Sequence[str], path: Path) -> str:
    for name in names:
        if name in present:
            return name
    raise AxonnxError(f"{path}: has no array {' or '.join(map(repr, names))}; it has {', '.join(present) or 'none'}")
