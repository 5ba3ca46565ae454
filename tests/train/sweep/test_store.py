"""Records survive; what is damaged or was done differently is done anew."""

import json

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.train.sweep.store import Job, Store, read_results, write_results
from experiments.perform import fill, filled

JOB = Job("IW-ST p=½", 0, {"optimiser": {"epochs": 1}}, {})


def test_a_record_is_found_again(tmp_path):
    store = Store(tmp_path, "one", "quick")
    assert store.find(JOB) is None
    kept = store.keep(JOB, {"accuracy": 0.5})
    assert store.find(JOB) == kept
    assert kept["case"] == "IW-ST p=½"


@pytest.mark.parametrize(
    "other",
    [
        JOB._replace(seed=1),
        JOB._replace(settings={"optimiser": {"epochs": 2}}),
        JOB._replace(options={"calibrate": True}),
    ],
)
def test_a_job_that_is_done_differently_is_another(tmp_path, other):
    store = Store(tmp_path, "one", "quick")
    store.keep(JOB, {"accuracy": 0.5})
    assert store.find(other) is None


def test_a_damaged_record_is_measured_anew(tmp_path):
    store = Store(tmp_path, "one", "quick")
    store.keep(JOB, {"accuracy": 0.5})
    (path,) = store.records.iterdir()
    path.write_text(path.read_text()[:-9])
    assert store.find(JOB) is None


def test_results_keep_six_digits(tmp_path):
    path = tmp_path / "deep" / "one.json"
    write_results(path, "one", "cpu", [{"case": "a", "x": [0.123456789, None, 3]}])
    assert read_results(path) == ("cpu", [{"case": "a", "x": [0.123457, None, 3]}])
    assert json.loads(path.read_text())["experiment"] == "one"


@pytest.mark.parametrize(("text", "message"), [("{", "not a results file"), ("[]", "format 1"), ("{}", "format 1")])
def test_what_is_no_results_file_is_refused(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(AxonnxError, match=message):
        read_results(path)


def test_missing_results_are_named(tmp_path):
    with pytest.raises(AxonnxError, match="run the experiment first"):
        read_results(tmp_path / "x.json")


def test_a_documents_part_is_replaced_and_the_rest_is_kept(tmp_path):
    path = tmp_path / "results.md"
    path.write_text("# Title\n\n<!-- begin a -->\nold\n<!-- end a -->\n\nwords\n")
    fill(path, "a", "new\nlines")
    assert path.read_text() == "# Title\n\n<!-- begin a -->\nnew\nlines\n<!-- end a -->\n\nwords\n"
    assert filled(path, "a") == "new\nlines"
    fill(path, "a", "new\nlines")
    assert path.read_text().count("new") == 1


@pytest.mark.parametrize("text", ["", "<!-- begin a -->", "<!-- end a --><!-- begin a -->", "<!-- begin a -->" * 2])
def test_a_document_without_its_marks_is_refused(tmp_path, text):
    path = tmp_path / "results.md"
    path.write_text(text)
    with pytest.raises(AxonnxError, match="expected one line"):
        fill(path, "a", "new")
