"""Write a network in integers as Verilog: the design, its memories, a simulation, and a top for an iCE40 UP5K."""

from __future__ import annotations

import json
from importlib import resources

from axonnx.runtime.codegen.verilog.core import Core
from axonnx.runtime.codegen.verilog.parts import FIRING, READOUT, parts_of
from axonnx.runtime.codegen.verilog.stream import network_text, top_text
from axonnx.runtime.deploy.origin import RECORD, Origin
from axonnx.runtime.format.contract import results_of
from axonnx.runtime.program.instructions import Neurons, Program

LANES = 16
UP5K_LANES = 4  # more do not fit beside a leak that is no shift
README = """\
# {name} in Verilog

A {kind} network for {results}, with the same bits as its ONNX file. `network.v` takes events with time stamps and says
what it decided at the end of each window; `core.v` is the network itself, `*.hex` are its memories: {weights:,} bits of
weights, {membranes:,} bits of membranes. Nothing saturates: the widths are those that the file certifies.

`make` builds a simulation with Verilator, `./network recording.csv` (columns t,x,y,p) prints a decision, its logits and
the clock cycles that it took. `make report` places the design on an iCE40 UP5K with yosys and nextpnr and prints its
cells and its clock; `top.v` wraps it for the few pins of that part, and loads the weights into its large memories,
which are empty at power-up. `make gates` builds the simulation from the gates that yosys makes of the design.

"""


def verilog_files(program: Program, origin: Origin) -> dict[str, str]:
    """Return the text of each file by name; the weights are contents of a memory, as most parts have them."""
    return _files(program, origin, LANES, loadable=False)


def up5k_files(program: Program, origin: Origin) -> dict[str, str]:
    """Return the files for an iCE40 UP5K, whose large memories are loaded after power-up."""
    return _files(program, origin, UP5K_LANES, loadable=True)


def _files(program: Program, origin: Origin, lanes: int, loadable: bool) -> dict[str, str]:
    parts = parts_of(program, lanes)
    core = Core(parts, loadable)
    contract = program.contract
    readme = README.format(
        name=program.name,
        kind=contract.kind,
        results=results_of(contract),
        weights=parts.weight_rows * parts.lanes * parts.weight_bits,
        membranes=parts.rows * parts.lanes * parts.width,
    )
    return {
        "core.v": core.text(),
        "network.v": network_text(core),
        "top.v": top_text(core),
        "constants.hex": core.constants_hex(),
        "weights.hex": core.weights_hex(),
        "facts.h": _facts(core),
        "simulate.cpp": _file("simulate.cpp"),
        "Makefile": _file("verilog.mk"),
        "README.md": readme + origin.sentence(program),
        RECORD: origin.record(program),
    }


def _facts(core: Core) -> str:
    """Return what the simulation knows of the network."""
    program, layers = core.program, core.parts.layers
    (readout,) = [i for i in program.instructions if isinstance(i, Neurons) and i.spike_op == READOUT]
    numbers = {
        "LANES": core.lanes,
        "LAYERS": len(layers),
        "CLASSES": core.classes,
        "STEPS": core.steps,
        "MEMBRANE_BITS": core.parts.width,
        "TOTAL_BITS": core.total_bits,
        "UNIT": repr(float(program.constants[readout.parameters["unit"]].ravel()[0])),
    }
    lines = [f"#define {name} {value}" for name, value in numbers.items()]
    lines += ["#define LOADABLE"] if core.loadable else []
    lines.append("static const struct { int channels, pixels, groups, fires; } layers[LAYERS] = {")
    lines += [
        f"    {{{layer.shape[0]}, {layer.shape[1] * layer.shape[2]}, {layer.groups}, {int(layer.op == FIRING)}}},"
        for layer in layers
    ]
    labels = ", ".join(json.dumps(name) for name in program.contract.classes)
    return "\n".join([*lines, "};", f"static const char *const labels[CLASSES] = {{{labels}}};"]) + "\n"


def _file(name: str) -> str:
    return resources.files("axonnx.runtime.deploy").joinpath("files", name).read_text("utf-8")
