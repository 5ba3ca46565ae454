"""Clients that are not let in, or are greedy, cost little and keep nobody out."""

import json
import logging
import socket as sockets
import ssl
import struct
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import HTTPError

import pytest
from starlette.requests import HTTPConnection
from websockets.sync.client import connect

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import make_events, to_records
from axonnx.runtime.serve.admission import LOG_LINES, RateLimited
from axonnx.runtime.serve.app import is_known_host
from axonnx.runtime.serve.limits import Limits, resident_bytes
from axonnx.runtime.serve.server import Access, Listener, listen, split_host

from .live import HOST, everything, follow, serving, told

UPGRADE = (
    f"GET /stream HTTP/1.1\r\nHost: {HOST}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Ng==\r\nSec-WebSocket-Version: 13\r\n\r\n"
).encode()
POST = f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 9\r\n\r\n".encode()
PING = b"\x89\xfd" + bytes(4) + b"p" * 125  # masked with zeros
EMPTY = b"\x82\x80" + bytes(4)
EVENTS = make_events([100, 6_000], 1)


def frame(content, opcode=0x82):
    length = len(content)
    size = bytes([0x80 | length]) if length < 126 else b"\xfe" + struct.pack(">H", length)
    return bytes([opcode]) + size + bytes(4) + content


def raw(live, greeting=UPGRADE):
    made = sockets.create_connection((HOST, live.port), timeout=10)
    made.sendall(greeting)
    return made


@contextmanager
def opened(live, count, greeting=b""):
    with ExitStack() as stack:
        yield [stack.enter_context(raw(live, greeting)) for _ in range(count)]


