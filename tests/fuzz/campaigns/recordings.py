"""Recordings of every format that we decode ourselves, with damaged bytes, arrays, headers and lines."""

from __future__ import annotations

import random
from io import BytesIO

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning.completed import CompletedBins
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.binning.stream import Binner
from axonnx.runtime.events.arrays import Events, check_events
from axonnx.runtime.readers import FORMATS, read_recordings
from tests.fuzz.harness import Finding, shared_folder
from tests.fuzz.numbers import INTEGERS, damage, integer
from tests.fuzz.recording_samples import recordings

NAME = "recordings"
_SAMPLES = recordings()
DTYPES = ("i1", "u1", "<i2", "<i8", ">i8", "<u8", "<f2", "<f8", "?", "S3", "U2", "M8[us]", "c16")


def material(seed: int) -> bytes:
    """The file of a case."""
    return _case(seed)[1]


def case(seed: int) -> str:
    """Refused, or events whose bins do not depend on how they are cut."""
    name, data, format_name = _case(seed)
    path = shared_folder() / name
    path.write_bytes(data)
    try:
        found = read_recordings(path, format=format_name)
    except AxonnxError:
        return "refused"
    for recording in found[:3]:
        check_events(recording.events)
        _same_bins(recording.events[:1000])
    return "accepted"


def _case(seed: int) -> tuple[str, bytes, str | None]:
    rng = random.Random(seed)
    name = rng.choice(list(_SAMPLES))
    if name.endswith(".npz") and rng.random() < 0.5:
        data = _other_arrays(rng)
    elif name.endswith(".csv") and rng.random() < 0.5:
        data = _other_cells(rng, _SAMPLES[name])
    else:
        data = damage(rng, _SAMPLES[name], rng.choice(list(_SAMPLES.values())))
    own = [key for key in FORMATS if FORMATS[key].title.find("faery") < 0 and key != "shd"]
    return name, data, rng.choice(own) if rng.random() < 0.1 else None


def _other_arrays(rng: random.Random) -> bytes:
    """An npz with arrays of other types, lengths and numbers."""
    with np.load(BytesIO(_SAMPLES["many.npz"])) as found:
        arrays = dict(found)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice([*arrays, "events", "new", "y"])
        now = arrays.get(name, np.arange(60))
        if now.dtype.kind not in "iu":
            continue
        with np.errstate(all="ignore"):
            arrays[name] = rng.choice(
                (
                    lambda now=now: now.astype(rng.choice(DTYPES)),
                    lambda now=now: now[: rng.randrange(len(now) + 1)] if now.ndim else now,
                    lambda now=now: np.resize(now, rng.choice([(), (0,), (3, 4), (1, 60), (60,)])),
                    lambda now=now: _with(rng, now),
                    lambda now=now: np.array([None, {}], object),
                )
            )()
    out = BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _with(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """One entry replaced."""
    wide = array.astype(np.int64 if rng.random() < 0.7 else np.float64)
    if wide.size:
        wide.flat[rng.randrange(wide.size)] = integer(rng)
    return wide


def _other_cells(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(lines))
        cells = lines[at].split(b",")
        cells[rng.randrange(len(cells))] = rng.choice(
            [
                str(rng.choice(INTEGERS)).encode(),
                b"",
                b" 1 ",
                b"1e3",
                b"nan",
                b"0x1",
                b"-",
                b"1" * 500,
                b"t",
                b"\xff",
                "٣".encode(),
            ]
        )
        lines[at] = b",".join(cells)
    return rng.choice((b"\n", b"\n", b"\r\n", b"\r", b"\n\n")).join(lines)


def _busy(bins: CompletedBins) -> list[tuple[int, bytes]]:
    """Number and counts of every bin with an event; silence may last for years."""
    return [
        (stretch.first + row, frame.tobytes())
        for stretch in bins.stretches()
        if stretch.frames is not None
        for row, frame in enumerate(stretch.frames)
        if frame.any()
    ]


def _same_bins(events: Events) -> None:
    binning = Binning.model_validate({"sensor": {"width": 16, "height": 16}, "bins": 4, "bin_us": 1000, "clip": 7})
    whole, parts = Binner(binning), Binner(binning)
    in_one = whole.push(events)
    in_two = [parts.push(events[:7]), parts.push(events[7:])]
    if _busy(in_one) != [frame for part in in_two for frame in _busy(part)]:
        raise Finding("bins depend on how the events are cut")
    if whole.outside != parts.outside or whole.bin != parts.bin:
        raise Finding(f"{whole.outside} in one piece, {parts.outside} in two")
