"""Layers of torch that see one sample at a time, inside a pass over a whole sequence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

# They count axes from a batch [B, …].
PER_SAMPLE = (nn.Flatten, nn.MaxPool2d, nn.AvgPool2d, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


@contextmanager
def time_as_batch(network: nn.Module) -> Iterator[None]:
    """While the block lasts, these layers take [T, B, …] as T·B samples, as they would step by step."""
    with ExitStack() as stack:
        for module in network.modules():
            if isinstance(module, PER_SAMPLE):
                stack.callback(_hooked(module))
        yield


def _hooked(module: nn.Module) -> Any:
    """Fold time into the batch before the layer, and unfold it after; what undoes both."""
    sizes: list[tuple[int, int]] = []

    def fold(_module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        sizes.append((given[0].shape[0], given[0].shape[1]))
        return (given[0].flatten(0, 1), *given[1:])

    def unfold(_module: nn.Module, _given: Any, out: Tensor) -> Tensor:
        unfolded: Tensor = out.unflatten(0, sizes.pop())
        return unfolded

    before, after = module.register_forward_pre_hook(fold), module.register_forward_hook(unfold)

    def remove() -> None:
        before.remove()
        after.remove()

    return remove
