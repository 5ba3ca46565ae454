"""Suggest a training for data that somebody looks at, and try whether it would begin."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binning
from axonnx.train.build import make_network, prepare
from axonnx.train.config.read import read_config, shipped
from axonnx.train.data.cache import in_blocks
from axonnx.train.data.left_out import WORTH_A_WARNING
from axonnx.train.data.recordings import Recordings
from axonnx.train.data.sets.looking import Look
from axonnx.train.data.sets.registry import DATA_SETS
from axonnx.train.data.suggest import binning_for

SIDE = 64  # pixels of a network's input that need no thought
DAMAGED = "data.options.damaged"
MADE_FOR = {"events": "digits-saccade", "frames": "digits-saccade", "images": "digits-static"}  # own data of a kind


def suggest(look: Look) -> None:
    """Add a configuration and settings to ``look``, or the reason why there can be no training on this data."""
    fitting = [name for name, each in shipped().items() if each["tree"]["data"]["name"] == look.name]
    look.configuration = min(fitting, key=lambda name: "cpu" not in name, default=MADE_FOR[look.kind])
    look.suggested = {} if fitting else {"data.name": look.name}
    if look.name in DATA_SETS:
        return
    if look.kind == "frames":  # they are time steps already
        look.suggested |= {"data.bins": None, "data.duration_ms": None, "data.clip": None}
    elif look.kind == "events":
        _suggest_for_events(look)
    try:
        try:
            _try(look)
        except AxonnxError as fault:
            if DAMAGED not in fault.settings:  # of a large folder, some recordings are read here for the first time
                raise
            look.suggested |= fault.settings
            _try(look)
    except AxonnxError as fault:
        look.fault = str(fault)


def _suggest_for_events(look: Look) -> None:
    look.suggested |= binning_for(look.lengths)
    width, height = look.size
    if look.sensor is None:
        look.suggested["data.options.sensor"] = f"{width}x{height}"
    if look.damaged:
        look.suggested[DAMAGED] = "skip"
    shrink = -(-max(width, height) // SIDE)
    if shrink > 1:
        look.suggested["data.resize"] = f"{-(-width // shrink)}x{-(-height // shrink)}"


def _try(look: Look) -> None:
    """Do what a training does before its first batch."""
    if Path(look.name).is_file() and look.kind == "events":
        raise AxonnxError(f"{look.name} is one recording; training takes a folder with a folder for each class")
    config = read_config(look.configuration, look.suggested)
    prepared = prepare(config.data)
    make_network(config, prepared)
    if prepared.binning is not None and isinstance(prepared.splits.train, Recordings):
        clip = _clip_for(prepared.splits.train, prepared.binning)
        if clip != prepared.binning.clip:
            look.suggested["data.clip"] = clip


def _clip_for(data: Recordings, binning: Binning) -> int:
    """Return the clip of ``binning``, or the least larger one that cuts off no more than 1 % of the events."""
    counts = np.zeros(256, np.int64)  # of cells, by their value
    unclipped = binning.model_copy(update={"clip": 255})
    for _, made in in_blocks(data, unclipped):
        counts += np.bincount(made.frames.reshape(-1), minlength=256)
    larger = counts[::-1].cumsum()[::-1]  # cells of this value or a larger one
    cut_off = np.append(larger[::-1].cumsum()[::-1][1:], 0)  # events that each clip cuts off
    fine = np.flatnonzero(cut_off <= WORTH_A_WARNING * data.sizes.sum())
    return max(binning.clip, int(fine[0]))
