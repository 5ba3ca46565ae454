import re
from ctypes import c_double, c_int64, c_uint64, c_void_p
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from axonnx.base.errors import AxonnxError
from axonnx.native import FOLDER
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import is_sorted, make_events, sort_events
from axonnx.train.data.augment import Augmentation
from axonnx.train.data.augment_events import _Change, augment_events
from axonnx.train.data.recordings import Recordings, join_events

from ...runtime.no_core import needs_core, without_core

SENSOR = Sensor(width=20, height=10)


def batch_of(sizes, seed=0):
    generator = np.random.default_rng(seed)
    parts = [
        make_events(
            np.sort(generator.integers(0, 10_000, size)),
            generator.integers(20, size=size),
            generator.integers(10, size=size),
            generator.integers(2, size=size),
        )
        for size in sizes
    ]
    return join_events(parts)


def augment(batch, seed=0, sensor=SENSOR, **settings):
    events, offsets = batch
    data = Recordings(events, offsets, np.zeros(len(offsets) - 1, np.int64), ("all",), sensor)
    return augment_events(data, np.arange(len(data)), Augmentation(**settings), seed, 0)


def split(events, offsets):
    return [events[start:stop] for start, stop in pairwise(offsets)]


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 30), max_size=6),
    st.integers(0, 1000),
    st.builds(
        Augmentation,
        drop=st.sampled_from([0, 0.3, 1]),
        gain=st.sampled_from([0, 0.5, 2]),
        tone=st.sampled_from([0, 0.5, 2]),
        time_jitter_us=st.sampled_from([0, 10, 5000]),
        time_stretch=st.sampled_from([0, 0.2, 0.9]),
        shift_x=st.sampled_from([0, 3, 40]),
        shift_y=st.sampled_from([0, 2, 15]),
        jitter_x=st.sampled_from([0, 2.5]),
        flip=st.booleans(),
    ),
)
def test_whatever_happens_the_result_is_a_valid_batch_and_the_input_untouched(sizes, seed, how):
    events, offsets = batch_of(sizes)
    before = events.copy(), offsets.copy()
    made = augment((events, offsets), seed, **how.model_dump())
    for part in split(made.events, made.offsets):
        whole = sort_events(part)
        assert np.array_equal(whole["t"][:1], part["t"][:1])  # the earliest comes first
        Recordings(whole, np.array([0, len(whole)]), np.zeros(1, np.int64), ("all",), SENSOR)
    lost = np.diff(offsets) - np.diff(made.offsets)
    assert (made.off_sensor >= 0).all()
    if not how.gain and not how.tone:
        assert (lost >= made.off_sensor).all()
        assert how.drop or np.array_equal(lost, made.off_sensor)
    assert np.array_equal(events, before[0])
    assert np.array_equal(offsets, before[1])
    again = augment((events, offsets), seed, **how.model_dump())
    assert np.array_equal(again.events, made.events)


def test_everything_is_off_by_default():
    batch = batch_of([5, 0, 9])
    made = augment(batch)
    assert np.array_equal(made.events, batch[0])
    assert np.array_equal(made.offsets, batch[1])
    assert Augmentation().is_off
    assert not Augmentation(flip=True).is_off


def test_drop_takes_a_different_share_of_every_recording_up_to_the_limit():
    batch = batch_of([2000] * 50)
    made = augment(batch, drop=0.4)
    share = 1 - np.diff(made.offsets) / 2000
    assert share.max() < 0.4 + 4 * np.sqrt(0.24 / 2000)
    assert share.min() < 0.1
    assert share.mean() == pytest.approx(0.2, abs=4 * 0.4 / np.sqrt(12 * 50))
    kept = split(made.events, made.offsets)[7]
    assert np.isin(kept, split(*batch)[7]).all()


