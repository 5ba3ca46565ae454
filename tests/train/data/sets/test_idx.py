import gzip
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from axonnx.base.errors import AxonnxError
from axonnx.train.data.sets.idx import load_fashion_mnist, load_idx, load_mnist, read_idx


def idx_bytes(array, kind=8):
    return struct.pack(">BBBB", 0, 0, kind, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_set(folder, pack=lambda content: content, suffix="", count=12, labels=None):
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for prefix in ("train", "t10k"):
        images = generator.integers(256, size=(count, 28, 28), dtype=np.uint8)
        numbers = np.arange(count, dtype=np.uint8) % 10 if labels is None else labels
        (folder / f"{prefix}-images-idx3-ubyte{suffix}").write_bytes(pack(idx_bytes(images)))
        (folder / f"{prefix}-labels-idx1-ubyte{suffix}").write_bytes(pack(idx_bytes(numbers)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(array=hnp.arrays(np.uint8, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0)), packed=st.booleans())
def test_reading_undoes_writing(tmp_path, array, packed):
    content = idx_bytes(array)
    (tmp_path / "file").write_bytes(gzip.compress(content) if packed else content)
    assert np.array_equal(read_idx(tmp_path / "file"), array)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=40))
def test_bytes_are_an_array_or_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    try:
        assert read_idx(tmp_path / "file").dtype == np.uint8
    except AxonnxError as error:
        assert "file" in str(error)  # noqa: PT017 (either outcome is fine)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kept", [0, 1, 3, 4, 7, 11, 12, 50])
def test_files_cut_off_are_refused(tmp_path, kept, packed):
    content = idx_bytes(np.zeros((10, 8), np.uint8))
    content = gzip.compress(content) if packed else content
    (tmp_path / "file").write_bytes(content[: min(kept, len(content) - 1)])
    with pytest.raises(AxonnxError, match="file"):
        read_idx(tmp_path / "file")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x00\x01\x08\x01\0\0\0\0", "is no idx file"),
        (idx_bytes(np.zeros(4, np.uint8), kind=0x0D), "idx type 0x0d"),
        (idx_bytes(np.zeros(4, np.uint8)) + b"\0", "13 bytes; an idx file of shape"),
    ],
)
def test_wrong_files_are_refused(tmp_path, content, says):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(AxonnxError, match=says):
        read_idx(tmp_path / "file")


@pytest.mark.parametrize(("load", "folder"), [(load_mnist, "MNIST/raw"), (load_fashion_mnist, "fashion-mnist")])
def test_data_sets_are_found_plain_or_gzipped(tmp_path, load, folder):
    write_set(tmp_path / folder)
    plain = load(tmp_path)
    assert plain.train.frames.shape == (12, 1, 28, 28)
    assert (plain.kind, len(plain.classes)) == ("images", 10)
    for file in (tmp_path / folder).iterdir():
        file.unlink()
    write_set(tmp_path / folder, gzip.compress, ".gz")
    assert load(tmp_path).digest == plain.digest


def test_mnist_is_never_taken_for_fashion(tmp_path):
    write_set(tmp_path)
    assert load_idx(tmp_path).classes == tuple("0123456789")
    for load in (load_mnist, load_fashion_mnist):
        with pytest.raises(AxonnxError, match="missing"):
            load(tmp_path)


def test_missing_files_are_named_with_folders_and_advice(tmp_path):
    with pytest.raises(AxonnxError) as error:
        load_fashion_mnist(tmp_path)
    for words in (
        "train-images-idx3-ubyte[.gz]", "train-labels-idx1-ubyte[.gz]", "t10k-images-idx3-ubyte[.gz]",
        "t10k-labels-idx1-ubyte[.gz]", str(tmp_path / "fashion-mnist"), "dataset-fashion-mnist",
    ):  # fmt: skip
        assert words in str(error.value)


def test_images_and_labels_must_go_together(tmp_path):
    write_set(tmp_path, labels=np.zeros(11, np.uint8))
    with pytest.raises(AxonnxError, match="do not go with"):
        load_idx(tmp_path)


def test_labels_beyond_the_classes_are_refused(tmp_path):
    write_set(tmp_path / "mnist", labels=np.full(12, 10, np.uint8))
    with pytest.raises(AxonnxError, match="label 10 of sample 0"):
        load_mnist(tmp_path)
