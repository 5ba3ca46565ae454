"""Which samples are looked at where not all are: the same in verification, profile, export and report."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axonnx.base.errors import AxonnxError

Indices = NDArray[np.int64]


def choose_samples(labels: ArrayLike, count: int | None, seed: int = 0) -> Indices:
    """Rising indices of ``count`` samples, or of all; every class gives its share, rounded.

    The choice follows from labels, count and seed alone, on every machine. A larger count holds the smaller choice.
    """
    given = np.asarray(labels)
    if count is not None and count < 1:
        raise AxonnxError(f"a choice of {count} samples; expected 1 or more")
    if count is None or count >= len(given):
        return np.arange(len(given))
    return np.sort(_stratified_order(given, seed)[:count])


def _stratified_order(labels: NDArray[np.generic], seed: int) -> Indices:
    """All samples so that every beginning of the list is stratified.

    Sample k of the n of class c stands at (k + u)/n, with u = (c + ½)/classes: systematic sampling, class by class.
    Samples, and the classes by their first ones, come in the order of a hash of their numbers.
    """
    hashed = np.array([hashlib.sha256(f"{seed}:{number}".encode()).hexdigest() for number in range(len(labels))])
    ranked = [_ranked(np.flatnonzero(labels == label), hashed) for label in np.unique(labels)]
    ranked.sort(key=lambda members: hashed[members[0]])
    place = np.zeros(len(labels))
    for c, members in enumerate(ranked):
        place[members] = (np.arange(len(members)) + (c + 0.5) / len(ranked)) / len(members)
    return np.argsort(place, kind="stable")


def _ranked(members: Indices, hashed: NDArray[np.str_]) -> Indices:
    return members[np.argsort(hashed[members], kind="stable")]
