"""Cold posteriors: σ shrinks until noise costs no more than it may."""

import copy
from dataclasses import replace

import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.models import MEAN_FIELD, LIFSettings, Sample, SpikingMLP, variant
from axonnx.train import loop
from axonnx.train.noise import largest_scale, multiply_stds, temper
from axonnx.train.run import restore_run, train_run

from .tiny_runs import tiny_config, tiny_network


def shares(by_scale):
    """Right decisions of each noise scale; those between are not asked for."""
    asked = []

    def share_right(scale):
        asked.append(scale)
        return next(share for least, share in by_scale if scale >= least)

    return share_right, asked


def test_the_largest_noise_that_costs_no_more_than_it_may_is_taken():
    share_right, asked = shares([(1.0, 0.2), (0.5, 0.8), (0.25, 0.895), (0.0, 0.9)])
    assert largest_scale(share_right, 0.1) == pytest.approx(2**-0.5)
    assert largest_scale(share_right, 0.01) == pytest.approx(2**-1.5)
    assert largest_scale(share_right, 0.001) == pytest.approx(2**-2.5)
    assert asked[0] == 0.0  # what there is to lose is measured without noise
    assert largest_scale(lambda scale: 0.9, 0.0) == 1.0
    assert largest_scale(lambda scale: 0.9 if scale == 0.0 else 0.1, 0.05) == 2.0**-8


@pytest.mark.parametrize("spread", ["learned", "fixed"])
def test_smaller_stds_are_the_noise_of_a_smaller_scale(spread):
    torch.manual_seed(0)
    network = SpikingMLP(6, [30, 30], 3, replace(variant("sbnn"), spread=spread), LIFSettings(base_std=0.3))
    x = torch.randint(0, 3, (8, 16, 6)).float()
    scaled = copy.deepcopy(network)
    multiply_stds(scaled, 0.25)
    for name, tensor in network.state_dict().items():
        after = scaled.state_dict()[name]
        if name.endswith("std"):
            assert torch.allclose(torch.exp(after), 0.25 * torch.exp(tensor))  # exp and log round
        else:
            assert torch.equal(after, tensor)
    assert torch.equal(scaled(x, MEAN_FIELD).logits, network(x, MEAN_FIELD).logits)
    less = network(x, Sample(torch.Generator().manual_seed(1), 0.25))
    now = scaled(x, Sample(torch.Generator().manual_seed(1)))
    assert torch.allclose(now.logits, less.logits)  # κ′ε against s·κε: other roundings of the same noise
    assert not torch.equal(now.logits, network(x, Sample(torch.Generator().manual_seed(1))).logits)


def test_a_noisy_network_is_tempered_until_its_decisions_hold(frames):
    config = tiny_config(frames, optimiser__epochs=6)
    network, prepared = tiny_network(config)
    loop.fit(network, prepared, config)
    multiply_stds(network, 50.0)
    feed = loop.learn_feed(prepared, config, torch.device("cpu"), loop.World())
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    scale = temper(network, feed, 6, 0.02, seed=3)
    assert scale < 0.5
    for name, tensor in network.state_dict().items():
        changed = torch.log(torch.tensor(scale)) if name.endswith("std") else 0.0
        assert torch.allclose(tensor, before[name] + changed)  # ln s in float32, there in float64


def test_a_run_is_tempered_once_after_its_last_epoch(frames, tmp_path):
    noisy = {"name": "mfa", "initial_std": 30.0}
    run = train_run(tiny_config(frames, optimiser__epochs=6, variant=noisy, noise={"temper": 0.01}), tmp_path / "run")
    scales = [row["noise_scale"] for row in run.training.rows]
    assert scales[:-1] == [1.0] * 5
    assert scales[-1] < 1.0
    assert f"noise.temper: every σ times {scales[-1]:.3g}" in (tmp_path / "run" / "log.txt").read_text("utf-8")
    untempered = train_run(tiny_config(frames, optimiser__epochs=6, variant=noisy), tmp_path / "plain")
    multiply_stds(untempered.network, scales[-1])
    kept = restore_run(tmp_path / "run")[2]
    for name, tensor in untempered.network.state_dict().items():
        assert torch.equal(kept.state_dict()[name], tensor)
    again = train_run(out=tmp_path / "run", resume=True)  # a finished run is not tempered a second time
    for name, tensor in kept.state_dict().items():
        assert torch.equal(again.network.state_dict()[name], tensor)


def test_a_network_without_posterior_cannot_be_tempered(frames):
    config = tiny_config(frames, variant={"name": "sg-bn"}, noise={"temper": 0.01})
    with pytest.raises(
        AxonnxError, match=r"noise\.temper is for networks with a posterior; 'sg-bn' has no σ to shrink"
    ):
        tiny_network(config)
