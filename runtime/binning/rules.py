"""The rules of binning for recordings and streams: bin, cell, outside events and clipping."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.events.arrays import Events


@dataclass(frozen=True)
class Outside:
    """Events that are in no frame; each is counted once, for the first reason that applies in this order."""

    off_sensor: int = 0  # x or y beyond the sensor
    bad_polarity: int = 0  # p beyond the sensor's polarities
    before: int = 0  # earlier than the origin
    after: int = 0  # later than the last bin (a stream has a last bin only if it is a single window)
    late: int = 0  # its bin was already complete (only in a stream whose events are out of order)

    @property
    def total(self) -> int:
        """Number of events that are in no frame."""
        return sum(self.as_dict().values())

    def as_dict(self) -> dict[str, int]:
        """Return the counts by reason."""
        return {reason.name: getattr(self, reason.name) for reason in fields(self)}

    def __add__(self, other: "Outside") -> "Outside":
        mine, theirs = self.as_dict(), other.as_dict()
        return Outside(**{reason: mine[reason] + theirs[reason] for reason in mine})


def bin_index(
    times: NDArray[np.int64], origin: NDArray[np.int64], bin_us: int
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return floor((t − origin) / bin_us), and whether t < origin (then the index is meaningless).

    The difference of two int64 needs 64 unsigned bits: subtraction modulo 2^64 gives it exactly for t ≥ origin.
    """
    times = np.ascontiguousarray(times)
    elapsed = times.view(np.uint64) - origin.view(np.uint64)
    return elapsed // np.uint64(bin_us), times < origin


def cells_of(events: Events, binning: Binning) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return each event's cell, whether it is off the sensor, and whether only its polarity is wrong."""
    x, y, p = (np.ascontiguousarray(events[name]) for name in "xyp")
    off_sensor = (x >= binning.sensor.width) | (y >= binning.sensor.height)
    bad_polarity = (p >= binning.sensor.polarities) & ~off_sensor
    cell = x.astype(np.int64)
    if binning.downsample > 1:
        cell //= binning.downsample
    if binning.height > 1:
        cell += y.astype(np.int64) // binning.row_step * binning.width
    if binning.channels > 1:
        cell += p.astype(np.int64) * (binning.height * binning.width)
    return cell, off_sensor, bad_polarity


def count_outside(
    reasons: dict[str, NDArray[np.bool_]], wrong: NDArray[np.bool_], edges: NDArray[np.int64]
) -> tuple[Outside, ...]:
    """Count the outside events of each recording by the first reason in the given order."""
    if not wrong.any():
        return (Outside(),) * (len(edges) - 1)
    left = wrong.copy()
    counts = {}
    for reason, mask in reasons.items():
        counts[reason] = np.diff(true_before(mask & left, edges))
        left &= ~mask
    return tuple(
        Outside(**dict(zip(counts, map(int, each), strict=True))) for each in zip(*counts.values(), strict=True)
    )


def true_before(mask: NDArray[np.bool_], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of true values before each edge."""
    return np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])[edges]


def clip_counts(counts: NDArray[np.int64], limit: int) -> tuple[NDArray[np.uint8], int]:
    """Return counts up to the limit, and the number of events that were cut off."""
    if counts.max(initial=0) <= limit:
        return counts.astype(np.uint8), 0
    clipped = np.minimum(counts, limit)
    return clipped.astype(np.uint8), int(counts.sum() - clipped.sum())
