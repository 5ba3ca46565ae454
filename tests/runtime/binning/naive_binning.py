"""Binning in plain Python integers, one event at a time: the specification the fast code is held to."""

import numpy as np

from axonnx.runtime.binning import Binning, Outside


def place(event, origin, binning: Binning):
    """(bin, channel, row, column) of one event, or the reason why it has none."""
    t, x, y, p = map(int, event)
    sensor, step = binning.sensor, binning.downsample
    if x >= sensor.width or y >= sensor.height:
        return "off_sensor"
    if p >= sensor.polarities:
        return "bad_polarity"
    if t < origin:
        return "before"
    channel = 0 if binning.polarity == "merge" else p
    row = 0 if sensor.height == 1 else y // step
    return (t - origin) // binning.bin_us, channel, row, x // step


def bin_slowly(events, binning: Binning):
    """Frames, outside and clipped of one recording."""
    counts, outside = {}, dict.fromkeys(Outside().as_dict(), 0)
    known = [event for event in events.tolist() if not isinstance(place(event, event[0], binning), str)]
    origin = known[0][0] if binning.origin == "first" and known else 0
    for event in events.tolist():
        found = place(event, origin, binning)
        if isinstance(found, tuple) and found[0] >= binning.bins:
            found = "after"
        if isinstance(found, str):
            outside[found] += 1
        else:
            counts[found] = counts.get(found, 0) + 1
    frames, clipped = np.zeros(binning.shape, np.uint8), 0
    for cell, count in counts.items():
        frames[cell] = min(count, 1 if binning.values == "binary" else binning.clip)
        clipped += count - int(frames[cell])
    return frames, Outside(**outside), clipped
