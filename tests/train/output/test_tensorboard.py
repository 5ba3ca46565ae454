"""TensorBoard where it is installed: every number of a row over its epoch; nothing where it is not."""

import sys
from functools import partial
from types import ModuleType

import pytest

from axonnx.cli.command import run_verb
from axonnx.train.finite import NonFiniteError
from axonnx.train.output.curves import Board, open_board

from ..tiny_runs import rows_of

main = partial(run_verb, "train")


class Writer:
    """A stand-in for SummaryWriter that remembers."""

    made: list["Writer"]

    def __init__(self, log_dir, purge_step):
        self.log_dir, self.purge_step = log_dir, purge_step
        self.scalars: list[tuple[str, float, int]] = []
        self.flushed, self.closed = 0, False
        Writer.made.append(self)

    def add_scalar(self, tag, value, step):
        assert not self.closed
        self.scalars.append((tag, value, step))

    def flush(self):
        self.flushed += 1

    def close(self):
        self.closed = True


@pytest.fixture
def installed(monkeypatch) -> list[Writer]:
    """The writers that were made while a module like torch.utils.tensorboard was there."""
    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    Writer.made = []
    return Writer.made


@pytest.fixture
def missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)


def test_without_the_package_there_is_no_board_and_no_word(missing, tmp_path, config_file, capsys):
    assert open_board(tmp_path / "board", 0) is None
    assert main([config_file(optimiser__epochs=1), "--out", "run", "--quiet"]) == 0
    assert not (tmp_path / "run" / "tensorboard").exists()
    assert capsys.readouterr().err == ""


def test_every_number_of_every_row_is_written(installed, config_file, tmp_path):
    main([config_file(), "--out", str(tmp_path / "run"), "--quiet"])
    (writer,) = installed
    assert writer.log_dir == str(tmp_path / "run" / "tensorboard")
    rows = rows_of(tmp_path / "run")
    numbers = [name for name in rows[0] if name not in ("epoch", "phase")]
    assert len(numbers) > 10
    expected = {(name, float(row[name]), int(row["epoch"])) for row in rows for name in numbers}
    assert set(writer.scalars) == expected
    assert len(writer.scalars) == len(expected)
    assert (writer.flushed, writer.closed) == (3, True)


def test_a_resumed_run_goes_on_after_what_it_had_and_takes_back_the_rest(installed, config_file, tmp_path):
    main([config_file(optimiser__epochs=1), "--out", "run", "--quiet"])
    path = tmp_path / "run" / "config.toml"
    path.write_text(path.read_text().replace("epochs = 1", "epochs = 2"))
    main(["--resume", "--out", "run", "--quiet"])
    assert [writer.purge_step for writer in installed] == [1, 2]
    assert {step for _, _, step in installed[1].scalars} == {2}


def test_overwriting_discards_the_board_too(missing, config_file, tmp_path):
    main([config_file(optimiser__epochs=1), "--out", "run", "--quiet"])
    (tmp_path / "run" / "tensorboard").mkdir()
    (tmp_path / "run" / "tensorboard" / "events.out").write_text("old")
    main([config_file(optimiser__epochs=1), "--out", "run", "--quiet", "--overwrite"])
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_a_run_that_stops_closes_its_board(installed, config_file, monkeypatch):
    def stop(*_):
        raise NonFiniteError("here")

    monkeypatch.setattr("axonnx.train.loop._step", stop)
    with pytest.raises(NonFiniteError):
        main([config_file(), "--out", "run", "--quiet"])
    assert installed[0].closed


def test_words_and_the_epoch_itself_are_no_scalars():
    Writer.made = []
    writer = Writer("", 1)
    Board(writer).add({"epoch": 4, "phase": "train", "loss": 0.5, "count": 3})
    assert writer.scalars == [("loss", 0.5, 4), ("count", 3, 4)]
