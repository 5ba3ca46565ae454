"""Labelled data as a file's network takes it: class folders of recordings, or frames; one recording is one sample.

A recording becomes the frames of its first window, from the origin that the contract names, as in training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.fingerprints import sha256_of, sha256_of_files
from axonnx.runtime.binning.recordings import bin_events
from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.network_input import window_length
from axonnx.runtime.readers import Recording, read_recordings
from axonnx.runtime.streams.fit import Fit
from axonnx.runtime.streams.frame_files import read_frames, read_labels
from axonnx.runtime.streams.sources import FileSource

BATCH = 16
PARTS = ("train", "validation", "test")
Batch = tuple[NDArray[np.integer], NDArray[np.int64]]  # integers [N, T, …] (T = 1 for images), labels [N]


@dataclass
class FirstWindows:
    """Recordings to the frames of their first windows, and what of them is in no frame."""

    contract: Contract
    fit: Fit = field(default_factory=Fit)
    events: int = 0
    outside: Outside = field(default_factory=Outside)
    dropped: dict[str, int] = field(default_factory=dict)

    def frames(self, recording: Recording, name: str) -> NDArray[np.uint8]:
        """The first window [T, C, H, W]."""
        binning = self.contract.input.binning
        assert binning is not None
        source = FileSource(name, recording).sorted()  # training takes events in the order of time
        adapter = self.fit.adapter(source, binning.sensor, self.contract.input.fit)
        binned = bin_events(adapter(source.recording.events), binning)
        self.events += len(recording.events)
        self.outside = self.outside + binned.outside
        for reason, count in adapter.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + count
        return binned.frames

    def left_out(self) -> dict[str, int]:
        """Events in no frame, by reason."""
        counts = dict(self.dropped)
        for reason, count in self.outside.as_dict().items():
            counts[reason] = counts.get(reason, 0) + count
        return {reason: count for reason, count in counts.items() if count}


@dataclass(frozen=True)
class LabelledData:
    """Labelled samples, and where they come from. They are in ``count`` pieces: files of recordings, or single samples.

    ``some(first, last)`` are the batches of pieces from number ``first`` up to ``last``, without it. Going through them
    counts what ``windows`` leave out.
    """

    source: str
    digest: Callable[[], str]
    count: int
    some: Callable[[int, int], Iterator[Batch]]
    windows: FirstWindows | None = None  # of events
    notes: tuple[str, ...] = ()

    @property
    def batches(self) -> Iterator[Batch]:
        """All of them."""
        return self.some(0, self.count)

    @cached_property
    def sha256(self) -> str:
        """Of the contents."""
        return self.digest()


def open_labelled(place: Path, contract: Contract, part: str | None = None, fit: Fit | None = None) -> LabelledData:
    """A folder of class folders, also one with parts train/ and test/ above them, or an npz of frames and labels."""
    if not place.is_dir():
        if part is not None:
            raise AxonnxError(
                f"{place}: a file has no parts; leave the part {part!r} out, all of its samples are taken"
            )
        return _frames(place, contract)
    named = _parts(place)
    if part is None and named:
        part = "test"
    if part is not None and part not in named:
        has = f"it has {', '.join(sorted(named))}" if named else "it has classes only, and all recordings are taken"
        raise AxonnxError(f"{place}: has no part {part!r}; {has}")
    if part is not None and named[part].is_file():
        return _frames(named[part], contract)
    return _folder(place if part is None else named[part], contract, fit or Fit())


def _parts(folder: Path) -> dict[str, Path]:
    """Parts of a data set: sub-folders, or npz files of frames; none where the sub-folders are classes."""
    names = {each.name for each in folder.iterdir() if not each.name.startswith(".")}
    if {"train.npz", "test.npz"} <= names:
        return {part: folder / f"{part}.npz" for part in PARTS if f"{part}.npz" in names}
    folders = {name for name in names if (folder / name).is_dir()}
    return {part: folder / part for part in folders} if {"test"} <= folders <= set(PARTS) else {}


def _frames(path: Path, contract: Contract) -> LabelledData:
    frames = read_frames(path, contract.input)
    labels = read_labels(path, len(frames), len(contract.classes))
    if labels is None:
        raise AxonnxError(f"{path}: holds no labels; expected an array labels [{len(frames)}] beside the frames")
    known = labels

    def some(first: int, last: int) -> Iterator[Batch]:
        edges = [*range(first, last, BATCH), last]
        return ((frames[at:end], known[at:end]) for at, end in pairwise(edges))

    return LabelledData(str(path), lambda: sha256_of(path), len(frames), some)


def _folder(folder: Path, contract: Contract, fit: Fit) -> LabelledData:
    window_length(contract, str(folder))  # refuses networks of frames
    files = [(label, file) for label, name in class_folders(folder, contract) for file in _recordings(folder / name)]
    if not files:
        raise AxonnxError(f"{folder}: there are no recordings in its class folders")
    found = {label for label, _ in files}
    absent = [name for label, name in enumerate(contract.classes) if label not in found]
    notes = (f"no recordings of {_few(absent)}",) if absent else ()
    windows = FirstWindows(contract, fit)

    def some(first: int, last: int) -> Iterator[Batch]:
        chosen = files[first:last]
        return batched(
            (windows.frames(each, str(file)), label) for label, file in chosen for each in read_recordings(file)
        )

    def digest() -> str:
        return sha256_of_files((file for _, file in files), folder)

    return LabelledData(str(folder), digest, len(files), some, windows, notes)


def class_folders(folder: Path, contract: Contract) -> list[tuple[int, str]]:
    """Labels and names of a folder's class folders; one that is not named after a class is refused."""
    names = sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    strangers = [name for name in names if name not in contract.classes]
    if strangers or not names:
        what = f"{_few(strangers)}: not a class of the network" if strangers else "no folders in it"
        raise AxonnxError(
            f"{folder}: {what}; expected a folder of recordings for each of its classes: {_few(contract.classes)}"
        )
    return [(contract.classes.index(name), name) for name in names]


def batched(samples: Iterator[tuple[NDArray[np.integer], int]], size: int = BATCH) -> Iterator[Batch]:
    """Single samples, several at a time."""
    frames: list[NDArray[np.integer]] = []
    labels: list[int] = []
    for sample, label in samples:
        frames.append(sample)
        labels.append(label)
        if len(labels) == size:
            yield np.stack(frames), np.array(labels, np.int64)
            frames, labels = [], []
    if labels:
        yield np.stack(frames), np.array(labels, np.int64)


def _recordings(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("[!.]*") if file.is_file())


def _few(names: tuple[str, ...] | list[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
