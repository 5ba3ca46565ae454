"""``axonnx run`` on folders, globs and lists: the answers of single runs, the same bytes with any number of workers."""

import json

import numpy as np
import pytest

from axonnx.cli import main
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.jobs.answers import answer
from axonnx.runtime.readers import write_npz

CLASSES = ("left", "right", "up", "down")
NUMPY = ("--engine", "numpy")


def some(seed):
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(0, 23_000, 100 + seed))
    return make_events(times, generator.integers(0, 8, len(times)), generator.integers(0, 6, len(times)), times % 2)


@pytest.fixture
def folder(tmp_path):
    for number in range(12):
        path = tmp_path / "data" / CLASSES[number % 4] / f"{number:02d}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_npz(path, some(number), Sensor(width=8, height=6))
    (tmp_path / "data" / "notes.txt").write_text("not a recording")
    (tmp_path / "data" / "left" / ".hidden.npz").write_text("neither")
    return tmp_path / "data"


@pytest.fixture
def run(capsys):
    def call(*words):
        code = main(["run", *map(str, words)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def test_answers_are_those_of_single_runs(run, files, folder):
    code, out, _ = run(files["plain"], folder, "--json", *NUMPY)
    *rows, summary = objects(out)
    assert code == 0
    assert [row["recording"] for row in rows] == sorted(map(str, folder.glob("*/[!.]*.npz")))
    for row in rows:
        _, single, _ = run(files["plain"], row["recording"], "--json", *NUMPY)
        decision, facts = objects(single)
        assert {key: row[key] for key in decision} == decision
        assert (row["events"], row["left_out"]) == (facts["events"], facts["dropped"])
        assert row["true"] == row["recording"].split("/")[-2]
    right = sum(row["true"] == row["label"] for row in rows)
    assert (summary["recordings"], summary["labelled"], summary["right"]) == (12, 12, right)
    assert summary["accuracy"] == right / 12
    assert summary["accuracy_interval"][0] < right / 12 < summary["accuracy_interval"][1]
    assert sum(summary["labels"].values()) == 12


def test_workers_change_no_byte(run, files, folder, tmp_path):
    words = (files["noisy"], folder, "--json", *NUMPY)
    assert run(*words, "-o", tmp_path / "1.jsonl")[:2] == run(*words, "-o", tmp_path / "2.jsonl", "--jobs", "2")[:2]
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()
    assert (tmp_path / "1.jsonl").read_text() == run(*words)[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.jsonl", "2.jsonl", "data"]


def test_globs_and_lists_name_files_once(run, files, folder, tmp_path):
    (tmp_path / "list.txt").write_text(f"# chosen\n{folder}/up\n\n{folder}/left/00.npz\n")
    for sources in ([f"{folder}/up/*.npz", folder / "left/00.npz", folder / "up/02.npz"], [f"@{tmp_path}/list.txt"]):
        _, out, _ = run(files["plain"], *sources, "--json", *NUMPY)
        assert [row["recording"][-8:] for row in objects(out)[:-1]] == ["p/02.npz", "p/06.npz", "p/10.npz", "t/00.npz"]


def test_a_bad_recording_is_named_and_the_others_are_answered(run, files, folder):
    (folder / "up" / "02.npz").write_bytes(b"PK\x03\x04 cut off")
    code, out, err = run(files["plain"], folder, *NUMPY)
    assert code == 1
    assert len([line for line in out.splitlines() if "entropy" in line]) == 11
    assert "failed      1, tried twice:" in out
    assert f"axonnx run: failed: {folder}/up/02.npz: is not a readable npz" in err
    assert "recordings  11" in out


def test_an_interrupted_run_goes_on(run, files, folder, tmp_path, monkeypatch):
    _, _, _ = run(files["plain"], folder, "-o", tmp_path / "whole.jsonl", *NUMPY)
    asked = []

    def interrupted(question, path):
        asked.append(path)
        if len(asked) == 5:
            raise KeyboardInterrupt
        return answer(question, path)

    monkeypatch.setattr("axonnx.runtime.jobs.answers.answer", interrupted)
    assert run(files["plain"], folder, "-o", tmp_path / "out.jsonl", *NUMPY)[0] == 130
    assert (tmp_path / "out.jsonl.journal").exists()
    assert not (tmp_path / "out.jsonl").exists()
    assert run(files["plain"], folder, "-o", tmp_path / "out.jsonl", "--seed", "1", *NUMPY)[0] == 2  # another question
    assert run(files["plain"], folder, "-o", tmp_path / "out.jsonl", *NUMPY)[0] == 0
    assert len(asked) == 5 + 8
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not (tmp_path / "out.jsonl.journal").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["data", "--windows"], "--windows is for one recording; many have one answer each"),
        (["data/up/02.npz", "--jobs", "2"], "--jobs is for many recordings; data/up/02.npz is one"),
        (["data/*.bin"], "data/*.bin: matches no file"),
        (["@list"], "list: cannot be read as a list of recordings"),
        (["empty"], "empty: holds no recording"),
        (["data", "--cluster", "here"], "cluster 'here'; expected tcp://HOST:PORT"),
    ],
)
def test_wrong_use_is_told(run, files, folder, tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    code, out, err = run(files["plain"], *words, *NUMPY)
    assert (code, out) == (2, "")
    assert text in err


def test_frames_are_answered_sample_by_sample(run, files, tmp_path):
    frames = np.random.default_rng(0).integers(0, 20, (3, 4, 2, 1, 3))
    np.savez(tmp_path / "some.npz", frames=frames, labels=np.array([0, 3, 1]))
    np.save(tmp_path / "one.npy", frames[1])
    _, out, _ = run(files["frames"], tmp_path, "--json", *NUMPY)
    one, *some, summary = objects(out)
    assert "index" not in one
    assert [row["index"] for row in some] == [0, 1, 2]
    assert [row["true"] for row in (one, *some)] == [None, "left", "down", "right"]
    assert some[1]["logits"] == one["logits"]
    assert summary["labelled"] == 3
