"""``axonnx eval FILE --data …``: labelled recordings and frames through a file, with and without torch."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import axonnx
from axonnx.base.files import sha256_of
from axonnx.cli import main
from axonnx.evaluating import evaluate_model
from axonnx.runtime.binning.recordings import bin_events
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.jobs.work import SerialPool
from axonnx.runtime.measure.metrics import bootstrap_intervals, metrics_of
from axonnx.runtime.model import load
from axonnx.runtime.readers import write_npz

from ..runtime.streams.small_models import BINNING, CLASSES, SENSOR


def recording(seed, events=120, start=0, length=9000):
    """Events over nearly two windows of 5 ms."""
    random = np.random.default_rng(seed)
    t = np.sort(random.integers(start, start + length, events))
    return make_events(t, random.integers(0, 8, events), random.integers(0, 6, events), random.integers(0, 2, events))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """<folder>/<class>/<file>: uneven classes, one of them without recordings."""
    root = tmp_path_factory.mktemp("labelled")
    for label, count in (("left", 9), ("right", 5), ("up", 7)):
        (root / label).mkdir()
        for number in range(count):
            write_npz(root / label / f"{number}.npz", recording(hash_of(label, number)), SENSOR)
    return root


def hash_of(label, number):
    return 1000 * CLASSES.index(label) + number


def expected(path, origin="zero"):
    """By hand: every recording's first window through the engine, in the order of the folder."""
    model, found, labels = load(path, "numpy"), [], []
    for label, count in (("left", 9), ("right", 5), ("up", 7)):
        for number in range(count):
            binning = BINNING.model_copy(update={"origin": origin})
            frames = bin_events(recording(hash_of(label, number)), binning).frames
            run = model.run(model.prepare(frames[:, None]), samples=[len(labels)])
            found.append(run.probabilities[0])
            labels.append(CLASSES.index(label))
    return np.array(found), np.array(labels)


