"""What training leaves behind, as a report reads it, and whether results are of the file that is reported.

Missing parts are not shown. A value of the wrong type is refused, with its place.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, RootModel

from axonnx.base.errors import AxonnxError
from axonnx.base.files import sha256_of
from axonnx.runtime.format.contract import AccuracyContract, Way
from axonnx.runtime.measure.inspection import collapse_text, way_text
from axonnx.runtime.measure.metrics import value_metrics, wilson_interval
from axonnx.runtime.measure.profile_result import ProfileResult
from axonnx.runtime.measure.result_files import Found, read_result
from axonnx.runtime.measure.verify_result import VerifyResult
from axonnx.runtime.report.measure import Measured
from axonnx.runtime.report.model_view import ModelView

Row = Mapping[str, str]


class PartMetrics(Found):
    """Final figures of one part of the data, from metrics.json."""

    samples: int | None = None
    accuracy: float | None = None
    accuracy_interval: tuple[float, float] | None = None
    nll: float | None = None
    brier: float | None = None
    ece: float | None = None
    rates: dict[str, float] = Field(default_factory=dict)
    mae: tuple[float, ...] = ()  # of a regression, for each value
    rmse: tuple[float, ...] = ()
    r2: tuple[float, ...] = ()
    intervals: dict[str, tuple[tuple[float, float], ...]] = Field(default_factory=dict)


class _AllMetrics(RootModel[dict[str, PartMetrics]]):
    """All of metrics.json: a part of the data each."""


@dataclass(frozen=True)
class RunFiles:
    """A run's folder as text and numbers."""

    path: Path
    rows: tuple[Row, ...] = ()
    metrics: Mapping[str, PartMetrics] = field(default_factory=dict)
    config: str | None = None


def check_belongs(source: str, result: VerifyResult | ProfileResult, model: Path) -> None:
    """Refuse a result that was not made from this very file, byte for byte."""
    verb = "verify" if isinstance(result, VerifyResult) else "profile"
    if result.file_sha256 is None:
        raise AxonnxError(f"{source}: does not say which file it was made from. Run axonnx {verb} on {model} again")
    found = sha256_of(model)
    if result.file_sha256 != found:
        raise AxonnxError(
            f"{source}: was made from {result.model} with sha256 {result.file_sha256[:16]}…; {model} has "
            f"{found[:16]}…. Name the file it was made from, or run axonnx {verb} on this one"
        )


def read_run(path: str | Path) -> RunFiles:
    """Read results.csv, metrics.json and config.toml of a run folder; only the last one has to be there."""
    folder = Path(path)
    config = _optional(folder / "config.toml")
    if config is None:
        raise AxonnxError(f"{folder}: no run here (config.toml is missing). Start one: axonnx train")
    figures = folder / "metrics.json"
    metrics = read_result(_AllMetrics, figures).root if figures.is_file() else {}
    return RunFiles(folder, _rows(folder / "results.csv"), metrics, config)


def _rows(path: Path) -> tuple[Row, ...]:
    try:
        rows = tuple(dict(row) for row in csv.DictReader((_optional(path) or "").splitlines()))
    except csv.Error as fault:
        raise AxonnxError(f"{path}: is no csv table ({fault}); remove it, or restore it from a copy") from None
    if any(None in row or None in row.values() for row in rows):
        raise AxonnxError(f"{path}: has rows of another length than its header; remove it, or restore it from a copy")
    return rows


def _optional(path: Path) -> str | None:
    try:
        return path.read_text("utf-8") if path.is_file() else None
    except (OSError, UnicodeDecodeError) as fault:
        raise AxonnxError(f"{path}: cannot be read: {fault}") from None


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

    def errors(self, figure: str) -> list[tuple[str, str, float, float, float]]:
        """Return name, unit, error and its interval of each real value that was measured here."""
        contract, measured = self.model.contract, self.measured
        if contract.units is None or measured is None or measured.truth is None:
            return []
        found = value_metrics(measured.final, measured.truth)
        figures, bounds = getattr(found, figure), found.intervals[figure]
        rows = zip(contract.classes, contract.units, figures, bounds, strict=True)
        return [(name, unit, value, low, high) for name, unit, value, (low, high) in rows]

    def rates(self) -> dict[str, float]:
        """Return the firing rate of each layer: profiled, or measured here, or from training."""
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
