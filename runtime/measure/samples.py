"""``Samples``: data as the network of a file takes it, from recordings, frames, arrays or data set objects.

Every method that takes data and every ``--data`` opens it here. One recording is one sample: the frames of its first
window, from the origin that the contract names, as in training. Data sets by name and run folders need the training
part of the library; ``axonnx.loading`` opens them.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import sha256_of, sha256_of_files
from axonnx.base.numpy_files import checked_arrays
from axonnx.runtime.binning.recordings import bin_events
from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.events.arrays import as_events
from axonnx.runtime.format.contract import Contract, describe_results
from axonnx.runtime.format.network_input import describe_input, window_length
from axonnx.runtime.readers import Recording, read_recordings
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.frame_files import FRAMES, LABELS, as_steps, read_frames, read_labels
from axonnx.runtime.streams.sources import FileSource

BATCH = 16
UNKNOWN = -1  # the label of a sample whose class is not known
PARTS = ("train", "validation", "test")
Batch = tuple[NDArray[np.integer], NDArray[np.int64]]  # integers [N, T, …] (T = 1 for images), labels [N]


@dataclass
class FirstWindows:
    """Recordings to the frames of their first windows, and what of them is in no frame."""

    contract: Contract
    fit: Fit = field(default_factory=Fit)
    events: int = 0
    outside: Outside = field(default_factory=Outside)
    dropped: Counter[str] = field(default_factory=Counter)

    def frames(self, recording: Recording, name: str) -> NDArray[np.uint8]:
        """Return the first window [T, C, H, W]."""
        binning = self.contract.input.binning
        assert binning is not None
        source = FileSource(name, recording).sorted()  # training takes events in the order of time
        adapter = self.fit.adapter(source, binning.sensor, self.contract.input.fit)
        binned = bin_events(adapter(source.recording.events), binning)
        self.events += len(recording.events)
        self.outside = self.outside + binned.outside
        self.dropped.update(adapter.dropped)
        return binned.frames

    def left_out(self) -> dict[str, int]:
        """Events in no frame, by reason."""
        return dict(self.dropped + Counter(self.outside.as_dict()))


class Chosen(NamedTuple):
    """Some samples: frames [N, T, …] (T = 1 for images), labels [N] (None if they are not known), and a description."""

    frames: NDArray[np.integer]
    labels: NDArray[np.int64] | None
    source: str
    values: NDArray[np.float32] | None = None  # [N, values]: what is true, of a regression


@dataclass(frozen=True)
class Samples:
    """Samples with their labels, and where they come from.

    They are in ``count`` pieces: files of recordings, or single samples. ``some(first, last)`` gives the batches of the
    pieces from number ``first`` up to ``last``, without it, and counts what ``windows`` leave out. A label that is not
    known is −1. ``known`` has the labels of all samples where they are known before anything is read.
    """

    source: str
    digest: Callable[[], str]
    count: int
    some: Callable[[int, int], Iterator[Batch]]
    windows: FirstWindows | None = None  # of events
    notes: tuple[str, ...] = ()
    known: NDArray[np.int64] | None = None
    values: NDArray[np.float32] | None = None  # [labels, values]: what each label stands for, of a regression
    checkpoint: str | None = None  # sha256 of the weights, for the data of a run

    @property
    def batches(self) -> Iterator[Batch]:
        """All of them."""
        return self.some(0, self.count)

    @cached_property
    def sha256(self) -> str:
        """Of the contents."""
        return self.digest()

    def labels(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the labels of some pieces; labels of files are known only after the files are read."""
        if self.known is not None:
            return self.known[first:last]
        return np.concatenate([labels for _, labels in self.some(first, last)])

    def chosen(self, first: int, last: int, numbers: NDArray[np.int64]) -> Batch:
        """Return the samples with these numbers, counted from the first one of the piece ``first``."""
        if self.known is not None:  # a piece is a sample
            parts = [part for number in numbers for part in self.some(first + int(number), first + int(number) + 1)]
            return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        parts = list(self.some(first, last))
        frames, labels = (np.concatenate([part[side] for part in parts])[numbers] for side in (0, 1))
        return frames, labels

    def choose(self, limit: int | None = None, seed: int = 0) -> Chosen:
        """Read ``limit`` samples, chosen by class, or all of them."""
        edges = [*range(0, self.count, BATCH), self.count]
        labels = [self.labels(low, high) for low, high in pairwise(edges)]
        starts = [0, *accumulate(len(part) for part in labels)]
        numbers = choose_samples(np.concatenate(labels), limit, seed)
        parts = []
        for (low, high), start, stop in zip(pairwise(edges), starts, starts[1:], strict=False):
            inside = numbers[(numbers >= start) & (numbers < stop)] - start
            if len(inside):
                parts.append(self.chosen(low, high, inside))
        frames, found = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
        how = "stratified by class" if self.values is None else "chosen by value"
        which = "all" if len(found) == starts[-1] else f"of {starts[-1]:,}, {how}"
        source = f"{len(found):,} samples ({which}) of {self.source}"
        if len(found) and found.min() < 0:
            return Chosen(frames, None, source)
        return Chosen(frames, found, source, None if self.values is None else self.values[found])


