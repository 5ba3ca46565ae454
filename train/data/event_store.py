"""Recordings converted once and kept on disk: for data sets of very many files, or larger than memory."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import EVENT
from axonnx.train.data.digest import digest_of
from axonnx.train.data.npz import read_arrays
from axonnx.train.data.recordings import Recordings

log = logging.getLogger(__name__)

# Part of every key: raise it when the same files begin to give other events.
VERSION = 1
EVENTS, INDEX = "events.bin", "index.npz"


class Sample(NamedTuple):
    """One labelled recording; `group` says who was recorded, −1 where that is not known."""

    events: NDArray[np.void]
    label: int
    group: int = -1


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
        """The recordings of the source files, mapped from disk; `convert` is called where they are not there yet.

        What is `known` beside the events (origin, places) goes into them as it is.
        """
        place = self.folder / f"events-{_key(sources)[:32]}"
        if place.is_dir():
            try:
                return _opened(place, classes, sensor, known)
            except AxonnxError as error:
                log.warning("converted recordings made again: %s", error)
                shutil.rmtree(place)
        self._fill(place, convert)
        return _opened(place, classes, sensor, known)

    def _fill(self, place: Path, convert: Callable[[], Iterable[Sample]]) -> None:
        """Convert into a temporary folder that then takes its place as a whole."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as temporary:
                made = Path(temporary) / "made"
                made.mkdir()
                _write(made, convert())
                if not place.is_dir():  # else another process was faster, with the same result
                    made.rename(place)
        except OSError as error:
            raise AxonnxError(
                f"{self.folder}: cannot keep converted recordings here ({error}); "
                "free some space, or set XDG_CACHE_HOME to a folder that can be written to"
            ) from error


def _key(sources: Sequence[Path]) -> str:
    facts = [(path.name, path.parent.name, path.stat().st_size, path.stat().st_mtime_ns) for path in sources]
    return digest_of({"version": VERSION, "sources": facts})


def _write(place: Path, samples: Iterable[Sample]) -> None:
    sizes, labels, groups = [0], [], []
    with open(place / EVENTS, "wb") as file:
        for sample in samples:
            sample.events.tofile(file)
            sizes.append(len(sample.events))
            labels.append(sample.label)
            groups.append(sample.group)
    columns = [np.array(column, np.int64) for column in (np.cumsum(sizes), labels, groups)]
    checksum = digest_of("events", *columns, _mapped(place, sum(sizes)))
    np.savez(place / INDEX, offsets=columns[0], labels=columns[1], groups=columns[2], checksum=np.array(checksum))


def _opened(place: Path, classes: tuple[str, ...], sensor: Sensor, known: Mapping[str, Any]) -> Recordings:
    names = (["offsets"], ["labels"], ["groups"], ["checksum"])
    offsets, labels, groups, checksum = read_arrays(place / INDEX, *names)
    events = _mapped(place, int(offsets[-1]))
    if str(checksum) != digest_of("events", offsets, labels, groups, events):
        raise AxonnxError(f"{place}: the contents do not match their checksum")
    users = groups if (groups >= 0).all() else None
    return Recordings(events, offsets, labels, classes, sensor, users, **known)


def _mapped(place: Path, count: int) -> NDArray[np.void]:
    """The events as an array that is read from disk as it is used."""
    path = place / EVENTS
    size = path.stat().st_size if path.is_file() else -1
    if size != count * EVENT.itemsize:
        raise AxonnxError(f"{path}: {size} bytes; expected {count * EVENT.itemsize}")
    return np.memmap(path, EVENT, mode="r") if count else np.zeros(0, EVENT)
