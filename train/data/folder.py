"""One's own recordings: a folder with a sub-folder of recordings for each class, or with label files.

The recordings are read one by one, shaped into samples and kept on disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Sensor, sort_events
from axonnx.runtime.readers import Recording, read_recordings
from axonnx.train.data.cache import cache_folder
from axonnx.train.data.event_store import EventStore, Sample, Stored
from axonnx.train.data.listing import (
    PARTS,
    Listing,
    Piece,
    folders_in,
    has_parts,
    label_files,
    list_labelled,
    list_recordings,
    read_pieces,
)
from axonnx.train.data.recordings import Place, Recordings, from_first_event
from axonnx.train.data.shaping import Shaping
from axonnx.train.data.splits import DataSplits, split_units

Damaged = Literal["refuse", "skip"]


@dataclass(frozen=True)
class FolderReading:
    """How the recordings of a folder are read."""

    folder: Path
    how: Shaping
    sensor: Sensor | None
    group: str | None
    store: EventStore
    damaged: Damaged = "refuse"

    def listing(self, folder: Path) -> Listing:
        """List what stands there."""
        if not folder.is_dir():
            raise AxonnxError(f"{folder}: there is no such folder")
        labels = self.how.windows.labels
        return list_recordings(folder) if labels is None else list_labelled(folder, label_files(folder, labels))

    def pieces(self, listing: Listing) -> dict[Path, list[Piece]] | None:
        """Labelled pieces of recordings, where label files say them."""
        labels = self.how.windows.labels
        return None if labels is None else read_pieces(listing.folder, labels, [path for _, path in listing.recordings])

    def recordings(self, listing: Listing, classes: tuple[str, ...]) -> tuple[Recordings, list[str]]:
        """Return the samples, on disk, and what there is to say of them."""
        pieces = self.pieces(listing)
        files = [path for _, path in listing.recordings]
        if not files:
            raise AxonnxError(f"{listing.folder}: there are no recordings in {', '.join(classes) or 'it'}")
        labels = [] if self.how.windows.labels is None else label_files(listing.folder, self.how.windows.labels)
        numbers = {name: number for number, name in enumerate(classes)}
        groups = _groups(listing, self.group)

        def convert(facts: dict[str, Any]) -> Iterator[Sample]:
            for source, (name, path) in enumerate(listing.recordings):
                mine = None if pieces is None else [(*p[:2], numbers[p.label]) for p in pieces.get(path, [])]
                for number, recording in enumerate(self._read(path, facts)):
                    common = {"group": groups[source], "source": source, "number": number}
                    yield from self._samples(path, recording, facts, numbers.get(name, -1), mine, common)

        sensor = None if self.sensor is None else self.sensor.model_dump()
        how = {"shaping": self.how.as_dict(), "sensor": sensor, "group": self.group, "classes": classes}
        if self.damaged == "skip":
            how["damaged"] = self.damaged
        found = self.store.keep([*files, *labels], convert, how)
        return self._opened(found, files, classes), _left_out(found, listing.folder)

    def _read(self, path: Path, facts: dict[str, Any]) -> Sequence[Recording]:
        """Read the recordings of a file; the facts remember a file that was skipped."""
        try:
            return read_recordings(path)
        except AxonnxError as fault:
            if self.damaged == "refuse":
                words = "Mend the file, remove it, or leave out every such file"
                raise AxonnxError(f"{fault} {words}.", settings={"data.options.damaged": "skip"}) from None
            facts["skipped"] = [*facts.get("skipped", ()), str(path)]
            return ()

    def _samples(
        self,
        path: Path,
        recording: Recording,
        facts: dict[str, Any],
        label: int,
        pieces: list[tuple[int, int, int]] | None,
        common: dict[str, int],
    ) -> Iterator[Sample]:
        sensor = self._sensor(path, recording, facts)
        events = self.how.fitted(_on_sensor(sort_events(recording.events), sensor, path), sensor)
        if self.how.windows.is_off:
            yield Sample(from_first_event(events), label, **common)
            return
        used = 0
        for window, mine, moved in self.how.samples(events, pieces):
            used = max(used, window.last)
            yield Sample(moved, label if pieces is None else mine, start=window.start, stop=window.stop, **common)
        facts["events"] = facts.get("events", 0) + len(events)
        facts["unused"] = facts.get("unused", 0) + (len(events) - used if pieces is None else 0)
        facts["without"] = facts.get("without", 0) + (used == 0)

    def _sensor(self, path: Path, recording: Recording, facts: dict[str, Any]) -> Sensor:
        """Return the sensor asked for, or the one that all files agree on; the facts remember it."""
        known = self.sensor or recording.sensor
        first = facts.get("sensor")
        if known is None or (first is not None and known.model_dump() != first):
            said = "does not say" if known is None else f"says {known.width}×{known.height}, others do not agree on"
            raise AxonnxError(
                f"{path}: {said} how large the sensor is; give it: data.options.sensor = '346x260', or remove the file",
                settings={"data.options.sensor": "346x260"},
            )
        facts["sensor"] = known.model_dump()
        return known

    def _opened(self, found: Stored, files: list[Path], classes: tuple[str, ...]) -> Recordings:
        if not len(found.columns["label"]):
            raise AxonnxError(
                f"{self.folder}: no recording is as long as a window; make data.windows shorter, or data.windows.least"
            )
        sensor, columns = Sensor.model_validate(found.facts["sensor"]), found.columns
        whole = self.how.windows.is_off
        rows = zip(*(columns[name].tolist() for name in ("source", "number", "start", "stop")), strict=True)
        places = tuple(Place(files[row[0]], *(row[1:2] if whole else row[1:])) for row in rows)
        _, units = np.unique(np.stack([columns["source"], columns["number"]]), axis=1, return_inverse=True)
        return Recordings(
            found.events,
            found.offsets,
            columns["label"],
            classes,
            self.how.target(sensor),
            found.groups,
            origin="first",
            places=places,
            units=None if whole else units.reshape(-1).astype(np.int64),
            fit=self.how.fit(sensor),
        )


def _on_sensor(events: NDArray[np.void], sensor: Sensor, path: Path) -> NDArray[np.void]:
    wrong = (events["x"] >= sensor.width) | (events["y"] >= sensor.height) | (events["p"] >= sensor.polarities)
    if wrong.any():
        raise AxonnxError(
            f"{path}: event {events[np.argmax(wrong)]} lies outside the sensor's width {sensor.width}, height "
            f"{sensor.height} or {sensor.polarities} polarities, as {int(wrong.sum()):,} of {len(events):,} events do; "
            f"give the sensor's size (data.options.sensor), or remove the file"
        )
    return events


def _groups(listing: Listing, pattern: str | None) -> list[int]:
    """Who was recorded, by number: the one that the pattern finds, or the place of the name among all names."""
    if pattern is None:
        return [-1] * len(listing.recordings)
    try:
        found = [re.search(pattern, path.relative_to(listing.folder).as_posix()) for _, path in listing.recordings]
    except re.error as fault:
        raise AxonnxError(f"the option group is {pattern!r}, which is no regular expression: {fault}") from None
    for match, (_, path) in zip(found, listing.recordings, strict=True):
        if match is None:
            raise AxonnxError(f"{path}: the option group, {pattern!r}, finds nobody in its name")
    names = [match.group(1) if match.re.groups else match.group() for match in found if match is not None]
    if all(name.isdecimal() for name in names):
        return [int(name) for name in names]
    order = sorted(set(names))
    return [order.index(name) for name in names]


def _left_out(found: Stored, folder: Path) -> list[str]:
    """Return lines about what is in no window and about what was skipped."""
    facts, lines = found.facts, []
    if skipped := facts.get("skipped"):
        lines.append(f"warning: {folder}: {len(skipped)} recordings cannot be read and are left out: {_few(skipped)}")
    if facts.get("without"):
        lines.append(f"{folder}: {facts['without']} recordings give no window")
    if facts.get("unused"):
        lines.append(
            f"{folder}: {facts['unused']:,} of {facts['events']:,} events at the ends of recordings are in no window"
        )
    return lines


def _few(names: Sequence[str], most: int = 3) -> str:
    """Name the first few."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


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
