"""What clients of a server send: records, orders and addresses, whole and damaged, through the application itself."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import numpy as np

from axonnx.runtime.events.arrays import Events, to_records
from axonnx.runtime.model import Model
from axonnx.runtime.serve.app import make_app
from axonnx.runtime.serve.limits import Limits
from axonnx.runtime.serve.service import Service
from axonnx.runtime.streams.session import Session
from tests.fuzz.harness import Finding
from tests.fuzz.numbers import damage
from tests.fuzz.recording_samples import some_events
from tests.fuzz.stream_runs import engines

NAME = "messages"
ORDERS = ('{"type": "advance", "t_us": 90000}', '{"type": "save"}', '{"type": "end"}', '{"type": 3}', "[]", "\0")
ADDRESSES = (
    b"",
    b"every_bin=1",
    b"every_bin=x",
    b"session=..%2f..",
    b"session=AAAAAAAAAAAAAAAAAAAAAA",
    b"%00=%ff",
    b"a=b",
)
END = '{"type": "end"}'
_SERVICE: list[Service] = []

Message = str | bytes


def setup() -> None:
    """One service for all cases."""
    engine = next(iter(engines().values()))
    _SERVICE.append(Service(Model(engine.program, engine), limits=Limits(message_bytes=4096), threads=1))


def material(seed: int) -> bytes:
    """The messages of a case."""
    return repr(_case(seed)[:2]).encode()


def case(seed: int) -> str:
    """Refused in words, or decided as a session decides; the server goes on in either case."""
    address, messages, events = _case(seed)
    service = _SERVICE[0]
    faults = service.metrics.faults
    sent = asyncio.run(_drive(service, address, messages))
    texts = [json.loads(each["text"]) for each in sent if each["type"] == "websocket.send"]
    kinds = [text["type"] for text in texts]
    if service.metrics.faults > faults or service.streams:
        raise Finding(f"a fault of the server, or a stream that stays: {kinds[-3:]}")
    if sent[-1]["type"] != "websocket.close" or not (kinds[-1:] == ["error"] or kinds[-1:] == ["summary"]):
        raise Finding(f"no clear end: {kinds[-3:]}, {sent[-1]['type']}")
    if kinds[-1] == "error":
        return "refused"
    if events is not None:
        _compare([text for text in texts if text["type"] == "decision"], events, b"every_bin=1" in address)
    return "accepted"


def _compare(decisions: list[dict[str, Any]], events: Events, every_bin: bool) -> None:
    session = Session(_SERVICE[0].model.engine, every_bin=every_bin)
    expected = [each.as_dict()["logits"] for each in session.push(events) + session.flush()]
    if [each["logits"] for each in decisions] != expected:
        raise Finding("decisions differ from a session's on the same events")


def _case(seed: int) -> tuple[bytes, list[Message], Events | None]:
    """An address, messages, and the events in them where nothing was damaged."""
    rng = random.Random(seed)
    events = some_events()
    events["t"] = np.sort(events["t"])
    cuts = sorted(rng.randrange(len(events) + 1) for _ in range(rng.randrange(6)))
    messages: list[Message] = [to_records(part) for part in np.split(events, cuts)]
    if rng.random() < 0.4:
        return rng.choice(ADDRESSES[:2]), [*messages, END], events
    at = rng.randrange(len(messages))
    if rng.random() < 0.5:
        messages[at] = damage(rng, bytes(messages[at]) or b"\0", to_records(events))  # type: ignore[arg-type]
    else:
        messages.insert(at, rng.choice((*ORDERS, rng.randbytes(rng.randrange(6000)), "x" * rng.randrange(6000))))
    return rng.choice(ADDRESSES), [*messages, END], None


async def _drive(service: Service, address: bytes, messages: list[Message]) -> list[dict[str, Any]]:
    """What the application answers."""
    left: list[dict[str, Any]] = [{"type": "websocket.connect"}]
    for each in messages:
        left.append({"type": "websocket.receive", "text" if isinstance(each, str) else "bytes": each})
    left.append({"type": "websocket.disconnect", "code": 1006})
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return left.pop(0)

    async def send(answer: dict[str, Any]) -> None:
        sent.append(answer)

    scope = {
        "type": "websocket",
        "path": "/stream",
        "raw_path": b"/stream",
        "root_path": "",
        "scheme": "ws",
        "query_string": address,
        "headers": [(b"host", b"127.0.0.1")],
        "subprotocols": [],
        "http_version": "1.1",
        "client": None,
        "server": None,
        "asgi": {"version": "3.0", "spec_version": "2.4"},
    }
    await make_app(service)(scope, receive, send)  # type: ignore[arg-type]
    return sent
