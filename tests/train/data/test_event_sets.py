"""N-MNIST and DVS128 Gesture: a few files in the layout of the whole, read through tonic itself."""

import ast
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import axonnx.train
from axonnx.base.errors import AxonnxError
from axonnx.train.data import event_sets
from axonnx.train.data.event_sets import tonic_recordings
from axonnx.train.data.event_store import EventStore

TRAIN = Path(axonnx.train.__file__).parent


def few(source, count):
    return replace(source, parts={name: replace(part, files=count) for name, part in source.parts.items()})


def write_bin(path, events):
    """Five bytes an event: x, y, p and the upper bits of t, the rest of t."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [[x, y, p << 7 | t >> 16, t >> 8 & 255, t & 255] for t, x, y, p in events]
    path.write_bytes(np.array(rows, np.uint8).tobytes())


@pytest.fixture
def digits(tmp_path):
    events = {"0/00002": [(5, 1, 2, 1), (70_000, 33, 0, 0)], "7/00001": [(9, 3, 4, 0)], "7/00010": [(1, 0, 0, 1)]}
    for part in ("Train", "Test"):
        for name, some in events.items():
            write_bin(tmp_path / "NMNIST" / part / f"{name}.bin", some)
    return tmp_path


@pytest.fixture
def gestures(tmp_path):
    # Columns are x, y, p and t in ms, counted from when the camera was switched on.
    recording = np.array([[3, 4, 1, 20], [127, 0, 0, 25], [1, 2, 1, 25]])
    for part in ("ibmGestureTrain", "ibmGestureTest"):
        for user, label in (("user12_led", 10), ("user02_natural", 0), ("user02_natural", 3)):
            folder = tmp_path / "DVSGesture" / part / user
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / f"{label}.npy", recording + np.array([0, 0, 0, label]))
    return tmp_path


def read(source, root, part="train"):
    pytest.importorskip("tonic", reason="tonic (axonnx[tonic]) is not installed")
    return tonic_recordings(few(source, 3), root, part, EventStore(root / "store"))


@pytest.mark.parametrize("part", ["train", "test"])
def test_nmnist_comes_by_path_with_every_field_where_it_belongs(digits, part):
    data = read(event_sets.NMNIST, digits, part)
    assert data.labels.tolist() == [0, 7, 7]
    assert data[0].tolist() == [(5, 1, 2, 1), (70_000, 33, 0, 0)]
    assert data[1].tolist() == [(9, 3, 4, 0)]
    assert (data.groups, data.origin) == (None, "zero")
    for index in range(3):
        np.testing.assert_array_equal(data.original(index).events, data[index])


@pytest.mark.parametrize("part", ["train", "test"])
def test_gestures_come_by_user_from_time_zero_in_microseconds(gestures, part):
    data = read(event_sets.DVS_GESTURE, gestures, part)
    assert data.labels.tolist() == [0, 3, 10]
    assert data.groups.tolist() == [2, 2, 12]
    assert data[2].tolist() == [(0, 3, 4, 1), (5000, 127, 0, 0), (5000, 1, 2, 1)]
    assert (len(data.classes), data.origin, data.places) == (11, "first", None)


def test_nothing_is_downloaded_even_where_tonic_would(digits, monkeypatch):
    tonic = pytest.importorskip("tonic", reason="tonic (axonnx[tonic]) is not installed")

    def refuse(*arguments, **named):
        raise AssertionError(f"tonic tried to download {arguments}")

    monkeypatch.setattr(tonic.dataset, "download_and_extract_archive", refuse)
    assert len(read(event_sets.NMNIST, digits)) == 3
    with pytest.raises(AssertionError, match="tried to download"):
        tonic.datasets.NMNIST(str(digits), train=True)


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (
            event_sets.load_nmnist,
            ["60,000 files NMNIST/Train/[0-9]/*.bin (0 are there)", "train.zip", "garrickorchard"],
        ),
        (event_sets.load_dvs_gesture, ["1,077 files DVSGesture/ibmGestureTrain/user*/*.npy", "ibmGestureTest.tar.gz"]),
    ],
)
def test_missing_files_are_named_with_folders_and_advice(tmp_path, load, words):
    with pytest.raises(AxonnxError) as error:
        load(tmp_path)
    assert all(word in str(error.value) for word in [*words, str(tmp_path)])


def test_part_of_a_data_set_is_not_taken_for_the_whole(digits, gestures):
    with pytest.raises(AxonnxError, match=r"\(3 are there\)"):
        event_sets.load_nmnist(digits)
    with pytest.raises(AxonnxError, match=r"\(3 are there\)"):
        event_sets.load_dvs_gesture(gestures)


@pytest.mark.parametrize("size", [0, 4, 6, 9])
def test_nmnist_files_cut_off_are_refused(digits, size):
    path = digits / "NMNIST/Train/0/00002.bin"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(AxonnxError, match=rf"00002\.bin: {size} bytes"):
        read(event_sets.NMNIST, digits)


@pytest.mark.parametrize(
    "content", [b"not numpy at all", b"\x93NUMPY\x01\x00", "short", np.zeros(4), np.full((2, 4), -1), np.zeros((2, 2))]
)
def test_gesture_files_that_are_none_are_refused(gestures, content):
    path = gestures / "DVSGesture/ibmGestureTrain/user02_natural/3.npy"
    if isinstance(content, np.ndarray):
        np.save(path, content)
    else:
        path.write_bytes(path.read_bytes()[:-8] if content == "short" else content)
    with pytest.raises(AxonnxError, match=r"user02_natural/3\.npy: is no dvs-gesture recording"):
        read(event_sets.DVS_GESTURE, gestures)


def test_events_off_the_sensor_are_refused(digits):
    write_bin(digits / "NMNIST/Train/7/00001.bin", [(9, 34, 0, 0)])
    with pytest.raises(AxonnxError, match="event 0 of recording 1 lies outside the sensor's width 34"):
        read(event_sets.NMNIST, digits)


def test_the_second_time_nothing_is_converted_until_a_file_changes(digits):
    first = read(event_sets.NMNIST, digits)
    (stored,) = (digits / "store").iterdir()
    assert read(event_sets.NMNIST, digits).digest == first.digest
    assert [path.name for path in (digits / "store").iterdir()] == [stored.name]
    write_bin(digits / "NMNIST/Train/0/00002.bin", [(6, 1, 2, 1)])
    assert read(event_sets.NMNIST, digits)[0].tolist() == [(6, 1, 2, 1)]


def test_without_tonic_the_error_says_what_to_install(digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "tonic", None)
    with pytest.raises(AxonnxError, match=r"pip install 'axonnx\[tonic\]'"):
        tonic_recordings(few(event_sets.NMNIST, 3), digits, "train", EventStore(digits / "store"))


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_only_the_adapter_knows_tonic(tmp_path):
    assert "tonic" in set(imports_of(TRAIN / "data" / "event_sets.py"))  # so the check can fail
    others = [path for path in TRAIN.rglob("*.py") if path.name != "event_sets.py"]
    assert len(others) > 20
    assert [path for path in others if "tonic" in set(imports_of(path))] == []


def test_heavy_libraries_are_imported_only_when_used():
    heavy = "{'tonic', 'h5py', 'sklearn', 'torch'}"
    code = f"import sys, axonnx.train.data.registry; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_small_nmnist_files_are_checked(tmp_path):
    arrays = {"t": [3, 5, 4], "x": [1, 33, 0], "y": [0, 0, 0], "p": [0, 1, 1], "offsets": [0, 2, 3], "label": [5, 0]}
    for name in event_sets.NMNIST_SMALL:
        np.savez(tmp_path / name, **arrays)
    assert event_sets.load_nmnist_1000(tmp_path).train[0].tolist() == [(3, 1, 0, 0), (5, 33, 0, 1)]
    np.savez(tmp_path / event_sets.NMNIST_SMALL[1], **arrays | {"x": [1, 34, 0]})
    with pytest.raises(AxonnxError, match=r"nmnist_test_100\.npz: .*event 1 of recording 0 lies outside"):
        event_sets.load_nmnist_1000(tmp_path)
    (tmp_path / event_sets.NMNIST_SMALL[1]).unlink()
    with pytest.raises(AxonnxError, match=r"still missing in .*: nmnist_test_100\.npz"):
        event_sets.load_nmnist_1000(tmp_path)


def test_small_gesture_files_are_checked(tmp_path):
    arrays = {
        "frames": np.zeros((2, 3, 2, 4, 4), np.uint8),
        "label": np.array([0, 10], np.uint8),
        "recording": np.array(["user01_led_0", "user23_lab_1"]),
    }
    for name in event_sets.GESTURES_SMALL:
        np.savez(tmp_path / name, **arrays)
    splits = event_sets.load_dvs_gesture_32x32(tmp_path)
    assert (splits.kind, splits.train.groups.tolist()) == ("frames", [1, 23])
    np.savez(tmp_path / event_sets.GESTURES_SMALL[0], **arrays | {"recording": np.array(["one", "two"])})
    with pytest.raises(AxonnxError, match="userNN"):
        event_sets.load_dvs_gesture_32x32(tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(AxonnxError, match="is not a folder"):
        event_sets.load_dvs_gesture_32x32(tmp_path)
