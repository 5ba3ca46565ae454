"""What a network is fed, as the contract of its file states it."""

from __future__ import annotations

import numpy as np

from axonnx.runtime.binning import Binning
from axonnx.runtime.format.contract import InputContract
from axonnx.train.build import Prepared
from axonnx.train.config.settings import Config
from axonnx.train.data.frames import Frames


def input_contract(config: Config, prepared: Prepared) -> InputContract:
    """Return what the network was fed in training."""
    return InputContract(
        name="events",
        shape=prepared.shape[-3:],
        steps=prepared.steps,
        binning=_deployed(prepared),
        fit=prepared.splits.fit,
        merging=prepared.merging,
        repeated=prepared.repeated,
        centre=config.data.centre,
        shift=config.data.shift,
        largest=_largest(config, prepared),
    )


def _deployed(prepared: Prepared) -> Binning | None:
    """Return the binning of whole recordings: training knows where windows begin, and a device does not."""
    binning = prepared.binning
    return None if binning is None else binning.model_copy(update={"origin": prepared.splits.origin})


def _largest(config: Config, prepared: Prepared) -> int:
    if prepared.binning is not None:
        return prepared.binning.limit
    parts = [data.frames for data in prepared.splits.parts.values() if isinstance(data, Frames)]
    values = [int(np.max(frames)) for frames in parts] + [int(np.min(frames)) for frames in parts]
    return max(1, *(abs(value - config.data.centre) for value in values))
