import h5py
import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.train.data.event_sets import SPOKEN, load_regenerated, load_shd, read_regenerated, read_shd

TIMES = [[0.001, 0.5, 1.25], [], [0.25, 0.125]]
UNITS = [[0, 699, 350], [], [7, 8]]


def write_h5(path, times=TIMES, units=UNITS, labels=(0, 19, 12), speakers=(3, 4, 5)):
    ragged = {"times": (times, np.float16), "units": (units, np.uint16)}
    with h5py.File(path, "w") as file:
        for name, (rows, dtype) in ragged.items():
            data = file.create_dataset(f"spikes/{name}", (len(rows),), h5py.vlen_dtype(dtype))
            for index, row in enumerate(rows):
                data[index] = np.array(row, dtype)
        if labels is not None:
            file["labels"] = np.array(labels, np.uint16)
        if speakers is not None:
            file["extra/speaker"] = np.array(speakers, np.uint16)


def write_npz(path, **changes):
    arrays = {
        "times_f16": np.array([0.001, 0.5, 1.25, 0.25], np.float16),
        "units": np.array([0, 699, 350, 7], np.uint16),
        "offsets": np.array([0, 3, 4]),
        "label": np.array([0, 19], np.uint8),
        "speaker": np.array([4, 5], np.uint8),
    }
    np.savez(path, **{name: value for name, value in (arrays | changes).items() if value is not None})


def test_hdf5_becomes_recordings_of_seven_hundred_channels(tmp_path):
    write_h5(tmp_path / "file.h5")
    data = read_shd(tmp_path / "file.h5")
    millisecond = round(float(np.float16(0.001)) * 1e6)
    assert data[0]["t"].tolist() == [millisecond, 500_000, 1_250_000]
    assert data[0]["x"].tolist() == [0, 699, 350]
    assert data[2]["t"].tolist() == [125_000, 250_000]
    assert data[2]["x"].tolist() == [8, 7]
    assert [data.classes[label] for label in data.labels] == ["zero", "neun", "zwei"]
    assert data.groups.tolist() == [3, 4, 5]
    assert (data.sensor.width, data.sensor.height, data.sensor.polarities) == (700, 1, 1)
    assert len(SPOKEN) == len(set(SPOKEN)) == 20


@pytest.mark.parametrize("folder", [".", "SHD"])
def test_published_files_are_found(tmp_path, folder):
    (tmp_path / folder).mkdir(exist_ok=True)
    for name in ("shd_train.h5", "shd_test.h5"):
        write_h5(tmp_path / folder / name)
    splits = load_shd(tmp_path)
    assert (splits.name, splits.kind, len(splits.train)) == ("shd", "events", 3)
    assert (splits.train.groups.tolist(), splits.train.labels.tolist()) == ([3, 4, 5], [0, 19, 12])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"labels": (0, 20, 1)}, "label 20 of sample 1"),
        ({"labels": (0, 1)}, r"file\.h5"),
        ({"labels": None}, "has no labels"),
        ({"speakers": None}, "no extra/speaker"),
        ({"speakers": (1, 2)}, r"groups are int64 of shape \(2,\)"),
        ({"units": [[0, 700, 350], [], [7, 8]]}, "event 1 of recording 0 lies outside the sensor's width 700"),
        ({"units": [[0, 1], [], [7, 8]]}, "3 times but 2 units"),
        ({"times": [[0.001, np.nan, 1.25], [], [0.25, 0.5]]}, "finite"),
        ({"times": [[-0.5, 0.5, 1.25], [], [0.25, 0.5]]}, "negative time"),
    ],
)
def test_wrong_hdf5_is_refused(tmp_path, changes, says):
    write_h5(tmp_path / "file.h5", **changes)
    with pytest.raises(AxonnxError, match=says) as error:
        read_shd(tmp_path / "file.h5")
    assert "file.h5" in str(error.value)


@pytest.mark.parametrize("kept", [0, 10, 0.3, 0.9])
def test_hdf5_cut_off_is_refused(tmp_path, kept):
    write_h5(tmp_path / "file.h5")
    content = (tmp_path / "file.h5").read_bytes()
    size = kept if isinstance(kept, int) else int(kept * len(content))
    (tmp_path / "file.h5").write_bytes(content[:size])
    with pytest.raises(AxonnxError, match=r"file\.h5"):
        read_shd(tmp_path / "file.h5")


def test_missing_files_are_named_with_folders_and_advice(tmp_path):
    write_h5(tmp_path / "shd_train.h5")
    with pytest.raises(AxonnxError) as error:
        load_shd(tmp_path)
    for words in ("shd_train.h5", "shd_test.h5", str(tmp_path), "zenkelab.org", "still missing"):
        assert words in str(error.value)


def test_regenerated_digits_are_not_called_shd(tmp_path):
    for name in ("shd_regen_train.npz", "shd_regen_dev.npz"):
        write_npz(tmp_path / name)
    splits = load_regenerated(tmp_path)
    assert splits.name == "shd-regenerated"
    assert splits.train[0]["t"].tolist()[1:] == [500_000, 1_250_000]
    assert splits.train.groups.tolist() == [4, 5]
    with pytest.raises(AxonnxError, match=r"shd_train\.h5"):
        load_shd(tmp_path)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"units": None}, "has no array 'units'; it has times_f16, offsets, label, speaker"),
        ({"offsets": np.array([0, 3, 5])}, "from 0 to 5"),
        ({"offsets": np.array([0.0, 3, 4])}, "expected whole numbers"),
        ({"units": np.array([0, 1], np.uint16)}, r"\(2,\)"),
        ({"label": np.array([0, 20])}, "label 20"),
        ({"times_f16": np.array([0.1, 0.5, 0.25, 0.25], np.float16)}, "event 2 of recording 0 is earlier"),
        ({"times_f16": np.array([0.1, 0.5, np.inf, 0.25], np.float16)}, "finite"),
    ],
)
def test_wrong_regenerated_files_are_refused(tmp_path, changes, says):
    write_npz(tmp_path / "file.npz", **changes)
    with pytest.raises(AxonnxError, match=says) as error:
        read_regenerated(tmp_path / "file.npz")
    assert "file.npz" in str(error.value)


@pytest.mark.parametrize("kept", [0, 10, 0.4, 0.95])
def test_an_npz_cut_off_is_refused(tmp_path, kept):
    write_npz(tmp_path / "file.npz")
    content = (tmp_path / "file.npz").read_bytes()
    size = kept if isinstance(kept, int) else int(kept * len(content))
    (tmp_path / "file.npz").write_bytes(content[:size])
    with pytest.raises(AxonnxError, match=r"file\.npz: is not a readable npz"):
        read_regenerated(tmp_path / "file.npz")
