"""A collapsed network's step as a flat list of torch operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, fx

from axonnx.base.errors import AxonnxError
from axonnx.export.graph.step_module import Signature, Slot, StepModule, example, signature_of
from axonnx.models import Network


@dataclass(frozen=True)
class Captured:
    """The captured graph, the names of the constants it reads, and the signature it follows."""

    graph: fx.Graph
    constants: dict[str, str]  # placeholder -> name of the buffer, as in the collapsed network
    signature: Signature

    @property
    def inputs(self) -> list[fx.Node]:
        """Placeholders in the order of the step's arguments: x, states, noises, clock."""
        found = [node for node in self.graph.nodes if node.op == "placeholder" and node.name not in self.constants]
        return [node for node in found if node.meta.get("val") is not None]

    def layer(self, node: fx.Node) -> str:
        """Return the module that made this call, in the network's own names; empty for compute() itself."""
        stack = node.meta.get("nn_module_stack") or {}
        path = str(next(reversed(stack.values()))[0]) if stack else ""
        return path.partition(".")[2]

    def where(self, node: fx.Node) -> str:
        """Return what an error text calls the place of this call."""
        return self.layer(node) or "compute()"

    def constant_of(self, operand: Any) -> str | None:
        """Return the name of the buffer that an operand is; None for other operands and for none."""
        return self.constants.get(operand.name) if isinstance(operand, fx.Node) else None

    def calls(self) -> list[fx.Node]:
        """Return the operator calls in order."""
        return [node for node in self.graph.nodes if node.op == "call_function"]


def capture(network: Network, input_shape: tuple[int, ...]) -> Captured:
    """Capture one step for any batch size."""
    signature = signature_of(network, input_shape)
    module = StepModule(network, signature)
    arguments = example(signature)
    batch = torch.export.Dim("batch", min=1)
    try:
        with torch.no_grad():
            program = torch.export.export(module, arguments, dynamic_shapes=_dynamic(signature, batch), strict=False)
    except (torch._dynamo.exc.UserError, RuntimeError) as fault:
        raise AxonnxError(
            f"the network's compute() cannot be captured for any batch size; it must look neither at the values of its "
            f"tensors nor at the number of samples: {fault}"
        ) from fault
    buffers = {**program.graph_signature.inputs_to_buffers, **program.graph_signature.inputs_to_parameters}
    constants = {placeholder: name.removeprefix("network.") for placeholder, name in buffers.items()}
    if program.constants:
        known = set(constants.values()) | {f"network.{name}" for name in constants.values()}
        free = [name for name in program.constants if name not in known and not name.startswith("network.")]
        if free:
            raise AxonnxError("compute() makes tensors of its own; keep constants in buffers of a layer")
    captured = Captured(program.graph, constants, signature)
    _refuse_mixed_samples(captured)
    return captured


def _refuse_mixed_samples(captured: Captured) -> None:
    """Every value that depends on the input must be [B, …] with fixed sizes after the batch."""
    arriving = captured.inputs[: 1 + len(captured.signature.states) + len(captured.signature.noises)]
    batch, by_sample = str(arriving[0].meta["val"].shape[0]), set(arriving)
    for node in captured.calls():
        value = node.meta["val"]
        if isinstance(value, torch.SymInt) or by_sample.isdisjoint(node.all_input_nodes):
            continue
        by_sample.add(node)
        for tensor in (value,) if isinstance(value, Tensor) else value:
            first, *rest = tensor.shape or [None]
            if str(first) != batch or not all(isinstance(size, int) for size in rest):
                raise AxonnxError(
                    f"{captured.where(node)}: {node.target} gives {list(tensor.shape)} of a batch of {batch}: samples "
                    f"must stay apart, along the first axis. Leave that axis as it is"
                )


def _dynamic(signature: Signature, batch: Any) -> tuple[Any, ...]:
    axis = {0: batch}
    clock: dict[int, Any] | None = {} if signature.clocked else None
    return axis, [axis for _ in signature.states], [axis for _ in signature.noises], clock


def operands(node: fx.Node) -> tuple[Any, ...]:
    """Return a call's positional arguments."""
    return node.args


def constant(network: Network, name: str) -> Tensor:
    """Return the buffer called ``name``."""
    owner, _, last = name.rpartition(".")
    value: Tensor = getattr(network.get_submodule(owner), last)
    return value


@dataclass(frozen=True)
class Member:
    """One collapsed network with its captured step; ``prefix`` keeps the names of an ensemble's members apart."""

    network: Network
    captured: Captured
    prefix: str = ""

    def slots(self, kind: Literal["states", "noises", "traces"]) -> list[Slot]:
        """Slots with the member's own layer names."""
        found: tuple[Slot, ...] = getattr(self.captured.signature, kind)
        return [Slot(self.prefix + slot.layer, slot.field, slot.shape) for slot in found]
