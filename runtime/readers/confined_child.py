"""Decode one file with a library that crafted files can crash, stall or fill with memory; run it, never import it.

    python -P confined_child.py BYTES SECONDS faery FILE TYPE      writes five arrays: size [2], and t, x, y, p
    python -P confined_child.py BYTES SECONDS hdf5 FILE NAME …     writes two arrays for each name, values and offsets
    python -P confined_child.py BYTES SECONDS tree FILE            writes an index, and an array for each entry of it

Arrays go to standard output as npy, one after the other. Offsets cut ragged values; they are empty if the values were
not ragged, and both arrays are empty if there is no data set of that name. The index of a tree is JSON text: attributes
by group, and for each data set its path and its texts (null if it holds numbers, which follow as an array). A refusal
is one line on standard error and exit code 3. Only numpy and the library are imported, so that the process starts in a
fraction of a second.

An HDF5 file may point to other files: by external storage, external links, and virtual data sets. It may also name
filters that are loaded as plug-ins. All of them are refused, soft links too, and sizes are checked before data is read.
"""

import importlib
import json
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

try:
    import resource
except ImportError:  # Windows has no such limits; the parent's limit on time holds there, too
    resource = None  # type: ignore[assignment]

REFUSED = 3
FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 4: "szip", 32000: "lzf"}  # none is loaded from elsewhere
MOST_OBJECTS, DEEPEST = 2**14, 64


