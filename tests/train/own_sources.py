"""Own networks as source texts: one that is right, and what can be wrong with one."""

from pathlib import Path

HEAD = """
import torch
from torch import nn
from axonnx.models import LIF, BinaryNetwork, Conv2d, Current, LeakyReadout, Linear, LinearReadout, SpikingNetwork
"""
GOOD = """
class Net(SpikingNetwork):
    def __init__(self, inputs, classes, hidden):
        super().__init__()
        self.synapse, self.neuron = Linear(inputs, hidden), LIF()
        self.readout = LeakyReadout(hidden, classes)

    def compute(self, x, run):
        return self.readout(self.neuron(self.synapse(x.flatten(-3), run), run), run)
"""


def write_network(folder: Path, text: str = GOOD, name: str = "my_network.py") -> Path:
    """A file with the usual imports and ``text``."""
    path = folder / name
    path.write_text(HEAD + text, "utf-8")
    return path


def wired(layers: str, compute: str, extra: str = "") -> str:
    """A network of the usual layers and ``layers``, whose compute has the lines ``compute``."""
    lines = "\n        ".join(compute.splitlines())
    return f"""
class Net(SpikingNetwork):
    {extra or "pass"}
    def __init__(self, inputs, classes):
        super().__init__()
        self.synapse, self.neuron = Linear(inputs, 6), LIF()
        self.readout = LeakyReadout(6, classes)
        {layers or "pass"}

    def compute(self, x, run):
        {lines}
"""
