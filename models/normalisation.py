"""What scales a current: the paper's learnable scale and bias, or batch norm, as its baselines have it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from axonnx.models.maths.current import Current
from axonnx.models.run import Run
from axonnx.models.variant import Variant


class _Normaliser(nn.Module):
    """Scale and bias for each channel; with ``steps`` of their own for each of that many time steps."""

    def __init__(self, channels: int, spatial: int = 0, steps: int | None = None) -> None:
        super().__init__()
        self.spatial, self.steps = spatial, steps
        self.shape = (channels,) if steps is None else (steps, channels)
        self.scale = nn.Parameter(torch.ones(self.shape))
        self.bias = nn.Parameter(torch.zeros(self.shape))

    def _rows(self, x: Tensor, run: Run) -> slice:
        """Return the time steps of this pass, or everything if all steps share scale and bias."""
        if self.steps is None:
            return slice(None)
        length = x.shape[0] if run.sequence else 1
        if run.step + length > self.steps:
            raise ValueError(
                f"scale and bias of each time step were made for {self.steps} steps; this pass reaches step "
                f"{run.step + length}. Build the network with steps={run.step + length}, or give shorter input"
            )
        return slice(run.step, run.step + length)

    def _broadcast(self, row: Tensor, run: Run) -> Tensor:
        """Shape [C] or [T, C] to broadcast over [(T,) B, C, …]."""
        row = row.reshape(*row.shape, *(1,) * self.spatial)
        if self.steps is None:
            return row
        return row.unsqueeze(1) if run.sequence else row[0]


class ChannelScale(_Normaliser):
    """a ⊙ (m·o) + b for each channel, 1 and 0 at the start: all that a network without normalisation has.

    A synapse applies it to its weights, (a ⊙ m)·o + b: the form that is deployed. One for each time step, as the
    authors have it, acts on the current instead, and so it does in the file.
    """

    def forward(self, current: Current, run: Run) -> Current:
        """Return a[t] ⊙ I + b[t], with variance a[t]² ⊙ κ²."""
        rows, variance = self._rows(current.mean, run), current.variance
        scale, bias = self._broadcast(self.scale[rows], run), self._broadcast(self.bias[rows], run)
        return Current(current.mean * scale + bias, None if variance is None else variance * (scale * scale))

    def folded(self) -> tuple[Tensor, Tensor]:
        """Return a and b."""
        return self.scale, self.bias


class BatchNorm(_Normaliser):
    """Batch normalisation over everything but the channel axis.

    With ``steps`` it is batch norm through time (BNTT): statistics, scale and bias of their own for each of
    that many time steps. Statistics are of the mean current; noise is scaled as the mean is.
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, channels: int, spatial: int = 0, steps: int | None = None) -> None:
        super().__init__(channels, spatial, steps)
        self.register_buffer("running_mean", torch.zeros(self.shape))
        self.register_buffer("running_variance", torch.ones(self.shape))
        self.momentum, self.epsilon = 0.1, 1e-5

    def forward(self, current: Current, run: Run) -> Current:
        """Return g (I − mean) + bias with g = scale/√(variance + ε), and variance g² κ²."""
        x = current.mean
        rows = self._rows(x, run)
        if self.training:
            self._update(x.detach(), run, rows)
            mean, variance = self._moments(x, run)
        else:
            mean, variance = self.running_mean[rows], self.running_variance[rows]
        gain = self.scale[rows] * torch.rsqrt(variance + self.epsilon)
        shift, noise = self.bias[rows] - mean * gain, current.variance
        spread = self._broadcast(gain, run)
        scaled = x * spread + self._broadcast(shift, run)
        return Current(scaled, None if noise is None else noise * (spread * spread))

    def folded(self) -> tuple[Tensor, Tensor]:
        """Return the scale and bias of the running statistics."""
        gain = self.scale * torch.rsqrt(self.running_variance + self.epsilon)
        return gain, self.bias - self.running_mean * gain

    def _moments(self, x: Tensor, run: Run) -> tuple[Tensor, Tensor]:
        channel = x.dim() - 1 - self.spatial
        kept = {channel} if self.steps is None or not run.sequence else {0, channel}
        axes = [axis for axis in range(x.dim()) if axis not in kept]
        variance, mean = torch.var_mean(x, dim=axes, correction=0)
        if self.steps is not None and not run.sequence:
            return mean[None], variance[None]
        return mean, variance

    @torch.no_grad()
    def _update(self, x: Tensor, run: Run, rows: slice) -> None:
        mean, variance = self._moments(x, run)
        count = x.numel() / mean.numel()
        self.running_mean[rows] += self.momentum * (mean - self.running_mean[rows])
        unbiased = variance * (count / max(count - 1, 1))
        self.running_variance[rows] += self.momentum * (unbiased - self.running_variance[rows])


def make_normalisation(variant: Variant, channels: int, spatial: int) -> ChannelScale | BatchNorm | None:
    """Make the normaliser that ``variant`` asks for; None for plain weights."""
    if variant.normalisation == "none":
        return None
    steps = variant.steps if variant.normalisation.endswith("through_time") else None
    kind = ChannelScale if variant.normalisation.startswith("scale") else BatchNorm
    return kind(channels, spatial, steps)
