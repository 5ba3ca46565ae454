"""A batch in pieces: less memory, the same gradient but for the order of additions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.models import Network, Output
from axonnx.models.normalisation import BatchNorm
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
