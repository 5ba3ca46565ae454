"""What a run leaves behind, and what it takes to replace it."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.cli import main as axonnx
from axonnx.cli.command import run_verb
from axonnx.cli.options import settings_of
from axonnx.train import run
from axonnx.train.checkpoint import read_index
from axonnx.train.config.read import read_config, to_toml
from axonnx.train.output_files import draw_curves
from axonnx.train.run_folder import RunFolder

from .tiny_runs import optimiser_of, rows_of, same_bits, tiny_config, weights_of, without_time, write_config

main = partial(run_verb, "train")


@pytest.fixture(scope="module")
def complete(tmp_path_factory, frames):
    """The folder of a finished run, and what it printed on stdout and on stderr."""
    folder = tmp_path_factory.mktemp("complete")
    source = write_config(folder / "tiny.toml", frames, finetune__epochs=1)
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        assert main([source, "--out", str(folder / "run")]) == 0
    return folder / "run", out.getvalue(), err.getvalue()


@pytest.fixture
def finished(complete, tmp_path):
    """A copy of that folder, to do with what one likes."""
    return Path(shutil.copytree(complete[0], tmp_path / "run"))


def test_the_folder_holds_what_it_says(finished):
    names = {path.name for path in finished.iterdir()} - {"tensorboard"}  # where that is installed
    assert names == {"config.toml", "data.json", "results.csv", "metrics.json", "curves.png", "checkpoint", "log.txt"}
    assert {path.name for path in (finished / "checkpoint").iterdir()} == {
        "checkpoint.json",
        "weights-00004.safetensors",
        "optimiser-00004.safetensors",
        "witness-00004.safetensors",
    }


def test_results_have_a_row_for_each_epoch(finished):
    rows = rows_of(finished)
    assert [(row["epoch"], row["phase"]) for row in rows] == [
        *(("1", "train"), ("2", "train"), ("3", "train")),
        ("4", "finetune"),
    ]
    wanted = ("loss", "cross_entropy", "kl", "train_accuracy", "test_accuracy", "test_nll", "test_ece", "seconds")
    layers = ("rate/hidden.0.neuron", "rate/hidden.1.neuron", "gradient/hidden.0.synapse", "gradient/readout")
    for row in rows:
        assert all(float(row[name]) >= 0 for name in (*wanted, *layers))


def test_metrics_are_per_part_and_agree_with_the_last_row(finished):
    metrics = json.loads((finished / "metrics.json").read_text())
    assert set(metrics) == {"train", "test", "test_bayesian"}
    for part in metrics.values():
        assert {"accuracy", "nll", "ece", "brier", "accuracy_interval", "confusion", "samples", "rates"} <= set(part)
    last = rows_of(finished)[-1]
    for name in ("accuracy", "nll", "ece"):
        assert metrics["test"][name] == float(last[f"test_{name}"])
    assert metrics["train"]["samples"] + metrics["test"]["samples"] == 60


def test_baselines_without_a_posterior_have_no_bayesian_figures(config_file, tmp_path):
    main([config_file(variant={"name": "sg-nbn-1"}, optimiser__epochs=1), "--out", "sg", "--quiet"])
    assert set(json.loads((tmp_path / "sg" / "metrics.json").read_text())) == {"train", "test"}


def test_a_validation_part_has_figures_too(config_file, tmp_path):
    main([config_file(optimiser__epochs=1), "--data.validation.share=0.2", "--out", "v", "--quiet"])
    metrics = json.loads((tmp_path / "v" / "metrics.json").read_text())
    assert set(metrics) == {"train", "validation", "validation_bayesian", "test", "test_bayesian"}


def test_curves_are_a_png(finished):
    assert (finished / "curves.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_the_log_says_what_happened_when(finished):
    lines = (finished / "log.txt").read_text().splitlines()
    started, ended = (re.sub(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d ", "", line) for line in lines)
    assert started == "started after epoch 0"
    shares = [float(row["waiting"]) for row in rows_of(finished)]
    assert len(shares) == 4
    assert all(0 < share < 1 for share in shares)
    assert ended == f"finished after 4 epochs; {25 * sum(shares):.1f} % of training was waiting for data"


def test_the_checkpoint_tells_hashes_versions_and_random_state(finished):
    index = read_index(finished / "checkpoint")
    assert index["versions"]["torch"] == torch.__version__
    assert {"axonnx", "python", "numpy"} <= set(index["versions"])
    assert index["random_state"] == {"seed": 0, "epoch": 4}
    assert all(len(entry["sha256"]) == 64 for entry in index["files"].values())
    assert index["config"] == (finished / "config.toml").read_text()


def test_only_the_result_goes_to_stdout(complete):
    _, out, err = complete
    lines = out.splitlines()
    assert lines[0].split() == ["part", "samples", "accuracy", "95", "%", "interval", "NLL", "ECE", "Brier"]
    assert [line.split()[0] for line in lines[1:4]] == ["train", "test", "test_bayesian"]
    assert "epoch 4/4 finetune" in err
    assert "run folder:" in err


def test_quiet_says_nothing_but_the_result(config_file, capsys):
    main([config_file(optimiser__epochs=1), "--out", "q", "--quiet"])
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith("part")


def test_the_resolved_configuration_gives_the_same_run_again(finished, tmp_path):
    assert main([str(finished / "config.toml"), "--out", str(tmp_path / "again"), "--quiet"]) == 0
    assert same_bits(weights_of(finished), weights_of(tmp_path / "again"))
    assert same_bits(optimiser_of(finished), optimiser_of(tmp_path / "again"))
    assert without_time(rows_of(finished)) == without_time(rows_of(tmp_path / "again"))
    assert (finished / "config.toml").read_text() == (tmp_path / "again" / "config.toml").read_text()


def test_the_default_folder_has_the_name_of_the_configuration(config_file, tmp_path):
    main([config_file("mine", optimiser__epochs=1), "--quiet"])
    assert tomllib.loads((tmp_path / "runs" / "mine" / "config.toml").read_text())["optimiser"]["epochs"] == 1


def test_a_run_is_not_overwritten_unasked(finished, config_file, tmp_path, capsys):
    before = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    assert axonnx(["train", config_file(), "--out", str(finished)]) == 2
    assert (
        "holds a run already. Resume it, overwrite it, or name another folder (--resume, --overwrite, --output)"
        in capsys.readouterr().err
    )
    assert before == {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}


def test_overwrite_discards_the_run(finished, config_file):
    (finished / "mine.txt").write_text("not the run's")
    assert main([config_file(optimiser__epochs=1), "--out", str(finished), "--overwrite", "--quiet"]) == 0
    assert [row["epoch"] for row in rows_of(finished)] == ["1"]
    assert len((finished / "log.txt").read_text().splitlines()) == 2
    assert (finished / "mine.txt").exists()


@pytest.mark.parametrize("fault", ["--data.name=nowhere.npz", "--model.network=binary-mlp", "--variant.name=x"])
def test_a_run_that_cannot_begin_leaves_no_folder_and_discards_none(finished, config_file, tmp_path, fault):
    for out in (tmp_path / "new", finished):
        with pytest.raises(AxonnxError):
            main([config_file(), fault, "--out", str(out), "--overwrite"])
    assert not (tmp_path / "new").exists()
    assert (finished / "metrics.json").exists()
    assert weights_of(finished)


def test_a_setting_changed_by_hand_is_told_in_the_log(config_file, tmp_path):
    out = tmp_path / "run"
    main([config_file(optimiser__epochs=1), "--out", str(out), "--quiet"])
    path = out / "config.toml"
    path.write_text(to_toml(read_config(str(path), settings_of(["--optimiser.epochs=2", "--optimiser.clip_norm=1"]))))
    main(["--resume", "--out", str(out), "--quiet"])
    assert "resumed after epoch 1; changed since: epochs = 2, clip_norm = 1.0" in (out / "log.txt").read_text()
    assert [row["epoch"] for row in rows_of(out)] == ["1", "2"]


def test_without_matplotlib_there_is_no_picture_and_no_fault(config_file, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "draw_curves", draw_curves)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    main([config_file(optimiser__epochs=1), "--out", "plain", "--quiet"])
    assert not (tmp_path / "plain" / "curves.png").exists()
    assert (tmp_path / "plain" / "metrics.json").exists()


def test_train_run_is_the_command_as_a_function(frames, tmp_path, capsys):
    training = run.train_run(tiny_config(frames, optimiser__epochs=1), tmp_path / "api").training
    assert same_bits(dict(training.network.state_dict()), weights_of(tmp_path / "api"))
    with pytest.raises(AxonnxError, match="holds a run already"):
        run.train_run(tiny_config(frames), tmp_path / "api")


def test_two_trainings_never_share_a_folder(tmp_path, capsys, frames):
    source = write_config(tmp_path / "tiny.toml", frames)
    folder = RunFolder(tmp_path / "run")
    with folder.locked():
        for word in ("--overwrite", "--quiet"):
            assert axonnx(["train", source, "--out", str(folder.path), word]) == 2
            assert "another training writes here at this moment" in capsys.readouterr().err
        assert list(folder.path.iterdir()) == []
    assert axonnx(["train", source, "--out", str(folder.path), "--quiet"]) == 0


def test_what_killed_trainings_left_half_written_goes_at_the_next_start(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.checkpoint.mkdir(parents=True)
    left = [
        folder.path / ".results.csv.0a.axonnx.part",
        folder.checkpoint / ".weights-00001.safetensors.0a.axonnx.part",
    ]
    for path in left:
        path.write_text("half")
    with folder.locked():
        assert not any(path.exists() for path in left)


@pytest.mark.parametrize("place", ["file/run", "read-only"])
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, capsys, place, monkeypatch, frames):
    (tmp_path / "file").write_text("in the way")
    if place == "read-only":  # root may write everywhere, so the system's answer is planted

        def refuse(*_words, **_options):
            raise PermissionError(13, "Permission denied", "read-only")

        monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    source = write_config(tmp_path / "tiny.toml", frames)
    assert axonnx(["train", source, "--out", str(tmp_path / place), "--quiet"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert ("Not a directory" in err) or ("Permission denied" in err)


def test_a_full_disk_ends_a_training_in_one_line_and_leaves_nothing_half_written(tmp_path, frames):
    source = write_config(tmp_path / "tiny.toml", frames)
    command = [sys.executable, "-m", "axonnx.cli", "train", source, "--out", str(tmp_path / "run"), "--quiet"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, **full)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "File too large" in done.stderr
    assert list((tmp_path / "run").rglob("*.part")) == []
