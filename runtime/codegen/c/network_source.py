"""Write a network as C: the native core's sources, the network as constants for them, and the functions for users.

No code is specific to a network: its table, weights and constants are those of the native engine, and so are the
kernels and their speed. The code uses no heap and no library. With ``vectors`` the core is compiled once for each
instruction set; without, it is plain C99 for a microcontroller, and nothing is padded.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.native import FOLDER
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.codegen import rows as kinds
from axonnx.runtime.codegen.c.literals import array, c_type, comment, doubles, elements, number, string
from axonnx.runtime.codegen.layout import LANES
from axonnx.runtime.codegen.order import Order
from axonnx.runtime.codegen.plan import Plan
from axonnx.runtime.codegen.rows import DENSE_FROM, header
from axonnx.runtime.events.arrays import Sensor
from axonnx.runtime.format.contract import Contract, FitContract, results_of
from axonnx.runtime.format.names import MEMBRANE, SPIKES
from axonnx.runtime.format.network_input import describe_device
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.program.instructions import Conv, Neurons, Program
from axonnx.runtime.program.layer_noise import coefficients, layer_key

FLAGS = ("-std=c99", "-O2", "-ffp-contract=off")
PARTS = ("program.h", "lists.h", "neurons.h", "synapses.h", "dense.h", "plain.h", "layers.h", "run.c")
ABOUT = """\
/* {name} as C99, with the same bits as its ONNX file: a {kind} network for {results}, collapsed by {mode}.

       static network_state n;
       network_init(&n, 0, 0);
       for (int t = 0; t < NETWORK_STEPS; t++) network_step(&n, frames[t]);
       {read}

   {takes}

   Compile with {flags}: a fused multiply-add would change bits. */
"""
READ_CLASS = "puts(network_labels[network_decision(&n)]);"
READ_VALUES = "network_logits(&n, values);   -- float values[NETWORK_MEMBERS][NETWORK_CLASSES], in network_units"
NAMES = """\
/* Names of this core; parts that the network does not use are left out. */
#define CORE(name) CORE_OF(network_core, name, ISA)
#define CORE_OF(network, name, isa) CORE_NAMED(network, name, isa)
#define CORE_NAMED(network, name, isa) network##_##name##_##isa
#ifndef ISA
#define ISA base
#endif
#define EXPORT
"""
ALIGNED = """\
#ifdef __GNUC__
#define ALIGNED __attribute__((aligned(64)))
#else
#define ALIGNED
#endif
"""
LAYERS = """\
#ifdef AXONNX_KEEP_LAYERS /* spikes and membranes of all layers are kept until the next step */
typedef struct {
    const char *name;
    int size, places;     /* neurons, and floats of the trace: padded, channels last */
    int spikes, membrane; /* positions in the trace; -1: no membrane is kept */
} network_layer;
extern const network_layer network_layers[]; /* the last entry has no name */
#endif
"""


def c_source(
    program: Program, name: str = "network", vectors: bool = True, expected: int | None = None
) -> dict[str, str]:
    """Return the text of ``name.h``, ``name.c``, ``name_core.c`` and ``name_weights.h`` by file name.

    Args:
        program: The network.
        name: Prefix of its functions and files.
        vectors: Lay it out for vectors of sixteen lanes; otherwise for a microcontroller.
        expected: The sum that the self-test must give. Without it there is no self-test.

    Raises:
        AxonnxError: If the name is not valid in C.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise AxonnxError(
            f"{name!r} cannot be a prefix; expected lower-case letters, digits and _, beginning with a letter"
        )
    units = None if vectors else whole_units(program)
    if units is not None:  # then the sum of a read-out counts in its unit, and logits are multiplied with it
        ones = {name: np.ones_like(program.constants[name]) for name in _units_in(program)}
        program = replace(program, constants={**program.constants, **ones})
    plan = Plan(program, LANES if vectors else 1, dense=vectors)
    order = Order(plan, slots=1)
    files = {
        "network.h": _header(plan, order, units is not None),
        "network.c": _source(plan, expected, units),
        "network_core.c": _core(program, plan, vectors, units is not None),
        "network_weights.h": _constants(plan, order, units is not None),
    }
    return {_named(file, name): _named(text, name) for file, text in files.items()}


def whole_units(program: Program) -> list[float] | None:
    """Return the units of the read-outs of a network without fractions, which C computes in integers alone.

    None for others: networks in floats, and those in integers whose inputs, pools or last layer have fractions.
    """
    if program.contract.dynamics != "integer" or not program.totals:
        return None
    sums = {*program.totals, *(program.after[name] for name in program.totals)}
    buffers = [buffer.values for name, buffer in program.buffers.items() if name not in sums]
    if not all(values.dyadic and values.bits == 0 for values in buffers):
        return None
    return [float(program.constants[name].ravel()[0]) for name in _units_in(program)]


