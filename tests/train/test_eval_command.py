"""``axonnx eval RUN``, and a run's network back in Python."""

import json
import subprocess
import sys
from functools import partial

import pytest
import torch

from axonnx.base.errors import AxonnxError
from axonnx.cli import main as axonnx
from axonnx.cli.build import metrics_table
from axonnx.cli.command import run_verb
from axonnx.models import MEAN_FIELD
from axonnx.train import evaluate
from axonnx.train.distributed import World
from axonnx.train.evaluate import predict_bayesian, predict_mean_field
from axonnx.train.loop import make_feeds
from axonnx.train.run import restore_run
from axonnx.trained_run import Run

from .tiny_runs import same_bits, weights_of, write_config

main = partial(run_verb, "train")
main_eval = partial(run_verb, "eval")


@pytest.fixture(scope="module")
def run(tmp_path_factory, frames):
    folder = tmp_path_factory.mktemp("eval")
    source = write_config(folder / "tiny.toml", frames, model__hidden=[12], optimiser__epochs=4)
    main([source, "--out", str(folder / "run"), "--quiet"])
    return folder / "run"


def test_the_table_has_a_line_for_each_part(run, capsys):
    assert axonnx(["eval", str(run)]) == 0
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()[:4]] == ["part", "train", "test", "test_bayesian"]
    assert said.err == ""


def test_json_is_one_object_with_the_figures_of_the_run(run, capsys):
    assert axonnx(["eval", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((run / "metrics.json").read_text())
    assert len(found["test"]["confusion"]) == 3
    assert set(found["test"]["rates"]) == {"hidden.0.neuron"}


def test_passes_is_the_number_of_noisy_passes(run, capsys, monkeypatch):
    passes = []
    predict = evaluate._pieces
    monkeypatch.setattr(evaluate, "_pieces", lambda *a, **k: (passes.append(a[3:] or k["passes"]), predict(*a, **k))[1])
    assert main_eval([str(run), "--passes", "5", "--json"]) == 0
    assert [number for number, *_ in passes] == [1, 1, 5]
    more = json.loads(capsys.readouterr().out)
    kept = json.loads((run / "metrics.json").read_text())
    assert more["test"] == kept["test"]
    assert more["test_bayesian"]["nll"] != kept["test_bayesian"]["nll"]


@pytest.mark.parametrize("number", ["0", "-3", "two", "1.5"])
def test_a_wrong_number_of_samples_is_refused(run, number, capsys):
    with pytest.raises(SystemExit) as end:
        main_eval([str(run), f"--passes={number}"])
    assert end.value.code == 2
    assert f"--passes: '{number}'; expected a whole number from 1 on" in capsys.readouterr().err


def test_a_run_that_is_not_there_is_wrong_use(tmp_path, capsys):
    assert axonnx(["eval", str(tmp_path / "nowhere")]) == 2
    assert f"axonnx eval: {tmp_path / 'nowhere'}: no run here (config.toml is missing)" in capsys.readouterr().err


def test_a_device_that_is_not_there_is_wrong_use(run):
    with pytest.raises(AxonnxError, match="device 'cuda:99' cannot be used here"):
        Run(run).evaluate(device="cuda:99")


def test_one_part_alone_is_named_by_the_same_option_as_for_files(run, capsys):
    assert axonnx(["eval", str(run), "--part", "train", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["train"]
    assert axonnx(["eval", str(run), "--part", "held-out"]) == 2
    assert "has no part 'held-out'; it has train, test" in capsys.readouterr().err


def test_restore_run_gives_the_network_as_it_was_kept(run):
    config, prepared, network = restore_run(run)
    assert same_bits(dict(network.state_dict()), weights_of(run))
    assert config.model.hidden == (12,)
    assert len(prepared.splits.test) == 12


def feed_of(run):
    config, prepared, network = restore_run(run)
    return network, make_feeds(prepared, config, torch.device("cpu"), World())["test"]


def test_mean_field_predictions_are_the_softmax_of_the_noiseless_network(run):
    network, feed = feed_of(run)
    found = predict_mean_field(network, feed.epoch(0))
    (batch,) = feed.epoch(0)
    expected = torch.softmax(network.eval()(batch.x, MEAN_FIELD).logits, -1)
    torch.testing.assert_close(torch.from_numpy(found.probabilities), expected.detach(), rtol=0, atol=0)
    assert found.labels.tolist() == batch.labels.tolist()


def test_the_bayesian_predictive_is_a_mean_over_passes_and_the_same_for_a_seed(run):
    network, feed = feed_of(run)
    one, again, other = (predict_bayesian(network, feed.epoch(0), 4, seed).probabilities for seed in (0, 0, 1))
    assert (one == again).all()
    assert (one != other).any()
    assert one.sum(1) == pytest.approx(1, abs=1e-5)
    single = predict_bayesian(network, feed.epoch(0), 1, 0).probabilities
    assert abs(one - single).max() > 1e-4


def test_evaluation_leaves_the_mode_of_the_network(run):
    network, feed = feed_of(run)
    for mode in (True, False):
        network.train(mode)
        predict_mean_field(network, feed.epoch(0))
        assert network.training is mode


def test_the_table_names_the_most_frequent_confusion_and_none_where_there_is_none():
    figures = {"samples": 4, "accuracy": 0.5, "accuracy_interval": (0.1, 0.9), "nll": 1.0, "ece": 0.1, "brier": 0.5}
    wrong = {"test": {**figures, "confusion": [[1, 2], [0, 1]]}}
    assert metrics_table(wrong, ("cat", "dog")).endswith("most frequent confusion: 'cat' taken for 'dog', 2 times")
    right = {"test": {**figures, "confusion": [[2, 0], [0, 2]]}}
    assert "confusion" not in metrics_table(right, ("cat", "dog"))
    assert "confusion" not in metrics_table({"test": {**figures, "confusion": [[4]]}}, ("only",))


def test_python_m_axonnx_train_ends_as_the_command_does(tmp_path):
    command = [sys.executable, "-m", "axonnx.cli", "train", "digits-statik"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("axonnx train: unknown configuration 'digits-statik'. Did you mean 'digits-static'?")
    assert "Traceback" not in done.stderr
