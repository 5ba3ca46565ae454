from itertools import pairwise

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binning, Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.train.data.augment import Augmentation
from axonnx.train.data.augment_frames import augment_frames
from axonnx.train.data.batches import Batches
from axonnx.train.data.blend import blend, blended
from axonnx.train.data.recordings import Recordings, join_events

SENSOR = Sensor(width=40, height=30)


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
    made = blend(own, other, SENSOR, np.random.default_rng(0))
    assert len(made) == pytest.approx(4000, rel=0.1)
    assert (np.diff(made["t"]) >= 0).all()
    places, known = (np.stack([events[axis] for axis in ("t", "x", "y")], 1).tolist() for events in (made, own))
    mine = sum(place in known for place in places)
    assert 0.35 < mine / len(made) < 0.75
    for axis, spread in (("t", 15), ("x", 0.6), ("y", 0.6)):
        assert made[axis].mean() == pytest.approx(own[axis].mean(), abs=spread)


def test_what_would_leave_the_sensor_is_gone():
    own, other = recording(0, 500, 0, 0, 0), recording(1, 500, 10, 10, 3000)
    wide = other.copy()
    wide["x"][::2] = 39
    made = blend(own, wide, SENSOR, np.random.default_rng(1))
    Recordings(made, np.array([0, len(made)]), np.array([0]), ("a",), SENSOR)


def test_partners_are_of_the_same_class():
    data = recordings()
    near = shifted(data[5])
    made, offsets = blended(data, np.array([5] * 40), 1.0, np.random.default_rng(2))
    for start, stop in pairwise(offsets):  # class c has one recording: its partner is itself
        assert {tuple(event) for event in made[start:stop].tolist()} <= near
    others, offsets = blended(data, np.array([0] * 40), 1.0, np.random.default_rng(2))
    known = shifted(data[0])
    foreign = [not set(map(tuple, others[a:b].tolist())) <= known for a, b in pairwise(offsets)]
    assert 10 < sum(foreign) <= 40


def shifted(events):
    """The events, each moved by up to 60 µs and a pixel: halves of one recording differ a little in their middle."""
    return {
        (t + dt, x + dx, y + dy, p)
        for t, x, y, p in events.tolist()
        for dt in range(-60, 61)
        for dx in (-1, 0, 1)
        for dy in (-1, 0, 1)
    }


def test_a_share_of_none_changes_nothing_and_some_are_left_alone():
    data = recordings()
    indices = np.arange(6).repeat(20)
    plain = data.take(indices)
    made = blended(data, indices, 0.0, np.random.default_rng(0))
    assert np.array_equal(made[0], plain[0])
    assert np.array_equal(made[1], plain[1])
    events, offsets = blended(data, indices, 0.5, np.random.default_rng(0))
    same = [np.array_equal(events[a:b], data[int(i)]) for i, (a, b) in zip(indices, pairwise(offsets), strict=True)]
    assert 35 < sum(same) < 85


def test_empty_recordings_blend():
    nothing = make_events(np.zeros(0), np.zeros(0))
    assert len(blend(nothing, nothing, SENSOR, np.random.default_rng(0))) == 0
    assert len(blend(recording(0, 50, 0, 0, 0), nothing, SENSOR, np.random.default_rng(0))) < 50


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
        augment_frames(np.zeros((2, 3, 2, 8, 8), np.uint8), Augmentation(**settings), np.random.default_rng(0))