def open_samples(
    place: Path, contract: Contract, part: str | None = None, fit: Fit | None = None, *, labelled: bool = True
) -> Samples:
    """Open a folder of class folders, also one with parts train/ and test/ above them, or an npz of frames and labels.

    Unless they have to be ``labelled``, also a recording, a folder of recordings without classes, or frames alone.
    """
    if not place.is_dir():
        if part is not None:
            raise AxonnxError(
                f"{place}: a file has no parts; leave the part {part!r} out, all of its samples are taken"
            )
        if contract.input.binning is not None and not labelled and not _holds_frames(place):
            return _recordings_of([(UNKNOWN, place)], place, contract, fit or Fit())
        return _frames(place, contract, labelled)
    named = _parts(place)
    if part is None and named:
        part = "test"
    if part is not None and part not in named:
        has = f"it has {', '.join(sorted(named))}" if named else "it has classes only, and all recordings are taken"
        raise AxonnxError(f"{place}: has no part {part!r}; {has}")
    if part is not None and named[part].is_file():
        return _frames(named[part], contract, labelled)
    return _folder(place if part is None else named[part], contract, fit or Fit(), labelled)


def _holds_frames(path: Path) -> bool:
    """Whether a file holds frames, also where the network takes events."""
    return path.suffix == ".npz" and path.is_file() and FRAMES[0] in checked_arrays(path, FRAMES[:1])


def samples_of_objects(data: Any, contract: Contract, fit: Fit | None = None) -> Samples:
    """Take samples from memory: ``(x, labels)``, a data set with ``len`` and ``[i]``, or batches of ``(x, labels)``.

    A sample is an array of events, a ``Recording``, or frames [T, …] or an image as integers. Torch's data sets and
    loaders and tonic's data sets are of this kind; nothing of them is imported.
    """
    name = type(data).__name__
    if isinstance(data, tuple) and len(data) == 2:
        given, labels = data
        x = given if isinstance(given, list) else np.asarray(given)
        return _of_pairs("arrays", zip(x, np.asarray(labels), strict=True), contract, fit)
    if hasattr(data, "dataset") and hasattr(data, "batch_size"):  # torch's DataLoader
        pairs = ((x, y) for batch in data for x, y in zip(np.asarray(batch[0]), np.asarray(batch[1]), strict=True))
        return _of_pairs(name, pairs, contract, fit)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return _of_pairs(name, (data[number] for number in range(len(data))), contract, fit)
    raise AxonnxError(
        f"data of type {name}; expected a path, the name of a data set, (x, labels), or a data set whose items are "
        f"(sample, label)"
    )


def _of_pairs(name: str, pairs: Iterable[Any], contract: Contract, fit: Fit | None) -> Samples:
    """Collect samples with labels, one after the other."""
    windows = None if contract.input.binning is None else FirstWindows(contract, fit or Fit())
    frames, labels, rows = [], [], []
    for number, (sample, label) in enumerate(pairs):
        if contract.units is not None:
            labels.append(number)
            rows.append(np.asarray(label, np.float32).reshape(len(contract.classes)))
            frames.append(_steps_of(sample, f"{name}, sample {number}", contract, windows))
            continue
        if not 0 <= int(label) < len(contract.classes):
            expected = f"expected 0 to {len(contract.classes) - 1}"
            raise AxonnxError(f"{name}: sample {number} has label {int(label)}; {expected}")
        frames.append(_steps_of(sample, f"{name}, sample {number}", contract, windows))
        labels.append(int(label))
    if not labels:
        raise AxonnxError(f"{name}: there are no samples")
    whole, known = np.stack(frames), np.array(labels, np.int64)
    values = np.stack(rows) if rows else None
    digest = hashlib.sha256(whole.tobytes() + (known if values is None else values).tobytes()).hexdigest
    return Samples(name, digest, len(known), _slices(whole, known), windows, known=known, values=values)


