"""Batches on their way to the network: bound to a device, prepared one ahead in a thread of their own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonnx.runtime.format.contract import unit_of
from axonnx.train.data.batches import Batches
from axonnx.train.distributed import World


@dataclass(frozen=True)
class Batch:
    """Input [T, B, C, H, W] or [B, C, H, W] as float32, and labels [B]."""

    x: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Feed:
    """A data set's batches as tensors; input is divided by 2^shift, which loses no bit."""

    batches: Batches
    shift: int
    device: torch.device

    def __len__(self) -> int:
        return len(self.batches)

    def epoch(self, epoch: int) -> Iterator[Batch]:
        """The batches of one epoch; the next is prepared while this one is used."""
        return self._ahead(iter(self.batches.epoch(epoch)))

    def part_of(self, world: World) -> Iterator[Batch]:
        """Of the batches in their order every n-th, beginning with number ``rank``: what this process evaluates."""
        numbers = range(world.rank, len(self.batches), world.size)
        return self._ahead(self.batches.make(0, number).batch for number in numbers)

    def _ahead(self, source: Iterator[tuple[NDArray[np.generic], NDArray[np.int64]]]) -> Iterator[Batch]:
        with ThreadPoolExecutor(1) as ahead:
            pending = ahead.submit(next, source, None)
            while (arrays := pending.result()) is not None:
                pending = ahead.submit(next, source, None)
                yield self._tensors(*arrays)

    def _tensors(self, x: NDArray[np.generic], labels: NDArray[np.int64]) -> Batch:
        values = torch.from_numpy(np.ascontiguousarray(x)).to(self.device, torch.float32)
        scaled = values if self.shift == 0 else values * unit_of(self.shift)
        return Batch(scaled, torch.from_numpy(labels).to(self.device))
