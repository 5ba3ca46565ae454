import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.train.data.recordings import Frames
from axonnx.train.data.splits import DataSplits, stratified_split


def images(count, classes=("a", "b"), side=2, groups=None):
    labels = np.arange(count) % len(classes)
    return Frames(np.zeros((count, 1, side, side), np.uint8), labels, classes, groups)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=60), st.data())
def test_a_split_holds_out_what_was_asked_for_with_every_class_in_its_share(labels, data):
    labels, classes = np.array(labels), sorted(set(labels))
    room = len(labels) - len(classes)
    assume(room)
    held_out = data.draw(st.integers(1, room))
    kept, out = stratified_split(labels, range(len(labels)), held_out)
    assert sorted([*kept, *out]) == list(range(len(labels)))
    assert len(out) == held_out
    assert set(labels[kept]) == set(classes)
    counts = np.bincount(labels)
    shares, given = counts * held_out / len(labels), np.bincount(labels[out], minlength=len(counts))
    for label in classes:
        assert min(np.floor(shares[label]), counts[label] - 1) <= given[label]
        assert given[label] <= np.ceil(shares[label]) or (given == counts - 1).any()  # for one that had no more to give


def test_the_only_sample_of_a_class_stays_in_training():
    labels = np.array([0, 1, 2, 2, 2, 3, 3, 3])
    for seed in range(20):
        kept, out = stratified_split(labels, range(8), 3, seed)
        assert set(labels[kept]) == {0, 1, 2, 3}
        assert set(labels[out]) <= {2, 3}


def test_too_few_for_a_test_part_is_told_with_what_to_do():
    with pytest.raises(AxonnxError, match="cannot hold out 1 of 3 samples; each of 3 classes keeps one") as fault:
        stratified_split(np.array([0, 1, 2]), range(3), 1)
    assert "Add recordings (windows of one recording stay together), change the share, or give" in str(fault.value)


def test_speakers_that_are_all_there_is_of_a_class_are_not_set_aside():
    splits = DataSplits("mine", images(6, groups=np.arange(6) % 2), images(2))
    with pytest.raises(AxonnxError, match="all samples of class 'b' would be set aside"):
        splits.with_validation_groups([1])


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


def test_who_is_in_training_can_be_left_out_of_the_test(make_recordings):
    heard, asked = np.array([4, 4, 5, 6, 6, 6, 7]), np.array([7, 8, 8, 4, 9, 9, 9])
    splits = DataSplits("mine", make_recordings(groups=heard), make_recordings(groups=asked))
    unseen = splits.with_unseen_groups()
    assert unseen.test.groups.tolist() == [8, 8, 9, 9, 9]
    assert unseen.train.groups.tolist() == heard.tolist()
    with pytest.raises(AxonnxError, match="everyone in the test part"):
        DataSplits("mine", splits.train, splits.train).with_unseen_groups()
    with pytest.raises(AxonnxError, match="nothing is known about speakers or users of the test part"):
        DataSplits("mine", splits.train, make_recordings()).with_unseen_groups()


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
