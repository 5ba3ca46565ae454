"""Read bytes, text headers and whole records of binary formats; unwrap their clocks; refuse what exceeds memory."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import refuse_device

HEAD_BYTES = 1 << 16  # enough for magic bytes and for any header line that states a version


def read_bytes(path: Path) -> bytes:
    """Return all bytes of a file; refuse a missing or empty one, and one that does not fit into memory."""
    refuse_device(path)
    if path.is_file():
        check_budget(path, DECODED * path.stat().st_size)
    return read_head(path, size=-1)


def read_head(path: Path, size: int = HEAD_BYTES) -> bytes:
    """Return the first bytes of a file; refuse a missing or empty one, a device and a named pipe."""
    refuse_device(path)
    try:
        with path.open("rb") as file:
            data = file.read(size)
    except OSError as error:
        raise AxonnxError(f"{path}: cannot be read ({error.strerror}); expected a recording.") from None
    if not data:
        raise AxonnxError(f"{path}: is empty (0 bytes); expected a recording. Copy or record it again.")
    return data


def require_magic(path: Path, data: bytes, magic: bytes, what: str) -> None:
    """Refuse bytes that do not start with the magic bytes of this format."""
    if not data.startswith(magic):
        raise AxonnxError(
            f"{path}: byte 0: found {data[: len(magic)]!r}; expected {magic!r}, the start of {what}."
            " Is it another format? Leave `format` out to detect it from the content."
        )


def header_lines(data: bytes, mark: bytes, last: bytes | None = None) -> tuple[list[str], int]:
    """Return the text lines at the start that begin with `mark`, and the offset of the first byte after them.

    A line with control characters is not a header line: the first record may happen to begin with the mark.
    """
    lines, at = [], 0
    while data.startswith(mark, at):
        end = data.find(b"\n", at)
        line = data[at:end].rstrip(b"\r")
        if end < 0 or any(byte < 32 and byte != 9 for byte in line):
            break
        lines.append(line.decode("utf-8", errors="replace"))
        at = end + 1
        if last is not None and line.startswith(last):
            break
    return lines, at


def whole_records(path: Path, data: bytes, start: int, record: DTypeLike) -> NDArray:
    """Return the records from offset `start` to the end of the file; refuse a truncated last record."""
    size = np.dtype(record).itemsize
    over = (len(data) - start) % size
    if over:
        raise AxonnxError(
            f"{path}: byte {len(data) - over}: the last record has {over} of its {size} bytes; the file was cut off"
            f" (or has another format). Copy it again, cut it to {len(data) - over} bytes to drop that record, or"
            " remove the file."
        )
    return np.frombuffer(data, record, offset=start)


Times = NDArray[np.int64]


class Clock(ctypes.Structure):
    """A counter of `bits` bits that is followed from block to block, so that times keep growing after a wrap.

    A step back by more than half the counter's range is a wrap. A step forward by nearly the whole range (127/128)
    after a wrap is a late event from before the wrap. Smaller steps back are events out of order; they stay as they
    are. A silence longer than the whole range cannot be detected in such a file.

    Fields: bits; known (0 before the first reading); last reading; turns, the number of wraps. `counter` in
    native/events.c has the same fields.
    """

    bits: int
    known: int
    last: int
    turns: int
    _fields_ = tuple((name, ctypes.c_int64) for name in ("bits", "known", "last", "turns"))

    @property
    def now(self) -> int | None:
        """The last time; None before the first one."""
        return self.last + (self.turns << self.bits) if self.known else None

    def unwrap(self, times: Times) -> Times:
        """Convert the counter's next readings to times."""
        if len(times) == 0:
            return times
        span = 1 << self.bits
        step = np.diff(times, prepend=self.last if self.known else times[0])
        turns = self.turns + np.cumsum((step < -(span // 2)).astype(np.int64) - (step >= span - span // 128))
        # A late event can only undo a wrap that was seen, so the number of turns never falls below zero.
        turns -= np.minimum(np.minimum.accumulate(turns), 0)
        self.known, self.last, self.turns = 1, int(times[-1]), int(turns[-1])
        grown: Times = times + span * turns
        return grown


def unwrap(times: Times, bits: int) -> Times:
    """Convert all readings of a counter of `bits` bits to times that keep growing after a wrap."""
    return Clock(bits).unwrap(times)


try:
    import resource
except ImportError:  # a system without such limits
    resource = None  # type: ignore[assignment]

DECODED = 8  # bytes in memory for each byte of a file that is decoded as a whole, at least


def memory_left() -> int | None:
    """Return the bytes that this process can still take: the system's available memory, or less by its own limit."""
    found = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found.append(
            1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("MemAvailable", "SwapFree")))
        )
        most = -1 if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
        if most >= 0:  # RLIM_INFINITY is −1
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            found.append(max(0, most - pages * os.sysconf("SC_PAGE_SIZE")))
    return min(found, default=None)


def check_budget(path: Path, wanted: int) -> None:
    """Refuse a file that needs more memory than there is.

    Raises:
        AxonnxError: If ``wanted`` bytes are more than this process can still take.
    """
    left = memory_left()
    if left is not None and wanted > left:
        raise AxonnxError(
            f"{path}: takes {wanted:,} bytes once it is decoded; this process can have {left:,}. Cut the recording, or"
            f" use a machine with more memory"
        )


@contextmanager
def within_memory(path: Path) -> Iterator[None]:
    """Turn a failed request for memory in the block into a refusal of the file."""
    try:
        yield
    except MemoryError as fault:
        size = path.stat().st_size
        raise AxonnxError(
            f"{path}: does not fit into memory: it has {size:,} bytes, and decoded it takes more ({fault}). Cut the"
            f" recording, or use a machine with more memory"
        ) from None
