"""The slow twin of a session: whole recordings, dense frames, one step at a time, no shortcut for silence."""

from typing import NamedTuple

import numpy as np

from axonnx.export.verify.plain_events import entering_plainly
from axonnx.runtime.binning import bin_events
from axonnx.runtime.engines.state import State
from axonnx.runtime.program.layer_noise import stream_noise
from axonnx.runtime.streams.probabilities import softmax

from ..binning.naive_binning import slow_bins


class Said(NamedTuple):
    """A decision, as far as it can differ."""

    t_us: int
    bin: int
    window: int
    steps: int
    final: bool
    early: bool
    windows: int
    bits: bytes


def said(decisions):
    return [
        Said(d.t_us, d.bin, d.window, d.steps, d.final, d.early, d.windows, d.member_logits.tobytes())
        for d in decisions
    ]


def naive_decisions(engine, events, *, seed=0, continuous=False, stop_at=None):
    """All decisions on a recording in order, whose time begins at zero, and the spikes of each layer."""
    binning = engine.program.contract.input.binning
    origin = int(events["t"].min()) if binning.origin == "first" else 0
    numbers, ends = slow_bins(sorted(events["t"].tolist()), binning, origin)
    length, last = binning.bins, max(numbers)
    long = binning.model_copy(update={"bins": (last // length + 1) * length})
    frames = bin_events(events, long).frames.reshape(-1, length, *binning.frame_shape)
    noise, state = stream_noise(engine.program, seed), engine.initial_state(1)
    found, silent, spikes = [], 0, {}
    for window, block in enumerate(frames):
        state = _rest(engine, state, continuous)
        made, state = _window(engine, state, window, block, noise, stop_at, spikes)
        made = [each._replace(t_us=_end(each.bin, ends, origin, binning)) for each in made]
        silent = 0 if block.any() else silent + 1
        if silent:
            found = found[:-1] if silent > 1 else found
            found.append(made[-1]._replace(windows=silent))
        else:
            found += made
    return found, spikes


def _end(at, ends, origin, binning):
    """Where a bin ended: silent bins, and the last one, by their time."""
    before = [number for number in ends if number <= at]
    return ends[before[-1]] + (at - before[-1]) * binning.bin_us if before else origin + (at + 1) * binning.bin_us


def _rest(engine, state, continuous):
    if not continuous:
        return engine.initial_state(1)
    return State(0, {name: 0 * a if name in engine.program.totals else a for name, a in state.arrays.items()})


def _window(engine, state, window, block, noise, stop_at, spikes):
    made = []
    for step, frame in enumerate(block):
        x = entering_plainly(frame[np.newaxis], engine.program.contract.input)
        chunk = engine.advance(state, x, noise(window, step, 1))
        state = chunk.state
        for name, count in chunk.activity.spikes.items():
            spikes[name] = spikes.get(name, 0) + int(count[0])
        logits = (chunk.logits[:, 0] / np.float32(step + 1)).astype(np.float32)
        sure = stop_at is not None and softmax(logits).mean(0).max() >= stop_at
        at, last = window * len(block) + step, step + 1 == len(block)
        made.append(Said(0, at, window, step + 1, bool(last or sure), bool(sure and not last), 1, logits.tobytes()))
        if sure:
            break
    return made, state
