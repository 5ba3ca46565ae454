"""Real values that a network learns in place of classes: a class is then named by the values that it stands for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.samples import numbers_of

NAMED = re.compile(r"\s*([^\[\]]+?)\s*(?:\[([^\[\]]*)\])?\s*")


@dataclass(frozen=True, eq=False)
class Quantities:
    """Names and units of real values, and the values [classes, values] of each class of a data set."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    table: NDArray[np.float32]


def read_quantities(texts: Sequence[str], classes: Sequence[str], where: str) -> Quantities:
    """Read quantities like "angle [deg]", and the values of classes that are named like "37.5" or "1.5,-2".

    Raises:
        AxonnxError: If a text is no name with a unit, or a class is not named by as many finite numbers.
    """
    found = [NAMED.fullmatch(text) for text in texts]
    names = [match[1] for match in found if match is not None]
    if len(names) != len(texts) or len(set(names)) != len(names):
        raise AxonnxError(
            f"data.quantities is {list(texts)}; expected different names with units, e.g. "
            f"['angle [deg]', 'speed [m/s]']"
        )
    rows = [numbers_of(name) for name in classes]
    for name, row in zip(classes, rows, strict=True):
        if len(row) != len(names):
            raise AxonnxError(
                f"{where}: the class {name!r} stands for no value of {', '.join(names)}; with data.quantities a class "
                f"is named by {len(names)} finite numbers, e.g. {','.join(['37.5', '-2', '0.25'][: len(names)])}"
            )
    units = tuple((match[2] or "").strip() for match in found if match is not None)
    return Quantities(tuple(names), units, np.array(rows, np.float32))
