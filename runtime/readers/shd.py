"""Read Spiking Heidelberg Digits: HDF5 with ragged `spikes/times` (seconds), `spikes/units`, and `labels`.

Times are rounded to the nearest microsecond. (The published files hold half-precision seconds in steps of 1 to
1000 µs.) Units become x of a sensor with 700 columns and one polarity.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Sensor
from axonnx.runtime.readers.binary import read_head, require_magic
from axonnx.runtime.readers.confined import read_confined
from axonnx.runtime.readers.recording import Recording, events_from

MAGIC = b"\x89HDF\r\n\x1a\n"
SENSOR = Sensor(width=700, height=1, polarities=1)
EXPECTED = "spikes/times and spikes/units of one length"


def read_shd(path: str | Path) -> list[Recording]:
    """Read all recordings of the file, each with its label if the file has labels."""
    path = Path(path)
    times, units, cuts, labels = _columns(path)
    return [
        _recording(path, i, times[start:stop], units[start:stop], None if labels is None else int(labels[i]))
        for i, (start, stop) in enumerate(pairwise(cuts.tolist()))
    ]


def read_speakers(path: Path) -> NDArray:
    """Return the speaker of every recording; an empty array if the file does not state it."""
    require_magic(path, read_head(path), MAGIC, "HDF5")
    return read_confined(path, "hdf5", "extra/speaker")[0]


def _columns(path: Path) -> tuple[NDArray, NDArray, NDArray, NDArray | None]:
    """Return times and units of all recordings, the offsets that cut both, and the labels."""
    require_magic(path, read_head(path), MAGIC, "HDF5")
    arrays = read_confined(path, "hdf5", "spikes/times", "spikes/units", "labels")
    times, cuts, units, other_cuts, labels, _ = arrays
    if not len(cuts) or not len(other_cuts):
        raise AxonnxError(f"{path}: is not an SHD file; expected {EXPECTED}. List its contents with h5ls.")
    wrong = len(labels) and (len(labels) != len(cuts) - 1 or labels.dtype.kind not in "iu")
    if len(cuts) != len(other_cuts) or wrong:
        counts = f"times {len(cuts) - 1}, units {len(other_cuts) - 1}, labels {len(labels)} of {labels.dtype}"
        raise AxonnxError(f"{path}: found {counts}; expected {EXPECTED}, one entry for each recording.")
    if not np.array_equal(cuts, other_cuts):
        i = int(np.argmax(cuts != other_cuts)) - 1
        have = f"{cuts[i + 1] - cuts[i]} times but {other_cuts[i + 1] - other_cuts[i]} units"
        raise AxonnxError(f"{path}[{i}]: has {have}; expected equal numbers. Copy the file again.")
    return times, units, cuts, labels if len(labels) else None


def _recording(path: Path, index: int, times: NDArray, units: NDArray, label: int | None) -> Recording:
    where = Path(f"{path}[{index}]")
    seconds = times.astype(np.float64)
    if seconds.size and not float(np.abs(seconds).max()) < 9e12:  # NaN fails too
        raise AxonnxError(f"{where}: has a time of {np.abs(seconds).max()}; expected finite seconds.")
    t = np.rint(seconds * 1e6).astype(np.int64)
    return Recording(events_from(where, t, units), "shd", SENSOR, label=label)
