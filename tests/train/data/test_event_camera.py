from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import EVENT
from axonnx.train.data.event_camera import EventCamera

IDEAL = EventCamera(threshold=0.25, threshold_std=0, refractory_us=0, noise_hz=0, step_us=1000)


def film_of(logs):
    """A film of one scene and one row from log intensities [frames, pixels]."""
    return [np.exp(np.asarray(frame, float))[None, None, :] for frame in logs]


def record(camera, logs, seed=0):
    events, _ = camera.record(film_of(logs), seed=seed, indices=[0])
    return events


def one_pixel(camera, logs):
    """The same physics for one pixel, step by step: (time, polarity) of every event."""
    reference, ready, found = logs[0], -1.0, []
    for step, (before, after) in enumerate(pairwise(logs)):
        start, end = step * camera.step_us, (step + 1) * camera.step_us
        slope = (after - before) / camera.step_us
        if start <= ready < end:
            reference = before + slope * (ready - start)
        while ready < end and abs(after - reference) >= camera.threshold:
            reference = reference + np.sign(slope) * camera.threshold
            time = max(start + (reference - before) / slope, ready)
            found.append((int(np.floor(time)), int(slope > 0)))
            ready = time + camera.refractory_us
            if camera.refractory_us and ready < end:
                reference = before + slope * (ready - start)
    duration = (len(logs) - 1) * camera.step_us
    return [event for event in found if event[0] < duration]


def test_events_of_a_ramp_come_where_the_line_crosses_the_levels():
    events = record(IDEAL, [[0.0], [1.1]])
    assert events.dtype == EVENT
    assert events["t"].tolist() == [int(1000 * level / 1.1) for level in (0.25, 0.5, 0.75, 1.0)]
    assert events["p"].tolist() == [1, 1, 1, 1]
    assert record(IDEAL, [[0.0], [-1.1]])["p"].tolist() == [0, 0, 0, 0]


def test_small_changes_add_up_over_frames():
    assert record(IDEAL, [[0.0], [0.2], [0.2], [0.35]])["t"].tolist() == [2333]


def test_nothing_happens_in_front_of_a_static_scene():
    assert len(record(IDEAL, np.tile([0.3, 0.9, 0.1], (50, 1)))) == 0


@given(st.lists(st.lists(st.floats(-2, 2), min_size=5, max_size=5), min_size=2, max_size=6), st.integers(0, 4))
def test_only_pixels_whose_light_changes_fire(logs, still):
    logs = np.array(logs)
    logs[:, still] = 0.5
    events = record(IDEAL, logs)
    assert still not in events["x"]
    assert set(events["x"]) <= set(np.flatnonzero(np.ptp(logs, axis=0) > 0))


@settings(deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=12),
    st.sampled_from([0, 1, 137, 400, 1000, 2500]),
    st.floats(0.05, 1.5),
)
def test_pixels_agree_with_one_pixel_at_a_time(logs, refractory_us, threshold):
    camera = IDEAL.model_copy(update={"refractory_us": refractory_us, "threshold": threshold})
    # Logarithms as the camera will see them: exp and log do not quite undo each other.
    seen = np.log(np.exp(np.array(logs)))
    events = record(camera, seen[:, None])
    expected = one_pixel(camera, np.log(np.exp(seen)))
    assert list(zip(events["t"].tolist(), events["p"].tolist(), strict=True)) == expected


def test_a_pixel_in_reset_misses_what_it_does_not_see():
    camera = IDEAL.model_copy(update={"refractory_us": 100})
    # 1 per ms: 250 µs to the threshold, then 100 µs of reset, then from there again.
    assert record(camera, [[0.0], [1.0]])["t"].tolist() == [250, 600, 950]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5000), st.floats(0, 300))
def test_refractory_time_holds_for_signal_and_noise(seed, refractory_us, noise_hz):
    camera = EventCamera(threshold=0.1, refractory_us=refractory_us, noise_hz=noise_hz, step_us=1000)
    logs = np.random.default_rng(seed).uniform(-1, 1, (20, 6))
    events = record(camera, logs, seed)
    assert (np.diff(events["t"]) >= 0).all()
    for pixel in range(6):
        assert (np.diff(events["t"][events["x"] == pixel]) >= refractory_us).all()


