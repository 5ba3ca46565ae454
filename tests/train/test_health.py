"""Warnings about networks that cannot learn: when, once, where and what to do."""

import pytest
import torch

from axonnx.cli.terminal_progress import Shown
from axonnx.models import BinaryMLP, Sample, SpikingMLP, variant
from axonnx.train.health import median_sizes, new_warnings
from axonnx.train.run import train_run

from .tiny_runs import tiny_config

HEALTHY = {"gradient/first": 1e-2, "gradient/middle": 1e-9, "gradient/last": 1.0, "gradient/readout": 99.0, "z/a": 2.0}


def test_a_healthy_network_is_left_in_peace():
    assert new_warnings([HEALTHY]) == []


def test_gradients_that_do_not_reach_the_first_layer():
    (text,) = new_warnings([HEALTHY, {**HEALTHY, "gradient/first": 9e-4}])
    assert text.startswith("gradients vanish: 9.0e-04 in 'first', 1.0e+00 in 'last'. ")
    assert all(remedy in text for remedy in ("regulariser.weight to 'auto'", "optimiser.scale_rate", "variant.init"))


def test_neurons_far_beyond_their_noise():
    (text,) = new_warnings([{**HEALTHY, "z/b": 18.3, "z/c": 11.0}])
    assert "neurons saturate: half of layer 'b' is more than 18 κ from θ" in text


def test_a_trouble_is_told_when_it_begins():
    sick = {**HEALTHY, "z/a": 11.0}
    assert new_warnings([sick, sick]) == []
    assert len(new_warnings([sick, HEALTHY, sick])) == 1
    assert len(new_warnings([sick, {**sick, "gradient/first": 0.0}])) == 1


def test_networks_without_noise_or_of_one_layer_have_nothing_to_compare():
    assert new_warnings([{"gradient/only": 0.0, "gradient/readout": 1.0}]) == []


@pytest.mark.parametrize("fire", [None, Sample()])
def test_the_median_is_that_of_the_ratio(fire):
    network = SpikingMLP(5, [4, 3], 2)
    output = network((torch.rand(6, 3, 5) < 0.5).float(), *([fire] if fire else []))
    for name, size in median_sizes(output).items():
        seen = output.observations[name]
        assert size == (seen.gap / seen.variance.sqrt()).abs().median()
    assert median_sizes(BinaryMLP(5, [4], 2, variant("sg-nbn-1"))(torch.rand(3, 5))) == {}


def test_a_run_without_regulariser_and_with_huge_weights_is_warned_about_in_log_and_terminal(tmp_path, images, capsys):
    optimiser = {"epochs": 2, "batch_size": 8, "weight_rate": 30.0}
    config = tiny_config(images, time=False, variant={"name": "nkl"}, optimiser=optimiser)
    train_run(config, tmp_path / "run", progress=Shown("train", quiet=True))
    for told in ((tmp_path / "run" / "log.txt").read_text(), capsys.readouterr().err):
        assert told.count("warning: epoch 1: neurons saturate: half of layer 'hidden.") == 1
        assert told.count("neurons saturate") == 1
