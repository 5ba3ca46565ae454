"""A value that is not finite ends the run, names the layer where it began, and leaves the last checkpoint alone."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch

from axonnx.cli import main as axonnx
from axonnx.cli.command import run_verb
from axonnx.train import loop
from axonnx.train.checkpoint import load_checkpoint, read_index
from axonnx.train.health import NonFiniteError, Watch
from axonnx.train.loop import fit
from axonnx.train.objective import Loss
from axonnx.train.run_folder import RunFolder

from .tiny_runs import rows_of, same_bits, tiny_config, tiny_network, weights_of

main = partial(run_verb, "train")

LAYERS = ["hidden.0.synapse.posterior.raw_mean", "hidden.1.synapse.posterior.raw_mean", "readout.weight"]


@pytest.fixture
def poison(monkeypatch):
    """Spoil one weight at the start of an epoch's third batch."""

    def spoil(name: str, epoch: int = 0, value: float = math.nan) -> None:
        step, count = loop._step, [0]

        def spoiled(wrapped, training, *rest):
            count[0] += training.epochs_done == epoch
            if count[0] == 3:
                parameter = dict(training.network.named_parameters())[name]
                with torch.no_grad():
                    parameter.view(-1)[0] = value
            return step(wrapped, training, *rest)

        monkeypatch.setattr(loop, "_step", spoiled)

    return spoil


def fault_of(data, **changes) -> str:
    config = tiny_config(data, **changes)
    network, prepared = tiny_network(config)
    with pytest.raises(NonFiniteError) as fault:
        fit(network, prepared, config)
    return str(fault.value)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(("time", "variant"), [(True, "sbnn"), (True, "mfa"), (False, "bbnn"), (False, "sg-bn")])
@pytest.mark.parametrize("parameter", LAYERS)
def test_a_spoiled_weight_is_traced_to_its_layer(parameter, time, variant, value, poison, frames, images):
    poison(parameter, value=value)
    text = fault_of(frames if time else images, time=time, variant={"name": variant})
    layer = parameter.split(".synapse")[0].removesuffix(".weight")
    assert text.startswith("epoch 1, batch 3: "), text
    assert f"layer '{layer}" in text, text
    assert "Lower optimiser.weight_rate" in text


def test_in_a_residual_network_the_first_layer_that_the_stream_reaches_is_named(images, poison):
    """Spikes carry no NaN on, but the stream of a residual network does, through all blocks."""
    poison("trunk.blocks.0.conv2.posterior.raw_mean")
    model = {"network": "binary-resnet", "widths": [2, 2], "blocks": 1}
    assert "the membranes of layer 'trunk.blocks.1.neuron1' are not finite" in fault_of(images, model=model)


def test_a_gradient_alone_is_traced_to_the_layer_nearest_to_the_loss(frames, monkeypatch):
    """The backward pass carries NaN from where it arises towards the input: the last layer in order is to blame."""
    make = loop._gradient_norms

    def spoiled(network):
        norms = make(network)
        for name in LAYERS[:2]:
            norms[name] = norms[name] * math.nan
        return norms

    monkeypatch.setattr(loop, "_gradient_norms", spoiled)
    assert f"epoch 1, batch 1: the gradient of '{LAYERS[1]}' is not finite" in fault_of(frames)


def test_weights_are_checked_after_the_last_step_of_an_epoch(frames, monkeypatch):
    """No later loss would tell, and the checkpoint would hold them."""
    step = torch.optim.Adam.step

    def overshoot(self, *rest):
        step(self, *rest)
        with torch.no_grad():
            self.param_groups[0]["params"][-1].fill_(math.inf)

    monkeypatch.setattr(torch.optim.Adam, "step", overshoot)
    text = fault_of(frames, optimiser__batch_size=48)
    assert text.startswith("epoch 1: 'readout.bias' is not finite after the last step")


