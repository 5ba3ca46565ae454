"""Look at data before a training: what is there, which settings fit it, and whether a training would begin."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binning
from axonnx.runtime.events.arrays import sort_events
from axonnx.runtime.readers import Recording, read_recordings
from axonnx.train.build import binning_for, make_network, prepare
from axonnx.train.config.read import read_config, shipped
from axonnx.train.data.cache import in_blocks
from axonnx.train.data.image_files import holds_frames
from axonnx.train.data.left_out import WORTH_A_WARNING
from axonnx.train.data.listing import PARTS, Listing, has_parts, is_recording, list_recordings
from axonnx.train.data.recordings import Recordings
from axonnx.train.data.registry import DATA_SETS, load_data_set

CAMERAS = (
    (34, 34),
    (64, 64),
    (128, 128),
    (240, 180),
    (304, 240),
    (320, 240),
    (346, 260),
    (480, 320),
    (640, 480),
    (1280, 720),
)  # common sensor sizes
NEARLY = 0.9  # of a common side: events that reach this far come from such a sensor
TOLD = 3  # recordings that cannot be read
DRAWN = 12  # classes that are drawn,
EACH = 4  # with so many samples each,
FINEST = 128  # on so many pixels a side,
FEWEST = 200  # by the middle tenth of their events, or by so many


@dataclass
class Look:
    """What was found. ``read`` of ``recordings`` were read; lengths are in µs, one for each of these.

    ``suggested`` are settings for a training on this data, and ``fault`` says why there can be none.
    """

    name: str
    kind: str
    classes: dict[str, int]
    recordings: int
    read: int
    formats: dict[str, int] = field(default_factory=dict)
    sensor: tuple[int, int] | None = None
    reaches: tuple[int, int] = (0, 0)  # the largest x and y, and one
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    events: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    brighter: float = 0.0  # share of events
    shape: tuple[int, ...] | None = None  # of frames and images
    notes: list[str] = field(default_factory=list)
    pictures: dict[str, list[NDArray[np.int64]]] = field(default_factory=dict)  # of a class, counts [C, H, W]
    damaged: int = 0  # recordings that cannot be read
    configuration: str = ""
    suggested: dict[str, Any] = field(default_factory=dict)
    fault: str = ""

    @property
    def size(self) -> tuple[int, int]:
        """The sensor, or the common one that holds all events and is hardly larger, or what the events cover."""
        if self.sensor is not None:
            return self.sensor
        near = (each for each in CAMERAS if all(NEARLY * a <= b <= a for a, b in zip(each, self.reaches, strict=True)))
        return next(near, self.reaches)

    def settings(self) -> dict[str, Any]:
        """Return settings that fit, for the configuration ``self.configuration``."""
        return dict(self.suggested)


def look_at(path: str | Path, limit: int = 200, **options: Any) -> Look:
    """Look at a data set by name, or at one's own: a folder of recordings by class, one recording, or an npz of frames.

    Of a folder ``limit`` recordings are read, spread over it.
    """
    place = Path(path)
    if str(path) in DATA_SETS or (place.suffix == ".npz" and place.is_file() and _is_frames(place)):
        return _of_splits(str(path), options)
    if holds_frames(place):
        return _of_splits(str(path), options)
    if place.is_file():
        return _of_files(str(path), [(place.parent.name, place)], 1, [])
    if not place.is_dir():
        raise AxonnxError(f"{path}: there is no such file or folder, and no data set of that name")
    listings = [list_recordings(each) for each in _folders(place)]
    files = [entry for listing in listings for entry in listing.recordings]
    if not files:
        above = f"; it holds recordings itself: give the folder above it, {place.parent}" if _flat(place) else ""
        raise AxonnxError(f"{path}: no recordings; expected a folder for each class, with its recordings in it{above}")
    spread = sorted({int(i) for i in np.linspace(0, len(files) - 1, min(limit, len(files)))})
    return _of_files(str(path), [files[i] for i in spread], len(files), _notes(listings), Counter(n for n, _ in files))


def _folders(place: Path) -> list[Path]:
    if not has_parts(place):
        return [place]
    return [place / part for part in PARTS if (place / part).is_dir()]


def _flat(place: Path) -> bool:
    """Whether recordings stand in the folder itself: it may be one class of several."""
    return any(each.is_file() and is_recording(each) for each in place.glob("[!.]*"))


def _notes(listings: list[Listing]) -> list[str]:
    return [note for listing in listings for note in listing.notes()]


def _is_frames(path: Path) -> bool:
    with np.load(path, allow_pickle=False) as archive:
        return "frames" in archive.files


def _of_files(
    name: str, chosen: list[tuple[str, Path]], total: int, notes: list[str], counts: Counter[str] | None = None
) -> Look:
    look = Look(name, "events", dict(sorted((counts or Counter(c for c, _ in chosen)).items())), total, 0, notes=notes)
    formats: Counter[str] = Counter()
    faults: list[str] = []
    lengths: list[int] = []
    sizes: list[int] = []
    brighter = silent = 0
    for label, path in chosen:
        try:
            found = read_recordings(path)
        except AxonnxError as fault:
            faults.append(str(fault))
            continue
        for recording in found:
            events = sort_events(recording.events)
            formats[recording.format] += 1
            lengths.append(int(events["t"][-1] - events["t"][0]) if len(events) else 0)
            sizes.append(len(events))
            silent += recording.sensor is None
            brighter += int(np.count_nonzero(events["p"]))
            _extend(look, recording)
            _draw(look, label, recording)
    if faults and not sizes:
        raise AxonnxError(f"{name}: none of {len(faults)} recordings can be read. The first: {faults[0]}")
    more = [f"{len(faults) - TOLD} more recordings cannot be read"] if len(faults) > TOLD else []
    look.notes += [*faults[:TOLD], *more]
    look.damaged = len(faults)
    if look.sensor is not None and silent:
        look.notes.append(f"sensor size not stated in {silent} of {len(sizes)} recordings; it must be the same for all")
        look.sensor = None
    alone = [name for name, number in look.classes.items() if number == 1 and len(look.classes) > 1]
    if alone:
        look.notes.append(f"one recording alone of {', '.join(alone)}: training needs two, one of them for the test")
    look.read, look.formats = len(sizes), dict(formats.most_common())
    look.lengths, look.events = np.array(lengths, np.int64), np.array(sizes, np.int64)
    look.brighter = brighter / max(1, int(look.events.sum()))
    return look


def _extend(look: Look, recording: Recording) -> None:
    """Note the sensor, which must be the same for all, and how far events reach."""
    events = recording.events
    if len(events):
        width, height = look.reaches
        look.reaches = max(width, int(events["x"].max()) + 1), max(height, int(events["y"].max()) + 1)
    if recording.sensor is not None:
        stated = recording.sensor.width, recording.sensor.height
        if look.sensor is not None and look.sensor != stated:
            look.notes.append(f"sensors differ: {look.sensor[0]}×{look.sensor[1]} and {stated[0]}×{stated[1]}")
        look.sensor = stated


def _draw(look: Look, label: str, recording: Recording) -> None:
    """Pictures of the first samples of each of the first classes."""
    if len(recording.events) and _wanted(look, label):
        look.pictures.setdefault(label, []).append(_picture(look, recording))


def _wanted(look: Look, label: str) -> bool:
    return len(look.pictures[label]) < EACH if label in look.pictures else len(look.pictures) < DRAWN


def _picture(look: Look, recording: Recording) -> NDArray[np.int64]:
    """Count events [polarity, H, W] in a recording's middle, before motion blurs it; large sensors are shrunk."""
    width, height = look.sensor or look.reaches
    side, events = -(-max(width, height) // FINEST), sort_events(recording.events)
    taken = max(FEWEST, len(events) // 10)
    events = events[max(0, (len(events) - taken) // 2) :][:taken]
    frame = np.zeros((2, -(-height // side), -(-width // side)), np.int64)
    inside = events[(events["x"] < width) & (events["y"] < height)]
    np.add.at(frame, (np.minimum(inside["p"], 1), inside["y"] // side, inside["x"] // side), 1)
    return frame


def _of_splits(name: str, options: dict[str, Any]) -> Look:
    splits = load_data_set(name, **options)
    labels = np.concatenate([data.labels for data in splits.parts.values()])
    counts = np.bincount(labels, minlength=len(splits.classes)).tolist()
    parts = ", ".join(f"{part}: {len(data)}" for part, data in splits.parts.items())
    look = Look(name, splits.kind, dict(zip(splits.classes, counts, strict=True)), len(labels), len(labels))
    look.notes = [parts, *splits.notes]
    train = splits.train
    if isinstance(train, Recordings):
        look.sensor = look.reaches = train.sensor.width, train.sensor.height
        look.events, look.formats = train.sizes, {"events": len(train)}
        look.lengths = np.array([int(train[i]["t"][-1]) if len(train[i]) else 0 for i in range(len(train))], np.int64)
        look.brighter = float(np.count_nonzero(train.events["p"])) / max(1, len(train.events))
        for number in range(len(train)):
            label = splits.classes[int(train.labels[number])]
            _draw(look, label, Recording(train[number], "memory", train.sensor))
    else:
        look.shape = tuple(train.frames.shape[1:])
        look.reaches = int(look.shape[-1]), int(look.shape[-2])
        for number, label in enumerate(splits.classes[int(each)] for each in train.labels):
            if _wanted(look, label):
                frames = np.abs(train.frames[number].astype(np.int64)).reshape(-1, *look.shape[-3:])
                look.pictures.setdefault(label, []).append(frames.sum(0))
    return look


SIDE = 64  # pixels of a network's input that need no thought
DAMAGED = "data.options.damaged"
MADE_FOR = {"events": "digits-saccade", "frames": "digits-saccade", "images": "digits-static"}  # own data of a kind


def suggest(look: Look) -> None:
    """Add a configuration and settings to ``look``, or the reason why there can be no training on this data."""
    fitting = [name for name, each in shipped().items() if each["tree"]["data"]["name"] == look.name]
    look.configuration = min(fitting, key=lambda name: "cpu" not in name, default=MADE_FOR[look.kind])
    look.suggested = {} if fitting else {"data.name": look.name}
    if look.name in DATA_SETS:
        return
    if look.kind == "frames":  # they are time steps already
        look.suggested |= {"data.bins": None, "data.duration_ms": None, "data.clip": None}
    elif look.kind == "events":
        _suggest_for_events(look)
    try:
        try:
            _try(look)
        except AxonnxError as fault:
            if DAMAGED not in fault.settings:  # of a large folder, some recordings are read here for the first time
                raise
            look.suggested |= fault.settings
            _try(look)
    except AxonnxError as fault:
        look.fault = str(fault)


def _suggest_for_events(look: Look) -> None:
    look.suggested |= binning_for(look.lengths)
    width, height = look.size
    if look.sensor is None:
        look.suggested["data.options.sensor"] = f"{width}x{height}"
    if look.damaged:
        look.suggested[DAMAGED] = "skip"
    shrink = -(-max(width, height) // SIDE)
    if shrink > 1:
        look.suggested["data.resize"] = f"{-(-width // shrink)}x{-(-height // shrink)}"


def _try(look: Look) -> None:
    """Do what a training does before its first batch."""
    if Path(look.name).is_file() and look.kind == "events":
        raise AxonnxError(f"{look.name} is one recording; training takes a folder with a folder for each class")
    config = read_config(look.configuration, look.suggested)
    prepared = prepare(config.data)
    make_network(config, prepared)
    if prepared.binning is not None and isinstance(prepared.splits.train, Recordings):
        clip = _clip_for(prepared.splits.train, prepared.binning)
        if clip != prepared.binning.clip:
            look.suggested["data.clip"] = clip


def _clip_for(data: Recordings, binning: Binning) -> int:
    """Return the clip of ``binning``, or the least larger one that cuts off no more than 1 % of the events."""
    counts = np.zeros(256, np.int64)  # of cells, by their value
    unclipped = binning.model_copy(update={"clip": 255})
    for _, made in in_blocks(data, unclipped):
        counts += np.bincount(made.frames.reshape(-1), minlength=256)
    larger = counts[::-1].cumsum()[::-1]  # cells of this value or a larger one
    cut_off = np.append(larger[::-1].cumsum()[::-1][1:], 0)  # events that each clip cuts off
    fine = np.flatnonzero(cut_off <= WORTH_A_WARNING * data.sizes.sum())
    return max(binning.clip, int(fine[0]))
