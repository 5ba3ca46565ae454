"""The collapse gap: how much accuracy the step from a Bayesian network to one that ships costs, measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.export.collapsed import Collapsed, CollapseSettings, collapse_network
from axonnx.models import MEAN_FIELD, Fire, Network, Sample
from axonnx.runtime.format.contract import AccuracyContract, InputContract, MeasuredOn, Way
from axonnx.runtime.measure.metrics import wilson_interval

Sampled = Sequence[tuple[Tensor, Tensor]]  # inputs and labels, batch by batch
Predict = Callable[[Tensor], Tensor]  # input -> class probabilities [B, classes]


def score(way: Way, predict: Predict, data: Sampled, draws: int = 1) -> AccuracyContract:
    """Run ``predict`` over the data."""
    right, samples, loss = 0, 0, 0.0
    with torch.no_grad():
        for x, labels in data:
            probabilities = predict(x).double()
            right += int((probabilities.argmax(-1) == labels).sum())
            chosen = probabilities.gather(1, labels[:, None]).clamp(min=1e-30)
            loss -= float(chosen.log().sum())
            samples += len(labels)
    return AccuracyContract(
        way=way,
        draws=draws,
        right=right,
        samples=samples,
        accuracy=right / samples,
        interval=wilson_interval(right, samples),
        nll=loss / samples,
    )


def predict_with(networks: Iterable[Network], fire: Fire = MEAN_FIELD, passes: int = 1) -> Predict:
    """Mean class probabilities of several networks or of several noisy passes."""
    each = list(networks)

    def predict(x: Tensor) -> Tensor:
        found = [torch.softmax(network(x, fire).logits, -1) for network in each for _ in range(passes)]
        return torch.stack(found).mean(0)

    return predict


def score_training(
    network: Network,
    arriving: InputContract,
    data: Sampled,
    *,
    passes: int,
    seed: int,
    bayesian: bool,
    tell: Callable[[str], None] = lambda _line: None,
) -> list[AccuracyContract]:
    """Run a trained network in several ways: Bayesian predictive, mean-field, sampled, stochastic.

    All are on the finest grid, whatever the file stores, so that the file is compared with the network as trained.
    """
    scores = []
    network = network.cpu().eval()
    if bayesian:
        noise = Sample(torch.Generator().manual_seed(seed))
        scores.append(score("bayesian", predict_with([network], noise, passes), data, passes))
    scores.append(score("mean_field", predict_with([network]), data))
    if bayesian:
        drawn = collapse_network(network, arriving, CollapseSettings("sampled", passes, seed, weights="float32"))
        members = [member.network for member in drawn.members]
        scores.append(score("sampled", predict_with(members), data, passes))
        try:
            noisy = collapse_network(network, arriving, CollapseSettings("stochastic", weights="float32")).network
        except AxonnxError as fault:  # variances need a finer grid than means: another mode may well be possible
            tell(f"not measured: the collapse stochastic cannot be exact: {fault}")
            return scores
        noise = Sample(torch.Generator().manual_seed(seed))
        scores.append(score("stochastic", predict_with([noisy], noise), data))
    return scores


def score_ways(
    network: Network,
    collapsed: Collapsed,
    thresholds: Mapping[str, Tensor] | None,
    data: Sampled,
    measured: MeasuredOn,
    bayesian: bool,
    tell: Callable[[str], None] = lambda _line: None,
) -> list[AccuracyContract]:
    """Every way to run the network, and last the file itself: what a contract states as its accuracy."""
    scores = score_training(
        network,
        collapsed.input,
        data,
        passes=measured.passes,
        seed=measured.seed,
        bayesian=bayesian,
        tell=tell,
    )
    settings = collapsed.settings
    if settings.prune is not None or settings.weights != "float32":
        unreduced = CollapseSettings(settings.mode, settings.members, settings.seed, weights="float32")
        plain = collapse_network(network, collapsed.input, unreduced, thresholds)
        scores.append(score_collapsed("unreduced", plain, data, measured.seed))
    return [*scores, score_collapsed("file", collapsed, data, measured.seed)]


def score_collapsed(way: Way, collapsed: Collapsed, data: Sampled, seed: int) -> AccuracyContract:
    """Accuracy of a collapsed network; noise of a stochastic one is drawn from ``seed``."""
    noisy = collapsed.settings.mode == "stochastic"
    fire = Sample(torch.Generator().manual_seed(seed)) if noisy else MEAN_FIELD
    members = [member.network for member in collapsed.members]
    return score(way, predict_with(members, fire), data, len(members))
