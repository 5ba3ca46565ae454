"""``fit(network, data, config)`` as from a notebook: no folder, no output, plain objects in and out."""

import numpy as np
import pytest
import torch

from axonnx.models import BinaryMLP, LIFSettings, Linear, SpikingMLP, variant
from axonnx.train.build import Prepared
from axonnx.train.config.settings import Config
from axonnx.train.data.recordings import Frames
from axonnx.train.data.splits import DataSplits
from axonnx.train.loop import final_predictions, fit

from .tiny_runs import CLASSES, SIDE, STEPS


def own_data(time: bool) -> Prepared:
    """Data from arrays, that no file and no registry knows."""
    generator = np.random.default_rng(0)
    labels = np.arange(90) % CLASSES
    shape = (STEPS, 1, SIDE, SIDE) if time else (1, SIDE, SIDE)
    frames = (generator.random((90, *shape)) < 0.1).astype(np.uint8)
    for sample, label in enumerate(labels):
        frames[sample, ..., label, :] = 1
    names = ("top", "middle", "bottom")
    parts = [Frames(frames[chosen], labels[chosen], names) for chosen in (slice(60), slice(60, 90))]
    return Prepared(DataSplits("mine", *parts), None, shape)


def config_for(network: str) -> Config:
    return Config.model_validate(
        {
            "data": {"name": "mine"},
            "model": {"network": network},
            "variant": {"name": "mfa"},
            "optimiser": {"epochs": 8, "batch_size": 10, "weight_rate": 0.02},
        }
    )


def test_a_network_of_ones_own_data_is_trained_in_three_lines(tmp_path, capsys):
    network = SpikingMLP(SIDE * SIDE, [12], CLASSES, variant("mfa"), LIFSettings(decay=0.8))
    data = own_data(time=True)
    training = fit(network, data, config_for("spiking-mlp"))
    assert training.network is network
    assert len(training.rows) == 8
    assert training.rows[-1]["test_accuracy"] > 0.8
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    assert not list(tmp_path.iterdir())


def test_a_network_that_no_configuration_knows_is_trained_too():
    """The loop needs a ``Network``, not one of those that have a name."""

    class Wide(BinaryMLP):
        def __init__(self):
            super().__init__(SIDE * SIDE, [16], CLASSES, variant("mfa"))
            self.hidden[0].synapse = Linear(SIDE * SIDE, 16, variant("mfa"))

    data, config = own_data(time=False), config_for("binary-mlp")
    training = fit(Wide(), data, config)
    assert training.rows[-1]["test_accuracy"] > 0.8
    found = final_predictions(training.network, data, config, torch.device("cpu"))
    assert set(found) == {"train", "test", "test_bayesian"}
    assert found["test"].metrics().accuracy == training.rows[-1]["test_accuracy"]


def test_after_each_epoch_the_caller_may_look(capsys):
    seen = []
    network = BinaryMLP(SIDE * SIDE, [8], CLASSES, variant("mfa"))
    fit(
        network,
        own_data(time=False),
        config_for("binary-mlp"),
        after_epoch=lambda training: seen.append((training.epochs_done, training.rows[-1]["epoch"])),
    )
    assert seen == [(epoch, epoch) for epoch in range(1, 9)]


def test_a_network_of_the_wrong_size_fails_at_once():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        fit(BinaryMLP(7, [8], CLASSES, variant("mfa")), own_data(time=False), config_for("binary-mlp"))
