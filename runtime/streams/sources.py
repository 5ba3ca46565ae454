"""Sources of events: files of every known format, standard input and UDP ports, all read in chunks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Events, Sensor, sort_events
from axonnx.runtime.readers import Recording, opener, read_recordings
from axonnx.runtime.readers.blocks import OpenRecording, gathered
from axonnx.runtime.streams.live_sources import CsvSource, RecordSource
from axonnx.runtime.streams.udp_source import UdpSource

if TYPE_CHECKING:
    from io import BufferedReader

CHUNK = 2**16  # events of a file in one chunk
STREAMS = ("csv", "records")
UDP, STANDARD_INPUT = "udp:", "-"


class Source(Protocol):
    """A source of events in chunks, in the source's own order."""

    @property
    def name(self) -> str:
        """Name for error messages and summaries."""
        ...

    @property
    def sensor(self) -> Sensor | None:
        """Sensor that recorded the events; None if the source does not state it."""
        ...

    @property
    def live(self) -> bool:
        """Whether events arrive while we wait for them."""
        ...

    @property
    def skipped(self) -> dict[str, int]:
        """Number of entries so far that are not events, by kind."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions that the reader made."""
        ...

    def chunks(self) -> Iterator[Events]:
        """Yield the events in chunks."""
        ...

    def restarted(self, t_us: int) -> None:
        """Hear that the clock of the events began again at ``t_us``; only live sources do."""


class RecordedSource:
    """A whole recording. It has an end, so it can be inspected or sorted before it is run."""

    name: str
    live = False

    @property
    def sensor(self) -> Sensor | None:
        """Sensor that the file states."""
        raise NotImplementedError

    @property
    def skipped(self) -> dict[str, int]:
        """Records that are not events, counted in the last pass over the file."""
        raise NotImplementedError

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions that the reader made."""
        raise NotImplementedError

    def chunks(self) -> Iterator[Events]:
        """Yield the events in the order of the file."""
        raise NotImplementedError

    def restarted(self, t_us: int) -> None:
        """Do nothing: a recording has one clock."""

    def in_memory(self) -> FileSource:
        """Read the whole recording into memory."""
        raise NotImplementedError

    def reach(self) -> Sensor | None:
        """Return the smallest sensor that holds all events; None if there are no events."""
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
        """Sensor that the file states."""
        return self.recording.sensor

    @property
    def skipped(self) -> dict[str, int]:
        """Records that are not events."""
        return self.recording.skipped

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions that the reader made."""
        return self.recording.notes

    def chunks(self) -> Iterator[Events]:
        """Yield the events in the order of the file."""
        for start in range(0, len(self.recording.events), CHUNK):
            yield self.recording.events[start : start + CHUNK]

    def in_memory(self) -> FileSource:
        """Return the source itself."""
        return self

    def sorted(self) -> FileSource:
        """Return the same recording, sorted by time."""
        old = self.recording
        events = sort_events(old.events)
        return FileSource(self.name, Recording(events, old.format, old.sensor, old.skipped, old.notes, old.label))


class BlockSource(RecordedSource):
    """A recording that is read from disk block by block, in constant memory."""

    def __init__(self, name: str, opening: Callable[[], OpenRecording]) -> None:
        self.name, self._opening = name, opening
        self._opened = opening()

    @property
    def sensor(self) -> Sensor | None:
        """Sensor that the file states."""
        return self._opened.sensor

    @property
    def skipped(self) -> dict[str, int]:
        """Records that are not events, counted in the last pass over the file."""
        return self._opened.skipped

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions that the reader made."""
        return self._opened.notes

    def chunks(self) -> Iterator[Events]:
        """Yield the events in the order of the file; each call reads the file again."""
        self._opened = self._opening()
        yield from (block for block in self._opened.blocks if len(block))

    def in_memory(self) -> FileSource:
        """Read the whole recording into memory."""
        return FileSource(self.name, gathered(self._opening()))


def is_live(text: str) -> bool:
    """Return whether ``text`` names a stream, not a file."""
    return text == STANDARD_INPUT or text.startswith(UDP)


def open_source(
    text: str, *, format_name: str | None = None, index: int | None = None, seconds: float | None = None
) -> Source:
    """Open the source that ``text`` names.

    Args:
        text: A file, ``-`` for standard input, or ``udp:[HOST:]PORT``.
        format_name: Format, if it cannot be detected. Standard input: ``csv`` (default) or ``records``.
        index: Which recording of a file with several.
        seconds: How long to listen on a UDP port. Default: until Ctrl-C.

    Raises:
        AxonnxError: If the source cannot be opened, or an option does not apply to it.
    """
    if text.startswith(UDP):
        return UdpSource(*_address(text), seconds=seconds)
    if seconds is not None:
        raise AxonnxError(f"{text}: seconds limits how long a udp source listens; leave it out for other sources")
    if text == STANDARD_INPUT:
        return _standard_input(format_name)
    return _recorded(text, format_name, index)


def limited(chunks: Iterator[Events], most: int | None) -> Iterator[Events]:
    """Yield the first ``most`` events, or all of them if ``most`` is None."""
    left = sys.maxsize if most is None else most
    for events in chunks:
        yield events[:left]
        left -= len(events)
        if left <= 0:
            return


def _standard_input(format_name: str | None) -> Source:
    if format_name not in (None, *STREAMS):
        raise AxonnxError(
            f"standard input: cannot read the format {format_name!r} from a stream; expected {' or '.join(STREAMS)}"
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
        raise AxonnxError(f"{text}: {port!r} is not a port; expected udp:PORT or udp:HOST:PORT, e.g. udp:3333")
    return host or "127.0.0.1", int(port)
