"""Two processes on loopback: the gradient, the shards, the rows and the run folder of one."""

import inspect
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.cli.command import run_verb
from axonnx.train import distributed
from axonnx.train.distributed import World, world

from . import distributed_driver
from .tiny_runs import optimiser_of, rows_of, same_bits, weights_of, without_time, write_config, write_data

main = partial(run_verb, "train")


def torchrun(cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Two processes, as a person starts them."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache), "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def together(tmp_path_factory, frames, cache):
    """What the driver reports, and its folder."""
    folder = tmp_path_factory.mktemp("together")
    write_data(folder / "many.npz", samples=300)
    done = torchrun(cache, distributed_driver.__file__, str(frames), str(folder))
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "report.json").read_text())
    assert report["size"] == 2
    return report, folder


def same_gradient(one: dict[str, list[float]], other: dict[str, list[float]]) -> None:
    """Equal up to the order in which float64 sums were taken."""
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert any(values) or not any(other[name])
        torch.testing.assert_close(
            torch.tensor(values, dtype=torch.float64), torch.tensor(other[name], dtype=torch.float64),
            rtol=1e-9, atol=1e-12, msg=lambda text, name=name: f"{name}: {text}",
        )  # fmt: skip


@pytest.mark.parametrize("kl", ["neuron", "weight"])
def test_the_averaged_gradient_is_that_of_the_joint_batch_with_the_kl_counted_once(together, kl):
    pair, alone = together[0]["gradients"][kl]
    assert len(pair) == len(alone) == 3
    for number in range(3):
        same_gradient(pair[number], alone[number])


def test_shares_of_different_sizes_weigh_what_they_are(together):
    same_gradient(*together[0]["uneven"])


def test_shards_are_disjoint_and_complete_and_of_one_length(together):
    first, second = together[0]["shards"]
    assert len(first) == len(second) == 3
    assert [len(batch) for batch in first] == [9, 9, 6]
    samples = [sample for batch in (*first, *second) for sample in batch]
    assert len(samples) == len(set(samples)) == 48
    assert set(samples) == set(range(48))


def test_a_row_speaks_of_all_samples_not_of_the_first_process(together):
    pair, alone = together[0]["rows"]
    assert pair.keys() == alone.keys()
    multiplier = "lambda/hidden.0.neuron"
    for name in (
        "loss",
        "cross_entropy",
        "kl",
        "train_accuracy",
        "rate",
        "gradient_norm",
        "gradient/readout",
        multiplier,
    ):
        assert pair[name] == pytest.approx(alone[name], rel=1e-5), name  # float32 sums of two halves
    assert pair["test_nll"] == pytest.approx(alone["test_nll"], rel=1e-4)


def test_what_multipliers_follow_is_the_mean_over_all_samples(together):
    """0 with a quarter of the batch and 1 with the rest."""
    assert together[0]["means"] == {"layer": 0.75}


def test_a_resumed_run_of_two_processes_ends_with_the_same_bits(together):
    _, folder = together
    assert "resumed after epoch 1" in (folder / "resumed" / "log.txt").read_text()
    assert same_bits(weights_of(folder / "whole"), weights_of(folder / "resumed"))
    assert same_bits(optimiser_of(folder / "whole"), optimiser_of(folder / "resumed"))
    assert without_time(rows_of(folder / "whole")) == without_time(rows_of(folder / "resumed"))


def test_all_processes_evaluate_and_the_figures_are_those_of_one_to_the_bit(together):
    first, second, alone = together[0]["evaluated"]
    assert list(alone) == ["train", "test"]
    assert alone["train"]["samples"] == 240  # four batches: two for each process
    assert first == second == alone


def test_all_processes_temper_alike(together):
    first, second = together[0]["tempered"]
    assert first == second
    assert first[0] < 1.0
    assert len(first[1]) >= 2


@pytest.fixture(scope="module")
def pair(tmp_path_factory, frames, cache):
    """A run of two processes, its folder and its configuration."""
    folder = tmp_path_factory.mktemp("pair")
    source = write_config(folder / "tiny.toml", frames, optimiser={"epochs": 2, "batch_size": 4})
    done = torchrun(cache, "-m", "axonnx.cli", "train", source, "--out", str(folder / "run"), "--threads", "1")
    assert done.returncode == 0, done.stderr
    return done, folder / "run", source


