"""From events to frames of counts, the same bits in training, in whole recordings and in streams.

An event at time t falls into bin (t − origin) // bin_us, in integer arithmetic that holds to both ends of int64.
No event is lost without a trace: events in = events in frames (before clipping) + events counted as outside.

    settings    Sensor, Binning: what a frame is
    rules       which bin, which cell, what is outside, what is cut: each rule once
    recordings  bin_events, bin_batch: whole recordings
    stream      Binner: chunks of a stream
    open_bin    the bin that its events are counted into, by native/events.c or, without the core, by plain
    completed   Completed: bins that are whole
"""

from axonnx.runtime.binning.completed import Block, Completed, Stretch
from axonnx.runtime.binning.recordings import BatchBinned, Binned, bin_batch, bin_events
from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.binning.stream import Binner, BinnerState
from axonnx.runtime.events.sensor import Sensor

__all__ = [
    "BatchBinned",
    "Binned",
    "Binner",
    "BinnerState",
    "Binning",
    "Block",
    "Completed",
    "Outside",
    "Sensor",
    "Stretch",
    "bin_batch",
    "bin_events",
]
