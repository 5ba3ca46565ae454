import gzip
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from axonnx.base.errors import AxonnxError
from axonnx.train.data.image_files import load_fashion_mnist, load_frames, load_idx, load_mnist, read_idx


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


LABELS = np.arange(10) % 2


def write(path, shape=(10, 4, 2, 6, 5), names=("frames", "labels"), labels=LABELS, dtype=np.uint8, values=256):
    frames = np.random.default_rng(0).integers(values, size=shape).astype(dtype)
    np.savez(path, **dict(zip(names, (frames, labels), strict=True)))
    return frames


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(st.sampled_from(["frames", "x"]), st.sampled_from(["labels", "label", "y"]), st.integers(1, 8))
def test_no_sample_is_lost_whatever_the_names(tmp_path, frames_name, labels_name, held_out):
    frames = write(tmp_path / "mine.npz", names=(frames_name, labels_name))
    splits = load_frames(tmp_path / "mine.npz", test_share=held_out / 10)
    assert len(splits.test) == held_out
    both = np.concatenate([splits.train.frames, splits.test.frames])
    assert sorted(map(bytes, both)) == sorted(map(bytes, frames))
    assert (splits.name, splits.kind, splits.classes) == ("mine", "frames", ("0", "1"))


@pytest.mark.parametrize(
    ("shape", "layout", "found"),
    [
        ((10, 6, 5), "channels-first", (1, 6, 5)),
        ((10, 3, 6, 5), "channels-first", (3, 6, 5)),
        ((10, 6, 5, 3), "channels-last", (3, 6, 5)),
        ((10, 4, 6, 5, 2), "channels-last", (4, 2, 6, 5)),
    ],
)
def test_layouts(tmp_path, shape, layout, found):
    write(tmp_path / "mine.npz", shape)
    assert load_frames(tmp_path / "mine.npz", layout=layout).train.frames.shape[1:] == found


def test_whole_numbers_of_other_types_are_taken_when_they_fit(tmp_path):
    frames = write(tmp_path / "mine.npz", dtype=np.int32)
    splits = load_frames(tmp_path / "mine.npz", classes=["no", "yes"])
    assert splits.train.frames.dtype == np.uint8
    assert splits.train.frames.sum() + splits.test.frames.sum() == frames.sum()
    assert splits.classes == ("no", "yes")


def test_a_folder_of_parts_is_taken_as_it_is(tmp_path):
    for part in ("train", "test", "validation"):
        write(tmp_path / f"{part}.npz", labels=LABELS + (part == "train"))
    splits = load_frames(tmp_path)
    assert [len(part) for part in splits.parts.values()] == [10, 10, 10]
    assert splits.classes == ("0", "1", "2")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"dtype": np.float32}, "float32 with values that uint8 cannot hold"),
        ({"dtype": np.int16, "values": 1000}, "int16 with values that uint8 cannot hold"),
        ({"names": ("pictures", "labels")}, "has no array 'frames' or 'x'; it has pictures, labels"),
        ({"names": ("frames", "classes")}, "has no array 'labels' or 'label' or 'y'"),
        ({"labels": LABELS[:9]}, "10 samples but 9 labels"),
        ({"labels": LABELS.astype(float)}, "expected whole numbers"),
        ({"labels": LABELS - 1}, "label -1 of sample 0"),
        ({"shape": (10, 4)}, r"shape \(10, 4\)"),
    ],
)
def test_what_are_no_frames_is_refused(tmp_path, wrong, says):
    write(tmp_path / "mine.npz", **wrong)
    with pytest.raises(AxonnxError, match=says) as error:
        load_frames(tmp_path / "mine.npz")
    assert "mine.npz" in str(error.value)


def test_an_unknown_layout_is_refused(tmp_path):
    write(tmp_path / "mine.npz")
    with pytest.raises(AxonnxError, match="layout is 'NHWC'"):
        load_frames(tmp_path / "mine.npz", layout="NHWC")


def test_a_file_cut_off_is_refused(tmp_path):
    write(tmp_path / "mine.npz")
    content = (tmp_path / "mine.npz").read_bytes()
    (tmp_path / "mine.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(AxonnxError, match=r"mine\.npz: is not a readable npz"):
        load_frames(tmp_path / "mine.npz")
