"""Changes that leave a model file nearly right: edges, names, attributes, constants, states, bodies, metadata."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.fuzz.contract_mutations import change_contract
from tests.fuzz.numbers import FLOATS, integer, real
from tests.fuzz.protobuf import change_any

Change = Callable[[random.Random, onnx.ModelProto], None]


def graphs(proto: onnx.ModelProto) -> list[onnx.GraphProto]:
    """The graph and the graphs in it, the innermost first."""
    found, waiting = [], [proto.graph]
    while waiting:
        graph = waiting.pop()
        found.insert(0, graph)
        waiting += [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return found


def _graph(rng: random.Random, proto: onnx.ModelProto) -> onnx.GraphProto:
    found = graphs(proto)
    return found[0] if rng.random() < 0.75 else rng.choice(found)


def _names(graph: onnx.GraphProto) -> list[str]:
    made = [name for node in graph.node for name in node.output]
    return [*made, *(value.name for value in graph.input), *(tensor.name for tensor in graph.initializer)] or [""]


def edge(rng: random.Random, proto: onnx.ModelProto) -> None:
    """A node reads another tensor, one more, or one less."""
    graph = _graph(rng, proto)
    node = rng.choice(list(graph.node) or [onnx.NodeProto()])
    name = rng.choice([*_names(graph), "", "nothing"])
    kind = rng.randrange(5)
    if kind == 0:
        node.input.append(name)
    elif kind == 1 and node.input:
        del node.input[rng.randrange(len(node.input))]
    elif node.input:
        node.input[rng.randrange(len(node.input))] = name


def output(rng: random.Random, proto: onnx.ModelProto) -> None:
    """Two results change places, or one takes another name."""
    graph = _graph(rng, proto)
    nodes = [node for node in graph.node if node.output]
    if not nodes:
        return
    a, b = rng.choice(nodes), rng.choice(nodes)
    if rng.random() < 0.6:
        a.output[0], b.output[-1] = b.output[-1], a.output[0]
    else:
        a.output[rng.randrange(len(a.output))] = rng.choice([*_names(graph), "", "new"])


def state(rng: random.Random, proto: onnx.ModelProto) -> None:
    """A state's next value becomes another's, old or new."""
    graph = graphs(proto)[0]
    names = [value.name for value in graph.input]
    after = [f"next/{name}" for name in names]
    if not names:
        return
    target, source = rng.choice(after), rng.choice([*names, *after])
    for node in graph.node:
        for at, name in enumerate(node.output):
            if name == target:
                node.output[at] = f"{target}/was"
    renamed = {target: f"{target}/was"}
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
    graph.node.append(helper.make_node("Identity", [renamed.get(source, source)], [target], name=f"{target}/now"))


def node(rng: random.Random, proto: onnx.ModelProto) -> None:
    """A node is dropped, doubled, moved, renamed or of another kind."""
    graph = _graph(rng, proto)
    if not graph.node:
        return
    at = rng.randrange(len(graph.node))
    copy = onnx.NodeProto()
    copy.CopyFrom(graph.node[at])
    kind = rng.randrange(6)
    if kind == 0:
        del graph.node[at]
    elif kind == 1:
        copy.output[:] = [name + "/again" for name in copy.output]
        graph.node.insert(rng.randrange(len(graph.node)), copy)
    elif kind == 2:
        del graph.node[at]
        graph.node.insert(rng.randrange(len(graph.node) + 1), copy)
    elif kind == 3:
        graph.node[at].name = rng.choice([n.name for n in graph.node] + ["", "x"])
    elif kind == 4:
        other = rng.choice(graph.node)
        graph.node[at].op_type, graph.node[at].domain = other.op_type, other.domain
    else:
        ops = (
            "Identity",
            "Add",
            "Mul",
            "Sub",
            "Relu",
            "Reshape",
            "Cast",
            "Constant",
            "Conv",
            "Gemm",
            "Loop",
            "If",
            "Shape",
        )
        graph.node[at].op_type = rng.choice(ops)


def attribute(rng: random.Random, proto: onnx.ModelProto) -> None:
    """An attribute of another value, length or type, or one that was not there."""
    nodes = [node for graph in graphs(proto) for node in graph.node]
    nodes += [node for body in proto.functions for node in body.node] if rng.random() < 0.1 else []
    with_some = [node for node in nodes if node.attribute]
    if not with_some or rng.random() < 0.2:
        names = (
            "axis",
            "strides",
            "pads",
            "dilations",
            "group",
            "to",
            "keepdims",
            "alpha",
            "value",
            "mode",
            "allowzero",
        )
        value: Any = rng.choice([integer(rng), [integer(rng)] * rng.randrange(1, 5), real(rng), "x", b"\xff"])
        rng.choice(nodes).attribute.append(helper.make_attribute(rng.choice(names), value))
        return
    chosen = rng.choice(rng.choice(with_some).attribute)
    if chosen.ints and rng.random() < 0.8:
        _integers(rng, chosen)
    elif chosen.type == onnx.AttributeProto.INT:
        chosen.i = integer(rng, chosen.i)
    elif chosen.type == onnx.AttributeProto.FLOAT:
        chosen.f = real(rng, chosen.f)
    else:
        chosen.type = rng.choice(list(onnx.AttributeProto.AttributeType.values()))


def _integers(rng: random.Random, chosen: onnx.AttributeProto) -> None:
    kind = rng.randrange(4)
    if kind == 0:
        del chosen.ints[rng.randrange(len(chosen.ints))]
    elif kind == 1:
        chosen.ints.insert(rng.randrange(len(chosen.ints) + 1), integer(rng, 1))
    else:
        at = rng.randrange(len(chosen.ints))
        chosen.ints[at] = integer(rng, chosen.ints[at])


def constant(rng: random.Random, proto: onnx.ModelProto) -> None:
    """An initialiser of other numbers, shape, type, name or place."""
    tensors = [tensor for graph in graphs(proto) for tensor in graph.initializer]
    if not tensors:
        return
    tensor = rng.choice(tensors)
    kind = rng.randrange(7)
    if kind < 3:
        _numbers(rng, tensor)
    elif kind == 3 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = integer(rng, tensor.dims[0])
    elif kind == 4:
        tensor.data_type = rng.choice(list(onnx.TensorProto.DataType.values()))
    elif kind == 5:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        if rng.random() < 0.7:
            tensor.external_data.add(
                key="location", value=rng.choice(("other.bin", "../other.bin", "/etc/hostname", ""))
            )
    else:
        tensor.name = rng.choice(tensors).name


def _array(tensor: onnx.TensorProto) -> Any:
    """The numbers of a constant that no change before has spoilt; None otherwise."""
    try:
        values = np.array(numpy_helper.to_array(tensor))
    except Exception:
        return None
    return values if values.size else None


def _numbers(rng: random.Random, tensor: onnx.TensorProto) -> None:
    values = _array(tensor)
    if values is None:
        return
    at, kind = rng.randrange(values.size), rng.randrange(5)
    with np.errstate(all="ignore"):
        if kind == 0 and values.dtype.kind == "f":
            values.flat[at] = rng.choice(FLOATS)
        elif kind == 1:
            values = values.T if rng.random() < 0.5 else values.reshape(-1)
        elif kind == 2:
            values = values.astype(rng.choice(("<f8", "<f2", "<i8", "<i4", "<f4", "?", "<u1")))
        elif kind == 3:
            values = np.concatenate([values, values]) if values.ndim else values[None]
        else:
            values.flat[at] = values.flat[rng.randrange(values.size)]
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), tensor.name))


def border(rng: random.Random, proto: onnx.ModelProto) -> None:
    """An input or output of another name, type or shape; one more, or one less."""
    graph = _graph(rng, proto)
    values = rng.choice((graph.input, graph.output))
    if not values:
        return
    at, kind = rng.randrange(len(values)), rng.randrange(6)
    shape = values[at].type.tensor_type.shape
    if kind == 0:
        del values[at]
    elif kind == 1:
        values.add().CopyFrom(values[at])
    elif kind == 2:
        values[at].name = rng.choice([*_names(graph), "new"])
    elif kind == 3:
        values[at].type.tensor_type.elem_type = rng.choice(list(onnx.TensorProto.DataType.values()))
    elif kind == 4 and shape.dim:
        shape.dim[rng.randrange(len(shape.dim))].dim_value = integer(rng, 4)
    else:
        other = onnx.ValueInfoProto()
        other.CopyFrom(rng.choice(values))
        values[at].type.CopyFrom(other.type)


def lawful(rng: random.Random, proto: onnx.ModelProto) -> None:
    """Other numbers that the certificates still hold for: signs and places of weights, thresholds, decays."""
    tensors = [tensor for tensor in graphs(proto)[0].initializer if tensor.data_type == onnx.TensorProto.FLOAT]
    for tensor in rng.sample(tensors, min(len(tensors), 3)):
        values = _array(tensor)
        if values is None:
            continue
        places = np.random.default_rng(rng.randrange(2**32))
        if tensor.name.endswith("threshold"):
            values[...] = rng.choice((0.0, -1.0, 1.0, 0.5, 3e38, 1e-40, values.min()))
        elif tensor.name.endswith("decay"):
            values[...] = rng.choice((0.0, 1.0, -0.5, 2.0, 1e30, 1e-40))
        else:
            values = places.permuted(values, axis=-1) if values.ndim else values
            values *= places.choice([-1.0, 1.0], values.shape).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), tensor.name))


def bypass(rng: random.Random, proto: onnx.ModelProto) -> None:
    """Nodes that read a result read what it was made of instead, or a copy of it."""
    graph = graphs(proto)[0]
    nodes = [node for node in graph.node if node.input and node.output]
    if not nodes:
        return
    chosen = rng.choice([node for node in nodes if node.op_type in ("Reshape", "Identity", "Mul")] or nodes)
    old, new = chosen.output[0], chosen.input[0]
    if rng.random() < 0.3:
        new = f"{old}/copy"
        at = list(graph.node).index(chosen)
        graph.node.insert(at + 1, helper.make_node("Identity", [old], [new], name=new))
        chosen = graph.node[at + 1]
    for node in graph.node:
        if node is not chosen and node.name != chosen.name:
            node.input[:] = [new if name == old else name for name in node.input]
    if new == chosen.input[0] and chosen.op_type in ("Reshape", "Identity"):
        graph.node.remove(chosen)


def version(rng: random.Random, proto: onnx.ModelProto) -> None:
    """Versions of the format and of operators."""
    kind = rng.randrange(3)
    if kind == 0:
        proto.ir_version = rng.choice((0, 1, 3, 7, 9, 10, 11, 12, 13, 99, -1))
    elif kind == 1 and proto.opset_import:
        rng.choice(proto.opset_import).version = rng.choice((0, 1, 2, 19, 20, 21, 23, 99, -1))
    else:
        proto.opset_import.add(
            domain=rng.choice(("", "ai.onnx", "ai.axonnx", "com.microsoft")), version=rng.choice((1, 20))
        )


def body(rng: random.Random, proto: onnx.ModelProto) -> None:
    """The body of a spike operator."""
    if proto.functions:
        change_any(rng, rng.choice(proto.functions))


def anything(rng: random.Random, proto: onnx.ModelProto) -> None:
    """Any field of any message."""
    change_any(rng, proto)


CHANGES: tuple[Change, ...] = (
    edge,
    output,
    state,
    node,
    attribute,
    attribute,
    constant,
    border,
    version,
    body,
    change_contract,
    anything,
    anything,
    lawful,
    lawful,
    lawful,
    bypass,
    bypass,
)


def mutate(rng: random.Random, data: bytes) -> bytes:
    """One to three changes."""
    proto = onnx.ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(CHANGES)(rng, proto)
    return bytes(proto.SerializeToString())
