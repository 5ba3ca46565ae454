"""The training loop: ``fit(network, data, config)``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from axonnx.models import MEAN_FIELD, Fire, Network, Output
from axonnx.runtime.errors import AxonnxError
from axonnx.train.build import Prepared, make_variant, training_fire
from axonnx.train.config import Config
from axonnx.train.data.augment import Augmentation
from axonnx.train.data.batches import Batches
from axonnx.train.data.cache import binned
from axonnx.train.data.recordings import Recordings
from axonnx.train.data.splits import Data
from axonnx.train.distributed import World
from axonnx.train.evaluate import Predictions, predict_bayesian, predict_mean_field
from axonnx.train.feed import Batch, Feed
from axonnx.train.objective import Loss, Objective, cosine_rate
from axonnx.train.progress import Progress, Silent

Row = dict[str, Any]
AfterEpoch = Callable[["Training"], None]


class NonFiniteError(AxonnxError):
    """Training met a value that is not a number; says where."""


@dataclass
class Training:
    """Everything that changes while a network is trained; what a checkpoint must hold."""

    network: Network
    optimiser: torch.optim.Optimizer
    noise: torch.Generator
    epochs_done: int = 0
    rows: list[Row] = field(default_factory=list)


def new_training(network: Network, config: Config, device: torch.device, rank: int = 0) -> Training:
    """The start of a run: Adam with one rate for weights and one for scales, and a seeded source of noise."""
    groups = network.to(device).parameter_groups()
    rates = {"weights": config.optimiser.weight_rate, "scales": config.optimiser.scale_rate}
    parameters = [{"params": groups[name], "lr": rate, "full_rate": rate} for name, rate in rates.items()]
    noise = torch.Generator(device).manual_seed(config.seed * 1000003 + rank)
    return Training(network, torch.optim.Adam([group for group in parameters if group["params"]]), noise)


def make_feeds(prepared: Prepared, config: Config, device: torch.device, world: World) -> dict[str, Feed]:
    """Training batches, shuffled, augmented and split over processes; and every part as it is, for evaluation."""
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
    feeds = {"learn": Feed(learn, config.data.shift, device)}
    for name, data in prepared.splits.parts.items():
        plain = _batches(data, prepared, config, batch_size=max(config.optimiser.batch_size, 64), shuffle=False)
        feeds[name] = Feed(plain, config.data.shift, device)
    return feeds


def _batches(data: Data, prepared: Prepared, config: Config, **options: Any) -> Batches:
    """Batches of ``data``; events that no augmentation changes are binned once, and kept on disk."""
    unchanged = options.get("augmentation", Augmentation()).is_off
    if isinstance(data, Recordings) and prepared.binning is not None and unchanged:
        return Batches(binned(data, prepared.binning).data, **options)
    return Batches(data, binning=prepared.binning, center=config.data.centre, **options)


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
    world, progress = world or World(), progress or Silent()
    device = world.device(config.device)
    training = training or new_training(network, config, device, world.rank)
    feeds = make_feeds(data, config, device, world)
    wrapped = world.wrap(network)
    total = config.optimiser.epochs + config.finetune.epochs
    progress.start(total, len(feeds["learn"]), training.epochs_done)
    for epoch in range(training.epochs_done, total):
        began = time.perf_counter()
        row = _epoch(wrapped, training, feeds["learn"], epoch, config, progress)
        row |= _test(network, feeds["test"]) if world.leads else {}
        row["seconds"] = time.perf_counter() - began
        training.epochs_done = epoch + 1
        training.rows.append(row)
        if world.leads:
            progress.epoch(row)
            if after_epoch is not None:
                after_epoch(training)
        world.wait()
    progress.finish()
    return training


def final_predictions(
    network: Network, prepared: Prepared, config: Config, device: torch.device
) -> dict[str, Predictions]:
    """Each part's mean-field predictions, and those of the Bayesian predictive where there is a posterior."""
    feeds = make_feeds(prepared, config, device, World())
    found: dict[str, Predictions] = {}
    bayesian = make_variant(config.variant).spread != "none"
    for name in prepared.splits.parts:
        found[name] = predict_mean_field(network, feeds[name].epoch(0))
        if bayesian and name != "train":
            found[f"{name}_bayesian"] = predict_bayesian(
                network, feeds[name].epoch(0), config.eval_samples, config.seed
            )
    return found


