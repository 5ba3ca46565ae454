"""Faults of imports: of networks of other libraries, which must be proved against their source.

To add one, write a function that takes the bench, plants one thing, and returns how its last command ended; mark it
with ``ends(code, text)``, where ``text`` names the place. ``imported(bench, …, plant=…)`` imports the network below in
a child process in which ``plant`` is in effect; other networks are texts, given as ``network=``. Mark it ``quick`` if
it takes two seconds at most, and write a control (``ends(0, …)``) for each new kind of command.
"""

from __future__ import annotations

from textwrap import dedent

import pytest
import torch

from axonnx.export.convert import importing
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
