"""Read numpy files: `.npz` with arrays t, x, y, p (or one structured array `events`), `.npy` with a structured array.

An npz may hold several recordings: `offsets` [N + 1] cuts the arrays, `label` [N] holds their classes. `sensor` holds
width, height and polarities. Arrays of Python objects are refused, because reading them would run code from the file.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.base.numpy_files import NPY_MAGIC, NPZ_MAGIC, checked_arrays, most_bytes
from axonnx.runtime.events.arrays import EVENT, Events, Sensor, check_events
from axonnx.runtime.readers.binary import read_head, require_magic
from axonnx.runtime.readers.recording import Recording, events_from


def read_npy(path: Path) -> list[Recording]:
    """Read the one recording of a `.npy` file."""
    require_magic(path, read_head(path), NPY_MAGIC, "npy")
    array = checked_arrays(path)[""]
    if array.dtype.names is None:
        raise AxonnxError(
            f"{path}: holds a plain array of {array.dtype} {array.shape}; expected a structured array with fields"
            " t, x, y, p. Save an event array (make_events), or an npz with arrays of these names."
        )
    fields = {name: array[name] for name in array.dtype.names}
    return [Recording(_events(path, fields), "npy", notes=_notes(fields))]


def read_npz(path: Path) -> list[Recording]:
    """Read all recordings of an `.npz` file."""
    require_magic(path, read_head(path), NPZ_MAGIC, "npz")
    arrays = checked_arrays(path)
    structured = arrays.get("events")
    if structured is not None and structured.dtype.names is not None:
        arrays |= {name: structured[name] for name in structured.dtype.names}
    events, sensor = _events(path, arrays), _sensor(path, arrays.get("sensor"))
    notes, labels = _notes(arrays), arrays.get("label")
    return [
        Recording(events[start:stop], "npz", sensor, notes=notes, label=_label(path, labels, i, count))
        for i, start, stop, count in _cuts(path, arrays.get("offsets"), len(events))
    ]


def write_npz(path: str | Path, events: Events, sensor: Sensor | None = None) -> None:
    """Write one recording to an npz file. The file is complete, or not there at all.

    Args:
        path: File to write.
        events: Events, as `make_events` returns them.
        sensor: Sensor size to store with the events.
    """
    arrays = {name: check_events(events)[name] for name in ("t", "x", "y", "p")}
    if sensor is not None:
        arrays["sensor"] = np.array([sensor.width, sensor.height, sensor.polarities])
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _events(path: Path, arrays: Mapping[str, NDArray]) -> Events:
    missing = [name for name in ("t", "x") if name not in arrays]
    if missing:
        raise AxonnxError(
            f"{path}: has no {' and no '.join(missing)} among {', '.join(arrays) or 'no arrays'}; expected t"
            " (microseconds) and x, and y and p if the sensor has rows and polarities."
        )
    most = most_bytes(path) // EVENT.itemsize
    if arrays["t"].size > most:
        raise AxonnxError(
            f"{path}: states {arrays['t'].size:,} events; at most {most:,} are accepted for a file of its size."
        )
    return events_from(path, **{name: arrays[name] for name in ("t", "x", "y", "p") if name in arrays})


def _notes(arrays: Mapping[str, NDArray]) -> tuple[str, ...]:
    return tuple(f"no {name}: taken as 0" for name in "yp" if name not in arrays)


def _sensor(path: Path, sensor: NDArray | None) -> Sensor | None:
    if sensor is None:
        return None
    try:
        width, height, polarities = sensor.tolist()
        return Sensor(width=width, height=height, polarities=polarities)
    except (ValueError, TypeError):
        raise AxonnxError(
            f"{path}: sensor is {sensor.tolist()}; expected [width, height, polarities] with 1 or 2 polarities."
        ) from None


def _cuts(path: Path, offsets: NDArray | None, count: int) -> list[tuple[int, int, int, int]]:
    """Return (index, start, stop, number of recordings) for each recording."""
    edges = np.array([0, count]) if offsets is None else offsets
    rising = edges.ndim == 1 and edges.dtype.kind in "iu" and len(edges) > 0 and not np.any(edges[1:] < edges[:-1])
    if not rising or edges[0] != 0 or edges[-1] != count:
        raise AxonnxError(
            f"{path}: offsets {np.array2string(edges, threshold=8)} do not cut {count} events into recordings;"
            f" expected integers that start at 0, never decrease, and end at {count}."
        )
    return [(i, int(edges[i]), int(edges[i + 1]), len(edges) - 1) for i in range(len(edges) - 1)]


def _label(path: Path, labels: NDArray | None, index: int, count: int) -> int | None:
    if labels is None:
        return None
    labels = np.atleast_1d(labels)
    if labels.shape != (count,) or labels.dtype.kind not in "iu":
        raise AxonnxError(
            f"{path}: label is {labels.dtype} of shape {labels.shape};"
            f" expected an integer for each of {count} recordings."
        )
    return int(labels[index])
