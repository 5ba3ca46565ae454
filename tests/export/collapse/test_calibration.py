"""Calibration: the deterministic network fires as often as the noisy one did, neuron by neuron."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from axonnx.cli.options import settings_of
from axonnx.export.calibrate import _threshold_for, calibrate, firing_rates
from axonnx.export.collapsed import collapse_network
from axonnx.models import Network, SpikingNetwork
from axonnx.runtime.format.contract import InputContract
from axonnx.train.build import input_contract, make_network, prepare
from axonnx.train.config.read import read_config
from axonnx.train.distributed import World
from axonnx.train.loop import fit, make_feeds

from ..running import Comparison, export
from ..small_networks import Recipe, build, counts, input_of

NOISY = ["--model.base_std", "2.0", "--optimiser.scale_rate", "0.001"]  # and it stays noisy while it learns
SMALL = ["--data.bins", "8", "--model.hidden", "[24,16]", "--optimiser.epochs", "2", *NOISY]


@dataclass(frozen=True)
class Calibrated:
    """A noisy network, the input it was calibrated on, and the rates before and after."""

    noisy: Network
    arriving: InputContract
    inputs: list[Tensor]
    thresholds: dict[str, Tensor]
    wanted: dict[str, Tensor]
    before: dict[str, Tensor]
    after: dict[str, Tensor]


@torch.no_grad()
def calibrated(noisy: Network, arriving: InputContract, inputs: list[Tensor]) -> Calibrated:
    plain = collapse_network(noisy, arriving).network
    wanted, before = firing_rates(noisy, inputs, 4, 0), firing_rates(plain, inputs, 1, None)
    thresholds = calibrate(noisy, plain, inputs)
    after = firing_rates(collapse_network(noisy, arriving, None, thresholds).network, inputs, 1, None)
    return Calibrated(noisy, arriving, inputs, thresholds, wanted, before, after)


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> Calibrated:
    """A network trained by sampling on digits seen by an event camera, with thresholds that are noisy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        config = read_config("digits-saccade", settings_of([*SMALL, "--variant.name", "sbnn", "--device", "cpu"]))
        prepared = prepare(config.data)
        network = make_network(config, prepared)
        fit(network, prepared, config)
        feed = make_feeds(prepared, config, torch.device("cpu"), World())["train"]
        batches = [batch.x for _, batch in zip(range(4), feed.epoch(0), strict=False)]
    return calibrated(network.eval(), input_contract(config, prepared), batches)


@pytest.fixture(scope="module")
def convolutional() -> Calibrated:
    recipe = Recipe("spiking-resnet")
    arriving = input_of(recipe)
    torch.manual_seed(1)
    return calibrated(build(recipe), arriving, [counts(arriving, batch, 12) for batch in (12, 12, 5)])


@pytest.fixture(scope="module")
def binary() -> Calibrated:
    recipe = Recipe("binary-mlp")
    torch.manual_seed(1)
    arriving = input_of(recipe)
    return calibrated(build(recipe), arriving, [counts(arriving, 200, 1) for _ in range(3)])


@pytest.fixture(params=["digits", "convolutional", "binary"])
def every(request) -> Calibrated:
    return request.getfixturevalue(request.param)


def distance(one: dict[str, Tensor], other: dict[str, Tensor], name: str) -> float:
    return float((one[name] - other[name]).abs().mean())


def test_rates_are_matched_within_a_point_and_better_than_before(every):
    """Mean |rate − noisy rate| over the neurons of a layer: at most 0.01, and at most half of what it was.

    Half is asked of layers that were off by more than 0.01; a layer that was right needs only to stay so.
    """
    moved = 0
    for name in every.wanted:
        before, after = distance(every.wanted, every.before, name), distance(every.wanted, every.after, name)
        assert after < 0.01, name
        if before > 0.01:
            assert after < 0.5 * before, name
            moved += 1
    assert moved > 0


def test_thresholds_are_positive_and_one_for_each_neuron_or_channel(every):
    spiking = isinstance(every.noisy, SpikingNetwork)
    for name, threshold in every.thresholds.items():
        assert torch.isfinite(threshold).all()
        assert not spiking or (threshold > 0).all(), name
        assert threshold.numel() == every.wanted[name].numel()
    assert every.thresholds.keys() == every.wanted.keys()


