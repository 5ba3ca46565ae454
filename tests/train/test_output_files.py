"""Progress as people see it: one line that changes on a terminal, a line a minute in a log, nothing on stdout."""

import sys
from functools import partial
from io import StringIO

import pytest

from axonnx.base.progress import Progress
from axonnx.cli import terminal_progress as module
from axonnx.cli.command import run_verb
from axonnx.cli.terminal_progress import Shown
from axonnx.runtime.jobs.work import Outcome
from axonnx.train.output_files import Epochs

main = partial(run_verb, "train")

ROW = {
    "epoch": 3,
    "phase": "train",
    "loss": 0.12345,
    "train_accuracy": 0.5,
    "test_accuracy": 0.25,
    "rate": 0.1,
    "seconds": 2.0,
    "waiting": 0.015,
}


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    """The time, which only a test moves on."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def tell(progress, clock, seconds: float = 0.0) -> None:
    """An epoch, the third of four."""
    progress.start(epochs=4, batches=3, done=2)
    for _ in range(3):
        clock[0] += seconds
        progress.batch(0.5, 0.75, 0.125)
    progress.epoch(ROW)
    progress.finish()


def test_a_log_gets_one_line_a_minute_and_the_last_figures(clock):
    out = StringIO()
    epochs = Epochs(Shown("train", out=out))
    epochs.start(epochs=100, batches=10, done=0)
    for _ in range(100):  # 3 s an epoch: 5 minutes
        for _ in range(10):
            clock[0] += 0.3
            epochs.batch(0.5, 0.75, 0.125)
        epochs.epoch(ROW)
    lines = out.getvalue().splitlines()
    assert len(lines) == 6  # five minutes, and the end
    assert lines[-1].startswith("epoch 100/100  loss 0.1235  train 50.0 %  test 25.0 %  rate 0.100  left 0:00")
    assert "\x1b" not in out.getvalue()
    assert "\r" not in out.getvalue()


def test_a_line_names_the_fine_tuning():
    epochs = Epochs(Progress())
    epochs.start(4, 1, 2)
    epochs.done = 3
    assert epochs.line({**ROW, "phase": "finetune"}).startswith("epoch 3/4 finetune  loss")


def test_a_line_of_an_epoch_fits_eighty_columns():
    epochs = Epochs(Progress())
    epochs.start(100, 1, 0)
    epochs.done = 100
    assert len(epochs.line({**ROW, "train_accuracy": 1.0, "test_accuracy": 1.0})) < 80


def test_the_remaining_time_is_that_of_the_epochs_of_this_process(clock):
    out = Terminal()
    epochs = Epochs(Shown("train", out=out))
    epochs.start(epochs=5, batches=1, done=2)  # two epochs were done by an earlier process
    clock[0] += 90
    epochs.epoch(ROW)
    assert out.getvalue().endswith("left 3:00\n")


def test_a_terminal_shows_the_batches_and_never_wraps(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = Terminal()
    tell(Epochs(Shown("train", out=out)), clock, seconds=1)
    drawn = [part.removeprefix("\x1b[K") for part in out.getvalue().replace("\n", "").split("\r")]
    assert max(map(len, drawn)) == 59
    assert "epoch 3/4: 2 of 3, loss 0.500, accuracy 75.0 %, 0:01 left" in [part.rstrip() for part in drawn] or any(
        part.startswith("epoch 3/4: 2 of 3, loss 0.500") for part in drawn
    )
    assert out.getvalue().splitlines()[-1].rpartition("\x1b[K")[2].startswith("epoch 3/4  loss 0.1235")


def test_work_that_is_interrupted_leaves_a_clean_line(clock):
    out = Terminal()
    epochs = Epochs(Shown("train", out=out))
    epochs.start(4, 3, 0)
    clock[0] += 1
    epochs.batch(0.5, 0.75, 0.125)
    epochs.finish()
    epochs.finish()  # twice does no harm
    assert out.getvalue().endswith(module.CLEAR)


def test_silence_is_silent(capsys, clock):
    tell(Epochs(Progress()), clock, seconds=100)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_quiet_leaves_warnings_alone():
    out = StringIO()
    shown = Shown("train", quiet=True, out=out)
    shown.note("train: 32 events are cut off")
    shown.figures("epoch 1/1", last=True)
    shown.note("warning: gradients vanish")
    assert out.getvalue() == "axonnx train: warning: gradients vanish\n"


def test_jobs_are_counted_and_failures_told(clock):
    out = StringIO()
    shown = Shown("eval", out=out)
    for outcome in shown.watch("evaluate")(3, [Outcome("a", 1), Outcome("b", fault="no memory"), Outcome("c", 2)]):
        clock[0] += 50
        assert outcome.name in "abc"
    assert "axonnx eval: evaluate: b failed: no memory" in out.getvalue()
    assert "evaluate: 3 of 3" in out.getvalue()


def test_what_was_done_before_says_nothing_of_the_time_that_is_left(clock):
    shown = Shown("run", out=StringIO())
    shown.begin("recordings", 10, done=8)
    clock[0] += 5
    shown.step()
    assert shown.line() == "recordings: 9 of 10, 0:05 left"


def test_the_stream_is_the_stderr_of_the_moment(monkeypatch, clock):
    """Not that of the import: notebooks and tests exchange it."""
    out = StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    Shown("train").note("started")
    assert out.getvalue() == "axonnx train: started\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_writes_progress_to_stderr_and_the_table_to_stdout(config_file, monkeypatch, capsys, terminal):
    if terminal:
        monkeypatch.setattr(sys, "stderr", Terminal())
    assert main([config_file(), "--out", "run"]) == 0
    said = capsys.readouterr()
    shown = sys.stderr.getvalue() if terminal else said.err
    assert "epoch 3/3  loss" in shown
    assert ("\r" in shown) is terminal
    assert said.out.splitlines()[0].startswith("part")
    assert "epoch" not in said.out
