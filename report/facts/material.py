"""All that a report is made of, and the figures that several of its sections need."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from axonnx.report.facts.inputs import RunFiles
from axonnx.report.facts.measure import Measured
from axonnx.report.facts.model_view import ModelView
from axonnx.runtime.format.contract import AccuracyContract, Way
from axonnx.runtime.measure.metrics import wilson_interval
from axonnx.runtime.measure.profile_result import ProfileResult
from axonnx.runtime.measure.verify_result import VerifyResult
from axonnx.runtime.measure.ways import collapse_text, way_text


@dataclass(frozen=True)
class Right:
    """How often one way to run the network is right, and on which samples."""

    way: Way
    text: str
    accuracy: float
    interval: tuple[float, float]
    samples: int
    on: str


@dataclass(frozen=True, eq=False)
class Material:
    """The file, and whatever else is known about it."""

    model: ModelView
    made: str
    run: RunFiles | None = None
    verify: VerifyResult | None = None
    profile: ProfileResult | None = None
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
    def accuracies(self) -> tuple[Right, ...]:
        """All ways to run the network, as measured at export; the file's own, which comes last, is ``shipped``."""
        collapse = self.model.contract.collapse
        others = [entry for entry in self.model.contract.accuracy if entry.way != "file"]
        found = tuple(_at_export(entry, way_text(entry, collapse)) for entry in others)
        return found if self.shipped is None else (*found, self.shipped)

    @property
    def shipped(self) -> Right | None:
        """The one accuracy of the file in this report: measured here, or else as verified, or else as at export."""
        text = f"this file: {collapse_text(self.model.contract.collapse)}"
        right = None if self.measured is None else self.measured.right
        if self.measured is not None and right is not None:
            bounds = wilson_interval(int(right.sum()), len(right))
            return Right("file", text, float(right.mean()), bounds, len(right), f"on {self.measured.source}")
        for verified in () if self.verify is None else self.verify.accuracy:
            if verified.of == "file":
                on = f"verified on {verified.samples:,} test samples"
                return Right("file", text, verified.accuracy, verified.interval, verified.samples, on)
        stated = [entry for entry in self.model.contract.accuracy if entry.way == "file"]
        return _at_export(stated[0], text) if stated else None

    def rates(self) -> dict[str, float]:
        """Firing rate of each layer: profiled, or measured here, or from training."""
        if self.profile is not None:
            return {layer.name: layer.rate for layer in self.profile.layers}
        if self.measured is not None:
            return {name: float(steps.mean()) for name, steps in self.measured.rates.items()}
        tested = self.run.metrics.get("test") if self.run is not None else None
        return dict(tested.rates) if tested else {}

    def spikes_per_inference(self) -> float | None:
        """Of all layers together."""
        if self.profile is not None:
            return self.profile.spikes_per_inference
        return None if self.measured is None else math.fsum(self.measured.spikes.values())

    def operations(self) -> Mapping[str, float]:
        """Synaptic operations of one inference, by synapse."""
        if self.profile is not None:
            return {entry.name: entry.operations for entry in self.profile.synapses}
        return {} if self.measured is None else self.measured.operations


def _at_export(entry: AccuracyContract, text: str) -> Right:
    on = f"at export, on {entry.samples:,} test samples"
    return Right(entry.way, text, entry.accuracy, entry.interval, entry.samples, on)
