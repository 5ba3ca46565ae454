"""Every case and seed is a job: shared between commands, with records that do not depend on who did them."""

import threading
import time

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.train.sweep import validation
from axonnx.train.sweep.sharing import records_of
from axonnx.train.sweep.store import Job, Store


def jobs(count):
    return [Job(f"case {number}", 0, {"number": number}, {}) for number in range(count)]


@pytest.fixture
def measured(monkeypatch):
    """Which cases were measured, in order; each takes a moment."""
    done = []

    def measure(job, _runs):
        done.append(job.case)
        time.sleep(0.02)
        return {"accuracy": job.settings["number"] / 100}

    monkeypatch.setattr(validation, "measure", measure)
    return done


def test_two_commands_on_one_experiment_share_its_work(tmp_path, measured):
    found = {}

    def command(who):
        found[who] = records_of(jobs(12), "axonnx.train.sweep.validation", Store(tmp_path, "shared", "quick"), "shared")

    both = [threading.Thread(target=command, args=(who,)) for who in ("one", "other")]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert sorted(measured) == sorted(f"case {number}" for number in range(12))  # none twice
    assert found["one"] == found["other"]
    assert [record["accuracy"] for record in found["one"]] == [number / 100 for number in range(12)]


def test_what_a_killed_command_had_locked_is_done_by_the_next(tmp_path, measured):
    store = Store(tmp_path, "shared", "quick")
    store.runs.mkdir(parents=True)
    assert len(records_of(jobs(3), "axonnx.train.sweep.validation", store, "shared")) == 3
    locks = sorted(store.runs.glob(".*.lock"))  # they stay, and are free
    assert len(locks) == 3
    (store.records / "case-1-0.json").unlink()
    assert len(records_of(jobs(3), "axonnx.train.sweep.validation", store, "shared")) == 3
    assert measured == ["case 0", "case 1", "case 2", "case 1"]


def test_a_failure_is_tried_again_and_loses_no_other(tmp_path, monkeypatch):
    tried, told = [], []

    def measure(job, _runs):
        tried.append(job.case)
        if job.case == "case 1":
            raise OSError("the disk was away")
        return {"accuracy": 0.5}

    monkeypatch.setattr(validation, "measure", measure)
    store = Store(tmp_path, "shared", "quick")
    with pytest.raises(AxonnxError, match=r"(?s)1 of 3 jobs failed, tried twice.*case 1, seed 0: OSError: the disk"):
        records_of(jobs(3), "axonnx.train.sweep.validation", store, "shared", tell=told.append)
    assert tried == ["case 0", "case 1", "case 2", "case 1"]
    assert [line for line in told if "FAILED" in line] == ["shared: case 1, seed 0: FAILED: OSError: the disk was away"]
    assert [store.find(job) is not None for job in jobs(3)] == [True, False, True]
