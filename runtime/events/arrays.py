"""Events as numpy arrays, the sensor that they come from, and 16-byte records for pipes and datagrams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field

from axonnx.base.errors import AxonnxError

EVENT: Final = np.dtype([("t", "<i8"), ("x", "<u2"), ("y", "<u2"), ("p", "u1")])
# An event as plain bytes. numpy copies these whole, but copies the fields of an EVENT one by one, ten times slower.
RAW: Final = np.dtype((np.void, EVENT.itemsize))

Events = NDArray[np.void]


def make_events(t: ArrayLike, x: ArrayLike, y: ArrayLike = 0, p: ArrayLike = 0) -> Events:
    """Make an array of events in the given order.

    Nothing is rounded, cut or wrapped. Times may be negative (before a trigger, for example); binning counts such
    events as `before` if time zero is the origin.

    Args:
        t: Times in microseconds, [N].
        x: Columns, [N] or a single number for all events.
        y: Rows, [N] or a single number.
        p: Polarities, [N] or a single number.

    Returns:
        An array of dtype ``EVENT``.

    Raises:
        AxonnxError: If a shape is wrong, or a field cannot hold a value exactly.
    """
    times = np.asarray(t)
    if times.ndim != 1:
        raise AxonnxError(f"events: t has shape {times.shape}; expected one time for each event, [N].")
    events = np.empty(len(times), EVENT)
    for name, values in (("t", times), ("x", x), ("y", y), ("p", p)):
        events[name] = _exact(name, _one_an_event(name, np.asarray(values), len(times)))
    return events


def as_events(values: NDArray[np.void]) -> Events:
    """Take events from any structured array with fields t, x, y and p, as tonic has them."""
    names = values.dtype.names or ()
    times = values["t"]
    return make_events(times, values["x"], values["y"] if "y" in names else 0, values["p"] if "p" in names else 0)


def check_events(events: Events) -> Events:
    """Return the same array after a check that it is one-dimensional and of dtype EVENT."""
    if not isinstance(events, np.ndarray) or events.dtype != EVENT or events.ndim != 1:
        found = f"{getattr(events, 'dtype', type(events).__name__)} of shape {np.shape(events)}"
        raise AxonnxError(f"events: found {found}; expected {EVENT} of shape (N,). Build them with make_events.")
    return events


def is_sorted(events: Events) -> bool:
    """Return whether no event is earlier than the one before it."""
    times = check_events(events)["t"]
    return bool(np.all(times[1:] >= times[:-1]))


def sort_events(events: Events) -> Events:
    """Sort events by time; equal times keep their order. A sorted array is returned as it is."""
    return events if is_sorted(events) else pick_events(events, np.argsort(events["t"], kind="stable"))


def pick_events(events: Events, which: NDArray[np.bool_] | NDArray[np.int64]) -> Events:
    """Return ``events[which]`` for a mask or an array of indices, but faster."""
    picked: Events = events.view(RAW)[which].view(EVENT)
    return picked


def concatenate_events(parts: Iterable[Events]) -> Events:
    """Return ``np.concatenate(parts)``, but faster."""
    whole: Events = np.concatenate([part.view(RAW) for part in parts]).view(EVENT)
    return whole


def _one_an_event(name: str, values: NDArray, count: int) -> NDArray:
    if values.ndim == 0 or values.shape == (count,):
        return values
    raise AxonnxError(
        f"events: {name} has shape {values.shape}, but t has {count} times; expected ({count},) or a single number."
    )


def _exact(name: str, values: NDArray) -> NDArray:
    """Return the values after a check that the field `name` holds them without any change."""
    limits = np.iinfo(EVENT[name])
    if values.dtype.kind == "b":
        return values
    if values.dtype.kind not in "iuf":
        raise AxonnxError(f"events: {name} is of type {values.dtype}; expected integers ({limits.dtype}).")
    if values.dtype.kind == "f":
        _refuse(name, values, ~np.isfinite(values), "a finite number")
        _refuse(name, values, values != np.floor(values), "a whole number (times are in microseconds)")
        # float(2^63 − 1) rounds up to 2^63, which does not fit, so compare with the exact power instead.
        outside = (values < float(limits.min)) | (values >= float(limits.max + 1))
    else:
        outside = (values < limits.min) | (values > limits.max)
    _refuse(name, values, outside, f"{limits.min} to {limits.max}")
    return values


def _refuse(name: str, values: NDArray, wrong: NDArray[np.bool_], expected: str) -> None:
    if not np.any(wrong):
        return
    first = int(np.argmax(np.atleast_1d(wrong)))
    found = np.atleast_1d(values)[first]
    raise AxonnxError(
        f"events: {name}[{first}] is {found}; expected {expected}. {np.count_nonzero(wrong)} of"
        f" {wrong.size} values are wrong: correct or drop them before making events."
    )


class Sensor(BaseModel):
    """The sensor that recorded the events: columns, rows, and 1 or 2 polarities."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = Field(ge=1, le=65536, description="columns")
    height: int = Field(default=1, ge=1, le=65536, description="rows")
    polarities: Literal[1, 2] = Field(default=2, description="1: events have no sign")


RECORD: Final = np.dtype({"names": ["t", "x", "y", "p", "zero"], "formats": ["<i8", "<u2", "<u2", "u1", ("u1", 3)]})
FIELDS = ("t", "x", "y", "p")


def to_records(events: Events) -> bytes:
    """Convert events to bytes.

        bytes  0–7   t, microseconds, int64
        bytes  8–9   x, uint16
        bytes 10–11  y, uint16
        byte  12     p, uint8
        bytes 13–15  zero

    All fields are little-endian; records follow each other without a header. A value other than zero in bytes 13–15
    shows that the reader has lost the beginning of the records.
    """
    records = np.zeros(len(check_events(events)), RECORD)
    for name in FIELDS:
        records[name] = events[name]
    return records.tobytes()


def from_records(data: bytes, where: str, first: int = 0) -> Events:
    """Convert whole records to events; errors count the records from ``first``."""
    assert len(data) % RECORD.itemsize == 0, "whole records"
    records = np.frombuffer(data, RECORD)
    wrong = records["zero"].any(axis=1)
    if wrong.any():
        number = int(np.argmax(wrong))
        raise AxonnxError(
            f"{where}: record {first + number}: bytes 13 to 15 are {records['zero'][number].tolist()}; expected zeros. "
            f"A record has {RECORD.itemsize} bytes: t int64, x uint16, y uint16, p uint8, three zeros, little-endian"
        )
    events = np.empty(len(records), EVENT)
    for name in FIELDS:
        events[name] = records[name]
    return events
