"""The collapse gap: how much accuracy the step from a Bayesian network to one that ships costs, measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from axonnx.export.exporter import CollapseSettings, collapse_network
from axonnx.models import MEAN_FIELD, Fire, Network, Sample
from axonnx.runtime.contract import InputContract
from axonnx.runtime.errors import AxonnxError

Sampled = Sequence[tuple[Tensor, Tensor]]  # inputs and labels, batch by batch
Predict = Callable[[Tensor], Tensor]  # input -> class probabilities [B, classes]


@dataclass(frozen=True)
class Score:
    """Accuracy of one way to run a network, with its 95 % interval and NLL."""

    name: str
    right: int
    samples: int
    nll: float
    interval: tuple[float, float]

    @property
    def accuracy(self) -> float:
        """The share of right decisions."""
        return self.right / self.samples

    def as_dict(self) -> dict[str, object]:
        """For a file's metadata."""
        return {
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "nll": self.nll,
            "samples": self.samples,
        }


def score(name: str, predict: Predict, data: Sampled, interval: Callable[[int, int], tuple[float, float]]) -> Score:
    """Run ``predict`` over the data."""
    right, samples, loss = 0, 0, 0.0
    with torch.no_grad():
        for x, labels in data:
            probabilities = predict(x).double()
            right += int((probabilities.argmax(-1) == labels).sum())
            chosen = probabilities.gather(1, labels[:, None]).clamp(min=1e-30)
            loss -= float(chosen.log().sum())
            samples += len(labels)
    return Score(name, right, samples, loss / samples, interval(right, samples))


def predict_with(networks: Iterable[Network], fire: Fire = MEAN_FIELD, passes: int = 1) -> Predict:
    """Mean class probabilities of several networks or of several noisy passes."""
    each = list(networks)

    def predict(x: Tensor) -> Tensor:
        found = [torch.softmax(network(x, fire).logits, -1) for network in each for _ in range(passes)]
        return torch.stack(found).mean(0)

    return predict


def gap_table(
    network: Network,
    arriving: InputContract,
    data: Sampled,
    interval: Callable[[int, int], tuple[float, float]],
    *,
    passes: int,
    seed: int,
    bayesian: bool,
    tell: Callable[[str], None] = lambda _line: None,
) -> list[Score]:
    """The ways to run a trained network side by side: Bayesian predictive, mean-field, sampled, stochastic."""
    scores = []
    network = network.cpu().eval()
    if bayesian:
        noise = Sample(torch.Generator().manual_seed(seed))
        scores.append(score(f"bayesian ({passes} passes)", predict_with([network], noise, passes), data, interval))
    scores.append(score("mean-field, as trained", predict_with([network]), data, interval))
    if bayesian:
        drawn = collapse_network(network, arriving, CollapseSettings("sampled", passes, seed))
        members = [member.network for member in drawn.members]
        scores.append(score(f"sampled ({passes} members)", predict_with(members), data, interval))
        try:
            noisy = collapse_network(network, arriving, CollapseSettings("stochastic")).network
        except AxonnxError as fault:  # variances need a finer grid than means: another mode may well be possible
            tell(f"not measured: --collapse stochastic cannot be exact: {fault}")
            return scores
        noise = Sample(torch.Generator().manual_seed(seed))
        scores.append(score("stochastic (1 pass)", predict_with([noisy], noise), data, interval))
    return scores
