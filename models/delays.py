"""Delays: a synapse behind a delay line hears its inputs of several time steps, with weights of its own for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from axonnx.models.maths.current import needs_spikes
from axonnx.models.run import DelayState, Run


class DelayLine(nn.Module):
    """x[t − d] for each delay d, side by side: neurons [… , N] become [… , delays · N], maps get more channels.

    The synapse behind it has weights for every delay: Σ_k W_k x[t − d_k]. Spikes are moved and nothing is computed, so
    delays cost no exactness. Before the first time step there was silence.
    """

    op = "DelayLine"

    def __init__(self, delays: Sequence[int]) -> None:
        super().__init__()
        self.delays = check_delays(delays)

    @property
    def longest(self) -> int:
        """D, the frames that it keeps."""
        return self.delays[-1]

    def forward(self, x: Tensor, run: Run) -> Tensor:
        """Delay [(T,) B, C, …]: return [(T,) B, delays · C, …]."""
        x = needs_spikes(x, run.name(self))
        state = cast("DelayState | None", run.state_of(self))
        return self._over_time(x, state, run) if run.sequence else self._step(x, state, run)

    def _over_time(self, frames: Tensor, state: DelayState | None, run: Run) -> Tensor:
        """Delay all time steps at once."""
        longest, steps = self.longest, len(frames)
        if state is None:
            earlier = frames.new_zeros(longest, *frames.shape[1:])
        else:  # the newest frame is its first
            earlier = state.delayed.unflatten(1, (longest, frames.shape[2])).movedim(1, 0).flip(0)
        known = torch.cat([earlier, frames])
        run.keep(self, DelayState(known[-longest:].flip(0).movedim(0, 1).flatten(1, 2)))
        return torch.cat([known[longest - d : longest - d + steps] for d in self.delays], 2)

    def _step(self, now: Tensor, state: DelayState | None, run: Run) -> Tensor:
        """Delay one time step, by slices of what arrives and of the frames before it, as a file does."""
        width, longest = now.shape[1], self.longest
        line = torch.cat([torch.zeros_like(now)] * longest, 1) if state is None else state.delayed
        known = torch.cat([now, line], 1)
        taken = torch.cat([known[:, d * width : (d + 1) * width] for d in self.delays], 1)
        run.keep(self, DelayState(known[:, : longest * width]))
        return taken

    def extra_repr(self) -> str:
        """Return the delays."""
        return f"delays={list(self.delays)}"


def check_delays(delays: Sequence[int]) -> tuple[int, ...]:
    """Return delays in time steps; refuse them unless they ascend, each once, and the longest is more than 0."""
    found = tuple(int(delay) for delay in delays)
    if not found or found[-1] < 1 or found[0] < 0 or list(found) != sorted(set(found)) or found != tuple(delays):
        raise ValueError(
            f"delays are {list(delays)}; expected whole time steps in ascending order, each once, e.g. [0, 5, 10]"
        )
    return found
