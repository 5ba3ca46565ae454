"""The rows of a compiled program's table; this module defines the columns for writers, checks and kernels.

A row is a named tuple. The C code reads the same columns by the same names (``header``), so the two cannot differ.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from axonnx.runtime.codegen.expressions import c_step
from axonnx.runtime.format.opset import OPS, SpikeOp

COLUMNS = 44  # of the table; no row has more
CHAIN = 4  # most instructions between a convolution and its neurons
SLOTS = 16  # most time steps that a group of turns processes at a time
WIDEST = 256  # outputs in a block of weights
# Percentage of active inputs from which dense products are faster: with 16-bit weights that serve several pixels or
# time steps, with 16-bit weights that serve one; then the same for 8 bits. Measured by benchmarks/crossings.py.
DENSE_FROM = (47, 101, 30, 101)

ADD, SUB, MUL = range(3)  # kinds of arithmetic
PAIRS, MEANS, LARGEST = range(3)  # kinds of pooling
FLOATS, SHORTS, BYTES = range(3)  # storage types of weights
NO_BIAS, ADD_TO_SUM = -1, -2  # instead of a bias: a sum begins at zero, or at its present value
NOWHERE = -1  # position of a part that does not exist

NEURONS = tuple(op for op in OPS.values() if op.neurons)  # an operator's number is its position here
MOST_OPERANDS = max(len(op.operands) for op in NEURONS)
MOST_RESULTS = max(len(op.outputs) for op in NEURONS)


class Load(NamedTuple):
    """Load one step's input or noise, and convert [C, H, W] to channels last if there are several channels."""

    code: int
    at: int
    channels: int
    pixels: int
    pitch: int
    out: int


class Scan(NamedTuple):
    """List a buffer's events, and the number of events before each pixel."""

    code: int
    source: int
    size: int
    pitch: int
    listed: int
    starts: int


class ScanInput(NamedTuple):
    """``Scan`` of the input with a check of its values; ``plain`` is 1 if all are 0 or 1."""

    code: int
    source: int
    size: int
    pitch: int
    listed: int
    starts: int
    plain: int


class Linear(NamedTuple):
    """W·x + b on the events of ``source``; ``counted`` is the position of their number.

    ``weights`` are rows for event lists, ``dense`` the same weights for dense products (or NOWHERE), both in units of
    64 bytes. Values of graded inputs are multiples of 2^−bits. ``old`` marks a layer that reads its own previous
    spikes.
    """

    code: int
    source: int
    listed: int
    starts: int
    counted: int
    plain: int
    graded: int
    bits: int
    weights: int
    stored: int
    unit: int
    dense: int
    dense_stored: int
    old: int
    out: int
    bias: int
    outputs: int
    inputs: int
    size: int


class Conv(NamedTuple):
    """W ∗ x + b; the first columns are those of ``Linear``.

    ``rows`` is the list of one window's weights and ``sources`` the list of their inputs. ``scratch`` has room for two
    rows of output pixels. ``dense_*`` describes the padded image for dense products; ``offsets`` are those of the taps.
    """

    code: int
    source: int
    listed: int
    starts: int
    counted: int
    plain: int
    graded: int
    bits: int
    weights: int
    stored: int
    unit: int
    dense: int
    dense_stored: int
    old: int
    out: int
    bias: int
    outputs: int
    height: int
    width: int
    channels: int
    pitch: int
    out_height: int
    out_width: int
    out_pitch: int
    window_height: int
    window_width: int
    stride_y: int
    stride_x: int
    top: int
    left: int
    dilation_y: int
    dilation_x: int
    rows: int
    sources: int
    scratch: int
    dense_height: int
    dense_width: int
    dense_channels: int
    offsets: int


class Neurons(NamedTuple):
    """One step of a layer: operands and results in the order of the operator's definition.

    Its constants follow each other with ``period`` floats each: one for all (``same``), one for each channel, or one
    for every neuron (``each``).
    """

    code: int
    op: int
    size: int
    pitch: int
    fires: int
    listed: int
    starts: int
    constants: int
    period: int
    same: int
    each: int
    spikes: int
    next_spikes: int
    membrane: int
    trace_spikes: int
    trace_membrane: int
    in_0: int
    in_1: int = 0
    in_2: int = 0
    in_3: int = 0
    in_4: int = 0
    in_5: int = 0
    in_6: int = 0
    in_7: int = 0
    out_0: int = 0
    out_1: int = 0
    out_2: int = 0
    out_3: int = 0


