"""Recordings blended with others of their class: what two speakers of a word have in common is that word.

A blended recording has each event of its own with probability ½, and each event of another recording of its class with
probability ½, moved as a whole so that both have the same middle in time and place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.events.arrays import concatenate_events, pick_events
from axonnx.runtime.events.sensor import Sensor
from axonnx.train.data.recordings import Recordings, join_events

AXES = ("t", "x", "y")


def blended(
    data: Recordings, indices: NDArray[np.int64], share: float, generator: np.random.Generator
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Events and offsets of the recordings with these ``indices``; each is blended with probability ``share``."""
    chosen = generator.random(len(indices)) < share
    partners = _partners(data.labels, indices, generator)
    return join_events(
        blend(data[int(own)], data[int(other)], data.sensor, generator) if mixed else data[int(own)]
        for own, other, mixed in zip(indices, partners, chosen, strict=True)
    )


def blend(
    own: NDArray[np.void], other: NDArray[np.void], sensor: Sensor, generator: np.random.Generator
) -> NDArray[np.void]:
    """Half of the events of both, by time; the others' are moved onto the middle of the own."""
    kept, added = (pick_events(events, generator.random(len(events)) < 0.5) for events in (own, other))
    added = _moved(added, _middle(kept) - _middle(added), sensor)
    joined = concatenate_events([kept, added])
    return pick_events(joined, np.argsort(joined["t"], kind="stable"))


def _partners(
    labels: NDArray[np.int64], indices: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.int64]:
    """For each recording one of its class, drawn evenly; it may be itself."""
    order = np.argsort(labels, kind="stable")
    first, last = (np.searchsorted(labels[order], labels[indices], side) for side in ("left", "right"))
    return order[generator.integers(first, last)]


def _middle(events: NDArray[np.void]) -> NDArray[np.float64]:
    """Mean time, column and row."""
    return np.array([events[axis].mean() if len(events) else 0.0 for axis in AXES])


def _moved(events: NDArray[np.void], by: NDArray[np.float64], sensor: Sensor) -> NDArray[np.void]:
    """Events after a move; those that leave the sensor, or begin before the recording, are gone."""
    places = [events[axis].astype(np.int64) + round(step) for axis, step in zip(AXES, by.tolist(), strict=True)]
    limits = (np.iinfo(np.int64).max, sensor.width, sensor.height)
    inside = np.logical_and.reduce([(place >= 0) & (place < end) for place, end in zip(places, limits, strict=True)])
    out = pick_events(events, inside)
    for axis, place in zip(AXES, places, strict=True):
        out[axis] = place[inside]
    return out
