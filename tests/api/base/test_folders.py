"""Generated folders: whole or not at all, and never in the place of somebody's own files."""

import os

import pytest

from axonnx.base import files as base_files
from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_folder


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_folder_is_made_and_made_again(tmp_path):
    write_folder(tmp_path / "out", {"a.txt": "1", "deep/b.txt": "2", "mark": ""}, "mark")
    write_folder(tmp_path / "out", {"a.txt": "3", "mark": ""}, "mark")
    assert names(tmp_path) == ["out/a.txt", "out/mark"]
    assert (tmp_path / "out/a.txt").read_text() == "3"


def test_an_empty_folder_is_taken(tmp_path):
    (tmp_path / "out").mkdir()
    write_folder(tmp_path / "out", {"a.txt": "1"}, "mark")
    assert names(tmp_path) == ["out/a.txt"]


@pytest.mark.parametrize("fault", ["text", "place"])
def test_what_fails_leaves_everything_as_it_was(tmp_path, monkeypatch, fault):
    write_folder(tmp_path / "out", {"a.txt": "old", "mark": ""}, "mark")
    replace = os.replace

    def unable(source, target):
        if ".part" in str(source) and (tmp_path / "out") == target and not (source / "mark").exists():
            raise OSError(28, "no room")
        replace(source, target)

    if fault == "place":
        monkeypatch.setattr(base_files.os, "replace", unable)
    with pytest.raises((TypeError, OSError)):
        write_folder(tmp_path / "out", {"a.txt": "new", "b.txt": 1 if fault == "text" else "2"}, "mark")
    assert names(tmp_path) == ["out/a.txt", "out/mark"]
    assert (tmp_path / "out/a.txt").read_text() == "old"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("own", "other contents"),
        ("file", "is a file; expected a folder"),
        ("none/out", "its parent folder"),
        (".", "is the current folder"),
    ],
)
def test_what_is_in_the_way_is_refused(tmp_path, monkeypatch, place, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own/thesis.txt").write_text("years")
    (tmp_path / "file").write_text("")
    with pytest.raises(AxonnxError, match=text):
        write_folder(place, {"a.txt": "1"}, "mark")
    assert names(tmp_path) == ["file", "own/thesis.txt"]
