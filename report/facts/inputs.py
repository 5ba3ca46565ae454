"""What verification, profiling and training leave behind, as a report reads it.

What is missing is not shown; what is there but of another type is refused, with the place of the fault.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from axonnx.base.errors import AxonnxError
from axonnx.base.fingerprints import sha256_of

Row = Mapping[str, str]


class Reading(BaseModel):
    """A part of a file that others write: fields may be missing and more may be there, types may not differ."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class Compared(Reading):
    """How many values were held against each other."""

    spikes: int | None = None
    membranes: int | None = None
    logits: int | None = None


class Stage(Reading):
    """One step of a verification."""

    name: str
    ok: bool
    lines: tuple[str, ...] = ()


class Implementation(Reading):
    """One runtime against the reference."""

    name: str
    samples: int | None = None
    spikes_differing: int | None = None
    membranes_differing: int | None = None
    max_logit_difference: float | None = None


class Accuracy(Reading):
    """The share of right decisions of one way to run the network."""

    name: str
    accuracy: float
    interval: tuple[float, float] | None = None
    samples: int | None = None
    on: str | None = None  # which samples these are


class Unrounded(Reading):
    """The training network before its weights were put on the grid."""

    equal_spikes: float | None = None
    accuracy: float | None = None


class Divergence(Reading):
    """The first value that differs."""

    implementation: str | None = None
    layer: str | None = None
    sample: int | None = None
    step: int | None = None
    neuron: int | tuple[int, ...] | str | None = None
    expected: float | None = None
    found: float | None = None
    threshold: float | None = None
    distance: float | None = None


class Verify(Reading):
    """verify.json."""

    format: Literal[1] = 1
    model: str | None = None
    file_sha256: str | None = None
    run: str | None = None
    verdict: Literal["equal", "different"]
    mismatches: int | None = None
    compared: Compared = Compared()
    stages: tuple[Stage, ...] = ()
    implementations: tuple[Implementation, ...] = ()
    unrounded: Unrounded | None = None
    accuracy: tuple[Accuracy, ...] = ()
    first_divergence: Divergence | None = None


class LayerCost(Reading):
    """Activity of one layer."""

    name: str
    neurons: int | None = None
    rate: float | None = None
    spikes_per_inference: float | None = None


class SynapseCost(Reading):
    """Operations of one synapse, for one inference."""

    name: str
    weights: int | None = None
    connection_sparsity: float | None = None
    accumulates: float | None = None
    multiply_accumulates: float | None = None
    dense_operations: float | None = None


class Totals(Reading):
    """Sums over the network, for one inference."""

    events_in: float | None = None
    accumulates: float | None = None
    multiply_accumulates: float | None = None
    dense_operations: float | None = None
    membrane_updates: float | None = None
    footprint_bytes: float | None = None
    activation_sparsity: float | None = None
    connection_sparsity: float | None = None


class Energy(Reading):
    """An estimate and the constants it rests on."""

    hardware: str | None = None
    constants: dict[str, float] = Field(default_factory=dict)
    parts: dict[str, float] = Field(default_factory=dict)
    total_nj: float | None = None
    dense_nj: float | None = None


class EarlyExit(Reading):
    """Accuracy and mean decision time where a window ends at a given certainty."""

    stop_at: float
    accuracy: float | None = None
    mean_steps: float


class Profile(Reading):
    """profile.json."""

    format: Literal[1] = 1
    model: str | None = None
    file_sha256: str | None = None
    samples: int | None = None
    engine: str | None = None
    layers: tuple[LayerCost, ...] = ()
    synapses: tuple[SynapseCost, ...] = ()
    totals: Totals = Totals()
    energy: Energy | None = None
    rates_over_time: dict[str, list[float]] = Field(default_factory=dict)
    latency_ms_per_step: float | None = None
    accuracy: float | None = None
    ece: float | None = None
    early_exit: tuple[EarlyExit, ...] = ()


class PartMetrics(Reading):
    """Final figures of one part of the data, from metrics.json."""

    samples: int | None = None
    accuracy: float | None = None
    accuracy_interval: tuple[float, float] | None = None
    nll: float | None = None
    brier: float | None = None
    ece: float | None = None
    rates: dict[str, float] = Field(default_factory=dict)


@dataclass(frozen=True)
class RunFiles:
    """A run's folder as text and numbers."""

    path: Path
    rows: tuple[Row, ...] = ()
    metrics: Mapping[str, PartMetrics] = field(default_factory=dict)
    config: str | None = None


Model = TypeVar("Model", bound=BaseModel)


def read_verify(path: str | Path) -> Verify:
    """The result of ``axonnx verify``."""
    return _validated(Verify, _text(Path(path)), str(path))


def read_profile(path: str | Path) -> Profile:
    """The result of ``axonnx profile``."""
    return _validated(Profile, _text(Path(path)), str(path))


def check_belongs(source: str, result: Verify | Profile, model: Path) -> None:
    """Refuse a result that was not made from this very file, byte for byte."""
    verb = type(result).__name__.lower()
    if result.file_sha256 is None:
        raise AxonnxError(f"{source}: does not say which file it was made from. Run axonnx {verb} on {model} again")
    found = sha256_of(model)
    if result.file_sha256 != found:
        raise AxonnxError(
            f"{source}: was made from {result.model or 'a file'} with sha256 {result.file_sha256[:16]}…; {model} has "
            f"{found[:16]}…. Name the file it was made from, or run axonnx {verb} on this one"
        )


def read_run(path: str | Path) -> RunFiles:
    """results.csv, metrics.json and config.toml of a run folder, as far as they are there."""
    folder = Path(path)
    config = _optional(folder / "config.toml")
    if config is None:
        raise AxonnxError(f"{folder}: no run here (config.toml is missing). Start one: axonnx train … --out DIR")
    return RunFiles(folder, _rows(folder / "results.csv"), _metrics(folder / "metrics.json"), config)


def _rows(path: Path) -> tuple[Row, ...]:
    try:
        rows = tuple(dict(row) for row in csv.DictReader((_optional(path) or "").splitlines()))
    except csv.Error as fault:
        raise AxonnxError(f"{path}: is no csv table ({fault}); remove it, or restore it from a copy") from None
    if any(None in row or None in row.values() for row in rows):
        raise AxonnxError(f"{path}: has rows of another length than its header; remove it, or restore it from a copy")
    return rows


def _metrics(path: Path) -> dict[str, PartMetrics]:
    text = _optional(path)
    if text is None:
        return {}
    try:
        parts: Any = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise AxonnxError(f"{path}: is not JSON ({fault}); run axonnx eval again, or remove it") from None
    if not isinstance(parts, dict):
        raise AxonnxError(f"{path}: holds {type(parts).__name__}; expected an object with a part of the data each")
    return {name: _validated(PartMetrics, json.dumps(part), f"{path}: {name}") for name, part in parts.items()}


def _validated(kind: type[Model], text: str, where: str) -> Model:
    try:
        return kind.model_validate_json(text)
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the text itself"
        raise AxonnxError(f"{where}: {place}: {first['msg']}. Write it again with this version of axonnx") from None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise AxonnxError(f"{path}: cannot be read: {fault}") from None


def _optional(path: Path) -> str | None:
    return _text(path) if path.is_file() else None
