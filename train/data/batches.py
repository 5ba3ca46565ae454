"""Batches of a data set, a fixed sequence for every seed and epoch, so that a run can be resumed anywhere in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binning, bin_batch
from axonnx.train.data.augment import Augmentation
from axonnx.train.data.augment_events import augment_events
from axonnx.train.data.augment_frames import augment_frames
from axonnx.train.data.recordings import Frames, Recordings
from axonnx.train.data.splits import Data, kind_of

ORDER = 0  # the stream of random numbers that an epoch's order is drawn from

Input = NDArray[np.float32] | NDArray[np.uint8]


class Batch(NamedTuple):
    """What the network sees: x is [T, B, C, H, W] with time and [B, C, H, W] without, labels are [B]."""

    x: Input
    labels: NDArray[np.int64]


class Made(NamedTuple):
    """A batch, the samples it is made of, and how many events of each are not in it.

    `outside` counts events beyond the last bin or moved off the sensor, [B]; frames have none.
    """

    batch: Batch
    indices: NDArray[np.int64]
    outside: NDArray[np.int64]


@dataclass(frozen=True)
class Batches:
    """Samples in batches of `batch_size`, in an order that depends on (seed, epoch) alone.

    With `shard=(rank, world)` this process gets its part of every batch of `batch_size` · world samples. No sample is
    in two shards, none is left out (but for `drop_last`), and every shard has the same number of batches: the last
    ones are smaller, or hold one sample more where otherwise a process would have none.
    """

    data: Data
    binning: Binning | None = None
    augmentation: Augmentation = Augmentation()  # noqa: RUF009 (frozen)
    batch_size: int = 32
    seed: int = 0
    shuffle: bool = True
    drop_last: bool = False
    shard: tuple[int, int] = (0, 1)
    centre: int | tuple[int, ...] = 0
    dtype: Literal["float32", "uint8"] = "float32"

    def __post_init__(self) -> None:
        _check_numbers(self)
        _check_input(self)

    def __len__(self) -> int:
        return len(self._edges) - 1

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Go through the batches of one epoch from number `start` on."""
        if not 0 <= start <= len(self):
            raise AxonnxError(f"batches: cannot start at batch {start}; an epoch has {len(self)}")
        order = self.order(epoch)
        return (self._make(epoch, number, order).batch for number in range(start, len(self)))

    def make(self, epoch: int, number: int) -> Made:
        """One batch, with what is known about how it was made."""
        return self._make(epoch, range(len(self))[number], self.order(epoch))

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Return the samples of all shards in the order of this epoch."""
        if not self.shuffle:
            return np.arange(len(self.data))
        return np.random.default_rng([self.seed, ORDER, epoch]).permutation(len(self.data))

    def fingerprints(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return 64 bits of a sha256 of each of these samples as input, before anything augments it."""
        plain = replace(
            self,
            data=self.data.subset(chosen),
            augmentation=Augmentation(),
            shuffle=False,
            shard=(0, 1),
            drop_last=False,
            dtype="float32",
        )
        inputs = (x.swapaxes(0, 1) if x.ndim == 5 else x for x, _ in plain.epoch(0))
        found = [hashlib.sha256(np.ascontiguousarray(each + 0.0).tobytes()).digest() for x in inputs for each in x]
        return np.frombuffer(b"".join(each[:8] for each in found), "<i8").astype(np.int64)

    @cached_property
    def _edges(self) -> list[int]:
        """Where the batches of all shards together begin and end in the epoch's order."""
        whole, rest = divmod(len(self.data), self.batch_size * self.shard[1])
        edges = [number * self.batch_size * self.shard[1] for number in range(whole + 1)]
        if rest and not self.drop_last:
            # Too few for every process to have one: they join the batch before.
            return [*(edges if rest >= self.shard[1] else edges[:-1]), len(self.data)]
        return edges

    def _make(self, epoch: int, number: int, order: NDArray[np.int64]) -> Made:
        first, last = self._edges[number : number + 2]
        rank, world = self.shard
        low, high = (first + (last - first) * part // world for part in (rank, rank + 1))
        indices = order[low:high]
        x, outside = self._input(indices, epoch)
        return Made(Batch(x, self.data.labels[indices]), indices, outside)

    def _input(self, indices: NDArray[np.int64], epoch: int) -> tuple[Input, NDArray[np.int64]]:
        if isinstance(self.data, Frames):
            changed, outside = self._frames(self.data, indices, epoch), np.zeros(len(indices), np.int64)
        else:
            changed, outside = self._bin(self.data, indices, epoch)
        timed = changed.swapaxes(0, 1) if changed.ndim == 5 else changed
        return self._numbers(timed), outside

    def _frames(self, data: Frames, indices: NDArray[np.int64], epoch: int) -> NDArray[np.uint8]:
        if self.augmentation.is_off:
            return data.frames[indices]
        return augment_frames(data.frames, indices, self.augmentation, self.seed, epoch)

    def _bin(
        self, data: Recordings, indices: NDArray[np.int64], epoch: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        assert self.binning is not None
        if self.augmentation.is_off:
            events, offsets = data.take(indices)
            lost = np.zeros(len(indices), np.int64)
        else:
            until = 2 * self.binning.duration_us  # the first event that is kept may come late
            events, offsets, lost = augment_events(data, indices, self.augmentation, self.seed, epoch, until)
        made = bin_batch(events, offsets, self.binning)
        return made.frames, lost + np.array([each.total for each in made.outside], np.int64)

    def _numbers(self, frames: NDArray[np.uint8]) -> Input:
        """Return the input's numbers; a difference of small integers is exact in float32."""
        if self.dtype == "uint8":
            return np.ascontiguousarray(frames)
        values = frames.astype(np.float32, order="C")
        if self.centre != 0:
            values -= np.asarray(self.centre, np.float32).reshape(-1, 1, 1)
        return values


def _check_numbers(batches: Batches) -> None:
    rank, world = batches.shard
    if batches.batch_size < 1 or batches.seed < 0:
        raise AxonnxError(f"batches: batch_size is {batches.batch_size} and seed {batches.seed}; at least 1 and 0")
    if not 0 <= rank < world:
        raise AxonnxError(f"batches: shard {batches.shard}; expected (rank, world) with 0 ≤ rank < world")
    least = world * batches.batch_size if batches.drop_last else world
    if len(batches.data) < least:
        raise AxonnxError(
            f"batches: {len(batches.data)} samples make no batch for {world} process(es) of batch size "
            f"{batches.batch_size}; {least} are needed"
        )


def _check_input(batches: Batches) -> None:
    data, binning = batches.data, batches.binning
    batches.augmentation.check(kind_of(data))
    if isinstance(data, Recordings):
        if binning is None or binning.sensor != data.sensor:
            found = "none" if binning is None else f"one for {binning.sensor!r}"
            raise AxonnxError(f"batches: events of {data.sensor!r} need a binning for that sensor; got {found}")
        if batches.centre != 0:
            raise AxonnxError("batches: centre is for frames and images; event counts start at 0")
    elif binning is not None:
        raise AxonnxError("batches: frames are binned already; leave binning out")
    elif not isinstance(batches.centre, int) and len(batches.centre) != data.channels:
        raise AxonnxError(f"batches: {len(batches.centre)} values of centre for {data.channels} channels")
    if batches.centre != 0 and batches.dtype == "uint8":
        raise AxonnxError("batches: centre gives negative values, which uint8 cannot hold; use float32")
