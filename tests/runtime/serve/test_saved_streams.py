"""A server that stops saves its streams; a client goes on where it was, with the same bits."""

import threading
from concurrent.futures import ThreadPoolExecutor
from socket import SO_RCVBUF, SOL_SOCKET, socket

import numpy as np
import pytest

from axonnx.runtime.events.arrays import make_events, to_records
from axonnx.runtime.serve.limits import Limits
from axonnx.runtime.serve.saved import SavedSessions
from axonnx.runtime.serve.service import Rules

from .live import HOST, everything, follow, serving, told
from .test_streams import as_told, busy, cut, expected

RULES = Rules(seed=3)


def sent(client, events):
    """Send, and wait until all of it was taken; the decisions that came."""
    client.send(to_records(events))
    client.send('{"type": "save"}')
    messages = [told(client)]
    while messages[-1]["type"] != "saved":
        messages.append(told(client))
    return messages


@pytest.mark.parametrize("name", ["plain", "noisy"])
def test_a_stopped_server_saves_its_streams_and_clients_go_on(engines, files, tmp_path, name):
    events = busy()
    straight, _ = expected(engines(name), events, seed=3, every_bin=True)
    path = "/stream?every_bin=1"
    with serving(files[name], RULES, sessions=tmp_path) as live, live.client(path) as client:
        key = told(client)["session"]
        first = sent(client, events[:271])
        live.stop()
        last, code, reason = everything(client)
    assert (code, reason) == (1001, "the server is stopping")
    assert [(each["type"], each["session"], each["events"]) for each in last] == [("saved", key, 271)]
    assert [file.name for file in tmp_path.glob("*.npz")] == [f"{key}.npz"]
    with serving(files[name], RULES, sessions=tmp_path) as live:
        again = f"{path}&session={key}"
        hello, decisions, rest, _ = follow(live, cut(events[271:], 2), again)
        assert (hello["events"], hello["session"]) == (271, key)
        assert live.metric("sessions_resumed_total") == 1
    assert as_told([each for each in first if each["type"] == "decision"] + decisions) == straight
    assert rest[0]["events"] == len(events) == rest[0]["binned"] + sum(rest[0]["dropped"].values())
    assert list(tmp_path.glob("*.npz")) == []  # it came to its end


def test_a_client_whose_connection_broke_sends_again_from_where_it_saved(engines, files, tmp_path):
    events = busy()
    straight, _ = expected(engines("plain"), events, every_bin=True)
    with serving(files["plain"], sessions=tmp_path, limits=Limits(handover_s=30)) as live:
        with live.client("/stream?every_bin=1") as client:
            key = told(client)["session"]
            first = sent(client, events[:200])
            client.send(to_records(events[200:400]))  # nobody knows whether this arrived
            client.socket.close()
        hello, decisions, _, _ = follow(live, [events[200:]], f"/stream?every_bin=1&session={key}")
        assert hello["events"] == 200
    assert as_told([each for each in first if each["type"] == "decision"] + decisions) == straight


def test_the_counts_of_what_was_dropped_go_on_too(files, tmp_path):
    from axonnx.runtime.events.arrays import Sensor
    from axonnx.runtime.streams.adapt import Fit

    events, fit = busy(width=16), Fit(Sensor(width=16, height=6), crop=(4, 0))
    with serving(files["plain"], Rules(fit=fit), sessions=tmp_path, limits=Limits(handover_s=30)) as live:
        _, _, straight, _ = follow(live, [events])
        with live.client() as client:
            key = told(client)["session"]
            sent(client, events[:300])
        hello, _, resumed, _ = follow(live, [events[300:]], f"/stream?session={key}")
    assert hello["events"] == 300
    assert resumed == straight
    assert straight[0]["dropped"]["cropped"] > 0


def test_a_client_that_does_not_read_cannot_keep_the_server_from_stopping(engines, files, tmp_path):
    """Its session is saved, as those of all others: with the decisions that it has not read."""
    events, small, slow = make_events(np.arange(800) * 5_000, 3), socket(), {"max_queue": 1, "close_timeout": 0.1}
    small.setsockopt(SOL_SOCKET, SO_RCVBUF, 2**14)
    with serving(files["plain"], sessions=tmp_path, limits=Limits(grace_s=3.0)) as live:
        small.connect((HOST, live.port))
        with live.client() as other, live.client("/stream?every_bin=1", **slow, sock=small) as lazy:
            key = told(other)["session"]
            late = told(lazy)["session"]
            lazy.send(to_records(events))
            live.stop()
            messages, code, _ = everything(other)
        assert ([each["type"] for each in messages], code) == (["saved"], 1001)
    assert {file.stem for file in tmp_path.glob("*.npz")} == {key, late}


