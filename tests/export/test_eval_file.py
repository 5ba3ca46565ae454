"""An exported file on the data it was trained on, given as it was recorded and by name."""

import json

import numpy as np
import pytest

from axonnx.cli import main
from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.write import build_model, write_model
from axonnx.models import SpikingMLP
from axonnx.runtime.binning import Binning
from axonnx.runtime.binning.recordings import bin_batch
from axonnx.runtime.format.contract import InputContract, MergingContract
from axonnx.runtime.measure.metrics import metrics_of
from axonnx.runtime.model import load
from axonnx.train.config.read import check_config
from axonnx.train.data.registry import load_data_set
from axonnx.train.run import train_run
from axonnx.train.trained import open_run

from .tiny_runs import STEPS, contract_of, write_frames


def evaluated(capsys, *words):
    assert main(["eval", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    """A folder with train.npz and test.npz of recorded frames, and a run that was trained on sums of two of them."""
    folder = tmp_path_factory.mktemp("merged")
    data = folder / "data"
    data.mkdir()
    write_frames(data / "train.npz")
    write_frames(data / "test.npz", samples=40)
    settings = {
        "device": "cpu",
        "data": {"name": str(data), "merge_frames": 2, "clip": 4},
        "model": {"network": "spiking-mlp", "hidden": [6]},
        "variant": {"name": "sbnn"},
        "optimiser": {"epochs": 1, "batch_size": 8},
        "eval_samples": 1,
    }
    train_run(check_config(settings, "merged"), folder / "run")
    return folder


def test_a_file_takes_the_frames_as_they_were_recorded(merged, capsys):
    file = merged / "model.onnx"
    assert main(["export", str(merged / "run"), "-o", str(file), "--passes", "1", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert f"  axonnx run {file} FRAMES.npz   (3 frames of 1×4×4 (sums of 2 of 5 recorded frames))" in said
    assert f"  axonnx eval {file} --data {merged / 'data'}" in said
    assert contract_of(file).input.merging == MergingContract(recorded=STEPS, frames=2, clip=4)
    recorded = evaluated(capsys, file, "--data", merged / "data")
    assert evaluated(capsys, file, "--data", merged / "run")["confusion"] == recorded["confusion"]
    stated = contract_of(file).accuracy[-1]
    assert stated.way == "file"
    assert (recorded["samples"], recorded["accuracy"]) == (40, stated.accuracy)
    assert recorded["nll"] == pytest.approx(stated.nll, rel=1e-6)  # torch's softmax is in float32
    x = np.concatenate([x.numpy() for x, _ in open_run(str(merged / "run")).data("test", None)], 1)
    labels = np.load(merged / "data" / "test.npz")["labels"]
    np.savez(merged / "steps.npz", frames=x.swapaxes(0, 1), labels=labels)
    as_trained = evaluated(capsys, file, "--data", merged / "steps.npz")
    assert as_trained["confusion"] == recorded["confusion"]
    assert as_trained["nll"] == recorded["nll"]
    assert main(["run", str(file), str(merged / "data" / "test.npz")]) == 0


def test_a_data_set_by_name(tmp_path, capsys):
    splits = load_data_set("digits-saccade")
    assert splits.sensor is not None
    binning = Binning.over(duration_us=300_000, bins=3, sensor=splits.sensor, downsample=2, origin="first")
    entering = InputContract(name="events", shape=binning.frame_shape, steps=3, binning=binning, largest=binning.limit)
    collapsed = collapse_network(SpikingMLP(binning.cells, [6], 3), entering, CollapseSettings())
    names = ("7", "1", "4")  # some of the data set's classes, in the network's own order
    write_model(build_model(collapsed, make_contract(collapsed, names, "sequence")), tmp_path / "digits.onnx")
    result = evaluated(capsys, tmp_path / "digits.onnx", "--data", "digits-saccade")
    chosen = splits.with_classes([7, 1, 4]).test
    model = load(tmp_path / "digits.onnx", "numpy")
    frames = bin_batch(chosen.events, chosen.offsets, binning).frames
    by_hand = metrics_of(model.run(model.prepare(frames.swapaxes(0, 1))).probabilities, chosen.labels)
    assert result["confusion"] == by_hand.confusion
    assert result["notes"] == [
        f"{len(splits.test) - len(chosen)} samples of classes that the network does not have are left out"
    ]
    assert result["data"] == "digits-saccade, test part"
    train = evaluated(capsys, tmp_path / "digits.onnx", "--data", "digits-saccade", "--part", "train")
    assert train["samples"] == len(splits.with_classes([7, 1, 4]).train)
    assert train["data_sha256"] != result["data_sha256"]
    for data, fault in (
        ("digits-static", "holds frames or images; the network takes events"),
        ("digitz", "did you mean"),
    ):
        assert main(["eval", str(tmp_path / "digits.onnx"), "--data", data]) == 2
        assert fault in capsys.readouterr().err
