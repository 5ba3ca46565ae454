"""The training loop: ``fit(network, data, config)``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from axonnx.base.progress import Progress
from axonnx.models import Fire, Network, Regulariser, Sample, Variant
from axonnx.models.fast.backend import check_backend, computed_by
from axonnx.models.fast.core import GAPS, gaps_as
from axonnx.runtime.measure.metrics import VALUE_FIGURES, ValueMetrics
from axonnx.train.build import Prepared, make_variant
from axonnx.train.config.settings import Config
from axonnx.train.data.augment import Augmentation
from axonnx.train.data.batches import Batches
from axonnx.train.data.cache import binned, can_be_kept
from axonnx.train.data.recordings import Recordings
from axonnx.train.data.splits import Data
from axonnx.train.distributed import World
from axonnx.train.evaluate import Predictions, Targets, predict_bayesian, predict_mean_field
from axonnx.train.feed import Batch, Feed
from axonnx.train.health import Watch, median_sizes, refuse_non_finite_weights
from axonnx.train.noise import fire_of_batch, looked_at, temper
from axonnx.train.objective import Objective, ascend, cosine_rate, numbers
from axonnx.train.output_files import Epochs
from axonnx.train.pieces import EpochMeans, Piece, Row, mean_squares, pieces_of, refuse_statistics_of_pieces

AfterEpoch = Callable[["Training"], None]


@dataclass
class Training:
    """Everything that changes while a network is trained; what a checkpoint must hold."""

    network: Network
    optimiser: torch.optim.Optimizer
    noise: torch.Generator
    multipliers: dict[str, float | Tensor] = field(default_factory=dict)  # λ of each layer, where it is found by itself
    epochs_done: int = 0
    rows: list[Row] = field(default_factory=list)
    looked_at: dict[str, NDArray[np.int64]] = field(default_factory=dict)  # fingerprints of samples, by what used them


def new_training(network: Network, config: Config, device: torch.device) -> Training:
    """Start a run: Adam with one rate for weights and one for scales, and a source of noise."""
    groups = network.to(device).parameter_groups()
    rates = {"weights": config.optimiser.weight_rate, "scales": config.optimiser.scale_rate}
    parameters = [{"params": groups[name], "lr": rate, "full_rate": rate} for name, rate in rates.items()]
    # PyTorch's default is a dozen passes over each parameter. Fused it is one, on a GPU one launch for all of them.
    fused = True if device.type in ("cpu", "cuda") else None
    optimiser = torch.optim.Adam([group for group in parameters if group["params"]], fused=fused)
    return Training(network, optimiser, torch.Generator())


def make_feeds(prepared: Prepared, config: Config, device: torch.device, world: World) -> dict[str, Feed]:
    """Training batches, shuffled, augmented and split over processes; and every part as it is, for evaluation."""
    plain = {name: part_feed(prepared, config, device, name) for name in prepared.splits.parts}
    return {"learn": learn_feed(prepared, config, device, world), **plain}


def learn_feed(prepared: Prepared, config: Config, device: torch.device, world: World) -> Feed:
    """Return the training part as it is learned: shuffled, augmented, and split over processes."""
    learn = _batches(
        prepared.splits.train,
        prepared,
        config,
        augmentation=config.data.augmentation,
        batch_size=config.optimiser.batch_size,
        seed=config.seed,
        shuffle=True,
        shard=(world.rank, world.size),
    )
    return Feed(learn, config.data.shift, device, config.data.scale_to)


def part_feed(
    prepared: Prepared, config: Config, device: torch.device, part: str, chosen: NDArray[np.int64] | None = None
) -> Feed:
    """Return a part of the data in order, for evaluation; only the ``chosen`` samples if they are given."""
    data, size = prepared.splits.parts[part], evaluated_at_once(config)
    batches = _batches(data, prepared, config, chosen, batch_size=size, shuffle=False)
    return Feed(batches, config.data.shift, device, config.data.scale_to)


def evaluated_at_once(config: Config) -> int:
    """Return how many samples are in a batch where nothing is learned."""
    return max(config.optimiser.batch_size, 64)


def _batches(
    data: Data, prepared: Prepared, config: Config, chosen: NDArray[np.int64] | None = None, **options: Any
) -> Batches:
    """Batches of ``data``; events that no augmentation changes are binned once, and kept on disk."""
    unchanged = options.get("augmentation", Augmentation()).is_off
    binning = prepared.binning
    if isinstance(data, Recordings) and binning is not None and unchanged and can_be_kept(data, binning):
        frames = binned(data, binning).data
        return Batches(frames if chosen is None else frames.subset(chosen), **options)
    kept = data if chosen is None else data.subset(chosen)
    return Batches(kept, binning=binning, centre=config.data.centre, **options)


def fit(
    network: Network,
    data: Prepared,
    config: Config,
    *,
    training: Training | None = None,
    world: World | None = None,
    progress: Progress | None = None,
    after_epoch: AfterEpoch | None = None,
) -> Training:
    """Train ``network`` as ``config`` says, and return it with one row of results for each epoch.

    Give ``training`` to go on where an earlier call stopped; ``after_epoch`` may keep what each left.
    """
    refuse_statistics_of_pieces(network, config.optimiser.accumulate)
    world, shown = world or World(), Epochs(progress or Progress())
    device = world.device(config.device)
    check_backend(config.backend, device)
    training = training or new_training(network, config, device)
    feeds = make_feeds(data, config, device, world)
    wrapped = world.wrap(network)
    total = config.optimiser.epochs + config.finetune.epochs
    shown.start(total, len(feeds["learn"]), training.epochs_done)
    with ExitStack() as stack:
        stack.callback(shown.finish)
        stack.enter_context(computed_by(config.backend))
        stack.enter_context(reproducible(config.optimiser.tf32))
        for epoch in range(training.epochs_done, total):
            began = time.perf_counter()
            with (
                _seeded(training.noise, config.seed, epoch, world.rank, device),
                gaps_as(GAPS[config.optimiser.gaps]),
            ):
                row = _epoch(wrapped, training, feeds["learn"], epoch, config, shown, world, data.targets)
            world.same_buffers(network)
            if config.noise.temper:
                last = epoch + 1 == total
                row["noise_scale"] = _temper(training, data, config, device, total) if last else 1.0
            row |= _test(network, feeds["test"], world, data.targets)
            if data.targets is not None:
                del row["train_accuracy"]  # of labels, which only number the values
            row["seconds"] = time.perf_counter() - began
            training.epochs_done = epoch + 1
            training.rows.append(row)
            if world.leads:
                shown.epoch(row)
                if after_epoch is not None:
                    after_epoch(training)
            world.wait()
    return training


def _temper(training: Training, data: Prepared, config: Config, device: torch.device, epoch: int) -> float:
    """Every process looks at the same samples, those of an epoch that is not trained, and finds the same scale."""
    feed = learn_feed(data, config, device, World())
    training.looked_at["noise.temper"] = looked_at(feed, epoch)
    return temper(training.network, feed, epoch, config.noise.temper, config.seed)


def final_predictions(
    network: Network, prepared: Prepared, config: Config, device: torch.device, world: World | None = None
) -> dict[str, Predictions]:
    """Each part's mean-field predictions, and those of the Bayesian predictive where there is a posterior.

    Mean-field ones are divided between the processes of a ``world``. The noise of the others is one sequence of random
    numbers over all batches, so they are the first process's work.
    """
    world = world or World()
    feeds = make_feeds(prepared, config, device, World())
    found: dict[str, Predictions] = {}
    bayesian = make_variant(config.variant).spread != "none"
    with computed_by(config.backend):
        for name in prepared.splits.parts:
            found[name] = predict_mean_field(network, feeds[name].part_of(world), world, prepared.targets)
            if bayesian and name != "train" and world.leads:
                found[f"{name}_bayesian"] = predict_bayesian(
                    network, feeds[name].epoch(0), config.eval_samples, config.seed, prepared.targets
                )
    return found


@contextmanager
def reproducible(tf32: bool) -> Iterator[None]:
    """Let a GPU give the same bits for the same run, and products of float32 keep 24 bits unless ``tf32`` is asked for.

    Torch's own default is TF32 in convolutions: weights of 10 bits, which change spikes.
    """
    products, before = torch.backends.cuda.matmul, torch.backends.cuda.matmul.allow_tf32
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=tf32):
        products.allow_tf32 = tf32
        try:
            yield
        finally:
            products.allow_tf32 = before


@contextmanager
def _seeded(noise: torch.Generator, seed: int, epoch: int, rank: int, device: torch.device) -> Iterator[None]:
    """Random numbers that follow from (seed, epoch, process) alone, so that an epoch is the same in a resumed run.

    Some estimators draw from torch's global generator; it is the caller's again afterwards.
    """
    state = int(np.random.SeedSequence([seed, epoch, rank]).generate_state(1, np.uint64)[0])
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(state)
        noise.manual_seed(state)
        yield


def _epoch(
    wrapped: nn.Module,
    training: Training,
    feed: Feed,
    epoch: int,
    config: Config,
    shown: Epochs,
    world: World,
    targets: Targets,
) -> Row:
    """One pass over the training data; the row of its means."""
    wrapped.train()
    variant = make_variant(config.variant)
    finetuning = epoch >= config.optimiser.epochs
    chosen = config.regulariser
    training.network.keeps_currents = variant.kl and chosen.of == "current"
    sums, batches, began = EpochMeans(), feed.epoch(epoch), time.perf_counter()
    watch = Watch(training.optimiser, feed.device)
    values = None if targets is None else torch.from_numpy(targets).to(feed.device)
    for number, batch in enumerate(batches):
        _set_rates(training.optimiser, config, epoch + number / len(feed))
        share = world.balance(len(batch.labels), batch.labels.device)
        fire = fire_of_batch(config, variant, training.noise, epoch * len(feed) + number, len(feed))
        passes = config.optimiser.samples if isinstance(fire, Sample) else 1
        objective = _objective(config, variant, training.multipliers, values)
        parts = _step(wrapped, training, batch, fire, objective, passes, share / passes, config.optimiser.accumulate)
        norms = _gradient_norms(training.network)
        total = _total_norm(norms)
        output = parts[-1].output
        watch.step(output, parts[-1].loss, total, norms, epoch + 1, number + 1)
        _clip(training.network, total, config.optimiser.clip_norm)
        training.optimiser.step()
        if squared := mean_squares(parts):
            squares = world.mean(squared, share)
            training.multipliers = ascend(training.multipliers, squares, chosen.target, chosen.rate)
        for part in parts:
            sums.add(part, norms, total)
        shown.batch(*(sums.shown() if feed.device.type == "cpu" else ()))
    watch.close(epoch + 1)
    training.multipliers = {**numbers(training.multipliers)}
    refuse_non_finite_weights(training.network, f"epoch {epoch + 1}")
    return {
        "epoch": epoch + 1,
        "phase": "finetune" if finetuning else "train",
        **sums.means(world),
        **{f"z/{name}": size for name, size in numbers(median_sizes(output)).items()},
        **{f"lambda/{name}": weight for name, weight in training.multipliers.items()},
        "weight_rate": training.optimiser.param_groups[0]["lr"],
        "waiting": batches.seconds / (time.perf_counter() - began),
    }


def _objective(
    config: Config, variant: Variant, multipliers: dict[str, float | Tensor], values: Tensor | None
) -> Objective:
    """Return what the next step minimises."""
    chosen = config.regulariser
    weight: float | dict[str, float | Tensor] = multipliers if chosen.weight == "auto" else chosen.weight
    regulariser = Regulariser(chosen.form, chosen.of, chosen.total)
    return Objective(weight if variant.kl else 0.0, regulariser, config.optimiser.label_smoothing, values)


def _step(
    wrapped: nn.Module,
    training: Training,
    batch: Batch,
    fire: Fire,
    objective: Objective,
    passes: int,
    share: float | Tensor,
    pieces: int = 1,
) -> list[Piece]:
    """Forward and backward; with several noisy passes their mean gradient. ``share``: what one pass counts.

    In ``pieces`` of n_i of its n samples the gradient is Σ n_i/n · g_i, the same but for the order of additions.
    """
    training.optimiser.zero_grad(set_to_none=True)
    parts = pieces_of(batch, pieces)
    backward = len(parts) * passes
    for part in parts:
        for _ in range(passes):
            backward -= 1
            with _only_the_last_is_shared(wrapped, backward):
                part.output = wrapped(part.batch.x, fire)
                part.loss = objective(training.network, part.output, part.batch.labels)
                counted = part.share * share
                counted = counted.to(part.loss.total.dtype) if isinstance(counted, Tensor) else counted
                (part.loss.total * counted).backward()
        part.close(keep=part is parts[-1])
    return parts


def _only_the_last_is_shared(wrapped: nn.Module, left: int) -> AbstractContextManager[None]:
    """Let processes average their gradients once, when all passes have added theirs."""
    return wrapped.no_sync() if left and isinstance(wrapped, DistributedDataParallel) else nullcontext()


def _test(network: Network, feed: Feed, world: World, targets: Targets) -> Row:
    predictions = predict_mean_field(network, feed.part_of(world), world, targets)
    metrics = predictions.metrics()
    if isinstance(metrics, ValueMetrics):
        of_all = {name: float(np.mean(getattr(metrics, name))) for name in VALUE_FIGURES}
        return {f"test_{name}": mean for name, mean in of_all.items()}
    return {"test_accuracy": metrics.accuracy, "test_nll": metrics.nll, "test_ece": metrics.ece}


def _set_rates(optimiser: torch.optim.Optimizer, config: Config, epoch: float) -> None:
    """Cosine over the main phase; fine-tuning has a low rate and a cosine of its own."""
    main, tuning = config.optimiser.epochs, config.finetune.epochs
    if epoch < main:
        share = cosine_rate(epoch / main, config.optimiser.final_rate, config.optimiser.warmup_epochs / main)
    else:
        share = config.finetune.rate * cosine_rate((epoch - main) / tuning, config.optimiser.final_rate)
    for group in optimiser.param_groups:
        group["lr"] = group["full_rate"] * share


def _gradient_norms(network: Network) -> dict[str, Tensor]:
    named = [(name, p.grad) for name, p in network.named_parameters() if p.grad is not None]
    norms = torch._foreach_norm([gradient for _, gradient in named])
    return {name: norm for (name, _), norm in zip(named, norms, strict=True)}


def _total_norm(norms: dict[str, Tensor]) -> Tensor:
    return torch.stack(list(norms.values())).square().sum().sqrt()


def _clip(network: Network, total: Tensor, limit: float | None) -> None:
    if limit is None or (total.device.type == "cpu" and not total > limit):
        return
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    torch._foreach_mul_(gradients, (limit / total).clamp(max=1.0))
