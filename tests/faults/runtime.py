"""Faults of what the runtime adds to a network: bins, windows, noise, sessions, decisions and engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from axonnx.export import certainty
from axonnx.export.verify import accuracy
from axonnx.runtime.binning.stream import Binner
from axonnx.runtime.engines.state import State
from axonnx.runtime.program import layer_noise
from axonnx.runtime.streams import decision, windows
from tests.faults.bench import Bench, Ended, Plant, ends

Draw = Callable[..., np.ndarray]


def bins_one_microsecond_late(patch: pytest.MonkeyPatch) -> None:
    """A session bins every event as if it came a microsecond later."""
    push = Binner.push

    def late(binner, events):
        moved = events.copy()
        moved["t"] += 1
        return push(binner, moved)

    patch.setattr(Binner, "push", late)


@ends(1, "a session bins events on the borders", quick=True)
def a_session_bins_one_microsecond_late(bench: Bench) -> Ended:
    """A microsecond moves no event of these recordings into another bin; the crafted ones it does."""
    return bench.verify(bench.file, bench.run, plant=bins_one_microsecond_late)


def shipped(bench: Bench) -> Path:
    """A file that draws noise while it runs."""
    return bench.once("stochastic", lambda: bench.export(bench.run, "--collapse", "stochastic"))


@ends(0, "as drawn by a generator of its own")
def noise_without_a_fault(bench: Bench) -> Ended:
    """The control of every fault of noise."""
    return bench.verify(shipped(bench), bench.run)


@ends(1, "with the noise that it draws itself")
def a_stated_accuracy_that_the_shipped_noise_does_not_reach(bench: Bench) -> Ended:
    """The stated figure was measured with noise of torch; what ships draws fifty times as much here."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        draw = accuracy.shipped_noise

        def loud(*words):
            return {name: np.float32(50) * values for name, values in draw(*words).items()}

        patch.setattr(accuracy, "shipped_noise", loud)

    return bench.verify(shipped(bench), bench.run, plant=plant)


@ends(0, "saved and continued between them", quick=True)
def a_stream_without_a_fault(bench: Bench) -> Ended:
    """The control of every fault of sessions."""
    return bench.verify(bench.file, bench.run)


def noise_that(change: Callable[[Draw, tuple], np.ndarray]) -> Plant:
    """Every normal number of the runtime is drawn otherwise, in the engine as in what it is compared with."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        draw = layer_noise.normals
        patch.setattr(layer_noise, "normals", lambda *given: change(draw, given))

    return plant


@ends(1, "noise of layer 'hidden.0.neuron', seed 0")
def noise_that_is_zero(bench: Bench) -> Ended:
    """The file is stochastic in name."""
    return bench.verify(shipped(bench), bench.run, plant=noise_that(lambda draw, given: 0 * draw(*given)))


@ends(1, "noise of layer 'hidden.0.neuron', seed 0")
def noise_that_is_doubled(bench: Bench) -> Ended:
    """ε ~ N(0, 4)."""
    return bench.verify(shipped(bench), bench.run, plant=noise_that(lambda draw, given: 2 * draw(*given)))


@ends(1, "time step 6")
def noise_that_is_equal_for_all_steps(bench: Bench) -> Ended:
    """Every step has the noise of the first."""
    same = noise_that(lambda draw, given: np.repeat(draw(*given)[:1], given[3], 0))
    return bench.verify(shipped(bench), bench.run, plant=same)


@ends(1, "noise of layer 'hidden.0.neuron', seed 0, sample 1")
def noise_that_is_equal_for_all_samples(bench: Bench) -> Ended:
    """Every sample has the noise of the first."""
    same = noise_that(lambda draw, given: np.repeat(draw(*given)[:, :1], len(given[1]), 1))
    return bench.verify(shipped(bench), bench.run, plant=same)


@ends(1, "noise of layer 'hidden.0.neuron', seed 1")
def noise_that_ignores_its_seed(bench: Bench) -> Ended:
    """Every seed is 0."""
    return bench.verify(shipped(bench), bench.run, plant=noise_that(lambda draw, given: draw(0, *given[1:])))


@ends(1, "a stream in pieces: bin 15 (window 1): its logits differ")
def membranes_that_are_not_reset_between_windows(bench: Bench) -> Ended:
    """A window begins where the last one ended."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        def begin(self) -> None:
            self.decided = False
            zero = {name: np.zeros_like(self.state.arrays[name]) for name in self.engine.program.totals}
            self.state = State(0, {**self.state.arrays, **zero}, self.engine.program)

        patch.setattr(windows.Windows, "_begin_window", begin)

    return bench.verify(bench.file, bench.run, plant=plant)


