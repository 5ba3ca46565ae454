"""``decision_clip``: a recording through a file, as an animation of its events and of the decision as it forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.report.drawing.animation import Clip, animation
from axonnx.report.facts.measure import Samples, measure
from axonnx.runtime.engines.choose import measuring_engine
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.measure.labelled_data import FirstWindows
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.readers import read_events
from axonnx.runtime.streams.fit import Fit
from axonnx.runtime.streams.frame_files import read_frames


def decision_clip(
    program: Program, source: str | Path, *, index: int | None = None, fit: Fit | None = None, seed: int = 0
) -> str:
    """The text of an SVG file: the recording's first window, or one sample of frames, step by step."""
    contract, path = program.contract, Path(source)
    if contract.input.steps is None:
        taken = describe_input(contract.input)
        raise AxonnxError(f"{program.name}: takes {taken}, whose decision does not form in time; nothing would move")
    if contract.input.binning is None:
        frames = read_frames(path, contract.input)
        if not 0 <= (index or 0) < len(frames):
            raise AxonnxError(f"{path}: has no sample {index}; expected an index from 0 to {len(frames) - 1}")
        shown, ends = frames[index or 0], [f"step {step + 1} of {len(frames[0])}" for step in range(len(frames[0]))]
    else:
        recording = read_events(path, index=index)
        shown = FirstWindows(contract, fit or Fit()).frames(recording, str(path))
        bin_us = contract.input.binning.bin_us
        ends = [f"{(step + 1) * bin_us / 1e3:g} ms" for step in range(len(shown))]
    sample = measure(measuring_engine(program), Samples(shown[np.newaxis], None, str(path)), 1, seed).shown[0]
    title = f"{path.name} through {program.name}"
    return animation(Clip(title, sample.frames, sample.probabilities, contract.classes, tuple(ends)))
