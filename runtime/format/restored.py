"""Undo the changes of ONNX tools that keep a file's meaning.

An inliner replaces the call of a spike operator by its body, node by node and in order. Here the body is recognised and
becomes the call again. onnxsim lets states with equal initial values share one tensor of zeros, and removes the last
node, which only names the output. Here both are restored. Nothing is guessed: a body that differs in one node stays as
it is, and is refused later.
"""

from __future__ import annotations

import onnx
from onnx import helper

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.fields import check_names, every_graph
from axonnx.runtime.format.fold_constants import read_tensor
from axonnx.runtime.format.names import CLOCK, LOGITS
from axonnx.runtime.format.opset import DOMAIN, OPS, VERSION, function
from axonnx.runtime.format.results import member_names

OPTIMISER = {"com.microsoft", "com.microsoft.nchwc"}  # the optimiser imports all its operators, whether used or not


def restore(proto: onnx.ModelProto, where: str) -> None:
    """Undo, in place, the changes of the inliner and onnxsim; refuse a file of onnxruntime's optimiser."""
    if {entry.domain for entry in proto.opset_import} >= OPTIMISER:
        raise AxonnxError(
            f"{where}: was written by onnxruntime's optimiser (optimized_model_filepath), which shares and reorders "
            f"the computation of spike operators. Give the file as it was exported: onnxruntime "
            f"optimises it each time it loads it"
        )
    graphs = list(every_graph(proto.graph))
    for graph in graphs:
        check_names(graph, where)  # check the file as it is: the changes below must not hide what other runtimes refuse
    inlined = not any(node.domain == DOMAIN for graph in graphs for node in graph.node)
    used: set[str] = set()
    for graph in graphs:
        used |= _call_again(graph) if inlined else set()
    for scan in [node for node in proto.graph.node if node.op_type == "Scan"]:
        _own_zeros(proto.graph, scan, where)
    _named_output(proto.graph)
    if used:
        known = {entry.name for entry in proto.functions}
        proto.functions.extend(function(name) for name in sorted(used - known))
        if not any(entry.domain == DOMAIN for entry in proto.opset_import):
            proto.opset_import.append(helper.make_opsetid(DOMAIN, VERSION))


def _call_again(graph: onnx.GraphProto) -> set[str]:
    """Replace bodies by calls, the longest body first; return the operators that were found."""
    bodies = sorted(((name, function(name)) for name in OPS), key=lambda entry: -len(entry[1].node))
    found, kept, place = set(), [], 0
    nodes = list(graph.node)
    read_later = _readers(graph)
    while place < len(nodes):
        for name, body in bodies:
            window = nodes[place : place + len(body.node)]
            values = _matched(body, window)
            if values is not None and _has_states(name, values) and _only_inside(body, values, window, read_later):
                inputs, outputs = ([values[part] for part in parts] for parts in (body.input, body.output))
                kept.append(helper.make_node(name, inputs, outputs, name=_layer(name, inputs, outputs), domain=DOMAIN))
                found.add(name)
                place += len(window)
                break
        else:
            kept.append(nodes[place])
            place += 1
    if found:
        del graph.node[:]
        graph.node.extend(_told_apart(kept))
    return found


