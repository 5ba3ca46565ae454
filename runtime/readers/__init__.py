"""Read recordings from disk as event arrays in the order of the file.

`read_events` reads one recording and `read_recordings` reads files of several. `read_shd` reads SHD, and `write_npz`
writes events. `opener` reads EVT 2, DAT, csv and txt files of any size block by block. `FORMATS` lists the known
formats. Each format has a module that states what it decodes, what it skips and what it has to assume.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers.binary import read_head, within_memory
from axonnx.runtime.readers.blocks import OpenRecording
from axonnx.runtime.readers.formats import FORMATS, Format, format_of, known_formats
from axonnx.runtime.readers.npz import write_npz
from axonnx.runtime.readers.recording import Recording
from axonnx.runtime.readers.shd import read_shd

__all__ = ["FORMATS", "OpenRecording", "Recording", "opener", "read_events", "read_recordings", "read_shd", "write_npz"]


def read_events(path: str | Path, *, format: str | None = None, index: int | None = None) -> Recording:  # noqa: A002
    """Read one recording from a file.

    Args:
        path: File with one or more recordings.
        format: Name of the format, one of ``FORMATS``. Default: detected from the content.
        index: Which recording of a file with several.

    Returns:
        The recording. Its ``events`` are an array with the fields t (microseconds), x, y and p.

    Raises:
        AxonnxError: If the file cannot be read, or holds several recordings and ``index`` is missing or too large.

    Examples:
        >>> recording = axonnx.read_events("recording.npz")
        >>> recording.sensor.width, recording.in_order, recording.events.dtype.names
        (16, True, ('t', 'x', 'y', 'p'))
    """
    recordings = read_recordings(path, format=format)
    if index is None and len(recordings) != 1:
        raise AxonnxError(
            f"{path}: holds {len(recordings)} recordings; expected one. Choose one with index=, or use read_recordings."
        )
    if not 0 <= (index or 0) < len(recordings):
        raise AxonnxError(f"{path}: has no recording {index}; expected an index from 0 to {len(recordings) - 1}.")
    return recordings[index or 0]


def read_recordings(path: str | Path, *, format: str | None = None) -> list[Recording]:  # noqa: A002
    """Read all recordings of a file.

    Args:
        path: File to read.
        format: Name of the format, one of ``FORMATS``. Default: detected from the content.

    Returns:
        The recordings in the order of the file.

    Raises:
        AxonnxError: If the file cannot be read or its format is unknown.
    """
    with within_memory(Path(path)):
        return _format(Path(path), format).read(Path(path))


def opener(path: str | Path, *, format: str | None = None) -> Callable[[], OpenRecording] | None:  # noqa: A002
    """Return a function that opens the file for reading in blocks; None if the format is only read as a whole."""
    opening = _format(Path(path), format).open_blocks
    return None if opening is None else partial(opening, Path(path))


def _format(path: Path, name: str | None) -> Format:
    name = format_of(path, read_head(path)) if name is None else name
    if name not in FORMATS:
        raise AxonnxError(f"{path}: unknown format {name!r}; expected one of {known_formats()}.")
    return FORMATS[name]
