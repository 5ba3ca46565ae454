"""What a network's certainty is worth: whether it knows when it is wrong, and what it has never seen.

A *signal* says how unsure a decision is: the entropy of its probabilities, their maximum, or the mutual information of
several members or passes. If samples are answered in the order of a signal, the surest first, the *risk* is the share
of wrong answers among those given, the *coverage* the share of samples that are answered. A good signal has a small
area under risk over coverage. Its AUROC is the probability that a wrong decision, or a sample of another kind, has more
of it than a right one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.measure.metrics import Interval, wilson_interval
from axonnx.runtime.measure.result_files import Found
from axonnx.runtime.program.layer_noise import draw_noise
from axonnx.runtime.streams.probabilities import entropy, possible_classes

Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]
Frames = NDArray[np.integer]  # [N, T, …]
COVERAGES = tuple(round(0.05 * share, 2) for share in range(1, 21))


class Signal(Found):
    """How well one signal tells right from wrong, and known from unknown."""

    aurc: float = Field(description="area under risk over coverage: the mean risk over all coverages")
    risk: tuple[float, ...] = Field(description="share of wrong answers at each coverage of ``coverages``")
    errors: float | None = Field(description="AUROC of wrong decisions against right ones; None if all are of a kind")
    unknown: dict[str, float | None] = Field(description="AUROC of unknown input against the data, by kind")


class Sets(Found):
    """Sets of possible classes, as the file states them, at the end of each time step."""

    coverage: float = Field(description="what the file states")
    held: tuple[float, ...] = Field(description="share of samples whose true class is in the set")
    interval: Interval = Field(description="95 % Wilson interval of the last of these")
    size: tuple[float, ...] = Field(description="mean number of classes in the set")
    answered: tuple[float, ...] = Field(description="share of samples with a set of one class: no abstention")
    right: tuple[float | None, ...] = Field(description="share of right answers among these; None if there are none")


class Uncertainty(Found):
    """What the certainty of a file is worth on one set of data."""

    passes: int = Field(description="noisy passes whose probabilities are averaged")
    signals: dict[str, Signal]
    coverages: tuple[float, ...] = COVERAGES
    unknown_samples: dict[str, int] = Field(default_factory=dict)
    temperature: float | None = Field(None, description="of the file; None if it states none")
    untempered_nll: float | None = Field(None, description="NLL without that temperature")
    sets: Sets | None = None


def signals_of(probabilities: Doubles, disagreement: Doubles | None) -> dict[str, Doubles]:
    """Return every signal [N] of probabilities [N, classes] and, if there are several, the members' disagreement."""
    found = {"entropy": entropy(probabilities), "maximum probability": -probabilities.max(-1)}
    return found if disagreement is None else {**found, "mutual information": disagreement}


def auroc(lower: Doubles, higher: Doubles) -> float | None:
    """Return the probability that a value of ``higher`` is above one of ``lower``; a tie counts half."""
    if not len(lower) or not len(higher):
        return None
    ordered = np.sort(lower)
    below, up_to = np.searchsorted(ordered, higher, "left"), np.searchsorted(ordered, higher, "right")
    return float((below + up_to).sum() / (2.0 * len(lower) * len(higher)))


def risks(uncertain: Doubles, right: Flags) -> Doubles:
    """Return the risk [N] if 1, 2, …, N samples are answered; samples with equal signals share their errors."""
    _, group, counts = np.unique(uncertain, return_inverse=True, return_counts=True)
    wrong = np.bincount(group, weights=~right) / counts
    answered = np.cumsum(np.repeat(wrong, counts))
    found: Doubles = answered / np.arange(1, len(right) + 1)
    return found


def signal_of(uncertain: Doubles, right: Flags, unknown: dict[str, Doubles]) -> Signal:
    """Judge one signal."""
    risk = risks(uncertain, right)
    return Signal(
        aurc=float(risk.mean()),
        risk=tuple(float(risk[max(1, round(share * len(risk))) - 1]) for share in COVERAGES),
        errors=auroc(uncertain[right], uncertain[~right]),
        unknown={kind: auroc(uncertain, values) for kind, values in unknown.items()},
    )


def sets_of(possible: Flags, winners: NDArray[np.int64], labels: NDArray[np.int64], coverage: float) -> Sets:
    """Judge sets [T, N, classes] of possible classes, beside the winners [T, N]."""
    held = possible[:, np.arange(len(labels)), labels]
    size = possible.sum(-1)
    alone = size == 1
    right = [float((row[one] == labels[one]).mean()) if one.any() else None
             for row, one in zip(winners, alone, strict=True)]  # fmt: skip
    return Sets(
        coverage=coverage,
        held=tuple(held.mean(-1).tolist()),
        interval=wilson_interval(int(held[-1].sum()), len(labels)),
        size=tuple(size.mean(-1).tolist()),
        answered=tuple(alone.mean(-1).tolist()),
        right=tuple(right),
    )


def possible_by_step(logits: NDArray[np.float32], margins: tuple[float, ...]) -> Flags:
    """Return which classes are possible [T, N, classes], of the logits [T, members, N, classes] after each step."""
    return np.stack([possible_classes(step, margin) for step, margin in zip(logits, margins, strict=True)])


def logits_by_step(engine: Engine, x: NDArray[np.float32], numbers: range, seed: int = 0) -> NDArray[np.float32]:
    """Return the logits [T, members, B, classes] after each time step, as a stream has them; a binary network has one.

    The noise of a stochastic network is that of the samples with these numbers.
    """
    spiking = engine.program.contract.kind == "spiking"
    state, found = engine.initial_state(len(numbers)), []
    for step, frame in enumerate(x if spiking else x[None]):
        chunk = engine.advance(state, frame[None], draw_noise(engine.program, seed, numbers, step, 1))
        state = chunk.state
        found.append(engine.program.contract.logits_of(chunk.logits, step + 1))
    return np.stack(found)


def _noise(frames: Frames, random: np.random.Generator) -> Frames:
    """Put every count into a random place and time step."""
    rows = frames.reshape(len(frames), -1)
    return np.stack([random.permutation(row) for row in rows]).reshape(frames.shape)


def _shuffled(frames: Frames, random: np.random.Generator) -> Frames:
    """Put the time steps into a random order."""
    if frames.shape[1] < 2:
        raise AxonnxError(
            "unknown input 'shuffled' has time steps in another order; these samples have one. Leave it out"
        )
    return np.stack([each[random.permutation(len(each))] for each in frames])


def _turned(frames: Frames, _random: np.random.Generator) -> Frames:
    """Turn the sensor by 180°."""
    return np.ascontiguousarray(frames[..., ::-1, ::-1] if frames.ndim > 3 else frames[..., ::-1])


MADE: dict[str, Callable[[Frames, np.random.Generator], Frames]] = {
    "noise": _noise, "shuffled": _shuffled, "turned": _turned,
}  # fmt: skip
