"""``axonnx report`` as a user meets it."""

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import axonnx
from axonnx.base.files import sha256_of
from axonnx.cli import main
from axonnx.reporting import other_weights
from axonnx.runtime.report.model_view import view_model

from .conftest import profile, verification, write_json
from .html_check import Page


def report(*words: object) -> int:
    return main(["report", *(str(word) for word in words)])


def test_everything_at_once(tmp_path, capsys, model, run, verify_json, profile_json):
    page = tmp_path / "report.html"
    words = [model, "--run", run, "--verify", verify_json, "--profile", profile_json]
    assert report(*words, "-o", page) == 0
    out = capsys.readouterr()
    assert f"wrote {page}:" in out.out
    assert out.err == ""  # a log gets a line a minute
    found = Page(page.read_text("utf-8"))
    assert found.faults == []
    assert found.count("p", "missing") == 0
    assert found.count("p", "warning") == 0
    assert "6 of the 12 samples (all) of the test part" in found.text


def test_a_file_and_samples(tmp_path, monkeypatch, capsys, model, samples):
    monkeypatch.chdir(tmp_path)
    assert report(model, "--data", samples, "--limit", 8, "--quiet") == 0
    assert capsys.readouterr().err == ""
    assert "of 8 right" in Page((tmp_path / "report.html").read_text("utf-8")).text


class Kept(axonnx.Progress):
    """Progress that keeps its figures."""

    def __init__(self, lines):
        self.lines = lines

    def figures(self, line, last=False):
        self.lines.append(line)


def test_from_python_values_go_in_and_come_out_and_nothing_is_printed(tmp_path, capsys, model, run, samples):
    profiled = axonnx.load(model, "numpy").profile(run, limit=6)
    assert (profiled.samples, profiled.file_sha256, profiled.engine) == (6, sha256_of(model), "numpy")
    lines = []
    page = axonnx.load(model).report(tmp_path / "r.html", data=samples, profile=profiled, limit=8, progress=Kept(lines))
    assert page == tmp_path / "r.html"
    assert lines == ["8 of 8 samples run"]
    assert "Profiled on 6 samples, engine numpy." in Page(page.read_text("utf-8")).text
    other = profiled.model_copy(update={"file_sha256": "0" * 64})
    with pytest.raises(axonnx.AxonnxError, match="the result: was made from"):
        axonnx.load(model).report(tmp_path / "other.html", profile=other)
    assert capsys.readouterr() == ("", "")
    assert not (tmp_path / "other.html").exists()


def test_the_images_of_a_binary_run(tmp_path, images):
    assert report(images, "--run", images.parent / "run", "--quiet", "-o", tmp_path / "r.html") == 0
    assert "From images to decisions" in (tmp_path / "r.html").read_text("utf-8")


@pytest.mark.parametrize("kind", ["verify", "profile"])
def test_results_of_other_files_are_refused(tmp_path, model, kind, capsys):
    made = {"verify": verification, "profile": profile}[kind]
    changed = tmp_path / model.name  # the same name, another file
    changed.write_bytes(model.read_bytes())
    proto = onnx.load(changed)
    proto.doc_string = "edited"
    onnx.save(proto, changed)
    found = write_json(tmp_path / "r.json", made(str(model)))
    assert report(model, f"--{kind}", found, "-o", tmp_path / "r.html", "--quiet") == 0
    assert report(changed, f"--{kind}", found, "-o", tmp_path / "other.html", "--quiet") == 2
    said = capsys.readouterr().err
    assert f"r.json: was made from {model} with sha256 {sha256_of(model)[:16]}…; {changed} has" in said
    assert f"run axonnx {kind} on this one" in said
    assert not (tmp_path / "other.html").exists()


def test_a_result_that_names_no_file_is_refused(tmp_path, model, capsys):
    found = write_json(tmp_path / "v.json", verification(str(model)) | {"file_sha256": None})
    assert report(model, "--verify", found, "-o", tmp_path / "r.html") == 2
    assert "v.json: does not say which file it was made from. Run axonnx verify on" in capsys.readouterr().err


def test_a_run_with_other_weights_is_pointed_out(tmp_path, model, run, monkeypatch):
    view = view_model(model)
    changed = view.contract.provenance.model_copy(update={"checkpoint": "0" * 64})
    contract = view.contract.model_copy(update={"provenance": changed})
    assert other_weights(view.contract, run) == []
    assert "not those the file was exported from" in other_weights(contract, run)[0]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["nothing.onnx"], "cannot be read"),
        (["{model}", "--limit", "5"], "at least the 6"),
        (["{model}", "-o", "{folder}"], "name the file to write"),
        (["{model}", "-o", "{folder}/none/report.html"], "no such folder"),
        (["{model}", "--run", "{folder}"], "no run here"),
        (["{model}", "--verify", "{model}"], "cannot be read"),
        (["{model}", "--data", "{model}"], "npz"),
        (["{images}", "--run", "{run}"], "name the run that the file was exported from"),
    ],
)
def test_wrong_use_is_told(words, text, tmp_path, model, images, run, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    names = {"model": str(model), "images": str(images), "run": str(run), "folder": str(folder)}
    assert report(*(word.format(**names) for word in words)) == 2
    assert text in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


def test_a_file_and_samples_need_no_torch(tmp_path, model, samples):
    code = f"""
import sys
sys.modules["torch"] = None
from axonnx.cli import main
sys.exit(main(["report", {str(model)!r}, "--data", {str(samples)!r}, "--limit", "6", "-o", "r.html"]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Path(tmp_path / "r.html").is_file()
