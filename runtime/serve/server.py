"""Serve a model file on a port until the server is stopped."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from axonnx.base.errors import AxonnxError
from axonnx.base.progress import SIGNALS
from axonnx.runtime.serve.admission import DoorConfig, HttpProtocol, WebSocketProtocol, limit_logs
from axonnx.runtime.serve.app import LOOPBACK, make_app
from axonnx.runtime.serve.limits import make_room_for_files
from axonnx.runtime.serve.service import Service

TOKEN = "AXONNX_TOKEN"
NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")  # of a host
BACKLOG = 2048  # connections that the system holds until they are accepted
AT_ONCE = 32  # connections that are accepted in one turn of the event loop
BUFFER = 2**17  # bytes that the system buffers per connection and direction (Linux doubles it)
DEAD_AFTER_S = 60  # time until the system detects a peer that vanished silently
FAREWELL_S = 2.0  # time for clients to answer the closing message
HARD_LIMIT = 4  # × the message limit: up to here a message is refused with a reason, beyond it the connection is cut


class Server(uvicorn.Server):
    """A uvicorn server that saves its streams before their connections close."""

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self.service, self.ready = service, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. The event loop takes few connections at a time, while the system holds many."""
        loop = asyncio.get_running_loop()
        if self.config.is_ssl:  # a handshake that never ends is a pending connection, too
            seconds = self.service.limits.header_s
            loop.create_server = partial(loop.create_server, ssl_handshake_timeout=seconds)  # type: ignore[method-assign]
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)
        self.ready()  # from here on signals stop it in good order

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, then end the streams, then close the connections."""
        for listener in self.servers:
            listener.close()
        await self.service.stop()
        patience = min(FAREWELL_S, self.service.limits.grace_s)
        while self.server_state.connections and patience > 0:
            await asyncio.sleep(0.05)
            patience -= 0.05
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):  # clients that do not read their remaining data
            connection.transport.abort()
        await asyncio.sleep(0)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT, SIGTERM and SIGHUP without raising them again, because stopping is not an error."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self.handle_exit) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Listener(socket.socket):
    """A socket that accepts no connection if its file would be one of those in reserve."""

    first_reserved: int | None = None

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection. Systems give the lowest free number, so a high one means that few are left."""
        connection, address = super().accept()
        if self.first_reserved is not None and connection.fileno() >= self.first_reserved:
            connection.close()
            raise ConnectionAbortedError("no files are left for connections")
        return connection, address


def listen(host: str, port: int) -> Listener:
    """Return a socket bound to an address; port 0 selects any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = Listener(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit these. Small buffers limit the system's memory, and back-pressure soon reaches a client.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    # Clients could not answer a WebSocket ping while back-pressure stops their reading, so TCP checks the connection.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, DEAD_AFTER_S)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as fault:
        listener.close()
        reason = getattr(fault, "strerror", None) or fault
        raise AxonnxError(
            f"serve: cannot listen on {host}:{port} ({reason}); choose another host or port", options=("host", "port")
        ) from None
    listener.listen(BACKLOG)
    return listener


@dataclass(frozen=True)
class Access:
    """Who may connect: clients with the token, by TLS if there is a file with a certificate and its private key.

    If there are names, clients must name the server by one of them (or by its address).
    """

    token: str | None = None
    certificate: str | None = None
    names: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse a certificate that cannot be used before anything is served."""
        if self.certificate is None:
            return
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, None, lambda: "")
        except (OSError, ValueError) as fault:
            raise AxonnxError(
                f"{self.certificate}: cannot be used for TLS ({fault}); expected a PEM file with a certificate and its "
                f"private key without a password: cat certificate.pem key.pem > both.pem",
                options=("certificate",),
            ) from None


def make_server(
    service: Service, host: str, access: Access | None = None, ready: Callable[[], None] = lambda: None
) -> Server:
    """Make a server that runs on a socket of ``listen``, and calls ``ready`` once it accepts connections."""
    access = access or Access()
    config = DoorConfig(
        make_app(service, access.token, host in LOOPBACK, access.names),
        http=HttpProtocol,
        ws=WebSocketProtocol,
        loop="asyncio",
        log_config=None,
        access_log=False,
        lifespan="off",
        ws_max_size=HARD_LIMIT * service.limits.message_bytes,
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        server_header=False,
        backlog=AT_ONCE,
        timeout_graceful_shutdown=1,
        ssl_certfile=access.certificate,
    )
    config.door = service.door
    return Server(config, service, ready)


def split_host(host: str) -> tuple[str, tuple[str, ...]]:
    """Return the address to listen on, and the names after it: ``0.0.0.0,decisions.example``."""
    address, *names = (part.strip() for part in host.lower().split(","))
    wrong = [name for name in names if not NAME.fullmatch(name)]
    if wrong or not address:
        raise AxonnxError(
            f"serve: host is {host!r}; expected an address, and after commas names of the server without scheme and "
            f"port, as in 0.0.0.0,decisions.example",
            options=("host",),
        )
    return address, tuple(name.removesuffix(".") for name in names)


def read_token(path: Path | None) -> str | None:
    """Return the first line of a file, or what AXONNX_TOKEN holds; other users can see words of the command line."""
    if path is None:
        return os.environ.get(TOKEN) or None
    lines = path.read_text("utf-8").splitlines()
    if not lines or not lines[0].strip():
        raise AxonnxError(f"{path}: holds no token; expected one in its first line")
    return lines[0].strip()


def serve(
    service: Service,
    host: str = "127.0.0.1",
    port: int = 8080,
    access: Access | None = None,
    *,
    ready: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        service: The network and its streams.
        host: Address to listen on.
        port: Port to listen on; 0 selects any free port.
        access: Who may connect. Default: whoever reaches the port.
        ready: Called with the server's address when it listens.

    Raises:
        AxonnxError: If the server cannot listen on the address, or the system allows too few open files.
    """
    access, limits = access or Access(), service.limits
    access.check()
    first_reserved = make_room_for_files(limits.clients + limits.watchers, limits.pending)
    listener = listen(host, port)
    listener.first_reserved = first_reserved
    name = f"[{host}]" if ":" in host else host
    limit_logs()
    address = f"http{'s' if access.certificate else ''}://{name}:{listener.getsockname()[1]}/"
    try:
        make_server(service, host, access, lambda: ready(address)).run(sockets=[listener])
    finally:
        listener.close()
        service.release()