def _units_in(program: Program) -> list[str]:
    """Return the constants that are units of read-outs, in the order of the members."""
    nodes = [i for i in program.instructions if isinstance(i, Neurons) and "unit" in i.parameters]
    places = {node.operands["total"]: node.parameters["unit"] for node in nodes}
    return [places[name] for name in program.totals]


def state_bytes(text: str) -> int:
    """Return the size of ``network_state`` on a 32-bit machine, computed from the header's numbers."""
    sizes = {key: int(value) for key, value in re.findall(r"#define NETWORK_(\w+) (\d+)", text)}
    words = 4 * sum(sizes[key] for key in ("MEMORY", "OUTSIDE", "EVENTS", "TRACE"))
    small = 2 * (sizes["BITS"] + sizes["PACKED"])
    return -(-(words + small) // 8) * 8 + 8 * sizes["ROWS"] + 16


def library(name: str) -> str:
    """Return a C file of this folder."""
    return resources.files("axonnx.runtime.codegen.c").joinpath(name).read_text("utf-8")


def _named(text: str, name: str) -> str:
    """Replace our prefix by the user's."""
    text = re.sub(r"\bNETWORK_(?=\w)", f"{name.upper()}_", text)
    return re.sub(r"\bnetwork(?=_\w|\.[ch]\b)", name, text)


def _native(name: str) -> str:
    """Return a file of the native core without its include lines, because all files become one here."""
    text = (FOLDER / name).read_text("utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith('#include "'))


def _core(program: Program, plan: Plan, vectors: bool, whole: bool) -> str:
    """Return the native core with the parts that the network needs."""
    used = {i.spike_op for i in program.instructions if isinstance(i, Neurons)}
    known = {op: _shared_constants(program, op) for op in used} if whole else {}
    stored = {row.stored for row in plan.rows if isinstance(row, kinds.Linear | kinds.Conv)}
    uses = {
        "CONVOLUTIONS": any(isinstance(i, Conv) for i in program.instructions),
        "FLOATS": kinds.FLOATS in stored,
        "SHORTS": kinds.SHORTS in stored,
        "BYTES": kinds.BYTES in stored,
    }
    lines = [f"#define USES_{what} {int(needed)}\n" for what, needed in uses.items()]
    lines += [] if vectors else ["#define CORE_PLAIN\n"]
    lines += ["#define CORE_WHOLE\n"] if whole else []
    made = [_native("vectors.h"), header([op for op in OPS.values() if op.name in used], known)]
    about = f"/* {comment(program.name)}: the native core of axonnx; see network.h */\n"
    return "\n".join([about + NAMES + "".join(lines), *made, *map(_native, PARTS)])


def _shared_constants(program: Program, op: str) -> dict[str, int]:
    """Return the parameters of an operator that have one value in all layers."""
    layers = [i for i in program.instructions if isinstance(i, Neurons) and i.spike_op == op]
    held = {
        name: np.concatenate([program.constants[layer.parameters[name]].ravel() for layer in layers])
        for name in OPS[op].parameters
    }
    return {name: int(values[0]) for name, values in held.items() if (values == values[0]).all()}


def _source(plan: Plan, expected: int | None, units: list[float] | None) -> str:
    program = plan.program
    places = ", ".join(str(plan.storage.place(name)) for name in program.logits or program.totals)
    parts = [
        f"/* {comment(program.name)}: see network.h */\n#include <string.h>\n\n"
        '#include "network.h"\n#include "network_weights.h"\n',
        *([_native("noise.h")] if program.noises else []),
        _noise(plan),
        "#ifdef AXONNX_KEEP_LAYERS\n#define KEEP_TRACE(n) (n)->trace\n#else\n#define KEEP_TRACE(n) NULL\n#endif\n",
        f"static const int RESULTS[] = {{{places}}};\n",
        _logit(units),
        _scaling(program),
        library("network.c"),
        _decision(program),
        *([library("stream.c")] if program.contract.input.binning else []),
        _labels(program),
        _layers(plan),
        *([] if expected is None else [f"#define SELFTEST_SUM {expected}u\n{library('selftest.c')}"]),
    ]
    return "\n".join(parts)


def _scaling(program: Program) -> str:
    """Return what makes the input of a count; only some networks scale the counts of a frame."""
    plain = "#define scaled_count(count, sum) ((void)(sum), (count))\n"
    return plain if program.contract.input.scaled_to is None else library("scaling.c")


def _logit(units: list[float] | None) -> str:
    """Return what makes a logit of a number in memory."""
    if units is None:
        return "#define LOGIT(value, member) (value)\n"
    listed = ", ".join(map(number, units))
    return (
        f"static const float UNITS[] = {{{listed}}};\n#define LOGIT(value, member) ((float)(value) * UNITS[member])\n"
    )


def _noise(plan: Plan) -> str:
    """Return the code that draws a step's noise, which follows the input in the order of the program."""
    program, calls = plan.program, []
    at = program.buffers[program.input].size
    for name in program.noises:
        size = program.buffers[name].size
        key = f"{layer_key(name)}u, (n)->steps, (n)->sample, NORMAL"
        calls.append(f" \\\n    normals((n)->outside + {at}, {size}, (n)->seed, {key});")
        at += size
    table = [doubles("NORMAL", coefficients())] if program.noises else []
    return "\n".join([*table, f"#define DRAW_NOISE(n){''.join(calls)}\n"])


def _constants(plan: Plan, order: Order, whole: bool) -> str:
    """Return the network's constants for the core."""
    program, entering = plan.program, plan.program.contract.input
    struct = _native("program.h").split("typedef struct {")[1].split("} program;")[0]
    numbers = {
        "TURNS": len(order.turns),
        "AT_START": order.at_start,
        "KEPT": plan.storage.kept,
        "SCALE": entering.scale,
        "LARGEST_UNITS": entering.largest,
        "PADDING": plan.padding,
    }
    weights = plan.weights.parts
    members = "".join(f"    {c_type(part)} w{n}[{part.size}];\n" for n, part in enumerate(weights))
    behind = f"    int8_t behind[{LANES * 2}];\n"  # a whole vector is read even if only half of it is needed
    values = ",\n".join([*(elements(part) for part in weights), "{0}"])
    return "\n".join(
        [
            f"/* {comment(program.name)}: constants */\n#include <stdint.h>\n",
            ALIGNED,
            f"typedef network_value scalar;\ntypedef struct {{{struct}}} program;\n",
            f"enum {{ {', '.join(f'{key} = {value}' for key, value in numbers.items())} }};",
            f"#ifndef DENSE_FROM\n#define DENSE_FROM {', '.join(map(str, DENSE_FROM))}\n#endif\n",
            array("TABLE", order.table),
            array("ORDER", order.turns),
            array("GROUPS", order.groups),
            array("TABLES", plan.tables),
            array("CONSTANTS", plan.constants.astype(np.int32) if whole else plan.constants),
            f"static const struct {{\n{members}{behind}}} WEIGHTS ALIGNED = {{\n{values}}};\n",
        ]
    )


def _decision(program: Program) -> str:
    """Return the code that decides; a network that gives real values has none."""
    if program.contract.units is not None:
        return ""
    decision = library("decision.c" if program.contract.collapse.members == 1 else "ensemble.c")
    certainty = program.contract.certainty
    if certainty is None:
        return decision
    return "\n".join([decision, doubles("MARGINS", np.array(certainty.margins)[:, None]), library("certainty.c")])


def _labels(program: Program) -> str:
    """Return the names of the classes, or of real values with their units."""
    units = program.contract.units
    return _names("labels", program.contract.classes) + ("" if units is None else _names("units", units))


def _names(kind: str, names: Sequence[str]) -> str:
    lines = "".join(f"    {string(name)},\n" for name in names)
    return f"const char *const network_{kind}[NETWORK_CLASSES] = {{\n{lines}}};\n"


def _layers(plan: Plan) -> str:
    rows = []
    for layer in plan.program.layers:
        spikes, name = plan.trace_places[SPIKES + layer.name]
        membrane, _ = plan.trace_places.get(MEMBRANE + layer.name, (kinds.NOWHERE, ""))
        rows.append(
            f"    {{{string(layer.name)}, {layer.size}, {plan.storage.layouts[name].size}, {spikes}, {membrane}}},\n"
        )
    table = f"const network_layer network_layers[] = {{\n{''.join(rows)}    {{NULL, 0, 0, -1, -1}},\n}};\n"
    return f"#ifdef AXONNX_KEEP_LAYERS\n{table}#endif\n"


def _header(plan: Plan, order: Order, whole: bool) -> str:
    program, contract = plan.program, plan.program.contract
    about = ABOUT.format(
        name=comment(program.name),
        kind=contract.kind,
        results=comment(results_of(contract)),
        read=READ_CLASS if contract.units is None else READ_VALUES,
        mode=contract.collapse.mode,
        takes=textwrap.fill(describe_device(contract.input), 116, subsequent_indent="   "),
        flags=" ".join(FLAGS),
    )
    sizes: list[tuple[str, object, str]] = [
        ("MEMORY", order.memory, "numbers"),
        ("OUTSIDE", plan.outside_size, ""),
        ("EVENTS", order.events, ""),
        ("BITS", order.memory // LANES + 1 if plan.padding == LANES else 1, ""),
        ("PACKED", max(plan.packed_size, 1) + LANES, ""),
        ("ROWS", len(plan.rows), ""),
    ]
    defined = "\n".join(
        f"#define NETWORK_{key} {value}{f' /* {why} */' if why else ''}"
        for key, value, why in [*sizes, *_numbers(program)]
    )
    if whole:
        defined = re.sub(r"(?m)^(#define \S+ -?\d+)\.0f", r"\1", defined)
    value = "int32_t" if whole else "float"
    parts = [about, "#ifndef NETWORK_H\n#define NETWORK_H\n", "#include <stddef.h>\n#include <stdint.h>\n"]
    parts += [
        f"{defined}\n",
        f"typedef {value} network_value; /* of inputs and states */\n",
        _trace(plan),
        library("network.h"),
    ]
    parts += [*([library("stream.h")] if contract.input.binning else []), LAYERS]
    return "\n".join([*parts, "#endif\n"])


def _trace(plan: Plan) -> str:
    kept = f"#ifdef AXONNX_KEEP_LAYERS\n#define NETWORK_TRACE {max(plan.trace_size, 1)}"
    return f"{kept}\n#else\n#define NETWORK_TRACE 1\n#endif\n"


def _numbers(program: Program) -> list[tuple[str, object, str]]:
    """Return the contract in numbers."""
    contract, given = program.contract, program.contract.input
    found: list[tuple[str, object, str]] = [
        ("INPUTS", program.buffers[program.input].size, " x ".join(map(str, given.shape))),
        ("CLASSES", len(contract.classes), ""),
        *([] if contract.units is None else [("VALUES", 1, "the network gives real values and has no classes")]),
        ("MEMBERS", contract.collapse.members, "members of the ensemble"),
        *_certainty(contract),
        ("SPIKING", int(contract.kind == "spiking"), ""),
        ("MEAN", int(contract.logits == "total / steps"), "1 if logits are the mean over time steps"),
        ("STEPS", given.steps or 1, "time steps of one window"),
        ("STEPS_KNOWN", f"UINT32_C({program.steps_known or 2**32 - 1})", "most steps before a reset"),
        ("CENTRE", number(given.centre), "the input is (value - centre) * unit"),
        ("UNIT", number(given.unit), ""),
        ("LARGEST", number(given.largest), "largest |value - centre|, a whole number"),
        ("SCALED_TO", given.scaled_to or 0, "the sum that the counts of a frame are scaled to; 0: they are not"),
    ]
    binning = given.binning
    if binning is None:
        return [*found, ("TAKES_EVENTS", 0, "frames only"), *_sensor(Binning(sensor=Sensor(width=1), bins=1, bin_us=1))]
    return [
        *found,
        ("TAKES_EVENTS", 1, ""),
        *_sensor(binning, given.fit),
        ("BINS", binning.bins, "bins of one window"),
        ("BIN_US", f"INT64_C({binning.bin_us})", "microseconds"),
        ("BIN_EVENTS", f"UINT32_C({binning.most_events or 0})", "events that end a bin earlier; 0: none do"),
        ("FROM_FIRST", int(binning.origin == "first"), "1 if bin 0 begins at the first event instead of time zero"),
    ]


def _certainty(contract: Contract) -> list[tuple[str, object, str]]:
    found = contract.certainty
    if found is None:
        return []
    about = f"time steps with a margin, for sets of possible classes; stated coverage {found.coverage:g}"
    return [("MARGINS", len(found.margins), about)]


def _sensor(binning: Binning, fit: FitContract | None = None) -> list[tuple[str, object, str]]:
    """Return what becomes of an event, in numbers."""
    grid = binning.sensor
    region = fit or FitContract(sensor=grid, width=grid.width, height=grid.height)
    sensor = region.sensor
    return [
        ("SENSOR_WIDTH", sensor.width, "of the device that sends events"),
        ("SENSOR_HEIGHT", sensor.height, ""),
        ("POLARITIES", sensor.polarities, ""),
        ("REGION_LEFT", region.left, "the region of the sensor that the network sees"),
        ("REGION_TOP", region.top, ""),
        ("REGION_WIDTH", region.width, ""),
        ("REGION_HEIGHT", region.height, ""),
        ("GRID_WIDTH", grid.width, "the pixels that it is resized to"),
        ("GRID_HEIGHT", grid.height, ""),
        ("DOWNSAMPLE", binning.downsample, "side of the squares of these that become one cell"),
        ("MERGED", int(binning.polarity == "merge"), "1 if polarities share one channel"),
        ("CLIP", number(1 if binning.values == "binary" else binning.clip), "the largest count"),
    ]
