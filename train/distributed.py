"""Several processes on one run, as ``torchrun`` starts them; one process is the plain case of the same code."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from axonnx.base.errors import AxonnxError

# What torch says where another process is not there any more.
GONE = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
    "Socket closed",
    "NCCL",
    "recvValue failed",
)


PATIENCE = timedelta(minutes=30)


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
        """Return the network whose gradients are averaged over all processes."""
        return network if self.size == 1 else DistributedDataParallel(network)

    def wait(self) -> None:
        """Barrier across all processes."""
        if self.size > 1:
            dist.barrier()

    def gather(self, value: Any) -> list[Any]:
        """Every process's value, by rank, in all of them."""
        everyone = [value] * self.size
        if self.size > 1:
            dist.all_gather_object(everyone, value)
        return everyone

    def same_buffers(self, network: nn.Module) -> None:
        """Give all processes the first one's buffers (running means of normalisation), as they are saved."""
        if self.size > 1:
            for buffer in network.buffers():
                dist.broadcast(buffer, 0)

    def sum(self, values: Tensor) -> Tensor:
        """Sum over all processes, in all of them."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def mean(self, values: Mapping[str, Tensor], share: float | Tensor) -> dict[str, float | Tensor]:
        """Means over all samples, from each process's own and its ``balance``; numbers on a CPU, else tensors."""
        together = self.sum(torch.stack(list(values.values())).double() * share) / self.size
        found = together.tolist() if together.device.type == "cpu" else together.unbind()
        return dict(zip(values, found, strict=True))

    def balance(self, samples: int, device: torch.device) -> float | Tensor:
        """Return what makes a mean over processes one over samples: the share of the batch times the processes.

        It is a number on a CPU, and a tensor on a device that would have to be waited for.
        """
        if self.size == 1:
            return 1.0
        everywhere = self.sum(torch.full((), float(samples), device=device))
        return samples * self.size / (float(everywhere) if device.type == "cpu" else everywhere.double())

    def device(self, wanted: str) -> torch.device:
        """``auto`` takes this process's GPU, or the CPU where there is none."""
        if wanted == "auto":
            wanted = f"cuda:{self.local_rank}" if torch.cuda.is_available() else "cpu"
        try:
            return torch.empty(0, device=wanted).device
        except (RuntimeError, AssertionError) as fault:
            reason = str(fault).splitlines()[0]
            raise AxonnxError(f"device {wanted!r} cannot be used here: {reason}. Try auto or cpu") from None


def group_options(local_rank: int, gpus: bool) -> dict[str, Any]:
    """Return how processes join: NCCL on GPUs, bound to this process's own, and gloo on CPUs.

    A process that waits longer than ``PATIENCE`` for the others gives up. It must outlast the slowest of them: the
    first process writes checkpoints while the others wait.
    """
    chosen = {"backend": "nccl", "device_id": torch.device("cuda", local_rank)} if gpus else {"backend": "gloo"}
    return {**chosen, "timeout": PATIENCE}


@contextmanager
def world() -> Iterator[World]:
    """Join the process group that ``torchrun`` describes in the environment, or make a world of one."""
    if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
        yield World()
        return
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    dist.init_process_group(**group_options(local_rank, torch.cuda.is_available()))
    with _ending_with_the_others():
        yield World(dist.get_rank(), dist.get_world_size(), local_rank)
    # Only where all went well, and all together: a process that fails must not wait for others, and one that leaves
    # while another still talks to it aborts that one.
    dist.barrier()
    dist.destroy_process_group()


@contextmanager
def _ending_with_the_others() -> Iterator[None]:
    """Say in plain words that another process died: torchrun ends all then, or talking to the dead one fails."""

    def ended(_number: int, _frame: FrameType | None) -> None:
        raise _lost("this one was told to end")

    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, ended) if main else None
    try:
        yield
    except RuntimeError as fault:
        said = next((word for word in GONE if word in str(fault)), None)
        if said is None:
            raise
        raise _lost(said) from None
    finally:
        if main:
            signal.signal(signal.SIGTERM, before)


def _lost(reason: str) -> AxonnxError:
    return AxonnxError(
        f"process {os.environ.get('RANK', '?')} of {os.environ['WORLD_SIZE']}: another process of this run died or "
        f"was ended ({reason}), and a run needs all of them. Why is said by that process or by torchrun. The last "
        f"checkpoint is intact: start all again and resume",
        options=("resume",),
    )
