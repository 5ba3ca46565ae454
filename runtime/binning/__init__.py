"""Bin events into frames of counts, with the same bits in training, in whole recordings and in streams.

An event at time t falls into bin (t − origin) // bin_us, in integer arithmetic that is exact for all int64 times.
Every event is counted: events in = events in frames (before clipping) + events counted as outside.

    settings    Sensor, Binning: the definition of a frame
    rules       the rules for bins, cells, outside events and clipping, each written once
    recordings  bin_events, bin_batch: whole recordings
    stream      Binner: chunks of a stream
    open_bin    the open bin, counted by native/events.c or, without the core, by plain
    completed   CompletedBins: complete bins
"""

from axonnx.runtime.binning.completed import Block, CompletedBins, Stretch
from axonnx.runtime.binning.recordings import BatchBinned, Binned, bin_batch, bin_events
from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.binning.stream import Binner, BinnerState
from axonnx.runtime.events.arrays import Sensor

__all__ = [
    "BatchBinned",
    "Binned",
    "Binner",
    "BinnerState",
    "Binning",
    "Block",
    "CompletedBins",
    "Outside",
    "Sensor",
    "Stretch",
    "bin_batch",
    "bin_events",
]
