"""The whole of it: a header with the contract, the constants, and a source with kernels, one step and what users call.

What is generated is compiled with ``FLAGS``. It asks for no heap and no library: results are those of the numpy
engine, bit for bit, wherever float is IEEE float32 and the compiler neither fuses nor reorders operations.
"""

from __future__ import annotations

import re
import textwrap
from importlib import resources

from axonnx.base.errors import AxonnxError
from axonnx.runtime.code.c.statements import Statements
from axonnx.runtime.code.c.text import comment, doubles, number, string
from axonnx.runtime.engines.normal_table import coefficients
from axonnx.runtime.program.instructions import Program

FLAGS = ("-std=c99", "-O2", "-ffp-contract=off")
ABOUT = """\
/* {name} as C99, with the bits of its ONNX file: a {kind} network for {classes} classes, collapsed by {mode}.

       static network_state n;
       network_init(&n, 0, 0);
       for (int t = 0; t < NETWORK_STEPS; t++) network_step(&n, frames[t]);
       puts(network_labels[network_decision(&n)]);

   Compile with {flags}: a fused multiply-add has other bits. */
"""
GUARD = """\
#if defined(__FAST_MATH__)
#error "compile without -ffast-math: results must be rounded as they stand"
#endif
#if FLT_EVAL_METHOD != 0
#error "float operations are not rounded to float here; results would differ"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
"""


def c_source(program: Program, name: str = "network", keep_layers: bool = False) -> dict[str, str]:
    """Files by name: ``name.h``, ``name.c`` and ``name_weights.h``; every name in them begins with ``name``.

    ``keep_layers`` keeps spikes and membranes of all layers until the next step; ``name_layers`` says where.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise AxonnxError(f"the name {name!r}; expected lower-case letters, digits and _, with a letter first")
    statements = Statements(program, keep_layers)
    declarations, places, size = statements.declarations()
    at = {buffer: places.get(statements.memory.root(buffer), -1) for buffer in program.buffers}
    source = "\n".join(
        [
            f"/* {comment(program.name)}: see network.h */",
            "#include <float.h>\n#include <math.h> /* INFINITY; nothing of libm is called */\n#include <string.h>\n",
            '#include "network.h"\n#include "network_weights.h"\n',
            GUARD,
            _kernels(program, statements),
            _places(program, at),
            _compute(declarations, statements.step),
            library("network.c"),
            library("decision.c" if program.contract.collapse.members == 1 else "ensemble.c"),
            _labels(program),
            *([_layers(program, at)] if keep_layers else []),
        ]
    )
    header = _header(program, size, keep_layers)
    weights = f"/* {comment(program.name)}: constants */\n" + "\n".join(statements.constants)
    files = {"network.h": header, "network.c": source, "network_weights.h": weights}
    return {_named(file, name): _named(text, name) for file, text in files.items()}


def library(name: str) -> str:
    """A file of C."""
    return resources.files("axonnx.runtime.code.c").joinpath(name).read_text("utf-8")


def _named(text: str, name: str) -> str:
    """Our names in a text under the user's."""
    text = re.sub(r"\bNETWORK_(?=\w)", f"{name.upper()}_", text)
    return re.sub(r"\bnetwork(?=_\w|\.[ch]\b)", name, text)


def _kernels(program: Program, statements: Statements) -> str:
    """What this network needs of the kernels."""
    files = [library("neurons.c"), library("pools.c"), library("geometry.c")]
    synapses = library("synapses.c")
    files += [re.sub(r"\bWEIGHT\b|(?<=_)WEIGHT", kind, synapses) for kind in sorted(statements.weights)]
    files += [doubles("NORMAL", coefficients()) + "\n" + library("noise.c")] if program.noises else []
    chunks = [chunk.strip("\n") for file in files for chunk in file.split("\n\n")]
    needed = _needed("\n".join(statements.step), {chunk: name for chunk in chunks if (name := _defines(chunk))})
    return "\n\n".join(chunk for chunk in chunks if chunk in needed) + "\n"


def _defines(chunk: str) -> str | None:
    """The function, type or table that a part of a file defines."""
    found = re.search(r"^static (?:const |inline )*\w+ (\w+)[(\[]|^} (\w+);", chunk, re.MULTILINE)
    return found and (found[1] or found[2])


def _needed(text: str, chunks: dict[str, str]) -> set[str]:
    """The parts that a text names, and those that they name themselves."""
    found: set[str] = set()
    while more := {chunk for chunk, name in chunks.items() if chunk not in found and re.search(rf"\b{name}\b", text)}:
        found |= more
        text = "\n".join(more)
    return found