def test_twice_the_threshold_gives_half_the_events():
    logs = np.random.default_rng(0).uniform(-2, 2, (40, 200))
    fine, coarse = (len(record(IDEAL.model_copy(update={"threshold": threshold}), logs)) for threshold in (0.05, 0.1))
    assert fine > 50_000
    assert 0.47 < coarse / fine < 0.53


def test_there_and_back_fires_as_much_on_as_off():
    there = np.linspace(0, 1, 11)[:, None] * np.linspace(0.4, 3, 50)
    events = record(IDEAL, np.concatenate([there, there[-2::-1]]))
    on, off = (np.bincount(events["x"][events["p"] == p], minlength=50) for p in (1, 0))
    assert on.min() >= 1
    assert np.abs(on - off).max() <= 1


def test_the_same_seed_gives_the_same_events_and_another_does_not():
    logs = np.random.default_rng(0).uniform(-1, 1, (20, 30))
    camera = EventCamera(noise_hz=50)
    assert np.array_equal(record(camera, logs, 1), record(camera, logs, 1))
    assert not np.array_equal(record(camera, logs, 1), record(camera, logs, 2))


def test_a_scene_does_not_depend_on_its_neighbours():
    scenes = np.exp(np.random.default_rng(0).uniform(-1, 1, (20, 4, 3, 5)))
    camera = EventCamera(noise_hz=50, threshold_std=0.1)
    events, offsets = camera.record(iter(scenes), seed=3, indices=[5, 6, 7, 8])
    backwards, ends = camera.record(iter(scenes[:, ::-1]), seed=3, indices=[8, 7, 6, 5])
    for scene in range(4):
        alone, _ = camera.record(iter(scenes[:, scene : scene + 1]), seed=3, indices=[5 + scene])
        assert np.array_equal(alone, events[offsets[scene] : offsets[scene + 1]])
        assert np.array_equal(alone, backwards[ends[3 - scene] : ends[4 - scene]])


def test_the_mismatch_is_the_sensors_and_the_same_for_every_scene():
    ramp = np.linspace(0, 5, 30)[:, None, None, None] * np.ones((2, 4, 4))
    camera = IDEAL.model_copy(update={"threshold_std": 0.05})
    events, offsets = camera.record(np.exp(ramp), seed=0, indices=[0, 1])
    assert np.array_equal(events[: offsets[1]], events[offsets[1] :])
    assert len(np.unique(np.bincount(events["y"].astype(int) * 4 + events["x"]))) > 1


def test_thresholds_stay_positive_however_wide_the_mismatch():
    camera = EventCamera(threshold=0.2, threshold_std=10)
    thresholds = camera._thresholds((50, 50), 0)
    assert thresholds.min() == pytest.approx(0.02)


def test_noise_comes_at_the_rate_asked_for_in_both_polarities_everywhere():
    camera = EventCamera(noise_hz=5, refractory_us=0, step_us=10_000)
    events, _ = camera.record(np.ones((101, 1, 32, 32)), seed=0, indices=[0])
    expected = 5 * 32 * 32 * 1.0
    assert abs(len(events) - expected) < 4 * np.sqrt(expected)
    assert abs(events["p"].sum() - len(events) / 2) < 4 * np.sqrt(len(events) / 4)
    assert len(np.unique(events["y"].astype(int) * 32 + events["x"])) > 0.98 * 32 * 32
    assert events["t"].min() >= 0
    assert 990_000 < events["t"].max() < 1_000_000


@pytest.mark.parametrize(
    ("film", "says"),
    [
        ([np.zeros((1, 2, 2)), np.ones((1, 2, 2))], "above 0"),
        ([np.full((1, 2, 2), np.nan), np.ones((1, 2, 2))], "above 0"),
        ([np.ones((2, 2, 2)), np.ones((2, 2, 2))], r"expected \(1, height, width\)"),
        ([np.ones((1, 2, 2))], "fewer than two frames"),
        ([], "fewer than two frames"),
    ],
)
def test_films_that_cannot_be_seen_are_refused(film, says):
    with pytest.raises(AxonnxError, match=says):
        EventCamera().record(film, seed=0, indices=[0])


@pytest.mark.parametrize(
    "settings", [{"treshold": 0.2}, {"threshold": 0}, {"refractory_us": -1}, {"noise_hz": -0.1}, {"step_us": 0}]
)
def test_impossible_cameras_are_refused(settings):
    with pytest.raises(ValidationError):
        EventCamera(**settings)
    with pytest.raises(ValidationError):
        EventCamera().threshold = 1
