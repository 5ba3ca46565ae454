"""One's own recordings: a folder with a sub-folder of recordings for each class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.runtime.readers import Recording, read_recordings
from axonnx.train.data.recordings import Place, Recordings, from_first_event, join_events
from axonnx.train.data.split import stratified_split
from axonnx.train.data.splits import DataSplits

PARTS = {"train", "test", "validation"}


class _Named(NamedTuple):
    """A recording, its class, where it was read, and a name for it that does not depend on where the folder stands."""

    recording: Recording
    label: int
    place: Place
    name: str


def load_folder(
    path: str | Path, *, test_share: float = 0.2, sensor: Mapping[str, Any] | Sensor | None = None, seed: int = 0
) -> DataSplits:
    """Recordings of any known format, `<folder>/<class>/<file>`, with a share of each class held out for testing.

    Many cameras count from when they were switched on, so the time of each recording begins with its first event.
    With `<folder>/train/<class>/…` and `<folder>/test/<class>/…` (and validation) the parts are taken as they are.
    `sensor` is needed where the files do not say how large it is.
    """
    folder, wanted = Path(path), None if sensor is None else Sensor.model_validate(sensor)
    if {"train", "test"} <= set(_folders(folder)) <= PARTS:
        parts = _parts(folder, wanted)
        return DataSplits(folder.name, parts["train"], parts["test"], parts.get("validation"))
    classes = _classes(folder)
    found = list(_read(folder, classes))
    whole = _recordings(found, classes, wanted, folder)
    names = [each.name for each in found]
    train, test = stratified_split(whole.labels, names, max(1, round(test_share * len(found))), seed)
    return DataSplits(folder.name, whole.subset(train), whole.subset(test))


def _parts(folder: Path, sensor: Sensor | None) -> dict[str, Recordings]:
    """All parts with one list of classes and one sensor."""
    classes = _classes(folder / "train")
    found = {part: list(_read(folder / part, classes)) for part in _folders(folder)}
    common = sensor or _sensor([each for part in found.values() for each in part], None, folder)
    return {part: _recordings(each, classes, common, folder / part) for part, each in found.items()}


def _folders(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))


def _classes(folder: Path) -> tuple[str, ...]:
    classes = tuple(_folders(folder))
    if not classes:
        raise AxonnxError(f"{folder}: has no sub-folders; expected one for each class, with its recordings in it")
    return classes


def _read(folder: Path, classes: tuple[str, ...]) -> Iterator[_Named]:
    """Every recording below the folder; a file may hold several."""
    strangers = sorted(set(_folders(folder)) - set(classes))
    if strangers:
        raise AxonnxError(f"{folder}: class {strangers[0]!r} is not among those of the training part: {classes}")
    for label, name in enumerate(classes):
        for file in sorted((folder / name).glob("[!.]*")):
            for number, recording in enumerate(read_recordings(file)):
                yield _Named(recording, label, Place(file, number), f"{name}/{file.name}/{number}")


def _recordings(found: list[_Named], classes: tuple[str, ...], sensor: Sensor | None, folder: Path) -> Recordings:
    if not found:
        raise AxonnxError(f"{folder}: there are no recordings in {', '.join(classes)}")
    events, offsets = join_events(from_first_event(each.recording.events) for each in found)
    labels = np.array([each.label for each in found], np.int64)
    places = tuple(each.place for each in found)
    known = _sensor(found, sensor, folder)
    return Recordings(events, offsets, labels, classes, known, origin="first", places=places)


def _sensor(found: list[_Named], wanted: Sensor | None, folder: Path) -> Sensor:
    """The sensor asked for, or the one that all files agree on."""
    stated = {each.recording.sensor for each in found}
    known = wanted or stated.pop()
    if known is None or (wanted is None and stated):
        said = "do not say" if known is None and not stated else "do not agree"
        raise AxonnxError(f"{folder}: its files {said} how large the sensor is; give the option sensor (width, height)")
    return known
