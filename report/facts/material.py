"""All that a report is made of, and the figures that several of its sections need."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from axonnx.report.facts.inputs import Accuracy, Profile, RunFiles, Verify
from axonnx.report.facts.measure import Measured
from axonnx.report.facts.model import ModelView
from axonnx.runtime.measure.metrics import wilson_interval

SHIPPED = ("this file", "the file")  # what names of accuracies begin with


@dataclass(frozen=True, eq=False)
class Material:
    """The file, and whatever else is known about it."""

    model: ModelView
    made: str
    run: RunFiles | None = None
    verify: Verify | None = None
    profile: Profile | None = None
    measured: Measured | None = None
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's name."""
        return self.model.path.name

    @property
    def run_name(self) -> str:
        """What commands say for the run."""
        return str(self.run.path) if self.run else "RUN"

    @property
    def accuracies(self) -> tuple[Accuracy, ...]:
        """All ways to run the network, as measured at export or else verified; the file's own is ``shipped``."""
        found = self._stated or self._verified
        others = tuple(entry for entry in found if not is_shipped(entry))
        return others if self.shipped is None else (*others, self.shipped)

    @property
    def shipped(self) -> Accuracy | None:
        """The one accuracy of the file in this report: measured here, or else as verified, or else as at export."""
        own = [entry for entry in (*self._verified, *self._stated) if is_shipped(entry)]
        right = None if self.measured is None else self.measured.right
        if self.measured is None or right is None:
            return own[0] if own else None
        name = own[-1].name if own else SHIPPED[0]
        bounds = wilson_interval(int(right.sum()), len(right))
        return Accuracy(
            name=name,
            accuracy=float(right.mean()),
            interval=bounds,
            samples=len(right),
            on=f"on {self.measured.source}",
        )

    @property
    def _verified(self) -> tuple[Accuracy, ...]:
        found = self.verify.accuracy if self.verify is not None else ()
        return tuple(entry.model_copy(update={"on": _counted(entry, "verified on")}) for entry in found)

    @property
    def _stated(self) -> tuple[Accuracy, ...]:
        found = [_stated(name, entry) for name, entry in self.model.contract.accuracy.items()]
        known = [entry for entry in found if entry is not None]
        return tuple(entry.model_copy(update={"on": _counted(entry, "at export, on")}) for entry in known)

    def rates(self) -> dict[str, float]:
        """Firing rate of each layer: profiled, or measured here, or from training."""
        if self.profile is not None and any(layer.rate is not None for layer in self.profile.layers):
            return {layer.name: layer.rate for layer in self.profile.layers if layer.rate is not None}
        if self.measured is not None:
            return {name: float(steps.mean()) for name, steps in self.measured.rates.items()}
        tested = self.run.metrics.get("test") if self.run is not None else None
        return dict(tested.rates) if tested else {}

    def spikes_per_inference(self) -> float | None:
        """Of all layers together."""
        if self.profile is not None:
            counts = [layer.spikes_per_inference for layer in self.profile.layers]
            if counts and all(count is not None for count in counts):
                return math.fsum(count for count in counts if count is not None)
        return None if self.measured is None else math.fsum(self.measured.spikes.values())

    def operations(self) -> Mapping[str, float]:
        """Synaptic operations of one inference, by synapse."""
        if self.profile is not None and self.profile.synapses:
            return {
                entry.name: (entry.accumulates or 0.0) + (entry.multiply_accumulates or 0.0)
                for entry in self.profile.synapses
                if entry.accumulates is not None or entry.multiply_accumulates is not None
            }
        return {} if self.measured is None else self.measured.operations


def _counted(entry: Accuracy, when: str) -> str:
    return when + (" test samples" if entry.samples is None else f" {entry.samples:,} test samples")


def is_shipped(entry: Accuracy) -> bool:
    """Whether an accuracy is that of the file, not of another way to run the network."""
    return entry.name.startswith(SHIPPED)


def _stated(name: str, entry: object) -> Accuracy | None:
    """An entry of the contract's table; None where it is something else."""
    if not isinstance(entry, dict) or not isinstance(entry.get("accuracy"), int | float):
        return None
    bounds, samples = entry.get("interval"), entry.get("samples")
    pair = (float(bounds[0]), float(bounds[1])) if isinstance(bounds, list | tuple) and len(bounds) == 2 else None
    number = samples if isinstance(samples, int) else None
    return Accuracy(name=name, accuracy=float(entry["accuracy"]), interval=pair, samples=number)
