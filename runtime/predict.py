"""Classify a recording that is one sample, as in training."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from axonnx.runtime.events.arrays import EVENT, Events, as_events
from axonnx.runtime.model import Model
from axonnx.runtime.readers import Recording, read_events
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.fit import Fit
from axonnx.runtime.streams.sources import FileSource


def predict(
    model: Model,
    recording: Events | Recording | str | os.PathLike[str],
    seed: int = 0,
    index: int | None = None,
    fit: Fit | None = None,
) -> Decision:
    """Return the decision of the first window from the contract's origin on; events outside it are counted.

    Events are sorted by time, as in training. A sensor larger than the network's is refused.
    """
    session = model.session(seed=seed, every_bin=False, one_window=True)  # refuses networks that take no events
    target = model.contract.input.binning
    assert target is not None
    source = _source(recording, index).sorted()
    adapter = (fit or Fit()).adapter(source, target.sensor, model.contract.input.fit)
    (decision,) = [*session.push(adapter(source.recording.events)), *session.flush()]
    outside = session.progress.outside
    # The adapter drops events off the source's sensor and outside the region that the network sees.
    beside = outside.off_sensor + sum(adapter.dropped.values())
    return replace(decision, outside=replace(outside, off_sensor=beside))


def _source(recording: Events | Recording | str | os.PathLike[str], index: int | None) -> FileSource:
    if isinstance(recording, np.ndarray):
        events = recording if recording.dtype == EVENT or not recording.dtype.names else as_events(recording)
        return FileSource("these events", Recording(events, "memory"))
    if isinstance(recording, Recording):
        return FileSource("this recording", recording)
    return FileSource(os.fspath(recording), read_events(Path(recording), index=index))
