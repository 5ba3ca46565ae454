"""Average pooling over power-of-two windows, on spikes and on currents."""

from __future__ import annotations

import torch.nn.functional as nnf
from torch import Tensor, nn

from axonnx.models.current import Current


class AveragePool2d(nn.Module):
    """The mean over window × window pixels of [… , C, H, W]; exact, for the window is a power of two."""

    def __init__(self, window: int) -> None:
        super().__init__()
        if window < 1 or window & (window - 1):
            raise ValueError(f"window is {window}; expected a power of two (an average over any other is not exact)")
        self.window = window

    def forward(self, x: Tensor) -> Tensor:
        """Graded spikes in steps of 1/window²."""
        flat = x.flatten(0, -4) if x.dim() > 4 else x
        pooled = nnf.avg_pool2d(flat, self.window)
        return pooled.unflatten(0, x.shape[:-3]) if x.dim() > 4 else pooled

    def current(self, current: Current) -> Current:
        """A pooled current: the variance of a mean of n independent positions is their mean variance over n."""
        variance = current.variance
        return Current(
            self(current.mean),
            None if variance is None else self(variance) / self.window**2,
        )

    def extra_repr(self) -> str:
        """The window."""
        return f"window={self.window}"
