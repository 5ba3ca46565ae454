"""The one place that knows tonic (GPL-3.0, optional): its data sets as our recordings, never its downloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning.settings import Origin
from axonnx.runtime.events.arrays import make_events, sort_events
from axonnx.runtime.events.sensor import Sensor
from axonnx.train.data.cache import cache_folder
from axonnx.train.data.event_store import EventStore, Sample
from axonnx.train.data.files import data_root, missing_files
from axonnx.train.data.recordings import Place, Recordings, from_first_event
from axonnx.train.data.splits import DataSplits

UNREADABLE = (OSError, EOFError, ValueError, IndexError, TypeError)


@dataclass(frozen=True)
class TonicPart:
    """Where tonic expects one part of a data set: files below `folder`, this many of them."""

    train: bool
    folder: str
    files: int


@dataclass(frozen=True)
class TonicSource:
    """A data set of tonic's, by its class name there; files stand below `<root>/<class name>`."""

    name: str
    tonic: str
    pattern: str
    parts: Mapping[str, TonicPart]
    classes: tuple[str, ...]
    sensor: Sensor
    how: str
    record_bytes: int = 1
    origin: Origin = "zero"
    own_reader: bool = False  # its files are of a format that axonnx.runtime.readers knows


def load_through_tonic(source: TonicSource, root: str | Path | None, store: str | Path | None) -> DataSplits:
    """Load both parts of the data set; ``store`` is where they are kept once converted."""
    folder, kept = data_root(root, source.name), EventStore(Path(store) if store else cache_folder())
    train, test = (tonic_recordings(source, folder, part, kept) for part in source.parts)
    return DataSplits(source.name, train, test)


def tonic_recordings(source: TonicSource, root: Path, part: str, store: EventStore) -> Recordings:
    """One part of the data set, converted on first use and then mapped from the store."""
    paths = _files(source, root, part)

    def convert() -> Iterator[Sample]:
        return _samples(_opened(source.tonic, root, source.parts[part].train), source)

    places = tuple(Place(path) for path in sorted(paths, key=str)) if source.own_reader else None
    return store.recordings(paths, convert, source.classes, source.sensor, origin=source.origin, places=places)


def _files(source: TonicSource, root: Path, part: str) -> list[Path]:
    """Check that the part's files are there and of a possible size; otherwise tonic would try to download them."""
    wanted = source.parts[part]
    folder = root / source.tonic / wanted.folder
    paths = sorted(folder.glob(source.pattern))
    if len(paths) < wanted.files:
        expected = f"{wanted.files:,} files {source.tonic}/{wanted.folder}/{source.pattern} ({len(paths):,} are there)"
        raise missing_files(source.name, [expected], [root], source.how)
    for path in paths:
        if path.stat().st_size == 0 or path.stat().st_size % source.record_bytes:
            raise AxonnxError(f"{path}: {path.stat().st_size} bytes; the file is cut off, unpack it again")
    return paths


def _opened(tonic_class: str, root: Path, train: bool) -> Any:
    """Tonic's data set over the files that are there."""
    try:
        import numpy.lib.recfunctions  # noqa: F401 (tonic uses it without importing it)
        from tonic import datasets
    except ImportError as error:
        raise AxonnxError(f"this data set is read through tonic ({error}); pip install 'axonnx[tonic]'") from error
    # tonic derives its folder from the class's name, and downloads where it misses its own archive.
    offline = type(tonic_class, (getattr(datasets, tonic_class),), {"download": lambda self: None})
    return offline(str(root), train=train)


def _samples(data: Any, source: TonicSource) -> Iterator[Sample]:
    """Sort the recordings by path: tonic lists them in whatever order the file system does."""
    groups = getattr(data, "users", [-1] * len(data.data))
    for index in sorted(range(len(data.data)), key=lambda index: str(data.data[index])):
        try:
            found, label = data[index]
            # By name: the order of the fields differs between tonic's data sets.
            events = make_events(*(found[field] for field in ("t", "x", "y", "p")))
        except UNREADABLE as error:
            raise AxonnxError(
                f"{data.data[index]}: is no {source.name} recording ({error}); unpack it again"
            ) from error
        ordered = from_first_event(events) if source.origin == "first" else sort_events(events)
        yield Sample(ordered, int(label), int(groups[index]))
