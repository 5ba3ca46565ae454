"""Checkpoints: tensors in safetensors, everything else in JSON, never a pickle.

``checkpoint.json`` names the two tensor files of one moment together with their hashes. It is replaced last and
in one stroke, so whenever the process dies there is exactly one whole checkpoint: the old or the new.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.base.files import remove_leftovers, replacing, write_text

FORMAT = 1
INDEX = "checkpoint.json"
RESTORE = "restore the run folder from a copy, or train again and overwrite it"


@dataclass(frozen=True)
class Position:
    """Where in a run a checkpoint was taken, and what the rest of the run depends on."""

    epochs_done: int
    random_state: dict[str, int]  # all random numbers of the next epoch follow from it
    config: str  # the resolved TOML
    data_digest: str
    multipliers: dict[str, float] = field(default_factory=dict)  # λ of each layer, where it is found by itself


def save_checkpoint(folder: Path, network: nn.Module, optimiser: torch.optim.Optimizer, position: Position) -> None:
    """Write the state after ``position.epochs_done`` epochs, then forget the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    tag = f"{position.epochs_done:05d}"
    tensors = {"weights": dict(network.state_dict()), "optimiser": _flat_optimiser(optimiser)}
    entries = {kind: _save(folder / f"{kind}-{tag}.safetensors", part) for kind, part in tensors.items()}
    index = {
        "format": FORMAT,
        "epochs_done": position.epochs_done,
        "files": entries,
        "random_state": position.random_state,
        "multipliers": position.multipliers,
        "data_digest": position.data_digest,
        "config": position.config,
        "versions": _versions(),
    }
    _write_index(folder, index)
    _forget(folder, {entry["name"] for entry in entries.values()})


def add_witness(folder: Path, tensors: dict[str, Tensor], circumstances: dict[str, str]) -> None:
    """Keep the witness of a training beside the checkpoint that it is about; the next checkpoint forgets it."""
    index = read_index(folder)
    entry = _save(folder / f"witness-{index['epochs_done']:05d}.safetensors", tensors)
    _write_index(folder, {**index, "witness": {**entry, "circumstances": circumstances}})


def load_witness(folder: Path) -> tuple[dict[str, Tensor], dict[str, str]] | None:
    """Return the witness of a training and the circumstances in which it was taken; None if a run has none."""
    entry = read_index(folder).get("witness")
    return None if entry is None else (_load_file(folder, entry), entry["circumstances"])


def load_checkpoint(folder: Path, network: nn.Module, optimiser: torch.optim.Optimizer | None = None) -> Position:
    """Put a checkpoint's weights (and optimiser state) back, after checking every hash."""
    index = read_index(folder)
    _load_weights(network, _load(folder, index, "weights"), folder)
    if optimiser is not None:
        _load_optimiser(optimiser, _load(folder, index, "optimiser"), folder)
    position = index["epochs_done"], index["random_state"], index["config"], index["data_digest"]
    return Position(*position, index.get("multipliers", {}))


def load_start(folder: Path, network: nn.Module) -> None:
    """Load the weights of another run of the same layers; each σ that it does not have keeps its first value."""
    weights = _load(folder, read_index(folder), "weights")
    own = network.state_dict()
    begun = {name: value for name, value in own.items() if name.rpartition(".")[2] in SPREADS}
    _load_weights(network, {**begun, **{name: value for name, value in weights.items() if name in own}}, folder)
    unknown = [name for name in weights if name not in own and name.rpartition(".")[2] not in SPREADS]
    if unknown:
        raise AxonnxError(f"{folder}: holds {unknown[0]!r}, which this network has not; begin with a run of its layers")


SPREADS = ("log_std", "log_base_std")  # what a network with noise has beside its means


