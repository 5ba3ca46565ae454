"""Train a case, or find that it was trained before; its final figures and how they came about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from axonnx.train.build import make_variant
from axonnx.train.config.read import check_config
from axonnx.train.run_folder import RunFolder
from axonnx.train.shared_records import Job, Record
from axonnx.train.sweeping import FIGURES, trained_run

KEPT = ("epoch", "phase", "cross_entropy", "kl", "train_accuracy", "test_accuracy", "test_nll", "rate")


def measure(job: Job, runs: Path) -> Record:
    """Return the final accuracy as trained (with or without noise), the accuracy both ways, and every epoch."""
    path = trained_run(job, runs)
    metrics = json.loads((path / "metrics.json").read_text("utf-8"))
    rows = RunFolder(path).read_results(_epochs(job))
    final = {name.removeprefix("test").strip("_") or "mean_field": part for name, part in metrics.items()}
    shown = {name: {key: part[key] for key in FIGURES} for name, part in final.items() if name != "train"}
    variant = make_variant(check_config(job.settings, job.case).variant)
    tuned = rows[-1]["phase"] == "finetune" or job.settings.get("noise", {}).get("anneal", 0.0) > 0.0
    as_trained = "bayesian" if variant.fire == "sample" and not tuned else "mean_field"
    return {
        "settings": job.settings,
        "run": path.name,
        "accuracy": shown[as_trained]["accuracy"],
        "as_trained": as_trained,
        "final": shown,
        "epochs": [_row(row, job.options.get("layers", False)) for row in rows],
        "seconds": sum(row["seconds"] for row in rows),
    }


def _epochs(job: Job) -> int:
    config = check_config(job.settings, job.case)
    return config.optimiser.epochs + config.finetune.epochs


def _row(row: dict[str, Any], layers: bool) -> dict[str, Any]:
    kept = {key: row[key] for key in KEPT}
    if layers:
        kept |= {key: value for key, value in row.items() if key.startswith("gradient/")}
    return kept
