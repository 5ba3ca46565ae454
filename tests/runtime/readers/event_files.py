"""Small writers of the formats we read, from their published layouts: what a reader must give back."""

import struct

import numpy as np
from hypothesis import strategies as st

from axonnx.runtime.events.arrays import make_events


def random_events(count=50, width=128, height=128, span=100_000, seed=0):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.integers(0, span, count))
    return make_events(t, rng.integers(0, width, count), rng.integers(0, height, count), rng.integers(0, 2, count))


@st.composite
def event_arrays(draw, width, height, span, max_size=40):
    """Events in time order within a sensor and a span of time."""
    rows = st.tuples(st.integers(0, span - 1), st.integers(0, width - 1), st.integers(0, height - 1), st.integers(0, 1))
    rows = sorted(draw(st.lists(rows, max_size=max_size)), key=lambda row: row[0])
    t, x, y, p = zip(*rows, strict=True) if rows else ([], [], [], [])
    return make_events(np.array(t, np.int64), np.array(x, int), np.array(y, int), np.array(p, int))


def csv_bytes(events, columns="t,x,y,p"):
    lines = [",".join(str(event[name]) for name in columns.split(",")) for event in events]
    return "\n".join([columns, *lines, ""]).encode()


def nmnist_bytes(events):
    data = b""
    for t, x, y, p in events.tolist():
        t %= 1 << 23
        data += bytes([x, y, p << 7 | t >> 16, t >> 8 & 255, t & 255])
    return data


def aedat2_bytes(addresses, times, header=()):
    lines = ["#!AER-DAT2.0", "# This is a raw AE data file - do not edit", *header]
    records = b"".join(struct.pack(">Ii", a, t) for a, t in zip(addresses, times, strict=True))
    return "".join(f"{line}\r\n" for line in lines).encode() + records


def aedat31_packet(records, kind=1, source=1, size=8, offset=4, overflow=0, capacity=None, number=None):
    number = len(records) if number is None else number
    capacity = len(records) if capacity is None else capacity
    head = struct.pack("<hhiiiiii", kind, source, size, offset, overflow, capacity, number, number)
    return head + b"".join(records)


def polarity_record(t, x, y, p, valid=1):
    return struct.pack("<Ii", x << 17 | y << 2 | p << 1 | valid, t)


AEDAT31_HEADER = (
    b"#!AER-DAT3.1\r\n#Format: RAW\r\n#Source 1: DVS128\r\n"
    b"#Start-Time: 2017-02-14 15:14:02 (TZ+0100)\r\n#!END-HEADER\r\n"
)


def aedat31_bytes(events, packet_size=16):
    """Packets of at most `packet_size` events that all share their overflow count."""
    data, events = AEDAT31_HEADER, events.tolist()
    while events:
        overflow = events[0][0] >> 31
        chunk = [event for event in events[:packet_size] if event[0] >> 31 == overflow]
        events = events[len(chunk) :]
        data += aedat31_packet([polarity_record(t & 0x7FFF_FFFF, *rest) for t, *rest in chunk], overflow=overflow)
    return data


def evt2_bytes(events, header=b"% evt 2.0\n% geometry 2048x2048\n% end\n"):
    words, high = [], None
    for t, x, y, p in events.tolist():
        if t >> 6 != high:
            high = t >> 6
            words.append(8 << 28 | high & 0x0FFF_FFFF)
        words.append(p << 28 | (t & 63) << 22 | x << 11 | y)
    return header + np.array(words, "<u4").tobytes()


def dat_bytes(events, version=2, kind=12):
    x_bits, y_bits = {1: (9, 8), 2: (14, 14)}[version]
    header = f"% Data file containing CD events\n% Version {version}\n% Width 304\n% Height 240\n".encode()
    records = [
        struct.pack("<II", t & 0xFFFF_FFFF, x | y << x_bits | p << x_bits + y_bits) for t, x, y, p in events.tolist()
    ]
    return header + bytes([kind, 8]) + b"".join(records)
