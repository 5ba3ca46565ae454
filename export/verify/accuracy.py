"""Decisions: the file's against the training network's on the same samples, and the accuracies that the file states."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonnx.export.verify.constants_check import round_weights
from axonnx.export.verify.free_running import draw_noise, engines
from axonnx.export.verify.observe import of_engine
from axonnx.export.verify.plain_figures import count
from axonnx.export.verify.structure import Findings, Subject
from axonnx.export.ways import Sampled, score_ways
from axonnx.models import MEAN_FIELD, Network, Replay, Sample
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.format.contract import AccuracyContract, MeasuredOn
from axonnx.runtime.format.names import NOISE
from axonnx.runtime.measure.metrics import wilson_interval
from axonnx.runtime.measure.verify_result import Accuracy, Paired
from axonnx.runtime.program.layer_noise import draw_noise as shipped_noise

Floats = NDArray[np.float32]
SIGNIFICANT = 0.05
# Standard errors between the losses with two draws of noise: from ENOUGH samples on, chance gives that less than once
# in 10,000 files.
CERTAIN, ENOUGH = 5.0, 20
SAME_VALUE = 1e-2  # of the largest value: sums in another order may move a spike or two of the training network
SAME_LOSS = 1e-4  # of a stated NLL, whose exponentials differ between processors


@torch.no_grad()
def compare_decisions(
    subject: Subject, members: Mapping[str, Network], data: Sampled, seed: int
) -> tuple[list[Accuracy], Paired]:
    """Accuracy of the file in the fastest engine and of the training network, sample by sample."""
    engine = engines(subject)[-1]
    # 16 bits must not change decisions, so the network is compared as it was trained; 8 bits are a reduction that the
    # user asked for, and what they cost stands beside the file's accuracy ("unreduced").
    networks = as_trained(subject, members, rounded=subject.contract.collapse.weights == "int8")
    rows: list[tuple[Tensor, Tensor, Tensor]] = []
    for batch, (x, labels) in enumerate(data):
        noise = draw_noise(subject, x.shape, seed + batch)
        mine = torch.softmax(torch.from_numpy(of_engine(engine, x.numpy(), noise).logits), -1).mean(0)
        rows.append((mine, _probabilities(networks, x, noise), labels))
    mine, theirs, labels = (torch.cat(column) for column in zip(*rows, strict=True))
    right = [probabilities.argmax(-1) == labels for probabilities in (mine, theirs)]
    paired = Paired(
        samples=len(labels),
        only_file=int((right[0] & ~right[1]).sum()),
        only_training=int((right[1] & ~right[0]).sum()),
    )
    return [_accuracy("file", mine, labels, engine.name), _accuracy("training", theirs, labels)], paired


@torch.no_grad()
def compare_values(subject: Subject, members: Mapping[str, Network], data: Sampled, found: Findings) -> None:
    """Compare the real values of the file with those of the training network whose weights are on the file's grid."""
    engine, (network,) = engines(subject)[-1], as_trained(subject, members, rounded=True).values()
    pairs = [(of_engine(engine, x.numpy(), {}).logits[0], network(x, MEAN_FIELD).logits.numpy()) for x, _ in data]
    mine, theirs = (np.concatenate(column).astype(np.float64) for column in zip(*pairs, strict=True))
    worst, size = np.abs(mine - theirs).max(0), np.maximum(np.abs(theirs).max(0), np.finfo(np.float32).tiny)
    units = subject.contract.units or ()
    for name, unit, distance, largest in zip(subject.contract.classes, units, worst, size, strict=True):
        told = f"{name}: within {distance:.3g} {unit} of the training network's on {len(mine):,} samples"
        if distance > SAME_VALUE * largest:
            found.fail(f"{told}; the largest value is {largest:.3g} {unit}")
        else:
            found.lines.append(told)


def check_decisions(scores: list[Accuracy], paired: Paired, found: Findings) -> None:
    """Check that the file is neither better nor worse than the training network beyond chance."""
    told = (
        f"{paired.samples:,} samples: {paired.only_file} right in the file alone, {paired.only_training} in the "
        f"training network alone (McNemar's exact test: p = {paired.p_value:.2g})"
    )
    if paired.p_value < SIGNIFICANT:
        file, training = (100 * entry.accuracy for entry in scores)
        found.fail(
            f"the file decides otherwise than the training network: {file:.2f} % against {training:.2f} %; {told}"
        )
    else:
        found.lines.append(told)


def check_stated(subject: Subject, tell: Callable[[str], None], found: Findings) -> list[AccuracyContract]:
    """Every accuracy in the contract, measured again on the samples that it states."""
    measured, stated = subject.contract.measured, {entry.way: entry for entry in subject.contract.accuracy}
    if measured is None:
        if stated:
            found.fail("the contract states accuracies without saying what they were measured on")
        return []
    trained = subject.trained
    if measured.part not in trained.parts:
        found.fail(f"the contract states accuracies on {measured.part!r}; the data set has no such part")
        return []
    data = trained.data(measured.part, measured.samples)
    again = score_ways(trained.network, subject.collapsed, subject.thresholds, data, measured, trained.bayesian, tell)
    ways = [entry.way for entry in again]
    if ways != list(stated):
        found.fail(f"the contract states the accuracies {list(stated)}; the run gives {ways}")
    for line in _counted_apart(subject, data, again, measured):
        found.fail(line)
    for entry in again:
        exact = entry.way == "file" and subject.contract.collapse.mode != "stochastic"
        if (claimed := stated.get(entry.way)) is not None and not _agrees(claimed, entry, exact):
            found.fail(f"the contract states for {entry.way!r} {_told(claimed)}; measured again: {_told(entry)}")
    if found.ok:
        found.lines.append(f"{len(again)} stated accuracies measured again on {measured.samples} samples: as stated")
    return again


