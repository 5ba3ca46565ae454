"""The spike operators as torch operators: eager torch runs their bodies, a captured graph keeps their names.

They are the operators of ``axonnx.runtime.format.opset``, one for one, with the same order of inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from axonnx.models.pooling import pool_pairs
from axonnx.runtime.codegen.expressions import assignments
from axonnx.runtime.format.opset import OPS, SpikeOp

LIBRARY = "axonnx"

OPERATIONS: dict[str, Callable[..., Tensor]] = {
    "Add": torch.add,
    "Sub": torch.sub,
    "Mul": torch.mul,
    "GreaterOrEqual": torch.ge,
    "Abs": torch.abs,
    "Neg": torch.neg,
    "Mod": torch.remainder,
    "Div": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "Min": torch.minimum,
    "Max": torch.maximum,
}
TYPES = {"float": torch.float32, "whole": torch.int32}


def operator_of(target: object) -> str | None:
    """Return the name of the spike operator that a captured node calls."""
    return _NAMES.get(str(target))


def _neurons(op: SpikeOp) -> Callable[..., Any]:
    """Compute a neuron operator, operation by operation as its definition has them."""
    body = assignments(op)

    def run(*inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        values = dict(zip(op.inputs, inputs, strict=True))
        for step in body:
            if step.operation == "Constant":
                values[step.output] = torch.tensor(float(step.value))
            elif step.operation == "Cast":
                values[step.output] = values[step.inputs[0]].to(TYPES[step.kind])
            else:
                values[step.output] = OPERATIONS[step.operation](*(values[name] for name in step.inputs))
        found = tuple(values[name] for name in op.outputs)
        return found if len(found) > 1 else found[0]

    return run


def _recurrent_activity(spikes: Tensor) -> Tensor:
    squares = spikes * spikes
    return squares.sum(-1, keepdim=True) - squares


# What is no layer of neurons sums up over places, so its body is no list of operations on single numbers.
OTHERS: dict[str, Callable[..., Any]] = {"RecurrentActivity": _recurrent_activity, "PoolPairs": pool_pairs}


def _shapes(op: SpikeOp) -> Callable[..., Any]:
    """Tell the capture the shape of results: that of the first input, except for a pooling."""

    def run(first: Tensor, *rest: Tensor) -> Tensor | tuple[Tensor, ...]:
        *lead, height, width = (*first.shape,) if op.name == "PoolPairs" else (*first.shape, 0, 0)
        shape = (*lead, height // 2, width // 2) if op.name == "PoolPairs" else lead
        made = tuple(first.new_empty(shape) for _ in op.outputs)
        return made if len(made) > 1 else made[0]

    return run


def _registered(op: SpikeOp) -> Any:
    given, results = (", ".join(f"Tensor {name}" for name in op.inputs), ", ".join("Tensor" for _ in op.outputs))
    schema = f"({given}) -> {results if len(op.outputs) == 1 else f'({results})'}"
    function = OTHERS.get(op.name) or _neurons(op)
    made = torch.library.custom_op(f"{LIBRARY}::{op.function}", function, mutates_args=(), schema=schema)
    made.register_fake(_shapes(op))
    return made


OPERATORS: dict[str, Any] = {op.name: _registered(op) for op in OPS.values()}
_NAMES = {f"{LIBRARY}.{op.function}.default": op.name for op in OPS.values()}
