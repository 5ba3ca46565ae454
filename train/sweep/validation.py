"""A trained run's figures on its validation part, and on no other."""

from __future__ import annotations

import json
from pathlib import Path

from axonnx.train.config.read import check_config
from axonnx.train.output.checkpoint import INDEX
from axonnx.train.output.run_folder import RunFolder
from axonnx.train.run import train_run
from axonnx.train.sweep.store import Job, Record, digest_of

FIGURES = ("accuracy", "nll", "ece", "brier", "samples")


def trained_run(job: Job, runs: Path) -> Path:
    """Return the folder of the run with the job's settings; an interrupted run is resumed, to the same bits."""
    config = check_config(job.settings, job.case)
    folder = RunFolder(runs / digest_of(job.settings))
    if not (folder.path / "metrics.json").is_file():
        begun = (folder.checkpoint / INDEX).exists()
        train_run(config, folder.path, resume=begun, overwrite=not begun)
    return folder.path


def measure(job: Job, runs: Path) -> Record:
    """Mean-field figures: of the deterministic network, the one that ships."""
    path = trained_run(job, runs)
    metrics = json.loads((path / "metrics.json").read_text("utf-8"))
    return {"run": path.name, **{key: metrics["validation"][key] for key in FIGURES}}
