"""Nothing lost: killed with SIGKILL at any moment and resumed, a run ends with the bits of one that was left alone."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.cli.command import run_verb

from . import kill_driver
from .tiny_runs import optimiser_of, rows_of, same_bits, weights_of, without_time, write_config

main = partial(run_verb, "train")

SETTINGS = {
    "optimiser": {"epochs": 3, "batch_size": 8, "warmup_epochs": 0.5},
    "finetune": {"epochs": 1, "rate": 0.1},
    "model": {"network": "recurrent-snn", "hidden": [6]},
    "variant__name": "sbnn",
    "seed": 11,
}


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache)}


@pytest.fixture(scope="module")
def killed(tmp_path_factory, frames, cache):
    """The driver's report, and the folder with all its runs. The estimator and the augmentation are random too."""
    folder = tmp_path_factory.mktemp("killed")
    source = Path(write_config(folder / "tiny.toml", frames, **SETTINGS))
    source.write_text(source.read_text().replace('name = "sbnn"', 'name = "sbnn"\nestimator = { name = "gr", n = 2 }'))
    command = [sys.executable, kill_driver.__file__, str(source), str(folder)]
    done = subprocess.run(command, env=environment(cache), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "report.json").read_text()), folder


@pytest.mark.parametrize("point", kill_driver.POINTS)
def test_a_killed_run_resumes_to_the_same_bits(killed, point):
    report, folder = killed
    assert report[point]["killed"] == -signal.SIGKILL
    assert report[point]["resumed"] == 0
    assert same_bits(weights_of(folder / point), weights_of(folder / "whole"))
    assert same_bits(optimiser_of(folder / point), optimiser_of(folder / "whole"))


@pytest.mark.parametrize("point", kill_driver.POINTS)
def test_its_results_are_complete_and_nothing_is_left_over(killed, point):
    _, folder = killed
    rows = rows_of(folder / point)
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4"]
    assert without_time(rows) == without_time(rows_of(folder / "whole"))
    for name in ("metrics.json", "config.toml"):
        assert (folder / point / name).read_bytes() == (folder / "whole" / name).read_bytes()
    assert kill_driver.files(folder / point / "checkpoint") == kill_driver.files(folder / "whole" / "checkpoint")
    log = (folder / point / "log.txt").read_text()
    assert [log.count(word) for word in ("started", "resumed", "finished")] == [1, 1, 1]


def test_death_came_where_it_was_meant_to(killed):
    """What lay in the folders in between, so that the points are what they are called."""
    report, _ = killed
    left = {  # TensorBoard's files are there where it is installed
        point: {name for name in found["left"] if not name.startswith("tensorboard/")}
        for point, found in report.items()
    }
    old, new = "checkpoint/weights-00001.safetensors", "checkpoint/weights-00002.safetensors"
    assert {old, new} <= left["between the tensor files"]
    assert "checkpoint/optimiser-00002.safetensors" not in left["between the tensor files"]
    assert {old, new} <= left["new index, old files still there"]
    for point in ("weights written, not yet in place", "half a tensor file", "index written, not yet in place"):
        assert any(name.endswith(".part") for name in left[point])
    assert "checkpoint/checkpoint.json" not in left["first checkpoint without index"]
    assert left["before the first epoch"] == {"config.toml", "data.json", "log.txt"}
    assert "checkpoint/weights-00004.safetensors" in left["all epochs done, no figures yet"]


def test_killed_from_outside(tmp_path, frames, cache, capsys):
    source = write_config(tmp_path / "tiny.toml", frames, optimiser={"epochs": 8, "batch_size": 2})
    command = [sys.executable, "-m", "axonnx.cli", "train", source, "--out", "run", "--quiet"]
    process = subprocess.Popen(command, env=environment(cache))
    index = tmp_path / "run" / "checkpoint" / "checkpoint.json"
    while process.poll() is None and not (index.exists() and json.loads(index.read_text())["epochs_done"] >= 2):
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert main(["--resume", "--out", "run"]) == 0
    said = capsys.readouterr().err
    assert "epoch 8/8" in said
    assert "epoch 1/8" not in said
    main([source, "--out", "whole", "--quiet"])
    assert same_bits(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))
    assert without_time(rows_of(tmp_path / "run")) == without_time(rows_of(tmp_path / "whole"))


@pytest.mark.parametrize("epochs", [0, 1, 3])
def test_the_same_command_again_starts_or_goes_on(tmp_path, frames, cache, epochs):
    """As a queue does it: one command with its overrides, killed and started again until it ends."""
    source = write_config(tmp_path / "tiny.toml", frames)
    words = [source, "--optimizer.epochs", "6", "--batch_size", "2", "--seed=5", "--resume", "--quiet"]
    command = [sys.executable, "-m", "axonnx.cli", "train", *words, "-o", "run"]
    folder = tmp_path / "run"
    index = folder / "checkpoint" / "checkpoint.json"
    process = subprocess.Popen(command, env=environment(cache))
    while process.poll() is None:
        done = json.loads(index.read_text())["epochs_done"] if index.exists() else 0
        if (folder / "config.toml").exists() and done >= epochs:
            break
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert main([*words, "-o", "run"]) == 0
    assert main([*words, "-o", "run"]) == 0  # once more does no harm
    main([*words, "-o", "whole"])
    assert same_bits(weights_of(folder), weights_of(tmp_path / "whole"))
    assert same_bits(optimiser_of(folder), optimiser_of(tmp_path / "whole"))
    assert without_time(rows_of(folder)) == without_time(rows_of(tmp_path / "whole"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--optimiser.epochs", "4"], "was started with optimiser.epochs = 1 and this command says 4"),
        (["--seed", "9"], "was started with seed = 0 and this command says 9"),
        (["digits-static"], "was started with data.name = "),
    ],
)
def test_a_command_that_contradicts_the_started_run_is_refused_and_says_which(tmp_path, frames, words, text):
    source = write_config(tmp_path / "tiny.toml", frames, optimiser__epochs=1)
    main([source, "-o", "run", "--quiet"])
    before = (tmp_path / "run" / "results.csv").read_bytes()
    first = [] if words[0] == "digits-static" else [source]
    with pytest.raises(AxonnxError, match=text):
        main([*first, *words, "-o", "run", "--resume", "--quiet"])
    assert (tmp_path / "run" / "results.csv").read_bytes() == before
