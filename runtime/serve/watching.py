"""Send pictures of a stream to a page that watches it, without making the stream wait."""

from __future__ import annotations

import asyncio

from starlette.websockets import WebSocket, WebSocketDisconnect

from axonnx.runtime.serve.client_stream import Stream
from axonnx.runtime.serve.connection import refuse
from axonnx.runtime.serve.messages import LATER, NOT_ALLOWED, STOPPING, RefusedError, message
from axonnx.runtime.serve.service import Service
from axonnx.runtime.serve.view import View

PAUSE = 0.1  # seconds between two pictures
LONGEST = 19  # digits of a stream's number
LISTED = 50  # newest streams that the page can choose from


async def watch(socket: WebSocket, service: Service) -> None:
    """Send pictures of the stream that ``?stream=N`` names, or of the newest one, until the page is closed."""
    asked = socket.query_params.get("stream", "")
    if asked and not (asked.isdecimal() and len(asked) < LONGEST):
        return await refuse(socket, service, RefusedError(NOT_ALLOWED, "address", "stream is not a number"))
    if service.watchers >= service.limits.watchers:
        text = f"{service.limits.watchers} pages watch already, the most that are allowed; try again later"
        return await refuse(socket, service, RefusedError(LATER, "watchers", text))
    service.watchers += 1
    try:
        await _pictures(socket, service, int(asked) if asked else None)
    except WebSocketDisconnect:
        pass
    finally:
        service.watchers -= 1
    return None


async def _pictures(socket: WebSocket, service: Service, number: int | None) -> None:
    stream, view = None, View(service.binning.sensor)
    try:
        while not service.stopping:
            chosen = _chosen(service, number)
            if chosen is not stream:
                _look_away(stream, view)
                stream, view = chosen, View(service.binning.sensor)
                _look_at(stream, view)
            await socket.send_text(_picture(service, stream, view))
            await asyncio.sleep(PAUSE)
    finally:
        _look_away(stream, view)
    await socket.close(STOPPING, "the server is stopping")


def _chosen(service: Service, number: int | None) -> Stream | None:
    """Return the stream with that number if it is open, otherwise the newest one."""
    if number is not None and number in service.streams:
        return service.streams[number]
    return service.streams[next(reversed(service.streams))] if service.streams else None


def _look_at(stream: Stream | None, view: View) -> None:
    if stream is not None:
        stream.views = (*stream.views, view)


def _look_away(stream: Stream | None, view: View) -> None:
    if stream is not None:
        stream.views = tuple(each for each in stream.views if each is not view)


def _picture(service: Service, stream: Stream | None, view: View) -> str:
    newest = list(service.streams.values())[-LISTED:]
    metrics = service.metrics
    facts = {
        "model": service.model.program.name,
        "streams": [[each.number, each.events] for each in reversed(newest)],
        "open": len(service.streams),
        "total": {"events": metrics.events, "decisions": metrics.decisions, "dropped": metrics.dropped.total()},
        "latency_ms": [None if value != value else 1e3 * value for value in metrics.percentiles().values()],
    }
    if stream is None:
        return message("view", **facts, stream=None)
    return message("view", **facts, stream=stream.number, events=stream.events, dropped=stream.dropped(), **view.take())
