"""A file that is what it says: every implementation, every mode, and the numbers behind the verdict."""

import hashlib
import json

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.export.verify.stages import verify_file
from axonnx.loading import load_data
from axonnx.runtime.format.model_file import read_model_file
from axonnx.runtime.measure.verify_result import VerifyResult
from axonnx.runtime.readers import write_npz

MODES = {
    "mfa": (),
    "sampled": ("--collapse", "sampled", "--members", "2"),
    "stochastic": ("--collapse", "stochastic"),
    "int8": ("--weights", "int8"),
    "float32": ("--weights", "float32"),
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
    assert {"training network, file's weights", "ort", "numpy", "native"} <= names
    files = {"onnxruntime, the file", "onnx.reference, the file"}
    assert (files <= names) == (mode != "step form")
    assert all(entry["max_logit_difference"] == 0 for entry in result["implementations"])


def test_the_file_is_what_the_checkpoint_exports_to_byte_for_byte(exported, verify):
    _, result = verify(exported())
    (structure,) = (stage for stage in result["stages"] if stage["name"] == "structure")
    assert any("byte for byte" in line for line in structure["lines"])


def test_the_training_network_and_the_stated_accuracies_are_part_of_the_verdict(exported, verify):
    _, result = verify(exported())
    assert [stage["name"] for stage in result["stages"]] == [
        "training", "structure", "operators", "collapse", "engines", "recordings", "runtime", "decisions", "accuracies"
    ]  # fmt: skip
    assert [(entry["of"], entry["engine"]) for entry in result["accuracy"]] == [("file", "native"), ("training", None)]
    ways = [entry.way for entry in read_model_file(exported()).contract.accuracy]
    assert [entry["way"] for entry in result["stated"]] == ways
    for entry in (*result["accuracy"], *result["stated"]):
        assert entry["interval"][0] <= entry["accuracy"] <= entry["interval"][1]
    assert result["paired"]["samples"] == 12


def test_the_result_is_bound_to_file_checkpoint_and_data(exported, verify):
    _, result = verify(exported())
    provenance = read_model_file(exported()).contract.provenance
    assert result["file_sha256"] == hashlib.sha256(exported().read_bytes()).hexdigest()
    assert (result["checkpoint_sha256"], result["data_sha256"]) == (provenance.checkpoint, provenance.data_digest)


FEW = {"samples": 6, "limit": 12, "recordings": 2}


def test_shards_merge_to_the_whole(exported, run_folder):
    whole = verify_file(exported(), run_folder, **FEW)
    merged = VerifyResult.merged([verify_file(exported(), run_folder, **FEW, shard=(i, 2)) for i in range(2)])
    for key in ("samples", "right", "accuracy", "interval", "nll"):
        assert getattr(merged.accuracy[0], key) == pytest.approx(getattr(whole.accuracy[0], key))
    assert merged.paired == whole.paired
    assert merged.stated == whole.stated
    stock = [next(e for e in r.implementations if e.name == "native") for r in (merged, whole)]
    assert stock[0] == stock[1]


def test_shards_that_repeat_miss_or_are_of_other_files_are_refused(exported, run_folder):
    found = {
        f"{name}{shard}": verify_file(path, run_folder, **FEW, shard=(shard, 2))
        for name, path in (("a", exported()), ("b", exported(*MODES["int8"])))
        for shard in (0, 1)
    }
    for names, text in (
        (("a0", "a0"), "expected each of 0 to 1 once"),
        (("a1",), "expected each of 0 to 1 once"),
        (("a0", "b1"), "file_sha256"),
    ):
        with pytest.raises(AxonnxError, match=text):
            VerifyResult.merged([found[name] for name in names])


def test_the_table_ends_with_the_verdict(exported, run_folder, capsys):
    words = ["verify", str(exported()), "--run", str(run_folder), "--limit", "2"]
    assert main([*words, "--quiet"]) == 0
    assert capsys.readouterr().out.rstrip().splitlines()[-1].startswith("verified: 0 mismatches in ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["verify", "x.onnx"], "x.onnx: cannot be read"),
        (["verify", "x.onnx", "--run", "nowhere"], "no run here"),
    ],
)
def test_wrong_use_ends_with_2(words, text, capsys):
    assert main(words) == 2
    assert text in capsys.readouterr().err


def test_wrong_shards_and_parts_are_refused(exported, run_folder, capsys):
    words = ["verify", str(exported()), "--run", str(run_folder), "--limit", "2", "--quiet"]
    with pytest.raises(AxonnxError, match="expected I/N with I from 0"):
        verify_file(exported(), run_folder, shard=(2, 2))
    assert main([*words[:3], "nowhere"]) == 2
    assert "no run here" in capsys.readouterr().err
    assert main([*words, "--part", "holdout"]) == 2
    assert "it has ['test', 'train']" in capsys.readouterr().err
    for nothing in ("samples", "limit", "recordings"):
        with pytest.raises(AxonnxError, match="a verification of nothing proves nothing"):
            verify_file(exported(), run_folder, **{nothing: 0})


def test_data_of_ones_own_is_compared_like_that_of_the_run(exported, run_folder, tmp_path, capsys):
    test = load_data("digits-saccade")
    for number in range(8):
        place = tmp_path / str(test.classes[int(test.labels[number])])
        place.mkdir(exist_ok=True)
        write_npz(place / f"{number}.npz", test[number], test.sensor)
    words = ["verify", str(exported()), "--run", str(run_folder), "--limit", "8", "--json", "--quiet"]
    assert main([*words, "--data", str(tmp_path)]) == 0
    own = json.loads(capsys.readouterr().out)
    assert own["paired"]["samples"] == 8
    assert main([*words, "--data", "digits-saccade"]) == 0
    named = json.loads(capsys.readouterr().out)
    assert main(words) == 0
    of_the_run = json.loads(capsys.readouterr().out)
    assert named["accuracy"] == of_the_run["accuracy"]
    assert own["data_sha256"] != named["data_sha256"]
    assert main([*words, "--data", str(tmp_path / "nothing")]) == 2
    assert "there is no data set and no file" in capsys.readouterr().err
