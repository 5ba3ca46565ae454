"""What the posterior is worth on people who are in no training part: loss, risk and sets of one way to ship it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.export.certainty import PART, fitted_scale
from axonnx.export.collapse.network import Mode
from axonnx.export.exporting import export_run
from axonnx.loading import samples_for
from axonnx.model import Model, load
from axonnx.runtime.measure.evaluation import Answers, answers, evaluate_certainty, made_unknown
from axonnx.runtime.measure.metrics import metrics_of
from axonnx.runtime.measure.samples import Samples
from axonnx.runtime.measure.uncertainty import MADE
from axonnx.runtime.streams.probabilities import softmax
from axonnx.train.shared_records import Job, Record
from axonnx.train.sweeping import trained_run

COVERAGE = 0.9  # that the sets state
SIGNAL = "maximum probability"  # whose risk–coverage curve is told; chosen before anything was measured
MODES: dict[str, Mode] = {"mean-field": "mfa", "ensemble": "sampled", "passes": "stochastic"}


def measure(job: Job, runs: Path) -> Record:
    """Export a run in one way (``options.predict``), fit a temperature on its validation part, and test it."""
    run, how = trained_run(job, runs), job.options["predict"]
    number = job.options["members"] if how != "mean-field" else 1
    path = run / f"worth-{job.digest}.onnx"
    members = number if how == "ensemble" else 1
    export_run(run, path, mode=MODES[how], members=members, seed=job.seed, passes=1, limit=20, coverage=COVERAGE)
    model, passes = load(path), number if how == "passes" else 1
    validation, test = (samples_for(str(run), model.contract, part) for part in (PART, "test"))
    found = evaluate_certainty(model, test, _unknown(test, job.seed), job.seed, passes)
    worth = found.uncertainty
    assert worth is not None
    assert worth.sets is not None
    raw, truth = _raw(model, test, job.seed, passes)
    scale, logarithms = _scale(model, validation, job.seed, passes), np.log(np.maximum(raw, 1e-300))
    tempered = softmax(scale * logarithms)
    figures, plain = metrics_of(tempered, truth), metrics_of(raw, truth)
    signal = worth.signals[SIGNAL]
    other = worth.signals.get("mutual information")
    return {
        "settings": job.settings,
        "run": run.name,
        "accuracy": figures.accuracy,
        "nll": figures.nll,
        "raw_nll": plain.nll,
        "ece": figures.ece,
        "samples": figures.samples,
        "aurc": signal.aurc,
        "errors": signal.errors,
        "errors_mutual_information": None if other is None else other.errors,
        "unknown": worth.signals["entropy"].unknown,
        "unknown_mutual_information": {} if other is None else other.unknown,
        "risk": {f"{share:g}": value for share, value in zip(worth.coverages, signal.risk, strict=True)},
        "held": worth.sets.held[-1],
        "least_held": min(worth.sets.held),
        "size": worth.sets.size[-1],
    }


def _unknown(test: Samples, seed: int) -> dict[str, Samples]:
    return {kind: made_unknown(test, kind, seed) for kind in MADE}


def _raw(model: Model, data: Samples, seed: int, passes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return probabilities without a temperature, and labels."""
    found: Answers = answers(model, data, 0, data.count, 0, seed, passes)
    return np.array(found.untempered), np.array(found.labels)


def _scale(model: Model, validation: Samples, seed: int, passes: int) -> float:
    """Fit the temperature on as many passes as are used."""
    probabilities, labels = _raw(model, validation, seed, passes)
    return fitted_scale(np.log(np.maximum(probabilities, 1e-300)), labels) or 1.0
