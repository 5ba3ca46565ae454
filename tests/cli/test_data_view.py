"""``axonnx data``, and training on own recordings of a 346×260 camera as the page says."""

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from axonnx.cli import main
from axonnx.runtime.events.arrays import Sensor, make_events
from axonnx.runtime.readers import write_npz
from tests.runtime.report.test_pictures import decode

PAGE = (Path(__file__).parents[2] / "docs/data.md").read_text("utf-8")
COMMANDS = re.findall(r"^(?:\$|  *) (axonnx .*)$", PAGE, re.M)
SVG = "{http://www.w3.org/2000/svg}"
QUICK = ["--optimiser.epochs", "1", "--model.hidden", "[8]", "--eval_samples", "1", "--quiet"]


@pytest.fixture
def recordings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AXONNX_CACHE", str(tmp_path / "cache"))
    random = np.random.default_rng(0)
    for label, middle in {"left": 80, "right": 260}.items():
        for number in range(5):
            t = np.sort(random.integers(0, 200_000, 400))
            x = np.clip(random.normal(middle, 25, 400), 0, 345).astype(int)
            y = np.clip(random.normal(130, 40, 400), 0, 259).astype(int)
            folder = tmp_path / "recordings" / label
            folder.mkdir(parents=True, exist_ok=True)
            write_npz(
                folder / f"{number}.npz",
                make_events(t, x, y, random.integers(0, 2, 400)),
                Sensor(width=346, height=260),
            )
    (tmp_path / "recordings" / "notes.txt").write_text("no recording")
    return tmp_path


def test_the_pages_commands_run_and_the_first_gives_the_second(recordings, capsys):
    first, second, *_ = COMMANDS
    assert main(first.split()[1:]) == 0
    out = capsys.readouterr().out
    assert "346×260, as the files state" in out
    assert "1 files are no recordings" in out
    assert second in out
    assert main([*second.split()[1:], *QUICK]) == 0
    assert (recordings / "runs/mine/metrics.json").is_file()


def test_what_keeps_a_training_from_beginning_is_told_before(recordings, capsys):
    folder = recordings / "recordings" / "alone"
    folder.mkdir()
    (folder / "one.csv").write_text("t,x,y,p\n0,1,1,0\n9,2,1,1\n", "utf-8")
    assert main(["data", "recordings"]) == 0
    out = capsys.readouterr().out
    assert "sensor size not stated in 1 of 11 recordings" in out
    assert "one recording alone of alone: training needs two" in out
    assert "--data.options.sensor" in out


def write_csv(path, number, events=300, high=200):
    random = np.random.default_rng(number)
    columns = [np.sort(random.integers(0, 200_000, events)), *random.integers(0, [[high], [high], [2]], (3, events))]
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, np.stack(columns, 1), "%d", ",", header="t,x,y,p", comments="")


def states_no_sensor():
    for number in range(6):
        write_csv(Path("own", "ab"[number % 2], f"{number}.csv"), number)


def one_is_damaged():
    states_no_sensor()
    Path("own/a/damaged.csv").write_text("hello\nworld\n", "utf-8")


def many_events_in_a_cell():
    for number in range(6):
        write_csv(Path("own", "ab"[number % 2], f"{number}.csv"), number, events=20_000, high=8)


def frames(*shape):
    random = np.random.default_rng(0)
    Path("own").mkdir()
    for part in ("train", "test"):
        np.savez(f"own/{part}.npz", frames=random.integers(0, 2, (8, *shape), np.uint8), labels=np.arange(8) % 2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (states_no_sensor, "--data.options.sensor 200x200"),
        (one_is_damaged, "--data.options.damaged skip"),
        (many_events_in_a_cell, "--data.clip 13"),
        (lambda: frames(5, 2, 6, 6), "--data.bins unset"),
        (lambda: frames(1, 8, 8), "axonnx train digits-static"),
    ],
    ids=["no sensor", "damaged", "clipped", "frames", "images"],
)
def test_the_printed_command_runs(make, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make()
    assert main(["data", "own"]) == 0
    command = capsys.readouterr().out.splitlines()[-1].strip()
    assert words in command
    assert main([*command.split()[1:], *QUICK[:-1]]) == 0
    assert "cut off by the clip; see" not in capsys.readouterr().err


def test_no_command_is_printed_where_none_can_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for label in "ab":
        write_csv(Path("own", label, "alone.csv"), 0)
    assert main(["data", "own"]) == 0
    out = capsys.readouterr().out
    assert "it cannot be trained on: split: cannot hold out 1 of 2 samples" in out
    assert "axonnx train" not in out


def test_json_and_pictures(recordings, capsys, monkeypatch):
    assert main(["data", "recordings", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["classes"] == {"left": 5, "right": 5}
    assert found["events"] == [400.0, 400.0, 400.0]
    assert found["settings"]["data.resize"] == "58x44"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["data", "recordings"]) == 0
    assert capsys.readouterr().out.count("█") > 100


def test_samples_are_drawn_into_a_file(recordings, capsys):
    assert main(["data", "recordings", "-o", "samples.svg"]) == 0
    assert "wrote samples.svg: samples of 2 classes" in capsys.readouterr().out
    drawn = [image.get("href") for image in ElementTree.parse("samples.svg").iter(SVG + "image")]
    left, right = np.split(np.array([decode(uri)[0][..., 0] > 0 for uri in drawn]), 2)
    assert left.shape == (4, 87, 116)  # four of five recordings; 346×260 in squares of three pixels
    middle = left.shape[2] // 2
    assert left[:, :, :middle].sum() > 100 > 10 > left[:, :, middle:].sum()
    assert right[:, :, middle:].sum() > 100 > 10 > right[:, :, :middle].sum()
    assert main(["data", "digits-static", "-o", "digits.svg", "--json"]) == 0
    assert len(list(ElementTree.parse("digits.svg").iter(SVG + "image"))) == 40
    assert main(["data", "recordings", "-o", "samples.jpg"]) == 2
    assert "name the file samples.svg" in capsys.readouterr().err


def test_one_recording_a_named_set_and_nothing(recordings, capsys):
    assert main(["data", "recordings/left/0.npz"]) == 0
    assert main(["data", "digits-static"]) == 0
    assert "images, 10 classes" in capsys.readouterr().out
    assert main(["data", "nowhere"]) == 2
    assert "no such file or folder" in capsys.readouterr().err


def test_missing_settings_are_ready_to_copy(recordings, capsys):
    Path("own.toml").write_text('[data]\nname = "recordings"\n[model]\nnetwork = "spiking-mlp"\nhidden = [8]\n')
    assert main(["train", "own.toml", "--out", "runs/x"]) == 2
    assert "Add: --data.bins 20 --data.duration_ms 200" in capsys.readouterr().err


def test_recordings_that_cannot_be_read(recordings, capsys):
    for number in range(5):
        Path(f"recordings/left/{number}.npz").write_bytes(b"PK\3\4 nothing")
    assert main(["data", "recordings"]) == 0
    out = capsys.readouterr().out
    assert out.count("recordings/left/") == 3
    assert "2 more recordings cannot be read" in out
    Path("numbers/all").mkdir(parents=True)
    Path("numbers/all/one.csv").write_text("3,4,1,1000\n3,5,1,1001\n")
    assert main(["data", "numbers"]) == 2
    said = capsys.readouterr().err
    assert "numbers: none of 1 recordings can be read. The first: numbers/all/one.csv: line 1: found numbers" in said
    assert "sed -i '1i x,y,p,t' FILE" in said
    assert main(["data", "numbers/all"]) == 2
    assert "give the folder above it, numbers" in capsys.readouterr().err
