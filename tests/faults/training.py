"""Faults in the process that trains, none of which is there any more when its run is verified."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from axonnx.models import delays, neurons, normalisation
from axonnx.train import checkpoint, loop
from axonnx.train import noise as tempering
from axonnx.train.data import batches, cache
from tests.faults.bench import IMAGES, Bench, Ended, Plant, ends

WITNESS = "training process"


def trained_with(bench: Bench, plant: Plant, *words: str, **options: object) -> Ended:
    """The verification of a run that was trained with a fault."""
    run = bench.train(*words, plant=plant, **options)
    return bench.verify(bench.export(run), run)


@ends(0, "verified: 0 mismatches", quick=True)
def a_run_without_a_fault(bench: Bench) -> Ended:
    """The control of every fault of training."""
    return bench.verify(bench.file, bench.run)


@ends(0, "16 samples of 'test' from the raw data as the training process saw them", quick=True)
def a_witness_without_a_fault(bench: Bench) -> Ended:
    """The control of every fault that the witness tells."""
    return bench.verify(bench.file, bench.run)


@ends(2, "its sha256 is not the one in checkpoint.json", quick=True)
def a_bit_of_the_weights_flipped_on_disk(bench: Bench) -> Ended:
    """The checkpoint is damaged after training."""
    run = bench.copy()
    (weights,) = (run / "checkpoint").glob("weights-*.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    return bench.verify(bench.file, run)


@ends(1, "label of sample")
def labels_shifted_by_one_class(bench: Bench) -> Ended:
    """Every batch of the training process, also those that its figures come from."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        make = batches.Batches._make

        def shifted(self, epoch, number, order):
            made = make(self, epoch, number, order)
            labels = (made.batch.labels + 1) % len(self.data.classes)
            return made._replace(batch=made.batch._replace(labels=labels))

        patch.setattr(batches.Batches, "_make", shifted)

    return trained_with(bench, plant)


@ends(1, "of 'train' is")
def labels_shifted_only_where_it_learns(bench: Bench) -> Ended:
    """The figures are honest, and low."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        make = batches.Batches._make

        def shifted(self, epoch, number, order):
            made = make(self, epoch, number, order)
            labels = (made.batch.labels + self.shuffle) % len(self.data.classes)
            return made._replace(batch=made.batch._replace(labels=labels))

        patch.setattr(batches.Batches, "_make", shifted)

    return trained_with(bench, plant)


def saved_otherwise(change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> Plant:
    """The tensors of a checkpoint are changed on their way to the disk."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        save = checkpoint._save

        def changed(path: Path, tensors: dict[str, Tensor]) -> dict[str, str]:
            return save(path, change(tensors) if path.name.startswith("weights") else tensors)

        patch.setattr(checkpoint, "_save", changed)

    return plant


@ends(1, WITNESS)
def the_variance_of_batch_norm_not_saved(bench: Bench) -> Ended:
    """A buffer of the network in memory is another one than the checkpoint's."""

    def without(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        found = {name: torch.ones_like(x) if name.endswith("variance") else x for name, x in tensors.items()}
        assert any(name.endswith("running_variance") for name in found)
        return found

    return trained_with(bench, saved_otherwise(without), "--variant.name", "sg-bn")


@ends(1, WITNESS)
def weights_of_before_the_last_update(bench: Bench) -> Ended:
    """The checkpoint is one step of the optimiser behind the network in memory."""
    before: dict[str, Tensor] = {}

    def plant(patch: pytest.MonkeyPatch) -> None:
        step = loop._step

        def kept(wrapped, *rest):
            before.update({name: value.clone() for name, value in wrapped.state_dict().items()})
            return step(wrapped, *rest)

        patch.setattr(loop, "_step", kept)
        saved_otherwise(lambda tensors: {name: before[name] for name in tensors})(patch)

    return trained_with(bench, plant)


@ends(1, "input of sample")
def the_centre_of_images_forgotten(bench: Bench) -> Ended:
    """The training process feeds pixels as they are, the file subtracts their centre."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        numbers = batches.Batches._numbers
        patch.setattr(batches.Batches, "_numbers", lambda self, frames: numbers(self, frames) + self.centre)

    return trained_with(bench, plant, "--data.centre", "8", configuration="digits-static", size=IMAGES)


@ends(1, "input of sample")
def bins_an_eighth_shorter(bench: Bench) -> Ended:
    """Events of training fall into other bins."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        bin_batch = batches.bin_batch

        def shorter(events, offsets, binning):
            moved = events.copy()
            moved["t"] += moved["t"] // 8
            return bin_batch(moved, offsets, binning)

        for module in (cache, batches):
            patch.setattr(module, "bin_batch", shorter)

    return trained_with(bench, plant)


@ends(1, WITNESS)
def delays_one_step_longer(bench: Bench) -> Ended:
    """Every delay line of the training process answers a step late."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        over_time = delays.DelayLine._over_time

        def late(self, frames, state, run):
            found = over_time(self, frames, state, run)
            return torch.cat([torch.zeros_like(found[:1]), found[:-1]])

        patch.setattr(delays.DelayLine, "_over_time", late)

    return trained_with(bench, plant, "--model.delays", "[0, 2]")


@ends(1, WITNESS)
def the_epsilon_of_batch_norm_larger(bench: Bench) -> Ended:
    """A number of the code that no checkpoint holds."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        made = normalisation.BatchNorm.__init__

        def larger(self, *sizes):
            made(self, *sizes)
            self.epsilon = 0.1

        patch.setattr(normalisation.BatchNorm, "__init__", larger)

    return trained_with(bench, plant, "--variant.name", "sg-bn")


def other_constant(place: int, factor: float) -> Plant:
    """A pass of the training process computes with another constant than its layer holds."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        constants = neurons.LIF._constants

        def other(self, noisy):
            found = list(constants(self, noisy))
            found[place] = found[place] * factor
            return tuple(found)

        patch.setattr(neurons.LIF, "_constants", other)

    return plant


@ends(1, WITNESS)
def another_decay(bench: Bench) -> Ended:
    """Membranes of the training process forget faster."""
    return trained_with(bench, other_constant(0, 0.9))


@ends(1, WITNESS)
def another_threshold(bench: Bench) -> Ended:
    """Neurons of the training process fire later."""
    return trained_with(bench, other_constant(1, 1.25))


@ends(1, "in noise")
def sigma_halved_after_the_figures(bench: Bench) -> Ended:
    """The noise that tempering found is not the noise that is saved."""

    def halved(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: x - 0.7 if name.endswith(tempering.SPREADS) else x for name, x in tensors.items()}

    return trained_with(bench, saved_otherwise(halved))


@ends(1, "of them are of 'test'")
def noise_tempered_on_the_test_part(bench: Bench) -> Ended:
    """The noise that is left was found on samples that figures are stated of."""
    learned = loop.learn_feed

    def plant(patch: pytest.MonkeyPatch) -> None:
        def on_the_test_part(prepared, config, device, world):
            asked_by = inspect.stack()[1].function
            if asked_by == "_temper":
                return loop.part_feed(prepared, config, device, "test")
            return learned(prepared, config, device, world)

        patch.setattr(loop, "learn_feed", on_the_test_part)

    return trained_with(bench, plant, "--noise.temper", "0.01")


@ends(0, "noise.temper: all")
def noise_tempered_on_the_training_part(bench: Bench) -> Ended:
    """The control of the fault before."""
    return trained_with(bench, lambda patch: None, "--noise.temper", "0.01")
