"""Scale and bias of each time step, decay and threshold of each neuron: files of networks that learned them."""

from pathlib import Path

import pytest
import torch

from axonnx.export.exporting import export_run
from axonnx.export.verify.stages import verify_file
from axonnx.models.normalisation import ChannelScale
from axonnx.train.build import make_network, prepare
from axonnx.train.config.read import check_config
from axonnx.train.config.settings import Config
from axonnx.train.run import train_run

from ..tiny_runs import STEPS, write_frames

NETWORKS = {
    "recurrent-snn": {"hidden": [6, 5]},
    "spiking-resnet": {"widths": [2, 4], "blocks": 1, "stream": "current"},
    "spiking-convnet": {"widths": [3, 4], "hidden": [5], "delays": [0, 1]},
}
# Batch norm of all time steps is folded into weights and noise; scale and bias of each step stay apart.
SCALES = {"spiking-convnet": {"normalisation": "batch_over_time"}}
MEMBERS = {"mfa": 1, "sampled": 2, "stochastic": 1}


def config_of(folder: Path, network: str, **variant: object) -> Config:
    data = write_frames(folder / "frames.npz")
    learned = {"learn_decay": "neuron", "time_constants": [1, 4], "learn_threshold": "neuron"}
    tree = {
        "device": "cpu",
        "data": {"name": str(data)},
        "model": {"network": network, **NETWORKS[network], **learned},
        "variant": {"name": "sbnn", **SCALES.get(network, {"per_step": True}), **variant},
        "optimiser": {"epochs": 2, "batch_size": 8, "weight_rate": 0.05},
        "eval_samples": 2,
    }
    return check_config(tree, "tiny")


@pytest.fixture(scope="module", params=NETWORKS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    train_run(config_of(folder, request.param), folder / "run")
    return folder / "run"


@pytest.mark.parametrize("mode", MEMBERS)
def test_what_was_learned_is_what_the_file_runs(mode: str, run: Path) -> None:
    path = run.parent / f"{mode}.onnx"
    export_run(run, path, mode=mode, members=MEMBERS[mode], limit=20, passes=2)
    result = verify_file(path, run, samples=6, limit=20)
    assert [stage.lines for stage in result.stages if not stage.ok] == []
    assert (result.verdict, result.mismatches) == ("equal", 0)


def test_every_time_step_has_learned_a_scale_of_its_own(tmp_path: Path) -> None:
    config = config_of(tmp_path, "recurrent-snn")
    network = make_network(config, prepare(config.data))
    scales = [module for module in network.modules() if isinstance(module, ChannelScale)]
    assert [tuple(module.scale.shape) for module in scales] == [(STEPS, 6), (STEPS, 5)]
    x = torch.ones(STEPS, 2, 1, 4, 4)
    network(x).logits.sum().backward()
    assert all(module.bias.grad is not None and module.bias.grad.abs().sum() > 0 for module in scales)
    with pytest.raises(ValueError, match=f"made for {STEPS} steps; this pass reaches step {STEPS + 1}"):
        network(torch.ones(STEPS + 1, 2, 1, 4, 4))
