"""One's own recordings: a folder with a sub-folder of recordings for each class, or with label files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.sensor import Sensor
from axonnx.train.data.cache import cache_folder
from axonnx.train.data.event_store import EventStore
from axonnx.train.data.label_file import Piece
from axonnx.train.data.recordings import Recordings
from axonnx.train.data.sets.listing import PARTS, Listing, folders_in, has_parts
from axonnx.train.data.sets.reading import Damaged, FolderReading
from axonnx.train.data.shaping import Shaping
from axonnx.train.data.split import split_units
from axonnx.train.data.splits import DataSplits

SIDES = re.compile(r"(\d+)[x×](\d+)(?:[x×]([12]))?")


def load_folder(
    path: str | Path,
    *,
    test_share: float = 0.2,
    sensor: str | Sequence[int] | Mapping[str, Any] | Sensor | None = None,
    seed: int = 0,
    group: str | None = None,
    store: str | Path | None = None,
    damaged: Damaged = "refuse",
    shaping: Shaping | None = None,
) -> DataSplits:
    """Load recordings of any known format, `<folder>/<class>/<file>`, with a share of each class held out for testing.

    Many cameras count from when they were switched on, so the time of each recording begins with its first event.
    With `<folder>/train/<class>/…` and `<folder>/test/<class>/…` (and validation) the parts are taken as they are.
    `sensor`, as 346x260, is needed where the files do not say how large it is. `group` is a regular expression that
    finds in a recording's path who was recorded: nobody is then in two parts. `store` is where events are kept once
    they are converted. Files that are no recordings are left out and named in the notes; recordings that cannot be read
    are refused, unless `damaged` is "skip".
    """
    folder, how = Path(path), shaping or Shaping()
    kept = EventStore(Path(store) if store else cache_folder())
    reading = FolderReading(folder, how, as_sensor(sensor), group, kept, damaged)
    if how.windows.labels is None and has_parts(folder):
        return _parts(reading)
    listing = reading.listing(folder)
    data, notes = reading.recordings(listing, _classes(listing, reading.pieces(listing)))
    train, test = split_units(data.labels, *_units(data, folder), test_share, seed)
    return DataSplits(folder.name, data.subset(train), data.subset(test), notes=(*listing.notes(), *notes))


def as_sensor(given: str | Sequence[int] | Mapping[str, Any] | Sensor | None) -> Sensor | None:
    """346x260, [346, 260], a table of width and height, or nothing, as a sensor."""
    if isinstance(given, str):
        match = SIDES.fullmatch(given)
        if match is None:
            raise AxonnxError(f"the option sensor is {given!r}; expected its width and height, as in 346x260")
        given = [int(side) for side in match.groups() if side]
    if isinstance(given, Sequence):
        return Sensor.model_validate(dict(zip(("width", "height", "polarities"), given, strict=False)))
    return None if given is None else Sensor.model_validate(given)


def _parts(reading: FolderReading) -> DataSplits:
    """All parts with one list of classes and one sensor."""
    listings = {part: reading.listing(reading.folder / part) for part in PARTS if part in folders_in(reading.folder)}
    classes = _classes(listings["train"], None)
    found, notes = {}, []
    for part, listing in listings.items():
        strangers = sorted(set(listing.classes) - set(classes))
        if strangers:
            raise AxonnxError(
                f"{listing.folder}: class {strangers[0]!r} is not among those of the training part: {classes}"
            )
        found[part], more = reading.recordings(listing, classes)
        notes += [*listing.notes(), *more]
    return DataSplits(reading.folder.name, found["train"], found["test"], found.get("validation"), notes=tuple(notes))


def _classes(listing: Listing, pieces: dict[Path, list[Piece]] | None) -> tuple[str, ...]:
    if pieces is not None:
        return tuple(sorted({piece.label for each in pieces.values() for piece in each}))
    if not listing.classes:
        raise AxonnxError(
            f"{listing.folder}: has no sub-folders; expected one for each class, with its recordings in it, or label "
            f"files (data.windows.labels)"
        )
    return listing.classes


def _units(data: Recordings, folder: Path) -> tuple[NDArray[np.int64], list[str]]:
    """Return what must not be in two parts: a number for each sample, and the name of each person or recording."""
    if data.groups is not None:
        people, units = np.unique(data.groups, return_inverse=True)
        return units.astype(np.int64), [str(person) for person in people]
    assert data.places is not None
    names = [f"{place.path.relative_to(folder).as_posix()}/{place.number}" for place in data.places]
    if data.units is None:
        return np.arange(len(data)), names
    return data.units, [names[first] for first in np.unique(data.units, return_index=True)[1]]
