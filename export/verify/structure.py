"""A file's own consistency, its contract against the run, and its graph against what the run exports to today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.export.calibrate import SAMPLES, calibrated_thresholds
from axonnx.export.collapsed import Collapsed, CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.graph.grid import Stored
from axonnx.export.verify.constants_check import constants_of
from axonnx.export.write import build_model
from axonnx.runtime.format.contract import Contract, LayerContract
from axonnx.runtime.format.model_file import ModelFile, read_model_file
from axonnx.runtime.format.names import TRACE
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.program.compilation import compile_program
from axonnx.runtime.program.instructions import Neurons, Program
from axonnx.train.config.read import parse_config, to_toml
from axonnx.train.trained import Origin

# What a file may choose: how it was collapsed and written. Accuracies and certainty are measured again, not derived.
CHOICES = ("collapse", "form", "accuracy", "measured", "certainty")


@dataclass
class Findings:
    """A stage's verdict and the lines that explain it."""

    ok: bool = True
    lines: list[str] = field(default_factory=list)

    def fail(self, line: str) -> None:
        """Note what is wrong."""
        self.ok = False
        self.lines.append(line)


@dataclass(frozen=True)
class Subject:
    """A file, the network it is said to come from, and what that exports to today."""

    file: ModelFile
    program: Program
    trained: Origin
    collapsed: Collapsed
    thresholds: Mapping[str, Tensor]  # of a calibration, matched again; else none

    @property
    def contract(self) -> Contract:
        """The file's contract."""
        return self.file.contract


def open_subject(path: str | Path, trained: Origin) -> Subject:
    """Load the file, and collapse the network again in the way that the file declares."""
    file = read_model_file(path)
    program, how = compile_program(file), file.contract.collapse
    settings = CollapseSettings(how.mode, how.members, how.seed or 0, how.prune, _weights(file.contract))
    thresholds: Mapping[str, Tensor] = {}
    if how.calibrated:
        inputs = [x for x, _ in trained.data("train", SAMPLES)]
        thresholds = calibrated_thresholds(trained.network, trained.arriving, settings, inputs)
    collapsed = collapse_network(trained.network, trained.arriving, settings, thresholds)
    return Subject(file, program, trained, collapsed, thresholds)


def _weights(contract: Contract) -> Stored:
    """Return how an export would have to be told to store the file's weights."""
    weights, integers = contract.collapse.weights, {"int8": "integer8", "int4": "integer4", "int2": "integer2"}
    return cast(Stored, integers[weights] if contract.dynamics == "integer" else weights)


def check_structure(subject: Subject, found: Findings) -> None:
    """Compare the contract field by field, then the graph byte for byte."""
    contract = subject.contract
    found.lines.append(f"operator bodies and {len(contract.synapses)} grid certificates hold")
    trained = subject.trained
    derived = make_contract(
        subject.collapsed, trained.classes, contract.form, (), trained.provenance(), units=trained.units
    )
    stated = contract.model_dump(mode="json")
    stated["provenance"]["config"] = present_config(contract.provenance.config)
    faults = list(differences(stated, derived.model_dump(mode="json")))
    faults += wrong_statements(subject.program)
    for line in faults:
        found.fail(line)
    if not faults:
        found.lines.append("the contract is the one that the run gives, field by field, and says what the graph does")
    traced = any(output.name.startswith(TRACE) for output in subject.file.proto.graph.output)
    again = build_model(subject.collapsed, contract, traced)
    if again.SerializeToString(deterministic=True) == subject.file.path.read_bytes():
        found.lines.append("the run exports to this very graph, byte for byte")
    else:
        for line in _graph_differences(again, subject.file.proto):
            found.fail(line)


def other_network(subject: Subject) -> str | None:
    """In what the file is of a network of other sizes than the run's, so that no number can be compared."""
    contract = subject.contract
    derived = make_contract(subject.collapsed, subject.trained.classes, contract.form, (), contract.provenance)
    sizes = (
        ("kind", contract.kind, derived.kind),
        ("input", list(contract.input.shape), list(derived.input.shape)),
        ("number of classes", len(contract.classes), len(derived.classes)),
        ("layers", [layer.name for layer in contract.layers], [layer.name for layer in derived.layers]),
    )
    shapes = [
        (f"layer {ours.name!r}", list(theirs.shape), list(ours.shape))
        for theirs, ours in zip(contract.layers, derived.layers, strict=False)
    ]
    differing = [(what, file, run) for what, file, run in (*sizes, *shapes) if file != run]
    return "its {} is {}, that of the run is {}".format(*differing[0]) if differing else None