def test_a_whole_run_leaves_the_folder_of_a_single_process(pair, tmp_path, capfd):
    done, folder, source = pair
    main([source, "--out", str(tmp_path / "alone"), "--quiet"])
    rows, alone = rows_of(folder), rows_of(tmp_path / "alone")
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert list(rows[0]) == list(alone[0])
    metrics = [json.loads((run / "metrics.json").read_text()) for run in (folder, tmp_path / "alone")]
    assert metrics[0].keys() == metrics[1].keys()
    assert weights_of(folder).keys() == weights_of(tmp_path / "alone").keys()
    log = (folder / "log.txt").read_text()
    assert len(log.splitlines()) == 2  # one process speaks
    assert done.stdout.count("test_bayesian") == 1
    assert done.stderr.count("epoch 2/2") == 1


def test_a_killed_process_ends_the_others_with_a_clear_message_and_the_run_resumes(pair, tmp_path, cache):
    _, whole, source = pair
    words = (source, "--out", str(tmp_path / "run"), "--threads", "1")
    done = torchrun(cache, distributed_driver.__file__, "kill", *words)
    assert done.returncode != 0
    assert "process 0 of 2: another process of this run died or was ended" in done.stderr
    assert "start all again and resume (--resume)" in done.stderr
    assert [row["epoch"] for row in rows_of(tmp_path / "run")] == ["1"]
    again = torchrun(cache, "-m", "axonnx.cli", "train", "--resume", *words[1:], "--quiet")
    assert again.returncode == 0, again.stderr
    assert same_bits(weights_of(tmp_path / "run"), weights_of(whole))
    assert (tmp_path / "run" / "metrics.json").read_bytes() == (whole / "metrics.json").read_bytes()


def test_one_process_is_a_world_of_one(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    with world() as here:
        assert (here.rank, here.size, here.leads) == (0, 1, True)
        network = torch.nn.Linear(2, 2)
        assert here.wrap(network) is network
        assert here.balance(5, torch.device("cpu")) == 1.0
        assert here.sum(torch.ones(2)).tolist() == [1, 1]
        here.wait()


@pytest.fixture
def group(monkeypatch):
    """What a process group is asked to do, in order."""
    asked = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(distributed.dist, "init_process_group", lambda **options: asked.append("init"))
    monkeypatch.setattr(distributed.dist, "barrier", lambda: asked.append("barrier"))
    monkeypatch.setattr(distributed.dist, "destroy_process_group", lambda: asked.append("destroy"))
    monkeypatch.setattr(distributed.dist, "get_rank", lambda: 1)
    monkeypatch.setattr(distributed.dist, "get_world_size", lambda: 2)
    return asked


def test_processes_leave_together(group):
    with world() as here:
        assert (here.rank, here.size) == (1, 2)
        assert group == ["init"]
    assert group == ["init", "barrier", "destroy"]


def test_a_process_that_fails_waits_for_nobody(group):
    with pytest.raises(AxonnxError, match="mine"), world():
        raise AxonnxError("mine")
    assert group == ["init"]


def test_only_the_first_process_leads():
    assert [World(rank, 3).leads for rank in range(3)] == [True, False, False]


def test_a_device_that_is_not_there_is_refused():
    assert World().device("cpu") == torch.device("cpu")
    for wanted in ("gpu", "cuda:99"):
        with pytest.raises(AxonnxError, match=f"device '{wanted}' cannot be used here: .* Try auto or cpu"):
            World().device(wanted)


def test_processes_join_with_patience_and_their_own_gpu():
    """Options that NCCL takes are checked by name alone: it never ran here."""
    on_cpus, on_gpus = (distributed.group_options(1, gpus) for gpus in (False, True))
    assert on_cpus == {"backend": "gloo", "timeout": distributed.PATIENCE}
    assert on_gpus == {"backend": "nccl", "timeout": distributed.PATIENCE, "device_id": torch.device("cuda", 1)}
    assert set(on_gpus) <= set(inspect.signature(torch.distributed.init_process_group).parameters)
