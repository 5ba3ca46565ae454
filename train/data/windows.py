"""Long recordings cut into windows: by time, by number of events, by a label file."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator


class Windows(BaseModel):
    """How recordings are cut: pieces of a label file first, then windows of time or events. Off unless asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    ms: PositiveFloat | None = Field(default=None, description="cut recordings into windows of this many milliseconds")
    events: PositiveInt | None = Field(default=None, description="cut recordings into windows of this many events")
    overlap: float = Field(default=0.0, ge=0, lt=1, description="share of a window that the next one repeats")
    least: float = Field(
        default=0.5, gt=0, le=1, description="a window that a recording's end cuts off is kept from this share of it on"
    )
    labels: str | None = Field(
        default=None,
        description="csv in the data's folder with columns file,start,end,label (µs on the recording's clock), or one "
        "beside each recording: '*_labels.csv', where * is the recording's name",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.ms is not None and self.events is not None:
            raise ValueError("windows are of so many ms or of so many events: give one of the two")
        if self.overlap and self.ms is None and self.events is None:
            raise ValueError("overlap is of windows: give ms or events with it")
        return self

    @property
    def is_off(self) -> bool:
        """Whether recordings stay whole."""
        return self.ms is None and self.events is None and self.labels is None

    @property
    def duration_us(self) -> int | None:
        """Length of a window, where it is of time."""
        return None if self.ms is None else max(1, round(1000 * self.ms))


class Window(NamedTuple):
    """Events first … last − 1 of a recording, which are those of start … stop − 1 µs on its clock."""

    first: int
    last: int
    start: int
    stop: int


def windows_of(times: NDArray[np.int64], piece: Window, how: Windows) -> Iterator[Window]:
    """Return the windows of a piece of a recording; `times` of the recording never fall. Empty ones are left out."""
    if how.duration_us is not None:
        yield from _by_time(times, piece, how, how.duration_us)
    elif how.events is not None:
        yield from _by_events(times, piece, how, how.events)
    elif piece.last > piece.first:
        yield piece


def _by_time(times: NDArray[np.int64], piece: Window, how: Windows, length: int) -> Iterator[Window]:
    """[start + k·step, + length), as far as `least` of it lies in the piece; silence is passed over at once."""
    step, start = _step(length, how), piece.start
    end = piece.stop - ceil(how.least * length)
    while start <= end:
        stop = min(start + length, piece.stop)
        first, last = (int(edge) for edge in np.searchsorted(times, (start, stop)))
        if last > first:
            yield Window(first, last, start, stop)
        elif first >= piece.last:
            return
        following = int(times[first]) if last == first else start
        start += max(1, (following - length - start) // step + 1) * step


def _by_events(times: NDArray[np.int64], piece: Window, how: Windows, length: int) -> Iterator[Window]:
    """Events k·step … k·step + length − 1, as far as `least` of them are there; those of one µs stay together."""
    step, room = _step(length, how), piece.last - piece.first - ceil(how.least * length)
    for begin in range(piece.first, piece.first + room + 1, step):
        first, last = (_edge(times, edge, piece.last) for edge in (begin, begin + length))
        if last > first:
            yield Window(first, last, int(times[first]), int(times[last - 1]) + 1)


def _edge(times: NDArray[np.int64], event: int, end: int) -> int:
    """Return the first event of the same µs."""
    return end if event >= end else int(np.searchsorted(times, times[event]))


def _step(length: int, how: Windows) -> int:
    return max(1, round(length * (1 - how.overlap)))
