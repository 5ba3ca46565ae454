"""The definition of a spike operator, and the properties that other modules derive from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

DOMAIN = "ai.axonnx"
ONNX_OPSET = 20


@dataclass(frozen=True)
class SpikeOp:
    """One operator: everything that engines, exporter and verifier need to know about it.

    The names of its values state their roles. ``current`` arrives at a layer's neurons. An operand ``x`` with an output
    ``next_x`` is a state. An output that ends in ``spikes`` is 0 or 1. Neurons decide on ``next_membrane`` and
    ``next_variance``. If neurons have a membrane, it is the first output, and spikes are the last.

    Attributes:
        name: Its name in a file.
        about: Its purpose, for people.
        formula: Its equation, for people.
        operands: Inputs that change from step to step.
        parameters: Inputs that are constants of the graph; they follow the operands.
        outputs: Its outputs.
        body: The definition, in ONNX's textual form.
        reset: How a spike resets its membrane, if it is the same for all neurons.
    """

    name: str
    about: str
    formula: str
    operands: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    body: str
    reset: Literal["subtract", "zero"] | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs, in the order of a node."""
        return self.operands + self.parameters

    @property
    def states(self) -> tuple[str, ...]:
        """Operands that are carried from one time step to the next."""
        return tuple(name for name in self.operands if f"next_{name}" in self.outputs)

    @property
    def text(self) -> str:
        """The function as ONNX's parser reads it."""
        signature = f"{self.name} ({', '.join(self.inputs)}) => ({', '.join(self.outputs)})"
        return f'<opset_import: ["" : {ONNX_OPSET}], domain: "{DOMAIN}">\n{signature} {{\n{self.body}\n}}'

    @property
    def function(self) -> str:
        """Name of its Python function: LIFToZero is ``lif_to_zero``."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", self.name).lower()

    @property
    def neurons(self) -> bool:
        """Whether it is a layer of neurons, which have a current as input."""
        return "current" in self.operands

    @property
    def spikes(self) -> str | None:
        """The output that is 0 or 1; None if nothing fires."""
        return next((name for name in self.outputs if name.endswith("spikes")), None)

    @property
    def membrane(self) -> str | None:
        """The value that is compared with the threshold: an output, or the current of neurons without memory."""
        return self._decided_on("next_membrane", "current")

    @property
    def variance(self) -> str | None:
        """The membrane's variance; None if there is no noise."""
        return self._decided_on("next_variance", "variance")

    def _decided_on(self, output: str, without_memory: str) -> str | None:
        if self.spikes is None:
            return None
        return output if output in self.outputs else without_memory if without_memory in self.inputs else None

    def value(self, name: str, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> str:
        """Return the name that a node with these inputs and outputs gives the definition's value ``name``."""
        if name in self.outputs:
            return outputs[self.outputs.index(name)]
        return inputs[self.inputs.index(name)]
