"""How verbs end: the user's faults in one line with exit code 2, our own with a traceback and a request to report."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.cli import command, main
from axonnx.cli.command import VERBS, Verb


def raising(fault):
    def verb(_words):
        raise fault

    return verb


@pytest.fixture
def ends_by(monkeypatch):
    """Runs a verb that does nothing but raise."""

    def call(fault):
        monkeypatch.setitem(VERBS, "fail", Verb("tools", "raise", ("axonnx.examination:examine",), "somewhere:main"))
        monkeypatch.setattr(command, "import_module", lambda _name: SimpleNamespace(main=raising(fault)))
        return main(["fail"])

    return call


def axonnx(*words, environment=None, **options):
    """The command, with buffered output as users have it (argparse passes over faults of unbuffered output)."""
    command = [sys.executable, "-m", "axonnx.cli", *map(str, words)]
    options["env"] = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"} | (
        environment or {}
    )
    return subprocess.run(command, stderr=subprocess.PIPE, check=False, timeout=300, **options)


def test_a_fault_of_the_user_is_one_line(ends_by, capsys):
    assert ends_by(AxonnxError("model.onnx: is no model")) == 2
    assert capsys.readouterr().err == "axonnx fail: model.onnx: is no model\n"


@pytest.mark.parametrize("fault", [ValueError("ours"), KeyError("ours"), AssertionError("ours"), TypeError("ours")])
def test_a_fault_of_ours_shows_its_traceback_and_asks_to_be_reported(ends_by, capsys, fault):
    assert ends_by(fault) == 70
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):")
    assert "ours" in err
    assert "please report it" in err.splitlines()[-1]


def test_an_input_output_fault_is_one_line_with_the_file_and_the_reason(ends_by, capsys):
    assert ends_by(FileNotFoundError(2, "No such file or directory", "runs/x")) == 2
    assert capsys.readouterr().err == "axonnx fail: runs/x: No such file or directory\n"


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["train", "--settings"], *([v, "--help"] for v in VERBS)])
def test_a_closed_pipe_ends_every_verb_with_the_same_code(words):
    """As by ``| head``: no traceback, and no exit code that could be taken for success."""
    reading, writing = os.pipe()
    os.close(reading)
    done = axonnx(*words, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("words", [["--help"], ["train", "--list"], ["run", "--help"]])
def test_a_full_output_device_is_one_line(words):
    with open("/dev/full", "wb") as full:
        done = axonnx(*words, stdout=full)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"No space left on device" in done.stderr


@pytest.mark.parametrize(
    "environment", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "LC_ALL": "C"}]
)
def test_what_the_terminal_cannot_show_is_replaced(environment):
    done = axonnx("train", "--settings", environment=environment, stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"of spiking neurons" in done.stdout


def test_output_that_was_closed_by_the_caller_is_no_fault():
    done = axonnx("--version", preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("place", "text"), [("missing/r.json", "there is no folder missing"), ("r.json", "is a folder")]
)
def test_a_place_that_cannot_be_written_is_told_before_the_work(place, text, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.json").mkdir()
    assert main(["verify", "there-is-no-such.onnx", "--json", place]) == 2
    assert text in capsys.readouterr().err
