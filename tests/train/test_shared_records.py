"""Every case and seed is a job: shared between commands, with records that do not depend on who did them."""

import json
import threading
import time

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.train import sweeping
from axonnx.train.shared_records import Job, Store, read_results, records_of, write_results
from experiments.perform import fill, filled


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

    monkeypatch.setattr(sweeping, "measure", measure)
    return done


def test_two_commands_on_one_experiment_share_its_work(tmp_path, measured):
    found = {}

    def command(who):
        found[who] = records_of(jobs(12), "axonnx.train.sweeping", Store(tmp_path, "shared", "quick"), "shared")

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
    assert len(records_of(jobs(3), "axonnx.train.sweeping", store, "shared")) == 3
    locks = sorted(store.runs.glob(".*.lock"))  # they stay, and are free
    assert len(locks) == 3
    (store.records / "case-1-0.json").unlink()
    assert len(records_of(jobs(3), "axonnx.train.sweeping", store, "shared")) == 3
    assert measured == ["case 0", "case 1", "case 2", "case 1"]


def test_a_failure_is_tried_again_and_loses_no_other(tmp_path, monkeypatch):
    tried, told = [], []

    def measure(job, _runs):
        tried.append(job.case)
        if job.case == "case 1":
            raise OSError("the disk was away")
        return {"accuracy": 0.5}

    monkeypatch.setattr(sweeping, "measure", measure)
    store = Store(tmp_path, "shared", "quick")
    with pytest.raises(AxonnxError, match=r"(?s)1 of 3 jobs failed, tried twice.*case 1, seed 0: OSError: the disk"):
        records_of(jobs(3), "axonnx.train.sweeping", store, "shared", tell=told.append)
    assert tried == ["case 0", "case 1", "case 2", "case 1"]
    assert [line for line in told if "FAILED" in line] == ["shared: case 1, seed 0: FAILED: OSError: the disk was away"]
    assert [store.find(job) is not None for job in jobs(3)] == [True, False, True]


JOB = Job("IW-ST p=½", 0, {"optimiser": {"epochs": 1}}, {})


def test_a_record_is_found_again(tmp_path):
    store = Store(tmp_path, "one", "quick")
    assert store.find(JOB) is None
    kept = store.keep(JOB, {"accuracy": 0.5})
    assert store.find(JOB) == kept
    assert kept["case"] == "IW-ST p=½"


@pytest.mark.parametrize(
    "other",
    [
        JOB._replace(seed=1),
        JOB._replace(settings={"optimiser": {"epochs": 2}}),
        JOB._replace(options={"calibrate": True}),
    ],
)
def test_a_job_that_is_done_differently_is_another(tmp_path, other):
    store = Store(tmp_path, "one", "quick")
    store.keep(JOB, {"accuracy": 0.5})
    assert store.find(other) is None


def test_a_damaged_record_is_measured_anew(tmp_path):
    store = Store(tmp_path, "one", "quick")
    store.keep(JOB, {"accuracy": 0.5})
    (path,) = store.records.iterdir()
    path.write_text(path.read_text()[:-9])
    assert store.find(JOB) is None


def test_results_keep_six_digits(tmp_path):
    path = tmp_path / "deep" / "one.json"
    write_results(path, "one", "cpu", [{"case": "a", "x": [0.123456789, None, 3]}])
    assert read_results(path) == ("cpu", [{"case": "a", "x": [0.123457, None, 3]}])
    assert json.loads(path.read_text())["experiment"] == "one"


@pytest.mark.parametrize(("text", "message"), [("{", "not a results file"), ("[]", "format 1"), ("{}", "format 1")])
def test_what_is_no_results_file_is_refused(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(AxonnxError, match=message):
        read_results(path)


def test_missing_results_are_named(tmp_path):
    with pytest.raises(AxonnxError, match="run the experiment first"):
        read_results(tmp_path / "x.json")


def test_a_documents_part_is_replaced_and_the_rest_is_kept(tmp_path):
    path = tmp_path / "results.md"
    path.write_text("# Title\n\n<!-- begin a -->\nold\n<!-- end a -->\n\nwords\n")
    fill(path, "a", "new\nlines")
    assert path.read_text() == "# Title\n\n<!-- begin a -->\nnew\nlines\n<!-- end a -->\n\nwords\n"
    assert filled(path, "a") == "new\nlines"
    fill(path, "a", "new\nlines")
    assert path.read_text().count("new") == 1


@pytest.mark.parametrize("text", ["", "<!-- begin a -->", "<!-- end a --><!-- begin a -->", "<!-- begin a -->" * 2])
def test_a_document_without_its_marks_is_refused(tmp_path, text):
    path = tmp_path / "results.md"
    path.write_text(text)
    with pytest.raises(AxonnxError, match="expected one line"):
        fill(path, "a", "new")
