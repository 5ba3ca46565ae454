"""``evaluate_file``: accuracy and calibration of a file on labelled data, one's own or a data set by its name."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.fingerprints import sha256_of
from axonnx.runtime.engines.choose import EngineName
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.measure.evaluation import Evaluation, evaluate
from axonnx.runtime.measure.labelled_data import FirstWindows, LabelledData, batched, open_labelled
from axonnx.runtime.model import load
from axonnx.runtime.readers import Recording
from axonnx.runtime.streams.fit import Fit
from axonnx.runtime.streams.frame_files import as_steps

if TYPE_CHECKING:
    from axonnx.train.data.splits import Data


def evaluate_file(
    model: str | Path,
    data: str | Path,
    *,
    part: str | None = None,
    data_root: str | None = None,
    fit: Fit | None = None,
    engine: EngineName = "auto",
    threads: int = 1,
    seed: int = 0,
) -> Evaluation:
    """Accuracy, NLL, Brier score and calibration of a file on all of ``data``, with intervals and confusion.

    ``data`` is a folder of class folders, an npz of frames and labels, or a data set by its name, whose files are below
    ``data_root``; ``part`` is that of data that has parts (default: test). ``fit`` brings recordings of another sensor
    onto the network's. Only a data set by its name needs torch.
    """
    sha256 = sha256_of(model)
    loaded = load(model, engine, threads)
    if Path(data).exists():
        labelled = _own(Path(data), loaded.contract, part, fit)
    else:
        labelled = data_set(str(data), loaded.contract, part or "test", data_root)
    return evaluate(loaded, labelled, seed).model_copy(update={"model": str(model), "file_sha256": sha256})


def _own(place: Path, contract: Contract, part: str | None, fit: Fit | None) -> LabelledData:
    found = open_labelled(place, contract, part, fit)
    trained = _training_data(contract).get("name")
    if part in (None, "train") and trained and Path(trained).resolve() == Path(found.source).resolve():
        return replace(found, notes=(*found.notes, "the network was trained on most of this data"))
    return found


def _training_data(contract: Contract) -> dict[str, Any]:
    """The data section of the configuration that the network was trained with, as far as the file tells."""
    data: dict[str, Any] = tomllib.loads(contract.provenance.config or "").get("data", {})
    return data


def data_set(name: str, contract: Contract, part: str, root: str | None) -> LabelledData:
    """A part of a data set by name, loaded as in the file's own training where that was on it."""
    from axonnx.train.data.sets.registry import load_data_set

    trained = _training_data(contract)
    own = trained if trained.get("name") == name else {}
    splits = load_data_set(name, root=root or own.get("root"), **own.get("options", {}))
    if part not in splits.parts:
        raise AxonnxError(f"{name}: has no part {part!r}; it has {', '.join(splits.parts)}")
    strangers = [each for each in contract.classes if each not in splits.classes]
    if strangers:
        raise AxonnxError(
            f"{name}: has no class {strangers[0]!r}, which is one of the network's; its classes are "
            f"{', '.join(splits.classes)}"
        )
    data = splits.with_classes([splits.classes.index(each) for each in contract.classes]).parts[part]
    others = len(splits.parts[part]) - len(data)
    notes = (f"{others} samples of classes that the network does not have are left out",) if others else ()
    windows = None if contract.input.binning is None else FirstWindows(contract)
    samples = batched(_samples(name, data, contract, windows))
    return LabelledData(f"{name}, {part} part", data.digest, samples, windows, notes)


def _samples(
    name: str, data: Data, contract: Contract, windows: FirstWindows | None
) -> Iterator[tuple[NDArray[np.integer], int]]:
    """Every sample as the network takes it [T, …], with its label."""
    from axonnx.train.data.frames import Frames

    for number, label in enumerate(data.labels.tolist()):
        if isinstance(data, Frames) and windows is None:
            yield as_steps(data.frames[number : number + 1], contract.input, name)[0], label
        elif not isinstance(data, Frames) and windows is not None:
            yield windows.frames(Recording(data[number], name, data.sensor), name), label
        else:
            takes = describe_input(contract.input) if windows is None else "events"
            holds = "frames or images" if isinstance(data, Frames) else "events"
            raise AxonnxError(f"{name}: holds {holds}; the network takes {takes}")
