"""What training writes down of itself: the same again from the checkpoint, and nothing that the next epoch outlives."""

import torch

from axonnx.train.checkpoint import Position, load_witness, save_checkpoint
from axonnx.train.run import restore_run, train_run
from axonnx.train.training_witness import batches_of, hashes, input_of, made_again, passes

from .tiny_runs import tiny_config, write_data


def test_everything_is_the_same_again_from_the_checkpoint(tmp_path):
    config = tiny_config(write_data(tmp_path / "data.npz"), data__shift=1, data__centre=1)
    run = train_run(config, tmp_path / "run")
    held, circumstances = load_witness(run.folder / "checkpoint")
    _, prepared, network = restore_run(run.folder, "cpu")
    batch = made_again(prepared, config, "test", held["samples"].numpy())
    assert torch.equal(batch.labels, held["labels"])
    assert torch.equal(batch.x, input_of(held))
    assert bool((batch.x < 0).any())
    assert bool((batch.x % 1 != 0).any())
    again = passes(network, batch.x)
    assert any(name.startswith("float32/spikes/") for name in again)
    assert all(torch.equal(held[name], value) for name, value in again.items())
    assert circumstances["device"] == "cpu"
    learned = made_again(prepared, config, "train", held["learned/samples"].numpy())
    assert torch.equal(learned.labels, held["learned/labels"])
    assert torch.equal(hashes(learned.x, timed=True), held["learned/input"])


def test_decisions_are_those_behind_the_figures(tmp_path):
    run = train_run(tiny_config(write_data(tmp_path / "data.npz"), variant__name="mfa"), tmp_path / "run")
    held, _ = load_witness(run.folder / "checkpoint")
    for part, figures in run.metrics.items():
        right = held[f"decided/{part}"].argmax(1) == held[f"truth/{part}"]
        assert len(right) == figures["samples"]
        assert int(right.sum()) == round(figures["accuracy"] * len(right))
    assert {"train", "test", "test_bayesian"} <= set(run.metrics)


def test_batches_of_a_part_are_all_its_samples(tmp_path):
    config = tiny_config(write_data(tmp_path / "data.npz", samples=400))
    _, prepared, _ = restore_run(train_run(config, tmp_path / "run").folder)
    found = batches_of(prepared, config, "train")
    assert len(found) > 1
    assert [int(n) for batch in found for n in batch] == list(range(len(prepared.splits.train)))


def test_the_next_checkpoint_forgets_the_witness(tmp_path):
    run = train_run(tiny_config(write_data(tmp_path / "data.npz", time=False), time=False), tmp_path / "run")
    folder, training = run.folder / "checkpoint", run.training
    assert load_witness(folder) is not None
    save_checkpoint(folder, training.network, training.optimiser, Position(9, {}, "", ""))
    assert load_witness(folder) is None
    assert not list(folder.glob("witness-*"))


def test_a_hash_is_of_one_step_and_sample_and_zero_has_no_sign():
    values = torch.rand(4, 3, 5)
    changed = values.clone()
    changed[2, 1, 0] += 1e-7
    assert (hashes(values, True) != hashes(changed, True)).nonzero().tolist() == [[2, 1]]
    assert torch.equal(hashes(torch.zeros(2, 3), False), hashes(-torch.zeros(2, 3), False))
