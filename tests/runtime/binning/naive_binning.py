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


def slow_bins(times, binning: Binning, origin):
    """The bin of each event, in the order of time, and where each bin ended that holds events and has ended."""
    bins, ends, number, begin, inside = [], {}, 0, origin, 0
    for t in times:
        over = (t - begin) // binning.bin_us
        if over:
            ends[number] = begin + binning.bin_us
            number, begin, inside = number + over, begin + over * binning.bin_us, 0
        bins.append(number)
        inside += 1
        if inside == binning.most_events:
            ends[number] = t
            number, begin, inside = number + 1, t, 0
    return bins, {number: end for number, end in ends.items() if number in bins}


def bin_slowly(events, binning: Binning):
    """Frames, outside and clipped of one recording."""
    counts, outside = {}, dict.fromkeys(Outside().as_dict(), 0)
    known = [event for event in events.tolist() if not isinstance(place(event, event[0], binning), str)]
    origin = known[0][0] if binning.origin == "first" and known else 0
    ordered = events.tolist()
    if binning.most_events is not None:
        ordered = sorted(ordered, key=lambda event: event[0])
        if binning.origin == "first" and known:
            origin = min(event[0] for event in known)
    inside = [event for event in ordered if not isinstance(place(event, origin, binning), str)]
    numbers = iter(slow_bins([event[0] for event in inside], binning, origin)[0])
    for event in ordered:
        found = place(event, origin, binning)
        if isinstance(found, tuple) and binning.most_events is not None:
            found = (next(numbers), *found[1:])
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
