"""The harness sees everything that must not be, and goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fuzz.child import Limits
from tests.fuzz.harness import Result, names, run, table
from tests.fuzz.working import Work, work


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    keep = tmp_path_factory.mktemp("findings")
    result = run("tests.fuzz.planted", cases=11, limits=Limits(seconds=2.0, memory=1 << 30), keep=keep)
    return result, keep


def test_every_kind_of_finding_is_seen(seen):
    result, _ = seen
    assert {report.seed: report.kind for report in result.findings} == {
        2: "disagreement",
        3: "raw exception",
        4: "crash",
        5: "hang",
        6: "memory",
        7: "raw exception",
        10: "hang",
    }
    assert result.counts["accepted"] == 2  # 0 and 8
    assert result.counts["refused"] == 2  # 1 and 9
    assert result.cases == 11


def test_a_machine_that_is_busy_with_others_is_no_hang(monkeypatch):
    monkeypatch.setattr("tests.fuzz.child.work", lambda pid: Work(seconds=7.0, asleep=False))  # would run, is not let
    result = run("tests.fuzz.planted", cases=1, first=11, limits=Limits(seconds=0.5, memory=1 << 30))
    assert result.findings == []
    assert result.counts == {"refused": 1}


# Linux rounds user and system time of every process down to ticks of 10 ms, so a process that only starts and then
# sleeps may show no time at all. This one first works for many ticks.
WORK_THEN_WAIT = "import time\nwhile time.process_time() < 0.2: pass\ntime.sleep(3600)"
STARTED = 600  # seconds; only a machine that is extremely busy needs more than one


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("while True: pass", lambda found: found.seconds > 0.5 and not found.asleep),
        (WORK_THEN_WAIT, lambda found: found.seconds > 0.1 and found.asleep),
    ],
)
def test_work_tells_who_works_and_who_waits_below_a_process_too(code, seen):
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    process = subprocess.Popen([sys.executable, "-c", outer], start_new_session=True)
    end = time.monotonic() + STARTED
    try:
        while not seen(found := work(process.pid)):
            assert process.poll() is None, "the process ended"
            assert time.monotonic() < end, found
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_process_that_somebody_stopped_is_not_asleep():
    """A machine's supervisor may stop a case for a while; that is no hang."""
    with subprocess.Popen(["sleep", "3600"]) as process:
        try:
            process.send_signal(signal.SIGSTOP)
            end = time.monotonic() + STARTED
            while (Path("/proc") / str(process.pid) / "stat").read_text().split()[2] != "T":
                assert time.monotonic() < end
            assert not work(process.pid).asleep
        finally:
            process.kill()


def test_a_finding_says_what_and_how_to_see_it_again(seen):
    result, keep = seen
    texts = {report.seed: report.text for report in result.findings}
    assert texts[2] == "two engines differ"
    assert "KeyError" in texts[3]
    assert "SIGSEGV" in texts[4]
    assert "Fatal Python error" in texts[4]
    assert "no answer after 2 s" in texts[5]
    assert (keep / "planted-4.bin").read_bytes() == b"input of 4"
    assert "-m tests.fuzz tests.fuzz.planted --seed 4" in (keep / "planted-4.txt").read_text()


def test_seconds_end_a_campaign():
    result = run("tests.fuzz.planted", seconds=0.5, first=100)
    assert result.cases > 0
    assert result.counts.keys() == {"accepted", "refused"}
    assert result.findings == []


def test_the_table_has_a_line_for_each_campaign(seen):
    lines = table([seen[0], Result("other")]).splitlines()
    assert len(lines) == 3
    assert "1 crash" in lines[1]
    assert lines[1].split()[:5] == ["tests.fuzz.planted", "11", "2", "2", "7"]


def test_campaigns_are_found_by_their_modules():
    assert {"contracts", "model_files"} <= set(names())
