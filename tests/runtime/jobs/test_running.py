"""Jobs in one process, in several and on a Dask cluster: the same bytes, nothing lost, failures with their names."""

import os
import signal

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.base.files import sha256_of
from axonnx.runtime.jobs.answers import Summary
from axonnx.runtime.jobs.running import DIED, Journal, Pace, in_order, make_pool, run_jobs
from axonnx.runtime.jobs.work import Job, Outcome, check_submitted

from .some_jobs import counted, crash, die, fail, once_only, slow_square, square, squares


def lines(jobs, pool, journal=None):
    return [(outcome.name, outcome.text, outcome.fault) for outcome in in_order(jobs, run_jobs(jobs, pool, journal))]


@pytest.fixture(scope="module")
def cluster():
    """A real Dask cluster of two processes on loopback."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as local:
        yield local


def test_results_do_not_depend_on_the_workers(cluster):
    jobs = squares(60)
    expected = lines(jobs, make_pool(1))
    assert [fault for *_, fault in expected] == [None] * 60
    assert expected[9] == ("square of 9", '{"number": 9, "root": 3.0, "square": 81}', None)
    assert lines(jobs, make_pool(2)) == expected
    assert lines(jobs, make_pool(4)) == expected
    assert lines(jobs, make_pool(cluster=cluster.scheduler_address)) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_has_its_name_and_loses_nothing(tmp_path, workers):
    jobs = [*squares(4), Job("bad", fail, ("no such file",)), Job("worse", crash), *squares(9)[4:]]
    jobs.append(Job("flaky", once_only, (str(tmp_path), "fails")))
    found = {name: (text, fault) for name, text, fault in lines(jobs, make_pool(workers))}
    assert found.pop("bad") == (None, "no such file")
    assert found.pop("worse") == (None, "RuntimeError: unexpected")
    assert found.pop("flaky") == ('"worked"', None)
    assert [found[f"square of {n}"][1] for n in range(9)] == [None] * 9


def test_a_job_that_kills_its_process_harms_itself_alone(tmp_path):
    flaky = Job("killed once", once_only, (str(tmp_path), "dies"))
    jobs = [*squares(6), Job("deadly", die), flaky, *squares(20)[6:]]
    found = {name: (text, fault) for name, text, fault in lines(jobs, make_pool(2))}
    assert found.pop("deadly") == (None, DIED)
    assert found.pop("killed once") == ('"worked"', None)
    assert all(fault is None for _, fault in found.values())
    assert len(found) == 20


def kill_a_worker(folder, outcomes):
    """Go through the outcomes; after the first one, kill the process that did it."""
    found = [next(outcomes)]
    os.kill(int(next(iter(folder.glob("*.pid"))).read_text()), signal.SIGKILL)
    return [*found, *outcomes]


def test_killing_a_worker_in_the_middle_loses_nothing(tmp_path):
    jobs = [Job(f"{n}", slow_square, (n, str(tmp_path))) for n in range(12)]
    found = kill_a_worker(tmp_path, run_jobs(jobs, make_pool(2)))
    assert {outcome.name: outcome.value for outcome in found} == {f"{n}": square(n) for n in range(12)}
    assert len(found) == 12


def test_killing_a_worker_of_a_cluster_loses_nothing(tmp_path, cluster):
    jobs = [Job(f"{n}", slow_square, (n, str(tmp_path))) for n in range(12)]
    found = kill_a_worker(tmp_path, run_jobs(jobs, make_pool(cluster=cluster.scheduler_address)))
    assert {outcome.name: outcome.value for outcome in found} == {f"{n}": square(n) for n in range(12)}


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    jobs = [Job(f"{n}", counted, (n, str(tmp_path))) for n in range(10)]
    expected = [(f"{n}", square(n)) for n in range(10)]
    with Journal(tmp_path / "journal", {"what": "squares"}) as journal:
        begun = run_jobs(jobs, journal=journal)
        assert [next(begun).name for _ in range(4)] == ["0", "1", "2", "3"]
    with (tmp_path / "journal").open("a") as file:
        file.write('{"job": "7", "result": {"nu')  # as a killed process leaves it
    with Journal(tmp_path / "journal", {"what": "squares"}) as journal:
        found = list(run_jobs(jobs, make_pool(2), journal))
    assert sorted((outcome.name, outcome.value) for outcome in found) == expected
    assert sorted(map(int, (tmp_path / "done.txt").read_text().split())) == list(range(10))


def test_failures_are_not_kept(tmp_path):
    jobs = [*squares(2), Job("bad", fail, ("no such file",))]
    with Journal(tmp_path / "journal", {}) as journal:
        assert len(list(run_jobs(jobs, journal=journal))) == 3
    with Journal(tmp_path / "journal", {}) as journal:
        assert list(journal.done) == ["square of 0", "square of 1"]


def test_a_journal_of_other_work_is_refused(tmp_path):
    first, second = (Journal(tmp_path / "journal", {"model": "a"}) for _ in range(2))
    with first, pytest.raises(AxonnxError, match="another process is doing this work"):
        second.__enter__()
    with pytest.raises(AxonnxError, match="results of other work"), Journal(tmp_path / "journal", {"model": "b"}):
        pass
    (tmp_path / "journal").write_text('{"journal": 1, "model": "a"}\nrubbish\n')
    with pytest.raises(AxonnxError, match="'rubbish' is not a line of a journal"):
        Journal(tmp_path / "journal", {"model": "a"}).__enter__()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"workers": 0}, "workers is 0; expected 1 or more"),
        ({"cluster": "host:8786"}, "expected tcp://HOST:PORT"),
    ],
)
def test_wrong_pools_are_refused(words, text):
    with pytest.raises(AxonnxError, match=text):
        make_pool(**words)


def test_a_cluster_that_does_not_answer_is_told(monkeypatch):
    pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.setattr("axonnx.runtime.jobs.cluster.SECONDS", 1)
    with pytest.raises(AxonnxError, match="no Dask scheduler answers"):
        list(run_jobs(squares(1), make_pool(cluster="tcp://127.0.0.1:9")))


def test_a_worker_with_another_version_is_told(cluster, monkeypatch):
    monkeypatch.setattr("axonnx.runtime.jobs.cluster.metadata.version", lambda _name: "0.0.1")
    with pytest.raises(AxonnxError, match=r"has axonnx .*, but this machine has 0\.0\.1; install the same"):
        list(run_jobs(squares(1), make_pool(cluster=cluster.scheduler_address)))


def test_a_worker_refuses_another_file_than_the_submitted_one(tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(b"submitted")
    submitted = sha256_of(file)
    check_submitted(str(file), submitted)
    file.write_bytes(b"changed")
    with pytest.raises(AxonnxError, match=r"model\.onnx: sha256 differs from the submitted file; copy that file"):
        check_submitted(str(file), submitted)


def test_a_journal_stays_whole_after_a_cut_line(tmp_path):
    """What is added after a resume follows the last whole line, without a gap and without the rest of the cut one."""
    path, about = tmp_path / "journal", {"what": "squares"}
    with Journal(path, about) as journal:
        journal.add(Outcome("0", "0"))
    path.write_bytes(path.read_bytes() + b'{"job": "1", "result": {"a long line that was cut')
    with Journal(path, about) as journal:
        assert list(journal.done) == ["0"]
        journal.add(Outcome("1", "1"))
    head = '{"journal": 1, "what": "squares"}'
    assert path.read_text() == f'{head}\n{{"job": "0", "result": 0}}\n{{"job": "1", "result": 1}}\n'
    with Journal(path, about) as journal:
        assert {name: outcome.value for name, outcome in journal.done.items()} == {"0": 0, "1": 1}


def test_a_summary_counts_every_answer_once():
    summary = Summary()
    summary.add({"label": "a", "true": "a", "events": 10, "left_out": {"late": 2}})
    summary.add({"label": "b", "true": "a", "events": 5, "left_out": {"late": 1, "after": 4}})
    summary.add({"label": "a", "true": None})
    found = summary.as_dict()
    assert (found["recordings"], found["events"], found["left_out"]) == (3, 15, {"after": 4, "late": 3})
    assert (found["labels"], found["labelled"], found["right"], found["accuracy"]) == ({"a": 2, "b": 1}, 2, 1, 0.5)
    assert Summary().as_dict()["accuracy"] is None


def test_the_time_left_follows_from_fresh_work_alone(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("axonnx.runtime.jobs.running.time.monotonic", lambda: now[0])
    pace = Pace(10)
    for _ in range(4):
        pace.step(fresh=False)
    assert pace.left() == ""
    now[0] = 60.0
    pace.step()
    pace.step()
    assert pace.left() == ", 2:00 left"  # 30 s for each of the four that are left
    for _ in range(4):
        pace.step()
    assert pace.left() == ""


def test_no_job_is_done_twice_if_none_fails(tmp_path):
    """More jobs than are submitted ahead, in two processes."""
    jobs = [Job(f"{n}", counted, (n, str(tmp_path))) for n in range(40)]
    assert len(list(run_jobs(jobs, make_pool(2)))) == 40
    assert sorted(map(int, (tmp_path / "done.txt").read_text().split())) == list(range(40))
