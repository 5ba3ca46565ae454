"""The networks that are timed: random weights, thresholds set so that every layer fires at a stated rate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from axonnx.export.collapsed import Collapsed, CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.write import build_model, write_model
from axonnx.models import MEAN_FIELD, RecurrentSNN, SpikingMLP, SpikingNetwork, SpikingResNet
from axonnx.runtime.binning import Binning, Sensor
from axonnx.runtime.format.contract import InputContract


@dataclass(frozen=True)
class Timed:
    """An exported network: its collapsed torch form, its files by form, and the firing rate it was set to."""

    collapsed: Collapsed
    files: dict[str, Path]
    shape: tuple[int, ...]
    steps: int
    rates: dict[str, float]

    def input(self, density: float, batch: int = 1, seed: int = 1) -> NDArray[np.float32]:
        return events(self.steps, batch, self.shape, density, seed)

    @property
    def rate(self) -> float:
        return sum(self.rates.values()) / len(self.rates)


def events(steps: int, batch: int, shape: tuple[int, ...], density: float, seed: int) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).random((steps, batch, *shape)) < density).astype(np.float32)


def recurrent(
    folder: Path,
    density: float = 0.11,
    rate: float = 0.05,
    *,
    width: int = 256,
    steps: int = 100,
    settings: CollapseSettings | None = None,
) -> Timed:
    """700-256-256-20, both layers recurrent; T = 100."""
    torch.manual_seed(0)
    settings = settings or CollapseSettings()
    name = folder / f"recurrent-{rate}-{width}-{steps}-{settings.members}-{settings.weights}"
    return _timed(RecurrentSNN(700, [width, width], 20), (700,), steps, density, rate, 20, name, settings)


def resnet20(
    folder: Path, density: float = 0.08, rate: float = 0.08, settings: CollapseSettings | None = None
) -> Timed:
    """Spiking ResNet-20, 32→64→128 channels on 2 × 32 × 32; T = 16."""
    torch.manual_seed(0)
    settings = settings or CollapseSettings()
    name = folder / f"resnet-{rate}-{settings.weights}"
    return _timed(SpikingResNet(), (2, 32, 32), 16, density, rate, 11, name, settings)


def dense(folder: Path, density: float) -> Timed:
    """512-128-128-10 with spikes at every density of the input; T = 30."""
    torch.manual_seed(0)
    return _timed(SpikingMLP(512, [128, 128], 10), (512,), 30, density, 0.15, 10, folder / f"dense-{density}")


def digits(folder: Path, rate: float = 0.15) -> Path:
    """512-128-128-10 on events of 16 × 16 pixels and two polarities, 30 bins of 10 ms: the network of the README."""
    torch.manual_seed(0)
    binning = Binning(sensor=Sensor(width=16, height=16), bins=30, bin_us=10_000)
    arriving = InputContract(
        name="events", shape=binning.frame_shape, steps=binning.bins, binning=binning, largest=binning.limit
    )
    network, x = SpikingMLP(binning.cells, [128, 128], 10), events(30, 1, (2, 16, 16), 0.08, 0)
    thresholds, _ = _thresholds(collapse_network(network, arriving), torch.from_numpy(x), rate)
    collapsed = collapse_network(network, arriving, thresholds=thresholds)
    path = folder / "digits.onnx"
    write_model(build_model(collapsed, make_contract(collapsed, tuple("0123456789"), "sequence")), path)
    return path


def _timed(
    network: SpikingNetwork,
    shape: tuple[int, ...],
    steps: int,
    density: float,
    rate: float,
    classes: int,
    name: Path,
    settings: CollapseSettings | None = None,
) -> Timed:
    arriving = InputContract(name="events", shape=shape, steps=steps, largest=1)
    x = torch.from_numpy(events(steps, 1, shape, density, 0))
    thresholds, rates = _thresholds(collapse_network(network, arriving), x, rate)
    collapsed = collapse_network(network, arriving, settings or CollapseSettings(), thresholds=thresholds)
    files = {}
    for form in ("sequence", "step"):
        contract = make_contract(collapsed, tuple(str(number) for number in range(classes)), form)
        files[form] = name.with_name(f"{name.name}-{form}.onnx")
        write_model(build_model(collapsed, contract), files[form])
    return Timed(collapsed, files, shape, steps, rates)


@torch.no_grad()
def _thresholds(collapsed: Collapsed, x: torch.Tensor, rate: float) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
    """Thresholds at the membranes' own quantile, a few rounds until layers that feed each other agree."""
    network = collapsed.network
    for _ in range(14):
        seen = network(x, MEAN_FIELD).observations
        for name, layer in seen.items():
            neuron = network.get_submodule(name)
            wanted = float(np.quantile(layer.gap.numpy(), 1 - rate))
            neuron.threshold = torch.full_like(
                neuron.threshold, max(0.5 * float(neuron.threshold.max()) + 0.5 * wanted, 1e-3)
            )
    rates = {name: float(layer.spikes.mean()) for name, layer in network(x, MEAN_FIELD).observations.items()}
    return {name: network.get_submodule(name).threshold for name in rates}, rates


def camera(folder: Path) -> Path:
    """A camera's 128 × 128 pixels and two polarities, down-sampled by 4, through 64 neurons; bins of 10 ms, T = 100."""
    torch.manual_seed(0)
    binning = Binning(sensor=Sensor(width=128, height=128), bins=100, bin_us=10_000, downsample=4)
    arriving = InputContract(
        name="events", shape=binning.frame_shape, steps=binning.bins, binning=binning, largest=binning.limit
    )
    collapsed = collapse_network(SpikingMLP(binning.cells, [64], 11), arriving)
    path = folder / "camera.onnx"
    contract = make_contract(collapsed, tuple(str(number) for number in range(11)), "sequence")
    write_model(build_model(collapsed, contract), path)
    return path
