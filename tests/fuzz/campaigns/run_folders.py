"""Run folders whose checkpoints, indexes, rows and configurations were changed, with hashes that fit or do not.

One of them was trained, and one was imported from a NIR file: its configuration describes every layer of the network.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import tomllib
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from axonnx.base.errors import AxonnxError
from axonnx.cli.command import run_verb
from axonnx.export.convert.importing import import_network
from axonnx.runtime.report.material import read_run
from axonnx.train.checkpoint import INDEX, _index_hash
from axonnx.train.config.read import _write_table
from axonnx.train.loop import new_training
from axonnx.train.run import _restore, restore_run
from axonnx.train.run_folder import RunFolder
from tests.fuzz.campaigns.nir_files import DT, write_graphs
from tests.fuzz.contract_mutations import changed
from tests.fuzz.harness import shared_folder
from tests.fuzz.numbers import damage

main = partial(run_verb, "train")

NAME = "run folders"
SHAPE = (24, 5, 1, 4, 4)
CONFIG = """device = "cpu"
eval_samples = 2
[data]
name = "{data}"
[model]
network = "spiking-mlp"
hidden = [6, 5]
[optimiser]
epochs = 2
batch_size = 8
"""
FOLDERS = ("trained", "dense", "inner")
FILES = ("checkpoint/checkpoint.json", "results.csv", "metrics.json", "config.toml")


def setup() -> None:
    """A run that was trained once for all children."""
    folder = shared_folder() / "trained"
    if not folder.exists():
        rng = np.random.default_rng(0)
        np.savez(shared_folder() / "data.npz", frames=rng.integers(0, 2, SHAPE, np.uint8), labels=np.arange(24) % 3)
        source = shared_folder() / "run.toml"
        source.write_text(CONFIG.format(data=shared_folder() / "data.npz"))
        assert main([str(source), "--out", str(folder), "--quiet"]) == 0
        if find_spec("nir") is not None:
            write_graphs(shared_folder())
            for name in ("dense", "inner"):
                given = {"run": shared_folder() / name, "dt": DT, "samples": 4, "steps": 5}
                import_network(shared_folder() / f"{name}.nir", shared_folder() / f"{name}.onnx", **given)


def material(seed: int) -> bytes:
    """What was changed."""
    return _changed_copy(seed)[1]


def case(seed: int) -> str:
    """Refused by evaluation, by resuming and by reports alike, or a network without a number that is none."""
    folder = RunFolder(_changed_copy(seed)[0])
    outcomes = [_outcome(read_run, folder.path), _outcome(_resumed, folder)]
    return "refused" if "refused" in outcomes else "accepted"


def _outcome(action: object, *words: object) -> str:
    try:
        action(*words)  # type: ignore[operator]
    except AxonnxError:
        return "refused"
    return "accepted"


def _resumed(folder: RunFolder) -> None:
    config, prepared, network = restore_run(folder.path)
    training = new_training(network, config, torch.device("cpu"))
    _restore(folder, training, prepared, config)


def _changed_copy(seed: int) -> tuple[Path, bytes]:
    rng = random.Random(seed)
    folder = shared_folder() / "case"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        shared_folder() / rng.choice([name for name in FOLDERS if (shared_folder() / name).exists()]), folder
    )
    tensors = sorted((folder / "checkpoint").glob("*.safetensors"))
    found = [folder / name for name in FILES if (folder / name).exists()]
    path = rng.choice([*found, folder / FILES[0], folder / "config.toml", *tensors])
    data = path.read_bytes()
    if path.suffix == ".toml" and rng.random() < 0.7:
        data = _other_settings(rng, data)
    elif path.suffix == ".json" and rng.random() < 0.7:
        data = _other_json(rng, path, data)
    else:
        data = damage(rng, data, rng.choice(tensors).read_bytes())
    path.write_bytes(data)
    if path in tensors and rng.random() < 0.7:
        _sign(folder / FILES[0], path)
    return folder, data


def _other_settings(rng: random.Random, data: bytes) -> bytes:
    """Other values in a configuration, which is TOML still."""
    lines: list[str] = []
    with suppress(AttributeError, TypeError, ValueError):
        _write_table(json.loads(changed(rng, json.dumps(tomllib.loads(data.decode())))), (), lines)
    return "\n".join(lines).encode(errors="surrogatepass")


def _other_json(rng: random.Random, path: Path, data: bytes) -> bytes:
    """Other facts; an index gets the hash that belongs to them."""
    text = changed(rng, data.decode())
    if path.name != INDEX or rng.random() < 0.2:
        return text.encode()
    try:
        index = json.loads(text)
        index.pop("sha256", None)
        return json.dumps({**index, "sha256": _index_hash(index)}).encode()
    except (ValueError, AttributeError, TypeError):
        return text.encode()


def _sign(index_path: Path, tensors: Path) -> None:
    index = json.loads(index_path.read_text())
    kind = tensors.name.partition("-")[0]
    if kind not in index["files"]:
        return
    index["files"][kind]["sha256"] = hashlib.sha256(tensors.read_bytes()).hexdigest()
    index.pop("sha256")
    index_path.write_text(json.dumps({**index, "sha256": _index_hash(index)}))
