"""The checkpoint against the process that trained it: its witness, done again from the raw data by today's code.

What differs here is no fault of the file. Either the training process did something else than the code that is here
now, or what it wrote down was changed since.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.export.verify.plain_figures import recomputed, wrong_figures
from axonnx.export.verify.structure import Findings
from axonnx.models import MEAN_FIELD
from axonnx.runtime.measure.metrics import wilson_interval
from axonnx.train.checkpoint import load_witness
from axonnx.train.trained import Trained
from axonnx.train.training_witness import (
    PART,
    PASSES,
    batches_of,
    circumstances,
    fingerprints_of,
    hashes,
    input_of,
    made_again,
    passes,
    threads,
)

ROUNDING = ("device", "torch", "processor", "core")  # circumstances on which bits may depend
ALIKE = 1e-9  # of logits in double precision whose sums were rounded otherwise
NONE = (
    "no witness: an earlier version trained this run, or its training did not end. That training computed what this "
    "checkpoint computes now is not proved"
)


def check_training(trained: Trained, limit: int | None, found: Findings) -> None:
    """Check what training left against the data and the checkpoint; make about ``limit`` decisions again."""
    taken = load_witness(trained.folder / "checkpoint")
    if taken is None:
        found.lines.append(NONE)
        return
    try:
        replay = _Replay(trained, *taken)
        for line in replay.faults(limit):
            found.fail(line)
        found.lines += replay.notes + (replay.equal if found.ok else [])
    except (KeyError, IndexError) as fault:
        raise AxonnxError(
            f"{trained.folder}: its witness does not hold what this version reads ({fault}); train again"
        ) from None


@dataclass
class _Replay:
    """A witness beside the run that it was taken of."""

    trained: Trained
    held: Mapping[str, Tensor]
    then: Mapping[str, str]
    notes: list[str] = field(default_factory=list)
    equal: list[str] = field(default_factory=list)

    def faults(self, limit: int | None) -> Iterator[str]:
        """Everything that is not as it was; ``equal`` gets what is, ``notes`` what has changed since."""
        now = circumstances("cpu")
        self.same = all(self.then[key] == now[key] for key in ROUNDING)
        if not self.same:
            told = ", ".join(
                f"{key} {self.then[key]}, now {now[key]}" for key in ROUNDING if self.then[key] != now[key]
            )
            self.notes.append(f"trained elsewhere ({told}): what torch sums may be rounded otherwise")
        self.notes += [
            f"the code of the {key} is not that of the training: {self.then[key]}, now {now[key]}"
            for key in ("operators", "models")
            if self.then[key] != now[key]
        ]
        checks = (self._labels, self._input, self._learned, self._looked_at, self._layers, self._figures, self._rows)
        for check in checks:
            yield from check()
        yield from self._decisions(limit)
        count, layers = len(self.held["samples"]), sum(name.startswith("float32/spikes/") for name in self.held)
        self.equal.append(
            f"{count} samples of {PART!r} from the raw data as the training process saw them: input, labels, "
            f"spikes and membranes of {layers} layers, logits"
        )

    def _named(self, place: int) -> str:
        return f"sample {int(self.held['samples'][place])} of {PART!r}"

    def _labels(self) -> Iterator[str]:
        """Check the labels of the samples, of a batch that was learned, and of every decision."""
        parts = {name.removeprefix("truth/"): name for name in self.held if name.startswith("truth/")}
        whole = {name: self.trained.prepared.splits.parts[_part(name)].labels for name in parts}
        pairs = [(PART, self.held["samples"].numpy(), self.held["labels"])]
        pairs += [("train", self.held["learned/samples"].numpy(), self.held["learned/labels"])]
        pairs += [(name, np.arange(len(whole[name])), self.held[key]) for name, key in parts.items()]
        for name, samples, seen in pairs:
            labels = self.trained.prepared.splits.parts[_part(name)].labels[samples]
            if len(labels) != len(seen):
                yield f"{name!r} has {len(labels)} samples; the training process decided {len(seen)}"
            elif (wrong := np.flatnonzero(labels != seen.numpy())).size:
                at, classes = int(wrong[0]), self.trained.prepared.splits.classes
                yield (
                    f"label of sample {int(samples[at])} of {name!r} is {classes[labels[at]]!r}; the training process "
                    f"saw {_class(classes, int(seen[at]))} ({wrong.size} of {len(labels)} differ)"
                )

    def _input(self) -> Iterator[str]:
        """Check the input of the samples, number by number."""
        x, seen = self._made(PART, self.held["samples"].numpy()), input_of(self.held)
        if x.shape != seen.shape:
            yield f"the input of {PART!r} is {list(x.shape)}; the training process fed {list(seen.shape)}"
        elif bool((different := x != seen).any()):
            index = tuple(int(i) for i in different.nonzero()[0])
            where = f"{self._named(index[self._time])}{self._step(index)}, cell {list(index[1 + self._time :])}"
            yield (
                f"input of {where} is {float(x[index]):g}; the training process fed {float(seen[index]):g} "
                f"({int(different.sum()):,} of {x.numel():,} numbers differ)"
            )

    def _learned(self) -> Iterator[str]:
        """Check the input of a batch that was learned, if nothing augmented it."""
        if "learned/input" not in self.held:
            return
        samples = self.held["learned/samples"].numpy()
        x = hashes(self._made("train", samples), bool(self._time))
        if (differ := _first(x, self.held["learned/input"])) is not None:
            step, place, told = differ
            where = f"sample {int(samples[place])} of 'train'{self._step((step,))}"
            yield f"input of {where} is not what was learned ({told})"

    def _looked_at(self) -> Iterator[str]:
        """Check the samples that something was fitted on: none may be of the test part."""
        seen = {name.removeprefix("looked_at/"): x for name, x in self.held.items() if name.startswith("looked_at/")}
        if self.trained.config.noise.temper and "noise.temper" not in seen:
            self.notes.append("which samples noise.temper looked at is not known: the run was resumed after it")
        if not seen:
            return
        parts = [part for part in self.trained.prepared.splits.parts if part != PART]
        prepared, config = self.trained.prepared, self.trained.config
        fitting = np.concatenate([fingerprints_of(prepared, config, part) for part in parts])
        for name, samples in seen.items():
            others = samples.numpy()[~np.isin(samples.numpy(), fitting)]
            if len(others):
                tested = int(np.isin(others, fingerprints_of(prepared, config, PART)).sum())
                yield (
                    f"{name} was fitted on {len(others)} of {len(samples)} samples that are not of the parts "
                    f"{', '.join(parts)}; {tested} of them are of {PART!r}"
                )
            else:
                self.equal.append(f"{name}: all {len(samples):,} samples that it was fitted on are none of {PART!r}")

    def _layers(self) -> Iterator[str]:
        """Every layer's spikes and membranes on the input that the training process fed, and the logits."""
        again = passes(self.trained.network, input_of(self.held))
        if again.keys() != (
            before := {name for name in self.held if name.startswith(tuple(f"{width}/" for width in PASSES))}
        ):
            apart = sorted(again.keys() ^ before)
            yield f"the layers are not those of the training process: only one of them has {', '.join(apart[:3])}"
            return
        bits = [name for name in again if not name.startswith("float64/")]
        wrong = [line for name in bits for line in self._one(name, again[name], exact=True)]
        if wrong and not self.same:  # rounded otherwise: doubles decide, whose spikes do not depend on that
            doubles = [name for name in again if not name.startswith("float32/") and "/membranes/" not in name]
            wrong = [line for name in doubles for line in self._one(name, again[name], exact=False)]
        yield from wrong[:1]  # what follows differs because of it

    def _one(self, name: str, again: Tensor, exact: bool) -> Iterator[str]:
        width, what, layer = (*name.split("/", 2), "")[:3]
        seen = self.held[name]
        if what == "logits":
            off = again != seen if exact else ~((again - seen).abs() <= ALIKE * seen.abs().clamp(min=1.0))
            if bool(off.any()):
                place, number = (int(i) for i in off.nonzero()[0])
                yield (
                    f"logit {self.trained.classes[number]!r} of {self._named(place)} is "
                    f"{float(again[place, number]):.9g} in {width}; in the training process it was "
                    f"{float(seen[place, number]):.9g}"
                )
        elif (differ := _first(again, seen)) is not None:
            step, place, told = differ
            yield (
                f"layer {layer!r}{self._step((step,))}, {self._named(place)}: its {what} are not those of the training "
                f"process in {width} ({told})"
            )

    def _figures(self) -> Iterator[str]:
        """Every figure of metrics.json, against the decisions one by one."""
        path = self.trained.folder / "metrics.json"
        try:
            stated: Any = json.loads(path.read_text("utf-8"))
            entries = {name: dict(entry) for name, entry in stated.items()}
        except (OSError, ValueError, TypeError, AttributeError) as fault:
            yield f"{path.name} cannot be read ({fault}); the training process wrote it"
            return
        decided = [name.removeprefix("decided/") for name in self.held if name.startswith("decided/")]
        if sorted(entries) != sorted(decided):
            yield f"metrics.json states figures of {sorted(entries)}; the training process decided {sorted(decided)}"
        for name in sorted(set(entries) & set(decided)):
            rows, labels = self.held[f"decided/{name}"].double().tolist(), self.held[f"truth/{name}"].tolist()
            real = self.trained.prepared.targets
            given = entries[name]
            wrong = wrong_figures(given, rows, labels) if real is None else _wrong(given, rows, real[labels])
            for line in wrong:
                yield f"metrics.json states for {name!r} {line}"
            if list(entries[name].get("rates", {}).values()) != self.held[f"rates/{name}"].tolist():
                yield f"metrics.json states for {name!r} other firing rates than the training process measured"

    def _rows(self) -> Iterator[str]:
        """Check all rows and curves against those of the training process, and the last row by its decisions."""
        folder, kept = self.trained.folder, self.held.get("written/results.csv")
        if kept is None:
            self.notes.append("results.csv and curves.png have no witness: an earlier version trained this run")
            return
        path = folder / "results.csv"
        before, now = bytes(kept.tolist()), path.read_bytes() if path.is_file() else b""
        wrong = [] if now == before else [_other_row(before, now)]
        drawn, picture = self.held.get("written/curves.png"), folder / "curves.png"
        if drawn is not None and picture.is_file():
            if sha256(picture.read_bytes()).digest() != bytes(drawn.tolist()):
                wrong.append("curves.png is not the picture that the training process drew")
        elif picture.is_file():
            wrong.append("curves.png was not there when the training process ended")
        rows = _table(before)
        wrong += [] if not rows or self.trained.config.noise.temper else self._last_row(rows[-1])
        yield from wrong
        if not wrong and len(rows) > 1:
            self.equal.append(
                f"results.csv and its curves are as the training process wrote them; rows 1 to {len(rows) - 1} cannot "
                f"be computed again, as their networks are gone, and of the last row only the figures of parts can"
            )

    def _last_row(self, row: Mapping[str, str]) -> Iterator[str]:
        """Figures of the last epoch, which are those of the network that is left."""
        if self.trained.prepared.targets is not None:
            return
        for part in ("test", "validation"):
            if f"decided/{part}" in self.held and row.get(f"{part}_nll"):
                rows, labels = self.held[f"decided/{part}"].double().tolist(), self.held[f"truth/{part}"].tolist()
                found = recomputed(rows, labels)
                for name in ("accuracy", "nll", "ece"):
                    stated = row.get(f"{part}_{name}")
                    if stated and not abs(_number(stated) - found[name]) <= ALIKE * max(1.0, abs(found[name])):
                        yield (
                            f"results.csv states {part}_{name} {stated[:12]} after the last epoch; the decisions give "
                            f"{found[name]:.6g}"
                        )

    @torch.no_grad()
    def _decisions(self, limit: int | None) -> Iterator[str]:
        """Make the decisions behind the test figures again, in the batches of training."""
        batches = batches_of(self.trained.prepared, self.trained.config, PART)
        if limit is not None:
            size = len(batches[0])
            batches = [
                batches[int(at)] for at in np.unique(np.linspace(0, len(batches) - 1, -(-limit // size)).round())
            ]
        done = right = stated = other = 0
        real = self.trained.units is not None
        what = "values" if real else "probabilities"
        decided, labels = self.held[f"decided/{PART}"].numpy(), self.held[f"truth/{PART}"].numpy()
        with threads(int(self.then["threads"])):
            for samples in batches:
                x, before = self._made(PART, samples), decided[samples]
                logits = self.trained.network(x, MEAN_FIELD).logits
                again = (logits if real else torch.softmax(logits, -1)).numpy()
                if self.same and not other and (wrong := np.flatnonzero((again != before).any(1))).size:
                    at = int(wrong[0])
                    yield (
                        f"decision of sample {int(samples[at])} of {PART!r}: its {what} are "
                        f"{_row(again[at])}, behind the run's figures are {_row(before[at])} "
                        f"({wrong.size} of {len(samples)} in its batch differ)"
                    )
                apart = (again != before).any(1) if real else again.argmax(1) != before.argmax(1)
                other += int(apart.sum())
                right += int((again.argmax(1) == labels[samples]).sum())
                stated += int((before.argmax(1) == labels[samples]).sum())  # of the same samples: parts may be sorted
                done += len(samples)
        self.equal.append(
            f"{done:,} decisions of {PART!r} made again: {other} differ from those behind the run's figures"
        )
        if real:
            return
        low, high = wilson_interval(right, done)
        if not low <= stated / done <= high:
            yield (
                f"{100 * stated / done:.2f} % of {done:,} decisions behind the run's figures on {PART!r} are right; "
                f"made again {100 * right / done:.2f} %"
            )

    def _made(self, part: str, samples: NDArray[np.int64]) -> Tensor:
        return made_again(self.trained.prepared, self.trained.config, part, samples).x

    @property
    def _time(self) -> int:
        """1 if the input has a time axis."""
        return int(self.trained.prepared.steps is not None)

    def _step(self, index: tuple[int, ...]) -> str:
        return f", time step {index[0]}" if self._time else ""


def _first(again: Tensor, seen: Tensor) -> tuple[int, int, str] | None:
    """Return the first time step and sample [T, N] that differ, and how many do."""
    if again.shape != seen.shape:
        raise IndexError(f"hashes {list(seen.shape)}, expected {list(again.shape)}")
    different = (again != seen).nonzero()
    if not len(different):
        return None
    return int(different[0, 0]), int(different[0, 1]), f"{len(different):,} of {again.numel():,} differ"


def _wrong(stated: Mapping[str, Any], rows: list[list[float]], truth: NDArray[np.float32]) -> Iterator[str]:
    """Errors of real values that do not follow from the values, one by one."""
    for number, true in enumerate(truth.T.tolist()):
        errors = [row[number] - value for row, value in zip(rows, true, strict=True)]
        mean, squares = sum(true) / len(true), sum(error * error for error in errors)
        spread = sum((value - mean) ** 2 for value in true)
        figures = {
            "mae": sum(map(abs, errors)) / len(errors),
            "rmse": (squares / len(errors)) ** 0.5,
            "r2": 1.0 - squares / spread if spread else 0.0,
        }
        for name, figure in figures.items():
            if not abs(stated[name][number] - figure) <= ALIKE * max(1.0, abs(figure)):
                yield f"{name} {stated[name][number]:.6g}; its values give {figure:.6g}"


def _table(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(text.decode("utf-8", "replace").splitlines()))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _other_row(before: bytes, now: bytes) -> str:
    """Return the first figure of results.csv that is not the one that was written."""
    was, found = _table(before), _table(now)
    for number, (old, new) in enumerate(zip(was, found, strict=False), 1):
        for name, value in old.items():
            if new.get(name) != value:
                return f"results.csv, epoch {number}: {name} is {new.get(name)}; the training process wrote {value}"
    return f"results.csv is not the one that the training process wrote: it has {len(found)} rows, expected {len(was)}"


def _part(name: str) -> str:
    return name.removesuffix("_bayesian")


def _class(classes: tuple[str, ...], number: int) -> str:
    return repr(classes[number]) if 0 <= number < len(classes) else f"the class number {number}, which there is not"


def _row(values: NDArray[np.floating]) -> str:
    best = int(values.argmax())
    return f"{float(values[best]):.6f} for class {best}"
