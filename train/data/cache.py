"""Binned frames kept on disk, under a hash of the events and of the way they are binned."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.base.numpy_files import mapped_array, read_arrays
from axonnx.runtime.binning import BatchBinned, Binning, Outside, bin_batch
from axonnx.train.data.recordings import Frames, Recordings, digest_of

log = logging.getLogger(__name__)

# Part of every key: raise it when the same settings begin to give other frames.
VERSION = 2
EVENTS_AT_ONCE = 1 << 22
# Frames of more bytes are not kept, in memory or on disk: they are binned when they are needed.
MOST_BYTES = 1 << 30

Kept = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]  # frames, reasons, clipped


@dataclass(frozen=True)
class CachedFrames:
    """Recordings as frames, and what of each is not in them."""

    data: Frames
    reasons: NDArray[np.int64]  # [N, reasons of Outside]
    clipped: NDArray[np.int64]  # [N]

    @property
    def outside(self) -> NDArray[np.int64]:
        """[N]: events that are in no frame."""
        totals: NDArray[np.int64] = self.reasons.sum(1)
        return totals

    @property
    def outside_by_reason(self) -> Outside:
        """Those of all recordings together."""
        return Outside(*(int(count) for count in self.reasons.sum(0)))


def cache_folder() -> Path:
    """Where caches are kept: $XDG_CACHE_HOME/axonnx, or ~/.cache/axonnx."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "axonnx"


def can_be_kept(recordings: Recordings, binning: Binning) -> bool:
    """Whether all frames of these recordings are few enough to be kept."""
    return len(recordings) * binning.cells * binning.bins <= MOST_BYTES


def binned(recordings: Recordings, binning: Binning, folder: Path | None = None) -> CachedFrames:
    """All recordings as frames, mapped from the cache when they are there; a damaged cache is made again."""
    path = (folder or cache_folder()) / f"frames-{_key(recordings, binning)[:32]}.npz"
    found = _read(path, (len(recordings), *binning.shape)) if path.is_file() else None
    frames, reasons, clipped = found or _bin(recordings, binning)
    if found is None:
        _write(path, frames, reasons, clipped)
    return CachedFrames(Frames(frames, recordings.labels, recordings.classes, recordings.groups), reasons, clipped)


def _key(recordings: Recordings, binning: Binning) -> str:
    return digest_of({"version": VERSION, "data": recordings.digest, "binning": binning.model_dump()})


def _bin(recordings: Recordings, binning: Binning) -> Kept:
    frames, clipped = np.zeros((len(recordings), *binning.shape), np.uint8), np.zeros(len(recordings), np.int64)
    reasons = np.zeros((len(recordings), len(Outside().as_dict())), np.int64)
    for chosen, made in in_blocks(recordings, binning):
        frames[chosen], clipped[chosen] = made.frames, made.clipped
        reasons[chosen] = [list(each.as_dict().values()) for each in made.outside]
    return frames, reasons, clipped


def in_blocks(recordings: Recordings, binning: Binning) -> Iterator[tuple[NDArray[np.int64], BatchBinned]]:
    """Take some recordings at a time, by number: binning needs several numbers for each event and frame."""
    cost = np.cumsum(recordings.sizes + binning.bins * binning.cells // 16) // EVENTS_AT_ONCE
    for number in np.unique(cost):
        chosen = np.flatnonzero(cost == number)
        yield chosen, bin_batch(*recordings.take(chosen), binning)


def _read(path: Path, shape: tuple[int, ...]) -> Kept | None:
    """Return what the file holds, or None and a line in the log if it cannot be trusted."""
    try:
        reasons, clipped, checksum = read_arrays(path, ["reasons"], ["clipped"], ["checksum"])
        frames = mapped_array(path, "frames")  # of which a process holds what its batches touch
        if frames.shape != shape or str(checksum) != digest_of("frames", frames, reasons, clipped):
            raise AxonnxError(f"{path}: the contents do not match their checksum")
    except AxonnxError as error:
        log.warning("cache made again: %s", error)
        return None
    return frames, reasons, clipped


def _write(path: Path, frames: NDArray[np.uint8], reasons: NDArray[np.int64], clipped: NDArray[np.int64]) -> None:
    """Keep the frames; a folder that cannot be written to costs time, not the run."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary, open(temporary, "wb") as file:
            checksum = np.array(digest_of("frames", frames, reasons, clipped))
            np.savez(file, frames=frames, reasons=reasons, clipped=clipped, checksum=checksum)
    except OSError as error:
        log.warning("binned frames are not cached: %s", error)
