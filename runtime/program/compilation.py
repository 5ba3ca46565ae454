"""Compile an exported file to a program. All faults are reported here, with node and operator."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.certificates import Synapse
from axonnx.runtime.format.model_file import ModelFile, read_model_file
from axonnx.runtime.format.names import CLOCK, DELAYED, NEXT, NOW_TRACE, TRACE, trace_key
from axonnx.runtime.format.names import SPIKES as SPIKES_OF
from axonnx.runtime.format.opset import DOMAIN, OPS
from axonnx.runtime.format.values import REAL, SILENCE, SPIKES, Values, graded, joined
from axonnx.runtime.program.instructions import (
    Buffer,
    Floats,
    Instruction,
    Layer,
    Neurons,
    Program,
    Shape,
    StepRow,
    trace_sources,
)
from axonnx.runtime.program.rules import SPIKE_RULES, STANDARD_RULES, Rule
from axonnx.runtime.program.step_graph import Slot, StepGraph, needed_nodes, step_graph

MOST_ELEMENTS = 2**26  # numbers in all buffers of one sample


def compile_file(path: str | os.PathLike[str]) -> Program:
    """Compile the file at ``path``.

    Raises:
        AxonnxError: If the file is not valid.
    """
    return compile_program(read_model_file(path))


def compile_program(file: ModelFile) -> Program:
    """Compile a file; errors name the node."""
    return Compilation(file, step_graph(file)).program()


class Compilation:
    """The tables that grow while the nodes of a step become instructions."""

    def __init__(self, file: ModelFile, graph: StepGraph) -> None:
        self.file, self.graph, self.where = file, graph, file.name
        self.certificates = {stated.weight: stated for stated in file.contract.synapses}
        self.buffers: dict[str, Buffer] = {}
        self.constants: dict[str, Floats] = {}
        self.aliases: dict[str, str] = {}
        self.shapes: dict[str, Shape] = {}  # outputs of Shape nodes
        self.sums: dict[str, Synapse] = {}  # buffers that a synapse writes
        self.instructions: list[Instruction] = []
        self.elements = 0  # numbers in all buffers
        self.integers_only = file.contract.dynamics == "integer"
        self.most_steps: int | None = None  # over which the read-out's sum in integers is exact

    def program(self) -> Program:
        """Compile everything that states and logits need."""
        self._entering()
        wanted = [*self.graph.logits, *(NEXT + slot.name for slot in self.graph.states)]
        needed = needed_nodes(self.graph.nodes, wanted)
        for node in needed:
            self._rule(node)(self, node)
        after = {slot.name: self._after(slot) for slot in self.graph.states}
        logits = tuple(self.resolve(name) for name in self.graph.logits)
        self._check_results(logits)
        layers = tuple(self._layer(instruction) for instruction in self.instructions if _fires(instruction))
        self._check_once("layers of neurons", [layer.name for layer in layers])
        self._check_once("nodes", [instruction.name for instruction in self.instructions])
        program = Program(
            name=self.where,
            contract=self.file.contract,
            input=self.graph.input.name,
            states=tuple(slot.name for slot in self.graph.states),
            noises=tuple(slot.name for slot in self.graph.noises),
            instructions=tuple(self.instructions),
            buffers=self.buffers,
            constants=self.constants,
            after=after,
            logits=logits,
            totals=self.graph.totals,
            layers=layers,
            steps_known=self._steps_known(),
            synapses=tuple(i.name for i in self.instructions if i.writes[0] in self.sums),
        )
        known = {id(node) for node in needed}
        self._check_traces(needed, program)
        self._check_rest([node for node in self.graph.nodes if id(node) not in known], program)
        return program

    def resolve(self, name: str) -> str:
        """Return the buffer or constant that ``name`` refers to."""
        return self.aliases.get(name, name)

    def buffer(self, node: onnx.NodeProto, number: int) -> Buffer:
        """Return the buffer that is operand ``number`` of a node."""
        name = self.resolve(node.input[number])
        if name == CLOCK:
            raise self.fault(node, "only the row of a table can be selected by the time step")
        if name not in self.buffers:
            what = "a constant" if name in self.graph.constants else "nothing that is known"
            raise self.fault(node, f"its operand {node.input[number]!r} is {what}; expected a tensor of the step")
        return self.buffers[name]

    def constant(self, node: onnx.NodeProto, number: int) -> str:
        """Return the name of the float constant that is operand ``number`` of a node."""
        name = self.resolve(node.input[number])
        value = self.graph.constants.get(name)
        if value is None or value.dtype != np.float32:
            raise self.fault(node, f"its operand {node.input[number]!r} is not a float32 constant")
        self.constants[name] = value
        return name

    def integers(self, node: onnx.NodeProto, number: int) -> list[int]:
        """Return the integers that are operand ``number`` of a node."""
        value = self.graph.constants.get(node.input[number])
        if value is None or value.dtype != np.int64 or value.ndim != 1:
            raise self.fault(node, f"its operand {node.input[number]!r} is not a constant list of integers")
        return [int(item) for item in value]

    def write(self, name: str, shape: Shape, values: Values) -> None:
        """Add a buffer that the next instruction writes."""
        self._add(Buffer(name, shape, values))

    def _add(self, buffer: Buffer) -> None:
        if not buffer.name or buffer.name in self.buffers or buffer.name in self.graph.constants:
            raise AxonnxError(
                f"{self.where}: two tensors of its step have the name {buffer.name!r}. Export the network again"
            )
        self.buffers[buffer.name] = buffer
        self.elements += math.prod(buffer.shape)
        if self.elements > MOST_ELEMENTS:
            raise AxonnxError(
                f"{self.where}: {buffer.name!r} has shape {list(buffer.shape)}, and with it a step holds "
                f"{self.elements} numbers for each sample; expected at most {MOST_ELEMENTS}. Export a smaller network"
            )

    def emit(self, instruction: Instruction) -> None:
        """Add an instruction."""
        self.instructions.append(instruction)

    def fault(self, node: onnx.NodeProto, text: str) -> AxonnxError:
        """Return an error that names the node."""
        return AxonnxError(f"{self.where}: node {node.name!r} ({node.op_type}): {text}")

    def attributes(self, node: onnx.NodeProto, usual: Mapping[str, object]) -> dict[str, object]:
        """Return a node's attributes, with the defaults ``usual``; refuse all others."""
        found = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        if len(found) != len(node.attribute):
            raise self.fault(node, "an attribute is given twice")
        if found.keys() - usual.keys():
            raise self.fault(node, f"has the unknown attribute {sorted(found.keys() - usual.keys())[0]!r}")
        return {**usual, **found}

    def _entering(self) -> None:
        entering = self.graph.input
        stated = self.file.contract.input
        self._add(Buffer(entering.name, entering.shape, graded(stated.x_max, stated.shift), "input"))
        for slot in self.graph.states:
            values = SPIKES if slot.name.startswith(SPIKES_OF) else SILENCE if slot.name.startswith(DELAYED) else REAL
            self._add(Buffer(slot.name, slot.shape, values, "state"))
        for slot in self.graph.noises:
            self._add(Buffer(slot.name, slot.shape, REAL, "noise"))

    def _rule(self, node: onnx.NodeProto) -> Rule:
        ours = node.domain == DOMAIN
        if node.op_type not in (SPIKE_RULES if ours else STANDARD_RULES):
            known = ", ".join(sorted((*STANDARD_RULES, *SPIKE_RULES)))
            raise self.fault(node, f"this operator is not allowed in a step; allowed are {known}")
        if ours:
            op, rule = OPS[node.op_type], SPIKE_RULES[node.op_type]
            fewest, most, results = len(op.inputs), len(op.inputs), len(op.outputs)
        else:
            fewest, most, rule = STANDARD_RULES[node.op_type]
            results = 1
        if not fewest <= len(node.input) <= most or len(node.output) != results:
            raise self.fault(
                node,
                f"has {len(node.input)} operands and {len(node.output)} results; expected {fewest} … {most} and "
                f"{results}",
            )
        return rule

    def _after(self, slot: Slot) -> str:
        name = self.resolve(NEXT + slot.name)
        if name not in self.buffers:
            raise AxonnxError(
                f"{self.where}: nothing in its step computes {NEXT + slot.name!r}. Export the network again"
            )
        left = self.buffers[name]
        if slot.name.startswith(DELAYED):
            self._delayed(slot, left.values)
        spikes = self.buffers[slot.name].values == SPIKES
        if self.integers_only and not spikes:  # a state from elsewhere must keep to the certificate
            self.buffers[slot.name] = replace(self.buffers[slot.name], values=left.values)
        if left.shape != slot.shape or (spikes and left.values != SPIKES):
            raise AxonnxError(
                f"{self.where}: the state {slot.name!r} is {self.buffers[slot.name].values} {list(slot.shape)} before "
                f"the step and {left.values} {list(left.shape)} after it; expected the same. Export the network again"
            )
        return name

    def _delayed(self, slot: Slot, kept: Values) -> None:
        """Set the values of a delay line to those it keeps, after a check of its reader.

        The line begins as silence, so its only reader must be the Concat with the arriving frames.
        """
        for instruction in self.instructions:
            if slot.name in instruction.reads:
                read = self.buffers[instruction.writes[0]].values
                if getattr(instruction, "kind", "") != "Concat" or joined([read, kept]) != read:
                    raise AxonnxError(
                        f"{self.where}: node {instruction.name!r} ({instruction.op}) reads {slot.name!r}, which holds "
                        f"{kept}; expected a Concat of the delay line with the arriving frames. Export the network "
                        f"again"
                    )
        self.buffers[slot.name] = replace(self.buffers[slot.name], values=kept)

    def _check_results(self, logits: tuple[str, ...]) -> None:
        contract = self.file.contract
        results = logits or self.graph.totals
        shapes = {self.buffers[name].shape for name in results if name in self.buffers}
        if len(results) != contract.collapse.members or shapes != {(len(contract.classes),)}:
            raise AxonnxError(
                f"{self.where}: its contract states {contract.collapse.members} × {len(contract.classes)} logits, but "
                f"the graph has {len(results)} of shape {sorted(shapes)}. Export the network again"
            )

    def _check_once(self, what: str, names: list[str]) -> None:
        """Check that names are unique, because spikes are counted by layer and operations by node."""
        twice = [name for name, number in Counter(names).items() if number > 1 or not name]
        if twice:
            raise AxonnxError(f"{self.where}: {what} need unique names; {twice[0]!r} is missing or used twice")

    def _check_rest(self, nodes: list[onnx.NodeProto], program: Program) -> None:
        """Check that the remaining nodes are the clock, or traces of layers."""
        sources = trace_sources(program)
        for node in nodes:
            name = node.output[0] if len(node.output) == 1 else ""
            if name in self.graph.outside or (name == NEXT + CLOCK and self.graph.clocked):
                continue
            traced = node.op_type == "Identity" and not node.domain and name.startswith((TRACE, NOW_TRACE))
            if not traced or sources.get(trace_key(name)) != self.resolve(node.input[0]):
                raise self.fault(node, "its result is not used. Export the network again")

    def _check_traces(self, nodes: list[onnx.NodeProto], program: Program) -> None:
        """Check the traces among the nodes that states and logits need."""
        sources = trace_sources(program)
        for node in nodes:
            for name in node.output:
                if name.startswith((TRACE, NOW_TRACE)) and sources.get(trace_key(name)) != self.resolve(name):
                    raise self.fault(
                        node, f"its output {name!r} is not the trace of that layer. Export the network again"
                    )

    def _layer(self, neurons: Instruction) -> Layer:
        assert isinstance(neurons, Neurons)
        spikes = neurons.writes[-1]
        membrane = neurons.writes[0] if len(neurons.writes) > 1 else None
        return Layer(neurons.layer, neurons.spike_op, self.buffers[spikes].shape, spikes, membrane)

    def _steps_known(self) -> int | None:
        rows = [len(self.constants[row.table]) for row in self.instructions if isinstance(row, StepRow)]
        rows += [] if self.most_steps is None else [self.most_steps]
        known, window = min(rows, default=None), self.file.contract.input.steps
        if self.most_steps is not None and window is not None and self.most_steps < window:
            raise AxonnxError(
                f"{self.where}: the sum of its read-out is exact over {self.most_steps} time steps, and a window has "
                f"{window}. Export it with fewer bits, or a shorter window"
            )
        return known


def _fires(instruction: Instruction) -> bool:
    return isinstance(instruction, Neurons) and OPS[instruction.spike_op].spikes is not None
