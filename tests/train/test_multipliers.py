"""λ by dual ascent: its steps, what it holds a layer at, and that nothing of it is lost on the way."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.models import BinaryMLP, Regulariser, Sample
from axonnx.train import loop
from axonnx.train.checkpoint import read_index
from axonnx.train.config.read import check_config
from axonnx.train.objective import LARGEST, SMALLEST, START, Objective, ascend, numbers
from axonnx.train.run import train_run
from axonnx.train.run_folder import RunFolder

from .tiny_runs import rows_of, same_bits, tiny_config, tiny_network, tiny_tree, weights_of, without_time


def test_a_step_by_hand():
    """Above the target λ grows, below it falls, at it it stays; a step is never more than the rate."""
    weights = {"above": 0.02, "below": 0.02, "far": 0.02, "at": 0.02}
    found = ascend(weights, {"above": 6.0, "below": 1.5, "far": 3e9, "at": 3.0, "new": 3.0}, target=3.0, rate=0.1)
    assert found["above"] == pytest.approx(0.02 * 2**0.1)
    assert found["below"] == pytest.approx(0.02 / 2**0.1)
    assert found["far"] == pytest.approx(0.02 * math.exp(0.1))
    assert found["at"] == 0.02
    assert found["new"] == START


def test_a_layer_without_noise_keeps_its_weight():
    assert ascend({"silent": 0.5}, {"silent": 0.0}, 1.0, 0.1) == {"silent": 0.5}


@given(st.floats(SMALLEST, LARGEST), st.floats(0, 1e30), st.floats(1e-3, 1e3), st.floats(1e-4, 1.0))
def test_a_weight_stays_within_its_bounds(weight, square, target, rate):
    assert SMALLEST <= ascend({"l": weight}, {"l": square}, target, rate)["l"] <= LARGEST


@pytest.mark.parametrize("target", [0.5, 4.0])
@pytest.mark.parametrize("sizes", [[8, 8], [64, 64, 64, 64]], ids=["small", "large"])
def test_every_layer_ends_below_its_target_whatever_the_size(sizes, target):
    """A loss that pulls all signals up without end; the multipliers hold them."""
    torch.manual_seed(0)
    network, weights, kind = BinaryMLP(6, sizes, 3), {}, Regulariser()
    x, labels = torch.rand(16, 6), torch.arange(16) % 3
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    seen = []
    for _ in range(400):
        output = network(x, Sample())
        loss = Objective(weights, kind)(network, output, labels)
        optimiser.zero_grad()
        (loss.total - Regulariser("log")(network, output)).backward()
        optimiser.step()
        weights = ascend(weights, {name: float(square) for name, square in loss.squares.items()}, target, 0.05)
        seen.append(torch.stack(list(loss.squares.values())))
    means = torch.stack(seen[-100:]).mean(0)
    assert (means < 1.3 * target).all(), means
    assert (means > 0.3 * target).all(), means  # and they use the room they have


def test_a_run_writes_its_multipliers_down_and_goes_on_with_them(tmp_path, frames):
    config = tiny_config(frames, optimiser__epochs=4)
    train_run(config, tmp_path / "whole")
    kept = read_index(tmp_path / "whole" / "checkpoint")["multipliers"]
    rows = rows_of(tmp_path / "whole")
    assert set(kept) == {"hidden.0.neuron", "hidden.1.neuron"}
    for name, weight in kept.items():
        assert weight != START
        assert float(rows[-1][f"lambda/{name}"]) == weight
    part = RunFolder(tmp_path / "part")

    def stop_after_two(training: loop.Training) -> None:
        if training.epochs_done == 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        original = loop.fit
        patch.setattr(
            "axonnx.train.run.fit",
            lambda *given, after_epoch, **options: original(
                *given, after_epoch=lambda t: (after_epoch(t), stop_after_two(t)), **options
            ),
        )
        with pytest.raises(KeyboardInterrupt):
            train_run(config, part.path)
    train_run(None, part.path, resume=True)
    assert same_bits(weights_of(tmp_path / "whole"), weights_of(tmp_path / "part"))
    assert without_time(rows_of(tmp_path / "part")) == without_time(rows)
    assert read_index(tmp_path / "part" / "checkpoint")["multipliers"] == kept


def test_without_auto_there_are_none(tmp_path, frames):
    train_run(tiny_config(frames, regulariser={"weight": 0.01}), tmp_path / "run")
    assert read_index(tmp_path / "run" / "checkpoint")["multipliers"] == {}
    assert not any(name.startswith("lambda/") for name in rows_of(tmp_path / "run")[0])


@pytest.mark.parametrize("of", ["neuron", "current", "weight"])
def test_each_ratio_can_be_held(frames, of):
    config = tiny_config(frames, regulariser={"of": of})
    network, prepared = tiny_network(config)
    training = loop.fit(network, prepared, config)
    assert all(weight > 0 for weight in training.multipliers.values())
    assert len(training.multipliers) == 2


@pytest.mark.parametrize(
    ("kind", "form", "of"),
    [("neuron", "log", "neuron"), ("weight", "log", "weight"), ("quadratic", "quadratic", "neuron")],
)
def test_settings_of_an_earlier_version_mean_what_they_meant(frames, kind, form, of):
    tree = tiny_tree(frames, optimiser={"epochs": 3, "batch_size": 8, "kl": kind, "kl_weight": 1e-4})
    found = check_config(tree, "old").regulariser
    assert (found.form, found.of, found.weight, found.total) == (form, of, 1e-4, "sum")


def test_settings_of_two_versions_are_refused(frames):
    tree = tiny_tree(frames, optimiser={"kl_weight": 1e-4}, regulariser={"weight": 0.1})
    with pytest.raises(AxonnxError, match=r"old.toml: optimiser.kl_weight is of an earlier version.*regulariser.total"):
        check_config(tree, "old.toml")
    with pytest.raises(AxonnxError, match=r"optimiser.kl is 'neurons'; expected one of 'neuron', 'weight'"):
        check_config(tiny_tree(frames, optimiser={"kl": "neurons"}), "old.toml")


def test_multipliers_on_a_device_are_those_of_numbers():
    """Tensors in, tensors out: the same steps, both ends and the silent layer among them."""
    weights = {"usual": 0.3, "low": SMALLEST, "high": LARGEST, "silent": 0.5}
    squares = {"usual": 6.0, "low": 1e-9, "high": 1e9, "silent": 0.0}
    expected = ascend(weights, squares, 3.0, 0.1)
    there = {name: torch.tensor(square, dtype=torch.float64) for name, square in squares.items()}
    found = ascend(
        {name: torch.tensor(weight, dtype=torch.float64) for name, weight in weights.items()}, there, 3.0, 0.1
    )
    assert all(isinstance(weight, torch.Tensor) for weight in found.values())
    assert numbers(found) == pytest.approx(expected, rel=1e-12)
    assert expected["usual"] != weights["usual"]
