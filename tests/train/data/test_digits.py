import numpy as np
import pytest
from pydantic import ValidationError

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binning, Sensor, bin_batch
from axonnx.train.data import digits
from axonnx.train.data.digits import _digits, film, gaze, load_saccade, load_static, saccade_events
from axonnx.train.data.event_camera import EventCamera


def test_static_digits_are_all_there_once():
    data = load_static()
    assert (data.train.frames.shape, data.test.frames.shape) == ((1437, 1, 8, 8), (360, 1, 8, 8))
    assert (data.kind, data.sensor, data.classes) == ("images", None, tuple("0123456789"))
    assert data.train.frames.max() == 16
    images, _ = _digits()
    both = np.concatenate([data.train.frames, data.test.frames]).reshape(1797, -1)
    assert sorted(map(bytes, both)) == sorted(map(bytes, images.reshape(1797, -1)))


def test_static_digits_and_their_split_never_change():
    data = load_static()
    assert data.digest == "dae6dcca6b3a4c7db1220d6aaf204b01dea6442789717a5098c0fc96812c0673"
    assert np.bincount(data.test.labels).tolist() == [36, 37, 35, 37, 36, 36, 36, 36, 35, 36]


def test_saccades_are_recordings_of_the_same_split(saccades):
    static = load_static()
    assert (saccades.kind, saccades.sensor) == ("events", Sensor(width=16, height=16))
    assert np.array_equal(saccades.train.labels, static.train.labels)
    assert np.array_equal(saccades.test.labels, static.test.labels)
    assert saccades.train.events["t"].max() < 300_000
    assert np.diff(saccades.train.offsets).min() > 300


def test_saccades_fire_on_and_off_alike_and_in_all_three_movements(saccades):
    events = saccades.train.events
    assert 0.47 < events["p"].mean() < 0.53
    thirds = np.bincount(events["t"] // 100_000) / len(events)
    assert len(thirds) == 3
    assert thirds.min() > 0.25


def test_classes_can_be_told_apart_by_their_nearest_neighbour(saccades):
    binning = Binning.over(300_000, 6, saccades.sensor)
    train, test = (
        bin_batch(part.events, part.offsets, binning).frames.reshape(len(part), -1).astype(np.float32)
        for part in (saccades.train, saccades.test)
    )
    distance = (train**2).sum(1) - 2 * test @ train.T
    guess = saccades.train.labels[distance.argmin(1)]
    assert (guess == saccades.test.labels).mean() >= 0.95


def test_a_digits_events_depend_on_nothing_but_its_index_and_the_seed():
    images, _ = _digits()
    camera = EventCamera(noise_hz=5)
    some, ends = saccade_events(images[:70], camera, 16, 100_000, 0)
    few, _ = saccade_events(images[:3], camera, 16, 100_000, 0)
    assert np.array_equal(some[: ends[3]], few)
    assert not np.array_equal(saccade_events(images[:3], camera, 16, 100_000, 1)[0], few)


def test_a_larger_sensor_sees_more():
    images, _ = _digits()
    counts = [len(saccade_events(images[:10], EventCamera(), size, 100_000, 0)[0]) for size in (16, 32)]
    assert counts[1] > 2 * counts[0]


def test_the_gaze_runs_round_a_triangle_and_rests_at_its_corners():
    path = gaze(100_000, 2500)
    assert len(path) == 121
    assert np.array_equal(path[0], path[-1])
    speed = np.linalg.norm(np.diff(path, axis=0), axis=1)
    assert speed[[0, 40, 80]].max() < 0.1 * speed.max()
    assert len({tuple(path[corner]) for corner in (0, 40, 80)}) == 3


def test_the_film_shows_the_image_where_the_path_says():
    spot = np.zeros((1, 8, 8), np.uint8)
    spot[0, 2, 5] = 16
    still, right, down = film(spot, np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]), 32)
    assert still.shape == (1, 32, 32)
    assert 0.1 <= still.min() < still.max() <= 1
    assert np.allclose(right[0, :, 3:], still[0, :, :-3])
    assert np.allclose(down[0, 3:], still[0, :-3])
    row, column = np.unravel_index(still[0].argmax(), (32, 32))
    assert row < 16 < column


def test_what_a_caller_does_to_the_events_stays_with_the_caller(saccades):
    mine = load_saccade()
    mine.train.events["t"] = 0
    assert load_saccade().train.digest == saccades.train.digest


def test_wrong_options_are_refused():
    with pytest.raises(AxonnxError, match="16 or 32"):
        load_saccade(sensor=20)
    with pytest.raises(ValidationError, match="contrast"):
        load_saccade(camera={"contrast": 0.1})
    with pytest.raises(AxonnxError, match="no multiple"):
        load_saccade(saccade_us=100_001)


def test_events_are_kept_on_disk_and_made_where_that_cannot_be(saccades, tmp_path, monkeypatch):
    made = []

    def record(images, *how):
        made.append(len(images))
        return saccade_events(images, *how)

    monkeypatch.setattr(digits, "saccade_events", record)
    (tmp_path / "file").touch()
    digests = []
    for folder in ("cache", "cache", "file"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / folder))
        digits._recorded.cache_clear()
        digests.append(load_saccade().digest)
    assert made == [1797, 1797]  # the first and the last time
    assert set(digests) == {saccades.digest}
