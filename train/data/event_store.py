"""Files of data sets: where they are looked for, and recordings converted once and kept on disk.

Converted recordings are for data sets of very many files, or larger than memory.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import read_arrays
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import EVENT
from axonnx.train.data.recordings import Recordings, digest_of

log = logging.getLogger(__name__)

# Part of every key: raise it when the same files begin to give other events.
VERSION = 2
EVENTS, INDEX = "events.bin", "index.npz"


class Sample(NamedTuple):
    """One labelled recording, or a window of one; `group` says who was recorded, −1 where that is not known.

    `source`, `number`, `start` and `stop` say where it was read: which source, which recording of it, which µs of it.
    """

    events: NDArray[np.void]
    label: int
    group: int = -1
    source: int = -1
    number: int = 0
    start: int = 0
    stop: int = 0


COLUMNS = Sample._fields[1:]
MOST_WINDOWS = 2**19  # of a part of a data set: 14 hours of 100 ms
Convert = Callable[[dict[str, Any]], Iterable[Sample]]


class Stored(NamedTuple):
    """What a store holds: the events on disk, the columns of the samples, and facts that the conversion noted."""

    events: NDArray[np.void]
    offsets: NDArray[np.int64]
    columns: dict[str, NDArray[np.int64]]
    facts: dict[str, Any]

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """Who was recorded, where that is known of all."""
        groups = self.columns["group"]
        return groups if (groups >= 0).all() else None


@dataclass(frozen=True)
class EventStore:
    """A folder of converted data sets, each under a hash of the names, sizes and dates of its source files."""

    folder: Path

    def recordings(
        self,
        sources: Sequence[Path],
        convert: Callable[[], Iterable[Sample]],
        classes: tuple[str, ...],
        sensor: Sensor,
        **known: Any,
    ) -> Recordings:
        """Open the recordings of the source files from disk; `convert` is called if they are not there yet.

        What is `known` beside the events (origin, places) goes into them as it is.
        """
        found = self.keep(sources, lambda _facts: convert())
        return Recordings(found.events, found.offsets, found.columns["label"], classes, sensor, found.groups, **known)

    def keep(self, sources: Sequence[Path], convert: Convert, how: Any = None) -> Stored:
        """Open the samples of the source files, converted as `how` says if they are not there yet."""
        return self.keep_as(_key(sources, how), convert)

    def keep_as(self, key: str, convert: Convert) -> Stored:
        """Open the samples known by this key; `convert` makes them, one at a time, and may note facts."""
        place = self.folder / f"events-{key[:32]}"
        if place.is_dir():
            try:
                return _opened(place)
            except AxonnxError as error:
                log.warning("converted recordings made again: %s", error)
                shutil.rmtree(place)
        self._fill(place, convert)
        return _opened(place)

    def _fill(self, place: Path, convert: Convert) -> None:
        """Convert into a temporary folder that then takes its place as a whole."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as temporary:
                made = Path(temporary) / "made"
                made.mkdir()
                _write(made, convert)
                if not place.is_dir():  # else another process was faster, with the same result
                    made.rename(place)
        except OSError as error:
            raise AxonnxError(
                f"{self.folder}: cannot keep converted recordings here ({error}); "
                "free some space, or set XDG_CACHE_HOME to a folder that can be written to"
            ) from error


def _key(sources: Sequence[Path], how: Any) -> str:
    facts = [(path.name, path.parent.name, path.stat().st_size, path.stat().st_mtime_ns) for path in sources]
    return digest_of({"version": VERSION, "sources": facts, "how": how})


