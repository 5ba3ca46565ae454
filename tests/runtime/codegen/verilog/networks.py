"""Networks of integer neurons made by hand, from any geometry that a design in Verilog can have."""

import numpy as np

from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.events.arrays import Sensor
from axonnx.runtime.format.contract import CollapseContract, Contract, InputContract, LayerContract
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.format.values import SPIKES, graded
from axonnx.runtime.format.widths import bits_of, largest_membrane
from axonnx.runtime.program.instructions import Arithmetic, Buffer, Conv, Layer, Linear, Move, Neurons, Program


class Maker:
    """Puts layers one behind the other."""

    def __init__(self, sensor, bins=4, bin_us=1000, clip=3, downsample=1, polarity="keep", origin="zero", seed=0):
        self.binning = Binning(
            sensor=Sensor(**sensor), bins=bins, bin_us=bin_us, clip=clip, downsample=downsample, polarity=polarity,
            origin=origin,
        )  # fmt: skip
        self.rng = np.random.default_rng(seed)
        self.shape = self.binning.frame_shape
        self.buffers = {"x": Buffer("x", self.shape, graded(clip, 0), "input")}
        self.last, self.most = "x", clip
        self.instructions, self.constants, self.after, self.layers, self.contracts = [], {}, {}, [], []

    def put(self, instruction, shape, values=None):
        self.instructions.append(instruction)
        for name in instruction.writes:
            self.buffers[name] = Buffer(name, shape, values or graded(2**20, 0))

    def weights(self, name, *shape, most=7, lift=0, zeros=0.5):
        drawn = self.rng.integers(-most, most + 1, shape) * (self.rng.random(shape) > zeros)
        self.constants[name] = (drawn * 2**lift).astype(np.float32)
        return name

    def flatten(self):
        size = int(np.prod(self.buffers[self.last].shape))
        name = f"flat{len(self.instructions)}"
        self.put(Move(name, (self.last,), (name,), "Reshape", (size,)), (size,), self.buffers[self.last].values)
        self.last = name

    def dense(self, size, *, recurrent=False, lift=0, **neuron):
        if len(self.buffers[self.last].shape) != 1:
            self.flatten()
        number = len(self.contracts)
        name, inputs = f"layer{number}", self.buffers[self.last].shape[0]
        weight, bias = self.weights(f"{name}.w", size, inputs, lift=lift), self.weights(f"{name}.b", size, most=9)
        self.put(Linear(f"{name}.sum", (self.last,), (f"{name}.sum",), weight, bias), (size,))
        total = np.abs(self.constants[weight]).sum(1).max() * self.most + np.abs(self.constants[bias]).max()
        current = f"{name}.sum"
        if recurrent:
            own = self.weights(f"{name}.r", size, size)
            self.put(Linear(f"{name}.own", (f"spikes/{name}",), (f"{name}.own",), own, None), (size,))
            self.put(Arithmetic(f"{name}.all", (current, f"{name}.own"), (f"{name}.all",), "Add", True), (size,))
            total, current = total + np.abs(self.constants[own]).sum(1).max(), f"{name}.all"
        self._neurons(name, (size,), current, total, **neuron)

    def conv(self, channels, kernel=3, stride=2, pad=1, dilation=1, **neuron):
        number, (before, *sides) = len(self.contracts), self.buffers[self.last].shape
        name = f"layer{number}"
        weight = self.weights(f"{name}.w", channels, before, kernel, kernel)
        bias = self.weights(f"{name}.b", channels, most=5)
        shape = (channels, *((side + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for side in sides))
        conv = Conv(
            f"{name}.sum", (self.last,), (f"{name}.sum",), weight, bias, (stride,) * 2, (pad,) * 4, (dilation,) * 2, 1
        )
        self.put(conv, shape)
        total = np.abs(self.constants[weight]).sum((1, 2, 3)).max() * self.most + np.abs(self.constants[bias]).max()
        self._neurons(name, shape, f"{name}.sum", total, **neuron)

    def _neurons(self, name, shape, current, total, op="IntegerLIF", each=(), **given):
        plain = {
            "lost": 3, "scale": 16, "round_above": 15, "round_below": 15, "least": 0, "threshold": 12, "zeroed": 0,
            "taken": 0, "late_zeroed": 0, "late_taken": 12, "unit": 0.25, "most": 1,
        } | given  # fmt: skip
        parameters = {}
        for key in OPS[op].parameters:
            parameters[key] = f"{name}.{key}"
            value = plain[key]
            drawn = self.rng.integers(1, value + 1, shape) if key in each else value
            self.constants[f"{name}.{key}"] = np.asarray(drawn, np.float32)
        values = {key: self.constants[place].reshape(-1) for key, place in parameters.items()}
        largest = largest_membrane(OPS[op], graded(float(total), 0), values)
        kinds = {
            "membrane": graded(float(largest), 0),
            "spikes": SPIKES,
            "counts": graded(7, 0),
            "total": graded(2**22, 0),
        }
        states = OPS[op].states
        for state in states:
            self.buffers[f"{state}/{name}"] = Buffer(f"{state}/{name}", shape, kinds[state], "state")
            self.after[f"{state}/{name}"] = f"next/{state}/{name}"
        writes = tuple(f"next/{output.removeprefix('next_')}/{name}" for output in OPS[op].outputs)
        operands = {"current": current, **{state: f"{state}/{name}" for state in states}}
        self.put(Neurons(name, tuple(operands.values()), writes, op, name, operands, parameters), shape)
        for write, state in zip(writes, states, strict=True):
            self.buffers[write] = Buffer(write, shape, kinds[state])
        fires = op != "IntegerSum"
        if fires:
            self.layers.append(Layer(name, op, shape, writes[-1], writes[0]))
            self.last, self.most = writes[-1], 1
        self.contracts.append(LayerContract(name=name, op=op, shape=shape, width=bits_of(largest)))

    def program(self, classes=4, **readout):
        self.dense(classes, op="IntegerSum", **readout)
        total = next(name for name in self.after if name.startswith("total/"))
        contract = Contract(
            kind="spiking", form="step", dynamics="integer", classes=tuple(f"class {n}" for n in range(classes)),
            input=InputContract(
                name="x", shape=self.shape, steps=self.binning.bins, binning=self.binning, largest=self.binning.limit
            ),
            collapse=CollapseContract(mode="mfa"), layers=tuple(self.contracts), synapses=(), logits="total / steps",
        )  # fmt: skip
        return Program(
            name="by hand", contract=contract, input="x", states=tuple(self.after), noises=(),
            instructions=tuple(self.instructions), buffers=self.buffers, constants=self.constants, after=self.after,
            logits=(), totals=(total,), layers=tuple(self.layers),
            synapses=tuple(i.name for i in self.instructions if i.op in ("Linear", "Conv")),
        )  # fmt: skip
