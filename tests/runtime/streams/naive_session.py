"""The slow twin of a session: whole recordings, dense frames, one step at a time, no shortcut for silence."""

from typing import NamedTuple

import numpy as np

from axonnx.runtime.binning import bin_events
from axonnx.runtime.engines.state import State
from axonnx.runtime.program.layer_noise import stream_noise
from axonnx.runtime.streams.probabilities import softmax


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
    length, last = binning.bins, int(events["t"].max()) // binning.bin_us
    long = binning.model_copy(update={"bins": (last // length + 1) * length})
    frames = bin_events(events, long).frames.reshape(-1, length, *binning.frame_shape)
    noise, state = stream_noise(engine.program, seed), engine.initial_state(1)
    found, silent, spikes = [], 0, {}
    for window, block in enumerate(frames):
        state = _rest(engine, state, continuous)
        made, state = _window(engine, state, window, block, noise, stop_at, spikes)
        silent = 0 if block.any() else silent + 1
        if silent:
            found = found[:-1] if silent > 1 else found
            found.append(made[-1]._replace(windows=silent))
        else:
            found += made
    return found, spikes


def _rest(engine, state, continuous):
    if not continuous:
        return engine.initial_state(1)
    return State(0, {name: 0 * a if name in engine.program.totals else a for name, a in state.arrays.items()})


def _window(engine, state, window, block, noise, stop_at, spikes):
    binning, made = engine.program.contract.input.binning, []
    for step, frame in enumerate(block):
        x = frame.astype(np.float32).reshape(1, 1, *engine.program.contract.input.shape)
        chunk = engine.advance(state, x, noise(window, step, 1))
        state = chunk.state
        for name, count in chunk.activity.spikes.items():
            spikes[name] = spikes.get(name, 0) + int(count[0])
        logits = (chunk.logits[:, 0] / np.float32(step + 1)).astype(np.float32)
        sure = stop_at is not None and softmax(logits).mean(0).max() >= stop_at
        at, last = window * len(block) + step, step + 1 == len(block)
        end = (at + 1) * binning.bin_us
        made.append(Said(end, at, window, step + 1, bool(last or sure), bool(sure and not last), 1, logits.tobytes()))
        if sure:
            break
    return made, state
