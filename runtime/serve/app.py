"""The addresses of a server: ``/stream`` and ``/watch`` (WebSocket), ``/``, ``/health`` and ``/metrics``.

If the server has a token, clients need it. Cross-origin requests are refused: a browser states the origin of the page,
which must be the server's own address. A server bound to loopback answers only to loopback names, so that no other site
can point its own name at the server.
"""

from __future__ import annotations

import hmac
from importlib.resources import files
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from axonnx.base.palette import colour_variables
from axonnx.runtime.serve.connection import follow, refuse
from axonnx.runtime.serve.counters import CONTENT_TYPE
from axonnx.runtime.serve.limits import resident_bytes
from axonnx.runtime.serve.messages import NOT_ALLOWED, RefusedError
from axonnx.runtime.serve.service import Service
from axonnx.runtime.serve.watching import watch

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
BEARER = "Bearer "
PAGE_RULES = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def page_text() -> str:
    """Return the page at ``/`` with the colours of all our pictures."""
    return (files("axonnx.runtime.serve") / "page.html").read_text("utf-8").replace("/* colours */", colour_variables())


def make_app(service: Service, token: str | None = None, loopback: bool = True) -> Starlette:
    """Make the web application of a service."""
    page = page_text()

    async def show(request: Request) -> Response:
        return HTMLResponse(page, headers=PAGE_RULES)

    async def health(request: Request) -> Response:
        return JSONResponse(health_of(service), 503 if service.stopping else 200)

    async def metrics(request: Request) -> Response:
        if not has_token(request, token):
            return PlainTextResponse("a token is required: Authorization: Bearer TOKEN\n", 401)
        return PlainTextResponse(service.metrics.text(gauges(service)), media_type=CONTENT_TYPE)

    async def stream(socket: WebSocket) -> None:
        if await _let_in(socket, service, token):
            await follow(socket, service)

    async def look_on(socket: WebSocket) -> None:
        if await _let_in(socket, service, token):
            await watch(socket, service)

    middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK)] if loopback else []
    routes = [Route("/", show), Route("/health", health), Route("/metrics", metrics)]
    return Starlette(
        routes=[*routes, WebSocketRoute("/stream", stream), WebSocketRoute("/watch", look_on)], middleware=middleware
    )


def health_of(service: Service) -> dict[str, object]:
    """Return the server's state and the network that it runs."""
    return {
        "status": "stopping" if service.stopping else "ok",
        "model": service.model.program.name,
        "engine": service.model.engine.name,
        "threads": service.threads,
        "streams": len(service.streams),
        "clients": service.limits.clients,
    }


def gauges(service: Service) -> dict[str, tuple[str, float]]:
    """Return the values that rise and fall."""
    return {
        "streams_open": ("Open streams", len(service.streams)),
        "sessions_on_disk": ("Sessions that can be resumed", service.saved.count()),
        "resident_bytes": ("Memory of the process", resident_bytes()),
    }


def has_token(connection: HTTPConnection, token: str | None) -> bool:
    """Return whether a request has the token, in its header or (as browsers must) in its address."""
    if token is None:
        return True
    header = connection.headers.get("authorization", "")
    given = header.removeprefix(BEARER) if header.startswith(BEARER) else connection.query_params.get("token", "")
    return hmac.compare_digest(given.encode(), token.encode())


def from_elsewhere(connection: HTTPConnection) -> bool:
    """Return whether the request is cross-origin; browsers state the origin of the page."""
    origin = connection.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != connection.headers.get("host")


async def _let_in(socket: WebSocket, service: Service, token: str | None) -> bool:
    await socket.accept()
    if from_elsewhere(socket):
        text = "the request comes from a page of another site; open the page of this server"
        await refuse(socket, service, RefusedError(NOT_ALLOWED, "origin", text))
        return False
    if not has_token(socket, token):
        text = "a token is required: the header Authorization: Bearer TOKEN, or ?token=TOKEN"
        await refuse(socket, service, RefusedError(NOT_ALLOWED, "token", text))
        return False
    return True
