"""The rows of a compiled program's table: what stands where, for whoever writes a row, checks it or runs it.

A row is a tuple with names. ``columns`` gives each name the number of its column, which compiled kernels take for a
constant: ``g[r + LINEAR_AT.weights]``.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

(
    LOAD,
    SCAN,
    SCAN_INPUT,
    LINEAR,
    CONV,
    FIRE,
    FIRE_NOISY,
    FIRE_GENERAL,
    LEAKY_SUM,
    ARITHMETIC,
    MOVE,
    ACTIVITY,
    POOL_PAIRS,
    AVERAGE_POOL,
    ROW,
    COPY,
    MAX_POOL,
    LEAKY_CURRENT,
) = range(18)
CODES = (
    "LOAD", "SCAN", "SCAN_INPUT", "LINEAR", "CONV", "FIRE", "FIRE_NOISY", "FIRE_GENERAL", "LEAKY_SUM", "ARITHMETIC",
    "MOVE", "ACTIVITY", "POOL_PAIRS", "AVERAGE_POOL", "ROW", "COPY", "MAX_POOL", "LEAKY_CURRENT",
)  # fmt: skip
COLUMNS = 32  # of the table; no row is wider

STATELESS, SUBTRACT, TO_ZERO, GENERAL, ADAPTIVE = range(5)  # kinds of neurons
ADD, SUB, MUL = range(3)  # kinds of arithmetic
NO_BIAS, ADD_TO_SUM = -1, -2  # in place of a bias: a sum begins at nothing, or at what is there already
NOWHERE = -1  # the place of what is not there

CONSTANTS, ADAPTIVE_CONSTANTS = (
    6,
    5,
)  # of general neurons, and of their adaptation: in the order of the operator's inputs

# Which kernel runs a spike operator, and as which kind of neurons.
KERNELS = {
    "Heaviside": (FIRE, STATELESS),
    "StochasticHeaviside": (FIRE_NOISY, STATELESS),
    "LIF": (FIRE, SUBTRACT),
    "LIFToZero": (FIRE, TO_ZERO),
    "StochasticLIF": (FIRE_NOISY, SUBTRACT),
    "StochasticLIFToZero": (FIRE_NOISY, TO_ZERO),
    "GeneralLIF": (FIRE_GENERAL, GENERAL),
    "AdaptiveLIF": (FIRE_GENERAL, ADAPTIVE),
    "LeakyCurrent": (LEAKY_CURRENT, STATELESS),
    "LeakySum": (LEAKY_SUM, SUBTRACT),
    "RecurrentActivity": (ACTIVITY, STATELESS),
    "PoolPairs": (POOL_PAIRS, STATELESS),
}


class Load(NamedTuple):
    """Bring one step's input or noise in, from [C, H, W] to channels last where ``pitch`` is not 1."""

    code: int
    at: int
    channels: int
    pixels: int
    pitch: int
    out: int


class Scan(NamedTuple):
    """List a buffer's events, and how many come before each sixteen elements."""

    code: int
    source: int
    size: int
    listed: int
    starts: int


class ScanInput(NamedTuple):
    """``Scan`` of the input, with a look at its values; ``plain`` is 1 where all are 0 or 1."""

    code: int
    source: int
    size: int
    listed: int
    starts: int
    plain: int


class Linear(NamedTuple):
    """W·x + b on the events of ``source``; ``counted`` is where their number stands; ``stored``: see ``narrow``."""

    code: int
    source: int
    listed: int
    starts: int
    graded: int
    weights: int
    out: int
    bias: int
    inputs: int
    size: int
    counted: int
    outputs: int
    plain: int
    stored: int
    unit: int


class Conv(NamedTuple):
    """W ∗ x + b; one window's weights are listed at ``rows``, their inputs at ``inputs``; zeros are at ``zeros``."""

    code: int
    source: int
    listed: int
    starts: int
    graded: int
    weights: int
    out: int
    bias: int
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
    counted: int
    dense_above: int
    outputs: int
    rows: int
    inputs: int
    zeros: int
    plain: int
    stored: int
    unit: int


class Fire(NamedTuple):
    """One step of neurons, with or without noise; −1 is the place of what a kind does not have."""

    code: int
    kind: int
    size: int
    listed: int
    starts: int
    current: int
    arriving: int
    noise: int
    membrane: int
    variance: int
    spikes: int
    next_membrane: int
    next_variance: int
    next_spikes: int
    decay: int
    decay_period: int
    threshold: int
    threshold_period: int
    base: int
    base_period: int
    trace_spikes: int
    trace_membrane: int


class General(NamedTuple):
    """One step of neurons whose constants stand one after another, each ``period`` floats long."""

    code: int
    kind: int
    size: int
    listed: int
    starts: int
    current: int
    membrane: int
    adaptation: int
    spikes: int
    next_membrane: int
    next_adaptation: int
    next_spikes: int
    constants: int
    period: int
    trace_spikes: int
    trace_membrane: int


class LeakyCurrent(NamedTuple):
    """i' = α i + I"""

    code: int
    size: int
    current: int
    synaptic: int
    next_synaptic: int
    decay: int
    decay_period: int


class LeakySum(NamedTuple):
    """h' = β h + I;   s' = s + h'"""

    code: int
    size: int
    current: int
    membrane: int
    total: int
    next_membrane: int
    next_total: int
    decay: int
    decay_period: int


class Arithmetic(NamedTuple):
    """a + b, a − b or a · b; either may be a constant, and may repeat."""

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
    """Gather by a table of addresses, each ``shift`` further on; −1 is zero."""

    code: int
    table: int
    size: int
    out: int
    shift: int = 0


class Activity(NamedTuple):
    """Σ_k x_k² − x_i²"""

    code: int
    source: int
    out: int
    neurons: int
    size: int


class PoolPairs(NamedTuple):
    """Means over squares of 2 × 2, for outputs of height × width."""

    code: int
    source: int
    out: int
    height: int
    width: int
    pitch: int


class WindowPool(NamedTuple):
    """Means (or the largest) over windows of rows × columns, for outputs of height × width."""

    code: int
    source: int
    out: int
    height: int
    width: int
    pitch: int
    rows: int
    columns: int


class StepRow(NamedTuple):
    """One row of a table that follows the clock."""

    code: int
    out: int
    table: int
    size: int


class Copy(NamedTuple):
    """So many floats from one place to another."""

    code: int
    out: int
    source: int
    size: int


AnyRow = (
    Load
    | Scan
    | ScanInput
    | Linear
    | Conv
    | Fire
    | General
    | LeakyCurrent
    | LeakySum
    | Arithmetic
    | Move
    | Activity
    | PoolPairs
    | WindowPool
    | StepRow
    | Copy
)
Row = TypeVar("Row", bound=tuple[int, ...])
KINDS: dict[int, type[AnyRow]] = {
    LOAD: Load,
    SCAN: Scan,
    SCAN_INPUT: ScanInput,
    LINEAR: Linear,
    CONV: Conv,
    FIRE: Fire,
    FIRE_NOISY: Fire,
    FIRE_GENERAL: General,
    LEAKY_CURRENT: LeakyCurrent,
    LEAKY_SUM: LeakySum,
    ARITHMETIC: Arithmetic,
    MOVE: Move,
    ACTIVITY: Activity,
    POOL_PAIRS: PoolPairs,
    AVERAGE_POOL: WindowPool,
    MAX_POOL: WindowPool,
    ROW: StepRow,
    COPY: Copy,
}


def columns(row: type[Row]) -> Row:
    """The row whose every number is its own column."""
    return row(*range(len(row._fields)))  # type: ignore[attr-defined]