def _steps_of(sample: Any, where: str, contract: Contract, windows: FirstWindows | None) -> NDArray[np.integer]:
    """One sample [T, …] as the network takes it."""
    if isinstance(sample, Recording) or getattr(getattr(sample, "dtype", None), "names", None):
        if windows is None:
            raise AxonnxError(f"{where}: holds events; the network takes {describe_input(contract.input)}")
        recording = sample if isinstance(sample, Recording) else Recording(as_events(np.asarray(sample)), where)
        return windows.frames(recording, where)
    steps: NDArray[np.integer] = as_steps(np.asarray(sample)[np.newaxis], contract.input, where)[0]
    return steps


def _slices(frames: NDArray[np.integer], labels: NDArray[np.int64]) -> Callable[[int, int], Iterator[Batch]]:
    """Batches of arrays in memory."""

    def some(first: int, last: int) -> Iterator[Batch]:
        edges = [*range(first, last, BATCH), last]
        return ((frames[at:end], labels[at:end]) for at, end in pairwise(edges))

    return some


def _parts(folder: Path) -> dict[str, Path]:
    """Parts of a data set: sub-folders, or npz files of frames; none where the sub-folders are classes."""
    names = {each.name for each in folder.iterdir() if not each.name.startswith(".")}
    if {"train.npz", "test.npz"} <= names:
        return {part: folder / f"{part}.npz" for part in PARTS if f"{part}.npz" in names}
    folders = {name for name in names if (folder / name).is_dir()}
    return {part: folder / part for part in folders} if {"test"} <= folders <= set(PARTS) else {}


def _frames(path: Path, contract: Contract, labelled: bool) -> Samples:
    frames = read_frames(path, contract.input)
    if contract.units is not None:
        return _valued_frames(path, frames, contract)
    labels = read_labels(path, len(frames), len(contract.classes))
    if labels is None and labelled:
        raise AxonnxError(f"{path}: holds no labels; expected an array labels [{len(frames)}] beside the frames")
    known = np.full(len(frames), UNKNOWN) if labels is None else labels
    return Samples(str(path), lambda: sha256_of(path), len(frames), _slices(frames, known), known=known)


def true_values(path: str | Path, count: int, contract: Contract) -> NDArray[np.float32] | None:
    """Return the real values [N, values] that a file of frames holds for labels; None if it has no labels."""
    arrays = checked_arrays(path, LABELS)
    found = next((arrays[name] for name in LABELS if name in arrays), None)
    if found is None:
        return None
    table, expected = np.asarray(found).reshape(len(found), -1), (count, len(contract.classes))
    if table.dtype.kind not in "fiu" or table.shape != expected:
        shape = f"{table.dtype} {list(table.shape)}"
        raise AxonnxError(f"{path}: labels are {shape}; expected the values {list(expected)} of each sample")
    return table.astype(np.float32)


def _valued_frames(path: Path, frames: NDArray[np.integer], contract: Contract) -> Samples:
    """Frames with an array of real values [N] or [N, values] for labels."""
    values = true_values(path, len(frames), contract)
    if values is None:
        raise AxonnxError(f"{path}: holds no labels; expected {len(contract.classes)} values of each sample")
    known = np.arange(len(frames))
    some = _slices(frames, known)
    return Samples(str(path), lambda: sha256_of(path), len(frames), some, known=known, values=values)


def _folder(folder: Path, contract: Contract, fit: Fit, labelled: bool) -> Samples:
    window_length(contract, str(folder))  # refuses networks of frames
    if labelled or _has_classes(folder, contract):
        classes = class_folders(folder, contract) if contract.units is None else value_folders(folder, contract)
        found = ((label, file) for label, name in classes for file in sorted((folder / name).glob("[!.]*")))
        files = [(label, file) for label, file in found if file.is_file()]
    else:
        files = [(UNKNOWN, file) for file in sorted(folder.rglob("[!.]*")) if file.is_file()]
    if not files:
        raise AxonnxError(f"{folder}: there are no recordings in {'its class folders' if labelled else 'it'}")
    samples = _recordings_of(files, folder, contract, fit)
    return samples if contract.units is None or files[0][0] == UNKNOWN else replace(samples, values=_table(classes))


