"""The comparer: what two implementations of one network did, held against each other number by number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.names import LOGITS, MEMBRANE, SPIKES
from axonnx.runtime.measure.evaluation import Evaluation, ValueEvaluation
from axonnx.runtime.measure.result_files import Found

Floats = NDArray[np.float32]
Seen = Mapping[str, Floats]  # logits [members, B, classes]; spikes/<layer>, membrane/<layer> [T, B, …]
Kind = Literal["spikes", "membranes", "logits"]
ONE: dict[Kind, str] = {"spikes": "spike", "membranes": "membrane", "logits": "logit"}
LISTED = 20  # differences that are listed; all are counted


class Difference(Found):
    """A number that differs; differences are in the order of time steps, then of layers."""

    implementation: str
    what: str = Field(description="spike, membrane or logit")
    layer: str
    sample: int
    step: int | None
    neuron: tuple[int, ...]
    expected: float
    found: float
    threshold: float | None = None
    distance: float | None = Field(None, description="of the expected membrane from its threshold")
    reason: str = Field("", description="where the cause is known")

    def __str__(self) -> str:
        when = "" if self.step is None else f", time step {self.step}"
        near = "" if self.distance is None else f"; the membrane is {self.distance:g} from its threshold"
        why = f": {self.reason}" if self.reason else ""
        return (
            f"{self.implementation}: layer {self.layer!r}{when}, neuron {list(self.neuron)}, sample {self.sample}: "
            f"{self.what} {self.found!r}, expected {self.expected!r}{near}{why}"
        )


@dataclass
class Comparison:
    """One implementation against another; adds up over batches.

    Attributes:
        name: The implementation that is judged.
        key: Its short name in results.
        timed: Whether the network has time steps.
        margins: Tells threshold and distance of the expected membrane, if they are known.
        compared: How many spikes, membranes and logits were compared.
        wrong: How many of them differ.
        differences: The first of those that differ.
    """

    name: str
    key: str = ""
    timed: bool = True
    margins: Callable[[str, tuple[int, ...]], dict[str, float | str]] = field(default=lambda _layer, _index: {})
    samples: int = 0
    max_logit_difference: float = 0.0
    compared: Counter[Kind] = field(default_factory=Counter)
    wrong: Counter[Kind] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    @property
    def numbers(self) -> int:
        """All numbers that were compared."""
        return self.compared.total()

    @property
    def differing(self) -> int:
        """All numbers that differ."""
        return self.wrong.total()

    @property
    def first(self) -> Difference | None:
        """The first number that differs."""
        return self.differences[0] if self.differences else None

    def counts(self) -> dict[str, int]:
        """Return the counts by the names that they have in results."""
        each: dict[str, int] = {kind: self.compared[kind] for kind in ONE}
        return each | {f"{kind}_differing": self.wrong[kind] for kind in ONE}

    def add(self, expected: Seen, found: Seen, offset: int = 0) -> None:
        """Compare one more batch, whose first sample has the number ``offset``.

        ``expected`` must have all that ``found`` has; of its samples the first ones are taken, if ``found`` has fewer.
        """
        self.samples += next(iter(found.values())).shape[1]
        layers = list(dict.fromkeys(_layer(name) for name in expected))
        listed: list[tuple[tuple[float, int], Difference]] = []
        for name, values in found.items():
            kind, wanted = _kind(name), expected[name][:, : values.shape[1]]
            different = ~(wanted == values)  # NaN differs from everything
            self.compared[kind] += values.size
            self.wrong[kind] += int(different.sum())
            if kind == "logits":
                worst = float(np.abs(wanted - values).max(initial=0.0))
                self.max_logit_difference = max(self.max_logit_difference, worst)
            for index in _first(different):
                step = math.inf if kind == "logits" else index[0]
                difference = self._difference(name, index, float(wanted[index]), float(values[index]), offset)
                listed.append(((step, layers.index(_layer(name))), difference))
        listed.sort(key=lambda entry: entry[0])
        self.differences += [difference for _, difference in listed[: LISTED - len(self.differences)]]

    def _difference(self, name: str, index: tuple[int, ...], expected: float, found: float, offset: int) -> Difference:
        kind, (first, sample, *neuron) = _kind(name), index
        layer = f"read-out {first}" if kind == "logits" else _layer(name)
        more = {} if kind == "logits" else self.margins(layer, index)
        return Difference(
            implementation=self.name,
            what=ONE[kind],
            layer=layer,
            sample=offset + sample,
            step=first if self.timed and kind != "logits" else None,
            neuron=tuple(neuron),
            expected=expected,
            found=found,
            **more,  # type: ignore[arg-type]
        )


def _first(different: NDArray[np.bool_]) -> Iterator[tuple[int, ...]]:
    """Yield the first positions that differ."""
    if different.any():
        for index in np.argwhere(different)[:LISTED]:
            yield tuple(int(i) for i in index)


def _kind(name: str) -> Kind:
    return "logits" if name == LOGITS else "spikes" if name.startswith(SPIKES) else "membranes"


def _layer(name: str) -> str:
    return name if name == LOGITS else name.removeprefix(SPIKES).removeprefix(MEMBRANE)


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
