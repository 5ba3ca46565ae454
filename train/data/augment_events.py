"""Random changes to event recordings: by the native core, or by its twin in numpy, to the same bits.

A blended recording has each event of its own with probability ½, and each event of another recording of its class with
probability ½, moved as a whole so that both have the same middle in time and place: what two speakers of a word have in
common is that word.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.native import address_of, find_function
from axonnx.runtime.events.arrays import EVENT, RAW, Sensor, concatenate_events, pick_events
from axonnx.runtime.program.layer_noise import coefficients, to_normal
from axonnx.train.data import draws
from axonnx.train.data.augment import Augmentation
from axonnx.train.data.draws import OTHER, OWN, TONE_CORNERS, Draws, to_unit
from axonnx.train.data.recordings import Recordings, join_events

Events = NDArray[np.void]
NOTHING: Events = np.zeros(0, EVENT)
LAST = 2**62  # µs: a time beyond it, which only a stretched one can be, stays there


class AugmentedEvents(NamedTuple):
    """A batch of recordings, and how many events of each were moved off the sensor and are gone.

    The earliest event of a recording comes first, the others in no order.
    """

    events: Events
    offsets: NDArray[np.int64]
    off_sensor: NDArray[np.int64]


class _Change(ctypes.Structure):
    """``change`` of native/events.c, which says what each field means. A test compares the two lists."""

    _fields_ = tuple(
        (name, kind)
        for kind, names in (
            (ctypes.c_void_p, "own other columns rows copies table"),
            (ctypes.c_int64, "own_count other_count width height keep move_t move_x move_y"),
            (ctypes.c_double, "stretch time_jitter jitter_x"),
            (ctypes.c_uint64, "seed"),
            (ctypes.c_int64, "epoch sample off_sensor"),
        )
        for name in names.split()
    )


class _Plan(NamedTuple):
    """What happens to one recording, in numbers."""

    own: Events
    other: Events  # of the recording that it is blended with
    move: tuple[int, int, int]  # of the other's events in t, x, y
    columns: NDArray[np.int64]  # where each column goes, and each row; also off the sensor
    rows: NDArray[np.int64]
    copies: NDArray[np.float64] | None  # how often an event of each new column occurs in the mean; None: once
    keep: int  # of 2^32 events
    stretch: float

    @property
    def most(self) -> int:
        """Events that it can have afterwards."""
        copies = 1 if self.copies is None else int(self.copies.max()) + 1
        return copies * (len(self.own) + len(self.other))


def augment_events(
    data: Recordings, indices: NDArray[np.int64], how: Augmentation, seed: int, epoch: int, until: int | None = None
) -> AugmentedEvents:
    """Change the recordings with these ``indices``, each in its own way; those of ``data`` stay as they are.

    Of recordings that begin anywhere, events later than ``until`` after the stretch are left out: no bin reaches them.
    """
    how.check("events")
    drawn = Draws(seed, epoch, indices)
    native = find_function("change", ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    made, off_sensor = [], np.zeros(len(indices), np.int64)
    plans = _plans(data, indices, how, drawn, until)
    # One for all recordings: memory that the system just gave costs as much as what is written into it.
    room = np.empty(max((plan.most for plan in plans), default=0) if native else 0, EVENT)
    for at, plan in enumerate(plans):
        if native is None:
            events, off_sensor[at] = _plain(plan, data.sensor, how, drawn, at)
        else:
            events, off_sensor[at] = _native(native, plan, data.sensor, how, drawn, at, room)
        made.append(events)
    return AugmentedEvents(*join_events(made), off_sensor)


def _plans(
    data: Recordings, indices: NDArray[np.int64], how: Augmentation, drawn: Draws, until: int | None
) -> list[_Plan]:
    sensor = data.sensor
    larger, mirrored = 1 + drawn.uniform(draws.ZOOM, how.zoom), how.flip & (drawn.unit[:, draws.FLIP] < 0.5)
    upright = np.zeros(len(indices), np.bool_)
    columns = draws.places(sensor.width, mirrored, larger, drawn.whole(draws.SHIFT_X, how.shift_x))
    rows = draws.places(sensor.height, upright, larger, drawn.whole(draws.SHIFT_Y, how.shift_y))
    blended = drawn.unit[:, draws.BLEND] < how.blend
    keep = np.rint((1 - how.drop * drawn.unit[:, draws.DROP]) * np.where(blended, 0.5, 1.0) * 2**32).astype(np.int64)
    stretch, copies = 1 + drawn.uniform(draws.STRETCH, how.time_stretch), _copies(drawn, sensor, how)
    partners = _partners(data.labels, indices, drawn) if how.blend else indices
    found = []
    for at, (index, partner) in enumerate(zip(indices.tolist(), partners.tolist(), strict=True)):
        other, move, own = NOTHING, (0, 0, 0), data[index]
        if how.start:
            reached = None if until is None else int(until / stretch[at]) + 1
            own = _from(own, how.start * float(drawn.unit[at, draws.START]), reached)
        if blended[at]:
            t, x, y = np.rint(data.middle(index) - data.middle(partner)).astype(np.int64).tolist()
            other, move = data[partner], (t, x, y)
        factors = None if copies is None else copies[at]
        place = columns[at], rows[at], factors, int(keep[at]), float(stretch[at])
        found.append(_Plan(own, other, move, *place))
    return found


def _from(events: Events, share: float, until: int | None) -> Events:
    """Leave out the first events, in this share of a recording's time, and those that no bin can reach."""
    if not len(events):
        return events
    first, last = int(events["t"][0]), int(events["t"][-1])
    begin = first + int(share * (last - first))
    stop = last + 1 if until is None else begin + until
    kept = events[slice(*np.searchsorted(events["t"], (begin, stop)))].copy()
    kept["t"] -= begin
    return kept


