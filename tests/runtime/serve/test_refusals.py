"""What a server does not take: each is told why, in words and by a code, and the server goes on."""

import os
import random
import socket as sockets
from contextlib import suppress
from urllib.error import HTTPError

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import make_events, to_records
from axonnx.runtime.model import load
from axonnx.runtime.serve.limits import Limits
from axonnx.runtime.serve.messages import RefusedError, read_order
from axonnx.runtime.serve.server import listen
from axonnx.runtime.serve.service import Service

from .live import HOST, everything, follow, serving, told
from .test_admission import ended, frame, raw

RECORDS = to_records(make_events([100, 6_000], 1))


@pytest.fixture(scope="module")
def live(files):
    with serving(files["plain"], limits=Limits(message_bytes=1024)) as live:
        yield live


def still_serves(live):
    _, decisions, rest, code = follow(live, [make_events([100, 6_000], 1)])
    return (len(decisions), rest[0]["events"], code) == (2, 2, 1000)


@pytest.mark.parametrize(
    ("content", "code", "text"),
    [
        (RECORDS[:-1], 1007, "the message has 31 bytes; expected whole records of 16 bytes"),
        (RECORDS[:13] + b"\1" + RECORDS[14:], 1007, "bytes 13 to 15 are [1, 0, 0]; expected zeros"),
        (b"\0" * 1040, 1009, "the message has 1040 bytes; expected at most 1024"),
        ("x" * 1025, 1009, "the message has 1025 bytes"),
        ("hello", 1003, "a text message with something that is not JSON"),
        ("[" * 1000, 1003, "a text message with something that is not JSON"),
        ("[]", 1003, "a text message with JSON that is not an object"),
        ('{"type": "stop"}', 1003, "a text message with type 'stop'"),
        ('{"type": ["save"]}', 1003, "a text message with type"),
        ('{"type": "advance"}', 1003, "a text message with t_us None"),
        ('{"type": "advance", "t_us": 1e3}', 1003, "a text message with t_us 1000.0"),
        ('{"type": "advance", "t_us": 99999999999999999999}', 1003, "not a 64-bit number of microseconds"),
        ('{"type": "save"}', 1008, "this server saves no sessions"),
    ],
)
def test_a_message_that_is_not_understood_ends_the_stream(live, content, code, text):
    with live.client() as client:
        told(client)
        client.send(RECORDS)
        client.send(content)
        messages, found, reason = everything(client)
    assert [each["type"] for each in messages] == ["decision", "error"]  # what came before it is answered
    assert text in messages[-1]["text"]
    assert (found, messages[-1]["code"]) == (code, code)
    assert messages[-1]["text"].startswith(reason)
    assert reason
    assert still_serves(live)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("every_bin=2", "every_bin is '2'; expected 0 or 1"),
        ("bins=1", "the address has the unknown parameter 'bins'; known are"),
        ("session=../../etc/passwd", "this server saves no sessions"),
    ],
)
def test_an_address_that_asks_for_what_there_is_not(live, asked, text):
    with live.client(f"/stream?{asked}") as client:
        messages, code, _ = everything(client)
    assert (len(messages), code) == (1, 1008)
    assert text in messages[0]["text"]


def test_a_message_beyond_all_limits_is_cut_off_and_the_server_goes_on(live):
    with live.client() as client:
        told(client)
        with suppress(ConnectionClosed, OSError):  # it may be cut off while it still sends
            client.send(b"\0" * 2**22)
        with pytest.raises((ConnectionClosed, OSError)):
            client.recv(timeout=20)
    assert still_serves(live)


def test_more_clients_than_the_limit_are_told_to_come_back(files):
    with serving(files["plain"], limits=Limits(clients=2)) as live:
        with live.client() as first, live.client() as second:
            assert told(first)["type"] == told(second)["type"] == "hello"
            with live.client() as third:
                messages, code, reason = everything(third)
            assert (messages[0]["code"], code) == (1013, 1013)
            assert reason == "2 streams are open, the most that are allowed; try again later"
            first.send('{"type": "end"}')
            assert everything(first)[1] == 1000
            with live.client() as third:
                assert told(third)["type"] == "hello"
        assert live.metric('streams_refused_total{reason="clients"}') == 1


def test_no_stream_begins_beyond_the_limit_of_memory(files):
    with serving(files["plain"], limits=Limits(memory_bytes=2**20)) as live, live.client() as client:
        messages, code, _ = everything(client)
        assert code == 1013
        assert "more than its limit of 1 MiB; try again later" in messages[0]["text"]


def test_without_the_token_nobody_comes_in(files):
    with serving(files["plain"], token="a secret") as live:
        for path, headers in [
            ("/stream", {}),
            ("/stream?token=a+wrong+one", {}),
            ("/watch", {}),
            ("/stream", {"Authorization": "Bearer another"}),
            ("/stream?token=a+secret", {"Authorization": "Bearer another"}),
        ]:
            with pytest.raises(InvalidStatus) as refused, live.client(path, additional_headers=headers):
                pass  # no WebSocket came into being
            assert refused.value.response.status_code == 401
            assert refused.value.response.body.startswith(b"a token is required")
        with pytest.raises(HTTPError, match="401"):
            live.get("/metrics")
        assert "axonnx_streams_total 0" in live.get("/metrics", Authorization="Bearer a secret")
        assert '"status":"ok"' in live.get("/health")
        with live.client("/stream?token=a+secret") as client:
            assert told(client)["type"] == "hello"
        with live.client(additional_headers={"Authorization": "Bearer a secret"}) as client:
            assert told(client)["type"] == "hello"


