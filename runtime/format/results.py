"""The nodes after the step in a file: a mean over time, and an ensemble's results from its members' logits.

An export writes these nodes, and a file is checked against them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.fold_constants import read_tensor
from axonnx.runtime.format.names import (
    ENTROPY,
    LOGITS,
    MEMBER_LOGITS,
    MEMBER_PROBABILITIES,
    MUTUAL_INFORMATION,
    PROBABILITIES,
)


class Call(NamedTuple):
    """A node without its name."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, node: onnx.NodeProto, where: str) -> Call:
        """Return the call that a node makes."""
        values = {attribute.name: _plain(helper.get_attribute_value(attribute), where) for attribute in node.attribute}
        return cls(node.op_type, tuple(node.input), tuple(node.output), tuple(sorted(values.items())))

    def node(self, prefix: str = "") -> onnx.NodeProto:
        """Return the node that makes this call, named after its output."""
        name = prefix + self.outputs[0]
        return helper.make_node(self.op, self.inputs, self.outputs, name=name, **dict(self.attributes))


def readout_calls(contract: Contract, entering: str, totals: Sequence[str], logits: Sequence[str]) -> list[Call]:
    """Return the nodes of logits = total / T for each member, or = total; T is the first axis of the input."""
    if contract.logits == "total":
        return [Call("Identity", (total,), (name,)) for total, name in zip(totals, logits, strict=True)]
    steps = [
        Call("Shape", (entering,), ("steps_int",), (("end", 1), ("start", 0))),
        Call("Cast", ("steps_int",), ("steps",), (("to", onnx.TensorProto.FLOAT),)),
    ]
    return steps + [Call("Div", (total, "steps"), (name,)) for total, name in zip(totals, logits, strict=True)]


def member_names(members: int) -> tuple[str, ...]:
    """Return the names of the logits of a spiking network's members."""
    return tuple(f"{LOGITS}/{number}" for number in range(members))


def result_calls(logits: Sequence[str]) -> list[Call]:
    """Return the nodes that compute the results from each member's logits, or an ensemble's probabilities."""
    return [Call("Identity", tuple(logits), (LOGITS,))] if len(logits) == 1 else ensemble_calls(logits)


def member_logits(found: Mapping[str, Any]) -> Any:
    """Return the logits [members, B, classes] among a whole file's results."""
    return found[LOGITS][None] if LOGITS in found else found[MEMBER_LOGITS]


def result_nodes(logits: Sequence[str]) -> list[onnx.NodeProto]:
    """Return the calls as ONNX nodes."""
    return [call.node("" if len(logits) == 1 else "ensemble/") for call in result_calls(logits)]


def ensemble_calls(logits: Sequence[str]) -> list[Call]:
    """Return the nodes of p = mean_m softmax(logits_m), H[p] and I = H[p] − mean_m H[p_m]."""
    stacked = tuple(f"{name}/member" for name in logits)
    calls = [
        Call("Constant", (), ("axis_members",), (("value_ints", (0,)),)),
        Call("Constant", (), ("axis_classes",), (("value_ints", (-1,)),)),
        Call("Constant", (), ("tiny",), (("value_float", float(np.float32(1e-30))),)),
    ]
    calls += [Call("Unsqueeze", (name, "axis_members"), (out,)) for name, out in zip(logits, stacked, strict=True)]
    calls += [
        Call("Concat", stacked, (MEMBER_LOGITS,), (("axis", 0),)),
        Call("Softmax", (MEMBER_LOGITS,), (MEMBER_PROBABILITIES,), (("axis", -1),)),
        Call("ReduceMean", (MEMBER_PROBABILITIES, "axis_members"), (PROBABILITIES,), (("keepdims", 0),)),
    ]
    calls += _entropy_calls(PROBABILITIES, ENTROPY) + _entropy_calls(MEMBER_PROBABILITIES, "member_entropy")
    return [
        *calls,
        Call("ReduceMean", ("member_entropy", "axis_members"), ("expected_entropy",), (("keepdims", 0),)),
        Call("Sub", (ENTROPY, "expected_entropy"), (MUTUAL_INFORMATION,)),
    ]


def _entropy_calls(of: str, out: str) -> list[Call]:
    """Return the nodes of H[p] = −Σ p log p."""
    return [
        Call("Max", (of, "tiny"), (f"{out}/clipped",)),
        Call("Log", (f"{out}/clipped",), (f"{out}/log",)),
        Call("Mul", (of, f"{out}/log"), (f"{out}/products",)),
        Call("ReduceSum", (f"{out}/products", "axis_classes"), (f"{out}/sum",), (("keepdims", 0),)),
        Call("Neg", (f"{out}/sum",), (out,)),
    ]


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, onnx.TensorProto):
        return tuple(read_tensor(value, where).ravel().tolist())
    return tuple(value) if isinstance(value, list) else value
