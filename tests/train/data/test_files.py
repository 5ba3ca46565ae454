import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import read_arrays
from axonnx.train.data.files import data_root, find_files


def test_the_argument_comes_before_the_environment(tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    monkeypatch.setenv("AXONNX_DATA", str(tmp_path))
    assert data_root(None, "mine") == tmp_path
    assert data_root(tmp_path / "one", "mine") == tmp_path / "one"


def test_without_a_folder_the_error_says_how_to_give_one(tmp_path, monkeypatch):
    with pytest.raises(AxonnxError, match=r"mine: no data folder given; .*root.*AXONNX_DATA"):
        data_root(None, "mine")
    monkeypatch.setenv("AXONNX_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(AxonnxError, match="nowhere is not a folder"):
        data_root(None, "mine")


def test_files_come_from_the_first_folder_that_has_all(tmp_path):
    for path in ("a/one", "b/one", "b/two", "c/one", "c/two"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    found = find_files(tmp_path, ["one", "two"], folders=("a", "b", "c"), data_set="mine", how="ask")
    assert found == [tmp_path / "b/one", tmp_path / "b/two"]
    with pytest.raises(AxonnxError, match=r"still missing in .*/a: two"):
        find_files(tmp_path, ["one", "two"], folders=("a", "d"), data_set="mine", how="ask")


def test_arrays_are_found_under_any_of_their_names(tmp_path):
    np.savez(tmp_path / "file.npz", x=np.arange(3), y=np.arange(4))
    frames, labels = read_arrays(tmp_path / "file.npz", ["frames", "x"], ["label", "y"])
    assert (len(frames), len(labels)) == (3, 4)
    with pytest.raises(AxonnxError, match="has no array 'a' or 'b'; it has x, y"):
        read_arrays(tmp_path / "file.npz", ["a", "b"])


def test_what_is_no_npz_is_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.arange(3))
    np.savez(tmp_path / "objects.npz", x=np.array([{}], object))
    (tmp_path / "text").write_text("frames")
    with pytest.raises(AxonnxError, match=r"array\.npy: has no array 'x'; it has one without a name"):
        read_arrays(tmp_path / "array.npy", ["x"])
    for name in ("objects.npz", "text", "nothing"):
        with pytest.raises(AxonnxError, match=f"{name}: is not a readable npz"):
            read_arrays(tmp_path / name, ["x"])
