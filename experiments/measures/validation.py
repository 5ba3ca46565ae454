"""A trained run's figures on its validation part, and on no other."""

from __future__ import annotations

import json
from pathlib import Path

from axonnx.experiments.measures.training import FIGURES, trained_run
from axonnx.experiments.plan import Job
from axonnx.experiments.store import Record


def measure(job: Job, runs: Path) -> Record:
    """Mean-field figures: of the deterministic network, the one that ships."""
    path = trained_run(job, runs)
    metrics = json.loads((path / "metrics.json").read_text("utf-8"))
    return {"run": path.name, **{key: metrics["validation"][key] for key in FIGURES}}
