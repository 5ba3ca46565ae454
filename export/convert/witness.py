"""Whoever saw what a NIR file's network really does: the module that the file was written from, or recorded spikes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import checked_arrays
from axonnx.export.convert.live import load_live
from axonnx.export.convert.nir_source import NirSource
from axonnx.export.convert.plan import SYNAPSES, Plan
from axonnx.export.convert.source import Seen, TorchSource, torch_source
from axonnx.models.described import INPUT
from axonnx.runtime.readers.confined import Tree, read_tree

RECORDED = (".npz", ".nir", ".h5", ".hdf5")
EARLY = 1e-6  # of a step: an event at the very begin of its step, rounded down, is not one step earlier
MOST_VALUES = 2**28  # of a node's recorded spikes, on the grid of time steps


@dataclass(frozen=True)
class Witnessed:
    """A live module in the place of the file's equations, layer for layer in the order of computation."""

    witness: TorchSource
    file: NirSource
    same: Mapping[str, str]  # a layer of the file's plan -> that of the module's
    proves = ""

    @property
    def plan(self) -> Plan:
        """The file's plan."""
        return self.file.plan

    @property
    def name(self) -> str:
        """The file, and who speaks for it."""
        return f"{self.file.name}, witness: {self.witness.name}"

    @property
    def repeats(self) -> int:
        """None: a graph takes every step from outside."""
        return 0

    def observe(self, x: Tensor) -> Seen:
        """Return what the module does, by the names of the file's plan."""
        seen = self.witness.observe(x)
        spikes = {
            layer.name: seen.spikes[self.same[layer.name]].reshape(*x.shape[:2], *self.plan.shapes[layer.name])
            for layer in self.plan.layers
            if layer.kind == "neurons"
        }
        return replace(seen, spikes=spikes)

    def with_weights(self, weights: Mapping[str, Tensor]) -> Witnessed:
        """Return the module with the file's weights."""
        named = (name.rpartition(".") for name in weights)
        theirs = {f"{self.same[layer]}.{part}": weights[f"{layer}.{part}"] for layer, _, part in named}
        return Witnessed(self.witness.with_weights(theirs), self.file, self.same)


def witnessed(file: NirSource, module: nn.Module | str, value: int) -> Witnessed:
    """Return the module in the place of the file's equations; refused if their layers are not the same in number."""
    witness = torch_source(load_live(module), file.plan.shapes[INPUT], value)
    same: dict[str, str] = {}
    for kinds, what in (((*SYNAPSES,), "layers of weights"), (("neurons",), "layers of neurons")):
        ours, theirs = (
            [layer.name for layer in plan.layers if layer.kind in kinds] for plan in (file.plan, witness.plan)
        )
        if len(ours) != len(theirs):
            raise AxonnxError(
                f"the witness {witness.name} has {len(theirs)} {what} ({', '.join(theirs)}), the file {len(ours)} "
                f"({', '.join(ours)}); give the module that the file was written from"
            )
        same |= dict(zip(ours, theirs, strict=True))
    return Witnessed(witness, file, same)


def recorded(file: NirSource, path: Path) -> tuple[Tensor, Seen]:
    """Return input and spikes that were recorded elsewhere, in an npz or as NIR data: [samples, steps, …] by node.

    Raises:
        AxonnxError: If the file lacks the input or the spikes of a layer, or their shapes do not fit.
    """
    if not path.is_file():
        raise AxonnxError(f"{path}: no such file; a witness is a file of recorded spikes, or FILE.py:FUNCTION")
    found = checked_arrays(path) if path.suffix == ".npz" else _nir_data(path, file.dt)
    plan = file.plan
    x = _steps(found, file.graph.only("Input"), plan.shapes[INPUT], path)
    spikes = {
        layer.name: _steps(found, plan.sources[layer.name], plan.shapes[layer.name], path)
        for layer in plan.layers
        if layer.kind == "neurons"
    }
    return x, Seen(spikes, torch.zeros(*x.shape[:2], 1))


def _steps(found: Mapping[str, Any], node: str, shape: tuple[int, ...], path: Path) -> Tensor:
    """Return what was recorded of a node, [T, B, …]."""
    if node not in found:
        raise AxonnxError(f"{path}: has no spikes of {node!r}; it has {', '.join(found)}")
    values = torch.as_tensor(np.asarray(found[node])).float()
    if values.dim() < 3 or values[0, 0].numel() != int(torch.Size(shape).numel()):
        raise AxonnxError(
            f"{path}: {node!r} has the shape {list(values.shape)}; expected [samples, steps, …] of {list(shape)}"
        )
    return values.reshape(*values.shape[:2], *shape).transpose(0, 1).contiguous()


def _nir_data(path: Path, dt: float | None) -> dict[str, Any]:
    """Return what a file of NIR's data format holds, on the grid of time steps, by node."""
    file = read_tree(path)
    kinds = {place: facts.get("__type__") for place, facts in file.attributes.items()}
    if kinds[""] != "NIRGraphData":
        raise AxonnxError(f"{path}: is no file of NIR data; expected one that nir.write_data has written")
    found: dict[str, Any] = {}
    for place, facts in file.attributes.items():
        node, _, kind = place.rpartition("/observables/")
        if node and kinds[node] == "NIRNodeData" and (kind == "spikes" or _node_name(node) not in found):
            found[_node_name(node)] = _gridded(_part(file, place), facts, dt, f"{path}: {place}")
    return found


def _node_name(place: str) -> str:
    """Return the node of ``nodes/outer/nodes/inner`` as ``outer.inner``."""
    return place.removeprefix("nodes/").replace("/nodes/", ".")


def _part(file: Tree, place: str) -> dict[str, Any]:
    part: dict[str, Any] = file.members
    for name in place.split("/"):
        part = part[name]
    return part


def _gridded(data: Mapping[str, Any], facts: Mapping[str, Any], dt: float | None, where: str) -> Any:
    """Return events as zeros and ones for each time step; data on a grid stays as it is."""
    if facts.get("__type__") == "TimeGriddedData" and "data" in data:
        return data["data"]
    try:
        number, time = data["idx"], data["time"]
        steps, neurons = round(facts["t_max"] / (dt or 1.0)), int(facts["n_neurons"])
        if number.shape != time.shape or number.ndim != 2 or number.dtype.kind not in "iu":
            raise ValueError(f"idx is {number.dtype} {list(number.shape)} and time {list(time.shape)}")
        if not 0 <= steps * max(neurons, 1) * len(number) <= MOST_VALUES:
            raise ValueError(f"{len(number)} samples of {steps} steps and {neurons} neurons are too many")
        grid = np.zeros((len(number), steps, neurons), np.float32)
        sample, column = np.nonzero(number >= 0)
        when = np.floor(time[sample, column] / (dt or 1.0) + EARLY).astype(np.int64)
        if when.size and when.min() < 0:
            raise ValueError("there are times before 0")
        values = data.get("value", np.ones_like(time))[sample, column]
        np.add.at(grid, (sample, when, number[sample, column]), values)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as fault:
        raise AxonnxError(
            f"{where}: {fault}; expected idx and time [samples, events] within n_neurons and t_max"
        ) from None
    return grid
