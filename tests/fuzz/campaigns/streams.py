"""Events as they arrive: csv lines and records in pieces, datagrams of anyone."""

from __future__ import annotations

import random

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.events.arrays import RECORD, Events, to_records
from axonnx.runtime.streams.adapt import Adapter
from axonnx.runtime.streams.live_sources import CsvSource, LiveSource, RecordSource
from axonnx.runtime.streams.pipeline import EventPipeline
from axonnx.runtime.streams.reorder import Reorder
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.udp_source import UdpSource
from tests.fuzz.harness import Finding
from tests.fuzz.numbers import damage, integer
from tests.fuzz.recording_samples import recordings, some_events
from tests.fuzz.stream_runs import engines, said

NAME = "streams"
_ENGINES: dict[str, Engine] = {}
_CSV = recordings()["text.csv"]


class Pieces:
    """Bytes that come in pieces of any size."""

    def __init__(self, data: bytes, rng: random.Random) -> None:
        self.data, self.rng = data, rng

    def read1(self, size: int, /) -> bytes:
        """Some of them."""
        at = min(size, self.rng.choice((1, 7, 16, 100, 10_000)))
        piece, self.data = self.data[:at], self.data[at:]
        return piece


def setup() -> None:
    """Networks."""
    _ENGINES.update(engines())


def material(seed: int) -> bytes:
    """What arrives."""
    return b"".join(_case(seed)[1])


def case(seed: int) -> str:
    """Refused, or every event accounted for, and the same decisions however the bytes are cut."""
    kind, data, name, rules = _case(seed)
    first = _outcome(kind, data, name, rules, random.Random(seed))
    if kind != "udp" and _outcome(kind, data, name, rules, random.Random(seed + 1)) != first:
        raise Finding("decisions depend on how the bytes are cut")
    return "refused" if first is None else "accepted"


def _case(seed: int) -> tuple[str, list[bytes], str, dict[str, object]]:
    rng = random.Random(seed)
    kind = rng.choice(("csv", "records", "udp"))
    rules: dict[str, object] = rng.choice(({}, {}, {"stop_at": 0.4}, {"every_bin": False}, {"origin": "first"}))
    if kind == "csv":
        data = [damage(rng, _CSV)]
    elif kind == "records":
        data = [damage(rng, to_records(_strange(rng, some_events())))]
    else:
        data = [_datagram(rng, part) for part in np.array_split(_strange(rng, some_events()), 12)]
    return kind, data, rng.choice(list(_ENGINES)), rules


def _strange(rng: random.Random, events: Events) -> Events:
    """One time far from the others, or one event anywhere."""
    events = events.copy()
    if rng.random() < 0.5:
        events["t"][rng.randrange(len(events))] = integer(rng)
    events["x"][rng.randrange(len(events))] = rng.choice((0, 5, 65535))
    return events


def _datagram(rng: random.Random, events: Events) -> bytes:
    whole = to_records(events)
    return whole if rng.random() < 0.7 else rng.choice((b"", whole[: RECORD.itemsize + 3], damage(rng, whole)))


def _outcome(
    kind: str, data: list[bytes], name: str, rules: dict[str, object], rng: random.Random
) -> list[tuple[object, ...]] | None:
    session = Session(_ENGINES[name], **rules)  # type: ignore[arg-type]
    binning = _ENGINES[name].program.contract.input.binning
    assert binning is not None
    reorder = Reorder(rng.choice((0, 0)), "drop" if kind == "udp" else "refuse")
    run = EventPipeline(_source(kind, data, rng), session, reorder, Adapter(binning.sensor))
    try:
        found = said(list(run.decisions()))
    except AxonnxError:
        return None
    if run.summary()["pending"] != 0:
        raise Finding(f"events without account: {run.summary()}")
    return found


def _source(kind: str, data: list[bytes], rng: random.Random) -> LiveSource:
    if kind == "csv":
        return CsvSource(Pieces(data[0], rng))
    if kind == "records":
        return RecordSource(Pieces(data[0], rng))
    source = UdpSource("127.0.0.1", 1)
    arrived = [events for datagram in data if (events := source._events(datagram)) is not None]
    source._arriving = lambda: iter([*map(source._ahead.push, arrived), source._ahead.flush()])  # type: ignore[method-assign]
    return source
