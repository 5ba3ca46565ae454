"""Read events from standard input while they arrive, as csv lines or 16-byte records."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from axonnx.base.errors import AxonnxError
from axonnx.base.progress import deferred, requested
from axonnx.runtime.events.arrays import RECORD, Events, Sensor, from_records
from axonnx.runtime.readers.csv_text import FIELDS, parse_header, parse_rows

STDIN = Path("standard input")
READ = 2**16  # bytes requested at a time
LONGEST_LINE = 2**12
PATIENCE = 0.1  # seconds between two checks of the clock


class ByteStream(Protocol):
    """The part of a pipe's interface that is used."""

    def read1(self, size: int, /) -> bytes:
        """Return the available bytes, at least one; return none at the end."""
        ...


class LiveSource:
    """Base class of the sources whose events arrive while we wait."""

    live = True
    sensor: Sensor | None = None
    notes: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name
        self.skipped: dict[str, int] = {}

    def chunks(self) -> Iterator[Events]:
        """Yield events as they arrive; Ctrl-C, SIGTERM and SIGHUP end the stream, and no event is lost by that."""
        try:
            with deferred():
                yield from self._arriving()
        except KeyboardInterrupt:
            return

    def restarted(self, t_us: int) -> None:
        """Hear that the clock of the events began again at ``t_us``."""

    def _arriving(self) -> Iterator[Events]:
        raise NotImplementedError

    def _skip(self, kind: str) -> None:
        self.skipped[kind] = self.skipped.get(kind, 0) + 1


def _read(stream: ByteStream) -> bytes:
    """Return the bytes that have arrived; none at the stream's end, or if the command was asked to end."""
    while not requested():
        if _is_readable(stream):
            return stream.read1(READ)
    return b""


def _is_readable(stream: ByteStream) -> bool:
    """Wait for bytes, but not so long that a signal would be noticed late; what cannot be asked is read at once."""
    try:
        descriptor = stream.fileno()  # type: ignore[attr-defined]
        return sys.platform == "win32" or bool(select.select([descriptor], [], [], PATIENCE)[0])
    except (AttributeError, OSError, ValueError):
        return True


class RecordSource(LiveSource):
    """16-byte records; a truncated last record is counted in ``skipped``."""

    def __init__(self, stream: ByteStream) -> None:
        super().__init__(str(STDIN))
        self._bytes = stream

    def _arriving(self) -> Iterator[Events]:
        rest, count = b"", 0
        while data := _read(self._bytes):
            rest += data
            whole = len(rest) - len(rest) % RECORD.itemsize
            events = from_records(rest[:whole], self.name, count)
            rest, count = rest[whole:], count + len(events)
            if len(events):
                yield events
        if rest:
            self._skip("cut_off_record")


class CsvSource(LiveSource):
    """Lines t,x,y,p in microseconds and pixels; a first line with letters names the columns."""

    def __init__(self, stream: ByteStream) -> None:
        super().__init__(str(STDIN))
        self._bytes = stream
        self._columns: list[str] | None = None
        self._line = 1
        self._blank = 0  # blank lines are allowed at the very end only, so they wait for the next line

    def _arriving(self) -> Iterator[Events]:
        rest = b""
        while data := _read(self._bytes):
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LONGEST_LINE:
                raise AxonnxError(
                    f"{STDIN}: found no end of line within {LONGEST_LINE} bytes; expected csv lines t,x,y,p. To read "
                    f"binary "
                    f"records, give the format 'records'",
                    options=("format",),
                )
            yield from self._parsed(lines)
        yield from self._parsed([rest])

    def _parsed(self, arrived: list[bytes]) -> Iterator[Events]:
        lines = self._decoded([b""] * self._blank + arrived)
        self._blank = 0
        while lines and not lines[-1].strip():
            lines.pop()
            self._blank += 1
        if lines and self._columns is None:
            named = any(letter.isalpha() for letter in lines[0])
            self._columns = parse_header(STDIN, lines[0]) if named else list(FIELDS)
            lines, self._line = (lines[1:], self._line + 1) if named else (lines, self._line)
        if lines:
            assert self._columns is not None
            yield parse_rows(STDIN, lines, self._columns, self._line)
            self._line += len(lines)

    def _decoded(self, lines: list[bytes]) -> list[str]:
        try:
            return [line.removesuffix(b"\r").decode("utf-8-sig") for line in lines]
        except UnicodeDecodeError:
            raise AxonnxError(f"{STDIN}: line {self._line} or later is not UTF-8 text; expected csv, t,x,y,p") from None