def _told_apart(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Keep a layer's name for its neurons; name the synaptic current before them after both."""
    named: dict[str, onnx.NodeProto] = {}
    for node in nodes:
        if node.domain == DOMAIN and node.name in named:
            earlier = named[node.name]
            earlier.name = f"{earlier.name}/{earlier.op_type}"
        named[node.name] = node
    return nodes


def _matched(body: onnx.FunctionProto, window: list[onnx.NodeProto]) -> dict[str, str] | None:
    """Return the names of a body's values in these nodes; None if a node differs."""
    if len(window) != len(body.node):
        return None
    values: dict[str, str] = {}
    for expected, node in zip(body.node, window, strict=True):
        same = (node.op_type, node.domain, len(node.input), len(node.output))
        if same != (expected.op_type, "", len(expected.input), len(expected.output)):
            return None
        if _attributes(node) != _attributes(expected):
            return None
        for mine, theirs in zip((*expected.input, *expected.output), (*node.input, *node.output), strict=True):
            if values.setdefault(mine, theirs) != theirs:
                return None
    return values if all(part in values for part in body.input) else None


def _has_states(op: str, values: dict[str, str]) -> bool:
    """Return whether the states of an operator are states of the graph, judged by their names."""
    return all(values[part].startswith(f"{part}/") for part in OPS[op].states)


def _attributes(node: onnx.NodeProto) -> list[bytes]:
    return sorted(bytes(entry.SerializeToString(deterministic=True)) for entry in node.attribute)


def _readers(graph: onnx.GraphProto) -> dict[str, int]:
    """Count how often each value is read, including the graph's outputs."""
    counts: dict[str, int] = {}
    for name in [*(name for node in graph.node for name in node.input), *(value.name for value in graph.output)]:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _only_inside(
    body: onnx.FunctionProto, values: dict[str, str], window: list[onnx.NodeProto], readers: dict[str, int]
) -> bool:
    """Return whether no node outside reads the inner values of a body."""
    own = {values[name] for node in body.node for name in node.output} - {values[name] for name in body.output}
    inside = [name for node in window for name in node.input]
    return all(readers.get(name, 0) == inside.count(name) for name in own)


def _layer(op: str, inputs: list[str], outputs: list[str]) -> str:
    """Return the layer's name from its states; neurons without states are named after their output."""
    values = dict(zip(OPS[op].inputs, inputs, strict=True))
    states = [values[part] for part in OPS[op].states]
    return states[0].partition("/")[2] if states else outputs[0].partition(":")[0]


def _own_zeros(graph: onnx.GraphProto, scan: onnx.NodeProto, where: str) -> None:
    """Make separate zeros for states that share them."""
    bodies = [attribute.g for attribute in scan.attribute if attribute.name == "body"]
    counts = [attribute.i for attribute in scan.attribute if attribute.name == "num_scan_inputs"]
    if len(bodies) != 1 or len(counts) != 1 or len(scan.input) != len(bodies[0].input):
        return  # not a loop of ours, so it is refused later
    (body,), (scanned,), given = bodies, counts, list(scan.input)
    made = {node.output[0]: node for node in graph.node if node.output}
    for number, state in enumerate(value.name for value in list(body.input)[: max(0, len(body.input) - scanned)]):
        zeros = made.get(scan.input[number])
        shape = made.get(zeros.input[0]) if zeros is not None and _is_zeros(zeros, where) else None
        if state == CLOCK or shape is None or shape.op_type != "Concat" or shape.output[0] == f"shape/{state}":
            continue
        own = helper.make_node("Concat", list(shape.input), [f"shape/{state}"], axis=0)
        value = helper.make_tensor("value", onnx.TensorProto.FLOAT, [1], [0.0])
        begin = helper.make_node("ConstantOfShape", [f"shape/{state}"], [f"zeros/{state}"], value=value)
        at = list(graph.node).index(scan)
        graph.node.insert(at, begin)
        graph.node.insert(at, own)
        scan.input[number] = f"zeros/{state}"
    if list(scan.input) != given:
        _without_unread(graph, "ConstantOfShape")
        _without_unread(graph, "Concat")


def _without_unread(graph: onnx.GraphProto, op: str) -> None:
    read = _readers(graph)
    for node in [node for node in graph.node if node.op_type == op and not read.keys() & set(node.output)]:
        graph.node.remove(node)


def _named_output(graph: onnx.GraphProto) -> None:
    """Restore the last node, which names the read-out's mean over time (or sum) as the output."""
    last = [node for node in graph.node if list(node.output) == [LOGITS] and node.op_type in ("Div", "Gemm")]
    if len(last) == 1:
        (name,) = member_names(1)
        last[0].output[0] = name
        graph.node.append(helper.make_node("Identity", [name], [LOGITS]))


def _is_zeros(node: onnx.NodeProto, where: str) -> bool:
    if node.op_type != "ConstantOfShape" or node.domain or len(node.input) != 1:
        return False
    return all(not read_tensor(attribute.t, where).any() for attribute in node.attribute)