class Arithmetic(NamedTuple):
    """A sum a + b, difference a − b or product a · b; each operand may be a constant, and may repeat."""

    code: int
    kind: int
    out: int
    size: int
    a_constant: int
    a: int
    a_period: int
    b_constant: int
    b: int
    b_period: int


class Move(NamedTuple):
    """Gather by a table of addresses, each moved by ``shift``; −1 means zero."""

    code: int
    table: int
    size: int
    out: int
    shift: int = 0


class Activity(NamedTuple):
    """The sum Σ_k x_k² − x_i²."""

    code: int
    source: int
    out: int
    neurons: int
    size: int


class Pool(NamedTuple):
    """Pool pairs, means or the largest over windows of rows × columns, for height × width outputs."""

    code: int
    kind: int
    source: int
    out: int
    height: int
    width: int
    pitch: int
    rows: int
    columns: int


class StepRow(NamedTuple):
    """One row of a table, selected by the clock."""

    code: int
    out: int
    table: int
    size: int


class Copy(NamedTuple):
    """Copy ``size`` floats from one place to another."""

    code: int
    out: int
    source: int
    size: int


AnyRow = (
    Load | Scan | ScanInput | Linear | Conv | Neurons | Arithmetic | Move | Activity | Pool | StepRow | Copy
)  # fmt: skip
KINDS: tuple[type[AnyRow], ...] = (
    Load, Scan, ScanInput, Linear, Conv, Neurons, Arithmetic, Move, Activity, Pool, StepRow, Copy,
)  # fmt: skip  # a row's code is its kind's place here
CODE = {kind: code for code, kind in enumerate(KINDS)}


def _prefix(kind: type[AnyRow]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).upper()


def _constants() -> dict[str, int]:
    """Return every number that Python and C share."""
    names = ["COLUMNS", "CHAIN", "WIDEST", "MOST_OPERANDS", "MOST_RESULTS"]
    found = {name: globals()[name] for name in names} | {"MOST_SLOTS": SLOTS}
    for code, kind in enumerate(KINDS):
        found[_prefix(kind) if kind is not StepRow else "ROW"] = code
        found |= {f"{_prefix(kind)}_{name}": column for column, name in enumerate(kind._fields)}
    return found | {f"NEURON_{op.function}": number for number, op in enumerate(NEURONS)}


LAYER = """\
/* The positions of a layer's operands, results and constants, and the storage of its spikes. */
typedef struct {
    const scalar *in[MOST_OPERANDS], *constants, *spikes;
    scalar *out[MOST_RESULTS], *next_spikes;
    uint16_t *bits;
    int32_t *list, *starts, period, pitch, same, each;
} layer;
"""


def header(neurons: Sequence[SpikeOp] = NEURONS, known: Mapping[str, Mapping[str, int]] | None = None) -> str:
    """Return ``generated.h``: shared numbers, and one step of every neuron operator from its definition.

    ``known`` are parameters, for each operator, that have one value in all layers of a network.
    """
    numbers = "".join(f"    {name} = {value},\n" for name, value in _constants().items())
    each = "".join(
        f" \\\n    X({op.function}, {int('spikes' in op.inputs)}, {int(op.spikes is not None)})" for op in neurons
    )
    steps = "\n".join(c_step(op, (known or {}).get(op.name)) for op in neurons)
    text = f"enum {{\n{numbers}}};\n\n{LAYER}\n#define EACH_NEURON(X){each}\n\n{steps}"
    layout = hashlib.sha256(text.encode()).hexdigest()[:16]
    return (
        "/* Made from runtime/format/opset.py and runtime/codegen/rows.py; do not edit. */\n"
        "#ifndef AXONNX_GENERATED_H\n"
        f'#define AXONNX_GENERATED_H\n#define LAYOUT "{layout}"\n\n{text}\n#endif\n'
    )


def layout() -> str:
    """Return the digest that a library reports if it was built from these definitions."""
    found = re.search(r'LAYOUT "(\w+)"', header())
    assert found is not None
    return found[1]
