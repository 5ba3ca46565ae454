"""Check the fields of a model file: only those are allowed that an export writes, or other tools add without harm.

Any other field would mean something to another runtime that it does not mean here (sparse constants, training graphs,
overloads, data in other files), so the file is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import onnx

from axonnx.base.errors import AxonnxError

REMARKS = {"doc_string", "metadata_props"}
FIELDS: dict[str, set[str]] = {
    "ModelProto": {
        "ir_version",
        "opset_import",
        "producer_name",
        "producer_version",
        "domain",
        "model_version",
        "graph",
        "functions",
    },
    "OperatorSetIdProto": {"domain", "version"},
    "StringStringEntryProto": {"key", "value"},
    "GraphProto": {"node", "name", "initializer", "input", "output", "value_info"},
    "NodeProto": {"input", "output", "name", "op_type", "domain", "attribute"},
    "AttributeProto": {"name", "type", "f", "i", "s", "t", "g", "floats", "ints"},
    "TensorProto": {"dims", "data_type", "name", "raw_data", "float_data", "int32_data", "int64_data"},
    "ValueInfoProto": {"name", "type"},
    "TypeProto": {"tensor_type", "denotation"},
    "Tensor": {"elem_type", "shape"},
    "TensorShapeProto": {"dim"},
    "Dimension": {"dim_value", "dim_param", "denotation"},
}
ELSEWHERE = {"data_location", "external_data"}


def check_fields(proto: onnx.ModelProto, where: str) -> None:
    """Refuse a file with an unknown field or a text that is not UTF-8; function bodies are checked elsewhere."""
    try:
        _check(proto, where)
    except UnicodeError:
        raise AxonnxError(f"{where}: contains a text that is not UTF-8. Copy or export the file again") from None


def every_graph(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and its inner graphs."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from every_graph(attribute.g)


def check_names(graph: onnx.GraphProto, where: str) -> None:
    """Check that all names are unique: counts and traces are found by name, and other runtimes refuse duplicates."""
    groups: dict[str, Iterable[str]] = {
        "nodes": (node.name for node in graph.node if node.name),
        "inputs and constants": [value.name for value in (*graph.input, *graph.initializer)],
        "results": (name for node in graph.node for name in node.output if name),
        "outputs": (value.name for value in graph.output),
    }
    for what, names in groups.items():
        twice = [name for name, number in Counter(names).items() if number > 1]
        if twice:
            raise AxonnxError(f"{where}: two {what} have the name {twice[0]!r}. Export the network again")


def _check(message: Any, where: str) -> None:
    kinds = _kinds(message.DESCRIPTOR)
    for field, value in message.ListFields():
        kind = kinds.get(field.name)
        if kind == "messages":
            for part in value:
                _check(part, where)
        elif kind == "message":
            _check(value, where)
        elif kind == "text" or kind == "texts":
            for text in (value,) if kind == "text" else value:
                if not isinstance(text, str):  # protobuf returns bytes if a text is not valid
                    raise UnicodeError
        elif field.name in ELSEWHERE:
            _check_inside(message, where)
        elif kind is None:
            raise AxonnxError(
                f"{where}: {_called(message)} has the field {field.name!r}, which exported files never have. Export "
                "the network again"
            )


@cache
def _kinds(descriptor: Any) -> dict[str, str]:
    """Return the kind of each known field of a message."""
    return {name: _kind(descriptor.fields_by_name.get(name)) for name in FIELDS[descriptor.name] | REMARKS}


def _kind(field: Any) -> str:
    if field is None or field.name == "functions":
        return "plain"
    if field.message_type is not None:
        return "messages" if field.is_repeated else "message"
    if field.type != field.TYPE_STRING:
        return "plain"
    return "texts" if field.is_repeated else "text"


def _check_inside(tensor: Any, where: str) -> None:
    if tensor.data_location != onnx.TensorProto.DEFAULT or tensor.external_data:
        raise AxonnxError(
            f"{where}: the constant {tensor.name!r} is stored in another file; expected one file with all constants. "
            f"Export the network again"
        )


def _called(message: Any) -> str:
    name = getattr(message, "name", "")
    return f"{message.DESCRIPTOR.name} {name!r}" if name else f"its {message.DESCRIPTOR.name}"
