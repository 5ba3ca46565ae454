"""The inputs and outputs of a graph, held to what its contract promises: names, types and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from axonnx.runtime.contract import Contract
from axonnx.runtime.errors import AxonnxError

Shape = tuple[int, ...]
CLOCK_SHAPE: Shape = (-1,)  # marks the clock: one int64


def result_shapes(contract: Contract) -> dict[str, Shape]:
    """The results of a whole network after the batch; the members' logits have a size before it, too."""
    classes, members = len(contract.classes), contract.collapse.members
    if members == 1:
        return {"logits": (classes,)}
    return {
        "probabilities": (classes,),
        "member_logits": (members, 0, classes),
        "entropy": (),
        "mutual_information": (),
    }


def check_border(values: Sequence[onnx.ValueInfoProto], shapes: Mapping[str, Shape], free: int, where: str) -> None:
    """Exactly these tensors: float32, with so many axes of any size before ``shapes``; results have the batch alone."""
    found = sorted(value.name for value in values)
    if found != sorted(shapes):
        raise AxonnxError(f"{where}s are {found}; expected {sorted(shapes)}. Export the network again")
    results = ("logits", "probabilities", "member_logits", "entropy", "mutual_information")
    for value in values:
        expected, kind = [0] * (1 if value.name in results else free) + list(shapes[value.name]), onnx.TensorProto.FLOAT
        if shapes[value.name] == CLOCK_SHAPE:
            expected, kind = [1], onnx.TensorProto.INT64
        if value.name == "member_logits":
            expected = list(shapes[value.name])
        tensor = value.type.tensor_type
        sizes = [dim.dim_value for dim in tensor.shape.dim]
        if tensor.elem_type != kind or not tensor.HasField("shape") or sizes != expected:
            raise AxonnxError(
                f"{where} {value.name!r} is of ONNX type {tensor.elem_type} and sizes {sizes}; expected type {kind} "
                f"and {expected} (0 is any). Export the network again"
            )