@pytest.mark.parametrize("kind", ["recurrent-snn", "spiking-mlp", "binary-mlp"])
def test_a_network_that_fires_as_wanted_is_left_alone(kind):
    """Rates that are right already move no threshold: in a recurrent layer one such move would set off others."""
    recipe = Recipe(kind)
    torch.manual_seed(1)
    arriving = input_of(recipe)
    plain = collapse_network(build(recipe), arriving).network
    before = {
        name: plain.get_submodule(name).threshold.clone()
        for name in firing_rates(plain, [counts(arriving, 2, 5)], 1, None)
    }
    thresholds = calibrate(plain, plain, [counts(arriving, 20, 5)])
    for name, threshold in thresholds.items():
        torch.testing.assert_close(threshold, before[name].expand_as(threshold), rtol=0, atol=0)


def test_channels_of_a_convolution_share_a_threshold(convolutional):
    assert convolutional.thresholds["trunk.blocks.1.neuron2"].shape == (8, 1, 1)


def test_a_calibrated_network_is_exported_exactly(every):
    exported = export(every.noisy, every.arriving, thresholds=every.thresholds)
    x = every.inputs[0]
    comparison = Comparison()
    comparison.add(exported.on_torch(x, {}), exported.on_onnxruntime(x, {}))
    comparison.hold(("spikes", "logits"))
    assert exported.contract.collapse.calibrated


def test_calibrating_twice_gives_the_same_thresholds(digits):
    again = calibrated(digits.noisy, digits.arriving, digits.inputs[:2])
    once_more = calibrated(digits.noisy, digits.arriving, digits.inputs[:2])
    assert all(torch.equal(again.thresholds[name], once_more.thresholds[name]) for name in again.thresholds)


def test_every_sample_counts_the_same_in_a_rate(digits):
    """One batch of 50 and two of 40 and 10: the same samples, the same rates."""
    plain = collapse_network(digits.noisy, digits.arriving).network
    x = digits.inputs[0][:, :50]
    with torch.no_grad():
        whole = firing_rates(plain, [x], 1, None)
        parts = firing_rates(plain, [x[:, :40], x[:, 40:]], 1, None)
    for name, rate in whole.items():
        torch.testing.assert_close(parts[name], rate)


def test_progress_is_told_layer_by_layer(binary):
    lines: list[str] = []
    calibrate(
        binary.noisy, collapse_network(binary.noisy, binary.arriving).network, binary.inputs[:1], tell=lines.append
    )
    assert [line.partition(":")[0] for line in lines] == list(binary.wanted)


def test_a_threshold_is_reached_by_the_share_that_is_wanted():
    """Halfway between the last membrane that shall fire and the next one."""
    membranes = torch.tensor([[0.5, 3.0, 1.0, 2.0, 4.0, 0.1, 0.2, 0.3]]).repeat(5, 1)
    rate = torch.tensor([0.125, 0.25, 0.5, 0.75, 0.0])
    found = _threshold_for(membranes, rate, torch.tensor(1.0), spiking=True)
    assert found.tolist() == pytest.approx([3.5, 2.5, 0.75, 0.25, 4.001])
    assert (membranes >= found[:, None]).float().mean(1).tolist() == rate.tolist()


def test_a_silent_neuron_keeps_a_threshold_that_it_never_reached():
    membranes = torch.tensor([[0.5, 1.0]])
    assert _threshold_for(membranes, torch.zeros(1), torch.tensor(7.0), spiking=True).tolist() == [7.0]


def test_the_threshold_of_a_spiking_neuron_stays_above_zero():
    """A reset by a negative threshold would charge the membrane; a binary neuron has none."""
    membranes, rate = torch.tensor([[-3.0, -2.0, -1.0, -0.5]]), torch.tensor([0.5])
    assert _threshold_for(membranes, rate, torch.tensor(1.0), spiking=True).tolist() == pytest.approx([0.05])
    assert _threshold_for(membranes, rate, torch.tensor(1.0), spiking=False).tolist() == [-1.5]
