"""How sure a network may be called: a temperature, and sets of possible classes with a stated coverage.

Outputs of an imported network are rates between 0 and 1, or sums of them, and those of any network may be too sure. So
a factor, the inverse of a temperature, is fitted on labelled samples: it minimises the negative log-likelihood of
softmax(factor · outputs).

Sets are split-conformal. The score of a sample is how far its true class is behind the best one; the margin is the
⌈(n + 1) · coverage⌉-th smallest score of n samples. A new sample that comes as these did has its true class within the
margin with at least that probability, whatever the network is. Every time step has its own margin.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.choose import make_engine
from axonnx.runtime.format.contract import CertaintyContract
from axonnx.runtime.format.model_file import read_model_file
from axonnx.runtime.measure.uncertainty import logits_by_step
from axonnx.runtime.program.compilation import Compilation
from axonnx.runtime.program.step_graph import step_graph
from axonnx.runtime.streams.probabilities import behind_the_best, joint_logits, softmax
from axonnx.train.trained import Trained
from axonnx.train.training_witness import fingerprints_of

Doubles = NDArray[np.float64]
BITS = 8  # of the factor of spikes, so that sums over time stay exact
HALVINGS = 80
RANGE = 24  # factors are between 2^-24 and 2^24
PART = "validation"


def needs_validation(trained: Trained, coverage: float) -> None:
    """Refuse a coverage that nothing can be fitted for, before anything is measured."""
    if not 0 < coverage < 1:
        raise AxonnxError(f"coverage is {coverage}; expected a share between 0 and 1, e.g. 0.9")
    if trained.units is not None:
        raise AxonnxError("coverage is about sets of classes; this network gives real values. Leave it out")
    if PART not in trained.parts:
        raise AxonnxError(
            f"{trained.folder}: coverage {coverage:g} is fitted on a validation part, and the run has none. Train with "
            f"data.validation.share 0.15 (data.validation.by group keeps people together)"
        )
    rank_of(coverage, len(trained.prepared.splits.parts[PART]))


def rank_of(coverage: float, samples: int) -> int:
    """Return ⌈(n + 1) · coverage⌉, the place of the margin among n ordered scores."""
    rank = math.ceil((samples + 1) * coverage)
    if rank > samples:
        least = math.ceil(coverage / (1 - coverage))
        raise AxonnxError(
            f"coverage {coverage:g} cannot be stated from {samples} validation samples; expected {least} or more. Set "
            f"more aside (data.validation.share), or state less"
        )
    return rank


def fit_certainty(path: Path, trained: Trained, coverage: float) -> CertaintyContract:
    """Fit temperature and margins of the file at ``path``, as it runs, on the validation part of its run."""
    file = read_model_file(path)
    graph = step_graph(file)
    engine = make_engine("auto", Compilation(file, graph).program(), graph, 1)
    found, labels, first = [], [], 0
    for x, true in trained.data(PART, None):
        found.append(logits_by_step(engine, x.numpy(), range(first, first + len(true))))
        labels.append(true.numpy())
        first += len(true)
    logits, truth = np.concatenate(found, 2), np.concatenate(labels)  # [T, members, N, classes]
    rank = rank_of(coverage, len(truth))
    scores = [behind_the_best(step)[np.arange(len(truth)), truth] for step in logits]
    return CertaintyContract(
        scale=fitted_scale(joint_logits(logits[-1]).astype(np.float64), truth) or 1.0,
        coverage=coverage,
        margins=tuple(float(np.sort(score)[rank - 1]) for score in scores),
        samples=len(truth),
        digest=digest_of(fingerprints_of(trained.prepared, trained.config, PART)),
    )


def digest_of(fingerprints: NDArray[np.int64]) -> str:
    """Return the sha256 of fingerprints in ascending order."""
    return hashlib.sha256(np.sort(fingerprints).astype("<i8").tobytes()).hexdigest()


def fitted_scale(outputs: Doubles, labels: NDArray[np.int64]) -> float | None:
    """Return the factor of ``outputs`` [N, classes] with the smallest negative log-likelihood of ``labels``.

    The labels count as wrong with probability 1/(N + 2), so that the factor is finite even if all decisions are right.

    Returns:
        The factor, or None if outputs do not grow with the probability of their class.
    """
    doubt = 1.0 / (len(labels) + 2)
    target = (1.0 - doubt) * outputs[np.arange(len(labels)), labels] + doubt * outputs.mean(-1)

    def slope(scale: float) -> float:
        """Return the derivative of the loss, which grows with the scale."""
        expected = (softmax(scale * outputs) * outputs).sum(-1)
        return float((expected - target).mean())

    low, high = -float(RANGE), float(RANGE)
    if slope(2.0**low) >= 0.0:
        return None
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(2.0**middle) < 0.0 else (low, middle)
    return float(2.0**low)


def exact_scale(scale: float, spikes: bool) -> float:
    """Return the nearest factor that rounds nothing: of few bits for spikes, a power of two for a membrane."""
    if not spikes:
        return float(2.0 ** round(math.log2(scale)))
    mantissa, exponent = math.frexp(scale)
    return math.ldexp(round(math.ldexp(mantissa, BITS)), exponent - BITS)
