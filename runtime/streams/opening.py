"""Connect a source of events to a session, with reordering and sensor mapping in between."""

from __future__ import annotations

from typing import Literal

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.format.network_input import window_length
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.pipeline import EventHistory, EventPipeline
from axonnx.runtime.streams.reorder import OnDisorder, Reorder, count_late
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
    """Open a pipeline from a source of events to decisions.

    Args:
        engine: Engine that runs the network.
        source: Source of the events.
        fit: How to map the events to the network's sensor. Default: as in training.
        tolerance_us: Sort events that arrive up to this many microseconds late.
        on_disorder: What to do with later events: ``"refuse"``, ``"drop"``, or ``"sort"`` (whole recordings only).
            Default: drop for UDP, refuse for all others.
        windows: Decide on every window of a recording, not only on the first one.
        continuous: Carry the network's state over from one window to the next. Implies ``windows``.
        every_bin: Give a decision for each bin, not only the final ones.
        stop_at: Close a window as soon as the highest probability reaches this value.
        origin: Start of bin 0: a time in microseconds, or ``"first"`` for the first event. Default: from the contract.
        max_events: Read at most this many events.
        seen: Keep the events for drawing.
        seed: Seed of the noise of a stochastic network.

    Returns:
        A pipeline; iterate over its ``decisions()``.

    Raises:
        AxonnxError: If the sensor does not fit, the network takes no events, or the options contradict each other.
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
    return EventPipeline(ordered, session, reorder, EventHistory(adapter, binning) if seen else adapter, max_events)


def in_order(
    source: Source, tolerance_us: int, on_disorder: OnDisorder | Literal["sort"] | None
) -> tuple[Source, Reorder]:
    """Return the source and the buffer that handles its disorder."""
    if on_disorder != "sort":
        # Networks swap datagrams, and anyone can send one: a late datagram must not end the run.
        usual: OnDisorder = "drop" if isinstance(source, UdpSource) else "refuse"
        return source, Reorder(tolerance_us, on_disorder or usual)
    if not isinstance(source, RecordedSource):
        raise AxonnxError(
            f"{source.name}: a live stream cannot be sorted as a whole because it has no end; give a tolerance, "
            f"and refuse or drop later events",
            options=("tolerance_us", "on_disorder"),
        )
    reorder = Reorder(tolerance_us, "refuse")
    recorded = source.in_memory()
    reorder.sorted = count_late(recorded.recording.events)
    return recorded.sorted(), reorder
