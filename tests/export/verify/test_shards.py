"""Files for ``verify --merge`` that are no results, or not of one verification."""

import json
import os

import pytest

from axonnx.cli import main

COUNTS = ("samples", "spikes", "membranes", "logits", "spikes_differing", "membranes_differing", "logits_differing")
SHARD = {
    "format": 1,
    "model": "model.onnx",
    "shard": "0/2",
    "verdict": "equal",
    "mismatches": 0,
    "compared": {"spikes": 10, "membranes": 10, "logits": 3},
    "stages": [{"name": "structure", "ok": True, "lines": []}],
    "implementations": [{"name": "numpy", "max_logit_difference": 0.0, **dict.fromkeys(COUNTS, 1)}],
    "unrounded": None,
    "accuracy": [{"name": "file", "right": 3, "samples": 4, "nll": 0.5, "accuracy": 0.75, "interval": [0.3, 0.9]}],
    "first_divergence": None,
}


def merged(tmp_path, *texts):
    paths = [tmp_path / f"{number}.json" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text if isinstance(text, bytes) else json.dumps(text).encode())
    return main(["verify", "--merge", *map(str, paths), "-o", str(tmp_path / "whole.json")])


def test_results_add_up(tmp_path, capsys):
    assert merged(tmp_path, SHARD, SHARD) == 0
    whole = json.loads((tmp_path / "whole.json").read_text())
    assert (whole["compared"]["spikes"], whole["accuracy"][0]["samples"]) == (20, 8)
    assert "verified: 0 mismatches" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("odd", "fault"),
    [
        (b"", "is no result of axonnx verify"),
        (b"[]", "the text itself"),
        (b"null", "the text itself"),
        (b"[" * 100_000, "is no result of axonnx verify"),
        (b"\xff\xfe", "is no result of axonnx verify"),
        ({}, "format: Field required"),
        ({**SHARD, "format": 2}, "format"),
        ({**SHARD, "mismatches": -1}, "mismatches"),
        ({**SHARD, "mismatches": "0"}, "mismatches"),
        ({**SHARD, "verdict": "maybe"}, "verdict"),
        ({**SHARD, "compared": [1]}, "compared"),
        ({**SHARD, "stages": {}}, "stages"),
        ({**SHARD, "implementations": [{}]}, "implementations.0.name"),
        ({**SHARD, "accuracy": [{**SHARD["accuracy"][0], "samples": 0}]}, "accuracy.0.samples"),
        ({**SHARD, "stages": []}, "has other stages or implementations"),
        ({**SHARD, "compared": {"spikes": 1}}, "has other stages or implementations"),
    ],
)
def test_odd_files_are_refused_in_one_line(tmp_path, capsys, odd, fault):
    assert merged(tmp_path, SHARD, odd) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert str(tmp_path / "1.json") in err
    assert fault in err
    assert "whole.json" not in os.listdir(tmp_path)


def test_missing_files_and_folders_are_one_line(tmp_path, capsys):
    assert main(["verify", "--merge", str(tmp_path / "none.json")]) == 2
    assert f"{tmp_path / 'none.json'}: No such file or directory" in capsys.readouterr().err
    (tmp_path / "a.json").write_text(json.dumps(SHARD))
    assert main(["verify", "--merge", str(tmp_path / "a.json"), "-o", str(tmp_path / "no" / "whole.json")]) == 2
    assert "cannot be written (No such file or directory)" in capsys.readouterr().err
