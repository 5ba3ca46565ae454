"""Recordings on disk, as event arrays in the order of the file.

`read_events` for one recording, `read_recordings` for files of many, `read_shd` for SHD, `write_npz` to keep events;
`opener` for EVT 2, DAT and csv of any size, block by block.
`FORMATS` lists what is known; a module a format says what it decodes, what it skips and what it cannot know.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.base.files import refuse_device
from axonnx.runtime.readers.binary import read_head
from axonnx.runtime.readers.blocks import Opened
from axonnx.runtime.readers.formats import FORMATS, Format, format_of, known_formats
from axonnx.runtime.readers.npz import write_npz
from axonnx.runtime.readers.recording import Recording
from axonnx.runtime.readers.shd import read_shd

__all__ = ["FORMATS", "Opened", "Recording", "opener", "read_events", "read_recordings", "read_shd", "write_npz"]


def read_events(path: str | Path, *, format: str | None = None, index: int | None = None) -> Recording:  # noqa: A002
    """The recording of a file; of a file with many, the one at `index`.

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
    """All recordings of a file, in the format given or told by its content."""
    return _format(Path(path), format).read(Path(path))


def opener(path: str | Path, *, format: str | None = None) -> Callable[[], Opened] | None:  # noqa: A002
    """What opens the file to be read block by block; None where its format is read as a whole."""
    opening = _format(Path(path), format).open_blocks
    return None if opening is None else partial(opening, Path(path))


def _format(path: Path, name: str | None) -> Format:
    refuse_device(path)
    name = format_of(path, read_head(path)) if name is None else name
    if name not in FORMATS:
        raise AxonnxError(f"{path}: format {name!r} is not known; expected one of {known_formats()}.")
    return FORMATS[name]
