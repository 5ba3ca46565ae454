"""Callbacks hear of every epoch; TensorBoard, Weights & Biases, MLflow and Lightning get every number of a row."""

import csv
import json
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from axonnx.cli.command import run_verb
from axonnx.train.callbacks import Callback, Callbacks, LightningLogger, MLflow, TensorBoard, WandB, has_tensorboard
from axonnx.train.health import NonFiniteError
from axonnx.train.run import train_run

from .tiny_runs import rows_of, tiny_config, write_data

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
    assert not has_tensorboard()
    assert Callbacks().all == ()
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


class Listener(Callback):
    """Remembers what it heard."""

    def __init__(self, fails: bool = False) -> None:
        self.heard: list[str] = []
        self.fails = fails

    def on_start(self, folder, settings, epochs_done):
        self.heard.append(f"start {folder.name} {settings['optimiser.epochs']} {epochs_done}")

    def on_epoch(self, epoch, figures):
        assert figures.keys() & {"cross_entropy", "test_accuracy"} == {"cross_entropy", "test_accuracy"}
        assert not figures.keys() & {"epoch", "phase"}
        self.heard.append(f"epoch {epoch}")
        if self.fails:
            raise RuntimeError("mine")

    def on_end(self, figures):
        assert 0.0 <= figures["test/accuracy"] <= 1.0
        self.heard.append("end")

    def close(self):
        self.heard.append("close")


def run(tmp_path: Path, *callbacks: Callback) -> Path:
    config = tiny_config(write_data(tmp_path / "data.npz"), optimiser__epochs=2)
    return train_run(config, tmp_path / "run", callbacks=callbacks).folder


def test_a_callback_hears_of_everything_in_order(missing, tmp_path):
    listener = Listener()
    run(tmp_path, listener)
    assert listener.heard == ["start run 2 0", "epoch 1", "epoch 2", "end", "close"]


def test_a_callback_that_fails_ends_the_training_and_all_are_closed(missing, tmp_path):
    failing, other = Listener(fails=True), Listener()
    with pytest.raises(RuntimeError, match="mine"):
        run(tmp_path, failing, other)
    assert (failing.heard[-1], other.heard) == ("close", ["start run 2 0", "close"])


def test_the_real_tensorboard_reads_what_was_written(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    folder = run(tmp_path)
    found = accumulator.EventAccumulator(str(folder / "tensorboard")).Reload()
    rows = rows_of(folder)
    scalars = found.Scalars("test_accuracy")
    assert [each.step for each in scalars] == [1, 2]
    assert [each.value for each in scalars] == pytest.approx([float(row["test_accuracy"]) for row in rows])
    assert len(found.Tags()["scalars"]) == len(rows[0]) - 2


def test_tensorboard_is_there_once():
    given = TensorBoard()
    assert Callbacks((given,)).all == (given,)


def test_weights_and_biases_offline(missing, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "wandb"))
    monkeypatch.setenv("WANDB_SILENT", "true")
    kept: dict[str, object] = {}

    class Kept(WandB):
        def on_end(self, figures):
            super().on_end(figures)
            kept.update(step=self.run.step, config=dict(self.run.config), summary=dict(self.run.summary))

    folder = run(tmp_path, Kept(mode="offline", project="tests"))
    assert kept["config"]["optimiser.epochs"] == 2
    assert kept["summary"]["test_accuracy"] == pytest.approx(float(rows_of(folder)[-1]["test_accuracy"]))
    assert kept["summary"]["test/accuracy"] == json.loads((folder / "metrics.json").read_text())["test"]["accuracy"]
    assert list((folder / "wandb").glob("offline-run-*/*.wandb"))


def test_mlflow_in_files(missing, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    folder = run(tmp_path, MLflow())
    (found,) = mlflow.search_runs(output_format="list", search_all_experiments=True)
    assert found.data.params["optimiser.epochs"] == "2"
    assert found.data.metrics["test_accuracy"] == pytest.approx(float(rows_of(folder)[-1]["test_accuracy"]))
    assert found.info.status == "FINISHED"


def test_any_logger_of_lightning(missing, tmp_path):
    loggers = pytest.importorskip("pytorch_lightning.loggers")
    folder = run(tmp_path, LightningLogger(loggers.CSVLogger(tmp_path, "theirs", version=0)))
    with (tmp_path / "theirs" / "version_0" / "metrics.csv").open() as file:
        written = [row for row in csv.DictReader(file) if row["test_accuracy"]]
    assert [float(row["test_accuracy"]) for row in written] == [float(r["test_accuracy"]) for r in rows_of(folder)]
