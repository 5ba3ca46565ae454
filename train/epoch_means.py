"""What an epoch's row of results is made of."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from axonnx.train.distributed import World
from axonnx.train.pieces import Piece

Row = dict[str, Any]


class EpochMeans:
    """Running sums of what an epoch's row reports."""

    def __init__(self) -> None:
        self.samples = 0
        self.batches = 0.0
        self.right: Tensor | float = 0.0
        self.totals: dict[str, Tensor] = {}

    def add(self, piece: Piece, norms: dict[str, Tensor], total: Tensor) -> None:
        """Add a batch, or a piece of one."""
        loss, rates = piece.loss, piece.rates
        self.samples += len(piece.batch.labels)
        self.batches += piece.share
        self.right = self.right + piece.right
        values = {
            "loss": loss.total,
            "cross_entropy": loss.cross_entropy,
            "kl": loss.kl,
            "gradient_norm": total,
            "rate": torch.stack(list(rates.values())).mean(),
            **{f"rate/{name}": rate for name, rate in rates.items()},
            **{f"gradient/{_layer(name)}": norm for name, norm in norms.items() if _is_weight(name)},
        }
        for name, value in values.items():
            self.totals[name] = self.totals.get(name, 0.0) + piece.share * value

    def shown(self) -> tuple[float, float, float]:
        """Loss, accuracy and firing rate so far."""
        mean = 1.0 / self.batches
        sums = [torch.as_tensor(value) for value in (self.totals["loss"], self.right, self.totals["rate"])]
        loss, right, rate = torch.stack([value.double() for value in sums]).tolist()  # one copy from the device
        return loss * mean, right / self.samples, rate * mean

    def means(self, world: World) -> Row:
        """Return the row's means, over all processes."""
        sums = [torch.as_tensor(total, dtype=torch.float64) for total in (self.right, *self.totals.values())]
        right, *totals = world.sum(torch.stack(sums)).tolist()
        counts = torch.tensor([self.samples, self.batches], dtype=torch.float64, device=sums[0].device)
        samples, batches = world.sum(counts).tolist()
        means = {name: total / batches for name, total in zip(self.totals, totals, strict=True)}
        shown = ("loss", "cross_entropy", "kl")
        first = {name: means.pop(name) for name in shown}
        return {**first, "train_accuracy": right / samples, **means}


def _is_weight(name: str) -> bool:
    return name.endswith(("raw_mean", "readout.weight"))


def _layer(name: str) -> str:
    return name.removesuffix(".posterior.raw_mean").removesuffix(".weight")
