"""Data divided into parts: by a share of each class, by recordings or by people; and the real values of classes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.plain_text import check_names
from axonnx.runtime.binning.settings import Origin
from axonnx.runtime.events.arrays import Sensor
from axonnx.runtime.format.contract import FitContract
from axonnx.runtime.measure.samples import numbers_of
from axonnx.train.data.recordings import Frames, Recordings, digest_of

Data = Recordings | Frames
Kind = Literal["events", "frames", "images"]
SplitBy = Literal["recording", "group"]


@dataclass(frozen=True, eq=False)
class DataSplits:
    """Training and test data of one kind with the same classes, and validation data where there is some."""

    name: str
    train: Data
    test: Data
    validation: Data | None = None
    notes: tuple[str, ...] = field(default=(), kw_only=True)  # what a user should know of how they were read

    def __post_init__(self) -> None:
        check_names(self.classes, f"{self.name}: class")
        for part, data in self.parts.items():
            if not len(data):
                raise AxonnxError(f"{self.name}: the {part} part is empty")
            if (kind_of(data), data.classes, _geometry(data)) != (self.kind, self.classes, _geometry(self.train)):
                raise AxonnxError(
                    f"{self.name}: the {part} part differs from the training part: {kind_of(data)} with "
                    f"{len(data.classes)} classes and {_geometry(data)} against {self.kind} with "
                    f"{len(self.classes)} classes and {_geometry(self.train)}"
                )

    @property
    def parts(self) -> dict[str, Data]:
        """The parts that exist, by name."""
        found = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: data for name, data in found.items() if data is not None}

    @property
    def kind(self) -> Kind:
        """What a sample is: a recording of events, a sequence of frames or an image."""
        return kind_of(self.train)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.train.classes

    @property
    def sensor(self) -> Sensor | None:
        """The sensor events come from; frames and images have none."""
        return self.train.sensor if isinstance(self.train, Recordings) else None

    @property
    def origin(self) -> Origin:
        """Where the time of a recording begins on its clock: bins are counted from there, in training and deployed."""
        return self.train.origin if isinstance(self.train, Recordings) else "zero"

    @cached_property
    def digest(self) -> str:
        """sha256 of the contents of all parts."""
        return digest_of({name: data.digest for name, data in self.parts.items()})

    @property
    def fit(self) -> FitContract | None:
        """Which part of a larger sensor the samples show."""
        return self.train.fit if isinstance(self.train, Recordings) else None

    @property
    def cut(self) -> bool:
        """Whether samples are windows of longer recordings."""
        return isinstance(self.train, Recordings) and self.train.units is not None

    def with_validation(self, share: float, seed: int = 0, by: SplitBy = "recording") -> DataSplits:
        """Set a stratified share of the training part aside for validation.

        Windows of one recording stay together, and with ``by="group"`` all recordings of a speaker or user.
        """
        if not 0 < share < 1:
            raise AxonnxError(f"{self.name}: validation is a share of the training part between 0 and 1, not {share}")
        units = np.arange(len(self.train))
        if by == "group" and self.groups and self.train.groups is not None:
            units = np.searchsorted(self.groups, self.train.groups)
        elif isinstance(self.train, Recordings) and self.train.units is not None:
            units = np.unique(self.train.units, return_inverse=True)[1].astype(np.int64)
        return self._set_aside(*split_units(self.train.labels, units, range(int(units.max()) + 1), share, seed))

    def with_validation_groups(self, groups: Sequence[int]) -> DataSplits:
        """Set these speakers or users of the training part aside for validation."""
        return self._set_aside(*self._without_groups(groups, "validation groups"))

    def with_test_groups(self, groups: Sequence[int]) -> DataSplits:
        """Keep the training part alone: tested on these speakers or users, learned from the others.

        Recipes are chosen on such parts, so that the test part is looked at once, at the end.
        """
        train, out = self._without_groups(groups, "held-out groups")
        return replace(self, train=self.train.subset(train), test=self.train.subset(out), validation=None)

    def with_unseen_groups(self) -> DataSplits:
        """Test on those speakers or users alone who are not in the training part."""
        if self.test.groups is None:
            raise AxonnxError(f"{self.name}: nothing is known about speakers or users of the test part")
        unseen = np.flatnonzero(~np.isin(self.test.groups, self.groups))
        if not len(unseen):
            raise AxonnxError(f"{self.name}: everyone in the test part is in the training part, too: {self.groups}")
        return replace(self, test=self.test.subset(unseen))

    @property
    def groups(self) -> list[int]:
        """The speakers or users of the training part."""
        if self.train.groups is None:
            raise AxonnxError(f"{self.name}: nothing is known about speakers or users; use a validation share instead")
        return [int(group) for group in np.unique(self.train.groups)]

    def _without_groups(self, groups: Sequence[int], what: str) -> tuple[np.ndarray, np.ndarray]:
        """Return samples of all other groups, and of these."""
        missing = sorted(set(groups) - set(self.groups))
        if missing or not groups:
            raise AxonnxError(f"{self.name}: {what} {missing or '[]'}; known: {self.groups}")
        assert self.train.groups is not None
        out = np.isin(self.train.groups, groups)
        return np.flatnonzero(~out), np.flatnonzero(out)

    def with_classes(self, chosen: Sequence[int]) -> DataSplits:
        """Keep these classes alone, numbered anew in this order."""
        if not chosen or len(set(chosen)) != len(chosen) or not set(chosen) <= set(range(len(self.classes))):
            raise AxonnxError(
                f"{self.name}: classes {list(chosen)}; expected different numbers from 0 to {len(self.classes) - 1}"
            )
        chosen_parts: dict[str, Any] = {part: with_classes(data, chosen) for part, data in self.parts.items()}
        return replace(self, **chosen_parts)

    def _set_aside(self, train: np.ndarray, out: np.ndarray) -> DataSplits:
        if self.validation is not None:
            raise AxonnxError(f"{self.name}: already has a validation part of {len(self.validation)} samples")
        lost = sorted(set(self.train.labels[out].tolist()) - set(self.train.labels[train].tolist()))
        if lost:
            raise AxonnxError(
                f"{self.name}: all samples of class {self.classes[lost[0]]!r} would be set aside for validation and "
                f"none left to learn from; set aside others"
            )
        return replace(self, train=self.train.subset(train), validation=self.train.subset(out))


def with_classes(data: Data, chosen: Sequence[int]) -> Data:
    """Keep the samples of these classes alone, numbered anew in this order."""
    kept = data.subset(np.flatnonzero(np.isin(data.labels, chosen)))
    numbers = np.full(len(data.classes), -1)
    numbers[list(chosen)] = np.arange(len(chosen))
    return replace(kept, labels=numbers[kept.labels], classes=tuple(data.classes[c] for c in chosen))


def kind_of(data: Data) -> Kind:
    """Return what a sample of this data is."""
    if isinstance(data, Recordings):
        return "events"
    return "frames" if data.is_sequence else "images"


def _geometry(data: Data) -> str:
    if isinstance(data, Recordings):
        cut = f" of {data.fit!r}" if data.fit is not None else ""
        return f"{data.sensor!r} from {data.origin}{cut}"
    return f"shape {data.frames.shape[1:]}"


def stratified_split(
    labels: NDArray[np.int64], names: Sequence[object], held_out: int, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return indices kept and held out, ascending; every class gives its share of `held_out` and keeps one."""
    counts = np.bincount(labels)
    room = len(labels) - np.count_nonzero(counts)
    if not 0 < held_out <= room:
        raise AxonnxError(
            f"split: cannot hold out {held_out} of {len(labels)} samples; each of {np.count_nonzero(counts)} classes "
            f"keeps one to learn from, so at the most {room} can be held out. Add recordings (windows of one recording "
            f"stay together), change the share, or give the parts yourself, as train and test"
        )
    quotas = _quotas(counts, held_out)
    ranks = np.array([_rank(seed, name) for name in names])
    chosen = [_first(np.flatnonzero(labels == label), ranks, quota) for label, quota in enumerate(quotas)]
    out = np.sort(np.concatenate(chosen))
    return np.setdiff1d(np.arange(len(labels)), out), out


