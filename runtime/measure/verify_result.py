"""What a verification found, as JSON: written by ``axonnx verify``, read by the report, put together from shards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, Self

from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.contract import AccuracyContract
from axonnx.runtime.measure.comparison import Difference
from axonnx.runtime.measure.metrics import wilson_interval
from axonnx.runtime.measure.result_files import Found


class Stage(Found):
    """One part of the verification, and what it says."""

    name: str
    ok: bool
    lines: tuple[str, ...] = ()


class Compared(Found):
    """How many numbers were held against each other, bit for bit."""

    spikes: NonNegativeInt = 0
    membranes: NonNegativeInt = 0
    logits: NonNegativeInt = 0


class Implementation(Found):
    """One implementation against the collapsed network, bit for bit."""

    key: str = Field("", description="which one: training, onnxruntime, onnx.reference or an engine's name")
    name: str = Field(description="what people read")
    samples: NonNegativeInt = 0
    spikes: NonNegativeInt = 0
    membranes: NonNegativeInt = 0
    logits: NonNegativeInt = 0
    spikes_differing: NonNegativeInt = 0
    membranes_differing: NonNegativeInt = 0
    logits_differing: NonNegativeInt = 0
    max_logit_difference: float = 0.0


class Accuracy(Found):
    """The share of right decisions of the file, in one engine, or of the training network."""

    of: Literal["file", "training"]
    engine: str | None = Field(None, description="that ran the file")
    accuracy: float
    interval: tuple[float, float]
    samples: PositiveInt
    right: NonNegativeInt
    nll: float


class Paired(Found):
    """Decisions of the file and of the training network on the same samples."""

    samples: PositiveInt
    only_file: NonNegativeInt = Field(description="samples that only the file gets right")
    only_training: NonNegativeInt = Field(description="samples that only the training network gets right")

    @property
    def p_value(self) -> float:
        """McNemar's exact test: how likely a difference of this size is where both are equally good."""
        trials, fewer = self.only_file + self.only_training, min(self.only_file, self.only_training)
        return min(1.0, 2.0 * sum(math.comb(trials, k) for k in range(fewer + 1)) / 2.0**trials)


class VerifyResult(Found):
    """verify.json."""

    format: Literal[1] = 1
    model: str
    run: str | None = None
    file_sha256: str | None = None
    checkpoint_sha256: str | None = None
    data_sha256: str | None = None
    shard: str | None = Field(None, pattern=r"^\d{1,9}/\d{1,9}$", description="I/N: every N-th sample from I on")
    verdict: Literal["equal", "different"]
    mismatches: NonNegativeInt = 0
    compared: Compared = Compared()
    stages: tuple[Stage, ...] = ()
    implementations: tuple[Implementation, ...] = ()
    accuracy: tuple[Accuracy, ...] = ()
    stated: tuple[AccuracyContract, ...] = Field((), description="the contract's accuracies, measured again")
    paired: Paired | None = None
    first_divergence: Difference | None = None
    differences: tuple[Difference, ...] = Field((), description="the first numbers that differ, of each implementation")

    @property
    def verified(self) -> bool:
        """Whether every stage was passed."""
        return self.verdict == "equal"

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """All shards of one verification as one result; what does not belong together, repeats or misses is refused."""
        _refuse_strangers(parts)
        _refuse_wrong_shards([part.shard for part in parts])
        parts = sorted(parts, key=lambda part: int(str(part.shard).partition("/")[0]))
        pairs = [part.paired for part in parts if part.paired is not None]
        every = [stage for part in parts for stage in part.stages]
        names = dict.fromkeys(stage.name for stage in every)
        stages = [_one_stage([stage for stage in every if stage.name == name]) for name in names]
        return parts[0].model_copy(
            update={
                "shard": None,
                "verdict": "equal" if all(part.verdict == "equal" for part in parts) else "different",
                "mismatches": sum(part.mismatches for part in parts),
                "compared": Compared(**_sums([part.compared for part in parts])),
                "stages": tuple(stages),
                "implementations": _by_key([entry for part in parts for entry in part.implementations]),
                "accuracy": _accuracies([entry for part in parts for entry in part.accuracy]),
                "stated": next((part.stated for part in parts if part.stated), ()),
                "paired": Paired(**_sums(pairs)) if pairs else None,
                "first_divergence": next((p.first_divergence for p in parts if p.first_divergence), None),
                "differences": tuple(each for part in parts for each in part.differences),
            }
        )


def _refuse_strangers(parts: Sequence[VerifyResult]) -> None:
    for key in ("file_sha256", "checkpoint_sha256", "data_sha256"):
        values = {getattr(part, key) for part in parts}
        if len(values) != 1 or None in values:
            raise AxonnxError(
                f"these results do not belong together: {key} is {', '.join(sorted(map(str, values)))}. Merge the "
                f"shards of one verification of one file"
            )


def _refuse_wrong_shards(shards: list[str | None]) -> None:
    counts = {str(shard).partition("/")[2] for shard in shards}
    if None in shards or len(counts) != 1:
        raise AxonnxError(f"these results are of shards {shards}; expected all N of I/N, for one N")
    total = int(counts.pop())
    numbers = [int(str(shard).partition("/")[0]) for shard in shards]
    if sorted(numbers) != list(range(total)):
        raise AxonnxError(
            f"these results are of shards {', '.join(map(str, shards))}; expected each of 0 to {total - 1} once"
        )


def _one_stage(same: list[Stage]) -> Stage:
    lines = dict.fromkeys(line for stage in same for line in stage.lines)
    return Stage(name=same[0].name, ok=all(stage.ok for stage in same), lines=tuple(lines))


def _sums(parts: Sequence[BaseModel]) -> dict[str, int]:
    return {key: sum(getattr(part, key) for part in parts) for key in type(parts[0]).model_fields}


def _by_key(entries: Iterable[Implementation]) -> tuple[Implementation, ...]:
    found: dict[str, Implementation] = {}
    for entry in entries:
        key = entry.key or entry.name  # results of earlier versions have no key
        if (known := found.get(key)) is None:
            found[key] = entry
            continue
        numbers = {count: value + getattr(known, count) for count, value in entry if isinstance(value, int)}
        numbers["max_logit_difference"] = max(entry.max_logit_difference, known.max_logit_difference)
        found[key] = known.model_copy(update=numbers)
    return tuple(found.values())


def _accuracies(entries: Sequence[Accuracy]) -> tuple[Accuracy, ...]:
    return tuple(_one_accuracy([e for e in entries if e.of == of]) for of in dict.fromkeys(e.of for e in entries))


def _one_accuracy(same: list[Accuracy]) -> Accuracy:
    right, samples = sum(entry.right for entry in same), sum(entry.samples for entry in same)
    if right > samples:
        raise AxonnxError(f"the accuracy of {same[0].of!r} is {right} of {samples} samples; verify again")
    return same[0].model_copy(
        update={
            "accuracy": right / samples,
            "interval": wilson_interval(right, samples),
            "samples": samples,
            "right": right,
            "nll": sum(entry.nll * entry.samples for entry in same) / samples,
        }
    )
