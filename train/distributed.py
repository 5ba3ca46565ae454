"""Several processes on one run, as ``torchrun`` starts them; one process is the plain case of the same code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from axonnx.base.errors import AxonnxError


@dataclass(frozen=True)
class World:
    """Which process this is, of how many."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def leads(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def wrap(self, network: nn.Module) -> nn.Module:
        """The network whose gradients are averaged over all processes."""
        return network if self.size == 1 else DistributedDataParallel(network)

    def wait(self) -> None:
        """Barrier across all processes."""
        if self.size > 1:
            dist.barrier()

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes, in all of them."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def mean(self, values: Mapping[str, Tensor], share: float) -> dict[str, float]:
        """Means over all samples, from each process's own and its ``balance``."""
        together = self.sum(torch.stack(list(values.values())).double() * share) / self.size
        return dict(zip(values, together.tolist(), strict=True))

    def balance(self, samples: int, device: torch.device) -> float:
        """What makes the mean over processes one over samples: this one's share of the batch, times their number."""
        if self.size == 1:
            return 1.0
        everywhere = self.sum(torch.tensor(float(samples), device=device))
        return samples * self.size / float(everywhere)

    def device(self, wanted: str) -> torch.device:
        """``auto`` takes this process's GPU, or the CPU where there is none."""
        if wanted == "auto":
            wanted = f"cuda:{self.local_rank}" if torch.cuda.is_available() else "cpu"
        try:
            return torch.empty(0, device=wanted).device
        except (RuntimeError, AssertionError) as fault:
            reason = str(fault).splitlines()[0]
            raise AxonnxError(f"device {wanted!r} cannot be used here: {reason}. Try auto or cpu") from None


@contextmanager
def world() -> Iterator[World]:
    """The process group that ``torchrun`` describes in the environment, or a world of one."""
    if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
        yield World()
        return
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    yield World(dist.get_rank(), dist.get_world_size(), local_rank)
    # Only where all went well, and all together: a process that fails must not wait for others, and one that leaves
    # while another still talks to it aborts that one.
    dist.barrier()
    dist.destroy_process_group()
