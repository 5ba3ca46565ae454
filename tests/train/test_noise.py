"""Noise on its way out: annealed, and batches in turn with and without it."""

from itertools import pairwise

import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.models import MEAN_FIELD, BinaryMLP, Replay, Sample, variant
from axonnx.train import loop
from axonnx.train.noise import fire_of_batch, is_mean_field, noise_scale

from .tiny_runs import tiny_config, tiny_network


def test_noise_is_whole_and_then_falls_on_a_straight_line():
    assert [noise_scale(p, 0.5) for p in (0.0, 0.5, 0.75, 0.9, 1.0)] == pytest.approx([1.0, 1.0, 0.5, 0.2, 0.0])
    assert noise_scale(0.25, 1.0) == 0.75
    assert [noise_scale(p, 0.0) for p in (0.0, 0.999, 1.0, 1.5)] == [1.0, 1.0, 1.0, 1.0]
    assert noise_scale(1.5, 0.5) == 0.0


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.25, 25), (0.5, 50), (0.9, 90)])
def test_batches_without_noise_are_spread_evenly(share, expected):
    chosen = [is_mean_field(batch, share) for batch in range(100)]
    assert sum(chosen) == expected
    for first in range(0, 100, 20):
        assert abs(sum(chosen[first : first + 20]) - expected / 5) <= 1


def test_scaled_noise_is_less_of_the_same_noise():
    """s κ ε: the decisions of a Replay of s ε; at s = 0 those of the mean-field pass.

    In float64, where passes take their noise from torch's generator.
    """
    network, x = BinaryMLP(5, [40], 3).double(), torch.rand(16, 5, dtype=torch.float64)
    drawn = torch.randn(16, 40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for scale in (1.0, 0.3, 0.0):
        found = network(x, Sample(torch.Generator().manual_seed(1), scale))
        expected = network(x, Replay({"hidden.0.neuron": scale * drawn}))
        assert torch.equal(found.logits, expected.logits)
    assert torch.equal(found.logits, network(x, MEAN_FIELD).logits)


def test_a_run_anneals_by_its_own_progress(frames):
    config = tiny_config(frames, optimiser__epochs=4, noise={"anneal": 0.5}, finetune__epochs=1)
    noisy, source = variant("sbnn"), torch.Generator()
    scales = [getattr(fire_of_batch(config, noisy, source, done, 10), "scale", 0.0) for done in range(0, 50, 10)]
    assert scales == [1.0, 1.0, 1.0, 0.5, 0.0]
    assert fire_of_batch(config, variant("mfa"), source, 0, 10) is MEAN_FIELD
    steady = tiny_config(frames, optimiser__epochs=4, finetune__epochs=1)
    assert fire_of_batch(steady, noisy, source, 45, 10) is MEAN_FIELD  # fine-tuning


def test_the_loop_fires_each_batch_as_it_is_told(frames, monkeypatch):
    config = tiny_config(frames, optimiser__epochs=4, noise={"anneal": 0.5, "mean_field": 0.5})
    network, prepared = tiny_network(config)
    seen, step = [], loop._step
    monkeypatch.setattr(loop, "_step", lambda *given: (seen.append(given[3]), step(*given))[1])
    loop.fit(network, prepared, config)
    scales = [getattr(fire, "scale", None) for fire in seen]
    assert scales[: len(scales) // 2] == [1.0, None] * (len(scales) // 4)
    later = [scale for scale in scales[len(scales) // 2 :] if scale is not None]
    assert all(a > b for a, b in pairwise(later))
    assert later[-1] < 0.3


@pytest.mark.parametrize("key", ["anneal", "mean_field"])
def test_noise_settings_of_training_without_noise_are_refused(frames, key):
    config = tiny_config(frames, variant={"name": "mfa"}, noise={key: 0.5})
    with pytest.raises(AxonnxError, match=rf"noise.{key} is for training with noise; 'mfa' fires mean-field. Leave it"):
        tiny_network(config)