def _counted_apart(
    subject: Subject, data: Sampled, again: list[AccuracyContract], measured: MeasuredOn
) -> Iterator[str]:
    """Figures that are not what a plain count gives: of the file's own decisions, and of the training network's."""
    network, engine = subject.trained.network, engines(subject)[-1]
    noise = Sample(torch.Generator().manual_seed(measured.seed))

    def noisy(x: Tensor) -> Tensor:
        return torch.stack([torch.softmax(network(x, noise).logits, -1) for _ in range(measured.passes)]).sum(0)

    def shipped(x: Tensor) -> Tensor:
        return torch.softmax(torch.from_numpy(of_engine(engine, x.numpy(), {}).logits), -1).sum(0)

    ways = {"bayesian": noisy, "mean_field": lambda x: torch.softmax(network(x, MEAN_FIELD).logits, -1)}
    if subject.contract.collapse.mode != "stochastic":
        ways["file"] = shipped
    else:
        yield from _with_its_own_noise(subject, engine, data, measured.seed)
    for entry in again:
        if entry.way in ways:
            right, nll, _ = count(ways[entry.way], data)
            if right != entry.right or abs(nll - entry.nll) > SAME_LOSS * max(1.0, nll):
                yield (
                    f"{entry.way!r} counted plainly: {right} of {measured.samples} samples right, NLL {nll:.4g}; "
                    f"measured as for a contract: {entry.right} right, NLL {entry.nll:.4g}"
                )


def _with_its_own_noise(subject: Subject, engine: Engine, data: Sampled, seed: int) -> Iterator[str]:
    """Compare the decisions of a stochastic file with the generator that ships and with a generator of torch."""
    timed, torchs = subject.contract.kind == "spiking", torch.Generator().manual_seed(seed)
    done = 0

    def shipped(steps: int, batch: int) -> dict[str, Floats]:
        nonlocal done
        first, done = done, done + batch
        return shipped_noise(subject.program, seed, range(first, done), 0, steps)

    def of_torch(steps: int, batch: int) -> dict[str, Floats]:
        shapes = {name: subject.program.buffers[name].shape for name in subject.program.noises}
        return {name: torch.randn(steps, batch, *shape, generator=torchs).numpy() for name, shape in shapes.items()}

    def with_noise(draw: Callable[[int, int], dict[str, Floats]]) -> NDArray[np.float64]:
        def decide(x: Tensor) -> Tensor:
            noise = draw(len(x) if timed else 1, x.shape[1 if timed else 0])
            drawn = noise if timed else {name: value[0] for name, value in noise.items()}
            return torch.softmax(torch.from_numpy(of_engine(engine, x.numpy(), drawn).logits), -1).sum(0)

        return np.array(count(decide, data).losses)

    one, other = with_noise(shipped), with_noise(of_torch)
    apart = one - other  # sample by sample, so that hard samples do not hide a difference
    if len(apart) >= ENOUGH and abs(apart.mean()) > CERTAIN * apart.std(ddof=1) / np.sqrt(len(apart)):
        yield (
            f"'file' with the noise that it draws itself: NLL {one.mean():.3g}; with noise of torch {other.mean():.3g}"
        )


def _agrees(stated: AccuracyContract, again: AccuracyContract, exact: bool) -> bool:
    """Whether a figure is found again: ``exact`` to the sample, otherwise within its interval."""
    if (stated.samples, stated.draws) != (again.samples, again.draws) or not _consistent(stated):
        return False
    if exact:
        return stated.right == again.right and abs(stated.nll - again.nll) <= SAME_LOSS * max(1.0, again.nll)
    low, high = again.interval
    return low <= stated.accuracy <= high


def _consistent(stated: AccuracyContract) -> bool:
    right, samples = stated.right, stated.samples
    return stated.accuracy == right / samples and stated.interval == wilson_interval(right, samples)


def _told(entry: AccuracyContract) -> str:
    return f"{100 * entry.accuracy:.2f} % of {entry.samples} samples, NLL {entry.nll:.4g}"


def as_trained(subject: Subject, members: Mapping[str, Network], *, rounded: bool) -> dict[str, Network]:
    """Return the reference networks in the float32 of training, ``rounded`` with weights on the file's grids."""
    grids = {entry.weight: entry.grid for entry in subject.contract.synapses}
    networks = {prefix: copy.deepcopy(member) for prefix, member in members.items()}
    for prefix, network in networks.items():
        if rounded:
            round_weights(network, {name.removeprefix(prefix): grid for name, grid in grids.items()})
    return {prefix: network.float() for prefix, network in networks.items()}


def _probabilities(networks: Mapping[str, Network], x: Tensor, noise: Mapping[str, Floats]) -> Tensor:
    drawn = {name.removeprefix(NOISE): torch.from_numpy(value) for name, value in noise.items()}
    fire = Replay(drawn) if drawn else MEAN_FIELD
    return torch.stack([torch.softmax(network(x, fire).logits, -1) for network in networks.values()]).mean(0)


def _accuracy(
    of: Literal["file", "training"], probabilities: Tensor, labels: Tensor, engine: str | None = None
) -> Accuracy:
    right = int((probabilities.argmax(-1) == labels).sum())
    chosen = probabilities.double().gather(1, labels[:, None]).clamp(min=1e-30)
    return Accuracy(
        of=of,
        engine=engine,
        accuracy=right / len(labels),
        interval=wilson_interval(right, len(labels)),
        samples=len(labels),
        right=right,
        nll=float(-chosen.log().mean()),
    )
