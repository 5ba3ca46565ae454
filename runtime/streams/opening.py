"""``open_stream``: a source of events on its way to decisions, with all that is to happen in between."""

from __future__ import annotations

from typing import Literal

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.format.network_input import window_length
from axonnx.runtime.streams.fit import Fit
from axonnx.runtime.streams.pipeline import EventPipeline
from axonnx.runtime.streams.reorder import OnDisorder, Reorder, count_late
from axonnx.runtime.streams.seen import Seen
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.sources import RecordedSource, Source
from axonnx.runtime.streams.udp_source import UdpSource


def open_stream(
    engine: Engine,
    source: Source,
    *,
    fit: Fit | None = None,
    tolerance_us: int = 0,
    on_disorder: OnDisorder | Literal["sort"] | None = None,
    windows: bool = False,
    continuous: bool = False,
    every_bin: bool = False,
    stop_at: float | None = None,
    origin: int | Literal["first"] | None = None,
    max_events: int | None = None,
    seen: bool = False,
    seed: int = 0,
) -> EventPipeline:
    """Events of ``source`` through ``engine``. A recording gives one answer unless ``windows`` or ``continuous``.

    ``on_disorder`` says what becomes of events later than ``tolerance_us``; ``seen`` keeps what is to be drawn.
    """
    contract = engine.program.contract
    window_length(contract, engine.program.name)
    binning = contract.input.binning
    assert binning is not None
    ordered, reorder = in_order(source, tolerance_us, on_disorder)
    session = Session(
        engine,
        seed=seed,
        continuous=continuous,
        stop_at=stop_at,
        every_bin=every_bin,
        origin=origin,
        one_window=isinstance(source, RecordedSource) and not (windows or continuous),
    )
    adapter = (fit or Fit()).adapter(ordered, binning.sensor, contract.input.fit)
    return EventPipeline(ordered, session, reorder, Seen(adapter, binning) if seen else adapter, max_events)


def in_order(
    source: Source, tolerance_us: int, on_disorder: OnDisorder | Literal["sort"] | None
) -> tuple[Source, Reorder]:
    """The source, and what becomes of its disorder: refused, but of datagrams dropped, where nothing is said."""
    if on_disorder != "sort":
        # Networks swap datagrams, and anyone can send one: a late one must not end the run.
        usual: OnDisorder = "drop" if isinstance(source, UdpSource) else "refuse"
        return source, Reorder(tolerance_us, on_disorder or usual)
    if not isinstance(source, RecordedSource):
        raise AxonnxError(
            f"{source.name}: a stream has no end to wait for, so it cannot be sorted as a whole; sort it within a "
            f"tolerance and refuse or drop what is later",
            options=("tolerance_us", "on_disorder"),
        )
    reorder = Reorder(tolerance_us, "refuse")
    recorded = source.in_memory()
    reorder.sorted = count_late(recorded.recording.events)
    return recorded.sorted(), reorder
