"""Samples for a report from an npz file: frames, and labels where it has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from axonnx.report.facts.measure import Samples
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.measure.sample_choice import choose_samples
from axonnx.runtime.streams.frame_files import read_frames, read_labels


def read_samples(path: str | Path, contract: Contract, limit: int) -> Samples:
    """``limit`` samples at the most, of all classes: frames [N, T, C, H, W] or images [N, C, H, W]."""
    place = Path(path)
    frames = read_frames(place, contract.input)
    labels = read_labels(place, len(frames), len(contract.classes))
    chosen = choose_samples(np.zeros(len(frames)) if labels is None else labels, limit)
    source = f"{samples_of(len(chosen), len(frames))} of {place.name}"
    return Samples(frames[chosen], None if labels is None else labels[chosen], source)


def samples_of(chosen: int, whole: int) -> str:
    """Which samples were run, for people."""
    which = "all" if chosen == whole else f"of {whole:,}, stratified by class"
    return f"{chosen:,} samples ({which})"
