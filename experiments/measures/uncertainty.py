"""Does a network know what it does not know? Calibration, rejection, and classes it has never seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.export.ways import Sampled
from axonnx.models import MEAN_FIELD, Sample
from axonnx.runtime.measure.metrics import metrics_of
from axonnx.runtime.streams.probabilities import entropy, mutual_information
from axonnx.train.build import prepare
from axonnx.train.shared_records import Job, Record
from axonnx.train.sweeping import trained_run
from axonnx.train.trained import Trained, open_run

Floats = NDArray[np.float64]
Passes = Callable[[Tensor], list[Tensor]]  # input -> logits of every pass or member
COVERAGES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5)


def measure(job: Job, runs: Path) -> Record:
    """Figures of one way to predict (``options.predict``) on known classes, and how it tells unknown ones apart."""
    run = trained_run(job, runs)
    trained = open_run(str(run))
    passes = _passes(trained, job)
    known, labels = _probabilities(passes, trained.data("test", None))
    unknown, _ = _probabilities(passes, _unknown(trained, job.options["unknown"]).data("test", None))
    found = metrics_of(known.mean(0), labels)
    right = known.mean(0).argmax(-1) == labels
    return {
        "settings": job.settings,
        "run": run.name,
        "accuracy": found.accuracy,
        "nll": found.nll,
        "ece": found.ece,
        "brier": found.brier,
        "samples": len(labels),
        "unknown_samples": unknown.shape[1],
        "rejection": {f"{share:g}": _accuracy_at(entropy(known.mean(0)), right, share) for share in COVERAGES},
        "auroc_entropy": _auroc(entropy(known.mean(0)), entropy(unknown.mean(0))),
        "auroc_mutual_information": _auroc(mutual_information(known), mutual_information(unknown)),
    }


def _auroc(known: Floats, unknown: Floats) -> float | None:
    """How often an unknown sample scores above a known one; None where all scores are the same."""
    scores = np.concatenate([known, unknown])
    if np.ptp(scores) < 1e-12:
        return None
    return float(roc_auc_score(np.repeat([0, 1], [len(known), len(unknown)]), scores))


def _accuracy_at(uncertain: Floats, right: NDArray[np.bool_], coverage: float) -> float:
    """Accuracy on the share of samples that the network is surest of."""
    kept = np.argsort(uncertain, kind="stable")[: max(1, round(coverage * len(right)))]
    return float(right[kept].mean())


def _passes(trained: Trained, job: Job) -> Passes:
    """Return the logits of every pass or member, for one way to predict."""
    how, number = job.options["predict"], job.options.get("passes", 8)
    if how == "mean-field":
        return lambda x: [trained.network(x, MEAN_FIELD).logits]
    if how == "bayesian":
        noise = Sample(torch.Generator().manual_seed(job.seed))
        return lambda x: [trained.network(x, noise).logits for _ in range(number)]
    if how == "ensemble":
        settings = CollapseSettings("sampled", number, job.seed, weights="float32")  # the grid of docs/results.md
        drawn = collapse_network(trained.network, trained.arriving, settings)
        return lambda x: [member.network(x).logits for member in drawn.members]
    raise AxonnxError(f"{job.case}: options.predict is {how!r}; known are mean-field, bayesian, ensemble")


@torch.no_grad()
def _probabilities(passes: Passes, data: Sampled) -> tuple[Floats, NDArray[np.int64]]:
    """Return probabilities [passes, N, classes] and the labels."""
    found = [torch.stack([torch.softmax(logits.double(), -1) for logits in passes(x)]).numpy() for x, _ in data]
    return np.concatenate(found, 1), np.concatenate([labels.numpy() for _, labels in data])


def _unknown(trained: Trained, classes: list[int]) -> Trained:
    """Return the same data set with classes that the network was not trained on."""
    config = trained.config.model_copy(update={"data": trained.config.data.model_copy(update={"classes": classes})})
    return replace(trained, config=config, prepared=prepare(config.data))
