"""Where several files decide alike on the same samples, and where not: collapses of one run, say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.evaluation import Evaluation


@dataclass(frozen=True, eq=False)
class Agreement:
    """What each file decided [files, samples], and the truth [samples], as numbers of classes."""

    files: tuple[str, ...]
    data: str
    classes: tuple[str, ...]
    decisions: NDArray[np.int64]
    truth: NDArray[np.int64]

    @property
    def alike(self) -> NDArray[np.int64]:
        """Samples on which two decide alike [files + 1, files + 1]; the truth is the last of them."""
        all_of_them = np.vstack([self.decisions, self.truth])
        counts: NDArray[np.int64] = (all_of_them[:, None] == all_of_them[None]).sum(-1)
        return counts

    @property
    def disputed(self) -> NDArray[np.int64]:
        """Samples on which not all files decide alike."""
        return np.flatnonzero((self.decisions != self.decisions[0]).any(0))

    @property
    def wrong_alike(self) -> int:
        """Samples on which all files make the same mistake."""
        same = (self.decisions == self.decisions[0]).all(0)
        return int(np.count_nonzero(same & (self.decisions[0] != self.truth)))


def agreement_of(results: Sequence[Evaluation]) -> Agreement:
    """Files that were evaluated on the same data, side by side."""
    first = results[0]
    for other in results[1:]:
        if (other.data_sha256, other.classes) != (first.data_sha256, first.classes):
            raise AxonnxError(
                f"{other.model}: was evaluated on other data, or has other classes, than {first.model}; "
                "expected the same samples and classes of all files"
            )
    names = tuple(Path(result.model).name for result in results)
    decisions = np.array([result.decisions for result in results], np.int64)
    return Agreement(names, first.data, first.classes, decisions, np.array(first.truth, np.int64))
