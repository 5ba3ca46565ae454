"""The collapse gap: how much accuracy the step from a Bayesian network to one that ships costs, measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.export.collapsed import Collapsed, CollapseSettings, collapse_network
from axonnx.models import MEAN_FIELD, Fire, Network, Sample
from axonnx.runtime.format.contract import InputContract, Measured
from axonnx.runtime.measure.metrics import wilson_interval

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
            "right": self.right,
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


def measure_ways(
    network: Network,
    collapsed: Collapsed,
    thresholds: Mapping[str, Tensor] | None,
    data: Sampled,
    measured: Measured,
    bayesian: bool,
    tell: Callable[[str], None] = lambda _line: None,
) -> list[Score]:
    """Every way to run the network, and last the file itself: what a contract states as its accuracy."""
    scores = gap_table(
        network,
        collapsed.input,
        data,
        wilson_interval,
        passes=measured.passes,
        seed=measured.seed,
        bayesian=bayesian,
        tell=tell,
    )
    settings = collapsed.settings
    if settings.prune is not None or settings.weights != "float32":
        unreduced = CollapseSettings(settings.mode, settings.members, settings.seed)
        plain = collapse_network(network, collapsed.input, unreduced, thresholds)
        scores.append(score_collapsed("before pruning and rounding", plain, data, measured.seed))
    return [*scores, score_collapsed(name_of_file(collapsed), collapsed, data, measured.seed)]


def score_collapsed(name: str, collapsed: Collapsed, data: Sampled, seed: int) -> Score:
    """Accuracy of a collapsed network; noise of a stochastic one is drawn from ``seed``."""
    noisy = collapsed.settings.mode == "stochastic"
    fire = Sample(torch.Generator().manual_seed(seed)) if noisy else MEAN_FIELD
    return score(name, predict_with([m.network for m in collapsed.members], fire), data, wilson_interval)


def name_of_file(collapsed: Collapsed) -> str:
    """What the file is called among the ways to run the network."""
    settings = collapsed.settings
    parts = [settings.mode, "calibrated" if collapsed.calibrated else ""]
    parts.append("" if settings.weights == "float32" else settings.weights)
    parts.append(f"pruned below {settings.prune:g}" if settings.prune is not None else "")
    return "this file: " + ", ".join(part for part in parts if part)


def accuracy_of(scores: Sequence[Score]) -> dict[str, Any]:
    """As a contract states it."""
    return {entry.name: entry.as_dict() for entry in scores}
