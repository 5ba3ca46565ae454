"""HDF5 and what faery decodes: damaged files in the readers' own child processes."""

from __future__ import annotations

import random

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import check_events
from axonnx.runtime.readers import read_recordings
from tests.fuzz.harness import shared_folder
from tests.fuzz.numbers import damage
from tests.fuzz.recording_samples import SIDE, some_events

NAME = "confined readers"
_SAMPLES: dict[str, bytes] = {}


def setup() -> None:
    """Files by the libraries themselves, as far as they are installed."""
    folder = shared_folder() / "confined"
    if not folder.exists():
        folder.mkdir()
        _write_hdf5(folder / "digits.h5")
        _write_faery(folder)
    _SAMPLES.update({path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.stat().st_size})


def material(seed: int) -> bytes:
    """The file of a case."""
    return _case(seed)[1]


def case(seed: int) -> str:
    """Refused, or events."""
    name, data = _case(seed)
    path = shared_folder() / name
    path.write_bytes(data)
    try:
        for recording in read_recordings(path):
            check_events(recording.events)
    except AxonnxError:
        return "refused"
    return "accepted"


def _case(seed: int) -> tuple[str, bytes]:
    rng = random.Random(seed)
    name = rng.choice(list(_SAMPLES))
    return name, damage(rng, _SAMPLES[name])


def _write_hdf5(path: object) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for name, kind in (("times", np.float16), ("units", np.int64)):
            data = file.create_dataset(f"spikes/{name}", (3,), h5py.vlen_dtype(kind))
            for i in range(3):
                data[i] = np.arange(20 * i) / 100 if name == "times" else np.arange(20 * i)
        file["labels"] = np.arange(3)


def _write_faery(folder: object) -> None:
    import faery

    events = some_events()
    array = np.empty(len(events), faery.EVENTS_DTYPE)
    for name in "txyp":
        array[name] = events[name]
    stream = faery.events_stream_from_array(array, (SIDE, SIDE))
    for name in ("events.es", "events.aedat4", "evt3.raw"):
        stream.to_file(folder / name)  # type: ignore[operator]
