"""Compare the decisions of several files on the same samples, for example different collapses of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.evaluation import Evaluation, ValueEvaluation


@dataclass(frozen=True, eq=False)
class Agreement:
    """The decisions of each file [files, samples] and the true classes [samples], as class numbers.

    Attributes:
        files: Names of the files.
        data: Name of the data.
        classes: Names of the classes.
        decisions: Class number that each file chose for each sample.
        truth: True class number of each sample.
    """

    files: tuple[str, ...]
    data: str
    classes: tuple[str, ...]
    decisions: NDArray[np.int64]
    truth: NDArray[np.int64]

    @property
    def alike(self) -> NDArray[np.int64]:
        """Number of samples on which two files agree, [files + 1, files + 1]; the last row and column are the truth."""
        all_of_them = np.vstack([self.decisions, self.truth])
        counts: NDArray[np.int64] = (all_of_them[:, None] == all_of_them[None]).sum(-1)
        return counts

    @property
    def disputed(self) -> NDArray[np.int64]:
        """Samples on which the files do not all agree."""
        return np.flatnonzero((self.decisions != self.decisions[0]).any(0))

    @property
    def wrong_alike(self) -> int:
        """Number of samples on which all files make the same mistake."""
        same = (self.decisions == self.decisions[0]).all(0)
        return int(np.count_nonzero(same & (self.decisions[0] != self.truth)))


def agreement_of(given: Sequence[Evaluation | ValueEvaluation]) -> Agreement:
    """Combine the evaluations of several files on the same data.

    Raises:
        AxonnxError: If the data or the classes differ, or a file gives real values.
    """
    results = [each for each in given if not isinstance(each, ValueEvaluation)]
    if len(results) != len(given):
        raise AxonnxError("real values are neither right nor wrong; evaluate each file that gives them by itself")
    first = results[0]
    for other in results[1:]:
        if (other.data_sha256, other.classes) != (first.data_sha256, first.classes):
            raise AxonnxError(
                f"{other.model}: its data or its classes differ from those of {first.model}; "
                "evaluate all files on the same samples, with the same classes"
            )
    names = tuple(Path(result.model).name for result in results)
    decisions = np.array([result.decisions for result in results], np.int64)
    return Agreement(names, first.data, first.classes, decisions, np.array(first.truth, np.int64))
