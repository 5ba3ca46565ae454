"""Read bytes, text headers and whole records, with the errors that all binary formats share."""

from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import refuse_device
from axonnx.runtime.readers.budget import DECODED, check_budget

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
