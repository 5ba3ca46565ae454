import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonnx.runtime.binning import Sensor
from axonnx.runtime.errors import AxonnxError
from axonnx.train.data.frames import Frames
from axonnx.train.data.split import stratified_split
from axonnx.train.data.splits import DataSplits


def images(count, classes=("a", "b"), side=2, groups=None):
    labels = np.arange(count) % len(classes)
    return Frames(np.zeros((count, 1, side, side), np.uint8), labels, classes, groups)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=60), st.data())
def test_a_split_holds_out_what_was_asked_for_with_every_class_in_its_share(labels, data):
    labels = np.array(labels)
    held_out = data.draw(st.integers(1, len(labels) - 1))
    kept, out = stratified_split(labels, range(len(labels)), held_out)
    assert sorted([*kept, *out]) == list(range(len(labels)))
    assert len(out) == held_out
    for label in set(labels.tolist()):
        share = (labels == label).sum() * held_out / len(labels)
        assert np.floor(share) <= (labels[out] == label).sum() <= np.ceil(share)


def test_a_split_goes_by_names_and_seed_not_by_places():
    labels, names = np.zeros(40, np.int64), np.array([f"sample {number}" for number in range(40)])
    _, out = stratified_split(labels, names, 10)
    _, reversed_out = stratified_split(labels, names[::-1], 10)
    _, other_seed = stratified_split(labels, names, 10, seed=1)
    assert set(names[out]) == set(names[::-1][reversed_out])
    assert set(out) != set(other_seed)
    assert out.tolist() == [1, 4, 11, 13, 15, 28, 30, 32, 33, 38]


@pytest.mark.parametrize("held_out", [0, 3, 4])
def test_both_sides_of_a_split_need_a_sample(held_out):
    with pytest.raises(AxonnxError, match="cannot hold out"):
        stratified_split(np.zeros(3, np.int64), range(3), held_out)


@pytest.mark.parametrize(
    ("test", "says"),
    [
        (images(0), "test part is empty"),
        (images(4, classes=("a", "c")), "differs from the training part"),
        (images(4, side=3), r"shape \(1, 3, 3\)"),
    ],
)
def test_parts_that_do_not_fit_are_refused(test, says):
    with pytest.raises(AxonnxError, match=says):
        DataSplits("mine", images(8), test)


def test_parts_of_different_sensors_are_refused(make_recordings):
    with pytest.raises(AxonnxError, match="width=9"):
        DataSplits("mine", make_recordings(), make_recordings(sensor=Sensor(width=9)))


def test_validation_is_taken_from_the_training_part():
    splits = DataSplits("mine", images(20), images(4)).with_validation(0.25)
    assert {name: len(part) for name, part in splits.parts.items()} == {"train": 15, "validation": 5, "test": 4}
    assert splits.digest != DataSplits("mine", images(20), images(4)).digest
    with pytest.raises(AxonnxError, match="already has a validation part"):
        splits.with_validation(0.25)
    with pytest.raises(AxonnxError, match="between 0 and 1"):
        DataSplits("mine", images(20), images(4)).with_validation(1.5)


def test_validation_may_be_speakers(make_recordings):
    groups = np.array([4, 4, 5, 6, 6, 6, 7])
    splits = DataSplits("mine", make_recordings(groups=groups), make_recordings()).with_validation_groups([4, 7])
    assert splits.validation.groups.tolist() == [4, 4, 7]
    assert splits.train.groups.tolist() == [5, 6, 6, 6]
    assert [len(each) for each in map(splits.validation.__getitem__, range(3))] == [0, 1, 6]


def test_unknown_speakers_are_refused(make_recordings):
    known = DataSplits("mine", make_recordings(groups=np.arange(7)), make_recordings())
    with pytest.raises(AxonnxError, match=r"\[9\]; known: \[0, 1, 2, 3, 4, 5, 6\]"):
        known.with_validation_groups([1, 9])
    with pytest.raises(AxonnxError, match="nothing is known about speakers"):
        DataSplits("mine", make_recordings(), make_recordings()).with_validation_groups([1])


def test_classes_are_chosen_and_numbered_anew():
    frames = Frames(
        np.arange(6, dtype=np.uint8).reshape(6, 1, 1, 1), np.array([0, 1, 2, 0, 1, 2]), ("a", "b", "c"), None
    )
    splits = DataSplits("x", frames, frames).with_classes([2, 0])
    assert splits.classes == ("c", "a")
    assert splits.train.labels.tolist() == [1, 0, 1, 0]
    assert splits.test.frames.ravel().tolist() == [0, 2, 3, 5]


@pytest.mark.parametrize("chosen", [[], [0, 0], [3], [-1]])
def test_impossible_classes_are_refused(chosen):
    frames = Frames(np.zeros((3, 1, 1, 1), np.uint8), np.array([0, 1, 2]), ("a", "b", "c"), None)
    with pytest.raises(AxonnxError, match="expected different numbers from 0 to 2"):
        DataSplits("x", frames, frames).with_classes(chosen)
