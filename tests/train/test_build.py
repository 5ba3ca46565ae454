"""From a configuration to data and network: what fits is built, what does not is refused with the key to change."""

import numpy as np
import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.models import BinaryMLP, BinaryResNet, RecurrentSNN, SpikingConvNet, SpikingMLP, SpikingResNet
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.format.contract import MergingContract
from axonnx.train.build import make_variant, prepare
from axonnx.train.config.settings import VariantConfig
from axonnx.train.data import registry
from axonnx.train.data.recordings import Recordings, join_events
from axonnx.train.data.splits import DataSplits

from .tiny_runs import tiny_config, tiny_network


@pytest.fixture
def events(monkeypatch):
    """A data set of events called "events": two recordings of four events on a sensor of 4 × 4."""
    one = make_events([0, 10, 20, 900], [0, 1, 2, 3], [0, 0, 1, 2], [0, 1, 0, 1])
    data = Recordings(*join_events([one, one]), np.array([0, 1]), ("a", "b"), Sensor(width=4, height=4))
    splits = DataSplits("events", data, data)
    monkeypatch.setitem(registry.DATA_SETS, "events", registry.DataSet(lambda root: splits, "two recordings"))
    return "events"


def refusal(data, **changes) -> str:
    with pytest.raises(AxonnxError) as fault:
        tiny_network(tiny_config(data, **changes))
    return str(fault.value)


BINNED = {"data__bins": 2, "data__duration_ms": 1.0}
RESNET = {"model": {"network": "binary-resnet", "widths": [2, 2], "blocks": 1}}


@pytest.mark.parametrize(
    ("time", "model", "kind"),
    [
        (False, {"network": "binary-mlp", "hidden": [5]}, BinaryMLP),
        (False, {"network": "binary-resnet", "widths": [2, 4], "blocks": 1}, BinaryResNet),
        (True, {"network": "spiking-mlp", "hidden": [5], "decay": 0.5, "reset": "zero"}, SpikingMLP),
        (True, {"network": "recurrent-snn", "hidden": [5], "learn_decay": True, "delays": [0, 1]}, RecurrentSNN),
        (True, {"network": "spiking-convnet", "widths": [2, 4], "hidden": [5], "delays": [0, 1]}, SpikingConvNet),
        (True, {"network": "spiking-resnet", "widths": [2, 4], "blocks": 1, "shortcut": "conv"}, SpikingResNet),
    ],
)
@pytest.mark.parametrize("variant", ["bbnn", "mfa", "fpv", "nkl", "sg-bn", "sg-nbn-1"])
def test_every_network_in_every_variant_gives_logits(time, model, kind, variant, frames, images):
    config = tiny_config(frames if time else images, model=model, variant={"name": variant})
    network, prepared = tiny_network(config)
    assert type(network) is kind
    shape = prepared.shape
    x = torch.ones(shape[0], 2, *shape[1:]) if time else torch.ones(2, *shape)
    assert network(x).logits.shape == (2, len(prepared.splits.classes))


def test_images_are_shown_in_every_time_step(images, frames):
    model = {"network": "spiking-mlp", "hidden": [5]}
    network, prepared = tiny_network(tiny_config(images, time=False, model=model, data__repeat=6))
    plain = prepare(tiny_config(images, time=False).data)
    assert (prepared.shape, prepared.repeated, plain.repeated) == ((6, *plain.shape), True, False)
    shown, image = prepared.splits.train.frames, plain.splits.train.frames
    assert all(np.array_equal(shown[:, step], image) for step in range(6))
    assert shown.strides[1] == 0  # no copies
    assert type(network) is SpikingMLP
    assert "data.repeat is for images" in refusal(frames, data__repeat=6)


def test_weights_follow_from_the_seed_alone(frames):
    def first(seed):
        torch.rand(3)  # what was drawn before does not count
        return next(tiny_network(tiny_config(frames, seed=seed))[0].parameters())

    assert torch.equal(first(3), first(3))
    assert not torch.equal(first(3), first(4))


