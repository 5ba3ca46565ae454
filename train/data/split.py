"""Which samples are held out: fixed by a hash of their names, the same on every machine and numpy version."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError


def stratified_split(
    labels: NDArray[np.int64], names: Sequence[object], held_out: int, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return indices kept and held out, ascending; every class gives its share of `held_out` and keeps one."""
    counts = np.bincount(labels)
    room = len(labels) - np.count_nonzero(counts)
    if not 0 < held_out <= room:
        raise AxonnxError(
            f"split: cannot hold out {held_out} of {len(labels)} samples; each of {np.count_nonzero(counts)} classes "
            f"keeps one to learn from, so at the most {room} can be held out. Add recordings (windows of one recording "
            f"stay together), change the share, or give the parts yourself, as train and test"
        )
    quotas = _quotas(counts, held_out)
    ranks = np.array([_rank(seed, name) for name in names])
    chosen = [_first(np.flatnonzero(labels == label), ranks, quota) for label, quota in enumerate(quotas)]
    out = np.sort(np.concatenate(chosen))
    return np.setdiff1d(np.arange(len(labels)), out), out


def split_units(
    labels: NDArray[np.int64], units: NDArray[np.int64], names: Sequence[object], share: float, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return samples kept and samples held out, so that no unit (a recording, a person) is in both.

    `units` [N] are 0 … U − 1, `names` [U] say which they are. Where every unit is of one class, every class gives its
    share of units; else units are taken in the order of a hash while every class keeps a sample.
    """
    if not 0 < share < 1:
        raise AxonnxError(f"split: a share of {share} is held out; expected one between 0 and 1")
    first = np.unique(units, return_index=True)[1]
    if np.array_equal(labels[first][units], labels):
        out = stratified_split(labels[first], names, max(1, round(share * len(first))), seed)[1].tolist()
    else:
        out = _mixed(labels, units, names, share, seed)
    held = np.isin(units, out)
    return np.flatnonzero(~held), np.flatnonzero(held)


def _mixed(
    labels: NDArray[np.int64], units: NDArray[np.int64], names: Sequence[object], share: float, seed: int
) -> list[int]:
    left, room = np.bincount(labels), share * len(labels)
    out: list[int] = []
    for unit in np.argsort([_rank(seed, name) for name in names], kind="stable"):
        mine = np.bincount(labels[units == unit], minlength=len(left))
        if (mine.sum() <= room or not out) and np.all((left - mine > 0) | (mine == 0)):
            left, room = left - mine, room - mine.sum()
            out.append(int(unit))
    if not out:
        raise AxonnxError(
            f"split: none of {len(names)} recordings (or people) can be held out, for each has all samples of some "
            f"class. Record more of them, or give the parts yourself, as train and test"
        )
    return out


def _quotas(counts: NDArray[np.int64], held_out: int) -> NDArray[np.int64]:
    """Largest remainders: shares rounded down, and what is missing given, one by one, to the class that lost most.

    No class gives its last sample.
    """
    exact, room = counts * held_out / counts.sum(), np.maximum(counts - 1, 0)
    quotas: NDArray[np.int64] = np.minimum(np.floor(exact).astype(np.int64), room)
    while quotas.sum() < held_out:
        quotas[np.argmin(np.where(quotas < room, quotas - exact, np.inf))] += 1
    return quotas


def _rank(seed: int, name: object) -> str:
    return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()


def _first(indices: NDArray[np.int64], ranks: NDArray[np.str_], quota: int) -> NDArray[np.int64]:
    return indices[np.argsort(ranks[indices], kind="stable")[:quota]]