def test_a_client_that_is_back_before_its_broken_connection_was_noticed_waits_for_it(engines, files, tmp_path):
    events = busy()
    straight, _ = expected(engines("plain"), events, every_bin=True)
    limits = Limits(handover_s=30)
    with serving(files["plain"], sessions=tmp_path, limits=limits) as live, ThreadPoolExecutor(1) as beside:
        with live.client("/stream?every_bin=1") as client:
            key = told(client)["session"]
            first = sent(client, events[:200])
            back = beside.submit(follow, live, [events[200:]], f"/stream?every_bin=1&session={key}")
            with pytest.raises(TimeoutError):
                back.result(0.3)
        hello, decisions, _, _ = back.result(30)
    assert hello["events"] == 200
    assert as_told([each for each in first if each["type"] == "decision"] + decisions) == straight


def test_sessions_that_cannot_go_on_are_refused(files, tmp_path):
    limits = Limits(handover_s=0.05)
    with serving(files["plain"], sessions=tmp_path, limits=limits) as live, live.client() as client:
        key = told(client)["session"]
        sent(client, busy()[:50])
        cases = [
            (key, "another connection uses"),
            ("A" * 22, "is not saved here"),
            ("..%2F" + "a" * 19, "is not a name of"),
        ]
        for name, text in cases:
            with live.client(f"/stream?session={name}") as other:
                messages, code, _ = everything(other)
            assert code == 1008
            assert text in messages[0]["text"]
    for rules, file, text in [(Rules(seed=9), "plain", "differs in seed"), (Rules(), "noisy", "differs in network")]:
        with serving(files[file], rules, sessions=tmp_path) as live, live.client(f"/stream?session={key}") as client:
            messages, code, _ = everything(client)
            assert (code, text in messages[0]["text"]) == (1008, True)
            assert live.metric("streams_open") == 0
    (tmp_path / f"{key}.npz").write_bytes(b"damaged")
    with serving(files["plain"], sessions=tmp_path) as live, live.client(f"/stream?session={key}") as client:
        messages, code, _ = everything(client)
        assert (code, "is damaged" in messages[0]["text"]) == (1008, True)


def test_no_more_sessions_are_kept_than_the_limit(files, tmp_path):
    with serving(files["plain"], sessions=tmp_path, limits=Limits(saved=1)) as live, live.client() as first:
        told(first)
        assert sent(first, busy()[:10])[-1]["type"] == "saved"
        assert sent(first, busy()[10:20])[-1]["type"] == "saved"  # in its own place
        with live.client() as second:
            told(second)
            second.send('{"type": "save"}')
            refused = told(second)
            assert (refused["type"], refused["text"]) == (
                "not_saved",
                "1 sessions are saved already, the most that this server keeps",
            )
            second.send('{"type": "end"}')  # a save that fails ends nothing
            assert everything(second)[1] == 1000


def test_names_are_secret_and_never_lead_out_of_the_folder(tmp_path):
    saved = SavedSessions(tmp_path / "sessions", 5)
    keys = {saved.new_key() for _ in range(100)}
    assert len(keys) == 100
    assert {saved._path(key).parent for key in keys} == {tmp_path / "sessions"}
    assert (tmp_path / "sessions").stat().st_mode & 0o077 == 0


def test_a_slow_disk_keeps_no_other_stream_waiting(files, tmp_path, monkeypatch):
    """Sessions are written beside the threads that compute: those must not wait for a disk."""
    written, may = threading.Event(), threading.Event()

    def slow(self, path):
        written.set()
        assert may.wait(30)

    monkeypatch.setattr("axonnx.runtime.streams.session_state.SessionState.write", slow)
    with serving(files["plain"], sessions=tmp_path, threads=1) as live, live.client() as saving:
        try:
            told(saving)
            saving.send('{"type": "save"}')
            assert written.wait(10)
            _, decisions, _, code = follow(live, [busy()])
            assert (len(decisions) > 0, code) == (True, 1000)
        finally:
            may.set()
        assert told(saving)["type"] == "saved"