def test_the_last_checkpoint_stays_and_can_be_loaded(config_file, tmp_path, poison, capsys):
    out = tmp_path / "run"
    poison(LAYERS[0], epoch=2)
    source = config_file(optimiser__epochs=4)
    assert axonnx(["train", source, "--out", str(out), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert "epoch 3, batch 3: the membranes of layer 'hidden.0.neuron' are not finite" in said
    assert f"The checkpoint after epoch 2 is intact: change {out}/config.toml and resume" in said
    assert read_index(out / "checkpoint")["epochs_done"] == 2
    assert all(value.isfinite().all() for value in weights_of(out).values())
    network, _ = tiny_network(RunFolder(out).config())
    assert load_checkpoint(out / "checkpoint", network).epochs_done == 2
    assert same_bits(dict(network.state_dict()), weights_of(out))
    assert [row["epoch"] for row in rows_of(out)] == ["1", "2"]
    assert "stopped: epoch 3, batch 3" in (out / "log.txt").read_text()


def test_the_run_goes_on_after_it(config_file, tmp_path, monkeypatch):
    source, out = config_file(optimiser__epochs=3), tmp_path / "run"
    main([source, "--out", str(tmp_path / "whole"), "--quiet"])
    with monkeypatch.context() as patch:
        step, count = loop._step, [0]

        def spoiled(wrapped, training, *rest):
            count[0] += training.epochs_done == 1
            (piece,) = step(wrapped, training, *rest)
            piece.loss = replace(piece.loss, total=piece.loss.total * (math.nan if count[0] == 2 else 1.0))
            return [piece]

        patch.setattr(loop, "_step", spoiled)
        with pytest.raises(NonFiniteError, match="epoch 2, batch 2: the loss is not finite"):
            main([source, "--out", str(out), "--quiet"])
    assert main(["--resume", "--out", str(out), "--quiet"]) == 0
    assert same_bits(weights_of(out), weights_of(tmp_path / "whole"))


def test_in_the_first_epoch_there_is_nothing_to_go_back_to(config_file, poison):
    poison(LAYERS[1])
    with pytest.raises(NonFiniteError, match="No epoch was finished: begin again and overwrite"):
        main([config_file(), "--out", "run", "--quiet"])


class _Graph:
    """A network of one weight whose gradient is given, and the watch of a device that is never asked."""

    def __init__(self):
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.optimiser = torch.optim.Adam([self.weight], lr=0.1, fused=True)
        self.watch = Watch(self.optimiser, torch.device("cuda"))

    def step(self, batch: int, gradient: float, loss: float = 1.0) -> torch.Tensor:
        self.weight.grad = torch.full((3,), gradient)
        norms = {"layer.weight": self.weight.grad.norm()}
        made = Loss(torch.tensor(loss), torch.tensor(loss), torch.tensor(0.0))
        self.watch.step(None, made, norms["layer.weight"], norms, 2, batch)
        self.optimiser.step()
        return self.weight.detach().clone()


def test_a_device_notes_the_first_fault_and_leaves_out_what_follows():
    """Nobody asks until the epoch ends; until then no later step changes a weight."""
    graph = _Graph()
    first, bad, later = graph.step(1, 0.5), graph.step(2, float("nan")), graph.step(3, 0.5)
    assert not torch.equal(first, torch.ones(3))
    assert torch.equal(first, bad)
    assert torch.equal(first, later)
    with pytest.raises(NonFiniteError, match=r"epoch 2, batch 2: the gradient of 'layer.weight' is not finite"):
        graph.watch.close(2)


def test_a_device_where_all_is_finite_goes_on():
    graph = _Graph()
    assert not torch.equal(graph.step(1, 0.5), graph.step(2, 0.5))
    graph.watch.close(2)
    graph.step(3, 0.5, loss=float("inf"))
    with pytest.raises(NonFiniteError, match="batch 3: the loss is not finite"):
        graph.watch.close(2)
