"""What a spike operator is: its definition, and what every consumer asks of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

DOMAIN = "ai.axonnx"
ONNX_OPSET = 20
RESETS = ("zeroed", "taken", "late_zeroed", "late_taken")
ADAPTATION = ("adaptation_decay", "membrane_share", "spike_share", "current_gain", "threshold_gain")
PARAMETERS = (
    "decay",
    "threshold",
    "base_variance",
    "synaptic_decay",
    *RESETS,
    *ADAPTATION,
)  # inputs that are constants of the graph


@dataclass(frozen=True)
class SpikeOp:
    """An operator's name, what it is for, what it computes, and its body in ONNX's textual form.

    Names say what a value is: ``current`` arrives at a layer's neurons, an output that ends in ``spikes`` is 0 or 1,
    and ``next_membrane`` and ``next_variance`` are what is decided on.
    """

    name: str
    about: str
    formula: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    body: str

    @property
    def text(self) -> str:
        """The function as ONNX's parser reads it."""
        signature = f"{self.name} ({', '.join(self.inputs)}) => ({', '.join(self.outputs)})"
        return f'<opset_import: ["" : {ONNX_OPSET}], domain: "{DOMAIN}">\n{signature} {{\n{self.body}\n}}'

    @property
    def function(self) -> str:
        """What its function is called in Python: LIFToZero is ``lif_to_zero``."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", self.name).lower()

    @property
    def neurons(self) -> bool:
        """Whether it is a layer of neurons, which take a current."""
        return "current" in self.inputs

    @property
    def parameters(self) -> tuple[str, ...]:
        """The inputs that are constants."""
        return tuple(name for name in self.inputs if name in PARAMETERS)

    @property
    def spikes(self) -> str | None:
        """The output that is 0 or 1; None where nothing fires."""
        return next((name for name in self.outputs if name.endswith("spikes")), None)

    @property
    def membrane(self) -> str | None:
        """The value that is held against the threshold: an output, or the current where there is no memory."""
        return self._decided_on("next_membrane", "current")

    @property
    def variance(self) -> str | None:
        """The membrane's variance; None where there is no noise."""
        return self._decided_on("next_variance", "variance")

    def _decided_on(self, output: str, without_memory: str) -> str | None:
        if self.spikes is None:
            return None
        return output if output in self.outputs else without_memory if without_memory in self.inputs else None

    def value(self, name: str, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> str:
        """What a node with these inputs and outputs calls the definition's value ``name``."""
        if name in self.outputs:
            return outputs[self.outputs.index(name)]
        return inputs[self.inputs.index(name)]
