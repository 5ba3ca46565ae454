"""The decision of a network at the end of a time bin, a window or an image, with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.streams.probabilities import (
    entropy,
    joint_logits,
    mean_probabilities,
    mutual_information,
    possible_classes,
    softmax,
)

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decision:
    """A network's decision at the end of a bin.

    ``member_logits`` are the network's own bits; everything else is computed from them. The probabilities of an
    ensemble are the mean over its members, and ``logits`` is the logarithm of that mean. So softmax(scale · logits) =
    probabilities holds for single networks and for ensembles.

    Attributes:
        t_us: End of the bin on the stream's clock in microseconds. None for images and frames.
        bin: Index of the bin.
        window: Index of the window.
        steps: Number of time steps since the window began.
        member_logits: Logits of each member, [members, classes].
        classes: Names of the classes.
        final: Whether this decision closes its window.
        early: Whether it closes the window before its last bin.
        windows: Number of windows that it stands for. More than one if it closes consecutive silent windows.
        ended_after: Number of bins of the window after which the recording ended. None if the window is complete.
        units: Units of the real values that ``classes`` names, if the network is a regression. It then has no classes,
            no probabilities and no entropy.
        outside: For a whole recording, its events that are in no bin, by reason.
        epoch: How often the clock of a live source went back before; bins and windows are counted anew each time.
        scale: 1 / temperature, if the file states one.
        margin: How far behind the best a possible class may be in this time step, if the file states a coverage.
    """

    t_us: int | None  # end of the bin on the stream's clock; None for images and frames
    bin: int
    window: int
    steps: int  # time steps since the window began
    member_logits: Floats  # [members, classes]
    classes: tuple[str, ...]
    final: bool
    early: bool = False
    windows: int = 1  # more than one if it closes consecutive silent windows
    ended_after: int | None = None  # bins of the window after which the recording ended; None if the window is complete
    units: tuple[str, ...] | None = None  # of real values, which a regression gives in place of a decision
    outside: Outside | None = None  # for a whole recording: its events that are in no bin, by reason
    epoch: int = 0  # how often the clock of a live source went back before
    scale: float = 1.0
    margin: float | None = None

    def __repr__(self) -> str:
        when = "" if self.t_us is None else f" at {self.t_us / 1e6:.3f} s"
        if self.units is not None:
            return f"Decision({self.text}{when}{'' if self.final else ', not final'})"
        return f"Decision({self.label!r}, {100 * self.confidence:.1f} %{when}{'' if self.final else ', not final'})"

    @staticmethod
    def certainty_of(contract: Contract, steps: int) -> dict[str, Any]:
        """Return scale and margin after so many time steps, as fields of a decision; nothing if the file has none."""
        found = contract.certainty
        return {} if found is None else {"scale": found.scale, "margin": found.margin(steps)}

    @classmethod
    def made_of(cls, **fields: Any) -> Decision:
        """Construct a decision in a quarter of the constructor's time: a frozen class guards every assignment."""
        made = object.__new__(cls)
        made.__dict__.update(fields)
        return made

    @property
    def partial(self) -> bool:
        """Whether the recording or stream ended inside this window, so that its last bins are silent."""
        return self.ended_after is not None

    @property
    def values(self) -> dict[str, float]:
        """The real values by name, if the network is a regression; else none."""
        return {} if self.units is None else dict(zip(self.classes, self.logits.tolist(), strict=True))

    @property
    def text(self) -> str:
        """The real values with names and units, or the label."""
        if self.units is None:
            return self.label
        return values_text(self.values, self.units)

    @cached_property
    def probabilities(self) -> Doubles:
        """Probability of each class; their sum is one.

        Raises:
            AxonnxError: If the network is a regression.
        """
        if self.units is not None:
            raise AxonnxError(f"this decision has real values ({self.text}), no probabilities; use values")
        return mean_probabilities(self.member_logits, self.scale)

    @cached_property
    def logits(self) -> Floats:
        """Logits [classes] of the network, or the logarithm of an ensemble's probabilities."""
        return joint_logits(self.member_logits)

    @property
    def winner(self) -> int:
        """Index of the class with the highest probability; the first one if there is a tie."""
        if self.units is not None:
            raise AxonnxError(f"this decision has real values ({self.text}), no class; use values")
        return int(self.logits.argmax())

    @property
    def label(self) -> str:
        """Name of the class with the highest probability."""
        return self.classes[self.winner]

    @cached_property
    def possible(self) -> tuple[str, ...]:
        """Names of the classes that are possible with the coverage that the file states; without one, the label."""
        if self.margin is None:
            return (self.label,)
        return tuple(np.array(self.classes)[possible_classes(self.member_logits, self.margin)].tolist())

    @property
    def answer(self) -> str | None:
        """The label if no other class is possible; else None: the network abstains."""
        return self.label if len(self.possible) == 1 else None

    @property
    def confidence(self) -> float:
        """Highest probability."""
        return float(self.probabilities.max())

    @cached_property
    def entropy(self) -> float:
        """Entropy of the probabilities in nats: 0 if certain, log(classes) if all classes are equally likely."""
        return float(entropy(self.probabilities))

    @cached_property
    def mutual_information(self) -> float | None:
        """Disagreement between the members of an ensemble in nats; None for a single network."""
        if len(self.member_logits) == 1:
            return None
        return float(mutual_information(softmax(self.member_logits)))

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as plain numbers and lists for JSON; floats keep all their bits."""
        facts: dict[str, Any] = {
            "t_us": self.t_us,
            "bin": self.bin,
            "window": self.window,
            "steps": self.steps,
            "windows": self.windows,
            "final": self.final,
            "early": self.early,
            "partial": self.partial,
            "ended_after": self.ended_after,
        }
        if self.units is not None:
            facts |= {"values": self.values, "units": list(self.units)}
            return facts if self.outside is None else {**facts, "outside": self.outside.as_dict()}
        facts |= {
            "class": self.winner,
            "label": self.label,
            "probability": self.confidence,
            "probabilities": self.probabilities.tolist(),
            "logits": self.logits.tolist(),
            "entropy": self.entropy,
        }
        if self.margin is not None:
            facts |= {"possible": list(self.possible), "answer": self.answer}
        if len(self.member_logits) > 1:
            facts |= {"mutual_information": self.mutual_information, "member_logits": self.member_logits.tolist()}
        if self.epoch:
            facts["epoch"] = self.epoch
        return facts if self.outside is None else {**facts, "outside": self.outside.as_dict()}


def values_text(values: Mapping[str, float], units: Iterable[str]) -> str:
    """Return real values with their names and units, for people."""
    named = zip(values.items(), units, strict=True)
    return "  ".join(f"{name} {value:.6g} {unit}".rstrip() for (name, value), unit in named)
