"""Decode one file with a library that crafted files can crash, stall or fill with memory; run it, never import it.

    python -P confined_child.py BYTES SECONDS faery FILE TYPE      writes five arrays: size [2], and t, x, y, p
    python -P confined_child.py BYTES SECONDS hdf5 FILE NAME …     writes two arrays for each name, values and offsets

Arrays go to standard output as npy, one after the other. Offsets cut ragged values; they are empty if the values were
not ragged, and both arrays are empty if there is no data set of that name. A refusal is one line on standard error and
exit code 3. Only numpy and the library are imported, so that the process starts in a fraction of a second.
"""

import importlib
import resource
import sys
from typing import Any

import numpy as np

REFUSED = 3


def main(memory: int, seconds: int, library: str, path: str, *names: str) -> None:
    """Decode the file, with limits that the operating system enforces."""
    decode = {"faery": _with_faery, "hdf5": _with_hdf5}[library]
    module = importlib.import_module({"faery": "faery", "hdf5": "h5py"}[library])
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_FSIZE, memory)
    _limit(resource.RLIMIT_CPU, seconds)
    _limit(resource.RLIMIT_CORE, 0)
    for array in decode(module, path, names):
        np.save(sys.stdout.buffer, array, allow_pickle=False)
    sys.stdout.flush()


def _limit(kind: int, most: int) -> None:
    _, highest = resource.getrlimit(kind)
    most = most if highest == resource.RLIM_INFINITY else min(most, highest)
    resource.setrlimit(kind, (most, most))


def _with_faery(faery: Any, path: str, names: tuple[str, ...]) -> list[Any]:
    # An EVT header may omit the sensor's size. No sensor is as large as this, so it shows that the size is unknown.
    stream = faery.events_stream_from_file(path, dimensions_fallback=(65535, 65535), file_type=names[0])
    size, events = stream.dimensions(), stream.to_array()
    return [np.array(size, np.int64), events["t"], events["x"], events["y"], events["p"].astype(np.uint8)]


def _with_hdf5(h5py: Any, path: str, names: tuple[str, ...]) -> list[Any]:
    with h5py.File(path, "r") as file:
        return [array for name in names for array in _column(h5py, file, name)]


def _column(h5py: Any, file: Any, name: str) -> tuple[Any, Any]:
    found = file.get(name)
    if found is None:
        return np.empty(0), np.empty(0, np.int64)
    if not isinstance(found, h5py.Dataset) or found.external or found.is_virtual or found.file.id != file.id:
        raise ValueError(f"{name} is not a data set of this file")
    values = found[()]
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise ValueError(f"{name} has shape {np.shape(values)}; expected one entry for each recording")
    if values.dtype != object:
        return values, np.empty(0, np.int64)
    parts = [np.asarray(value) for value in values]
    if any(part.ndim != 1 or part.dtype.kind not in "iuf" for part in parts):
        raise ValueError(f"{name} holds something else than lists of numbers")
    return np.concatenate(parts or [np.empty(0)]), np.cumsum([0, *map(len, parts)], dtype=np.int64)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as fault:  # faery raises a bare Exception, or a panic, which is not an Exception
        sys.stderr.write(f"{type(fault).__name__}: {' '.join(str(fault).split())[:500]}\n")
        sys.exit(REFUSED)
