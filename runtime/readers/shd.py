"""Spiking Heidelberg Digits and its like: HDF5 with ragged `spikes/times` (seconds), `spikes/units`, and `labels`.

Times become microseconds by rounding to the nearest (the published files hold half-precision seconds, whose own steps
are 1 to 1000 µs). Units become x of a sensor 700 wide with one polarity.
"""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.bin_settings import Sensor
from axonnx.runtime.errors import AxonnxError
from axonnx.runtime.readers.binary import read_head, require_magic
from axonnx.runtime.readers.recording import Recording, events_from

MAGIC = b"\x89HDF\r\n\x1a\n"
SENSOR = Sensor(width=700, height=1, polarities=1)
EXPECTED = "spikes/times and spikes/units of one length"


def read_shd(path: str | Path) -> list[Recording]:
    """All recordings of the file, each with its label where the file has labels."""
    path = Path(path)
    times, units, labels = _columns(path)
    return [
        _recording(path, i, times[i], units[i], None if labels is None else int(labels[i])) for i in range(len(times))
    ]


def _columns(path: Path) -> tuple[NDArray, NDArray, NDArray | None]:
    """Ragged times, ragged units and labels."""
    require_magic(path, read_head(path), MAGIC, "HDF5")
    h5py = _h5py(path)
    try:
        with h5py.File(path, "r") as file:
            times, units = file["spikes/times"][:], file["spikes/units"][:]
            labels = file["labels"][:] if "labels" in file else None
    except Exception as error:  # h5py raises many kinds for files that are damaged or hold something else
        raise AxonnxError(
            f"{path}: is no SHD file ({error}); expected {EXPECTED}. Copy it again, or look into it with h5ls."
        ) from None
    if times.ndim != 1 or times.shape != units.shape or (labels is not None and labels.shape != times.shape):
        shapes = f"times {times.shape}, units {units.shape}, labels {None if labels is None else labels.shape}"
        raise AxonnxError(f"{path}: found {shapes}; expected {EXPECTED}, an entry a recording.")
    return times, units, labels


def _h5py(path: Path) -> Any:
    try:
        return importlib.import_module("h5py")
    except ImportError:
        raise AxonnxError(f"{path}: HDF5 needs h5py, which is not installed: pip install 'axonnx[io]'.") from None


def _recording(path: Path, index: int, times: Any, units: Any, label: int | None) -> Recording:
    where = Path(f"{path}[{index}]")
    seconds = np.asarray(times, np.float64)
    if seconds.shape != np.shape(units):
        raise AxonnxError(f"{where}: has {seconds.size} times but {np.size(units)} units; expected as many of each.")
    if seconds.size and not float(np.abs(seconds).max()) < 9e12:  # NaN fails too
        raise AxonnxError(f"{where}: has a time of {np.abs(seconds).max()}; expected finite seconds.")
    t = np.rint(seconds * 1e6).astype(np.int64)
    return Recording(events_from(where, t, np.asarray(units)), "shd", SENSOR, label=label)
