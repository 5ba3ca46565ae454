"""Inputs for compiled code: recordings or frames as files, and the frames that a device must make of them.

The frames come first. Events are made from them so that exactly these frames must come out: at the first and the last
microsecond of bins, on any pixel of the cell, and beyond the largest count. So nothing that bins events is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.format.contract import FitContract, InputContract
from axonnx.runtime.format.names import MEMBRANE
from axonnx.runtime.format.network_input import device_sensor, to_input
from axonnx.runtime.measure.engine_inputs import KINDS, generated_values
from axonnx.runtime.program.instructions import Neurons, Program

Values = NDArray[np.int64]
CLOCK = 1_000_003  # µs; the first event of a recording whose time begins there
MOST_EVENTS = 20_000  # of one generated window
IN_TURN = 20  # parts of the inputs, of which one is active at a time
MOST_TIME = 2**52  # µs; every language has such numbers
TIED_INPUTS, TIED_NEURONS, TIED_TRIES, TIES = 512, 32, 4, 8  # how far ties are searched


@dataclass(frozen=True, eq=False)
class CompiledInput:
    """One file for a compiled program, and what its network must get.

    Attributes:
        name: Where it came from.
        frames: Integers [windows, T, *shape].
        text: The file: csv with the columns t,x,y,p, or one frame in each line.
    """

    name: str
    frames: Values
    text: str


def crafted(program: Program, seed: int) -> Iterator[CompiledInput]:
    """Generate what exposes differences: no events, few, many, the largest counts, ties, several windows."""
    random, entering = np.random.default_rng(seed), program.contract.input
    kinds = generated_values(program.contract, seed).swapaxes(0, 1)
    if entering.binning is None:
        for name, values in zip(KINDS, kinds, strict=True):
            yield as_input(f"generated input {name!r}", values, entering, random)
    else:
        few, many, none, most = (_thinned(values, random) for values in kinds)
        windows = np.stack([many, few, none, most, few])
        yield device_recording("generated input 'many, few, none, the largest, few'", entering, windows, random)
    parts = _in_turn(program, random)
    if entering.binning is None:
        for number, values in enumerate(parts):
            yield as_input(f"generated input 'inputs in turn {number}'", values, entering, random)
    elif len(parts):
        yield device_recording("generated input 'inputs in turn'", entering, parts, random)
    for number, frame in enumerate(tied_frames(program, random)):
        values = kinds[0].copy()
        values[0] = frame
        yield as_input(f"generated input 'ties {number}'", values, entering, random)
    if entering.binning is not None:  # last, because what differs in others says more
        yield device_recording("generated input 'nothing'", entering, np.stack([none]), random)


def as_input(name: str, values: Values, entering: InputContract, random: np.random.Generator) -> CompiledInput:
    """Return one sample [T, *shape] as a file: events of its frames, or the frames themselves."""
    if entering.binning is not None:
        return device_recording(name, entering, values[None], random)
    lines = [",".join(map(str, row)) for row in values.reshape(len(values), -1).tolist()]
    return CompiledInput(name, values[None], "\n".join([*lines, ""]))


def device_recording(name: str, entering: InputContract, windows: Values, random: np.random.Generator) -> CompiledInput:
    """Make events of the device's sensor that give these frames [windows, T, *shape], among others that give nothing.

    Cells that no pixel reaches become zero, and so do silent windows at the end, which a recording cannot show.
    """
    binning, sensor = entering.binning, device_sensor(entering)
    assert binning is not None
    assert sensor is not None
    pixels, starts = _pixels(entering)
    reached = np.diff(starts)[:-1]  # the last part is beside the region
    windows = windows[: max(1, MOST_TIME // (binning.bins * binning.bin_us))]
    counts = np.where(reached, windows.reshape(-1, binning.cells), 0)
    if binning.origin == "first" and counts.any() and not counts[0].any():
        counts[0, np.flatnonzero(reached)[0]] = 1  # bin 0 begins with the first event
    last = int(np.flatnonzero(counts.any(1)).max(initial=0)) // binning.bins
    counts = counts[: (last + 1) * binning.bins]
    if binning.most_events is not None:
        counts = _at_most(counts, binning.most_events)
    bins, cells = np.nonzero(counts)
    repeats = counts[bins, cells]
    more = np.where(repeats == binning.limit, random.integers(0, 3, len(repeats)), 0)
    if binning.most_events is not None:  # events beyond the clip count, too
        more[np.bincount(bins, repeats + more)[bins] > binning.most_events] = 0
    repeats = repeats + more
    bins, cells = np.repeat(bins, repeats), np.repeat(cells, repeats)
    edges = np.array([0, binning.bin_us - 1])
    offsets = np.where(
        random.random(len(bins)) < 0.5, random.choice(edges, len(bins)), random.integers(0, binning.bin_us, len(bins))
    )
    start = CLOCK if binning.origin == "first" else 0
    if binning.origin == "first":
        offsets[:1] = 0
    begins = bins * binning.bin_us
    if binning.most_events is not None and len(bins):
        begins, offsets = _ended_by_events(bins, offsets, binning, random)
    chosen = pixels[starts[cells] + random.integers(0, np.maximum(reached[cells], 1))]
    found = np.column_stack([start + begins + offsets, chosen])
    found = np.concatenate([found, _ignored(entering, found, start)])
    found = found[np.argsort(found[:, 0], kind="stable")]
    text = "".join(f"{t},{x},{y},{p}\n" for t, x, y, p in found.tolist())
    return CompiledInput(name, counts.reshape(-1, *windows.shape[1:]), f"t,x,y,p\n{text}")


def _at_most(counts: Values, most: int) -> Values:
    """Leave the first ``most`` events of each bin [bins, cells]."""
    kept: Values = np.diff(np.minimum(np.cumsum(counts, 1), most), axis=1, prepend=0)
    return kept


def _ended_by_events(
    bins: Values, offsets: Values, binning: Binning, random: np.random.Generator
) -> tuple[Values, Values]:
    """Where the bin of each event begins, and the event's time after that: the last event of a full bin ends it."""
    full = np.bincount(bins) == binning.most_events
    lengths = np.where(full, random.integers(0, binning.bin_us, len(full)), binning.bin_us)
    if binning.origin == "first" and binning.most_events == 1:
        lengths[0] = 0  # the first event ends its bin where the bin begins
    begins = np.cumsum(lengths) - lengths
    offsets = np.where(full[bins], np.minimum(offsets, lengths[bins]), offsets)
    last = np.flatnonzero(np.diff(bins, append=-1))
    offsets[last] = np.where(full[bins[last]], lengths[bins[last]], offsets[last])
    return begins[bins], offsets