def test_settings_of_neurons_arrive_in_the_network(frames):
    model = {"network": "spiking-mlp", "hidden": [5], "threshold": 2.0, "decay": 0.5, "base_std": 0.1}
    network, _ = tiny_network(tiny_config(frames, model=model))
    neuron = network.hidden[0].neuron
    assert (neuron.threshold.item(), neuron.decay.item()) == (2.0, 0.5)
    assert neuron.log_base_std.exp().item() == pytest.approx(0.1)


def test_data_with_time_is_not_for_binary_networks_and_the_other_way_round(frames, images, events):
    wrong = {"model": {"network": "binary-mlp", "hidden": [5]}}
    for data, settings in ((frames, {}), (events, BINNED)):
        text = refusal(data, **wrong, **settings)
        assert "has a time axis, so model.network cannot be 'binary-mlp'; it can be spiking-mlp" in text
    text = refusal(images, model={"network": "spiking-mlp", "hidden": [5]})
    assert "has no time axis, so model.network cannot be 'spiking-mlp'; it can be binary-mlp, binary-resnet" in text


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ({"network": "binary-resnet", "hidden": [5]}, "model.hidden is not for 'binary-resnet', which takes widths"),
        ({"network": "binary-mlp", "hidden": [5], "widths": [4]}, "model.widths is not for 'binary-mlp', which takes"),
        ({"network": "binary-mlp", "hidden": [5], "threshold": 1.0}, "model.threshold is not for 'binary-mlp'"),
        ({"network": "binary-mlp"}, "model.hidden is missing: 'binary-mlp' needs the sizes"),
        ({"network": "binary-mlp", "hidden": []}, "model: hidden is empty"),
        ({"network": "binary-mlp", "hidden": [5], "delays": [0, 1]}, "model.delays is not for 'binary-mlp'"),
        ({"network": "binary-resnet", "widths": [4, 2], "blocks": 1}, "model: a residual block cannot narrow"),
        ({"network": "binary-resnet", "widths": [2] * 4, "blocks": 1}, "model: input of 4×4 pixels cannot"),
    ],
)
def test_sizes_that_a_network_does_not_have_are_refused(model, complaint, images):
    assert complaint in refusal(images, model=model)


def test_a_decay_that_cannot_be_learned_is_refused(frames):
    model = {"network": "spiking-mlp", "hidden": [5], "decay": 1.0, "learn_decay": True}
    assert refusal(frames, model=model).startswith("model: decay is 1.0")


def test_a_residual_network_takes_rectangles_whose_sides_it_can_halve(tmp_path):
    np.savez(tmp_path / "wide.npz", frames=np.ones((6, 1, 4, 12), np.uint8), labels=np.arange(6) % 2)
    network, _ = tiny_network(tiny_config(tmp_path / "wide.npz", **RESNET))
    assert network(torch.ones(2, 1, 4, 12)).logits.shape == (2, 2)
    np.savez(tmp_path / "odd.npz", frames=np.zeros((6, 1, 4, 11), np.uint8), labels=np.arange(6) % 2)
    assert "input of 11×4 pixels cannot shrink" in refusal(tmp_path / "odd.npz", **RESNET)


@pytest.mark.parametrize(
    ("setting", "value"), [("bins", 4), ("duration_ms", 3.0), ("values", "binary"), ("downsample", 2), ("clip", 3)]
)
def test_settings_of_events_are_refused_for_images(setting, value, images):
    text = refusal(images, time=False, **{f"data__{setting}": value})
    assert text.startswith(f"data.{setting} is for ")
    assert "has images" in text


@pytest.mark.parametrize(("setting", "value"), [("centre", 3), ("merge_frames", 2)])
def test_settings_of_frames_are_refused_for_events(setting, value, events):
    text = refusal(events, **BINNED, **{f"data__{setting}": value})
    assert f"data.{setting} is for frames and images; events has events" in text


def test_events_need_to_be_binned(events):
    text = refusal(events)
    assert "events holds events, and data.bins (e.g. 20) and data.duration_ms (e.g. 1) must say how" in text


def test_frames_are_merged_by_sums_that_are_clipped(tmp_path):
    frames = np.arange(10, dtype=np.uint8).reshape(2, 5, 1, 1, 1).repeat(3, axis=0)
    np.savez(tmp_path / "f.npz", frames=frames, labels=np.arange(6) % 2)
    prepared = prepare(tiny_config(tmp_path / "f.npz", data__merge_frames=2, data__clip=12).data)
    assert prepared.shape == (3, 1, 1, 1)
    assert prepared.merging == MergingContract(recorded=5, frames=2, clip=12)
    sums = {tuple(sample.ravel().tolist()) for sample in prepared.splits.train.frames}
    assert sums == {(1, 5, 4), (11, 12, 9)}  # 0+1, 2+3, 4 and 5+6, min(7+8, 12), 9