def _epoch(wrapped: nn.Module, training: Training, feed: Feed, epoch: int, config: Config, progress: Progress) -> Row:
    """One pass over the training data; the row of its means."""
    wrapped.train()
    variant = make_variant(config.variant)
    finetuning = epoch >= config.optimiser.epochs
    fire = MEAN_FIELD if finetuning else training_fire(variant, training.noise)
    kl_weight = config.optimiser.kl_weight if variant.kl else 0.0
    objective = Objective(kl_weight, config.optimiser.kl, config.optimiser.label_smoothing)
    passes = config.optimiser.samples if variant.fire == "sample" and not finetuning else 1
    sums = _Sums()
    for number, batch in enumerate(feed.epoch(epoch)):
        _set_rates(training.optimiser, config, epoch + number / len(feed))
        output, loss = _step(wrapped, training, batch, fire, objective, passes)
        norms = _gradient_norms(training.network)
        total = _total_norm(norms)
        _refuse_non_finite(training.network, loss, total, norms, epoch, number)
        _clip(training.network, total, config.optimiser.clip_norm)
        training.optimiser.step()
        sums.add(output, loss, batch, norms, total)
        progress.batch(*sums.shown())
    return {
        "epoch": epoch + 1,
        "phase": "finetune" if finetuning else "train",
        **sums.means(),
        "weight_rate": training.optimiser.param_groups[0]["lr"],
    }


def _step(
    wrapped: nn.Module, training: Training, batch: Batch, fire: Fire, objective: Objective, passes: int
) -> tuple[Output, Loss]:
    """Forward and backward; with several noisy passes their mean gradient."""
    training.optimiser.zero_grad(set_to_none=True)
    for _ in range(passes):
        output: Output = wrapped(batch.x, fire)
        loss = objective(training.network, output, batch.labels)
        (loss.total / passes).backward()  # type: ignore[no-untyped-call]
    return output, loss


def _test(network: Network, feed: Feed) -> Row:
    predictions = predict_mean_field(network, feed.epoch(0))
    metrics = predictions.metrics()
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
    if limit is not None and total > limit:
        gradients = [p.grad for p in network.parameters() if p.grad is not None]
        torch._foreach_mul_(gradients, float(limit / total))


def _refuse_non_finite(
    network: Network, loss: Loss, total: Tensor, norms: dict[str, Tensor], epoch: int, batch: int
) -> None:
    if torch.isfinite(loss.total) and torch.isfinite(total):
        return
    bad = [name for name, norm in norms.items() if not torch.isfinite(norm)]
    weights = [name for name, p in network.named_parameters() if not torch.isfinite(p).all()]
    where = f"the gradient of {bad[0]!r} ({len(bad)} of {len(norms)} parameters)" if bad else "the loss"
    also = f"; the weights {weights[0]!r} are not finite either" if weights else ""
    raise NonFiniteError(
        f"epoch {epoch + 1}, batch {batch + 1}: {where} is not finite (loss {float(loss.total)}){also}. The last "
        f"checkpoint is intact; lower optimiser.weight_rate or set optimiser.clip_norm, then go on with --resume"
    )


class _Sums:
    """Running sums of what an epoch's row reports."""

    def __init__(self) -> None:
        self.samples = 0
        self.batches = 0
        self.right: Tensor | float = 0.0
        self.totals: dict[str, Tensor] = {}

    def add(self, output: Output, loss: Loss, batch: Batch, norms: dict[str, Tensor], total: Tensor) -> None:
        """One batch."""
        self.samples += len(batch.labels)
        self.batches += 1
        self.right = self.right + (output.logits.detach().argmax(-1) == batch.labels).sum()
        rates = output.firing_rates()
        values = {
            "loss": loss.total.detach(),
            "cross_entropy": loss.cross_entropy,
            "kl": loss.kl,
            "gradient_norm": total,
            "rate": torch.stack(list(rates.values())).mean(),
            **{f"rate/{name}": rate for name, rate in rates.items()},
            **{f"gradient/{_layer(name)}": norm for name, norm in norms.items() if _is_weight(name)},
        }
        for name, value in values.items():
            self.totals[name] = self.totals.get(name, 0.0) + value

    def shown(self) -> tuple[float, float, float]:
        """Loss, accuracy and firing rate so far."""
        mean = 1.0 / self.batches
        loss, rate = float(self.totals["loss"]) * mean, float(self.totals["rate"]) * mean
        return loss, float(self.right) / self.samples, rate

    def means(self) -> Row:
        """The row's means."""
        means = {name: float(total) / self.batches for name, total in self.totals.items()}
        shown = ("loss", "cross_entropy", "kl")
        first = {name: means.pop(name) for name in shown}
        return {**first, "train_accuracy": float(self.right) / self.samples, **means}


def _is_weight(name: str) -> bool:
    return name.endswith(("raw_mean", "readout.weight"))


def _layer(name: str) -> str:
    return name.removesuffix(".posterior.raw_mean").removesuffix(".weight")