def tied_frames(program: Program, random: np.random.Generator) -> list[Values]:
    """Search frames whose first step puts a membrane of the first layer exactly on its threshold.

    What one input adds to a membrane is measured with the numpy engine; it is a multiple of the grid. Some inputs bring
    the membrane near its threshold, and of all pairs of others some add up to the rest. The engine has the last word on
    every frame that was found.
    """
    neurons = next((each for each in program.instructions if isinstance(each, Neurons)), None)
    if neurons is None or program.noises or "threshold" not in neurons.parameters:
        return []
    entering, cells = program.contract.input, int(np.prod(program.contract.input.shape))
    limit = entering.largest if entering.binning is None else entering.binning.limit
    usable = np.arange(cells) if entering.binning is None else np.flatnonzero(np.diff(_pixels(entering)[1])[:-1])
    inputs = random.permutation(usable)[:TIED_INPUTS]
    one_each = np.zeros((len(inputs) + 1, cells), np.int64)  # the last one is silence
    one_each[np.arange(len(inputs)), inputs] = 1
    membranes = _first_membranes(program, neurons, one_each)
    if membranes is None:
        return []
    threshold = np.broadcast_to(program.constants[neurons.parameters["threshold"]], membranes.shape[1:]).ravel()
    membranes = membranes.reshape(len(membranes), -1)
    found: list[Values] = []
    for neuron in np.tile(random.permutation(len(threshold))[:TIED_NEURONS], TIED_TRIES):
        rest = membranes[-1, neuron]
        counts = _counts_that_add_up(membranes[:-1, neuron] - rest, threshold[neuron] - rest, min(limit, 3), random)
        if counts is None:
            continue
        frame = np.zeros((1, cells), np.int64)
        frame[0, inputs] = counts
        reached = _first_membranes(program, neurons, frame)
        if reached is not None and reached.ravel()[neuron] == threshold[neuron]:
            found.append((frame + entering.centre).reshape(entering.shape))
        if len(found) == TIES:
            break
    return found


