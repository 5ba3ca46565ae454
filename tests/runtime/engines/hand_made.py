"""Programs of a few instructions made by hand, to hold one kernel at a time to its numpy twin."""

import numpy as np

from axonnx.runtime.format.contract import CollapseContract, Contract, InputContract
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.format.values import REAL, SPIKES, Values, graded
from axonnx.runtime.program.instructions import Buffer, Instruction, Layer, Neurons, Program


def contract(shape: tuple[int, ...], classes: int, spiking: bool, largest: int = 3) -> Contract:
    return Contract(
        kind="spiking" if spiking else "binary",
        form="step",
        classes=tuple(str(number) for number in range(classes)),
        input=InputContract(name="x", shape=shape, steps=None, largest=largest),
        collapse=CollapseContract(mode="mfa"),
        layers=(),
        synapses=(),
        logits="total / steps" if spiking else "direct",
    )


def binary_program(
    shape: tuple[int, ...],
    values: Values,
    instructions: list[Instruction],
    shapes: dict[str, tuple[int, ...]],
    constants: dict[str, np.ndarray],
    kinds: dict[str, Values] | None = None,
) -> Program:
    """A binary network whose last instruction writes the logits (flat)."""
    kinds = kinds or {}
    buffers = {"x": Buffer("x", shape, values, "input")}
    buffers |= {name: Buffer(name, size, kinds.get(name, REAL)) for name, size in shapes.items()}
    logits = instructions[-1].writes[0]
    size = buffers[logits].size
    layers = [
        Layer(i.layer, i.op, buffers[i.writes[-1]].shape, i.writes[-1], None)
        for i in instructions
        if isinstance(i, Neurons) and i.spike_op != "LeakySum"
    ]
    return Program(
        name="by hand",
        contract=contract(shape, size, spiking=False),
        input="x",
        states=(),
        noises=(),
        instructions=tuple(instructions),
        buffers=buffers,
        constants=constants,
        after={},
        logits=(logits,),
        totals=(),
        layers=tuple(layers),
        synapses=tuple(i.name for i in instructions if i.op in ("Linear", "Conv")),
    )


def neuron_program(op: str, size: int, parameters: dict[str, np.ndarray], noisy: bool, stateful: bool) -> Program:
    """One layer of neurons whose current is the input itself; its spikes are what it says."""
    fields = (["membrane", *(["variance"] if noisy else []), "spikes"]) if stateful else []
    buffers = {"x": Buffer("x", (size,), REAL, "input"), "arriving": Buffer("arriving", (size,), REAL, "noise")}
    buffers["noise"] = Buffer("noise", (size,), REAL, "noise")
    operands = {"current": "x"}
    if noisy:
        operands |= {"arriving_variance" if stateful else "variance": "arriving", "noise": "noise"}
    operands |= {field: field for field in fields}
    for field in fields:
        buffers[field] = Buffer(field, (size,), SPIKES if field == "spikes" else REAL, "state")
        buffers[f"next/{field}"] = Buffer(f"next/{field}", (size,), SPIKES if field == "spikes" else REAL)
    if not stateful:
        buffers["next/spikes"] = Buffer("next/spikes", (size,), SPIKES)
    writes = tuple(f"next/{field}" for field in fields) or ("next/spikes",)
    names = {key: key for key in parameters}
    layer = Neurons("layer", tuple(operands.values()), writes, op, "layer", operands, names)
    return Program(
        name="by hand",
        contract=contract((size,), size, spiking=stateful, largest=2**16),
        input="x",
        states=tuple(fields),
        noises=("arriving", "noise") if noisy else (),
        instructions=(layer,),
        buffers=buffers,
        constants=parameters,
        after={field: f"next/{field}" for field in fields},
        logits=() if stateful else ("next/spikes",),
        totals=("membrane",) if stateful else (),
        layers=(Layer("layer", op, (size,), "next/spikes", "next/membrane" if stateful else None),),
    )


def general_program(op, shape, parameters):
    """One layer whose current is the input, behind synapses with a time constant; its membrane is the total."""
    fields = [name for name in OPS[op].inputs if name not in OPS[op].parameters and name != "current"]
    buffers = {"x": Buffer("x", shape, REAL, "input")}
    for field in ("synaptic", *fields):
        values = SPIKES if field == "spikes" else REAL
        buffers[field], buffers[f"next/{field}"] = (
            Buffer(field, shape, values, "state"),
            Buffer(f"next/{field}", shape, values),
        )
    filtered = Neurons(
        "syn", ("x", "synaptic"), ("next/synaptic",), "LeakyCurrent", "syn", {"current": "x", "synaptic": "synaptic"},
        {"synaptic_decay": "alpha"},
    )  # fmt: skip
    operands = {"current": "next/synaptic", **{field: field for field in fields}}
    writes = tuple(f"next/{name.removeprefix('next_')}" for name in OPS[op].outputs)
    layer = Neurons(
        "layer", tuple(operands.values()), writes, op, "layer", operands, {name: name for name in parameters}
    )
    size = int(np.prod(shape))
    return Program(
        name="by hand",
        contract=contract(shape, size, spiking=True, largest=2**16),
        input="x",
        states=("synaptic", *fields),
        noises=(),
        instructions=(filtered, layer),
        buffers=buffers,
        constants={**parameters, "alpha": np.float32(0.75).reshape(())},
        after={field: f"next/{field}" for field in ("synaptic", *fields)},
        logits=(),
        totals=("membrane",),
        layers=(Layer("layer", op, shape, "next/spikes", "next/membrane"),),
    )


def integer_program(op, size, parameters):
    """One layer of integer neurons whose current is the input itself; its first state is the total."""
    states, wide = OPS[op].states, graded(2.0**24 - 1, 0)
    values = {name: SPIKES if name == "spikes" else wide for name in states}
    buffers = {"x": Buffer("x", (size,), graded(2**16, 0), "input")}
    buffers |= {name: Buffer(name, (size,), values[name], "state") for name in states}
    buffers |= {f"next/{name}": Buffer(f"next/{name}", (size,), values[name]) for name in states}
    operands = {"current": "x", **{name: name for name in states}}
    writes = tuple(f"next/{name.removeprefix('next_')}" for name in OPS[op].outputs)
    layer = Neurons("layer", tuple(operands.values()), writes, op, "layer", operands, {key: key for key in parameters})
    fires = (Layer("layer", op, (size,), "next/spikes", "next/membrane"),) if OPS[op].spikes else ()
    return Program(
        name="by hand",
        contract=contract((size,), size, spiking=True, largest=2**16),
        input="x",
        states=states,
        noises=(),
        instructions=(layer,),
        buffers=buffers,
        constants=parameters,
        after={name: f"next/{name}" for name in states},
        logits=(),
        totals=states[:1],
        layers=fires,
    )
