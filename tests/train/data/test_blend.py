from itertools import pairwise

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binning, Sensor
from axonnx.runtime.events.arrays import make_events, sort_events
from axonnx.train.data.augment import Augmentation
from axonnx.train.data.augment_events import augment_events
from axonnx.train.data.augment_frames import augment_frames
from axonnx.train.data.batches import Batches
from axonnx.train.data.draws import PARTNER, Draws
from axonnx.train.data.recordings import Recordings, join_events

SENSOR = Sensor(width=40, height=30)


def blended(data, indices, share, seed=0):
    return augment_events(data, np.asarray(indices), Augmentation(blend=share), seed, 0)[:2]


def blend(own, other, seed):
    """The first, blended with the second: of the epochs' draws, one where the second is the partner."""
    data = Recordings(*join_events([own, other]), np.zeros(2, np.int64), ("a",), SENSOR)
    epoch = next(epoch for epoch in range(99) if Draws(seed, epoch, np.array([0])).unit[0, PARTNER] > 0.5)
    return augment_events(data, np.array([0]), Augmentation(blend=1), seed, epoch).events


def recording(seed, size, left, top, start):
    generator = np.random.default_rng(seed)
    times = np.sort(start + generator.integers(0, 1000, size))
    return make_events(times, left + generator.integers(8, size=size), top + generator.integers(8, size=size))


def recordings():
    parts = [recording(number, 400, 4 * number, 3 * number, 100 * number) for number in range(6)]
    events, offsets = join_events(parts)
    return Recordings(events, offsets, np.array([0, 1, 0, 1, 0, 2]), ("a", "b", "c"), SENSOR)


def test_half_of_the_events_are_each_ones_own_and_the_middle_stays():
    own, other = recording(0, 4000, 3, 2, 0), recording(1, 4000, 25, 15, 5000)
    made = blend(own, other, 0)
    assert len(made) == pytest.approx(4000, rel=0.1)
    assert made["t"].min() == made["t"][0]
    places, known = (np.stack([events[axis] for axis in ("t", "x", "y")], 1).tolist() for events in (made, own))
    mine = sum(place in known for place in places)
    assert 0.35 < mine / len(made) < 0.75
    for axis, spread in (("t", 15), ("x", 0.6), ("y", 0.6)):
        assert made[axis].mean() == pytest.approx(own[axis].mean(), abs=spread)


def test_what_would_leave_the_sensor_is_gone():
    own, other = recording(0, 500, 0, 0, 0), recording(1, 500, 10, 10, 3000)
    wide = other.copy()
    wide["x"][::2] = 39
    made = sort_events(blend(own, wide, 1))
    Recordings(made, np.array([0, len(made)]), np.array([0]), ("a",), SENSOR)


def test_partners_are_of_the_same_class():
    data = recordings()
    near = {tuple(event) for event in data[5].tolist()}
    known = {tuple(event) for event in data[0].tolist()}
    foreign = []
    for seed in range(40):
        made, _ = blended(data, [5], 1.0, seed)  # class c has one recording: its partner is itself
        assert {tuple(event) for event in made.tolist()} <= near
        others, _ = blended(data, [0], 1.0, seed)
        foreign.append(not set(map(tuple, others.tolist())) <= known)
    assert 15 < sum(foreign) < 38  # two of three of its class are others


def test_a_share_of_none_changes_nothing_and_some_are_left_alone():
    data = recordings()
    indices = np.arange(6)
    plain = data.take(indices)
    made = blended(data, indices, 0.0)
    assert np.array_equal(made[0], plain[0])
    assert np.array_equal(made[1], plain[1])
    same = []
    for seed in range(20):
        events, offsets = blended(data, indices, 0.5, seed)
        same += [np.array_equal(events[a:b], data[i]) for i, (a, b) in enumerate(pairwise(offsets))]
    assert 35 < sum(same) < 85


def test_empty_recordings_blend():
    nothing = make_events(np.zeros(0), np.zeros(0))
    assert len(blend(nothing, nothing, 0)) == 0
    assert len(blend(recording(0, 50, 0, 0, 0), nothing, 0)) < 50


def test_batches_blend_by_seed_and_epoch_alone():
    binning = Binning.over(duration_us=2000, bins=4, sensor=SENSOR)
    batches = Batches(recordings(), binning, Augmentation(blend=1.0), batch_size=3)
    first, again, later = batches.make(0, 1).batch.x, batches.make(0, 1).batch.x, batches.make(1, 1).batch.x
    assert np.array_equal(first, again)
    assert not np.array_equal(first, later)
    plain = Batches(recordings(), binning, batch_size=3).make(0, 1).batch.x
    assert not np.array_equal(first, plain)


@pytest.mark.parametrize("settings", [{"blend": 0.5}, {"jitter_x": 2.0}])
def test_frames_have_no_events_to_blend_or_to_jitter(settings):
    with pytest.raises(AxonnxError, match="needs single events"):
        augment_frames(np.zeros((2, 3, 2, 8, 8), np.uint8), np.arange(2), Augmentation(**settings), 0, 0)
