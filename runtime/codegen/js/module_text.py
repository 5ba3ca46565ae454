"""Write the whole module: contract, kernels, constants, one time step, and the functions for users."""

from __future__ import annotations

import json
import textwrap
from base64 import b64encode
from importlib import resources

from axonnx.base.errors import AxonnxError
from axonnx.runtime.codegen.expressions import javascript_function
from axonnx.runtime.codegen.js.javascript_statements import Statements, quoted
from axonnx.runtime.format.contract import results_of
from axonnx.runtime.format.network_input import describe_device
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.program.instructions import Neurons, Program
from axonnx.runtime.program.layer_noise import coefficients

MOST_CHARACTERS = 2**28  # in one text; browsers hold twice as many
HEADER = """\
// {name} as JavaScript, with the same bits as its ONNX file: a {kind} network for {results}.
// {takes}
//
//   import {{ create, contract }} from './network.js';
//   const network = create();
//   for (const frame of frames) network.step(frame);   // counts, or the events {{x, y, p}} of one time bin
//   console.log(network.decision().label);
"""


def module_text(program: Program, expected: int | None = None) -> str:
    """Return the text of an ES module; ``expected`` is the sum that its self-test must give, if it has one."""
    text, names = script_text(program), ["create", "contract", "follow"]
    if expected is not None:
        text, names = f"{text}\nconst SELFTEST_SUM = {expected};\n\n{library('selftest.js')}", [*names, "selftest"]
    return f"{text}\nexport {{ {', '.join(names)} }};\n"


def script_text(program: Program) -> str:
    """Return the module without exports, for the body of a function in a page."""
    statements = Statements(program)
    noise = [_normal_table(), library("noise.js")] if program.noises else []
    parts = [_header(program), _contract(program), library("kernels.js"), *_neurons(program), *noise]
    parts += [library("events.js"), "\n".join(statements.constants), _build(program, statements), library("network.js")]
    text = "\n".join(parts)
    if len(text) > MOST_CHARACTERS:
        raise AxonnxError(
            f"{program.name}: its JavaScript has {len(text):,} characters; expected at most {MOST_CHARACTERS:,}. "
            f"Prune the network, or export it with 8-bit weights"
        )
    return text


def library(name: str) -> str:
    """Return a file of kernels."""
    return resources.files("axonnx.runtime.codegen.js").joinpath(name).read_text("utf-8")


def in_page(value: object) -> str:
    """Return JSON that is safe in a script of a page."""
    return json.dumps(value, separators=(", ", ": ")).replace("<", "\\u003c")


def _neurons(program: Program) -> list[str]:
    """Return a function for each neuron operator that the network uses."""
    used = {i.spike_op for i in program.instructions if isinstance(i, Neurons)}
    return [f"{javascript_function(op)}\n" for op in OPS.values() if op.name in used]


def _normal_table() -> str:
    """Return the coefficients of the inverse normal distribution, as float64."""
    text = b64encode(coefficients().astype("<f8").tobytes()).decode()
    return f"const NORMAL = new Float64Array(Uint8Array.from(atob('{text}'), (letter) => letter.charCodeAt(0)).buffer);"


def _header(program: Program) -> str:
    contract = program.contract
    return HEADER.format(
        name=quoted(program.name),
        kind=contract.kind,
        results=results_of(contract),
        takes=describe_device(contract.input),
    )


def _contract(program: Program) -> str:
    """Return the contract without the training details."""
    kept = {"kind", "classes", "input", "collapse", "layers", "tie", "reset_timing", "logits", "accuracy", "measured"}
    kept |= set() if program.contract.units is None else {"units"}
    kept |= set() if program.contract.certainty is None else {"certainty"}
    facts = program.contract.model_dump(mode="json", include=kept)
    known = program.contract.provenance
    facts |= {"file": program.name, "data": known.data, "checkpoint": known.checkpoint}
    limits = f"const UNIT = {program.contract.input.unit!r}, STEPS_KNOWN = {in_page(program.steps_known)};"
    return f"const contract = {in_page(facts)};\n{limits}\n"


def _build(program: Program, statements: Statements) -> str:
    """Return a function that makes the arrays of one network and the function that runs its next step."""
    results = [statements.buffer(name) for name in program.logits or program.totals]
    layers = [
        f"{{ name: {in_page(layer.name)}, shape: {list(layer.shape)}, spikes: {statements.buffer(layer.spikes)}, "
        f"membrane: {'null' if layer.membrane is None else statements.buffer(layer.membrane)} }},"
        for layer in program.layers
    ]
    states = ", ".join(statements.buffer(name) for name in program.states)
    return "\n".join(
        [
            "function build(seed, sample) {",
            _indented(statements.arrays),
            "  return {",
            f"    input: {statements.buffer(program.input)},",
            f"    states: [{states}],",
            f"    results: [{', '.join(results)}],",
            "    layers: [",
            _indented(layers, 3),
            "    ],",
            "    step(step) {",
            _indented(statements.step, 3),
            "    },",
            "  };",
            "}",
            "",
        ]
    )


def _indented(lines: list[str], levels: int = 1) -> str:
    return textwrap.indent("\n".join(lines), "  " * levels)
