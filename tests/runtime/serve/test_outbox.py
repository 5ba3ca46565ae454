"""Every decision arrives exactly once: a model of the protocol, searched exhaustively, and servers under faults."""

import errno
import os
import random
from collections import deque
from contextlib import ExitStack, suppress
from socket import SHUT_RDWR
from typing import NamedTuple

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from axonnx.runtime.events.arrays import make_events, to_records
from axonnx.runtime.serve.limits import Limits
from axonnx.runtime.serve.messages import NotSavedError, RefusedError
from axonnx.runtime.serve.outbox import KEPT_BYTES, Outbox
from axonnx.runtime.serve.saved import SavedSessions
from axonnx.runtime.serve.service import Rules

from .live import everything, serving, told
from .test_streams import as_told, busy, expected

EVENTS = 3  # of the model; each gives one decision


class World(NamedTuple):
    """A client, a disk and two servers. ``wire`` holds what server → client messages are under way."""

    log: tuple[int, ...] = ()  # decisions that the client has, durably
    disk: tuple[int, int, tuple[int, ...]] = (0, 0, ())  # generation; events; decisions that are not acknowledged
    servers: tuple = (None, None)  # each (generation, events, not acknowledged, has)
    joined: int | None = None  # server of the connection
    wire: tuple[int, ...] = ()
    safe: int = 0  # events that a save has confirmed: the client has forgotten them
    faults: int = 0


def steps(world, most_faults, fenced=True, keeps=True, skips=True):
    """All worlds that one step leads to; the last three switch a part of the protocol off."""
    at, servers = world.joined, world.servers
    for here in (0, 1):  # connect, or resume on either server, with the number of decisions that the client has
        if at is None:
            generation, events, unread = world.disk
            has = len(world.log)
            if events < world.safe:
                yield world._replace(log=(-1,))  # nobody has the events in between any more
                continue
            again = tuple(n for n in unread if n >= has) if keeps else ()
            session = (generation + 1, events, again, has)
            made = tuple(session if n == here else each for n, each in enumerate(servers))
            yield world._replace(servers=made, joined=here, wire=again, disk=(generation + 1, events, unread))
    for here, session in enumerate(servers):
        if session is None:
            continue
        generation, events, unread, has = session
        if world.disk[0] <= generation or not fenced:  # save: asked for, at the end of a connection or of the server
            kept = unread if keeps else ()
            safe = events if at == here else world.safe
            yield world._replace(disk=(generation, events, kept), safe=safe)
        if world.faults < most_faults:  # kill the server; a connection to it breaks
            cut = {"joined": None, "wire": ()} if at == here else {}
            made = tuple(None if n == here else each for n, each in enumerate(servers))
            yield world._replace(servers=made, faults=world.faults + 1, **cut)
    if at is None:
        return
    generation, events, unread, has = servers[at]

    def with_session(session, **changes):
        return world._replace(servers=tuple(session if n == at else each for n, each in enumerate(servers)), **changes)

    if world.faults < most_faults:  # the connection breaks, or the client dies; what is under way is lost
        yield world._replace(joined=None, wire=(), faults=world.faults + 1)
    if events < EVENTS:  # an event makes decision number ``events``
        sent = (events,) if events >= has or not skips else ()
        yield with_session((generation, events + 1, (*unread, *sent), has), wire=(*world.wire, *sent))
    if world.wire:  # the client receives, and acknowledges at once or never
        log = (*world.log, world.wire[0])
        yield world._replace(log=log, wire=world.wire[1:])
        left = tuple(n for n in unread if n >= len(log))
        yield with_session((generation, events, left, max(has, len(log))), log=log, wire=world.wire[1:])


def search(most_faults=3, **switches):
    """Go through all worlds; the first in which a decision is lost, doubled or out of order, or how many there are."""
    seen, left, ended = {World()}, deque([World()]), 0
    while left:
        world = left.popleft()
        if world.log != tuple(range(len(world.log))):
            return world
        whole = world.joined is not None and world.servers[world.joined][1] == EVENTS and not world.wire
        if whole and world.log != tuple(range(EVENTS)):
            return world
        ended += whole
        for after in steps(world, most_faults, **switches):
            if after not in seen:
                seen.add(after)
                left.append(after)
    return len(seen) if ended else "no world came to its end"


