"""What training leaves behind, as a report reads it, and whether results are of the file that is reported.

What is missing is not shown; what is there but of another type is refused, with the place of the fault.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from axonnx.base.errors import AxonnxError
from axonnx.base.fingerprints import sha256_of
from axonnx.runtime.measure.profile_result import ProfileResult
from axonnx.runtime.measure.result_files import Found, parse_result
from axonnx.runtime.measure.verify_result import VerifyResult

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
    """results.csv, metrics.json and config.toml of a run folder, as far as they are there."""
    folder = Path(path)
    config = _optional(folder / "config.toml")
    if config is None:
        raise AxonnxError(f"{folder}: no run here (config.toml is missing). Start one: axonnx train")
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
    return {name: parse_result(PartMetrics, json.dumps(part), f"{path}: {name}") for name, part in parts.items()}


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise AxonnxError(f"{path}: cannot be read: {fault}") from None


def _optional(path: Path) -> str | None:
    return _text(path) if path.is_file() else None