def ended(connection, seconds=10):
    connection.settimeout(seconds)
    try:
        while connection.recv(2**16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def pour(connection, data, seconds):
    """Send without ever reading, for some time or until the server takes no more; what it took."""
    connection.settimeout(0.3)
    end, taken = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        try:
            taken += connection.send(data)
        except TimeoutError:
            break
    return taken


def test_connections_that_say_nothing_make_room_for_those_that_do(files):
    limits = Limits(clients=4, pending=20, pending_per_address=10, header_s=60)
    with serving(files["plain"], limits=limits) as live, live.client() as running:
        told(running)
        with opened(live, 300) as bare, opened(live, 9, UPGRADE[:40]) as slow:
            _, decisions, rest, code = follow(live, [EVENTS])
            assert (len(decisions), rest[0]["events"], code) == (2, 2, 1000)
            assert all(ended(each, 2) for each in bare[:280])
            assert not ended(slow[-1], 0.2)
            assert len(live.service.door._pending) <= 10
        running.send(to_records(EVENTS))
        running.send('{"type": "end"}')
        assert everything(running)[1] == 1000
    assert not live.service.door._pending
    assert live.service.door.accepted.total() == 0


@pytest.mark.parametrize(
    "greeting", [b"", b"GET / HTTP/1.1\r\n", UPGRADE[:-2], b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n"]
)
def test_a_request_has_a_deadline(files, greeting):
    with serving(files["plain"], limits=Limits(header_s=0.3)) as live:
        with opened(live, 1, greeting) as (connection,):
            assert ended(connection)
        with live.client() as client:  # the deadline is that of requests alone
            told(client)
            time.sleep(0.6)
            client.send('{"type": "end"}')
            assert everything(client)[1] == 1000


def test_a_silent_connection_is_asked_and_then_cut(files):
    with serving(files["plain"], limits=Limits(quiet_s=0.3)) as live:
        with raw(live) as dead, live.client() as alive:  # this one answers pings
            told(alive)
            assert ended(dead, 5)
            time.sleep(1.5)
            alive.send('{"type": "end"}')
            assert everything(alive)[1] == 1000
        assert live.service.metrics.refused["silent"] == 1


@pytest.mark.parametrize("flood", [PING * 500, EMPTY * 10_000, frame(b"x", 0x02) + frame(b"", 0x00) * 10_000])
def test_a_flood_is_held_back_and_takes_no_memory(files, flood):
    """Pings, empty messages and empty fragments of clients that never read."""
    limits = Limits(pending=64)
    with serving(files["plain"], limits=limits) as live, opened(live, 8, UPGRADE) as greedy:
        time.sleep(0.5)
        before = resident_bytes()
        for connection in greedy:
            pour(connection, flood, 0.2)
        _, decisions, _, code = follow(live, [EVENTS])
        assert (len(decisions), code) == (2, 1000)
        held = resident_bytes() - before
    assert held / len(greedy) < 2**20  # the system's buffers, 512 KiB, do not count here


def test_pings_are_answered_while_decisions_are_not_read(files):
    """A client that is slow to read sees its pongs behind the decisions, and does not lose its connection."""
    events = make_events([5_000 * n for n in range(1_500)], 3)
    with serving(files["plain"]) as live, live.client("/stream?every_bin=1", max_queue=1) as slow:
        slow.send(to_records(events))
        pong = slow.ping()
        count = 0
        while count < 5 * 1_499:
            count += told(slow)["type"] == "decision"
            if count % 500 == 0:
                time.sleep(0.02)
        assert pong.wait(10)


def test_an_address_has_a_quota(files, monkeypatch):
    monkeypatch.setattr("axonnx.runtime.serve.admission.is_loopback", lambda address: False)
    with serving(files["plain"], limits=Limits(per_address=2)) as live:
        with live.client() as first, live.client() as second:
            told(first), told(second)
            with raw(live) as third:
                assert third.recv(2**12).startswith(b"HTTP/1.1 429")
        live.stop()
    assert live.service.metrics.refused["address_quota"] == 1


def test_files_are_kept_in_reserve():
    with listen(HOST, 0) as listener:
        assert isinstance(listener, Listener)
        listener.first_reserved = 3
        with sockets.create_connection(listener.getsockname(), timeout=5) as client:
            with pytest.raises(ConnectionAbortedError, match="no files are left"):
                listener.accept()
            assert ended(client)


@pytest.mark.parametrize(
    ("host", "token", "loopback", "known"),
    [
        ("127.0.0.1:8080", None, True, True),
        ("localhost", None, True, True),
        ("[::1]:80", None, True, True),
        ("rebound.example", None, True, False),
        ("rebound.example", "secret", True, True),
        ("192.168.0.7:8080", None, True, False),
        ("192.168.0.7:8080", None, False, True),
        ("[fe80::1]:8080", None, False, True),
        ("rebound.example:8080", None, False, False),
        ("rebound.example", "secret", False, True),
        (sockets.gethostname().upper(), None, False, True),
        ("", None, False, False),
    ],
)
def test_names_of_the_server(host, token, loopback, known):
    """Without a token, a page of another site could point its own name at the server."""
    connection = HTTPConnection({"type": "http", "headers": [(b"host", host.encode())]})
    assert is_known_host(connection, token, loopback) == known


@pytest.mark.parametrize(
    ("host", "token", "loopback", "known"),
    [
        ("Decisions.example:443", None, True, True),
        ("decisions.example.", None, False, True),
        ("other.example", None, False, True),
        ("rebound.example", None, True, False),
        ("rebound.example", "secret", True, False),  # a list holds with a token, too
        ("decisions.example.rebound.example", "secret", False, False),
        (sockets.gethostname(), None, False, False),
        ("127.0.0.1", None, True, True),
        ("192.168.0.7", None, False, True),
        ("192.168.0.7", None, True, False),
        ("", "secret", False, False),
    ],
)
def test_names_of_the_server_can_be_listed(host, token, loopback, known):
    _, names = split_host("0.0.0.0,Decisions.example, other.example.")
    connection = HTTPConnection({"type": "http", "headers": [(b"host", host.encode())]})
    assert is_known_host(connection, token, loopback, names) == known


def test_a_listed_name_is_served_and_another_one_is_not(files):
    address, names = split_host("127.0.0.1,decisions.example")
    assert address == HOST
    with serving(files["plain"], access=Access(names=names)) as live:
        assert "ok" in live.get("/health", Host="decisions.example")
        for path in ("/", "/health", "/metrics"):
            with pytest.raises(HTTPError, match="400"):
                live.get(path, Host="rebound.example")
        for name, answer in ((b"decisions.example", b"101"), (b"rebound.example", b"400")):
            with opened(live, 1, UPGRADE.replace(b"Host: " + HOST.encode(), b"Host: " + name)) as (connection,):
                assert connection.recv(2**12).split()[1] == answer


@pytest.mark.parametrize("host", ["", ",a", "0.0.0.0,", "::1,http://a", "::1,a:80", "::1,*", "::1,a b", "::1,a..b"])
def test_names_that_no_host_has_are_refused(host):
    with pytest.raises(AxonnxError, match="after commas names of the server"):
        split_host(host)


def test_lines_that_clients_can_cause_are_limited():
    limit, record = RateLimited(), logging.makeLogRecord({"msg": "invalid"})
    assert sum(limit.filter(record) for _ in range(1_000)) == LOG_LINES
    limit._since -= 61
    assert limit.filter(record)
    assert record.getMessage() == "(980 lines were left out) invalid"


def test_tls_by_files(files, tmp_path):
    certificate, key, both = (str(tmp_path / name) for name in ("certificate.pem", "key.pem", "both.pem"))
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key]
    words += ["-out", certificate, "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl makes the certificate of this test")
    with pytest.raises(AxonnxError, match="cannot be used for TLS"):
        Access(certificate=certificate).check()
    Path(both).write_text(Path(certificate).read_text() + Path(key).read_text())
    access = Access(certificate=both)
    access.check()
    trust = ssl.create_default_context(cafile=certificate)
    with serving(files["plain"], access=access, limits=Limits(header_s=0.3)) as live:
        with sockets.create_connection((HOST, live.port)) as bare:
            assert ended(bare, 5)  # a handshake has the deadline, too
        with connect(f"wss://{HOST}:{live.port}/stream", ssl=trust, proxy=None) as client:
            told(client)
            client.send(to_records(EVENTS))
            client.send(json.dumps({"type": "end"}))
            assert everything(client)[1] == 1000