def read_index(folder: Path) -> dict[str, Any]:
    """Read the index of a checkpoint: its files with their hashes, versions and random state."""
    path = folder / INDEX
    if not path.is_file():
        raise AxonnxError(f"{folder}: no checkpoint ({INDEX} is missing). Train first: axonnx train")
    try:
        index: dict[str, Any] = json.loads(path.read_text("utf-8"))
        found, written = index["format"], index.pop("sha256", None)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise AxonnxError(f"{path}: damaged ({fault!r}); {RESTORE}") from None
    if found != FORMAT:
        raise AxonnxError(f"{path}: checkpoint format {found!r}; this version reads format {FORMAT}. Upgrade axonnx")
    if written is None:
        raise AxonnxError(f"{path}: damaged (it has no sha256 of its own); {RESTORE}")
    if written != _index_hash(index):
        raise AxonnxError(f"{path}: damaged (its contents do not match their sha256); {RESTORE}")
    _check(index, path)
    return index


class _File(BaseModel):
    """A tensor file, beside the index."""

    name: str = Field(pattern=r"^[a-z]+-[0-9]+\.safetensors$")
    sha256: str


class _Witness(_File):
    """As a tensor file, with what its bits may depend on."""

    circumstances: dict[str, str]


class _Index(BaseModel):
    """What is read of an index."""

    model_config = ConfigDict(strict=True)

    epochs_done: NonNegativeInt
    files: dict[Literal["weights", "optimiser"], _File] = Field(min_length=2)
    random_state: dict[str, int]
    multipliers: dict[str, float] = Field(default={})
    data_digest: str
    config: str
    versions: dict[str, str]
    witness: _Witness | None = None


def _check(index: dict[str, Any], path: Path) -> None:
    try:
        _Index.model_validate(index)
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise AxonnxError(f"{path}: damaged ({where}: {first['msg']}); {RESTORE}") from None


def _write_index(folder: Path, index: dict[str, Any]) -> None:
    write_text(folder / INDEX, json.dumps({**index, "sha256": _index_hash(index)}, indent=1))


def _index_hash(index: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(index, sort_keys=True).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """sha256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _save(path: Path, tensors: dict[str, Tensor]) -> dict[str, str]:
    with replacing(path) as temporary:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, temporary)
    return {"name": path.name, "sha256": file_hash(path)}


def save_file(tensors: dict[str, Tensor], path: Path) -> None:
    """As the function of this name in safetensors, whose faults do not say why the system refused."""
    path.write_bytes(save(tensors))


def _load(folder: Path, index: dict[str, Any], kind: str) -> dict[str, Tensor]:
    return _load_file(folder, index["files"][kind])


def _load_file(folder: Path, entry: dict[str, str]) -> dict[str, Tensor]:
    path = folder / entry["name"]
    if not path.is_file():
        raise AxonnxError(f"{path}: missing, though {INDEX} names it; {RESTORE}")
    if file_hash(path) != entry["sha256"]:
        raise AxonnxError(f"{path}: damaged (its sha256 is not the one in {INDEX}); {RESTORE}")
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except SafetensorError as fault:
        raise AxonnxError(f"{path}: not a safetensors file: {fault}") from None
    return tensors


def _load_weights(network: nn.Module, weights: dict[str, Tensor], folder: Path) -> None:
    try:
        network.load_state_dict(weights)
    except RuntimeError as fault:
        raise AxonnxError(f"{folder}: the checkpoint is of another network than the configuration's: {fault}") from None


def _flat_optimiser(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments as ``<parameter number>.<name>``; rates follow from the schedule and are not kept."""
    state = optimiser.state_dict()["state"]
    return {f"{number}.{key}": torch.as_tensor(value) for number, kept in state.items() for key, value in kept.items()}


def _load_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor], folder: Path) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    try:
        for name, tensor in tensors.items():
            number, key = name.split(".", 1)
            state.setdefault(int(number), {})[key] = tensor
        optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
    except (ValueError, KeyError) as fault:
        raise AxonnxError(f"{folder}: the optimiser's state does not fit this network: {fault}") from None


def _forget(folder: Path, current: set[str]) -> None:
    """Earlier checkpoints, and what a killed process left half-written."""
    remove_leftovers(folder)
    for path in folder.glob("*.safetensors"):
        if path.name not in current:
            path.unlink(missing_ok=True)


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("axonnx", "torch", "numpy")},
    }
