"""Compiled folders: the sum that their self-test must give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning.rules import cells_of
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.format.network_input import device_sensor, to_input
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.program.layer_noise import draw_noise
from axonnx.runtime.streams.adapt import Adapter, Region
from axonnx.runtime.streams.probabilities import joint_logits, possible_classes

Floats = NDArray[np.float32]
MODULUS = 2**32
EVENTS, STEPS, IMAGES = 64, 8, 4  # of a self-test
OFF_SENSOR, BAD_POLARITY, CROPPED = -10, -11, -12  # as network.h names them


def selftest_sum(program: Program) -> int:
    """Return the sum that ``network_selftest`` of a compiled folder must give: class names, sensor, bins and logits.

    ``selftest.c`` describes it and computes it there; here the numpy engine does.
    """
    contract, drawn = program.contract, _random()
    words = [word for name in (*contract.classes, *(contract.units or ())) for word in (*name.encode(), 0)]
    binning = contract.input.binning
    if binning is not None:
        words += [binning.bin_us, 2 * binning.bins + (binning.origin == "first")]
        words += [] if binning.most_events is None else [binning.most_events]
        words += _cells(contract.input, drawn)
    engine, spiking = NumpyEngine(program), contract.kind == "spiking"
    state, steps = engine.initial_state(1), min(STEPS, contract.input.steps or 1) if spiking else IMAGES
    for step in range(steps):
        frame = _frame(contract.input, step, drawn)
        noise = draw_noise(program, 0, [0], step if spiking else 0, 1) if program.noises else {}
        chunk = engine.advance(state, to_input(frame[None, None], contract.input), noise)
        state = chunk.state if spiking else state
        logits = contract.logits_of(chunk.logits[:, 0], step + 1) + np.float32(0)
        words += logits.astype("<f4").view("<u4").ravel().tolist()
        words += [int(joint_logits(logits).argmax())] if contract.units is None else []
        if contract.certainty is not None:
            words += possible_classes(logits, contract.certainty.margin(step + 1)).astype(int).tolist()
    return _mixed(words)


def _random() -> Iterator[int]:
    state = 1
    while True:
        state = (state * 1664525 + 1013904223) % MODULUS
        yield state >> 8


def _mixed(words: list[int]) -> int:
    """FNV-1a over the bytes of 32-bit words."""
    found = 2166136261
    for byte in b"".join((word % MODULUS).to_bytes(4, "little") for word in words):
        found = (found ^ byte) * 16777619 % MODULUS
    return found


def _cells(entering: InputContract, drawn: Iterator[int]) -> list[int]:
    """Return what becomes of some events: their cells, or why they have none."""
    binning, sensor, fit = entering.binning, device_sensor(entering), entering.fit
    assert binning is not None
    assert sensor is not None
    found = []
    for _ in range(EVENTS):
        x, y, p = (next(drawn) % (most + 1) for most in (sensor.width, sensor.height, sensor.polarities))
        event = make_events([0], x, y, p)
        if x >= sensor.width or y >= sensor.height:
            found.append(OFF_SENSOR)
            continue
        if p >= sensor.polarities:
            found.append(BAD_POLARITY)
            continue
        if fit is not None:
            region = Region(fit.left, fit.top, fit.width, fit.height)
            event = Adapter(binning.sensor, sensor, region=region)(event)
        found.append(int(cells_of(event, binning)[0][0]) if len(event) else CROPPED)
    return found


def _frame(entering: InputContract, step: int, drawn: Iterator[int]) -> NDArray[np.int64]:
    """Return one of four kinds of frames: few values, many, none, the largest."""
    most = entering.largest if entering.binning is None else min(entering.largest, entering.binning.limit)
    size = int(np.prod(entering.shape))
    numbers = np.fromiter((next(drawn) for _ in range(size)), np.int64, size)
    few = np.where(numbers % 20 == 0, 1 + numbers // 32 % most, 0)
    kinds = (few, numbers % (most + 1), np.zeros_like(few), np.full_like(few, most))
    return (entering.centre + kinds[step % 4]).reshape(entering.shape)
