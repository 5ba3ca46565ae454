"""What a trained case is worth once it ships: collapsed, exported, and measured in the engine that runs it."""

from __future__ import annotations

from pathlib import Path

from axonnx.export.calibrate import SAMPLES, calibrate
from axonnx.export.collapsed import Collapsed, CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.write import build_model, write_model
from axonnx.runtime.engines.choose import measuring_engine
from axonnx.runtime.measure.energy import Hardware
from axonnx.runtime.measure.profile import profile
from axonnx.runtime.program.compilation import compile_file
from axonnx.train.shared_records import Job, Record
from axonnx.train.sweeping import trained_run
from axonnx.train.trained import Trained, open_run
from experiments.measures.training import measure as measure_training


def measure(job: Job, runs: Path) -> Record:
    """Accuracy and calibration of the file, its spikes and its energy for one inference."""
    training = measure_training(job, runs)
    run = trained_run(job, runs)
    trained = open_run(str(run))
    collapsed = _collapse(trained, job)
    path = run / f"deployed-{job.digest}.onnx"
    size = write_model(
        build_model(collapsed, make_contract(collapsed, trained.prepared.splits.classes, "sequence")), str(path)
    )
    data = [(x.numpy(), labels.numpy()) for x, labels in trained.data("test", job.options.get("limit"))]
    figures = profile(measuring_engine(compile_file(path)), data, Hardware(), job.seed)
    return {
        **training,
        "accuracy": figures.accuracy,
        "before": training["accuracy"],
        "ece": figures.ece,
        "samples": figures.samples,
        "spikes": figures.spikes_per_inference,
        "energy_nj": figures.energy.parts.operations,
        "bytes": size,
    }


def _collapse(trained: Trained, job: Job) -> Collapsed:
    # On the grid that the tables of docs/results.md were measured on, whatever the default of an export is.
    mode, members = job.options.get("collapse", "mfa"), job.options.get("members", 1)
    settings = CollapseSettings(mode, members, job.seed, weights="float32")
    plain = collapse_network(trained.network, trained.arriving, settings)
    if not job.options.get("calibrate", False):
        return plain
    inputs = [x for x, _ in trained.data("train", SAMPLES)]
    thresholds = calibrate(trained.network, plain.network, inputs, seed=job.seed)
    return collapse_network(trained.network, trained.arriving, settings, thresholds)
