"""numpy files whose arrays are larger than the file gives reason to believe, or are no arrays."""

import tracemalloc
import zipfile
from io import BytesIO

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import ALWAYS_ADMITTED, checked_arrays
from axonnx.runtime.readers import read_recordings


def archive_with(path, name, header, data, compressed=True):
    """An npz whose one array has a header of our making."""
    text = (repr(header) + " " * 64)[: max(118, len(repr(header)))] + "\n"
    contents = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{name}.npy", contents)
    return path


def peak_of(function):
    tracemalloc.start()
    try:
        with pytest.raises(AxonnxError) as fault:
            function()
        return str(fault.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("layout", ["C", "F"])
def test_arrays_are_those_that_were_written(tmp_path, layout):
    rng = np.random.default_rng(0)
    arrays = {
        "a": np.asarray(rng.integers(0, 9, (3, 4, 5)), order=layout),
        "b": np.zeros((0, 7), np.float32),
        "c": np.array("text"),
        "d": np.zeros(3, [("t", "<i8"), ("x", "u1")]),
    }
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    found = checked_arrays(tmp_path / "a.npz")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found[name], array)
    assert checked_arrays(tmp_path / "a.npz", ["b", "x"]).keys() == {"b"}
    np.save(tmp_path / "a.npy", arrays["a"])
    assert np.array_equal(checked_arrays(tmp_path / "a.npy")[""], arrays["a"])


def test_a_small_archive_of_huge_arrays_is_refused_before_they_are_made(tmp_path):
    zeros = bytes(2**20)
    path = tmp_path / "bomb.npz"
    header = BytesIO()
    count = ALWAYS_ADMITTED // 8 + 1
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (count,)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("t.npy", "w") as member:
        member.write(header.getvalue())
        for _ in range(8):
            member.write(zeros)
    text, peak = peak_of(lambda: read_recordings(path))
    assert f"an array [{count}] of int64 takes {8 * count:,} bytes; at most 1,073,741,824 are accepted" in text
    assert peak < 2**22


def test_an_array_that_ends_early_is_refused(tmp_path):
    header = {"descr": "<i8", "fortran_order": False, "shape": (1000,)}
    with pytest.raises(AxonnxError, match="8,000 bytes are stated, but only 100 follow"):
        checked_arrays(archive_with(tmp_path / "a.npz", "t", header, bytes(100)))


@pytest.fixture
def small_files_hold_little(monkeypatch):
    """So that some kilobytes of zeros are too much for a file of some hundred bytes."""
    monkeypatch.setattr("axonnx.base.numpy_files.ALWAYS_ADMITTED", 20_000)
    monkeypatch.setattr("axonnx.base.numpy_files.MOST_TIMES_LARGER", 1)


@pytest.mark.usefixtures("small_files_hold_little")
def test_sizes_add_up_over_the_arrays_of_a_file(tmp_path):
    np.savez_compressed(tmp_path / "two.npz", t=np.zeros(15_000, np.uint8), x=np.zeros(15_000, np.uint8))
    assert checked_arrays(tmp_path / "two.npz", ["x"])["x"].size == 15_000
    with pytest.raises(AxonnxError, match="takes 15,000 bytes; at most 5,000 are accepted"):
        checked_arrays(tmp_path / "two.npz")


@pytest.mark.usefixtures("small_files_hold_little")
def test_more_events_than_the_file_can_account_for_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", t=np.zeros(10_000, np.uint8), x=np.zeros((), np.uint8))
    with pytest.raises(AxonnxError, match="states 10,000 events; at most 1,538 are accepted"):
        read_recordings(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"descr": "|O", "fortran_order": False, "shape": (1,)}, "not Python objects"),
        ({"descr": "<i8", "fortran_order": False, "shape": (-1,)}, "expected plain numbers"),
        ({"descr": "|V0", "fortran_order": False, "shape": (10**9,)}, "expected plain numbers"),
        ({"descr": "<i8", "fortran_order": False, "shape": (10**30,)}, "are accepted"),
        ({"descr": "<i8", "fortran_order": False}, "is not a readable npz or npy file"),
        ({"descr": "nonsense", "fortran_order": False, "shape": ()}, "is not a readable npz or npy file"),
    ],
)
def test_headers_that_promise_something_else_are_refused(tmp_path, header, words):
    with pytest.raises(AxonnxError, match=words):
        checked_arrays(archive_with(tmp_path / "a.npz", "t", header, b"\0" * 8))


def test_a_header_that_is_too_long_is_refused_without_the_advice_to_trust_it(tmp_path):
    header = b"{'descr':" + b"(" * 20_000
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header)
    with pytest.raises(AxonnxError) as refused:
        checked_arrays(tmp_path / "a.npy")
    assert "pickle" not in str(refused.value)
    assert "\n" not in str(refused.value)
