"""Batches on their way to the network: made and bound to a device one ahead, in a thread of their own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonnx.runtime.format.contract import unit_of
from axonnx.runtime.format.network_input import scale_counts
from axonnx.train.data.batches import Batches
from axonnx.train.distributed import World

_COMPACT = (np.uint8, np.int8, np.int16, np.int32)  # types that a device makes float32 of, exactly
Arrays = tuple[NDArray[np.generic], NDArray[np.int64]]


@dataclass(frozen=True)
class Batch:
    """Input [T, B, C, H, W] or [B, C, H, W] as float32, and labels [B]."""

    x: Tensor
    labels: Tensor


class Waited(Iterator[Batch]):
    """Batches, and the seconds that whoever takes them has waited so far."""

    def __init__(self, source: Iterator[Batch]) -> None:
        self.source, self.seconds = source, 0.0

    def __next__(self) -> Batch:
        began = time.perf_counter()
        try:
            return next(self.source)
        finally:
            self.seconds += time.perf_counter() - began


@dataclass(frozen=True)
class Feed:
    """A data set's batches as tensors; counts are scaled if asked for, and divided by 2^shift, which loses no bit."""

    batches: Batches
    shift: int
    device: torch.device
    scale_to: int | None = None

    def __len__(self) -> int:
        return len(self.batches)

    def epoch(self, epoch: int) -> Waited:
        """Go through the batches of one epoch; the next is made while this one is used."""
        return Waited(self._ahead(iter(self.batches.epoch(epoch))))

    def part_of(self, world: World) -> Iterator[Batch]:
        """Of the batches in their order every n-th, beginning with number ``rank``: what this process evaluates."""
        numbers = range(world.rank, len(self.batches), world.size)
        return self._ahead(self.batches.make(0, number).batch for number in numbers)

    def _ahead(self, source: Iterator[Arrays]) -> Iterator[Batch]:
        made = (self._tensors(*arrays) for arrays in source)
        with ThreadPoolExecutor(1) as ahead:
            pending = ahead.submit(next, made, None)
            while (batch := pending.result()) is not None:
                pending = ahead.submit(next, made, None)
                yield batch

    def _tensors(self, x: NDArray[np.generic], labels: NDArray[np.int64]) -> Batch:
        if self.scale_to is not None:
            x = scale_counts(x if x.ndim == 5 else x[np.newaxis], self.scale_to).reshape(x.shape)
        unit = np.float32(unit_of(self.shift))
        if self.device.type == "cpu":
            values = np.ascontiguousarray(x, np.float32)
            if self.shift:
                values *= unit  # of this batch alone: Batches made it
            return Batch(torch.from_numpy(values), torch.from_numpy(labels))
        compact = x if x.dtype in _COMPACT else x.astype(np.float32)
        there = self._sent(torch.from_numpy(np.ascontiguousarray(compact))).float()
        return Batch(there * float(unit) if self.shift else there, self._sent(torch.from_numpy(labels)))

    def _sent(self, tensor: Tensor) -> Tensor:
        """Copy to the device from pinned memory, where nobody has to wait for it: counts travel as bytes."""
        pinned = tensor.pin_memory() if torch.cuda.is_available() else tensor
        return pinned.to(self.device, non_blocking=True)