def test_merging_is_for_sequences(images):
    assert "data.merge_frames is for sequences" in refusal(images, data__merge_frames=2)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"name": "bnn"}, "variant.name: unknown variant 'bnn'; known are"),
        ({"estimator": {"name": "stt"}}, "variant.estimator: unknown estimator 'stt'; known are"),
        ({"estimator": {"k": 1}}, "variant.estimator needs a name"),
        ({"estimator": {"name": "agr", "temperature": 1}}, "variant.estimator: estimator 'agr' has no option"),
        ({"estimator": {"name": "agr", "k": -1}}, "variant.estimator: agr: temperature k is -1"),
        ({"estimator": {"name": "agr", "k": "warm"}}, "variant.estimator: "),
        ({"name": "sg-bn", "estimator": {"name": "st"}}, "variant: estimator 'st' needs a posterior"),
    ],
)
def test_a_wrong_variant_is_refused_with_its_key(settings, complaint):
    with pytest.raises(AxonnxError) as fault:
        make_variant(VariantConfig(**settings))
    assert str(fault.value).startswith(complaint)


def test_single_settings_of_a_variant_are_replaced():
    chosen = make_variant(
        VariantConfig(name="mfa", granularity="neuron", fire="sample", estimator={"name": "iwst", "p": 0.5})
    )
    assert (chosen.granularity, chosen.fire) == ("neuron", "sample")
    assert (chosen.estimator.name, chosen.estimator.p) == ("iwst", 0.5)
    assert chosen.kl is make_variant(VariantConfig(name="mfa")).kl is True


def test_options_of_residual_networks_and_read_outs_reach_the_network(frames, images):
    model = {"network": "spiking-resnet", "widths": [2], "blocks": 1, "stream": "spikes", "block_scale": 0.5}
    network, _ = tiny_network(tiny_config(frames, model={**model, "readout_decay": 0.0, "learn_decay": "neuron"}))
    assert network.trunk.counts
    assert network.trunk.blocks[0].conv2.norm.scale.tolist() == [0.5, 0.5]
    assert network.readout.decay == 0.0
    assert network.trunk.neuron.decay.shape == (2, 1, 1)
    for key, value in (("stream", "spikes"), ("block_scale", 0.5)):
        with pytest.raises(
            AxonnxError, match=f"model.{key} is not for 'spiking-mlp', which takes hidden, readout_decay, delays"
        ):
            tiny_network(tiny_config(frames, **{f"model__{key}": value}))
    with pytest.raises(AxonnxError, match=r"model.readout_decay is not for 'binary-mlp', which takes hidden"):
        tiny_network(tiny_config(images, time=False, model__readout_decay=0.5))


def test_a_convnet_without_convolutions_is_refused(frames):
    assert "model.widths is missing: 'spiking-convnet' needs" in refusal(frames, model={"network": "spiking-convnet"})


def test_the_normalisation_of_a_variant_can_be_replaced():
    chosen = make_variant(VariantConfig(name="sbnn", normalisation="batch_over_time"))
    assert (chosen.normalisation, chosen.spread) == ("batch_over_time", "learned")
    with pytest.raises(AxonnxError, match=r"variant\.per_step is for scale and bias; 'sbnn' has batch norm"):
        make_variant(VariantConfig(name="sbnn", normalisation="batch", per_step=True))


def test_a_number_of_frames_beyond_every_recording_is_refused_with_the_configuration(tmp_path):
    np.savez(tmp_path / "f.npz", frames=np.ones((8, 4, 1, 2, 2), np.uint8), labels=np.arange(8) % 2)
    prepare(tiny_config(tmp_path / "f.npz", data__merge_frames=2**20).data)
    with pytest.raises((AxonnxError, ValueError), match="merge_frames"):
        tiny_config(tmp_path / "f.npz", data__merge_frames=2**20 + 1)
