"""Constants worked out at load: weights stored as integers become the floats they stand for, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Constants = dict[str, NDArray[Any]]


def fold(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[str, NDArray[Any]]
) -> tuple[list[onnx.NodeProto], Constants]:
    """The nodes that are left once those on constants alone are computed, and all constants."""
    known: Constants = dict(constants)
    left = []
    for node in nodes:
        value = _value(node, known)
        if value is None:
            left.append(node)
        else:
            value.flags.writeable = False
            known[node.output[0]] = value
    return left, known


def _value(node: onnx.NodeProto, known: Constants) -> NDArray[Any] | None:
    if node.op_type == "Constant" and not node.domain:
        return _constant(node)
    if node.op_type not in ("Cast", "Mul") or not all(name in known for name in node.input):
        return None
    if node.op_type == "Cast":
        kind = helper.tensor_dtype_to_np_dtype(helper.get_node_attr_value(node, "to"))
        return known[node.input[0]].astype(kind)
    return np.multiply(known[node.input[0]], known[node.input[1]])


def _constant(node: onnx.NodeProto) -> NDArray[Any] | None:
    attribute = node.attribute[0]
    value = helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        array: NDArray[Any] = np.array(numpy_helper.to_array(value))
        return array
    return np.array(value, np.float32 if attribute.name.startswith("value_float") else np.int64)
