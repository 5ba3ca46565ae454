"""Every verb ends in good order on SIGTERM and SIGHUP, and its workers end with it, also if it is killed."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import psutil
import pytest

from axonnx.runtime.events.arrays import Sensor, make_events, to_records
from axonnx.runtime.readers import write_npz

pytest.importorskip("joblib", reason="several processes need joblib")
ENDING = [(signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@contextmanager
def command(environment, *words, **options):
    """A command with its pipes; nothing of it stays behind, whatever the test finds."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment, **options}
    process = subprocess.Popen([sys.executable, "-m", "axonnx.cli", *map(str, words)], **pipes)
    children = []
    try:
        yield process, children
    finally:
        for each in [process, *children]:
            if isinstance(each, subprocess.Popen) or each.is_running():
                each.kill()
        process.communicate()


def first_line(process):
    """The first line, and not a byte more: ``communicate`` does not see what the pipe's object has read ahead."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(process.stdout.fileno(), 1)):
        line += byte
    return line.decode()


def until(reached, seconds=60):
    end = time.monotonic() + seconds
    while not (found := reached()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return found


def workers_of(process, children):
    """The processes below a command, once two of them have worked."""
    until(lambda: len(psutil.Process(process.pid).children(recursive=True)) >= 3)  # two workers and loky's tracker
    children += psutil.Process(process.pid).children(recursive=True)
    return children


def all_gone(children):
    return not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in children)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """More recordings than are done in the time of the test."""
    folder = tmp_path_factory.mktemp("many")
    events = make_events(np.arange(40_000) * 50, np.arange(40_000) % 8, 1, 1)
    for number in range(300):
        write_npz(folder / f"{number:03}.npz", events, Sensor(width=8, height=6))
    return folder


@pytest.mark.parametrize(("number", "code"), ENDING)
def test_run_with_workers_tells_what_is_known_and_leaves_nobody(files, many, tmp_path, environment, number, code):
    words = ["run", files["plain"], many, "--jobs", "2", "--json", tmp_path / "a.jsonl", "--engine", "numpy"]
    with command(environment, *words) as (process, children):
        first = first_line(process)
        assert "000.npz" in first
        workers_of(process, children)
        process.send_signal(number)
        said, errors = process.communicate(timeout=30)  # nobody holds the pipes
        assert process.returncode == code
        assert f"ended by {number.name}" in errors
        answered = sum(".npz" in line for line in (first, *said.splitlines()))
        assert f"recordings  {answered:,}, by the engine numpy" in said
        assert 0 < answered < 300
        until(lambda: all_gone(children))
    assert not (tmp_path / "a.jsonl").exists()
    assert (tmp_path / "a.jsonl.journal").exists()


def test_workers_of_a_killed_run_die_with_it(files, many, environment):
    with command(environment, "run", files["plain"], many, "--jobs", "2", "--engine", "numpy") as (process, children):
        first_line(process)
        workers_of(process, children)
        process.kill()
        process.communicate(timeout=30)
        until(lambda: all_gone(children), 10)


SWEEP = ["sweep", "digits-static", "--seeds", "20", "--jobs", "2", "--optimiser.epochs", "300"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_sweep_leaves_nobody_who_goes_on_training(tmp_path, environment, number):
    environment = {**environment, "AXONNX_CACHE": str(tmp_path / "cache")}
    with command(environment, *SWEEP, "-o", tmp_path / "sweep") as (process, children):
        runs = tmp_path / "sweep"
        until(lambda: process.poll() is not None or len(list(runs.rglob("checkpoint.json"))) >= 2, 120)
        assert process.poll() is None, process.stderr.read()
        workers_of(process, children)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
        until(lambda: all_gone(children), 10)
        if number == signal.SIGTERM:
            assert process.returncode == 143
            assert "ended by SIGTERM; 0 of 20 runs are recorded; the same command continues" in errors


def test_training_says_what_it_keeps(tmp_path, environment):
    words = ["train", "digits-static", "--optimiser.epochs", "500", "-o", tmp_path / "run", "--quiet"]
    with command(environment, *words) as (process, _):
        index = tmp_path / "run" / "checkpoint" / "checkpoint.json"
        until(lambda: process.poll() is not None or index.exists(), 120)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 143
    kept = json.loads(index.read_text())["epochs_done"]
    assert f"ended by SIGTERM; {tmp_path / 'run'} keeps {kept} of 500 epochs; resume to continue" in errors


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize(("number", "code"), [*ENDING, (signal.SIGINT, 0)])
def test_a_udp_run_gives_its_last_decision_and_what_it_lost(files, environment, number, code):
    port = free_port()
    with command(environment, "run", files["plain"], f"udp:{port}", "--json") as (process, _):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sender:
            sent = 0

            def started():
                """A window is decided when an event of the next one has come."""
                nonlocal sent
                sender.sendto(to_records(make_events([100 + 5_000 * sent], 1)), ("127.0.0.1", port))
                sent += 1
                return select_readable(process.stdout)

            until(started)
            sender.sendto(b"what is this?", ("127.0.0.1", port))
            time.sleep(0.5)
        process.send_signal(number)
        said, errors = process.communicate(timeout=30)
    *decisions, summary = map(json.loads, said.splitlines())
    assert process.returncode == code, errors
    assert summary["skipped"] == {"malformed_datagram": 1}
    assert (summary["pending"], summary["decisions"]) == (0, len(decisions))
    assert summary["events"] == summary["binned"] > 0
    assert decisions[-1]["partial"]  # that of the window that was open


def select_readable(file):
    return bool(select.select([file], [], [], 0.05)[0])


@pytest.mark.parametrize(("number", "code"), ENDING)
@pytest.mark.parametrize("form", ["csv", "records"])
def test_a_pipe_that_stays_open_does_not_keep_a_run(files, environment, number, code, form):
    words = ["run", files["plain"], "-", "--format", form, "--json"]
    with command(environment, *words, stdin=subprocess.PIPE, text=False) as (process, _):
        events = make_events([100, 6_000], 1)
        lines = "".join(f"{e['t']},{e['x']},{e['y']},{e['p']}\n" for e in events).encode()
        process.stdin.write(lines if form == "csv" else to_records(events))
        process.stdin.flush()
        first = first_line(process)
        process.send_signal(number)
        assert process.wait(30) == code
        *rest, summary = map(json.loads, process.stdout.read().splitlines())
    assert json.loads(first)["final"]
    assert (len(rest), summary["events"], summary["binned"]) == (1, 2, 2)
