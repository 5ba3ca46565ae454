"""Where events come from: files of every known format, standard input, a UDP port; all as chunks of events."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Events, sort_events
from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.readers import Recording, opener, read_recordings
from axonnx.runtime.readers.blocks import Opened, gathered
from axonnx.runtime.streams.live_sources import CsvSource, RecordSource
from axonnx.runtime.streams.udp_source import UdpSource

if TYPE_CHECKING:
    from io import BufferedReader

CHUNK = 2**16  # events of a file that are handed on at a time
STREAMS = ("csv", "records")
UDP, STANDARD_INPUT = "udp:", "-"


class Source(Protocol):
    """Events in chunks, in the order in which the source has them."""

    @property
    def name(self) -> str:
        """For faults and summaries."""
        ...

    @property
    def sensor(self) -> Sensor | None:
        """What made the events; None where the source does not say."""
        ...

    @property
    def live(self) -> bool:
        """Whether events arrive while we wait for them."""
        ...

    @property
    def skipped(self) -> dict[str, int]:
        """What was in the source and is no event, by kind, so far."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What had to be assumed."""
        ...

    def chunks(self) -> Iterator[Events]:
        """The events."""
        ...


class RecordedSource:
    """A whole recording: it has an end, so that it can be looked through before it is run, or sorted."""

    name: str
    live = False

    @property
    def sensor(self) -> Sensor | None:
        """As the file states it."""
        raise NotImplementedError

    @property
    def skipped(self) -> dict[str, int]:
        """Records that are no events, in what was read of it last."""
        raise NotImplementedError

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader had to assume."""
        raise NotImplementedError

    def chunks(self) -> Iterator[Events]:
        """The events as they stand in the file."""
        raise NotImplementedError

    def in_memory(self) -> FileSource:
        """All of it."""
        raise NotImplementedError

    def reach(self) -> Sensor | None:
        """The smallest sensor that holds all events; None where there is none."""
        width = height = 0
        for events in self.chunks():
            width = max(width, int(events["x"].max(initial=0)) + 1)
            height = max(height, int(events["y"].max(initial=0)) + 1)
        return Sensor(width=width, height=height) if width else None


@dataclass(frozen=True)
class FileSource(RecordedSource):
    """A recording that is in memory already."""

    name: str
    recording: Recording

    @property
    def sensor(self) -> Sensor | None:
        """As the file states it."""
        return self.recording.sensor

    @property
    def skipped(self) -> dict[str, int]:
        """Records that are no events."""
        return self.recording.skipped

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader had to assume."""
        return self.recording.notes

    def chunks(self) -> Iterator[Events]:
        """The events as they stand in the file."""
        for start in range(0, len(self.recording.events), CHUNK):
            yield self.recording.events[start : start + CHUNK]

    def in_memory(self) -> FileSource:
        """As it is."""
        return self

    def sorted(self) -> FileSource:
        """The same recording by time."""
        old = self.recording
        events = sort_events(old.events)
        return FileSource(self.name, Recording(events, old.format, old.sensor, old.skipped, old.notes, old.label))


class BlockSource(RecordedSource):
    """A recording that stays on disk: one block of it is in memory, however long it is."""

    def __init__(self, name: str, opening: Callable[[], Opened]) -> None:
        self.name, self._opening = name, opening
        self._opened = opening()

    @property
    def sensor(self) -> Sensor | None:
        """As the file states it."""
        return self._opened.sensor

    @property
    def skipped(self) -> dict[str, int]:
        """Records that are no events, in what was read of it last."""
        return self._opened.skipped

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader had to assume."""
        return self._opened.notes

    def chunks(self) -> Iterator[Events]:
        """The events as they stand in the file, read again with every call."""
        self._opened = self._opening()
        yield from (block for block in self._opened.blocks if len(block))

    def in_memory(self) -> FileSource:
        """All of it."""
        return FileSource(self.name, gathered(self._opening()))


def is_live(text: str) -> bool:
    """Whether ``text`` names a stream and not a file."""
    return text == STANDARD_INPUT or text.startswith(UDP)


def open_source(
    text: str, *, format_name: str | None = None, index: int | None = None, seconds: float | None = None
) -> Source:
    """The source that ``text`` names: a file, ``-`` for standard input, or ``udp:[HOST:]PORT``."""
    if text.startswith(UDP):
        return UdpSource(*_address(text), seconds=seconds)
    if seconds is not None:
        raise AxonnxError(f"{text}: seconds bound how long a udp source listens; other sources end by themselves")
    if text == STANDARD_INPUT:
        return _standard_input(format_name)
    return _recorded(text, format_name, index)


def limited(chunks: Iterator[Events], most: int | None) -> Iterator[Events]:
    """The first ``most`` events."""
    left = sys.maxsize if most is None else most
    for events in chunks:
        yield events[:left]
        left -= len(events)
        if left <= 0:
            return


def _standard_input(format_name: str | None) -> Source:
    if format_name not in (None, *STREAMS):
        raise AxonnxError(
            f"standard input: {format_name!r} cannot be read as it arrives; expected {' or '.join(STREAMS)}"
        )
    stream = cast("BufferedReader", sys.stdin.buffer)
    return RecordSource(stream) if format_name == "records" else CsvSource(stream)


def _recorded(text: str, format_name: str | None, index: int | None) -> RecordedSource:
    path = Path(text)
    opening = opener(path, format=format_name)
    if opening is not None and not index:
        return BlockSource(text, opening)
    recordings = read_recordings(path, format=format_name)
    if not recordings:
        raise AxonnxError(f"{path}: holds no recording")
    if index is None and len(recordings) > 1:
        last = len(recordings) - 1
        raise AxonnxError(
            f"{path}: holds {len(recordings)} recordings; choose one by its index, 0 … {last}", options=("index",)
        )
    if not 0 <= (index or 0) < len(recordings):
        raise AxonnxError(f"{path}: has no recording {index}; expected an index from 0 to {len(recordings) - 1}")
    return FileSource(text, recordings[index or 0])


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.removeprefix(UDP).removeprefix("//").rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise AxonnxError(f"{text}: {port!r} is no port; expected udp:PORT or udp:HOST:PORT, e.g. udp:3333")
    return host or "127.0.0.1", int(port)
