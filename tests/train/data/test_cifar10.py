import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.train.data import image_files
from axonnx.train.data.image_files import FILES, RECORD, load_cifar10, load_cifar10_5000, read_batch


def batch_bytes(count=20, seed=0):
    rows = np.random.default_rng(seed).integers(256, size=(count, RECORD), dtype=np.uint8)
    rows[:, 0] = np.arange(count) % 10
    return rows.tobytes()


@pytest.fixture
def small_batches(tmp_path, monkeypatch):
    """Official files in all but their number of records."""
    monkeypatch.setattr(image_files, "RECORDS", 20)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for seed, name in enumerate(FILES):
        (folder / name).write_bytes(batch_bytes(seed=seed))
    return folder


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(label=st.integers(0, 255), channel=st.integers(0, 2), row=st.integers(0, 31), column=st.integers(0, 31))
def test_records_are_label_then_planes_of_red_green_and_blue(tmp_path, label, channel, row, column):
    record = np.zeros(RECORD, np.uint8)
    record[0], record[1 + 1024 * channel + 32 * row + column] = label, 255
    (tmp_path / "batch.bin").write_bytes(record.tobytes())
    if label > 9:
        with pytest.raises(AxonnxError, match=f"label {label} in record 0"):
            read_batch(tmp_path / "batch.bin")
        return
    images, labels = read_batch(tmp_path / "batch.bin")
    assert (images[0, channel, row, column], images.sum(), labels.tolist()) == (255, 255, [label])


def test_the_official_files_make_the_data_set(tmp_path, small_batches):
    data = load_cifar10(tmp_path)
    assert (data.train.frames.shape, data.test.frames.shape) == ((100, 3, 32, 32), (20, 3, 32, 32))
    assert np.array_equal(data.train.frames[20:40], read_batch(small_batches / FILES[1])[0])
    assert np.array_equal(data.test.frames, read_batch(small_batches / FILES[5])[0])
    assert (data.kind, data.classes[9]) == ("images", "truck")


@pytest.mark.parametrize("size", [0, 1, RECORD - 1, RECORD + 1, 20 * RECORD - 7])
def test_files_cut_off_are_refused(tmp_path, size):
    (tmp_path / "batch.bin").write_bytes(batch_bytes()[:size])
    with pytest.raises(AxonnxError, match=rf"batch.bin: {size} bytes are no whole number"):
        read_batch(tmp_path / "batch.bin")


def test_a_file_short_of_whole_records_is_refused(tmp_path, small_batches):
    (small_batches / FILES[2]).write_bytes(batch_bytes(19))
    with pytest.raises(AxonnxError, match=r"data_batch_3\.bin: 19 records; the official file has 20"):
        load_cifar10(tmp_path)


def test_missing_files_are_named_with_folders_and_advice(tmp_path, small_batches):
    (small_batches / FILES[3]).unlink()
    with pytest.raises(AxonnxError) as error:
        load_cifar10(tmp_path)
    text = str(error.value)
    assert all(name in text for name in FILES)
    assert str(small_batches) in text
    assert "cifar-10-binary.tar.gz" in text
    assert text.endswith(f"still missing in {small_batches}: data_batch_4.bin")


def write_part(folder, shape=(20, 32, 32, 3), dtype=np.uint8):
    images = np.random.default_rng(0).integers(256, size=shape).astype(dtype)
    np.savez(folder / "cifar10_train_5000.npz", x=images, y=np.arange(20, dtype=np.uint8) % 10)
    (folder / "cifar10_test_batch_1000.bin").write_bytes(batch_bytes())
    return images


def test_the_small_part_has_channels_first(tmp_path):
    images = write_part(tmp_path)
    data = load_cifar10_5000(tmp_path)
    assert np.array_equal(data.train.frames[3, 2], images[3, :, :, 2])
    assert data.name == "cifar10-5000"


@pytest.mark.parametrize(
    ("wrong", "says"), [({"shape": (20, 3, 32, 32)}, r"expected \(N, 32, 32, 3\)"), ({"dtype": float}, "float64")]
)
def test_a_wrong_small_part_is_refused(tmp_path, wrong, says):
    write_part(tmp_path, **wrong)
    with pytest.raises(AxonnxError, match=says):
        load_cifar10_5000(tmp_path)
