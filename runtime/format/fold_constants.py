"""Fold constants at load time: integer weights become the floats that they represent, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from axonnx.base.errors import AxonnxError

Constants = dict[str, NDArray[Any]]
KINDS = {TensorProto.FLOAT: "float32", TensorProto.INT8: "int8", TensorProto.INT16: "int16", TensorProto.INT64: "int64"}
VALUES = {"value": None, "value_float": np.float32, "value_int": np.int64, "value_ints": np.int64}


def read_tensor(tensor: onnx.TensorProto, where: str) -> NDArray[Any]:
    """Return the numbers of a constant after a check that they are finite and of a type that an export writes."""
    if tensor.data_type not in KINDS:
        raise AxonnxError(
            f"{where}: the constant {tensor.name!r} has ONNX type {tensor.data_type}; expected one of "
            f"{', '.join(KINDS.values())}. Export the network again"
        )
    try:
        array: NDArray[Any] = numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as fault:
        raise AxonnxError(f"{where}: the constant {tensor.name!r} cannot be read: {fault}") from None
    if not array.size or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        what = "numbers that are not finite" if array.size else "no numbers"
        raise AxonnxError(f"{where}: the constant {tensor.name!r} holds {what}; expected finite numbers")
    array.flags.writeable = False
    return array


def fold(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[str, NDArray[Any]], where: str
) -> tuple[list[onnx.NodeProto], Constants]:
    """Compute all nodes that depend on constants only; return the other nodes, and all constants."""
    known: Constants = dict(constants)
    left = []
    for node in nodes:
        value = _value(node, known, where)
        if value is None:
            left.append(node)
        else:
            value.flags.writeable = False
            known[node.output[0]] = value
    return left, known


def _value(node: onnx.NodeProto, known: Constants, where: str) -> NDArray[Any] | None:
    if node.domain or node.op_type not in ("Constant", "Cast", "Mul") or not all(name in known for name in node.input):
        return None
    if node.op_type == "Constant":
        return _constant(node, where)
    given = [known[name] for name in node.input]
    if node.op_type == "Cast":
        if helper.get_node_attr_value(node, "to") != TensorProto.FLOAT or given[0].dtype.kind != "i":
            raise AxonnxError(f"{where}: node {node.name!r} (Cast): expected a conversion of integers to float32")
        return given[0].astype(np.float32)
    if any(value.dtype != np.float32 for value in given) or 1 not in (given[0].size, given[1].size):
        raise AxonnxError(f"{where}: node {node.name!r} (Mul): expected a float32 constant times one number")
    return _finite(np.multiply(*given), node, where)


def _constant(node: onnx.NodeProto, where: str) -> NDArray[Any]:
    (attribute,) = node.attribute  # the checker has ensured this
    if attribute.name not in VALUES:
        raise AxonnxError(f"{where}: node {node.name!r} (Constant): unknown attribute {attribute.name!r}")
    if attribute.name == "value":
        return read_tensor(attribute.t, where)
    return _finite(np.array(helper.get_attribute_value(attribute), VALUES[attribute.name]), node, where)


def _finite(value: NDArray[Any], node: onnx.NodeProto, where: str) -> NDArray[Any]:
    if not value.size or not np.isfinite(value).all():
        raise AxonnxError(f"{where}: node {node.name!r} ({node.op_type}) gives no numbers, NaN or infinity")
    return value
