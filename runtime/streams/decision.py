"""What a network says at the end of a time bin, a window or an image, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.streams.probabilities import entropy, joint_logits, mean_probabilities, mutual_information, softmax

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decision:
    """The state of a decision at the end of bin ``bin``.

    ``member_logits`` are the network's own bits; everything else follows from them. An ensemble's probabilities are
    the mean of its members', and its ``logits`` the logarithm of that mean, so that softmax(logits) = probabilities in
    either case. ``final`` decisions close their window; ``early`` ones do so before its last bin; ``partial`` ones are
    of a window in which the recording or stream ended, so that its last bins were taken as silent.
    """

    t_us: int | None  # end of the bin on the stream's clock; None for images and frames
    bin: int
    window: int
    steps: int  # time steps since the window began
    member_logits: Floats  # [members, classes]
    classes: tuple[str, ...]
    final: bool
    early: bool = False
    windows: int = 1  # windows it stands for: more than one where it closes silent windows in a row
    ended_after: int | None = None  # bins of its window after which the recording ended; None where it went on
    outside: Outside | None = None  # of a whole recording: its events that are in no bin, by reason

    def __repr__(self) -> str:
        when = "" if self.t_us is None else f" at {self.t_us / 1e6:.3f} s"
        return f"Decision({self.label!r}, {100 * self.confidence:.1f} %{when}{'' if self.final else ', not final'})"

    @classmethod
    def made_of(cls, **fields: Any) -> Decision:
        """The same as the constructor, in a fourth of the time: a frozen class guards every assignment of its own."""
        made = object.__new__(cls)
        made.__dict__.update(fields)
        return made

    @property
    def partial(self) -> bool:
        """Whether the events ended before this bin, so that the window is not filled."""
        return self.ended_after is not None

    @cached_property
    def probabilities(self) -> Doubles:
        """Of the classes; they sum to one."""
        return mean_probabilities(self.member_logits)

    @cached_property
    def logits(self) -> Floats:
        """[classes]: the network's own, or of an ensemble the logarithm of its probabilities."""
        return joint_logits(self.member_logits)

    @property
    def winner(self) -> int:
        """The class with the highest probability, the first of equals."""
        return int(self.logits.argmax())

    @property
    def label(self) -> str:
        """The winner's name."""
        return self.classes[self.winner]

    @property
    def confidence(self) -> float:
        """The winner's probability."""
        return float(self.probabilities.max())

    @cached_property
    def entropy(self) -> float:
        """Of the probabilities, in nats: 0 when sure, log(classes) when at a loss."""
        return float(entropy(self.probabilities))

    @cached_property
    def mutual_information(self) -> float | None:
        """How far the members of an ensemble disagree, in nats; None for a single network."""
        if len(self.member_logits) == 1:
            return None
        return float(mutual_information(softmax(self.member_logits)))

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain numbers and lists, for JSON; numbers keep their bits."""
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
            "class": self.winner,
            "label": self.label,
            "probability": self.confidence,
            "probabilities": self.probabilities.tolist(),
            "logits": self.logits.tolist(),
            "entropy": self.entropy,
        }
        if len(self.member_logits) > 1:
            facts |= {"mutual_information": self.mutual_information, "member_logits": self.member_logits.tolist()}
        return facts if self.outside is None else {**facts, "outside": self.outside.as_dict()}
