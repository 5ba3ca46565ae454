"""Small recordings of every format that we decode ourselves, from their published layouts."""

from __future__ import annotations

import struct
from io import BytesIO

import numpy as np

from axonnx.runtime.events.arrays import Events, make_events

SIDE = 16


def some_events(count: int = 60) -> Events:
    """In order, on a small sensor."""
    rng = np.random.default_rng(0)
    t = np.sort(rng.integers(0, 20_000, count))
    return make_events(t, rng.integers(0, SIDE, count), rng.integers(0, SIDE, count), rng.integers(0, 2, count))


def recordings() -> dict[str, bytes]:
    """Name of a file, by which its format may be told → its bytes."""
    events = some_events()
    rows = events.tolist()
    return {
        "plain.npz": _npz(np.savez, events),
        "packed.npz": _npz(np.savez_compressed, events),
        "many.npz": _npz(np.savez, events, offsets=np.array([0, 20, 60]), label=np.array([1, 2])),
        "array.npy": _npy(events),
        "text.csv": "\n".join(["t,x,y,p", *(f"{t},{x},{y},{p}" for t, x, y, p in rows), ""]).encode(),
        "faery.csv": "\n".join(["t,x@16,y@16,on", *(f"{t},{x},{y},{p or -1}" for t, x, y, p in rows), ""]).encode(),
        "rpg.txt": "\n".join(["16 16", *(f"{t / 1e6:.9f} {x} {y} {p}" for t, x, y, p in rows), ""]).encode(),
        "camera.bin": b"".join(bytes([x, y, p << 7 | t >> 16, t >> 8 & 255, t & 255]) for t, x, y, p in rows),
        "jaer.aedat": b"#!AER-DAT2.0\r\n# AEChip: eu.seebetter.ini.chips.davis.Davis240C\r\n"
        + b"".join(struct.pack(">Ii", y << 22 | x << 12 | p << 11, t) for t, x, y, p in rows),
        "caer.aedat": b"#!AER-DAT3.1\r\n#Source 1: DVS128\r\n#!END-HEADER\r\n" + _packets(rows),
        "evt2.raw": b"% evt 2.0\n% geometry 16x16\n% end\n" + _evt2(rows),
        "events.dat": b"% Version 2\n% Width 16\n% Height 16\n\x0c\x08"
        + b"".join(struct.pack("<II", t, x | y << 14 | p << 28) for t, x, y, p in rows),
    }


def _npz(save: object, events: Events, **more: np.ndarray) -> bytes:
    out = BytesIO()
    fields = {name: events[name] for name in ("t", "x", "y", "p")}
    save(out, **fields, sensor=np.array([SIDE, SIDE, 2]), **more)  # type: ignore[operator]
    return out.getvalue()


def _npy(events: Events) -> bytes:
    out = BytesIO()
    np.save(out, events)
    return out.getvalue()


def _packets(rows: list[tuple[int, int, int, int]], size: int = 20) -> bytes:
    data = b""
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        data += struct.pack("<hhiiiiii", 1, 1, 8, 4, 0, len(part), len(part), len(part))
        data += b"".join(struct.pack("<Ii", x << 17 | y << 2 | p << 1 | 1, t) for t, x, y, p in part)
    return data


def _evt2(rows: list[tuple[int, int, int, int]]) -> bytes:
    words: list[int] = []
    for t, x, y, p in rows:
        words += [8 << 28 | t >> 6, p << 28 | (t & 63) << 22 | x << 11 | y]
    return np.array(words, "<u4").tobytes()
