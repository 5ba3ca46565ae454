"""Results of shards that are no results, or not of one verification."""

import json

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.export.verify import shards
from axonnx.runtime.measure.result_files import read_result
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
    return VerifyResult.merged([read_result(VerifyResult, path) for path in paths])


def test_results_add_up(tmp_path):
    whole = merged(tmp_path, SHARD, OTHER)
    assert (whole.verified, whole.compared.spikes, whole.accuracy[0].samples) == (True, 20, 8)


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
def test_odd_files_are_refused_in_one_line(tmp_path, odd, fault):
    with pytest.raises(AxonnxError) as refusal:
        merged(tmp_path, SHARD, odd)
    assert "\n" not in str(refusal.value)
    assert str(tmp_path / "1.json") in str(refusal.value)
    assert fault in str(refusal.value)


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
def test_parts_that_repeat_miss_or_do_not_belong_together_are_refused(tmp_path, parts, fault):
    with pytest.raises(AxonnxError) as refusal:
        merged(tmp_path, *parts)
    assert "\n" not in str(refusal.value)
    assert fault in str(refusal.value)


def test_all_shards_are_done_and_put_together(tmp_path, monkeypatch):
    asked = []

    def verify_file(model, run, **settings):
        asked.append((model, run, settings))
        return VerifyResult.model_validate_json(json.dumps({**SHARD, "shard": "{}/{}".format(*settings["shard"])}))

    monkeypatch.setattr(shards, "verify_file", verify_file)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"a file")
    whole = shards.verify_in_shards("model.onnx", "run", 3, samples=7)
    places = (str(tmp_path / "model.onnx"), str(tmp_path / "run"))
    assert asked == [(*places, {"samples": 7, "shard": (i, 3)}) for i in range(3)]
    assert (whole.model, whole.run, whole.shard) == ("model.onnx", "run", None)
    assert (whole.compared.spikes, whole.accuracy[0].samples) == (30, 12)
