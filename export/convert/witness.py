"""Whoever saw what a NIR file's network really does: the module that the file was written from, or recorded spikes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.live import load_live
from axonnx.export.convert.nir_graph import nir_package
from axonnx.export.convert.nir_source import NirSource
from axonnx.export.convert.plan import SYNAPSES, Plan
from axonnx.export.convert.source import Seen, TorchSource, torch_source
from axonnx.models.described import INPUT

RECORDED = (".npz", ".nir", ".h5", ".hdf5")
EARLY = 1e-6  # of a step: an event at the very begin of its step, rounded down, is not one step earlier


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
        """What the module does, by the names of the file's plan."""
        seen = self.witness.observe(x)
        spikes = {
            layer.name: seen.spikes[self.same[layer.name]].reshape(*x.shape[:2], *self.plan.shapes[layer.name])
            for layer in self.plan.layers
            if layer.kind == "neurons"
        }
        return Seen(spikes, seen.outputs)

    def with_weights(self, weights: Mapping[str, Tensor]) -> Witnessed:
        """The module with the file's weights."""
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
    found = dict(np.load(path)) if path.suffix == ".npz" else _nir_data(path, file.dt)
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
    nir = nir_package()
    try:
        graph = nir.read_data(path)
    except Exception as fault:
        raise AxonnxError(f"{path}: is no file of NIR data that can be read: {fault}") from None
    return {name: _gridded(data, dt) for name, data in _nodes(graph, "")}


def _nodes(graph: Any, prefix: str) -> list[tuple[str, Any]]:
    found = []
    for name, node in graph.nodes.items():
        if hasattr(node, "nodes"):
            found += _nodes(node, f"{prefix}{name}.")
        elif node.observables:
            kinds = node.observables
            found.append((prefix + name, kinds.get("spikes", next(iter(kinds.values())))))
    return found


def _gridded(data: Any, dt: float | None) -> Any:
    """Return events as zeros and ones for each time step; data on a grid stays as it is."""
    if hasattr(data, "data"):
        return data.data
    step = dt or 1.0
    grid = np.zeros((len(data.idx), round(data.t_max / step), data.n_neurons), np.float32)
    sample, number = np.nonzero(data.idx >= 0)
    when = np.floor(data.time[sample, number] / step + EARLY).astype(np.int64)
    np.add.at(
        grid, (sample, when, data.idx[sample, number]), getattr(data, "value", np.ones_like(data.time))[sample, number]
    )
    return grid
