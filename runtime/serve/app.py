"""The addresses of a server: ``/stream`` and ``/watch`` (WebSocket), ``/``, ``/health`` and ``/metrics``.

If the server has a token, clients need it. It is checked before a WebSocket exists. Cross-origin requests are refused:
a browser states the origin of the page, which must be the server's own address. Without a token the server answers only
to names that it knows (on loopback, those of loopback; else numeric addresses and this machine's name as well), so that
no other site can point its own name at the server. If names are given, they take the place of this machine's name, and
hold with a token, too.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection
from importlib.resources import files
from ipaddress import ip_address
from socket import gethostname
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from axonnx.base.palette import colour_variables
from axonnx.runtime.serve.connection import follow
from axonnx.runtime.serve.limits import CONTENT_TYPE, resident_bytes
from axonnx.runtime.serve.service import Service
from axonnx.runtime.serve.watching import watch

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
BEARER = "Bearer "
UNKNOWN_HOST = "the server does not know this name of its own; use its address, or list the name after its host"
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


def make_app(
    service: Service, token: str | None = None, loopback: bool = True, names: Collection[str] = ()
) -> Starlette:
    """Make the web application of a service that listens on loopback or not, and is known by the given names."""
    page = page_text()

    def is_known(connection: HTTPConnection) -> bool:
        return is_known_host(connection, token, loopback, names)

    async def show(request: Request) -> Response:
        return HTMLResponse(page, headers=PAGE_RULES)

    async def health(request: Request) -> Response:
        return JSONResponse(health_of(service), 503 if service.stopping else 200)

    async def metrics(request: Request) -> Response:
        if not has_token(request, token):
            return PlainTextResponse("a token is required: Authorization: Bearer TOKEN\n", 401)
        return PlainTextResponse(service.metrics.text(gauges(service)), media_type=CONTENT_TYPE)

    async def let_in(socket: WebSocket) -> bool:
        refusal = _refusal(socket, service, token, is_known(socket))
        if refusal is None:
            await socket.accept()
            return True
        status, kind, text = refusal
        service.metrics.refused[kind] += 1
        await socket.send_denial_response(PlainTextResponse(f"{text}\n", status))
        return False

    async def stream(socket: WebSocket) -> None:
        if await let_in(socket):
            await follow(socket, service)

    async def look_on(socket: WebSocket) -> None:
        if await let_in(socket):
            await watch(socket, service)

    def known(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            if is_known(request):
                return await answer(request)
            return PlainTextResponse(f"{UNKNOWN_HOST}\n", 400)

        return guarded

    routes = [Route("/", known(show)), Route("/health", known(health)), Route("/metrics", known(metrics))]
    return Starlette(routes=[*routes, WebSocketRoute("/stream", stream), WebSocketRoute("/watch", look_on)])


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
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc != connection.headers.get("host")
    except ValueError:  # such as http://[
        return True


def is_known_host(connection: HTTPConnection, token: str | None, loopback: bool, names: Collection[str] = ()) -> bool:
    """Return whether the request names the server by a name that it knows. A token makes other names harmless."""
    name = connection.headers.get("host", "").lower()
    name = name.partition("]")[0] + "]" if name.startswith("[") else name.partition(":")[0].removesuffix(".")
    if name in LOOPBACK or name in names or (token is not None and not names):
        return True
    return not loopback and (_is_address(name.strip("[]")) or (not names and name == gethostname().lower()))


def _is_address(name: str) -> bool:
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def _refusal(socket: WebSocket, service: Service, token: str | None, known: bool) -> tuple[int, str, str] | None:
    """Return the HTTP status, a word for the metrics and the reason; None if the client may come in."""
    if not known:
        return 400, "host", UNKNOWN_HOST
    if from_elsewhere(socket):
        return 403, "origin", "the request comes from a page of another site; open the page of this server"
    if not has_token(socket, token):
        return 401, "token", "a token is required: the header Authorization: Bearer TOKEN, or ?token=TOKEN"
    if socket.client is not None and service.door.is_full_for(socket.client.host):
        most = service.limits.per_address
        return 429, "address_quota", f"your address has {most} connections, the most that are allowed; close one"
    return None