def test_stretch_is_one_factor_a_recording():
    batch = batch_of([300] * 40)
    made = augment(batch, time_stretch=0.2)
    factors = []
    for old, new in zip(split(*batch), split(made.events, made.offsets), strict=True):
        factor = new["t"][-1] / old["t"][-1]
        assert np.abs(new["t"] - factor * old["t"]).max() <= 1
        assert np.array_equal(new["x"], old["x"])
        factors.append(factor)
    assert 0.8 <= min(factors) < 0.85
    assert 1.15 < max(factors) <= 1.2


def test_jitter_moves_single_events_and_keeps_all():
    batch = batch_of([4000])
    made = augment(batch, time_jitter_us=50)
    assert len(made.events) == 4000
    assert not is_sorted(made.events)  # some have overtaken others
    assert np.bincount(made.events["x"]).tolist() == np.bincount(batch[0]["x"]).tolist()
    spread = np.array([made.events["t"].mean() - batch[0]["t"].mean(), made.events["t"].min()])
    assert abs(spread[0]) < 4 * 50 / np.sqrt(4000) + 1
    assert spread[1] >= 0


def test_jitter_has_the_spread_asked_for():
    events = make_events(np.full(5000, 1000), np.arange(5000) % 20)
    made = augment((events, np.array([0, 5000])), time_jitter_us=100)
    assert made.events["t"].std() == pytest.approx(100, rel=0.05)


def test_shift_moves_a_recording_as_a_whole_and_counts_what_falls_off():
    batch = batch_of([500] * 60)
    made = augment(batch, shift_x=3)
    moves = set()
    for old, new, lost in zip(split(*batch), split(made.events, made.offsets), made.off_sensor, strict=True):
        fits = [
            move for move in range(-3, 4)
            if np.array_equal(new["x"], (old["x"].astype(int) + move)[_inside(old["x"], move, 20)])
        ]  # fmt: skip
        assert len(fits) == 1
        assert lost == (~_inside(old["x"], fits[0], 20)).sum()
        moves.add(fits[0])
    assert moves == {-3, -2, -1, 0, 1, 2, 3}


def _inside(places, move, size):
    moved = places.astype(int) + move
    return (moved >= 0) & (moved < size)


def test_events_that_were_dropped_do_not_fall_off_the_sensor_too():
    batch = batch_of([400] * 60)
    moved, both = augment(batch, shift_x=20), augment(batch, shift_x=20, drop=1.0)
    assert both.off_sensor.sum() < 0.7 * moved.off_sensor.sum()
    assert both.off_sensor.sum() + len(both.events) == pytest.approx(0.5 * len(batch[0]), rel=0.3)


def test_jitter_x_has_the_spread_asked_for_and_moves_columns_alone():
    events = make_events(np.arange(5000), np.full(5000, 10), np.full(5000, 3))
    made = augment((events, np.array([0, 5000])), jitter_x=2.0)
    assert made.events["x"].std() == pytest.approx(np.sqrt(4 + 1 / 12), rel=0.05)
    assert made.events["x"].mean() == pytest.approx(10, abs=0.12)
    assert (made.events["y"] == 3).all()
    assert np.array_equal(made.events["t"], events["t"])


def test_shift_y_moves_rows_only():
    batch = batch_of([50] * 20)
    made = augment(batch, shift_y=1)
    assert (np.diff(made.offsets) + made.off_sensor == 50).all()
    assert made.off_sensor.sum() > 0
    assert made.events["y"].max() < 10


def test_flip_mirrors_about_half_of_the_recordings():
    batch = batch_of([20] * 200)
    made = augment(batch, flip=True)
    mirrored = 0
    for old, new in zip(split(*batch), split(made.events, made.offsets), strict=True):
        if not np.array_equal(new, old):
            assert np.array_equal(new["x"], 19 - old["x"])
            assert np.array_equal(new["p"], old["p"])
            mirrored += 1
    assert 70 < mirrored < 130


@pytest.mark.parametrize(
    "settings", [{"dorp": 0.1}, {"drop": 1.5}, {"time_stretch": 1}, {"shift_x": -1}, {"time_jitter_us": -1}]
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ValidationError):
        Augmentation(**settings)