def _places(program: Program, at: dict[str, int]) -> str:
    results = ", ".join(str(at[name]) for name in program.logits or program.totals)
    return f"enum {{ INPUT = {at[program.input]} }};\nstatic const int RESULTS[] = {{{results}}};\n"


def _compute(declarations: list[str], step: list[str]) -> str:
    body = "\n".join(line for statement in [*declarations, *step] for line in _wrapped(statement))
    return f"/* One time step. */\nstatic void compute(network_state *n)\n{{\n{body}\n}}\n"


def _wrapped(statement: str) -> list[str]:
    """A statement on lines of some 120 characters."""
    begin = " " * (4 + len(statement) - len(statement.lstrip()))
    words = statement.split()
    return textwrap.wrap(
        " ".join(words), 118, initial_indent=begin, subsequent_indent=begin + "    ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _labels(program: Program) -> str:
    labels = "".join(f"    {string(label)},\n" for label in program.contract.classes)
    return f"const char *const network_labels[NETWORK_CLASSES] = {{\n{labels}}};\n"


def _layers(program: Program, at: dict[str, int]) -> str:
    places = [(layer, at[layer.spikes], at[layer.membrane] if layer.membrane else -1) for layer in program.layers]
    rows = [f"    {{{string(layer.name)}, {layer.size}, {o}, {h}}},\n" for layer, o, h in places]
    return f"const network_layer network_layers[] = {{\n{''.join(rows)}    {{NULL, 0, -1, -1}},\n}};\n"


def _header(program: Program, size: int, keep_layers: bool) -> str:
    contract = program.contract
    about = ABOUT.format(
        name=comment(program.name),
        kind=contract.kind,
        classes=len(contract.classes),
        mode=contract.collapse.mode,
        flags=" ".join(FLAGS),
    )
    defined = "\n".join(
        f"#define NETWORK_{key} {value}{f' /* {why} */' if why else ''}" for key, value, why in _numbers(program, size)
    )
    parts = [about, "#ifndef NETWORK_H\n#define NETWORK_H\n", "#include <stddef.h>\n#include <stdint.h>\n"]
    parts += [f"{defined}\n", library("network.h")]
    if keep_layers:
        parts.append(LAYERS)
    return "\n".join([*parts, "#endif\n"])


LAYERS = """\
typedef struct {
    const char *name;
    int size, spikes, membrane; /* where they begin in memory; -1: no membrane is kept */
} network_layer;
extern const network_layer network_layers[]; /* the last has no name */
"""


def _numbers(program: Program, size: int) -> list[tuple[str, object, str]]:
    """The contract in numbers."""
    contract, given = program.contract, program.contract.input
    found: list[tuple[str, object, str]] = [
        ("MEMORY", size, "floats"),
        ("INPUTS", program.buffers[program.input].size, " x ".join(map(str, given.shape))),
        ("CLASSES", len(contract.classes), ""),
        ("MEMBERS", contract.collapse.members, "of the ensemble"),
        ("SPIKING", int(contract.kind == "spiking"), ""),
        ("STEPS", given.steps or 1, "time steps of one window"),
        ("STEPS_KNOWN", f"UINT32_C({program.steps_known or 2**32 - 1})", "after so many it must be reset"),
        ("CENTRE", number(given.centre), "the input is (value - centre) * unit"),
        ("UNIT", number(given.unit), ""),
        ("LARGEST", number(given.largest), "of |value - centre|, whole numbers"),
    ]
    binning = given.binning
    if binning is None:
        none = [("TAKES_EVENTS", 0, "frames alone"), ("SENSOR_WIDTH", 1, ""), ("SENSOR_HEIGHT", 1, "")]
        return [*found, *none, ("POLARITIES", 1, ""), ("DOWNSAMPLE", 1, ""), ("MERGED", 1, ""), ("CLIP", "1.0f", "")]
    return [
        *found,
        ("TAKES_EVENTS", 1, ""),
        ("SENSOR_WIDTH", binning.sensor.width, ""),
        ("SENSOR_HEIGHT", binning.sensor.height, ""),
        ("POLARITIES", binning.sensor.polarities, ""),
        ("DOWNSAMPLE", binning.downsample, "pixels a side become one cell"),
        ("MERGED", int(binning.polarity == "merge"), "polarities in one channel"),
        ("CLIP", number(1 if binning.values == "binary" else binning.clip), "the largest count"),
        ("BINS", binning.bins, "of one window"),
        ("BIN_US", f"INT64_C({binning.bin_us})", "microseconds"),
        ("FROM_FIRST", int(binning.origin == "first"), "bin 0 begins at the first event, not at time zero"),
    ]
