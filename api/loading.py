"""Data from anywhere: a path, a data set's name, a run folder, arrays, or data set objects.

``samples_for`` opens it as one network takes it. ``load_data`` and ``describe_data`` look at it without a network.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.measure.samples import Batch, FirstWindows, Samples, batched, open_samples, samples_of_objects
from axonnx.runtime.readers import Recording
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.frame_files import as_steps

if TYPE_CHECKING:
    from axonnx.train.build import Prepared
    from axonnx.train.data.splits import Data
    from axonnx.train.looking import Look


def load_data(data: str | os.PathLike[str], part: str = "test") -> Data:
    """Load one part of a data set. Needs ``axonnx[train]``.

    Args:
        data: The name of a data set, a folder of recordings with a folder for each class, or an npz of frames.
        part: train, validation or test.

    Returns:
        ``Recordings``, whose items are event arrays, or ``Frames``; both have ``labels`` and ``classes``.

    Raises:
        AxonnxError: If there is no such data, or no such part of it.

    Examples:
        >>> test = axonnx.load_data("digits-saccade")
        >>> len(test), test[0].dtype.names, int(test.labels[0])
        (360, ('t', 'x', 'y', 'p'), 1)
    """
    from axonnx.train.data.registry import load_data_set

    return _part(os.fspath(data), load_data_set(os.fspath(data)).parts, part)


def describe_data(data: str, *, limit: int = 200) -> Look:
    """Look at data before anything is trained: formats, sensor, lengths, events, classes, some samples.

    Own data is prepared once as a training does it, so that a training with the suggested settings begins.

    Args:
        data: A folder of recordings by class, a recording, an npz of frames, or the name of a data set.
        limit: Recordings of a folder to read.

    Returns:
        What was found; its ``configuration`` and its ``settings()`` fit a training on this data.

    Raises:
        AxonnxError: If there is nothing to read.

    Examples:
        >>> found = axonnx.describe_data("recording.npz")
        >>> found.kind, found.sensor
        ('events', (16, 16))
    """
    from axonnx.train.looking import look_at, suggest

    look = look_at(data, limit)
    suggest(look)
    return look


def samples_for(
    data: Any, contract: Contract, part: str | None = None, fit: Fit | None = None, *, labelled: bool = True
) -> Samples:
    """Open data as the network with this contract takes it; ``part`` is that of data with parts (default: test)."""
    if isinstance(data, Samples):
        return data
    if isinstance(data, str | os.PathLike):  # a Run is its folder
        return _named(os.fspath(data), contract, part, fit, labelled)
    if hasattr(data, "digest") and hasattr(data, "subset"):
        return _of_part(data, type(data).__name__, contract, fit)
    return samples_of_objects(data, contract, fit)


def _named(name: str, contract: Contract, part: str | None, fit: Fit | None, labelled: bool) -> Samples:
    place = Path(name)
    if (place / "config.toml").is_file():
        return _of_run(place, contract, part or "test")
    if not place.exists():
        return _data_set(name, contract, part or "test", fit)
    trained = _training_data(contract).get("name")
    alike = trained is not None and Path(trained).resolve().name == place.resolve().name
    if alike and replace(fit or Fit(), sensor=None) == Fit():
        divided = _as_in_training(place, contract, part or "test")
        if divided is not None:
            return divided
    found = open_samples(place, contract, part, fit, labelled=labelled)
    if part in (None, "train") and trained and Path(trained).resolve() == Path(found.source).resolve():
        return replace(found, notes=(*found.notes, "the network was trained on most of this data"))
    return found


def _as_in_training(place: Path, contract: Contract, part: str) -> Samples | None:
    """Open a part of one's own data as training divided it; None unless the digest proves that it is the same data."""
    try:
        from axonnx.train.build import prepare
        from axonnx.train.config.read import parse_config

        config = parse_config(contract.provenance.config or "", str(place)).data
        prepared = prepare(config.model_copy(update={"name": str(place)}))
    except (AxonnxError, ImportError):  # data that changed since may be no data for a training; torch may be missing
        return None
    if prepared.splits.digest != contract.provenance.data_digest:
        return None
    found = _of_prepared(prepared, str(place), contract, part)
    whole = sum(map(len, prepared.splits.parts.values()))
    return replace(
        found, notes=(f"{found.count:,} of {whole:,} samples: the {part} part, as training divided the data",)
    )