def split_units(
    labels: NDArray[np.int64], units: NDArray[np.int64], names: Sequence[object], share: float, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return samples kept and samples held out, so that no unit (a recording, a person) is in both.

    `units` [N] are 0 … U − 1, `names` [U] say which they are. Where every unit is of one class, every class gives its
    share of units; else units are taken in the order of a hash while every class keeps a sample.
    """
    if not 0 < share < 1:
        raise AxonnxError(f"split: a share of {share} is held out; expected one between 0 and 1")
    first = np.unique(units, return_index=True)[1]
    if np.array_equal(labels[first][units], labels):
        out = stratified_split(labels[first], names, max(1, round(share * len(first))), seed)[1].tolist()
    else:
        out = _mixed(labels, units, names, share, seed)
    held = np.isin(units, out)
    return np.flatnonzero(~held), np.flatnonzero(held)


def _mixed(
    labels: NDArray[np.int64], units: NDArray[np.int64], names: Sequence[object], share: float, seed: int
) -> list[int]:
    left, room = np.bincount(labels), share * len(labels)
    out: list[int] = []
    for unit in np.argsort([_rank(seed, name) for name in names], kind="stable"):
        mine = np.bincount(labels[units == unit], minlength=len(left))
        if (mine.sum() <= room or not out) and np.all((left - mine > 0) | (mine == 0)):
            left, room = left - mine, room - mine.sum()
            out.append(int(unit))
    if not out:
        raise AxonnxError(
            f"split: none of {len(names)} recordings (or people) can be held out, for each has all samples of some "
            f"class. Record more of them, or give the parts yourself, as train and test"
        )
    return out


def _quotas(counts: NDArray[np.int64], held_out: int) -> NDArray[np.int64]:
    """Largest remainders: shares rounded down, and what is missing given, one by one, to the class that lost most.

    No class gives its last sample.
    """
    exact, room = counts * held_out / counts.sum(), np.maximum(counts - 1, 0)
    quotas: NDArray[np.int64] = np.minimum(np.floor(exact).astype(np.int64), room)
    while quotas.sum() < held_out:
        quotas[np.argmin(np.where(quotas < room, quotas - exact, np.inf))] += 1
    return quotas


def _rank(seed: int, name: object) -> str:
    return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()


def _first(indices: NDArray[np.int64], ranks: NDArray[np.str_], quota: int) -> NDArray[np.int64]:
    return indices[np.argsort(ranks[indices], kind="stable")[:quota]]


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