def test_what_is_for_frames_is_refused():
    with pytest.raises(AxonnxError, match="crop does not work on events; use shift_x and shift_y"):
        augment(batch_of([3]), crop=4)


def test_gain_makes_recordings_louder_and_quieter_and_moves_nothing():
    events, offsets = batch_of([400] * 50)
    made = augment((events, offsets), gain=0.5)
    factors = np.diff(made.offsets) / 400
    assert np.exp(-0.5) * 0.9 < factors.min() < 0.75  # e^±0.5 = 0.61 and 1.65
    assert 1.4 < factors.max() < np.exp(0.5) * 1.1
    assert abs(np.log(factors).mean()) < 0.15
    for before, after in zip(split(events, offsets), split(made.events, made.offsets), strict=True):
        assert set(after.tolist()) <= set(before.tolist())


def test_tone_makes_columns_louder_and_quieter_each_recording_in_its_own_way():
    columns = np.tile(np.arange(20), 2000)
    events, offsets = join_events([make_events(np.zeros(40_000), columns)] * 30)
    made = augment((events, offsets), tone=1.0)
    parts = split(made.events, made.offsets)
    factors = np.log([np.bincount(part["x"], minlength=20) / 2000 for part in parts])
    assert -1.1 < factors.min() < -0.6
    assert 0.6 < factors.max() < 1.1
    assert np.ptp(factors, axis=0).min() > 0.6  # every column is louder in one recording than in another
    assert np.ptp(factors, axis=1).min() > 0.3  # and louder than other columns of its recording
    assert np.abs(np.diff(factors)).max() < 2 * 7 / 19 + 0.2  # neighbours differ by what a straight line allows


def test_tone_runs_straight_between_eight_corners():
    sensor = Sensor(width=71, height=1)  # corners at every tenth column
    events, offsets = join_events([make_events(np.zeros(71_000), np.tile(np.arange(71), 1000))])
    made = augment((events, offsets), 3, sensor, tone=1.0)
    curve = np.log(np.bincount(made.events["x"], minlength=71) / 1000)
    straight = np.interp(np.arange(71), np.arange(0, 71, 10), curve[::10])
    assert np.abs(curve - straight).max() < 0.15
    assert np.ptp(curve) > 0.5


def test_a_sensor_of_one_column_has_a_tone():
    events, offsets = join_events([make_events(np.zeros(1000), np.zeros(1000))] * 50)
    made = augment((events, offsets), 0, Sensor(width=1, height=1), tone=0.5)
    assert 0.5 < np.diff(made.offsets).min() / 1000 < 0.75
    assert 1.4 < np.diff(made.offsets).max() / 1000 < 1.8


def test_zoom_scales_places_about_the_middle_of_the_sensor():
    events = make_events(np.zeros(600), np.full(600, 24), np.full(600, 16), np.zeros(600))
    sensor, offsets = Sensor(width=33, height=33), np.arange(601)
    zoomed = augment((events, offsets), 0, sensor, zoom=0.5)
    assert not zoomed.off_sensor.any()
    assert (zoomed.events["y"] == 16).all()
    assert (zoomed.events["x"].min(), zoomed.events["x"].max()) == (20, 28)


def test_a_sample_changes_in_the_same_way_in_whatever_batch_it_is():
    events, offsets = batch_of([40] * 6)
    data = Recordings(events, offsets, np.zeros(6, np.int64), ("all",), SENSOR)
    how = Augmentation(blend=0.5, drop=0.3, gain=0.5, time_jitter_us=20, jitter_x=1, shift_x=2, zoom=0.2, flip=True)
    whole = split(*augment_events(data, np.arange(6), how, 3, 4)[:2])
    some = split(*augment_events(data, np.array([5, 2]), how, 3, 4)[:2])
    assert np.array_equal(some[0], whole[5])
    assert np.array_equal(some[1], whole[2])
    for seed, epoch in ((4, 4), (3, 5)):
        assert not np.array_equal(augment_events(data, np.array([5]), how, seed, epoch).events, whole[5])


