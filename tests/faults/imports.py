"""Faults of imports: of networks of other libraries, which must be proved against their source.

To add one, write a function that takes the bench, plants one thing, and returns how its last command ended; mark it
with ``ends(code, text)``, where ``text`` names the place. ``imported(bench, …, plant=…)`` imports the network below in
a child process in which ``plant`` is in effect; other networks are texts, given as ``network=``. Mark it ``quick`` if
it takes two seconds at most, and write a control (``ends(0, …)``) for each new kind of command.
"""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

import numpy as np
import onnx
import pytest
import torch

from axonnx.export.convert import importing, neuron
from tests.faults.bench import Bench, Ended, Plant, ends

NETWORK = dedent('''
    """Two leaky layers of snnTorch."""
    import snntorch
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.lif1 = nn.Linear(32, 24), snntorch.Leaky(beta=0.75)
            self.fc2, self.lif2 = nn.Linear(24, 4), snntorch.Leaky(beta=0.75)

        def forward(self, x):
            mem1, mem2, spikes = self.lif1.reset_mem(), self.lif2.reset_mem(), []
            for step in x:
                fired, mem1 = self.lif1(self.fc1(step.flatten(1)), mem1)
                fired, mem2 = self.lif2(self.fc2(fired), mem2)
                spikes.append(fired)
            return torch.stack(spikes)

    def make():
        torch.manual_seed(1)
        net = Net()
        with torch.no_grad():
            net.fc1.weight.mul_(3.0)
            net.fc2.weight.mul_(5.0)
        return net
''')


def imported(bench: Bench, *words: str, network: str = NETWORK, plant: Plant | None = None) -> Ended:
    """How the import of a network of snnTorch ends."""
    source = bench.new("network.py")
    source.write_text(network, "utf-8")
    size = ("--shape", "2x4x4", "--samples", "8", "--steps", "20")
    return bench.axonnx("import", f"{source}:make", "-o", str(source.with_suffix(".onnx")), *size, *words, plant=plant)


@ends(0, "equal", quick=True)
def an_import_without_a_fault(bench: Bench) -> Ended:
    """The control of every fault of an import."""
    return imported(bench)


@ends(1, "layer 'lif1'", quick=True)
def imported_weights_one_per_cent_larger(bench: Bench) -> Ended:
    """The plan's weights are changed on their way into our network."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        fill = importing.fill

        def larger(network, plan):
            filled = fill(network, plan)
            with torch.no_grad():
                for name, tensor in filled.state_dict().items():
                    if name.endswith("raw_mean"):
                        tensor.mul_(1.01)
            return filled

        patch.setattr(importing, "fill", larger)

    return imported(bench, plant=plant)


SILENT = NETWORK.replace("net.fc1.weight.mul_(3.0)", "net.lif1.threshold.mul_(1000.0)")


@ends(1, "lif1 never fired", quick=True)
def a_network_that_never_fires(bench: Bench) -> Ended:
    """Equal silence is no proof."""
    return imported(bench, network=SILENT)


@ends(1, "layer 'lif1'")
def thresholds_a_hundred_times_larger(bench: Bench) -> Ended:
    """Ours never fires; on random events that are rare, neither need the source."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        constants = neuron.Neuron.constants

        def larger(self, where):
            found = constants(self, where)
            return {**found, "threshold": found["threshold"] * 100}

        patch.setattr(neuron.Neuron, "constants", larger)

    return imported(bench, plant=plant)


@ends(1, "this step rounds nothing; the tie differs")
def a_tie_that_fires_in_the_import_alone(bench: Bench) -> Ended:
    """Weights that are no multiples of anything never meet a tie; crafted currents do."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        constants = neuron.Neuron.constants
        patch.setattr(neuron.Neuron, "constants", lambda self, where: constants(replace(self, strict=False), where))

    return imported(bench, plant=plant)


@ends(1, "contract.decision.scale", quick=True)
def another_temperature_in_the_file(bench: Bench) -> Ended:
    """Probabilities of twice the logits, in the contract alone."""
    ended = imported(bench, network=NETWORK.replace("torch.stack(spikes)", "torch.stack(spikes).sum(0)"))
    (path,) = (line.split()[1].rstrip(":") for line in ended.text.splitlines() if line.startswith("wrote "))
    model = onnx.load(path)
    contract = json.loads(model.metadata_props[0].value)
    contract["decision"]["scale"] *= 2
    model.metadata_props[0].value = json.dumps(contract)
    onnx.save(model, path)
    return bench.verify(Path(path), Path(path).with_suffix(""))


def from_nir(bench: Bench, *words: str, weight: float = 1.0) -> Ended:
    """How the import of a NIR file ends, with the network of snnTorch that it was made of beside it."""
    nir = pytest.importorskip("nir", reason="nir is not installed")
    source = bench.new("network.py")
    source.write_text(NETWORK, "utf-8")
    made = runpy.run_path(str(source))["make"]()
    nodes: dict[str, object] = {"input": nir.Input(np.array([32]))}
    for number, (linear, count) in enumerate(((made.fc1, 24), (made.fc2, 4)), 1):
        weights = linear.weight.detach().numpy().copy()
        weights[0, 0] *= weight
        ones = np.ones(count)
        nodes[f"fc{number}"] = nir.Affine(weights, linear.bias.detach().numpy())
        nodes[f"lif{number}"] = nir.LIF(4e-4 * ones, 4.0 * ones, 0.0 * ones, ones)
    nodes["output"] = nir.Output(np.array([4]))
    path = source.with_suffix(".nir")
    nir.write(path, nir.NIRGraph(nodes, list(pairwise(nodes))))
    how = ("--dt", "1e-4", "--limit", "8", "--steps", "20")
    words = tuple(word.replace("NETWORK", f"{source}:make") for word in words)
    return bench.axonnx("import", str(path), "-o", str(source.with_suffix(".onnx")), *how, *words)


@ends(0, "equal to NIR's equations:", quick=True)
def a_nir_file_without_a_witness(bench: Bench) -> Ended:
    """The verdict never says that the file is equal to a network that nobody showed."""
    return from_nir(bench)


@ends(0, "equal:")
def a_nir_file_with_the_reset_of_its_network(bench: Bench) -> Ended:
    """The control of the next fault."""
    return from_nir(bench, "--witness", "NETWORK", "--reset", "late-subtract")


@ends(1, "layer 'lif1'", quick=True)
def a_nir_file_with_another_reset_than_its_network(bench: Bench) -> Ended:
    """snnTorch subtracts, one step later; NIR's equations set the membrane to zero."""
    return from_nir(bench, "--witness", "NETWORK")


@ends(2, "fc1: 1 of its 768 weights are NaN", quick=True)
def a_nir_file_whose_weights_hold_a_nan(bench: Bench) -> Ended:
    """A clear error instead of a traceback."""
    return from_nir(bench, weight=float("nan"))
