"""npz and npy: round trips, many recordings in one file, and what is refused."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.runtime.readers import npz, read_events, read_recordings, write_npz

from .event_files import event_arrays, random_events

SENSOR = Sensor(width=128, height=128)
ONE = {"t": [1, 2], "x": [3, 4], "y": [5, 6], "p": [0, 1]}


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(event_arrays(128, 128, 2**62))
def test_what_is_written_is_read(tmp_path, events):
    write_npz(tmp_path / "a.npz", events, SENSOR)
    recording = read_events(tmp_path / "a.npz")
    assert recording.events.tolist() == events.tolist()
    assert (recording.sensor, recording.format, recording.notes) == (SENSOR, "npz", ())


def test_without_a_sensor_none_is_read(tmp_path):
    write_npz(str(tmp_path / "a.npz"), random_events())
    assert read_events(tmp_path / "a.npz").sensor is None


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    write_npz(path, random_events(3))

    def full_disk(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_npz(path, random_events(9))
    assert os.listdir(tmp_path) == ["a.npz"]
    assert len(read_events(path).events) == 3


def test_structured_arrays_in_npy_and_npz(tmp_path):
    events = random_events()
    np.save(tmp_path / "a.npy", events)
    np.savez(tmp_path / "a.npz", events=events)
    for name in ("a.npy", "a.npz"):
        assert read_events(tmp_path / name).events.tolist() == events.tolist()


def test_fields_are_found_by_name_in_any_order_and_type(tmp_path):
    array = np.array([(1, 7, 3, 5.0)], [("p", "?"), ("x", "<u4"), ("y", ">i2"), ("t", "<f8")])
    np.save(tmp_path / "a.npy", array)
    assert read_events(tmp_path / "a.npy").events.tolist() == [(5, 7, 3, 1)]


def test_a_line_sensor_needs_no_rows_and_polarities(tmp_path):
    np.savez(tmp_path / "a.npz", t=ONE["t"], x=ONE["x"])
    recording = read_events(tmp_path / "a.npz")
    assert recording.events.tolist() == [(1, 3, 0, 0), (2, 4, 0, 0)]
    assert recording.notes == ("no y: taken as 0", "no p: taken as 0")


def test_many_recordings_in_one_file(tmp_path):
    np.savez(tmp_path / "a.npz", **ONE, offsets=[0, 2, 2], label=[7, 8])
    recordings = read_recordings(tmp_path / "a.npz")
    assert [(len(r.events), r.label) for r in recordings] == [(2, 7), (0, 8)]
    assert read_events(tmp_path / "a.npz", index=1).label == 8
    with pytest.raises(AxonnxError, match=r"a.npz: holds 2 recordings; expected one. Choose one with index="):
        read_events(tmp_path / "a.npz")
    with pytest.raises(AxonnxError, match="no recording 2; expected an index from 0 to 1"):
        read_events(tmp_path / "a.npz", index=2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"t": None}, ["has no t among x, y, p", "expected t"]),
        ({"x": None, "t": None}, ["has no t and no x"]),
        ({"t": [0, 0.25]}, [r"t\[1\] is 0.25", "whole number"]),
        ({"t": [0, np.nan]}, [r"t\[1\] is nan", "finite"]),
        ({"x": [0, 70_000]}, [r"x\[1\] is 70000", "0 to 65535"]),
        ({"p": [0, -1]}, [r"p\[1\] is -1"]),
        ({"y": [1, 2, 3]}, [r"y has shape \(3,\)"]),
        ({"t": np.array([1, "a"], object)}, ["not a readable npz or npy file", "Python objects"]),
        ({"offsets": [0, 3]}, [r"offsets \[0 3\]", "end at 2"]),
        ({"offsets": [0.0, 2.0]}, ["expected integers"]),
        ({"label": [1, 2, 3]}, [r"label is int64 of shape \(3,\)", "each of 1 recordings"]),
        ({"sensor": [0, 5, 2]}, [r"sensor is \[0, 5, 2\]", "width, height, polarities"]),
        ({"sensor": 5}, ["sensor is 5"]),
    ],
)
def test_wrong_arrays_are_refused(tmp_path, change, words):
    arrays = {name: values for name, values in (ONE | change).items() if values is not None}
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(AxonnxError, match=r"a.npz: ") as error:
        read_events(tmp_path / "a.npz")
    for word in words:
        assert error.match(word)


def test_a_plain_array_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((5, 4)))
    with pytest.raises(AxonnxError, match=r"plain array of float64 \(5, 4\); expected a structured array"):
        read_events(tmp_path / "a.npy")


@pytest.mark.parametrize("kept", [5, 100, 300])
def test_files_that_were_cut_off_are_refused(tmp_path, kept):
    for name, write in (
        ("a.npz", lambda p: write_npz(p, random_events())),
        ("a.npy", lambda p: np.save(p, random_events())),
    ):
        path = tmp_path / name
        write(path)
        path.write_bytes(path.read_bytes()[:kept])
        with pytest.raises(AxonnxError, match=f"{name}: "):
            read_events(path)


def test_wrong_magic_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"GIF89a......")
    with pytest.raises(AxonnxError, match=r"byte 0: found b'GIF8'; expected b'PK"):
        read_events(path, format="npz")
    assert npz.NPZ_MAGIC == b"PK\x03\x04"
