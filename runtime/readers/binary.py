"""Bytes of a file, its text header, and whole records after it: the errors every binary format shares."""

from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from axonnx.base.errors import AxonnxError

HEAD_BYTES = 1 << 16  # enough for magic bytes and for any header line that tells a version


def read_bytes(path: Path) -> bytes:
    """All bytes of a file that is there and not empty."""
    return read_head(path, size=-1)


def read_head(path: Path, size: int = HEAD_BYTES) -> bytes:
    """The first bytes of a file that is there and not empty."""
    try:
        with path.open("rb") as file:
            data = file.read(size)
    except OSError as error:
        raise AxonnxError(f"{path}: cannot be read ({error.strerror}); expected a recording.") from None
    if not data:
        raise AxonnxError(f"{path}: is empty (0 bytes); expected a recording. Copy or record it again.")
    return data


def require_magic(path: Path, data: bytes, magic: bytes, what: str) -> None:
    """Refuse bytes that do not start as this format does."""
    if not data.startswith(magic):
        raise AxonnxError(
            f"{path}: byte 0: found {data[: len(magic)]!r}; expected {magic!r}, as {what} starts."
            " Is it another format? Leave `format` out to let the content decide."
        )


def header_lines(data: bytes, mark: bytes, last: bytes | None = None) -> tuple[list[str], int]:
    """Text lines at the start that begin with `mark`, and the offset of the first byte after them.

    A line with control characters is no header: the first record may happen to begin with the mark.
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
    """Records from offset `start` to the end of the file, the last one whole."""
    size = np.dtype(record).itemsize
    over = (len(data) - start) % size
    if over:
        raise AxonnxError(
            f"{path}: byte {len(data) - over}: the last record has {over} of its {size} bytes, the file was cut off"
            f" (or is another format). Copy it again, cut it to {len(data) - over} bytes to do without that record, or"
            " take it away."
        )
    return np.frombuffer(data, record, offset=start)