@ends(1, "a stream with early exit")
def early_exit_by_the_least_likely_class(bench: Bench) -> Ended:
    """A window ends when the wrong class is sure."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(windows, "is_sure", lambda p, stop_at: 1 - p.min(-1) >= stop_at)

    return bench.verify(bench.file, bench.run, plant=plant)


@ends(1, "a stream in pieces: bin")
def time_that_is_advanced_a_bin_early(bench: Bench) -> Ended:
    """``advance`` also ends the bin that is open."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        advance = Binner.advance
        patch.setattr(Binner, "advance", lambda self, t_us: advance(self, t_us + self.binning.bin_us))

    return bench.verify(bench.file, bench.run, plant=plant)


@ends(1, "a stream in pieces: bin")
def a_restored_session_without_its_open_bin(bench: Bench) -> Ended:
    """The events of the bin in which a session was saved are lost."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        restore = Binner.restore
        patch.setattr(Binner, "restore", lambda self, state: restore(self, replace(state, counts=0 * state.counts)))

    return bench.verify(bench.file, bench.run, plant=plant)


@ends(1, "its probabilities are")
def probabilities_of_half_the_logits(bench: Bench) -> Ended:
    """A temperature that nobody asked for."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        mean = decision.mean_probabilities
        patch.setattr(decision, "mean_probabilities", lambda logits, scale: mean(logits / np.float32(2), scale))

    return bench.verify(bench.file, bench.run, plant=plant)


def certain(bench: Bench) -> tuple[Path, Path]:
    """A run with a validation part, and its file with a coverage."""
    run = bench.once("validated", lambda: bench.train("--data.validation.share", "0.15"))
    return run, bench.once("certain", lambda: bench.export(run, "--coverage", "0.9"))


@ends(0, "none of which is of 'test'")
def a_file_with_a_coverage(bench: Bench) -> Ended:
    """Nothing is planted."""
    run, file = certain(bench)
    return bench.verify(file, run)


@ends(1, "are possible; its logits and margin give")
def sets_of_classes_with_half_the_margin(bench: Bench) -> Ended:
    """What a device says is possible, and the file does not."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        possible = decision.possible_classes
        patch.setattr(decision, "possible_classes", lambda logits, margin: possible(logits, margin / 2))

    run, file = certain(bench)
    return bench.verify(file, run, plant=plant)


@ends(1, "certainty was fitted on", quick=True)
def margins_fitted_on_the_test_part(bench: Bench) -> Ended:
    """They hold what was measured there, whatever they promise elsewhere."""
    run, _ = certain(bench)
    return bench.verify(bench.export(run, "--coverage", "0.9", plant=fitted_on_test), run)


def fitted_on_test(patch: pytest.MonkeyPatch) -> None:
    """The validation part is taken from the test part."""
    patch.setattr(certainty, "PART", "test")


@ends(1, "needs", quick=True)
def margins_one_place_too_small(bench: Bench) -> Ended:
    """⌊n · coverage⌋ in the place of ⌈(n + 1) · coverage⌉."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(certainty, "rank_of", lambda coverage, samples: int(samples * coverage))

    run, _ = certain(bench)
    return bench.verify(bench.export(run, "--coverage", "0.9", plant=plant), run)


@ends(1, "a smaller one (")
def a_temperature_of_half_the_logits(bench: Bench) -> Ended:
    """Twice as hot as the loss wants it."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        fitted = certainty.fitted_scale
        patch.setattr(certainty, "fitted_scale", lambda outputs, labels: (fitted(outputs, labels) or 1.0) / 2)

    run, _ = certain(bench)
    return bench.verify(bench.export(run, "--coverage", "0.9", plant=plant), run)


@ends(1, "its entropy is")
def entropies_in_bits(bench: Bench) -> Ended:
    """Nats are what the documentation says."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        nats = decision.entropy
        patch.setattr(decision, "entropy", lambda p: nats(p) / np.log(2))

    return bench.verify(bench.file, bench.run, plant=plant)
