"""``profile_file``: what a file costs on the test data of its run, or on one's own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.fingerprints import sha256_of
from axonnx.runtime.engines.choose import measuring_engine
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.measure.energy import Hardware, read_hardware
from axonnx.runtime.measure.labelled_data import open_labelled
from axonnx.runtime.measure.profile import profile
from axonnx.runtime.measure.profile_result import ProfileResult
from axonnx.runtime.measure.sample_choice import choose_samples
from axonnx.runtime.program.compilation import compile_file

Batches = Iterable[tuple[NDArray[np.float32], NDArray[np.int64]]]


class _Data(NamedTuple):
    """Labelled batches, the sha256 of the data they are of, and that of the run's weights where there is a run."""

    batches: Batches
    sha256: str
    checkpoint_sha256: str | None = None


def profile_file(
    model: str | Path,
    *,
    run: str | Path | None = None,
    data: str | Path | None = None,
    limit: int = 256,
    engine: str = "auto",
    hardware: Hardware | str | Path | None = None,
    seed: int = 0,
) -> ProfileResult:
    """Spikes, operations, memory, time and energy of a file, for one inference.

    It runs ``limit`` samples of all classes: test data of the run folder ``run``, or those in ``data``, an npz of
    frames and labels or class folders of recordings. ``hardware`` has the energies of operations, as a TOML file or a
    value (default: 45 nm); ``seed`` is that of a stochastic file's noise. Without a run no torch is needed.
    """
    if (run is None) == (data is None):
        raise AxonnxError(f"{model}: which data? A run, whose test data is taken, or data of your own: one of the two")
    table = hardware if isinstance(hardware, Hardware) else read_hardware(hardware)
    program = compile_file(model)
    measuring = measuring_engine(program, engine)
    found = _of_files(Path(data), program.contract, limit) if data is not None else _of_run(str(run), limit)
    return profile(measuring, found.batches, table, seed).model_copy(
        update={
            "model": str(model),
            "file_sha256": sha256_of(model),
            "checkpoint_sha256": found.checkpoint_sha256,
            "data_sha256": found.sha256,
        }
    )


def _of_run(run: str, limit: int) -> _Data:
    from axonnx.train.trained import open_run  # needs torch, which a device without a run does not have

    trained = open_run(run)
    batches = [(x.numpy(), labels.numpy()) for x, labels in trained.data("test", limit)]
    return _Data(batches, trained.prepared.splits.parts["test"].digest, trained.provenance().checkpoint)


def _of_files(place: Path, contract: Contract, limit: int) -> _Data:
    data = open_labelled(place, contract)
    parts = list(data.batches)
    frames, labels = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    chosen = choose_samples(labels, limit)
    x = to_input(frames[chosen].swapaxes(0, 1), contract.input)
    return _Data([(x if contract.kind == "spiking" else x[0], labels[chosen])], data.sha256)
