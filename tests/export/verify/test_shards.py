"""Files for ``verify --merge`` that are no results, or not of one verification."""

import json
import os

import pytest

from axonnx.cli import main
from axonnx.export.verify import shards
from axonnx.runtime.measure.verify_result import VerifyResult

COUNTS = ("samples", "spikes", "membranes", "logits", "spikes_differing", "membranes_differing", "logits_differing")
SHARD = {
    "format": 1,
    "model": "model.onnx",
    "file_sha256": "a" * 64,
    "checkpoint_sha256": "b" * 64,
    "data_sha256": "c" * 64,
    "shard": "0/2",
    "verdict": "equal",
    "mismatches": 0,
    "compared": {"spikes": 10, "membranes": 10, "logits": 3},
    "stages": [{"name": "structure", "ok": True, "lines": []}],
    "implementations": [{"name": "numpy", "max_logit_difference": 0.0, **dict.fromkeys(COUNTS, 1)}],
    "paired": {"samples": 4, "only_file": 0, "only_training": 0},
    "accuracy": [{"of": "file", "right": 3, "samples": 4, "nll": 0.5, "accuracy": 0.75, "interval": [0.3, 0.9]}],
    "first_divergence": None,
}
OTHER = {**SHARD, "shard": "1/2"}


def merged(tmp_path, *texts):
    paths = [tmp_path / f"{number}.json" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text if isinstance(text, bytes) else json.dumps(text).encode())
    return main(["verify", "--merge", *map(str, paths), "-o", str(tmp_path / "whole.json")])


def test_results_add_up(tmp_path, capsys):
    assert merged(tmp_path, SHARD, OTHER) == 0
    whole = json.loads((tmp_path / "whole.json").read_text())
    assert (whole["compared"]["spikes"], whole["accuracy"][0]["samples"]) == (20, 8)
    assert "verified: 0 mismatches" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("odd", "fault"),
    [
        (b"", "the text itself"),
        (b"[]", "the text itself"),
        (b"null", "the text itself"),
        (b"[" * 100_000, "the text itself"),
        (b"\xff\xfe", "cannot be read"),
        ({}, "model: Field required"),
        ({**SHARD, "format": 2}, "format"),
        ({**SHARD, "mismatches": -1}, "mismatches"),
        ({**SHARD, "mismatches": "0"}, "mismatches"),
        ({**SHARD, "verdict": "maybe"}, "verdict"),
        ({**SHARD, "compared": [1]}, "compared"),
        ({**SHARD, "stages": {}}, "stages"),
        ({**SHARD, "implementations": [{}]}, "implementations.0.name"),
        ({**SHARD, "accuracy": [{**SHARD["accuracy"][0], "samples": 0}]}, "accuracy.0.samples"),
        ({**SHARD, "shard": "one/two"}, "shard"),
        ({**SHARD, "paired": {"samples": 4, "only_file": -1, "only_training": 0}}, "paired.only_file"),
    ],
)
def test_odd_files_are_refused_in_one_line(tmp_path, capsys, odd, fault):
    assert merged(tmp_path, SHARD, odd) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert str(tmp_path / "1.json") in err
    assert fault in err
    assert "whole.json" not in os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ((SHARD, SHARD), "expected each of 0 to 1 once"),
        ((OTHER,), "expected each of 0 to 1 once"),
        ((SHARD, {**OTHER, "shard": "1/3"}), "for one N"),
        ((SHARD, {**OTHER, "shard": None}), "for one N"),
        *(((SHARD, {**OTHER, key: "d" * 64}), key) for key in ("file_sha256", "checkpoint_sha256", "data_sha256")),
        (({**SHARD, "file_sha256": None}, {**OTHER, "file_sha256": None}), "file_sha256 is None"),
        (({**SHARD, "accuracy": [{**SHARD["accuracy"][0], "right": 9}]}, OTHER), "12 of 8 samples"),
    ],
)
def test_parts_that_repeat_miss_or_do_not_belong_together_are_refused(tmp_path, capsys, parts, fault):
    assert merged(tmp_path, *parts) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert fault in err


def test_missing_files_and_folders_are_one_line(tmp_path, capsys):
    assert main(["verify", "--merge", str(tmp_path / "none.json")]) == 2
    assert f"{tmp_path / 'none.json'}: cannot be read: " in capsys.readouterr().err
    (tmp_path / "a.json").write_text(json.dumps({**SHARD, "shard": "0/1"}))
    assert main(["verify", "--merge", str(tmp_path / "a.json"), "-o", str(tmp_path / "no" / "whole.json")]) == 2
    assert "cannot be written (No such file or directory)" in capsys.readouterr().err


def test_all_shards_are_done_and_put_together(tmp_path, monkeypatch):
    asked = []

    def verify_file(model, run, **settings):
        asked.append((model, run, settings))
        return VerifyResult.model_validate_json(json.dumps({**SHARD, "shard": "{}/{}".format(*settings["shard"])}))

    monkeypatch.setattr(shards, "verify_file", verify_file)
    monkeypatch.chdir(tmp_path)
    whole = shards.verify_in_shards("model.onnx", "run", 3, samples=7)
    places = (str(tmp_path / "model.onnx"), str(tmp_path / "run"))
    assert asked == [(*places, {"samples": 7, "shard": (i, 3)}) for i in range(3)]
    assert (whole.model, whole.run, whole.shard) == ("model.onnx", "run", None)
    assert (whole.compared.spikes, whole.accuracy[0].samples) == (30, 12)
