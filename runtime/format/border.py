"""Check the inputs and outputs of a graph against its contract: names, types and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.names import ENTROPY, LOGITS, MEMBER_LOGITS, MUTUAL_INFORMATION, PROBABILITIES

Shape = tuple[int, ...]
ANY = -1  # an axis without a fixed size
CLOCK_SHAPE: Shape = (1,)  # every other tensor has an axis for the batch


def result_shapes(contract: Contract) -> dict[str, Shape]:
    """Return the shapes of a whole network's results."""
    classes, members = len(contract.classes), contract.collapse.members
    if members == 1:
        return {LOGITS: (ANY, classes)}
    doubts: dict[str, Shape] = {ENTROPY: (ANY,), MUTUAL_INFORMATION: (ANY,)}
    return {PROBABILITIES: (ANY, classes), MEMBER_LOGITS: (members, ANY, classes), **doubts}


def check_border(values: Sequence[onnx.ValueInfoProto], shapes: Mapping[str, Shape], where: str) -> None:
    """Check that these tensors are exactly the expected ones, float32 except for the clock."""
    found = sorted(value.name for value in values)
    if found != sorted(shapes):
        raise AxonnxError(f"{where}s are {found}; expected {sorted(shapes)}. Export the network again")
    for value in values:
        expected, tensor = shapes[value.name], value.type.tensor_type
        kind = onnx.TensorProto.INT64 if expected == CLOCK_SHAPE else onnx.TensorProto.FLOAT
        sizes = tuple(dim.dim_value if dim.HasField("dim_value") else ANY for dim in tensor.shape.dim)
        if tensor.elem_type != kind or not tensor.HasField("shape") or sizes != expected:
            raise AxonnxError(
                f"{where} {value.name!r} has ONNX type {tensor.elem_type} and sizes {list(sizes)}; expected type "
                f"{kind} and sizes {list(expected)} ({ANY} means any). Export the network again"
            )
