"""Files that others write: of a run what is there is taken; results are whole, or refused with the place."""

import json
import math

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.comparison import Difference
from axonnx.runtime.measure.profile_result import ProfileResult
from axonnx.runtime.measure.result_files import read_result
from axonnx.runtime.measure.samples import choose_samples
from axonnx.runtime.measure.verify_result import VerifyResult
from axonnx.runtime.report.material import read_run
from axonnx.runtime.report.model_view import view_model

from .conftest import profile, read_samples, verification, write_json


def read_verify(path):
    return read_result(VerifyResult, path)


def read_profile(path):
    return read_result(ProfileResult, path)


def test_a_whole_verification(tmp_path):
    found = read_verify(write_json(tmp_path / "v.json", verification("m.onnx") | {"later": "addition"}))
    assert found.compared.spikes == 12345
    assert found.implementations[0].name == "onnxruntime"


def test_a_whole_profile_and_half_of_one(tmp_path):
    assert read_profile(write_json(tmp_path / "p.json", profile("m.onnx"))).totals.events_in == 77.5
    half = {key: value for key, value in profile("m.onnx").items() if key != "energy"}
    with pytest.raises(AxonnxError, match=r"p.json: energy: Field required"):
        read_profile(write_json(tmp_path / "p.json", half))


def test_what_is_written_is_read_with_every_bit(tmp_path):
    """A wrong number can be no number at all."""
    divergence = Difference(
        implementation="native", what="logit", layer="", sample=0, step=None, neuron=(0,), expected=0.1, found=math.nan
    )
    whole = VerifyResult(model="m", verdict="different", first_divergence=divergence)
    (tmp_path / "v.json").write_text(whole.model_dump_json())
    found = read_verify(tmp_path / "v.json")
    assert math.isnan(found.first_divergence.found)
    assert found.model_dump_json() == whole.model_dump_json()
    kept = read_profile(write_json(tmp_path / "p.json", profile("m.onnx")))
    assert ProfileResult.model_validate_json(kept.model_dump_json()) == kept


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"model": "m", "verdict": "perhaps"}, "verdict"),
        ({"model": "m", "verdict": "equal", "mismatches": "0"}, "mismatches"),
        ({"model": "m", "verdict": "equal", "format": 2}, "format"),
        ({"model": "m", "verdict": "equal", "stages": [{"name": "x", "ok": "yes"}]}, "stages.0.ok"),
        ([], "the text itself"),
    ],
)
def test_other_types_are_refused_with_their_place(tmp_path, content, place):
    path = write_json(tmp_path / "v.json", content)
    with pytest.raises(AxonnxError, match=rf"v.json: {place}: .*Write it again"):
        read_verify(path)


@pytest.mark.parametrize("text", ["{", "", "\xff"])
def test_what_is_no_json_is_refused(tmp_path, text):
    (tmp_path / "p.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(AxonnxError, match=r"p\.json"):
        read_profile(tmp_path / "p.json")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(AxonnxError, match=r"nothing\.json: cannot be read"):
        read_verify(tmp_path / "nothing.json")


def test_a_run_is_read_as_far_as_it_is_there(tmp_path):
    (tmp_path / "config.toml").write_text("seed = 0\n")
    assert read_run(tmp_path).rows == ()
    (tmp_path / "results.csv").write_text("epoch,loss\n1,0.5\n")
    write_json(tmp_path / "metrics.json", {"test": {"accuracy": 0.5}})
    found = read_run(tmp_path)
    assert found.rows == ({"epoch": "1", "loss": "0.5"},)
    assert found.metrics["test"].accuracy == 0.5


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(AxonnxError, match="no run here"):
        read_run(tmp_path)


@pytest.mark.parametrize("content", ["[1]", "{", json.dumps({"test": {"accuracy": "high"}})])
def test_metrics_of_another_kind_are_refused(tmp_path, content):
    (tmp_path / "config.toml").write_text("")
    (tmp_path / "metrics.json").write_text(content)
    with pytest.raises(AxonnxError, match=r"metrics\.json"):
        read_run(tmp_path)


def test_a_tiny_run(run):
    found = read_run(run)
    assert len(found.rows) == 3
    assert {"train", "test"} <= found.metrics.keys()


def test_samples_are_of_all_classes(samples, model):
    found = read_samples(samples, view_model(model).contract, 7)
    assert found.frames.shape[:2] == (7, 8)
    assert found.labels is not None
    kept = np.load(samples)["labels"]
    assert found.labels.tolist() == kept[choose_samples(kept, 7)].tolist()


def test_samples_without_labels(tmp_path, samples, model):
    np.savez(tmp_path / "x.npz", frames=np.load(samples)["frames"])
    assert read_samples(tmp_path / "x.npz", view_model(model).contract, 5).labels is None


@pytest.mark.parametrize("labels", [np.zeros(3, int), np.full(60, 3), np.full(60, -1), np.zeros(60)])
def test_labels_that_do_not_fit_are_refused(tmp_path, samples, model, labels):
    np.savez(tmp_path / "x.npz", frames=np.load(samples)["frames"], labels=labels)
    with pytest.raises(AxonnxError, match="labels"):
        read_samples(tmp_path / "x.npz", view_model(model).contract, 5)