def present_config(text: str | None) -> str | None:
    """Return a file's configuration as it is written today: settings that came after the file have their defaults."""
    try:
        return None if text is None else to_toml(parse_config(text, "the file's configuration"))
    except AxonnxError:
        return text  # and differs from the run's


def differences(found: Any, derived: Any, where: str = "") -> Iterator[str]:
    """Every place where a contract is not the one derived from the run."""
    if isinstance(found, dict) and isinstance(derived, dict):
        for key in sorted(found.keys() | derived.keys()):
            if where or key not in CHOICES:
                yield from differences(found.get(key), derived.get(key), f"{where}.{key}" if where else key)
    elif isinstance(found, list) and isinstance(derived, list) and len(found) == len(derived):
        for number, (one, other) in enumerate(zip(found, derived, strict=True)):
            yield from differences(one, other, f"{where}[{number}]")
    elif found != derived:
        yield f"contract.{where} is {_short(found)}; the run gives {_short(derived)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _graph_differences(expected: onnx.ModelProto, found: onnx.ModelProto) -> list[str]:
    """Return what makes the graph another one than the run's."""
    lines, ours, theirs = [], constants_of(expected), constants_of(found)
    for name in sorted(set(ours) | set(theirs)):
        if name not in ours or name not in theirs:
            lines.append(f"constant {name!r} is {'missing from' if name in ours else 'only in'} the file")
        elif ours[name].shape != theirs[name].shape:
            lines.append(f"constant {name!r} is {list(theirs[name].shape)}, expected {list(ours[name].shape)}")
        elif not np.array_equal(ours[name], theirs[name]):
            index = tuple(int(i) for i in np.argwhere(ours[name] != theirs[name])[0])
            count = int((ours[name] != theirs[name]).sum())
            lines.append(
                f"constant {name!r}{list(index)} is {theirs[name][index]!r}, the run gives "
                f"{ours[name][index]!r} ({count} of {ours[name].size} differ)"
            )
    return lines or [_other_part(expected, found)]


def _other_part(expected: onnx.ModelProto, found: onnx.ModelProto) -> str:
    """Which part of the file is not the run's, where no constant differs."""
    if expected.graph != found.graph:
        return "the graph's nodes are not those that the run exports to"
    names = sorted(field.name for field in onnx.ModelProto.DESCRIPTOR.fields)
    parts = [name for name in names if getattr(expected, name) != getattr(found, name)]
    return f"the graph is the run's; what the file holds beside it is not: {', '.join(parts) or 'its encoding'}"


STATED = ("threshold", "decay")


def wrong_statements(program: Program) -> Iterator[str]:
    """Every statement about a layer that is not what its node computes with."""
    nodes = {node.layer: node for node in program.instructions if isinstance(node, Neurons)}
    for layer in program.contract.layers:
        node = nodes.get(layer.name)
        held = _without_node(layer) if node is None else _of_node(node, program)
        for key in ("op", "reset", *STATED):
            stated, computes = getattr(layer, key), held.get(key)
            if stated != computes:
                yield f"layer {layer.name!r}: the contract states {key} {stated!r}, its node has {computes!r}"
    named = {layer.name for layer in program.contract.layers}
    yield from (f"layer {name!r} is in the graph and not in the contract" for name in nodes.keys() - named)


def _without_node(layer: LayerContract) -> dict[str, Any]:
    """Describe a layer that has no node: a delay line keeps frames as its state, a read-out without memory does not."""
    return {"op": "DelayLine" if layer.states == (f"delayed/{layer.name}",) else "Gemm"}


def _of_node(node: Neurons, program: Program) -> dict[str, Any]:
    parameters = dict(node.parameters)
    if node.op == "LeakyCurrent":  # a layer by itself
        parameters["decay"] = parameters["synaptic_decay"]
    spans = {key: _span(program.constants[parameters[key]]) for key in STATED if key in parameters}
    return {"op": node.op, "reset": OPS[node.op].reset, **spans}


def _span(values: np.ndarray) -> float | tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return low if low == high else (low, high)
