"""Two implementations side by side, number by number: how many differ, and where the first one does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from axonnx.export.verify.observe import Observed
from axonnx.runtime.measure.verify_result import Divergence, Implementation

Floats = NDArray[np.float32]


@dataclass
class Comparison:
    """Counts of one implementation against the reference; adds up over batches."""

    key: str
    name: str
    timed: bool = True  # whether the first axis of spikes and membranes is time
    samples: int = 0
    spikes: int = 0
    membranes: int = 0
    logits: int = 0
    spikes_differing: int = 0
    membranes_differing: int = 0
    logits_differing: int = 0
    max_logit_difference: float = 0.0
    first: Divergence | None = field(default=None)

    @property
    def differing(self) -> int:
        """Everything that is not equal."""
        return self.spikes_differing + self.membranes_differing + self.logits_differing

    def add(self, reference: Observed, found: Observed, thresholds: Mapping[str, Floats], offset: int) -> None:
        """One more batch, whose first sample is number ``offset``."""
        self.samples += reference.logits.shape[1]
        divergences = [
            *self._part("spikes", reference.spikes, found.spikes, reference, thresholds, offset),
            *self._part(
                "membrane", _membranes(reference, found, thresholds), found.membranes, reference, thresholds, offset
            ),
        ]
        same = reference.logits == found.logits
        self.logits += same.size
        self.logits_differing += int((~same).sum())
        self.max_logit_difference = max(
            self.max_logit_difference, float(np.abs(reference.logits - found.logits).max(initial=0.0))
        )
        if not same.all():
            divergences.append((np.inf, len(reference.spikes), _of_logits(reference, found, offset)))
        if divergences and self.first is None:
            self.first = min(divergences, key=lambda entry: entry[:2])[2]

    def _part(
        self,
        what: str,
        expected: Mapping[str, Floats],
        found: Mapping[str, Floats],
        reference: Observed,
        thresholds: Mapping[str, Floats],
        offset: int,
    ) -> list[tuple[float, int, Divergence]]:
        divergences = []
        for place, layer in enumerate(expected):
            if layer not in found:
                continue
            different = expected[layer] != found[layer]
            count = int(different.sum())
            plural = "spikes" if what == "spikes" else "membranes"
            setattr(self, plural, getattr(self, plural) + different.size)
            setattr(self, f"{plural}_differing", getattr(self, f"{plural}_differing") + count)
            if count:
                index = tuple(int(i) for i in np.argwhere(different)[0])
                sides = (expected[layer], found[layer], reference.membranes.get(layer))
                first = self._divergence(what, layer, index, sides, thresholds[layer], offset)
                divergences.append((float(index[0]) if self.timed else 0.0, place, first))
        return divergences

    def _divergence(
        self,
        what: str,
        layer: str,
        index: tuple[int, ...],
        sides: tuple[Floats, Floats, Floats | None],
        thresholds: Floats,
        offset: int,
    ) -> Divergence:
        expected, found, membrane = sides
        axes = 2 if self.timed else 1
        neuron = index[axes:]
        threshold = float(np.broadcast_to(thresholds, expected.shape[axes:])[neuron])
        return Divergence(
            implementation=self.name,
            what="spike" if what == "spikes" else "membrane",
            layer=layer,
            sample=offset + index[axes - 1],
            step=index[0] if self.timed else None,
            neuron=neuron,
            expected=float(expected[index]),
            found=float(found[index]),
            threshold=threshold,
            distance=None if membrane is None else float(membrane[index]) - threshold,
        )

    def result(self) -> Implementation:
        """For JSON."""
        return Implementation(**{key: getattr(self, key) for key in Implementation.model_fields})


def _membranes(reference: Observed, found: Observed, thresholds: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """The reference's membranes, as gaps where the other tells gaps: h* − θ in float32, as the training code does."""
    if not found.gaps:
        return reference.membranes
    return {layer: membrane - thresholds[layer] for layer, membrane in reference.membranes.items()}


def _of_logits(reference: Observed, found: Observed, offset: int) -> Divergence:
    member, sample, label = (int(i) for i in np.argwhere(reference.logits != found.logits)[0])
    expected, got = (float(side.logits[member, sample, label]) for side in (reference, found))
    return Divergence(
        implementation=found.name,
        what="logit",
        layer=f"read-out {member}",
        sample=offset + sample,
        step=None,
        neuron=(label,),
        expected=expected,
        found=got,
    )