def _training_data(contract: Contract) -> dict[str, Any]:
    """Return the data section of the configuration that the network was trained with, if the file has it."""
    data: dict[str, Any] = tomllib.loads(contract.provenance.config or "").get("data", {})
    return data


def _part(name: str, parts: dict[str, Data], part: str) -> Data:
    if part not in parts:
        raise AxonnxError(f"{name}: has no part {part!r}; it has {', '.join(parts)}")
    return parts[part]


def _data_set(name: str, contract: Contract, part: str, fit: Fit | None) -> Samples:
    """Open a part of a data set by name, loaded as in the file's own training if that was on it."""
    from axonnx.train.data.registry import load_data_set

    trained = _training_data(contract)
    own = trained if trained.get("name") == name else {}
    splits = load_data_set(name, root=own.get("root"), **own.get("options", {}))
    return _of_part(_part(name, splits.parts, part), f"{name}, {part} part", contract, fit, name)


def _of_part(data: Data, source: str, contract: Contract, fit: Fit | None, name: str = "") -> Samples:
    """Keep the samples of the network's classes, with the numbers that these classes have in the network."""
    contract.needs_classes(source, "this data set, whose samples have classes,")
    strangers = [each for each in contract.classes if each not in data.classes]
    if strangers:
        raise AxonnxError(
            f"{name or source}: has no class {strangers[0]!r}, which is one of the network's; its classes are "
            f"{', '.join(data.classes)}"
        )
    from axonnx.train.data.splits import with_classes

    kept = with_classes(data, [data.classes.index(each) for each in contract.classes])
    others = len(data) - len(kept)
    notes = (f"{others} samples of classes that the network does not have are left out",) if others else ()
    windows = None if contract.input.binning is None else FirstWindows(contract, fit or Fit())
    where = name or source

    def some(first: int, last: int) -> Iterator[Batch]:
        numbers = range(first, last)
        return batched((_frames(kept, i, where, contract, windows), int(kept.labels[i])) for i in numbers)

    return Samples(source, lambda: kept.digest, len(kept), some, windows, notes, kept.labels)


def _frames(
    data: Data, number: int, where: str, contract: Contract, windows: FirstWindows | None
) -> NDArray[np.integer]:
    """One sample [T, …] as the network takes it."""
    from axonnx.train.data.recordings import Frames

    if isinstance(data, Frames) and windows is None:
        steps: NDArray[np.integer] = as_steps(data.frames[number : number + 1], contract.input, where)[0]
        return steps
    if not isinstance(data, Frames) and windows is not None:
        return windows.frames(Recording(data[number], where, data.sensor), where)
    takes = describe_input(contract.input) if windows is None else "events"
    holds = "frames or images" if isinstance(data, Frames) else "events"
    raise AxonnxError(f"{where}: holds {holds}; the network takes {takes}")


def _of_run(run: Path, contract: Contract, part: str) -> Samples:
    """Open a part of the data of a run, prepared as in its training."""
    from axonnx.train.build import prepare
    from axonnx.train.checkpoint import read_index
    from axonnx.train.run_folder import RunFolder

    config = RunFolder(run).config()
    found = _of_prepared(prepare(config.data), config.data.name, contract, part, run)
    return replace(found, checkpoint=read_index(run / "checkpoint")["files"]["weights"]["sha256"])


def _of_prepared(prepared: Prepared, name: str, contract: Contract, part: str, run: Path | None = None) -> Samples:
    from axonnx.train.data.batches import Batches

    data = _part(name, prepared.splits.parts, part)

    def some(first: int, last: int) -> Iterator[Batch]:
        few = data.subset(range(first, last))
        batches = Batches(few, binning=prepared.binning, shuffle=False, dtype="uint8", batch_size=16)
        for x, labels in batches.epoch(0):
            frames = np.asarray(x).swapaxes(0, 1) if prepared.steps else np.asarray(x)[:, np.newaxis]
            yield _fitting(frames, str(run or name), contract), labels

    source, digest, values = f"the {part} part of {name}", (lambda: data.digest), prepared.targets
    return Samples(source, digest, len(data), some, known=data.labels, values=values)


def _fitting(frames: NDArray[Any], run: str, contract: Contract) -> NDArray[np.integer]:
    entering = contract.input
    expected = (entering.steps or 1, *entering.shape)
    if frames.shape[1:] != expected:
        raise AxonnxError(
            f"{run}: its samples are {list(frames.shape[1:])} and the file takes {list(expected)}; name the run that "
            f"the file was exported from"
        )
    return frames