def _first_membranes(program: Program, neurons: Neurons, frames: Values) -> NDArray[np.float64] | None:
    """Return the first layer's membranes [B, …] after one step on frames [B, cells], whose centre is zero."""
    entering, engine = program.contract.input, NumpyEngine(program)
    x = to_input((frames + entering.centre)[None], entering)
    traces = engine.advance(engine.initial_state(len(frames)), x, {}, trace=True).traces
    found = traces.get(MEMBRANE + neurons.layer)
    return None if found is None else found[0].astype(np.float64)


def _counts_that_add_up(
    adds: NDArray[np.float64], wanted: float, limit: int, random: np.random.Generator
) -> Values | None:
    """Return a count for each input so that the sum of what they add is the one wanted, exactly."""
    counts, total = np.zeros(len(adds), np.int64), 0.0
    for one in random.permutation(len(adds) // 2):
        if adds[one] * np.sign(wanted) > 0 and abs(total + adds[one]) <= abs(wanted):
            counts[one], total = 1, total + adds[one]
    rest = np.arange(len(adds) // 2, len(adds))
    sums = np.outer(np.arange(1, limit + 1), adds[rest]).ravel()
    order = np.argsort(sums)
    missing = wanted - total - sums
    at = np.searchsorted(sums[order], missing).clip(max=len(sums) - 1)
    for one in np.flatnonzero(sums[order[at]] == missing).tolist():
        pair = np.array([one, order[at[one]]])
        if len(set(pair % len(rest))) == 2:
            counts[rest[pair % len(rest)]] = 1 + pair // len(rest)
            return counts
    return None


def _in_turn(program: Program, random: np.random.Generator) -> Values:
    """Return windows [parts, T, *shape] with few active inputs, each of which is active again and again in one of them.

    So every weight counts, also where the code takes few inputs and many inputs from different tables.
    """
    entering = program.contract.input
    steps, cells = entering.steps or 1, int(np.prod(entering.shape))
    shown, most = min(steps, MOST_EVENTS // cells), min(entering.largest, 3)
    groups = np.array_split(random.permutation(cells), min(cells, IN_TURN)) if shown else []
    windows = np.zeros((len(groups), steps, cells), np.int64)
    for window, group in zip(windows, groups, strict=True):
        window[:shown, group] = random.integers(1, most, (shown, len(group)), endpoint=True)
    return entering.centre + windows.reshape(len(groups), steps, *entering.shape)


def _thinned(values: Values, random: np.random.Generator) -> Values:
    """Leave so many cells as ``MOST_EVENTS`` allow."""
    keep = MOST_EVENTS / max(1, int(values.sum()))
    return values if keep >= 1 else values * (random.random(values.shape) < keep)


def _pixels(entering: InputContract) -> tuple[Values, Values]:
    """Return the pixels (x, y, p) of a device in the order of their cells, and where each cell's pixels begin."""
    binning, sensor, fit = entering.binning, device_sensor(entering), entering.fit
    assert binning is not None
    assert sensor is not None
    grid, region = binning.sensor, fit or FitContract(sensor=sensor, width=sensor.width, height=sensor.height)
    p, y, x = (part.ravel() for part in np.indices((sensor.polarities, sensor.height, sensor.width)))
    across, down = x - region.left, y - region.top
    seen = (across >= 0) & (across < region.width) & (down >= 0) & (down < region.height)
    column = _scaled(across, region.width, grid.width) // binning.downsample
    row = _scaled(down, region.height, grid.height) // binning.row_step
    channel = 0 if binning.polarity == "merge" else p
    cells = np.where(seen, (channel * binning.height + row) * binning.width + column, binning.cells)
    order = np.argsort(cells, kind="stable")
    return np.column_stack([x, y, p])[order], np.searchsorted(cells[order], np.arange(binning.cells + 2))


def _scaled(positions: Values, old: int, new: int) -> Values:
    return (2 * positions + 1) * new // (2 * old)


def _ignored(entering: InputContract, found: Values, start: int) -> Values:
    """Return events that a device must leave out: before the first bin, of no polarity, beside the region."""
    sensor, binning = device_sensor(entering), entering.binning
    assert binning is not None
    assert sensor is not None
    pixels, starts = _pixels(entering)
    during = found[-1:, 0] if len(found) else np.array([start])
    none = [(int(t), x, y, sensor.polarities) for x, y, _ in pixels[:1].tolist() for t in during]
    beside = [(int(t), *pixel) for pixel in pixels[starts[-2] :][:1].tolist() for t in during]
    before = [(start - 1, *pixel) for pixel in pixels[:1].tolist() if binning.origin == "zero"]
    return np.array([*none, *beside, *before], np.int64)