def test_pages_of_other_sites_and_names_of_other_hosts_are_refused(live):
    for origin in ("http://elsewhere.example", "http://[", "null"):
        with pytest.raises(InvalidStatus) as refused, live.client(origin=origin):
            pass
        assert refused.value.response.status_code == 403
        assert b"another site" in refused.value.response.body
    with live.client(origin=f"http://{HOST}:{live.port}") as client:
        assert told(client)["type"] == "hello"
    with pytest.raises(HTTPError, match="400"):
        live.get("/health", Host="rebound.example")
    with pytest.raises(InvalidStatus, match="400"), live.client(additional_headers={"Host": "rebound.example"}):
        pass


def test_noise_on_the_port_and_clients_that_vanish_leave_the_server_as_it_was(live):
    generator = random.Random(0)
    upgrade = (
        f"GET /stream HTTP/1.1\r\nHost: {HOST}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Ng==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()
    for case in range(60):
        with sockets.create_connection((HOST, live.port), timeout=10) as raw:
            noise = generator.randbytes(generator.randrange(1, 400))
            raw.sendall([noise, upgrade + noise, upgrade[: case * 3], upgrade + b"\x82\xfe"][case % 4])
    for _ in range(5):
        with live.client() as client:
            told(client)
            client.send(RECORDS)
            client.socket.shutdown(sockets.SHUT_RDWR)
    assert still_serves(live)
    assert live.metric("faults_total") == 0


def test_a_fault_of_ours_ends_one_stream_and_not_the_server(files, monkeypatch, caplog):
    with serving(files["plain"]) as live:
        with live.client() as client:
            told(client)
            with monkeypatch.context() as broken:
                broken.setattr("axonnx.runtime.serve.client_stream.from_records", lambda *words: 1 / 0)
                client.send(RECORDS)
                messages, code, _ = everything(client)
        assert code == 1011
        assert messages[-1]["text"] == "an internal error of the server ended this stream"
        assert live.metric("faults_total") == 1
        assert "ZeroDivisionError" in caplog.text
        assert still_serves(live)


@pytest.mark.parametrize("name", ["frames", "images"])
def test_files_without_a_stream_are_refused(files, name):
    with pytest.raises(AxonnxError, match=name):
        Service(load(files[name]))


def test_limits_and_addresses_that_make_no_sense_are_refused():
    for wrong in ({"clients": 0}, {"message_bytes": 8}, {"grace_s": float("nan")}, {"handover_s": -1}):
        with pytest.raises(AxonnxError, match=next(iter(wrong))):
            Limits(**wrong)
    with listen(HOST, 0) as taken, pytest.raises(AxonnxError, match="cannot listen on"):
        listen(HOST, taken.getsockname()[1])
    with pytest.raises(AxonnxError, match="cannot listen on"):
        listen(HOST, 70_000)


def test_orders_of_any_text_are_read_or_refused():
    generator = random.Random(1)
    for _ in range(300):
        text = '{"type": "' + os.fsdecode(generator.randbytes(6)) + '", "t_us": ' + str(generator.random()) + "}"
        with pytest.raises(RefusedError):
            read_order(text)
    assert read_order('{"type": "advance", "t_us": -5}').t_us == -5


@pytest.mark.parametrize(
    "frames",
    [
        frame(RECORDS, 0xC2),  # compressed, which was not agreed upon
        frame(b"", 0x83),  # an opcode that nobody defined
        frame(b"\xff\xfe", 0x81),
        frame(b"\x03\xe8" + b"r" * 123, 0x88),
        frame(b"\x03\xe8" + b"r" * 124, 0x88),  # longer than a control frame may be
        frame(b"\x03\xe8" + b"\xff" * 9, 0x88),
        frame(b"\x03", 0x88),
        frame(b"\x00\x00", 0x88),
        frame(b"x", 0x09),  # a ping in fragments
        frame(RECORDS, 0x80),  # the rest of a message that never began
        frame(RECORDS, 0x02) + frame(RECORDS, 0x82),  # another message amid one
        frame(b"x" * 1000, 0x02) + frame(b"x" * 1000, 0x00) * 9,
        b"\x82" + frame(RECORDS)[1:2].replace(b"\xa0", b"\x20") + RECORDS,  # not masked
        b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff" + bytes(9),
        b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" + bytes(9),
    ],
)
def test_frames_against_the_protocol_end_their_connection_alone(live, frames):
    faults = live.service.metrics.faults
    with raw(live) as connection:
        while b'"hello"' not in connection.recv(2**16):
            pass
        with suppress(OSError):
            connection.sendall(frames)
        assert ended(connection, 10)
    assert still_serves(live)
    assert live.service.metrics.faults == faults


@pytest.mark.parametrize(
    "path",
    [
        "/stream?session=" + "%00" * 22,
        "/stream?session=" + "A" * 22 + "%0A",
        "/stream?session=%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/stream?session=" + "A" * 22 + "&decisions=" + "9" * 5000,
        "/stream?session=" + "A" * 22 + "&decisions=%D9%A3",
        "/stream?every_bin=" + "%F0%9F%92%A9",
        "/watch?stream=" + "9" * 5000,
        "/watch?stream=%C2%B2",
    ],
)
def test_addresses_of_any_kind_are_refused_with_a_reason(live, path):
    with live.client(path) as client:
        messages, code, _ = everything(client)
    assert (messages[0]["type"], code) == ("error", 1008)
    assert still_serves(live)
    assert live.service.metrics.faults == 0