def _copies(drawn: Draws, sensor: Sensor, how: Augmentation) -> NDArray[np.float64] | None:
    """How often an event of each column occurs in the mean, f·g(x).

    ln f is drawn between ±`gain` for each recording; ln g(x) runs straight between corners drawn between ±`tone`.
    """
    if not how.gain and not how.tone:
        return None
    corners = drawn.uniform(slice(draws.TONE, draws.TONE + TONE_CORNERS), how.tone)
    place = np.arange(sensor.width) * (TONE_CORNERS - 1) / max(sensor.width - 1, 1)
    left = np.minimum(place.astype(np.int64), TONE_CORNERS - 2)
    tones = corners[:, left] + (corners[:, left + 1] - corners[:, left]) * (place - left)
    return np.ascontiguousarray(np.exp(drawn.uniform(draws.GAIN, how.gain)[:, None] + tones))


def _partners(labels: NDArray[np.int64], indices: NDArray[np.int64], drawn: Draws) -> NDArray[np.int64]:
    """For each recording one of its class, drawn evenly; it may be itself."""
    order = np.argsort(labels, kind="stable")
    first, last = (np.searchsorted(labels[order], labels[indices], side) for side in ("left", "right"))
    return order[first + np.floor(drawn.unit[:, draws.PARTNER] * (last - first)).astype(np.int64)]


def _native(
    native: Any, plan: _Plan, sensor: Sensor, how: Augmentation, drawn: Draws, at: int, room: Events
) -> tuple[Events, int]:
    """Change events in the core, which leaves Python to other threads, and count those that fell off the sensor."""
    own, other = np.ascontiguousarray(plan.own), np.ascontiguousarray(plan.other)
    change = _Change(
        own=address_of(own),
        other=address_of(other),
        columns=address_of(plan.columns),
        rows=address_of(plan.rows),
        copies=None if plan.copies is None else address_of(plan.copies),
        table=coefficients().ctypes.data,
        own_count=len(own),
        other_count=len(other),
        width=sensor.width,
        height=sensor.height,
        keep=plan.keep,
        move_t=plan.move[0],
        move_x=plan.move[1],
        move_y=plan.move[2],
        stretch=plan.stretch,
        time_jitter=how.time_jitter_us,
        jitter_x=how.jitter_x,
        seed=drawn.seed,
        epoch=drawn.epoch,
        sample=int(drawn.samples[at]),
    )
    found = native(ctypes.addressof(change), address_of(room))
    return room[:found].view(RAW).copy().view(EVENT), change.off_sensor


def _plain(plan: _Plan, sensor: Sensor, how: Augmentation, drawn: Draws, at: int) -> tuple[Events, int]:
    """Do the same in numpy."""
    parts = [
        _part(events, move, stream, plan, sensor, how, drawn, at)
        for events, move, stream in ((plan.own, (0, 0, 0), OWN), (plan.other, plan.move, OTHER))
    ]
    made = concatenate_events([events for events, _ in parts])
    if len(made):
        first = int(np.argmin(made["t"]))
        order = np.arange(len(made))
        order[[0, first]] = first, 0
        made = pick_events(made, order)
    return made, sum(lost for _, lost in parts)


def _part(
    events: Events,
    move: tuple[int, int, int],
    stream: int,
    plan: _Plan,
    sensor: Sensor,
    how: Augmentation,
    drawn: Draws,
    at: int,
) -> tuple[Events, int]:
    words = drawn.words(at, stream, len(events))
    t, x, y = (events[axis].astype(np.int64) + step for axis, step in zip("txy", move, strict=True))
    chosen = np.flatnonzero((words[0] < plan.keep) & _inside(x, y, sensor) & (t >= 0))
    t, x, y = t[chosen], plan.columns[x[chosen]], plan.rows[y[chosen]]
    _, again, for_time, for_column = (word[chosen] for word in words)
    if how.jitter_x:
        x = x + np.rint(how.jitter_x * to_normal(for_column).astype(np.float64)).astype(np.int64)
    inside = _inside(x, y, sensor)
    copies = np.ones(len(t), np.int64)
    if plan.copies is not None:
        copies = (plan.copies[np.clip(x, 0, sensor.width - 1)] + to_unit(again)).astype(np.int64)
    if plan.stretch != 1 or how.time_jitter_us:
        moved = t * plan.stretch
        if how.time_jitter_us:
            moved = moved + how.time_jitter_us * to_normal(for_time).astype(np.float64)
        t = np.clip(np.rint(moved), 0, LAST).astype(np.int64)
    kept = np.repeat(np.arange(len(t)), copies * inside)
    out = np.empty(len(kept), EVENT)
    out["t"], out["x"], out["y"], out["p"] = t[kept], x[kept], y[kept], events["p"][chosen[kept]]
    return out, int(np.count_nonzero(~inside))


def _inside(x: NDArray[np.int64], y: NDArray[np.int64], sensor: Sensor) -> NDArray[np.bool_]:
    return (x >= 0) & (x < sensor.width) & (y >= 0) & (y < sensor.height)
