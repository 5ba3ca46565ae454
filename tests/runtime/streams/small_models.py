"""Small networks, exported once: every kind of file that a stream can meet."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.write import build_model, write_model
from axonnx.models import BinaryMLP, RecurrentSNN, SpikingMLP, variant
from axonnx.runtime.binning import Binning, Sensor
from axonnx.runtime.format.contract import CertaintyContract, InputContract

SENSOR = Sensor(width=8, height=6)
BINNING = Binning(sensor=SENSOR, bins=5, bin_us=1000, clip=3)
CLASSES = ("left", "right", "up", "down")
CERTAINTY = CertaintyContract(scale=0.6, coverage=0.9, margins=(0.0, 0.5, 1.0, 4.0, 7.5), samples=50, digest="0" * 64)


@dataclass(frozen=True)
class Sample:
    """A network to be exported, and how."""

    network: torch.nn.Module
    binning: Binning | None = BINNING
    settings: CollapseSettings = CollapseSettings()  # noqa: RUF009 (frozen)
    entering: InputContract | None = None
    form: Literal["sequence", "step"] = "sequence"
    certainty: CertaintyContract | None = None


def samples() -> dict[str, Sample]:
    """By name; weights follow from a fixed seed and are large enough for plenty of spikes."""
    torch.manual_seed(5)
    plain, cells = _lively(SpikingMLP(BINNING.cells, [12], 4)), BINNING.cells
    slow = BINNING.model_copy(update={"bin_us": 1_000_000})
    first = BINNING.model_copy(update={"origin": "first"})
    counted = BINNING.model_copy(update={"most_events": 7, "origin": "first", "clip": 255})
    merged = Binning(sensor=SENSOR, bins=5, bin_us=1000, values="binary", downsample=2, polarity="merge")
    return {
        "plain": Sample(plain),
        "fine": Sample(plain, settings=CollapseSettings(weights="float32")),
        "slow": Sample(plain, slow),
        "first": Sample(plain, first),
        "counted": Sample(plain, entering=_scaled(counted)),
        "alone": Sample(plain, entering=_scaled(counted.model_copy(update={"most_events": 1, "bin_us": 10**6}))),
        "merged": Sample(_lively(SpikingMLP(merged.cells, [12], 4)), merged),
        "step": Sample(plain, form="step"),
        "binary": Sample(BinaryMLP(cells, [8], 4), BINNING.model_copy(update={"bins": 1})),
        "ensemble": Sample(plain, settings=CollapseSettings(mode="sampled", members=3)),
        "certain": Sample(plain, settings=CollapseSettings(mode="sampled", members=3), certainty=CERTAINTY),
        "noisy": Sample(plain, settings=CollapseSettings(mode="stochastic")),
        "recurrent": Sample(_lively(RecurrentSNN(cells, [10], 4))),
        "clocked": Sample(SpikingMLP(cells, [6], 4, variant("sg-bn"), steps=5)),
        "frames": Sample(_lively(SpikingMLP(6, [8], 4)), None, entering=_frames((2, 1, 3), steps=4)),
        "images": Sample(BinaryMLP(12, [8], 4), None, entering=_frames((3, 2, 2), steps=None)),
        "noisy_images": Sample(
            BinaryMLP(12, [8], 4), None, CollapseSettings(mode="stochastic"), _frames((3, 2, 2), steps=None)
        ),
    }


def _frames(shape: tuple[int, ...], steps: int | None) -> InputContract:
    return InputContract(name="events", shape=shape, steps=steps, centre=10, shift=3, largest=20)


def _scaled(binning: Binning) -> InputContract:
    """Counts that are scaled to a sum of 60, in quarters."""
    shape = binning.frame_shape
    return InputContract(name="events", shape=shape, steps=5, binning=binning, scaled_to=60, shift=2, largest=255)


def _lively(network: torch.nn.Module) -> torch.nn.Module:
    """Neurons that also fire in silence, some of them, and logits that differ."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("norm.bias"):
                parameter.normal_(0.1, 0.15)
            if name == "readout.weight":
                parameter.mul_(3.0)
    return network


def export_all(folder: Path) -> dict[str, Path]:
    """Write every sample to ``folder``; where each is."""
    return {name: export(sample, folder / f"{name}.onnx") for name, sample in samples().items()}


def export(sample: Sample, path: Path) -> Path:
    entering = sample.entering
    if entering is None:
        assert sample.binning is not None
        shape, limit = sample.binning.frame_shape, sample.binning.limit
        steps = None if isinstance(sample.network, BinaryMLP) else 5
        entering = InputContract(name="events", shape=shape, steps=steps, binning=sample.binning, largest=limit)
    collapsed = collapse_network(sample.network, entering, sample.settings)
    contract = make_contract(collapsed, CLASSES, sample.form).model_copy(update={"certainty": sample.certainty})
    write_model(build_model(collapsed, contract), path)
    return path
