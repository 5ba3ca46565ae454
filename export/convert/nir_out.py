"""A file of ours as a NIR graph, for its users and chips; what NIR cannot say is refused by name.

    τ = Δt/(1 − β), r = 1, v_threshold = θ (1 − β)            LIF: a step's gain is Δt/τ = 1 − β
    τ_syn = Δt/(1 − α), w_in = τ_syn/Δt, r = τ_mem/Δt          CubaLIF: its gain is 1

NIR fires where v > θ, so thresholds are the float32 below ours: the same decision. Time constants are written in
double precision, from which a reader gets back every β to the bit.

NIR's spikes set the membrane to a value. Neurons that lose their threshold one step later are written as snnTorch
writes its own: LIF with a gain of 1, v_threshold = θ, v_reset = 0. Such a file would mean something else without a
word, so the metadata of each such node state what a spike does (``reset``) and whether a tie fires (``tie``).
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.export.convert.nir_graph import nir_package
from axonnx.export.convert.nir_neurons import NIRS_OWN, Assumed
from axonnx.runtime.format.names import DELAYED, SPIKES
from axonnx.runtime.format.opset import READOUTS
from axonnx.runtime.model import load
from axonnx.runtime.program.instructions import (
    Arithmetic,
    AveragePool,
    Conv,
    Instruction,
    Linear,
    Move,
    Neurons,
    PoolPairs,
    Program,
)

Doubles = NDArray[np.float64]
INPUT, OUTPUT = "input", "output"


def write_nir(model: str | Path, output: str | Path, dt: float = 1e-4) -> int:
    """Write the network of an exported file as a NIR graph with time steps of ``dt`` seconds; its size in bytes."""
    if not 0.0 < dt < float("inf"):
        raise AxonnxError(f"the time step is {dt}; expected seconds, e.g. 1e-4")
    program = load(model, "numpy").engine.program
    written = io.BytesIO()
    nir_package().write(written, Writing(program, Path(model).name, dt).graph())
    with replacing(output) as temporary:
        temporary.write_bytes(written.getvalue())
    return len(written.getvalue())


class Writing:
    """Goes through a program's instructions and makes a node of each."""

    def __init__(self, program: Program, where: str, dt: float) -> None:
        self.program, self.where, self.dt, self.nir = program, where, dt, nir_package()
        self.nodes: dict[str, Any] = {}
        self.edges: list[tuple[str, str]] = []
        self.made: dict[str, tuple[str, ...]] = {}  # buffer -> nodes whose sum it is
        self.filters: dict[str, Doubles] = {}  # buffer of a synaptic current -> its decay
        self.lines: dict[str, str] = {}  # buffer of a delay line with what arrives at it -> what arrives
        self.taps: dict[str, list[tuple[str, int]]] = {}  # buffer -> what it is made of, each so many steps late
        self.resets: dict[Assumed, str] = {}  # how neurons reset -> the first layer that does so

    def graph(self) -> Any:
        """Return the whole graph."""
        contract = self.program.contract
        if contract.kind != "spiking" or contract.collapse.members != 1 or contract.collapse.mode == "stochastic":
            raise self._refused("a spiking network with one set of weights and no noise is what NIR has a form for")
        shape = contract.input.shape
        flat = shape[0] == shape[1] == 1
        self.nodes[INPUT] = self.nir.Input(np.array(shape[2:] if flat else shape))
        self.made[contract.input.name] = (INPUT,)
        for instruction in self.program.instructions:
            self._instruction(instruction)
        if len(self.resets) > 1:
            first, other = list(self.resets.values())[:2]
            raise self._refused(f"its spikes act otherwise than those of {first!r}, and readers know one reset", other)
        return self.nir.NIRGraph(self.nodes, self.edges, type_check=False)

    def _is_temperature(self, i: Arithmetic) -> bool:
        """Whether this scales what an imported network's read-out hears."""
        heard = [other for other in self.program.instructions if i.writes[0] in other.reads]
        last = all(isinstance(other, Neurons) and other.spike_op in READOUTS for other in heard)
        return self.program.contract.decision is not None and last and i.reads[0] in self.made

    def _refused(self, why: str, layer: str = "") -> AxonnxError:
        place = f"{self.where}: layer {layer!r}" if layer else self.where
        return AxonnxError(f"{place} has no form in NIR: {why}")

    def _instruction(self, i: Instruction) -> None:
        if isinstance(i, Linear | Conv) and i.reads[0] in self.taps:
            self._late_synapse(i)
        elif isinstance(i, Linear | Conv):
            self._synapse(i)
        elif isinstance(i, Move) and self._delays(i):
            pass
        elif isinstance(i, Neurons):
            self._neurons(i)
        elif isinstance(i, Arithmetic) and i.kind == "Add" and all(name in self.made for name in i.reads):
            self.made[i.writes[0]] = tuple(node for name in i.reads for node in self.made[name])
        elif isinstance(i, Move) and i.kind == "Reshape" and self._shape(i.writes[0]) == self._shape(i.reads[0]):
            self.made[i.writes[0]] = self.made[i.reads[0]]
        elif isinstance(i, Arithmetic) and i.kind == "Mul" and self._is_sum(i):
            (pool,) = self.made[i.reads[0]]
            side = self.nodes[pool].kernel_size
            self.nodes[pool] = self.nir.SumPool2d(side, side, np.array([0, 0]))
            self.made[i.writes[0]] = (pool,)
        elif isinstance(i, Arithmetic) and i.kind == "Mul" and self._is_temperature(i):
            self.made[i.writes[0]] = self.made[i.reads[0]]  # NIR has no probabilities; decisions stay
        elif isinstance(i, Move) and i.kind == "Reshape" and len(self._shape(i.writes[0])) == 1:
            self._flatten(i)
        elif isinstance(i, AveragePool | PoolPairs):
            side = np.array(i.window if isinstance(i, AveragePool) else (2, 2))
            self._node(i.name, self.nir.AvgPool2d(side, side, np.array([0, 0])), i.reads[0], i.writes[0])
        else:
            raise self._refused(f"{i.op} ({i.details()}) is no node of NIR", i.name)

    def _delays(self, i: Move) -> bool:
        """Whether this is part of a delay line: joined with what arrives, then cut, then put side by side."""
        first, out = i.reads[0], i.writes[0]
        if i.kind == "Concat" and len(i.reads) == 2 and i.reads[1].startswith(DELAYED):
            self.lines[out] = first
        elif i.kind == "Slice" and first in self.lines:
            width, cut = self._shape(self.lines[first])[0], i.how[0]
            self.taps[out] = [(self.lines[first], d) for d in range(cut.start // width, min(cut.stop // width, 2**20))]
        elif i.kind == "Concat" and all(name in self.taps for name in i.reads):
            self.taps[out] = [tap for name in i.reads for tap in self.taps[name]]
        elif first in self.taps or first in self.lines:
            raise self._refused(
                "what a delay line gives is moved before weights hear it; do so before the delays", i.name
            )
        else:
            return False
        return True

    def _late_synapse(self, i: Linear | Conv) -> None:
        """Weights for each delay, with a Delay before them; the bias stands in the first, and currents add up."""
        taps, weight = self.taps[i.reads[0]], self.program.constants[i.weight]
        if isinstance(i, Conv) and i.group != 1:
            raise self._refused("delays before a convolution in groups", i.name)
        bias = np.zeros(len(weight), np.float32) if i.bias is None else self.program.constants[i.bias]
        nodes: list[str] = []
        for number, ((source, late), part) in enumerate(zip(taps, np.split(weight, len(taps), 1), strict=True)):
            name = self._named(i.name) + (f"_{number}" if len(taps) > 1 else "")
            heard = self.made[source]
            if late:
                line = f"{name}_delay"
                self.nodes[line] = self.nir.Delay(np.full(self._shape(source), late * self.dt))
                self.edges += [(before, line) for before in heard]
                heard = (line,)
            self.nodes[name] = self._weights(i, np.ascontiguousarray(part), bias if number == 0 else 0 * bias, source)
            self.edges += [(before, name) for before in heard]
            nodes.append(name)
        self.made[i.writes[0]] = tuple(nodes)

    def _weights(self, i: Linear | Conv, weight: NDArray[np.float32], bias: NDArray[np.float32], read: str) -> Any:
        if not isinstance(i, Conv):
            return self.nir.Affine(weight, bias)
        if i.pads[:2] != i.pads[2:]:
            raise self._refused(f"padding of {i.pads} differs from side to side", i.name)
        return self.nir.Conv2d(self._shape(read)[1:], weight, i.strides, i.pads[:2], i.dilations, i.group, bias)

    def _is_sum(self, i: Arithmetic) -> bool:
        """Whether this makes a mean over windows their sum."""
        nodes = [self.nodes[name] for name in self.made.get(i.reads[0], ())]
        number = self.program.constants.get(i.reads[1], np.zeros(0))
        pooled = len(nodes) == 1 and type(nodes[0]).__name__ == "AvgPool2d" and number.size == 1
        return pooled and float(number) == float(np.prod(nodes[0].kernel_size))

    def _flatten(self, i: Move) -> None:
        before = self._shape(i.reads[0])
        if before == (1, 1, *self._shape(i.writes[0])) and self.made[i.reads[0]] == (INPUT,):
            self.made[i.writes[0]] = (INPUT,)  # a row of numbers is written as one
            return
        self._node(i.name, self.nir.Flatten({"input": np.array(before)}, 0), i.reads[0], i.writes[0])

    def _synapse(self, i: Linear | Conv) -> None:
        weight, read = self.program.constants[i.weight], i.reads[0]
        bias = np.zeros(len(weight), np.float32) if i.bias is None else self.program.constants[i.bias]
        made = self._weights(i, weight, bias, read)
        if read.startswith(SPIKES):  # neurons that hear themselves, one step later
            name = self._named(i.name)
            self.nodes[name] = made
            self.edges.append((self._named(read.removeprefix(SPIKES)), name))
            self.made[i.writes[0]] = (name,)
        else:
            self._node(i.name, made, read, i.writes[0])

    def _neurons(self, i: Neurons) -> None:
        p = {key: self.program.constants[name].astype(np.float64) for key, name in i.parameters.items()}
        current = i.operands["current"]
        if i.spike_op == "LeakyCurrent":
            self._filtered(i, p["synaptic_decay"], current)
        elif i.spike_op in READOUTS and "decay" in p:
            self._readout(i, p["decay"], current)
        elif i.spike_op in ("GeneralLIF", "LIFToZero", "LIF"):
            spikes = next(name for name in i.writes if SPIKES in name)
            if i.spike_op == "LIF":
                p |= {"zeroed": np.zeros(()), "late_taken": p["threshold"]}
            self._node(i.layer, self._firing(i, p, current), current, spikes)
        else:
            raise self._refused(f"{i.spike_op}: its neurons are leaky integrate-and-fire neurons", i.layer)

    def _filtered(self, i: Neurons, alpha: Doubles, current: str) -> None:
        """Keep a leaky current for the neurons that hear it; if anything else hears it, make it a node of its own."""
        self.filters[i.writes[0]] = alpha
        self.made[i.writes[0]] = self.made[current]
        heard = [other for other in self.program.instructions if i.writes[0] in other.reads]
        if not all(isinstance(other, Neurons) and other.spike_op == "GeneralLIF" for other in heard):
            del self.filters[i.writes[0]]
            self._integrator(i.layer, alpha, current, i.writes[0])

    def _readout(self, i: Neurons, beta: Doubles, current: str) -> None:
        """Add the read-out as the output; whoever reads the graph takes its mean, last or largest value over time."""
        if np.any(beta != 0):
            self._integrator(i.layer, beta, current, i.writes[0])
            current = i.writes[0]
        self.nodes[OUTPUT] = self.nir.Output(np.array(self._shape(i.writes[0])))
        self.edges += [(node, OUTPUT) for node in self.made[current]]

    def _integrator(self, layer: str, beta: Doubles, current: str, written: str) -> None:
        shape = self._shape(written)
        beta = np.broadcast_to(beta, shape)
        if np.all(beta == 1):
            self._node(layer, self.nir.I(r=np.ones(shape)), current, written)
            return
        self._refuse_without_leak(beta, layer)
        r = 1.0 / (1.0 - beta)
        self._node(layer, self.nir.LI(tau=self.dt * r, r=r, v_leak=np.zeros(shape)), current, written)

    def _firing(self, i: Neurons, p: dict[str, Doubles], current: str) -> Any:
        shape = self._shape(next(name for name in i.writes if SPIKES in name))
        given = {"zeroed": np.ones(()), "taken": np.zeros(()), "late_zeroed": np.zeros(()), "late_taken": np.zeros(())}
        p = {key: np.broadcast_to(value, shape) for key, value in {**given, **p}.items()}
        below = np.nextafter(p["threshold"].astype(np.float32), np.float32(-np.inf)).astype(np.float64)
        beta, zeros = p["decay"], np.zeros(shape)
        alpha = self.filters.get(current)
        if np.all(beta == 0) and alpha is None and not np.any(p["late_zeroed"]) and not np.any(p["late_taken"]):
            return self.nir.Threshold(below)  # nothing is left of the membrane, whatever a spike does to it
        if np.any(p["late_taken"] != 0) and not np.any(p["zeroed"] + p["taken"] + p["late_zeroed"]) and alpha is None:
            return self._subtracting(p, below, i.layer)
        self.resets.setdefault(NIRS_OWN, i.layer)
        if np.any(p["late_zeroed"] != 0) or np.any(p["late_taken"] != 0) or np.any(p["zeroed"] != 1):
            raise self._refused("its spikes do not set the membrane to a value in the same step", i.layer)
        if np.all(beta == 1) and alpha is None:
            return self.nir.IF(r=np.ones(shape), v_threshold=below, v_reset=-p["taken"] + 0.0)
        self._refuse_without_leak(beta, i.layer)
        share = 1.0 - beta
        if alpha is None:
            return self.nir.LIF(
                tau=self.dt / share,
                r=np.ones(shape),
                v_leak=zeros,
                v_threshold=below * share,
                v_reset=-p["taken"] * share + 0.0,
            )
        alpha = np.broadcast_to(alpha, shape)
        self._refuse_without_leak(alpha, i.layer)
        of_synapse = 1.0 / (1.0 - alpha)
        return self.nir.CubaLIF(
            tau_syn=self.dt * of_synapse,
            tau_mem=self.dt / share,
            r=1.0 / share,
            v_leak=zeros,
            v_threshold=below,
            v_reset=-p["taken"] + 0.0,
            w_in=of_synapse,
        )

    def _subtracting(self, p: dict[str, Doubles], below: Doubles, layer: str) -> Any:
        """Neurons from which a spike takes an amount one step later, with that statement in their metadata."""
        whole = np.array_equal(p["late_taken"], p["threshold"])
        reset = Assumed("late-subtract", "fires" if whole else "silent")
        self.resets.setdefault(reset, layer)
        level, decay = p["threshold"] if whole else below, p["decay"]
        levels = {"v_threshold": level, "v_reset": level - p["late_taken"]}
        stated = {"reset": reset.reset, "tie": reset.tie}
        if np.all(decay == 1):
            return self.nir.IF(r=np.ones(decay.shape), **levels, metadata=stated)
        self._refuse_without_leak(decay, layer)
        gain = 1.0 / (1.0 - decay)
        return self.nir.LIF(tau=self.dt * gain, r=gain, v_leak=np.zeros(decay.shape), **levels, metadata=stated)

    def _refuse_without_leak(self, decay: Doubles, layer: str) -> None:
        if np.any(decay == 1):
            raise self._refused(
                "a decay of 1 has no time constant, and NIR has it only for whole layers (IF, I)", layer
            )

    def _node(self, name: str, node: Any, read: str, written: str) -> None:
        own = self._named(name)
        self.nodes[own] = node
        self.edges += [(before, own) for before in self.made[read]]
        self.made[written] = (own,)

    def _named(self, name: str) -> str:
        return name.removeprefix("layers.").replace("/", "_").replace(".", "_")

    def _shape(self, buffer: str) -> tuple[int, ...]:
        return self.program.buffers[buffer].shape
