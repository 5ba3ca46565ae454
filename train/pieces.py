"""A batch in pieces: less memory, the same gradient but for the order of additions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.models import Network, Output
from axonnx.models.normalisation import BatchNorm
from axonnx.train.distributed import World
from axonnx.train.feed import Batch
from axonnx.train.objective import Loss


@dataclass
class Piece:
    """Some samples of a batch, their share of it, and what their last pass gave."""

    batch: Batch
    share: float
    output: Output = field(init=False)
    loss: Loss = field(init=False)
    right: Tensor = field(init=False)  # how many
    rates: dict[str, Tensor] = field(init=False)

    def close(self, keep: bool) -> None:
        """After the backward pass: take what is reported, and let go of membranes unless they are to be kept."""
        self.right = (self.output.logits.detach().argmax(-1) == self.batch.labels).sum()
        self.rates = self.output.firing_rates()
        self.loss = replace(self.loss, total=self.loss.total.detach())
        if not keep:
            del self.output


def pieces_of(batch: Batch, count: int) -> list[Piece]:
    """So many pieces of nearly the same size, in order; fewer where there are not so many samples."""
    if count == 1:
        return [Piece(batch, 1.0)]
    count = min(count, len(batch.labels))
    parts = batch.x.tensor_split(count, batch.x.dim() - 4), batch.labels.tensor_split(count)
    return [Piece(Batch(x, labels), len(labels) / len(batch.labels)) for x, labels in zip(*parts, strict=True)]


def mean_squares(pieces: Sequence[Piece]) -> dict[str, Tensor]:
    """Return the mean r² of layers over the whole batch."""
    names = pieces[0].loss.squares
    return {name: torch.stack([each.share * each.loss.squares[name] for each in pieces]).sum() for name in names}


def refuse_statistics_of_pieces(network: Network, count: int) -> None:
    """Means over a piece are not those over its batch: batch normalisation would be another network."""
    if count > 1 and any(isinstance(module, BatchNorm) for module in network.modules()):
        raise AxonnxError(
            f"optimiser.accumulate is {count}, but the network has batch normalisation, whose means would be those of "
            f"the pieces. Leave it out, or take a variant without batch normalisation"
        )


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
