"""What a person sees: a bar on a terminal, lines elsewhere, and never anything on stdout."""

import re
import sys
import time
from functools import partial
from io import StringIO

import pytest

from axonnx.cli.command import run_verb
from axonnx.cli.show.training_progress import Bar, Lines, _minutes, for_terminal
from axonnx.train.output.progress import Silent

main = partial(run_verb, "train")

ROW = {
    "epoch": 3,
    "phase": "train",
    "loss": 0.12345,
    "train_accuracy": 0.5,
    "test_accuracy": 0.25,
    "rate": 0.1,
    "seconds": 2.0,
}


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def tell(progress, pause: float = 0.0) -> None:
    """An epoch, the third of four."""
    progress.start(epochs=4, batches=3, done=2)
    for _ in range(3):
        time.sleep(pause)
        progress.batch(0.5, 0.75, 0.125)
    progress.epoch(ROW)
    progress.finish()


def test_lines_are_one_for_each_epoch():
    out = StringIO()
    tell(Lines(out))
    (line,) = out.getvalue().splitlines()
    assert line.startswith("epoch 3/4  loss 0.1235  train 50.0 %  test 25.0 %  rate 0.100  2.0 s  left 0:0")
    assert out.getvalue().isprintable() or out.getvalue().count("\n") == 1


def test_a_line_names_the_fine_tuning():
    out = StringIO()
    lines = Lines(out)
    lines.start(4, 1, 2)
    lines.epoch({**ROW, "phase": "finetune"})
    assert "epoch 3/4 finetune  loss" in out.getvalue()


def test_the_remaining_time_is_that_of_the_epochs_of_this_process(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    out = StringIO()
    lines = Lines(out)
    lines.start(epochs=5, batches=1, done=2)  # two epochs were done by an earlier process
    clock[0] += 90
    lines.epoch(ROW)
    assert out.getvalue().endswith("left 3:00\n")


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3725, "62:05")])
def test_minutes(seconds, text):
    assert _minutes(seconds) == text


def test_a_bar_shows_loss_accuracy_rate_and_remaining_time():
    out = Terminal()
    tell(Bar(out), pause=0.11)  # a bar is drawn ten times a second at most
    shown = out.getvalue()
    assert "epoch 3/4:" in shown
    assert re.search(r"2/3 \[\d\d:\d\d<\d\d:\d\d", shown)  # time spent and time left
    assert "loss 0.500, accuracy 75.0 %, rate 0.125" in shown
    assert shown.splitlines()[-1].strip().startswith("epoch 3/4  loss 0.1235")


def test_a_bar_that_is_interrupted_leaves_a_clean_line():
    out = Terminal()
    bar = Bar(out)
    bar.start(4, 3, 0)
    bar.batch(0.5, 0.75, 0.125)
    bar.finish()
    bar.finish()  # twice does no harm
    assert out.getvalue().rsplit("\r", 1)[-1].strip() == ""


def test_silence_is_silent(capsys):
    tell(Silent())
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_a_terminal_gets_a_bar_and_a_file_lines():
    assert type(for_terminal(Terminal())) is Bar
    assert type(for_terminal(StringIO())) is Lines


def test_the_stream_is_the_stderr_of_the_moment(monkeypatch):
    """Not that of the import: notebooks and tests exchange it."""
    out = StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    tell(for_terminal())
    assert "epoch 3/4" in out.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_writes_progress_to_stderr_and_the_table_to_stdout(config_file, monkeypatch, capsys, terminal):
    if terminal:
        monkeypatch.setattr(sys, "stderr", Terminal())
    assert main([config_file(), "--out", "run"]) == 0
    said = capsys.readouterr()
    shown = sys.stderr.getvalue() if terminal else said.err
    assert all(f"epoch {number}/3  loss" in shown for number in (1, 2, 3))
    assert ("\r" in shown) is terminal
    assert said.out.splitlines()[0].startswith("part")
    assert "epoch" not in said.out
