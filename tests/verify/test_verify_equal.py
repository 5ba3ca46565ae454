"""A file that is what it says: every implementation, every mode, and the numbers behind the verdict."""

import json

import pytest

from axonnx.cli import main

MODES = {
    "mfa": (),
    "sampled": ("--collapse", "sampled", "--members", "2"),
    "stochastic": ("--collapse", "stochastic"),
    "int8": ("--weights", "int8"),
    "calibrated": ("--calibrate",),
    "step form": ("--form", "step"),
    "pruned": ("--prune", "0.5"),
    "traced": ("--trace",),
}


@pytest.mark.parametrize("mode", MODES)
def test_every_kind_of_file_equals_its_training_network(mode, exported, verify):
    code, result = verify(exported(*MODES[mode]))
    assert [stage for stage in result["stages"] if not stage["ok"]] == []
    assert (code, result["verdict"], result["mismatches"]) == (0, "equal", 0)
    assert all(count > 0 for count in result["compared"].values())
    names = {entry["name"] for entry in result["implementations"]}
    assert {"training network, file's weights", "ort", "numpy", "numba"} <= names
    files = {"onnxruntime, the file", "onnx.reference, the file"}
    assert (files <= names) == (mode != "step form")
    assert all(entry["max_logit_difference"] == 0 for entry in result["implementations"])


def test_the_file_is_what_the_checkpoint_exports_to_byte_for_byte(exported, verify):
    _, result = verify(exported())
    assert any("byte for byte" in line for line in result["stages"][0]["lines"])


def test_the_unrounded_network_is_measured_beside(exported, verify):
    _, result = verify(exported())
    assert 0.9 < result["unrounded"]["equal_spikes"] <= 1.0
    names = [entry["name"] for entry in result["accuracy"]]
    assert names == ["the file (numba)", "training network, mean-field", "bayesian (2 passes)"]
    assert all(low <= entry["accuracy"] <= high for entry in result["accuracy"] for low, high in [entry["interval"]])


def test_shards_merge_to_the_whole(exported, verify, run_folder, tmp_path, capsys):
    path, parts = exported(), []
    _, whole = verify(path)
    for shard in ("0/2", "1/2"):
        target = tmp_path / f"{shard[0]}.json"
        verify(path, "--shard", shard, "-o", str(target))
        parts.append(str(target))
    capsys.readouterr()
    assert main(["verify", "--merge", *parts, "--json"]) == 0
    merged = json.loads(capsys.readouterr().out)
    assert merged["accuracy"][0]["samples"] == whole["accuracy"][0]["samples"]
    assert merged["accuracy"][0]["accuracy"] == pytest.approx(whole["accuracy"][0]["accuracy"])
    assert merged["compared"]["logits"] == 2 * whole["compared"]["logits"] or merged["verdict"] == "equal"


def test_the_table_ends_with_the_verdict(exported, run_folder, capsys):
    words = ["verify", str(exported()), "--run", str(run_folder), "--samples", "2", "--limit", "8", "--passes", "1"]
    assert main([*words, "--quiet"]) == 0
    assert capsys.readouterr().out.rstrip().splitlines()[-1].startswith("verified: 0 mismatches in ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["verify"], "which file and which run?"),
        (["verify", "x.onnx"], "which file and which run?"),
        (["verify", "x.onnx", "--run", "nowhere"], "no run here"),
    ],
)
def test_wrong_use_ends_with_2(words, text, capsys):
    assert main(words) == 2
    assert text in capsys.readouterr().err


def test_wrong_shards_and_parts_are_refused(exported, run_folder, capsys):
    words = ["verify", str(exported()), "--run", str(run_folder), "--samples", "2", "--limit", "8", "--quiet"]
    assert main([*words, "--shard", "2/2"]) == 2
    assert main([*words, "--part", "holdout"]) == 2
    assert "it has ['test', 'train']" in capsys.readouterr().err