def value_folders(folder: Path, contract: Contract) -> list[tuple[int, str]]:
    """Return numbers and names of a folder's sub-folders, which are named by real values; others are refused."""
    names = sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    strangers = [name for name in names if len(numbers_of(name)) != len(contract.classes)]
    if strangers or not names:
        what = f"{_few(strangers)}: no value of the network" if strangers else "no folders in it"
        raise AxonnxError(
            f"{folder}: {what}; expected a folder of recordings for each value of "
            f"{describe_results(contract)}, named by it, e.g. 37.5"
        )
    return list(enumerate(names))


def numbers_of(name: str) -> list[float]:
    """Return the finite numbers that a name like "37.5" or "1.5,-2" is made of; none if it is another name."""
    try:
        found = [float(part) for part in name.split(",")]
    except ValueError:
        return []
    return found if all(map(math.isfinite, found)) else []


def _table(classes: Sequence[tuple[int, str]]) -> NDArray[np.float32]:
    return np.array([numbers_of(name) for _, name in classes], np.float32)


def _has_classes(folder: Path, contract: Contract) -> bool:
    """Whether its folders are named after classes of the network."""
    names = {each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith(".")}
    if contract.units is not None:
        return bool(names) and all(len(numbers_of(name)) == len(contract.classes) for name in names)
    return bool(names) and names <= set(contract.classes)


def _recordings_of(files: list[tuple[int, Path]], folder: Path, contract: Contract, fit: Fit) -> Samples:
    found = {label for label, _ in files}
    absent = (
        []
        if UNKNOWN in found or contract.units is not None
        else [name for label, name in enumerate(contract.classes) if label not in found]
    )
    notes = (f"no recordings of {_few(absent)}",) if absent else ()
    windows = FirstWindows(contract, fit)

    def some(first: int, last: int) -> Iterator[Batch]:
        chosen = files[first:last]
        return batched(
            (windows.frames(each, str(file)), label) for label, file in chosen for each in read_recordings(file)
        )

    def digest() -> str:
        return sha256_of_files((file for _, file in files), folder) if folder.is_dir() else sha256_of(folder)

    return Samples(str(folder), digest, len(files), some, windows, notes)


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


def batched(samples: Iterator[tuple[NDArray[np.integer], int]]) -> Iterator[Batch]:
    """Single samples, several at a time."""
    while taken := list(islice(samples, BATCH)):
        frames, labels = zip(*taken, strict=True)
        yield np.stack(frames), np.array(labels, np.int64)


def _few(names: tuple[str, ...] | list[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


Indices = NDArray[np.int64]


def choose_samples(labels: ArrayLike, count: int | None, seed: int = 0) -> Indices:
    """Rising indices of ``count`` samples, or of all; every class gives its share, rounded.

    The choice follows from labels, count and seed alone, on every machine. A larger count holds the smaller choice.
    """
    given = np.asarray(labels)
    if count is not None and count < 1:
        raise AxonnxError(f"a choice of {count} samples; expected 1 or more")
    if count is None or count >= len(given):
        return np.arange(len(given))
    return np.sort(_stratified_order(given, seed)[:count])


def _stratified_order(labels: NDArray[np.generic], seed: int) -> Indices:
    """All samples so that every beginning of the list is stratified.

    Sample k of the n of class c stands at (k + u)/n, with u = (c + ½)/classes: systematic sampling, class by class.
    Samples, and the classes by their first ones, come in the order of a hash of their numbers.
    """
    hashed = np.array([hashlib.sha256(f"{seed}:{number}".encode()).hexdigest() for number in range(len(labels))])
    ranked = [_ranked(np.flatnonzero(labels == label), hashed) for label in np.unique(labels)]
    ranked.sort(key=lambda members: hashed[members[0]])
    place = np.zeros(len(labels))
    for c, members in enumerate(ranked):
        place[members] = (np.arange(len(members)) + (c + 0.5) / len(ranked)) / len(members)
    return np.argsort(place, kind="stable")


def _ranked(members: Indices, hashed: NDArray[np.str_]) -> Indices:
    return members[np.argsort(hashed[members], kind="stable")]
