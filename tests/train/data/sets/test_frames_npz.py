import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.train.data.sets.frames_npz import load_frames

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
