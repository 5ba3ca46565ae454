"""Runs so small that training takes a fraction of a second, for the command to export."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from axonnx.runtime.format.contract import METADATA_KEY, Contract, read_contract
from axonnx.train.config.read import check_config
from axonnx.train.config.settings import Config
from axonnx.train.run import train_run

CLASSES, SIDE, STEPS = 3, 4, 5


def write_frames(path: Path, *, time: bool = True, samples: int = 60) -> Path:
    """An npz of noisy frames (or images): class k is bright in row k, with counts of up to 3."""
    generator = np.random.default_rng(0)
    labels = np.arange(samples) % CLASSES
    share = np.full((samples, SIDE, SIDE), 0.1)
    share[np.arange(samples), labels] = 0.8
    shape = (samples, STEPS, 1, SIDE, SIDE) if time else (samples, 1, SIDE, SIDE)
    there = generator.random(shape) < share.reshape(samples, *(1,) * (len(shape) - 3), SIDE, SIDE)
    np.savez(path, frames=(there * generator.integers(1, 4, shape)).astype(np.uint8), labels=labels)
    return path


def make_run(folder: Path, data: Path, network: str, variant: str = "sbnn", **optimiser: Any) -> Path:
    """Train and leave a run folder."""
    model: dict[str, Any] = {"network": network}
    model |= {"widths": [2, 4], "blocks": 1} if network.endswith("resnet") else {"hidden": [6, 5]}
    config: Config = check_config(
        {
            "device": "cpu",
            "data": {"name": str(data)},
            "model": model,
            "variant": {"name": variant},
            "optimiser": {"epochs": 3, "batch_size": 8, **optimiser},
            "finetune": {},
            "eval_samples": 2,
        },
        "tiny",
    )
    train_run(config, folder)
    return folder


def contract_of(path: str | Path) -> Contract:
    """The contract in a file."""
    texts = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    return read_contract(texts[METADATA_KEY], str(path))
