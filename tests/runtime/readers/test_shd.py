"""SHD HDF5: seconds to microseconds, labels, and files that are something else."""

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers import confined, read_events, read_shd

h5py = pytest.importorskip("h5py")


def write(path, times, units, labels=(3,), dtype=np.float16):
    with h5py.File(path, "w") as file:
        for key, rows, kind in (("times", times, dtype), ("units", units, np.uint16)):
            data = file.create_dataset(f"spikes/{key}", (len(rows),), h5py.vlen_dtype(kind))
            for i, row in enumerate(rows):
                data[i] = np.array(row, kind)
        if labels is not None:
            file["labels"] = np.array(labels, np.uint16)
    return path


def test_seconds_become_the_nearest_microsecond(tmp_path):
    (recording,) = read_shd(
        write(tmp_path / "a.h5", [[0.0, 0.25, 1.0000004, 1.0000006]], [[0, 5, 6, 699]], dtype=float)
    )
    assert recording.events["t"].tolist() == [0, 250_000, 1_000_000, 1_000_001]
    assert recording.events["x"].tolist() == [0, 5, 6, 699]
    assert (recording.label, recording.sensor.width, recording.sensor.polarities) == (3, 700, 1)


def test_recordings_may_be_empty_and_labels_absent(tmp_path):
    recordings = read_shd(write(tmp_path / "a.h5", [[], [0.5]], [[], [1]], labels=None))
    assert [(len(r.events), r.label) for r in recordings] == [(0, None), (1, None)]


def test_read_events_finds_the_one_recording(tmp_path):
    write(tmp_path / "a.hdf5", [[0.5]], [[1]])
    assert read_events(tmp_path / "a.hdf5").format == "shd"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"times": [[0.5, 1.0]], "units": [[1]]}, r"a.h5\[0\]: has 2 times but 1 units"),
        ({"times": [[0.5], [1.0]], "units": [[1]], "labels": None}, "times 2, units 1"),
        ({"times": [[0.5]], "units": [[1]], "labels": [1, 2]}, "labels 2 of uint16; expected"),
        ({"times": [[np.nan]], "units": [[1]]}, r"a.h5\[0\]: has a time of nan; expected finite"),
        ({"times": [[np.inf]], "units": [[1]]}, "a time of inf"),
    ],
)
def test_wrong_content_is_refused(tmp_path, content, text):
    with pytest.raises(AxonnxError, match=text):
        read_shd(write(tmp_path / "a.h5", **content))


def test_other_hdf5_is_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"] = np.zeros(3)
    with pytest.raises(AxonnxError, match=r"is not an SHD file.*expected spikes/times and spikes/units"):
        read_shd(tmp_path / "a.h5")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["spikes/times"], file["spikes/units"] = 5, 6
    with pytest.raises(AxonnxError, match="expected one entry for each recording"):
        read_shd(tmp_path / "b.h5")


def test_files_that_were_cut_off_or_are_not_hdf5_are_refused(tmp_path):
    path = write(tmp_path / "a.h5", [[0.5]], [[1]])
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(AxonnxError, match=r"a.h5: h5py cannot read it"):
        read_shd(path)
    path.write_bytes(b"t,x\n1,2\n")
    with pytest.raises(AxonnxError, match=r"expected b'.*HDF.*the start of HDF5"):
        read_shd(path)
    with pytest.raises(AxonnxError, match="cannot be read"):
        read_shd(tmp_path / "none.h5")


def test_without_h5py_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    path = write(tmp_path / "a.h5", [[0.5]], [[1]])
    monkeypatch.setattr(confined, "find_spec", lambda _name: None)
    with pytest.raises(AxonnxError, match=r"pip install 'axonnx\[io\]'"):
        read_shd(path)


def test_data_in_other_files_is_refused(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(80))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("spikes/times", "spikes/units"):
            file.create_dataset(name, (10,), "f8", external=[(str(tmp_path / "secret"), 0, 80)])
    with pytest.raises(AxonnxError, match="is not a data set of this file"):
        read_shd(tmp_path / "a.h5")
    write(tmp_path / "other.h5", [[0.5]], [[1]])
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["spikes"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "spikes")
    with pytest.raises(AxonnxError, match="is not a data set of this file"):
        read_shd(tmp_path / "b.h5")