def test_no_order_of_steps_and_faults_loses_or_doubles_a_decision():
    count = search()
    assert isinstance(count, int)
    assert count > 10_000


@pytest.mark.parametrize("switch", ["fenced", "keeps", "skips"])
def test_the_search_finds_what_a_missing_part_of_the_protocol_breaks(switch):
    assert isinstance(search(**{switch: False}), World)


def test_an_older_writer_is_fenced_off(tmp_path):
    class State:
        def write(self, path):
            path.write_text("state")

    first, second = SavedSessions(tmp_path, 5), SavedSessions(tmp_path, 5)
    key = first.new_key()
    first.write(key, State())
    read = []
    second_generation = _taken(second, key, read)
    assert second_generation == 2
    for write in (lambda: first.write(key, State()), lambda: first.remove(key)):
        with pytest.raises(RefusedError, match="continues on another connection"):
            write()
    second.write(key, State(), second_generation)
    second.remove(key, second_generation)
    with pytest.raises(RefusedError, match="continues on another"):
        first.write(key, State())  # also after the session's end
    assert list(tmp_path.glob("*.npz")) == []


def _taken(saved, key, read):
    from axonnx.runtime.serve import saved as module

    original = module.SessionState.read
    module.SessionState.read = staticmethod(lambda path: path.read_text())
    try:
        return saved.take_over(key, read.append)
    finally:
        module.SessionState.read = original