def _write(place: Path, convert: Convert) -> None:
    facts: dict[str, Any] = {}
    sizes, rows, windows = [0], [], 0
    with open(place / EVENTS, "wb") as file:
        for sample in convert(facts):
            windows += sample.stop > sample.start
            if windows > MOST_WINDOWS:
                raise AxonnxError(
                    f"data.windows: the recordings give more than {MOST_WINDOWS:,} windows; make them longer (ms, "
                    f"events), or let them overlap less"
                )
            np.ascontiguousarray(sample.events).tofile(file)
            sizes.append(len(sample.events))
            rows.append(sample[1:])
    offsets = np.cumsum(sizes, dtype=np.int64)
    columns = dict(zip(COLUMNS, np.array(rows, np.int64).reshape(-1, len(COLUMNS)).T, strict=True))
    text = json.dumps(facts)
    checksum = np.array(_checksum(offsets, columns, text, _mapped(place, sum(sizes))))
    arrays: dict[str, Any] = {"offsets": offsets, "facts": np.array(text), "checksum": checksum, **columns}
    np.savez(place / INDEX, **arrays)


def _opened(place: Path) -> Stored:
    names = (["offsets"], ["facts"], ["checksum"], *([name] for name in COLUMNS))
    offsets, text, checksum, *rest = read_arrays(place / INDEX, *names)
    columns = dict(zip(COLUMNS, rest, strict=True))
    events = _mapped(place, int(offsets[-1]))
    if str(checksum) != _checksum(offsets, columns, str(text), events):
        raise AxonnxError(f"{place}: the contents do not match their checksum")
    return Stored(events, offsets, columns, json.loads(str(text)))


def _checksum(
    offsets: NDArray[np.int64], columns: Mapping[str, NDArray[np.int64]], facts: str, events: NDArray[np.void]
) -> str:
    return digest_of(["events", facts], offsets, *(columns[name] for name in COLUMNS), events)


def _mapped(place: Path, count: int) -> NDArray[np.void]:
    """Map the events as an array that is read from disk as it is used."""
    path = place / EVENTS
    size = path.stat().st_size if path.is_file() else -1
    if size != count * EVENT.itemsize:
        raise AxonnxError(f"{path}: {size} bytes; expected {count * EVENT.itemsize}")
    return np.memmap(path, EVENT, mode="r") if count else np.zeros(0, EVENT)


ROOT_VARIABLE = "AXONNX_DATA"


def data_root(root: str | Path | None, data_set: str) -> Path:
    """Return the folder that holds data sets: the argument, else the environment variable AXONNX_DATA."""
    chosen = root if root is not None else os.environ.get(ROOT_VARIABLE)
    advice = f"pass its root or set {ROOT_VARIABLE} to the folder that holds the data"
    if not chosen:
        raise AxonnxError(f"{data_set}: no data folder given; {advice}", options=("data_root",))
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise AxonnxError(f"{data_set}: {folder} is not a folder; {advice}", options=("data_root",))
    return folder


def find_files(
    root: str | Path | None, names: Sequence[str], *, folders: Sequence[str] = (".",), data_set: str, how: str
) -> list[Path]:
    """Return the paths of all `names`, in the first of the folders below the data folder that holds every one."""
    places = [data_root(root, data_set) / folder for folder in folders]
    for place in places:
        if all((place / name).is_file() for name in names):
            return [place / name for name in names]
    nearest = max(places, key=lambda place: sum((place / name).is_file() for name in names))
    missing = [name for name in names if not (nearest / name).is_file()]
    raise missing_files(data_set, names, places, f"{how}\n  still missing in {nearest}: {', '.join(missing)}")


def missing_files(data_set: str, expected: Iterable[object], looked_in: Iterable[object], how: str) -> AxonnxError:
    """Return an error that says which files are expected, where they were looked for and how to get them."""
    return AxonnxError(
        f"{data_set}: data files are missing"
        f"\n  expected: {', '.join(map(str, expected))}"
        f"\n  looked in: {', '.join(map(str, looked_in))}"
        f"\n  how to get them: {how}"
    )


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Faults found inside the block are reported with the file they were found in."""
    try:
        yield
    except AxonnxError as error:
        raise AxonnxError(f"{path}: {error}") from error