def evaluated(capsys, *words):
    assert main(["eval", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("name", "origin"), [("plain", "zero"), ("first", "first"), ("noisy", "zero")])
def test_every_recording_is_one_sample_of_its_first_window(files, folder, capsys, name, origin):
    result = evaluated(capsys, files[name], "--data", folder)
    p, labels = expected(files[name], origin)
    by_hand = metrics_of(p, labels)
    assert result["samples"] == 21
    assert [result[key] for key in ("accuracy", "nll", "brier", "ece")] == [
        by_hand.accuracy, by_hand.nll, by_hand.brier, by_hand.ece,
    ]  # fmt: skip
    assert result["confusion"] == by_hand.confusion
    assert result["intervals"]["accuracy"] == list(by_hand.accuracy_interval)
    assert result["intervals"] == {
        "accuracy": list(by_hand.accuracy_interval),
        **{key: list(value) for key, value in bootstrap_intervals(p, labels).items()},
    }
    assert len(set(map(tuple, result["confusion"]))) > 1


def test_what_is_left_out_is_said(files, folder, capsys):
    result = evaluated(capsys, files["plain"], "--data", folder)
    assert result["events"] == 21 * 120
    assert set(result["left_out"]) == {"after"}
    assert 0 < result["left_out"]["after"] < result["events"]
    assert result["notes"] == ["no recordings of down"]
    assert main(["eval", str(files["plain"]), "--data", str(folder)]) == 0
    text = capsys.readouterr().out
    assert f"of 2,520 events are in no frame: {result['left_out']['after']:,} after" in text
    assert "confusion: true classes down, decisions across" in text
    assert f"accuracy    {100 * result['accuracy']:>8.1f} %" in text


def test_the_json_is_bound_to_the_file_and_to_the_data(files, folder, tmp_path, capsys):
    assert main(["eval", str(files["plain"]), "--data", str(folder), "--json", str(tmp_path / "eval.json")]) == 0
    assert "accuracy" in capsys.readouterr().out
    result = json.loads((tmp_path / "eval.json").read_text())
    assert result["file_sha256"] == sha256_of(files["plain"])
    again = evaluated(capsys, files["plain"], "--data", folder)["data_sha256"]
    assert again == result["data_sha256"]
    copied = tmp_path / "other"
    for file in sorted(folder.glob("*/*.npz")):
        (copied / file.parent.name).mkdir(parents=True, exist_ok=True)
        (copied / file.parent.name / file.name).write_bytes(file.read_bytes())
    assert evaluated(capsys, files["plain"], "--data", copied)["data_sha256"] == again
    (copied / "up" / "0.npz").rename(copied / "left" / "up.npz")
    assert evaluated(capsys, files["plain"], "--data", copied)["data_sha256"] != again


def test_a_part_is_taken_where_there_are_parts(files, folder, tmp_path, capsys):
    for part, label in (("train", "left"), ("test", "up")):
        (tmp_path / part / label).mkdir(parents=True)
        write_npz(tmp_path / part / label / "0.npz", recording(1), SENSOR)
    assert evaluated(capsys, files["plain"], "--data", tmp_path)["confusion"][2] != [0, 0, 0, 0]
    assert evaluated(capsys, files["plain"], "--data", tmp_path, "--part", "train")["confusion"][2] == [0, 0, 0, 0]
    assert main(["eval", str(files["plain"]), "--data", str(tmp_path), "--part", "validation"]) == 2
    assert "has no part 'validation'; it has test, train" in capsys.readouterr().err
    assert main(["eval", str(files["plain"]), "--data", str(folder), "--part", "test"]) == 2
    assert "has no part 'test'; it has classes only" in capsys.readouterr().err


def test_frames_and_images_with_labels(files, tmp_path, capsys):
    random = np.random.default_rng(0)
    frames, labels = random.integers(-10, 31, (37, 4, 2, 1, 3)), random.integers(0, 4, 37)
    np.savez(tmp_path / "frames.npz", frames=frames, labels=labels)
    result = evaluated(capsys, files["frames"], "--data", tmp_path / "frames.npz")
    model = load(files["frames"], "numpy")
    by_hand = metrics_of(model.run(model.prepare(frames.swapaxes(0, 1))).probabilities, labels)
    assert result["confusion"] == by_hand.confusion
    assert (result["samples"], result["nll"]) == (37, pytest.approx(by_hand.nll, rel=1e-12))
    np.savez(tmp_path / "images.npz", x=frames.reshape(74, 3, 2, 2), y=np.repeat(labels, 2))
    assert evaluated(capsys, files["images"], "--data", tmp_path / "images.npz")["samples"] == 74


def refusal(capsys, *words):
    assert main(["eval", *map(str, words)]) == 2
    return capsys.readouterr().err


def test_classes_that_do_not_match_are_refused(files, folder, tmp_path, capsys):
    (tmp_path / "sideways").mkdir()
    said = refusal(capsys, files["plain"], "--data", tmp_path)
    assert "sideways: not a class of the network; expected a folder of recordings for each" in said
    assert "left, right, up, down" in said
    (tmp_path / "sideways").rename(tmp_path / "left")
    assert "there are no recordings in its class folders" in refusal(capsys, files["plain"], "--data", tmp_path)


def test_other_data_than_the_network_takes_is_refused(files, folder, tmp_path, capsys):
    assert "which data? axonnx eval" in refusal(capsys, files["plain"])
    np.savez(tmp_path / "frames.npz", frames=np.zeros((2, 4, 2, 1, 3), int))
    assert "holds no labels; expected an array labels [2]" in refusal(
        capsys, files["frames"], "--data", tmp_path / "frames.npz"
    )
    assert "the network expects 5 frames of 2×6×8: one sample [5, 2, 6, 8]" in refusal(
        capsys, files["plain"], "--data", tmp_path / "frames.npz"
    )
    assert "does not state how events become frames" in refusal(capsys, files["frames"], "--data", folder)
    wide = tmp_path / "wide" / "left"
    wide.mkdir(parents=True)
    write_npz(wide / "0.npz", recording(0), SENSOR.model_copy(update={"width": 9}))
    assert "sensor is 9×6, but the network expects 8×6" in refusal(capsys, files["plain"], "--data", wide.parent)
    assert evaluated(capsys, files["plain"], "--data", wide.parent, "--resize")["samples"] == 1


def test_a_folder_needs_no_torch(files, folder):
    words = ["eval", str(files["plain"]), "--data", str(folder), "--json"]
    code = f"import sys\nsys.modules['torch'] = None\nfrom axonnx.cli import main\nsys.exit(main({words!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 21


def test_figures_do_not_depend_on_who_computes_them(capsys, files, folder, monkeypatch):
    """Jobs of some files each, in one process and in two; a stochastic file's noise follows from a sample's number."""
    monkeypatch.setattr("axonnx.evaluating.PIECES", 8)
    for name in ("plain", "noisy"):
        alone = evaluated(capsys, files[name], "--data", folder)
        asked = evaluate_model(axonnx.load(files[name]), files[name], folder, pool=SerialPool())
        assert json.loads(asked.model_dump_json()) == alone
    assert evaluated(capsys, files["plain"], "--data", folder, "--jobs", "2") == evaluated(
        capsys, files["plain"], "--data", folder
    )


def test_a_file_that_cannot_be_read_is_told_with_its_piece(capsys, files, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "data")
    (tmp_path / "data" / "up" / "3.npz").write_bytes(b"damaged")
    assert main(["eval", str(files["plain"]), "--data", str(tmp_path / "data"), "--jobs", "2"]) == 2
    said = capsys.readouterr().err
    assert "1 of 1 jobs failed, tried twice" in said
    assert "up/3.npz" in said


def test_several_files_stand_side_by_side(files, folder, tmp_path, capsys):
    both = [str(files["plain"]), str(files["noisy"])]
    words = ["--data", str(folder)]
    assert main(["eval", *both, *words, "-o", str(tmp_path / "alike.svg")]) == 0
    text = capsys.readouterr().out
    decided = [expected(path)[0].argmax(1) for path in both]
    truth = expected(both[0])[1]
    assert f"all decide alike on {(decided[0] == decided[1]).sum()}, " in text
    alike = [line.split()[1:] for line in text.splitlines() if line.startswith(files["plain"].name)][1]
    assert list(map(int, alike)) == [21, (decided[0] == decided[1]).sum(), (decided[0] == truth).sum()]
    assert (tmp_path / "alike.svg").read_text("utf-8").startswith("<svg")
    assert [each["model"] for each in evaluated(capsys, *both, *words[:2])] == both