def test_what_is_not_acknowledged_is_kept_up_to_a_limit():
    outbox, text = Outbox(keeps=True), "x" * 1000
    assert all(outbox.add(text) for _ in range(1_000))
    assert (outbox.next, outbox.first) == (1_000, 1_000 - KEPT_BYTES // 1_000)
    with pytest.raises(RefusedError, match="only 1000 were made"):
        outbox.acknowledge(1_001)
    outbox.acknowledge(5)  # from now on the client says what it has
    with pytest.raises(NotSavedError, match="acknowledge, then save again"):
        outbox.state()
    outbox.acknowledge(998)
    again = Outbox(keeps=True)
    again.restore(outbox.state(), 1_000)
    assert again.resume(999) == [text]
    with pytest.raises(RefusedError, match="decisions 3 to 998 are no longer kept"):
        again.resume(3)
    ahead = Outbox(keeps=True)
    ahead.restore({"first": 2, "decisions": []}, 2)
    assert ahead.resume(4) == []
    assert [ahead.add("again") for _ in range(3)] == [False, False, True]
    for wrong in ({"first": 1, "decisions": []}, {"first": -1}, {"decisions": [1]}, {"first": "a"}):
        with pytest.raises(ValueError, match=r"decisions|layout"):
            Outbox(keeps=True).restore(wrong, 2)


class Client:
    """One that writes decisions down before it acknowledges them, and goes on from what it has written."""

    def __init__(self, events, generator, stack):
        self.events, self.generator, self.stack = events, generator, stack
        self.log, self.key, self.socket, self.at, self.summary = [], None, None, 0, None

    def connect(self, live):
        session = f"&session={self.key}" if self.key else ""
        path, old = f"/stream?every_bin=1&decisions={len(self.log)}{session}", self.socket
        self.socket = self.stack.enter_context(live.client(path, close_timeout=0.1))
        hello = told(self.socket)
        assert hello["type"] == "hello", hello
        self.at = hello["events"]
        if old is not None:  # only now does a server that was left behind see that
            with suppress(OSError):
                old.socket.shutdown(SHUT_RDWR)
        if self.key is None:  # nothing can be resumed before the first save
            self.socket.send('{"type": "save"}')
            assert told(self.socket)["type"] == "saved"
            self.key = hello["session"]

    def read(self, until):
        while (message := told(self.socket))["type"] not in until:
            if message["type"] == "decision":
                assert message["number"] == len(self.log)
                self.log.append(message)
                if self.generator.random() < 0.5:
                    self.acknowledge()
        return message

    def acknowledge(self):
        self.socket.send(f'{{"type": "ack", "decisions": {len(self.log)}}}')

    def step(self):
        """Send some events, and perhaps read on to a save; at the end, end."""
        if self.at == len(self.events):
            self.socket.send('{"type": "end"}')
            self.summary = self.read(("summary",))
            self.acknowledge()
            return
        chunk = self.events[self.at : self.at + self.generator.randrange(1, 90)]
        self.socket.send(to_records(chunk))
        self.at += len(chunk)
        if self.generator.random() < 0.4:
            self.socket.send('{"type": "save"}')
            self.read(("saved", "not_saved"))


def kill(live):
    """Stop a server so that nothing more is written, as a killed process leaves its folder."""

    def dead(*words):
        raise NotSavedError("this server is dead")

    live.service.saved.write = live.service.saved.remove = dead
    live.service.limits = Limits(grace_s=0.0, handover_s=30)
    live.stop()


@pytest.mark.parametrize("seed", range(12))
def test_random_faults_leave_every_decision_exactly_once(engines, files, tmp_path, seed):
    """Cuts, kills, restarts, moves to another server with the same folder, and full disks."""
    generator, events = random.Random(seed), busy(seed=seed)
    straight, _ = expected(engines("noisy"), events, seed=3, every_bin=True)
    faults = 0
    with ExitStack() as stack:
        client = Client(events, generator, stack)

        def start():
            words = {"sessions": tmp_path, "limits": Limits(handover_s=30, grace_s=2), "threads": 1}
            return stack.enter_context(serving(files["noisy"], Rules(seed=3), **words))

        servers = [start(), start()]
        client.connect(servers[0])
        at = 0
        while client.summary is None:
            fault = generator.choice(["cut", "kill", "stop", "move", "full", *["none"] * 6])
            full = fault == "full" and faults < 6
            try:
                if full:
                    servers[at].service.saved.write, before = _full_disk, servers[at].service.saved.write
                client.step()
            except ConnectionClosed:
                pass
            finally:
                if full:
                    servers[at].service.saved.write = before
            if client.summary or fault in ("none", "full") or faults >= 6:
                continue
            faults += 1
            if fault == "cut":
                client.socket.socket.shutdown(SHUT_RDWR)
            elif fault == "move":  # the old server does not notice yet
                at = 1 - at
            else:
                kill(servers[at]) if fault == "kill" else servers[at].stop()
                servers[at] = start()
            client.connect(servers[at])
    assert as_told(client.log) == straight
    assert [each["number"] for each in client.log] == list(range(len(straight)))
    assert faults > 0
    assert client.summary["events"] == len(events)


def followed(socket, events, until="saved"):
    """Send events and an order; all messages until it is done, without those that say so."""
    socket.send(to_records(events))
    socket.send('{"type": "save"}' if until == "saved" else '{"type": "end"}')
    found = []
    while (message := told(socket))["type"] != until:
        assert message["type"] in ("decision", "warning", "lost"), message
        found.append(message)
        if message["type"] == "decision":
            socket.send(f'{{"type": "ack", "decisions": {message["number"] + 1}}}')
    return found


@pytest.mark.parametrize("killed_after", [100, 130, 163, 164, 200])
def test_a_reset_of_the_clock_amid_a_kill_and_a_cut_is_warned_of(files, tmp_path, killed_after):
    """The same decisions and warnings as undisturbed: the count that confirms a reset, and what was not read, stay."""
    at = [np.arange(100) * 1000 + 1_050_000, np.arange(140) * 1000]
    events = make_events(np.concatenate(at), np.arange(240) % 8, 0, 1)
    words = {"sessions": tmp_path, "limits": Limits(handover_s=30, grace_s=2), "threads": 1}
    path = "/stream?every_bin=1&decisions={}"
    with serving(files["plain"], **words) as live:
        with live.client(path.format(0)) as client:
            told(client)
            straight = followed(client, events, "summary")
        with live.client(path.format(0)) as client:
            key = told(client)["session"]
            found = followed(client, events[:killed_after])
            kill(live)
    with serving(files["plain"], **words) as live:
        again = path + f"&session={key}"
        with live.client(again.format(sum(each["type"] == "decision" for each in found))) as client:
            assert told(client)["events"] == killed_after
            client.send(to_records(events[killed_after:]))  # what this causes is never read
            client.send('{"type": "save"}')
            while told(client)["type"] != "saved":
                pass
        has = sum(each["type"] == "decision" for each in found)
        with live.client(again.format(has)) as client:
            assert told(client)["events"] == len(events)
            found += followed(client, events[:0], "summary")
    assert [each["epoch"] for each in straight if each["type"] == "warning"] == [1]
    once = [each for n, each in enumerate(found) if each["type"] == "decision" or each not in found[:n]]
    assert once == straight


def test_a_session_that_has_ended_is_removed_also_if_its_client_leaves_at_once(files, tmp_path):
    keys = []
    with serving(files["plain"], sessions=tmp_path) as live:
        for _ in range(3):
            with live.client("/stream?decisions=0") as client:
                keys.append(told(client)["session"])
                followed(client, busy())
                count = followed(client, busy()[:0], "summary")[-1]["number"] + 1
                client.send(f'{{"type": "ack", "decisions": {count}}}')
        live.stop()
    with serving(files["plain"], sessions=tmp_path) as live:
        for key, text in ((keys[-1], "has ended, and its client acknowledged all"), ("A" * 22, "is not saved here")):
            with live.client(f"/stream?decisions={count}&session={key}") as client:
                assert text in told(client)["text"]
    assert list(tmp_path.glob("*.npz")) == []


def _full_disk(*words):
    raise NotSavedError("No space left on device")


def test_a_full_disk_is_told_and_ends_nothing(files, tmp_path, monkeypatch):
    def full(self, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    with serving(files["plain"], sessions=tmp_path) as live, live.client("/stream?decisions=0") as client:
        told(client)
        with monkeypatch.context() as broken:
            broken.setattr("axonnx.runtime.streams.session_state.SessionState.write", full)
            client.send('{"type": "save"}')
            refused = told(client)
        assert (refused["type"], refused["text"]) == ("not_saved", "No space left on device")
        client.send('{"type": "save"}')
        assert told(client)["type"] == "saved"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_fails_at_a_resume_or_at_the_end_is_no_fault_of_the_server(files, tmp_path, monkeypatch, number):
    def fail(*words, **options):
        raise OSError(number, os.strerror(number))

    with serving(files["plain"], sessions=tmp_path, limits=Limits(handover_s=30)) as live:
        with live.client("/stream?decisions=0") as client:
            key = told(client)["session"]
            count = len(followed(client, busy()))
        with monkeypatch.context() as broken:
            broken.setattr("axonnx.runtime.serve.saved._put", fail)
            with live.client(f"/stream?session={key}&decisions={count}") as client:
                messages, code, _ = everything(client)
            assert (os.strerror(number) in messages[0]["text"], code) == (True, 1013)
        with live.client(f"/stream?session={key}&decisions={count}") as client, monkeypatch.context() as broken:
            told(client)
            broken.setattr("pathlib.Path.unlink", fail)
            client.send('{"type": "end"}')
            while (message := told(client))["type"] != "summary":
                count = message["number"] + 1
            client.send(f'{{"type": "ack", "decisions": {count}}}')
            assert everything(client)[1] == 1000
        assert live.service.metrics.faults == 0


def test_the_lock_of_a_session_is_kept_for_a_day_by_the_clock_of_the_folder(tmp_path, monkeypatch):
    """A machine whose clock is ahead must not remove the fence of a session that ended, or that begins."""
    saved, lock = SavedSessions(tmp_path, 5), tmp_path / f".{'A' * 22}.lock"
    lock.touch()
    monkeypatch.setattr("time.time", lambda: 2e10)
    SavedSessions(tmp_path, 5)
    assert lock.exists()
    os.utime(lock, (0, 0))
    SavedSessions(tmp_path, 5)
    assert not lock.exists()
    assert saved.count() == 0


def test_a_session_that_moved_on_is_not_overwritten_by_its_first_server(files, tmp_path):
    events = busy()
    with serving(files["plain"], sessions=tmp_path) as first, serving(files["plain"], sessions=tmp_path) as second:
        with first.client("/stream?decisions=0") as old:
            key = told(old)["session"]
            old.send(to_records(events[:100]))
            old.send('{"type": "save"}')
            while told(old)["type"] != "saved":
                pass
            with second.client(f"/stream?session={key}") as new:
                told(new)
                new.send(to_records(events[100:400]))
                new.send('{"type": "save"}')
                while (saved := told(new))["type"] != "saved":
                    pass
                assert saved["events"] == 400
                first.stop()  # it writes its streams
        with second.client(f"/stream?session={key}") as new:
            assert told(new)["events"] == 400
