"""Checkpoints that cannot be trusted: each is refused with the file, what is wrong with it, and what to do."""

import hashlib
import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.cli import main as axonnx
from axonnx.cli.command import run_verb
from axonnx.train.checkpoint import Position, _index_hash, load_checkpoint, read_index, save_checkpoint
from axonnx.train.loop import new_training
from axonnx.train.run import restore_run
from axonnx.train.run_folder import RunFolder

from .tiny_runs import same_bits, tiny_config, tiny_network, write_config, write_data

main = partial(run_verb, "train")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run after one of its three epochs, on data of its own."""
    folder = tmp_path_factory.mktemp("whole")
    data = write_data(folder / "data.npz")
    source = write_config(folder / "tiny.toml", data, optimiser__epochs=1)
    assert main([source, "--out", str(folder / "run"), "--quiet"]) == 0
    path = folder / "run" / "config.toml"
    path.write_text(path.read_text().replace("epochs = 1", "epochs = 3"))
    return folder


@pytest.fixture
def run(whole, tmp_path):
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(whole / "run", tmp_path / "run"))


def refused(run: Path, *, also_eval: bool = True) -> str:
    """What ``--resume`` says; ``eval`` must refuse too, and nothing may be touched."""
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(AxonnxError) as fault:
        main(["--resume", "--out", str(run), "--quiet"])
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    if also_eval:
        with pytest.raises(AxonnxError):
            restore_run(run)
    return str(fault.value)


def index_or_none(folder: Path) -> dict | None:
    try:
        return read_index(folder)
    except AxonnxError:
        return None


def change_index(run: Path, **changes) -> None:
    """An index with other contents and, unlike damage, the right hash of them."""
    path = run / "checkpoint" / "checkpoint.json"
    index = {**json.loads(path.read_text()), **changes}
    index.pop("sha256")
    path.write_text(json.dumps({**index, "sha256": _index_hash(index)}))


def test_the_copy_is_sound_before_it_is_damaged(run):
    assert main(["--resume", "--out", str(run), "--quiet"]) == 0
    assert read_index(run / "checkpoint")["epochs_done"] == 3


@pytest.mark.parametrize("kind", ["weights", "optimiser"])
@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped bit", "missing", "exchanged"])
def test_a_damaged_tensor_file_is_refused(run, kind, damage):
    path = run / "checkpoint" / f"{kind}-00001.safetensors"
    contents = bytearray(path.read_bytes())
    if damage == "flipped bit":
        contents[-3] ^= 1
    kept = {"truncated": contents[: len(contents) // 2], "empty": b"", "exchanged": b"another file"}
    path.write_bytes(kept.get(damage, contents))
    if damage == "missing":
        path.unlink()
    text = refused(run, also_eval=kind == "weights")  # eval needs no optimiser
    assert text.startswith(f"{path}: missing" if damage == "missing" else f"{path}: damaged (its sha256 is not the one")
    assert "restore the run folder from a copy, or train again and overwrite it" in text


def test_a_file_that_is_no_tensor_file_though_its_hash_is_right(run):
    path = run / "checkpoint" / "weights-00001.safetensors"
    path.write_bytes(b"nonsense")
    files = read_index(run / "checkpoint")["files"]
    files["weights"]["sha256"] = hashlib.sha256(b"nonsense").hexdigest()
    change_index(run, files=files)
    assert f"{path}: not a safetensors file" in refused(run)


@settings(max_examples=25)
@given(data=st.data())
def test_any_flipped_bit_of_the_index_is_noticed(whole, data):
    folder = whole / "run" / "checkpoint"
    path, good = folder / "checkpoint.json", (folder / "checkpoint.json").read_bytes()
    position = data.draw(st.integers(0, len(good) - 1))
    contents = bytearray(good)
    contents[position] ^= 1 << data.draw(st.integers(0, 7))
    sound = read_index(folder)
    try:
        path.write_bytes(contents)
        found = index_or_none(folder)
    finally:
        path.write_bytes(good)
    # What passes says the same: the bit was in white space, or in the name of the hash, which then guards nothing.
    assert found in (None, sound) or {**sound, **found}.keys() - sound.keys()


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"files": {}}, "files"),
        ({"files": None}, "files"),
        ({"files": {"weights": {"name": "weights-00001.safetensors"}, "optimiser": 3}}, "files.weights.sha256"),
        (
            {"files": {"weights": {"name": "../../w-1.safetensors", "sha256": ""}, "optimiser": {}}},
            "files.weights.name",
        ),
        ({"epochs_done": "1"}, "epochs_done"),
        ({"epochs_done": -1}, "epochs_done"),
        ({"random_state": []}, "random_state"),
        ({"versions": {"torch": 2}}, "versions.torch"),
        ({"data_digest": None}, "data_digest"),
    ],
)
def test_an_index_of_other_types_is_refused_by_its_place(run, changes, where):
    change_index(run, **changes)
    assert f"checkpoint.json: damaged ({where}: " in refused(run)


def test_an_index_without_a_hash_of_its_own_is_refused(run):
    path = run / "checkpoint" / "checkpoint.json"
    index = json.loads(path.read_text())
    index.pop("sha256")
    path.write_text(json.dumps(index))
    assert "damaged (it has no sha256 of its own)" in refused(run)


def test_an_index_nested_without_end_is_refused(run):
    (run / "checkpoint" / "checkpoint.json").write_text("[" * 100_000)
    assert "damaged (RecursionError" in refused(run)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"epochs_done": 3}', "null"])
def test_an_index_that_is_none_is_refused(run, text):
    path = run / "checkpoint" / "checkpoint.json"
    path.write_text(text)
    assert refused(run).startswith(f"{path}: damaged (")


@pytest.mark.parametrize("number", [0, 2, "1"])
def test_another_format_is_refused_with_both_numbers(run, number):
    change_index(run, format=number)
    assert f"checkpoint format {number!r}; this version reads format 1. Upgrade axonnx" in refused(run)


def test_a_checkpoint_of_another_network_is_refused(run):
    path = run / "config.toml"
    path.write_text(path.read_text().replace("hidden = [6, 5]", "hidden = [6, 4]"))
    text = refused(run)
    assert "the checkpoint is of another network than the configuration's" in text
    assert "hidden.1.synapse.posterior.raw_mean" in text


def test_other_data_than_the_run_began_with_is_refused(run, whole):
    good = (whole / "data.npz").read_bytes()
    write_data(whole / "data.npz", seed=1)
    try:
        text = refused(run)
    finally:
        (whole / "data.npz").write_bytes(good)
    assert f"the data set '{whole / 'data.npz'}' is not the one this run was trained on" in text


@pytest.mark.parametrize("damage", ["missing", "cut", "nonsense"])
def test_results_that_do_not_reach_to_the_checkpoint_are_refused(run, damage):
    path = run / "results.csv"
    kept = {"missing": None, "cut": path.read_text().splitlines()[0] + "\n", "nonsense": "a,b\n1,2\n"}[damage]
    path.unlink() if kept is None else path.write_text(kept)
    assert f"{path}: does not hold the rows of epochs 1 to 1" in refused(run, also_eval=False)


def test_resume_takes_no_overrides_that_contradict(run):
    for extra, text in (
        (["--optimiser.epochs", "5"], "was started with optimiser.epochs = "),
        (["--data-root", "/x"], "was started with data.root = None and this command says '/x'"),
    ):
        with pytest.raises(AxonnxError, match=text):
            main(["--resume", "--out", str(run), *extra])


def test_resume_and_overwrite_exclude_each_other(run):
    with pytest.raises(AxonnxError, match="give one of them"):
        main(["--resume", "--overwrite", "--out", str(run)])
    assert read_index(run / "checkpoint")


@pytest.mark.parametrize("words", [["--out", "nothing"]])
def test_resume_where_there_is_no_run(words, tmp_path, capsys):
    (tmp_path / "nothing").mkdir()
    assert axonnx(["train", *words, "--resume"]) == 2
    assert "no run here (config.toml is missing). Start one: axonnx train" in capsys.readouterr().err


def test_a_run_without_a_checkpoint_cannot_be_evaluated(run):
    shutil.rmtree(run / "checkpoint")
    with pytest.raises(AxonnxError, match=r"no checkpoint \(checkpoint.json is missing\)"):
        restore_run(run)


@pytest.mark.parametrize("variant", ["sbnn", "fpv", "sg-bn"])
def test_save_and_load_give_back_every_bit(frames, tmp_path, variant):
    config = tiny_config(frames, variant={"name": variant})
    first, _ = tiny_network(config)
    training = new_training(first, config, torch.device("cpu"))
    for parameter in first.parameters():
        parameter.grad = torch.randn_like(parameter)
    training.optimiser.step()
    position = Position(7, {"seed": 3, "epoch": 7}, "text", "digest")
    save_checkpoint(tmp_path / "c", first, training.optimiser, position)
    second, _ = tiny_network(config.model_copy(update={"seed": 5}))
    other = new_training(second, config, torch.device("cpu"))
    assert load_checkpoint(tmp_path / "c", second, other.optimiser) == position
    assert same_bits(dict(first.state_dict()), dict(second.state_dict()))
    kept, back = (each.optimiser.state_dict()["state"] for each in (training, other))
    assert kept.keys() == back.keys()
    assert all(same_bits(kept[number], back[number]) for number in kept)


def test_the_optimiser_of_another_network_is_refused(frames, tmp_path, run):
    config = tiny_config(frames, model__hidden=[6])
    network, _ = tiny_network(config)
    one = new_training(network, config, torch.device("cpu")).optimiser
    with pytest.raises(AxonnxError, match="another network"):
        load_checkpoint(run / "checkpoint", network, one)


def test_the_folder_without_a_checkpoint_starts_from_the_beginning(run):
    shutil.rmtree(run / "checkpoint")
    assert main(["--resume", "--out", str(run), "--quiet"]) == 0
    assert [row["epoch"] for row in RunFolder(run).read_results(3)] == [1, 2, 3]
    assert np.isfinite([row["loss"] for row in RunFolder(run).read_results(3)]).all()


@pytest.mark.parametrize(
    "rows", [b"\xff\xfe", b"epoch,loss\n1,2,3\n", b"epoch,loss\n1\n", b'epoch\n"' + b"1" * 200_000, b"epoch\n\0\n"]
)
def test_rows_that_are_no_table_are_refused(run, rows):
    (run / "results.csv").write_bytes(rows)
    assert "does not hold the rows of epochs 1 to 1" in refused(run, also_eval=False)


def test_more_epochs_than_there_are_rows_are_refused_without_counting_them(run):
    change_index(run, epochs_done=10**12)
    assert f"does not hold the rows of epochs 1 to {10**12}" in refused(run, also_eval=False)