def test_what_else_is_asked_for_changes_no_draw():
    batch = batch_of([300] * 20)
    alone, both = augment(batch, shift_x=3), augment(batch, shift_x=3, drop=0.2, time_stretch=0.1)
    for one, other in zip(split(alone.events, alone.offsets), split(both.events, both.offsets), strict=True):
        assert set(zip(other["x"].tolist(), other["y"].tolist(), strict=True)) <= set(
            zip(one["x"].tolist(), one["y"].tolist(), strict=True)
        )


@needs_core
@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=5),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 2),
    st.builds(
        Augmentation,
        blend=st.sampled_from([0, 0.5, 1]),
        drop=st.sampled_from([0, 0.3, 1]),
        gain=st.sampled_from([0, 0.5, 2]),
        tone=st.sampled_from([0, 0.5, 2]),
        time_jitter_us=st.sampled_from([0, 10.5, 5000, 1e15]),
        time_stretch=st.sampled_from([0, 0.2, 0.9]),
        shift_x=st.sampled_from([0, 3, 40]),
        shift_y=st.sampled_from([0, 2, 15]),
        jitter_x=st.sampled_from([0, 2.5, 100]),
        zoom=st.sampled_from([0, 0.2, 0.9]),
        flip=st.booleans(),
    ),
    st.sampled_from([1, 9 * 10**14]),
)
def test_the_core_and_numpy_give_the_same_bits(sizes, seed, epoch, how, scale):
    events, offsets = batch_of(sizes)
    events["t"] *= scale
    data = Recordings(events, offsets, np.arange(len(sizes)) % 2, ("one", "two"), SENSOR)
    indices = np.arange(len(sizes))[::-1].copy()
    fast = augment_events(data, indices, how, seed, epoch)
    with without_core():
        plain = augment_events(data, indices, how, seed, epoch)
    for one, other in zip(fast, plain, strict=True):
        assert np.array_equal(one, other)


@needs_core
def test_the_fields_of_a_change_are_those_of_the_core():
    source = (FOLDER / "events.c").read_text()
    struct = re.search(r"typedef struct \{([^{}]*)\} change;", source)[1]
    lines = re.sub(r"/\*.*?\*/", "", struct, flags=re.DOTALL).split(";")
    kinds = {"const uint8_t": c_void_p, "const int64_t": c_void_p, "const double": c_void_p}
    plain = {"int64_t": c_int64, "double": c_double, "uint64_t": c_uint64}
    found = []
    for line in filter(str.strip, lines):
        kind, names = re.match(r"\s*((?:const )?\w+)\s+(.*)", line, re.DOTALL).groups()
        for name in names.split(","):
            star = "*" in name
            found.append((re.search(r"\w+", name)[0], kinds[kind] if star else plain[kind]))
    assert found == [tuple(field) for field in _Change._fields_]


def test_a_recording_begins_anywhere_in_its_first_share_and_ends_where_no_bin_reaches():
    events, offsets = join_events([make_events(np.arange(1000) * 10, np.arange(1000) % 10)] * 40)
    data = Recordings(events, offsets, np.zeros(40, np.int64), ("all",), SENSOR)
    parts = split(*augment_events(data, np.arange(40), Augmentation(start=0.5), 0, 0, 2000)[:2])
    begins = np.array([int(part["x"][0]) for part in parts])
    assert len(set(begins.tolist())) > 5
    assert all(part["t"][0] < 10 and 199 <= len(part) <= 201 for part in parts)
    assert all((np.diff(part["t"]) == 10).all() for part in parts)
    starts = [
        int(part["t"][0]) for part in split(*augment_events(data, np.arange(40), Augmentation(start=0.5), 0, 0)[:2])
    ]
    assert max(starts) < 10
    whole = split(*augment_events(data, np.arange(40), Augmentation(start=0.5), 0, 0)[:2])
    assert 500 <= min(map(len, whole)) < 620
    assert 880 < max(map(len, whole)) <= 1000
