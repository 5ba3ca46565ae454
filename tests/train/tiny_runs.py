"""Data and networks so small that a whole run takes a fraction of a second, and what a run left behind."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file
from torch import Tensor

from axonnx.train.build import Prepared, make_network, prepare
from axonnx.train.checkpoint import read_index
from axonnx.train.config.read import check_config
from axonnx.train.config.settings import Config

CLASSES, SIDE, STEPS = 3, 4, 5


def write_data(path: Path, *, time: bool = True, samples: int = 60, seed: int = 0) -> Path:
    """An npz of noisy frames (or images): class k is bright in row k."""
    generator = np.random.default_rng(seed)
    labels = np.arange(samples) % CLASSES
    share = np.full((samples, SIDE, SIDE), 0.1)
    share[np.arange(samples), labels] = 0.8
    shape = (samples, STEPS, 1, SIDE, SIDE) if time else (samples, 1, SIDE, SIDE)
    frames = generator.random(shape) < share.reshape(samples, *(1,) * (len(shape) - 3), SIDE, SIDE)
    np.savez(path, frames=frames.astype(np.uint8), labels=labels)
    return path


def tiny_tree(data: Path, *, time: bool = True, **changes: Any) -> dict[str, Any]:
    """The configuration of a tiny run; ``changes`` replace settings, as ``optimiser__epochs=3``."""
    tree: dict[str, Any] = {
        "device": "cpu",
        "data": {"name": str(data)},
        "model": {"network": "spiking-mlp" if time else "binary-mlp", "hidden": [6, 5]},
        "variant": {},
        "optimiser": {"epochs": 3, "batch_size": 8},
        "finetune": {},
        "eval_samples": 2,
    }
    for key, value in changes.items():
        section, _, name = key.partition("__")
        if name:
            tree[section][name] = value
        else:
            tree[section] = value
    return tree


def tiny_config(data: Path, **changes: Any) -> Config:
    return check_config(tiny_tree(data, **changes), "tiny")


def write_config(path: Path, data: Path, **changes: Any) -> str:
    """A tiny configuration as a file; its path."""
    lines: list[str] = []
    for key, value in sorted(tiny_tree(data, **changes).items(), key=lambda item: isinstance(item[1], dict)):
        if isinstance(value, dict):
            lines += [f"[{key}]", *(f"{inner} = {json.dumps(setting)}" for inner, setting in value.items())]
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def tiny_network(config: Config) -> tuple[Any, Prepared]:
    prepared = prepare(config.data)
    return make_network(config, prepared), prepared


def weights_of(run: Path) -> dict[str, Tensor]:
    """The weights that a run's checkpoint holds."""
    folder = run / "checkpoint"
    return load_file(folder / read_index(folder)["files"]["weights"]["name"])


def optimiser_of(run: Path) -> dict[str, Tensor]:
    folder = run / "checkpoint"
    return load_file(folder / read_index(folder)["files"]["optimiser"]["name"])


def same_bits(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether two sets of tensors are equal to the last bit; no tensors at all are no proof."""
    assert one
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and one[name].numpy().tobytes() == other[name].numpy().tobytes()
        for name in one
    )


def rows_of(run: Path) -> list[dict[str, str]]:
    with open(run / "results.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def without_time(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Rows but for what a clock measured."""
    return [{key: value for key, value in row.items() if key not in ("seconds", "waiting")} for row in rows]