def main(memory: int, seconds: int, library: str, path: str, *names: str) -> None:
    """Decode the file, with limits that the operating system enforces."""
    decode = {"faery": _with_faery, "hdf5": _with_hdf5, "tree": _with_tree}[library]
    module = importlib.import_module("faery" if library == "faery" else "h5py")
    if resource is not None:
        for kind, most in (("AS", memory), ("FSIZE", memory), ("CPU", seconds), ("CORE", 0)):
            _limit(getattr(resource, f"RLIMIT_{kind}"), most)
    for array in decode(module, path, names, memory // 2):
        np.save(sys.stdout.buffer, array, allow_pickle=False)
    sys.stdout.flush()


def _limit(kind: int, most: int) -> None:
    _, highest = resource.getrlimit(kind)
    most = most if highest == resource.RLIM_INFINITY else min(most, highest)
    resource.setrlimit(kind, (most, most))


def _with_faery(faery: Any, path: str, names: tuple[str, ...], _most: int) -> list[Any]:
    # An EVT header may omit the sensor's size. No sensor is as large as this, so it shows that the size is unknown.
    stream = faery.events_stream_from_file(path, dimensions_fallback=(65535, 65535), file_type=names[0])
    size, events = stream.dimensions(), stream.to_array()
    return [np.array(size, np.int64), events["t"], events["x"], events["y"], events["p"].astype(np.uint8)]


def _with_hdf5(h5py: Any, path: str, names: tuple[str, ...], most: int) -> list[Any]:
    with h5py.File(path, "r") as file:
        found = {name: _found(h5py, file, name) for name in names}
        _check_sizes([data for data in found.values() if data is not None], most)
        return [array for name, data in found.items() for array in _column(h5py, name, data)]


def _found(h5py: Any, file: Any, name: str) -> Any:
    """Return the data set of a path, None if there is none; each step of the path is checked."""
    here = file
    for part in name.split("/"):
        if not isinstance(here, h5py.Group) or part not in here:
            return None
        here = _member(h5py, here, part)
    if not isinstance(here, h5py.Dataset):
        raise ValueError(f"{name} is not a data set of this file")
    return here


def _member(h5py: Any, group: Any, name: str) -> Any:
    """Return a group or a data set that is stored in this file, and nowhere else."""
    place = f"{group.name.rstrip('/')}/{name}"
    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        other = " of ".join(getattr(link, part) for part in ("path", "filename") if hasattr(link, part))
        raise ValueError(f"{place} is not a data set of this file: it is a link to {other}")
    found = group[name]
    if isinstance(found, h5py.Dataset):
        _check_storage(found, place)
    elif not isinstance(found, h5py.Group):
        raise ValueError(f"{place} is neither a group nor a data set")
    return found


def _check_storage(data: Any, place: str) -> None:
    if data.external or data.is_virtual:
        raise ValueError(f"{place} is not a data set of this file: its values are stored in another one")
    stored = data.id.get_create_plist()
    unknown = {stored.get_filter(i)[0] for i in range(stored.get_nfilters())} - FILTERS.keys()
    if unknown:
        known = ", ".join(FILTERS.values())
        raise ValueError(f"{place} is compressed by filter {min(unknown)}; expected {known} or none")


def _check_sizes(data: list[Any], most: int) -> None:
    """Refuse arrays that would take more than ``most`` bytes, before any is read."""
    size = sum(max(each.dtype.itemsize, 1) * math.prod(each.shape or ()) for each in data)
    if size > most:
        raise ValueError(f"its arrays take {size:,} bytes; at most {most:,} are accepted for a file of this size")


def _column(h5py: Any, name: str, found: Any) -> tuple[Any, Any]:
    if found is None:
        return np.empty(0), np.empty(0, np.int64)
    values = found[()]
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise ValueError(f"{name} has shape {np.shape(values)}; expected one entry for each recording")
    if values.dtype != object:
        return values, np.empty(0, np.int64)
    parts = [np.asarray(value) for value in values]
    if any(part.ndim != 1 or part.dtype.kind not in "iuf" for part in parts):
        raise ValueError(f"{name} holds something else than lists of numbers")
    return np.concatenate(parts or [np.empty(0)]), np.cumsum([0, *map(len, parts)], dtype=np.int64)


def _with_tree(h5py: Any, path: str, _names: tuple[str, ...], most: int) -> Iterator[Any]:
    with h5py.File(path, "r") as file:
        groups, data = _members(h5py, file)
        _check_sizes(list(data.values()), most)
        texts = {place: _texts(h5py, place, each) for place, each in data.items()}
        index = {
            "groups": {place: _attributes(place, group) for place, group in groups.items()},
            "data": list(texts.items()),
        }
        yield np.frombuffer(json.dumps(index).encode(), np.uint8)
        for place, each in data.items():
            yield np.empty(0) if texts[place] is not None else _numbers(place, each[()])


def _members(h5py: Any, file: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all groups and data sets by path. A group that is reached twice could contain itself."""
    groups, data, waiting = {"": file}, {}, [("", file)]
    seen: set[int] = set()
    while waiting:
        place, group = waiting.pop(0)
        for name in group:
            below = f"{place}/{name}" if place else name
            found = _member(h5py, group, name)
            at = h5py.h5o.get_info(found.id).addr
            if at in seen or below.count("/") >= DEEPEST or len(seen) >= MOST_OBJECTS:
                raise ValueError(
                    f"{below} is reached twice, lies more than {DEEPEST} groups deep, or there are more than "
                    f"{MOST_OBJECTS:,} groups and data sets"
                )
            seen.add(at)
            if isinstance(found, h5py.Group):
                groups[below] = found
                waiting.append((below, found))
            else:
                data[below] = found
    return groups, data


def _texts(h5py: Any, place: str, data: Any) -> Any:
    """Return the texts of a data set as nested lists; None if it holds numbers."""
    if data.shape is None or (data.dtype.kind not in "biuf" and h5py.check_string_dtype(data.dtype) is None):
        raise ValueError(f"{place} holds {data.dtype}; expected numbers or texts")
    return None if data.dtype.kind in "biuf" else np.asarray(data.asstr()[()], object).tolist()


def _numbers(place: str, values: Any) -> Any:
    found = np.asarray(values)
    if found.dtype.kind not in "biuf":
        raise ValueError(f"{place} holds {found.dtype}; expected numbers")
    return found


def _attributes(place: str, group: Any) -> dict[str, Any]:
    """Return the attributes of a group that are single texts or numbers; others have no meaning here."""
    if len(group.attrs) > DEEPEST:
        raise ValueError(f"{place} has {len(group.attrs)} attributes; at most {DEEPEST} are accepted")
    found = {}
    for name in group.attrs:
        kind = group.attrs.get_id(name)
        value = group.attrs[name] if kind.shape == () else None
        value = value.decode() if isinstance(value, bytes) else value
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, str | int | float):
            found[name] = value
    return found


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as fault:  # faery raises a bare Exception, or a panic, which is not an Exception
        sys.stderr.write(f"{type(fault).__name__}: {' '.join(str(fault).split())[:500]}\n")
        sys.exit(REFUSED)
