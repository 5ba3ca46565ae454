"""Events moved from one sensor to another, in whole numbers, and nothing lost without a count."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Sensor, make_events
from axonnx.runtime.format.contract import FitContract
from axonnx.runtime.readers import Recording
from axonnx.runtime.streams.adapt import Adapter, Fit, scale
from axonnx.runtime.streams.sources import FileSource

SIZES = st.one_of(st.integers(1, 40), st.sampled_from([128, 320, 700, 1280, 65536]))


def grid(width, height):
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    return make_events(np.arange(width * height), x.ravel(), y.ravel())


@given(old=SIZES, new=SIZES, data=st.data())
def test_scaling_takes_the_pixel_under_the_middle(old, new, data):
    x = data.draw(st.integers(0, old - 1))
    found = int(scale(np.array([x], np.uint16), old, new)[0])
    assert found == (Fraction(2 * x + 1, 2) * Fraction(new, old)).__floor__()
    assert 0 <= found < new


def test_scaling_to_the_same_size_changes_nothing_and_halving_halves():
    every = np.arange(34, dtype=np.uint16)
    assert scale(every, 34, 34).tolist() == every.tolist()
    assert scale(every, 34, 17).tolist() == (every // 2).tolist()
    assert scale(np.arange(3, dtype=np.uint16), 3, 6).tolist() == [1, 3, 5]


def test_resizing_keeps_every_event_and_its_time_and_polarity():
    events = grid(10, 9)
    events["p"] = events["t"] % 2
    moved = Adapter(Sensor(width=5, height=3), Sensor(width=10, height=9), resize=True)(events)
    assert moved["x"].tolist() == (events["x"] // 2).tolist()
    assert moved["y"].tolist() == (events["y"] // 3).tolist()
    assert moved[["t", "p"]].tolist() == events[["t", "p"]].tolist()
    assert events["x"].max() == 9, "the source's events are left alone"


@settings(deadline=None)
@given(left=st.integers(0, 9), top=st.integers(0, 8))
def test_cropping_keeps_what_is_inside_and_counts_the_rest(left, top):
    events = grid(10, 9)
    adapter = Adapter(Sensor(width=4, height=3), Sensor(width=10, height=9), crop=(left, top))
    kept = adapter(events)
    inside = [(int(e["x"]) - left, int(e["y"]) - top) for e in events]
    inside = [(x, y) for x, y in inside if 0 <= x < 4 and 0 <= y < 3]
    assert list(zip(kept["x"].tolist(), kept["y"].tolist(), strict=True)) == inside
    assert adapter.dropped == {"off_sensor": 0, "cropped": 90 - len(inside)}


def test_the_centre_is_in_the_middle():
    adapter = Adapter(Sensor(width=4, height=3), Sensor(width=10, height=10), crop="centre")
    assert adapter.region[:2] == (3, 3)
    assert len(adapter(grid(10, 10))) == 12
    assert Adapter(Sensor(width=4, height=30), Sensor(width=10, height=10), crop="centre").region[:2] == (3, 0)


@pytest.mark.parametrize("options", [{}, {"resize": True}, {"crop": (0, 0)}])
def test_events_off_their_own_sensor_are_counted(options):
    events = make_events([1, 2, 3], [3, 4, 0], [0, 0, 4])
    adapter = Adapter(Sensor(width=4, height=4), Sensor(width=4, height=4), **options)
    assert len(adapter(events)) == 1
    assert adapter.dropped == {"off_sensor": 2, "cropped": 0}


def test_an_unknown_sensor_is_left_to_the_session():
    events = make_events([1, 2], [3, 400])
    assert Adapter(Sensor(width=4, height=4))(events) is events


def test_polarities_are_merged_when_asked():
    events = make_events([1, 2], 0, 0, [0, 1])
    one, two = Sensor(width=4, polarities=1), Sensor(width=4)
    with pytest.raises(AxonnxError, match=r"2 polarities, but the network expects 1; merge the polarities"):
        Adapter(one, two)
    assert Adapter(one, two, merge_polarities=True)(events)["p"].tolist() == [0, 0]
    assert events["p"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("source", "options", "text"),
    [
        (
            Sensor(width=5, height=4),
            {},
            r"the source's sensor is 5×4, but the network expects 4×4; resize .* or crop",
        ),
        (Sensor(width=4, height=5), {}, r"4×5, but the network expects 4×4"),
        (None, {"resize": True}, r"does not state its sensor size.* state the size, for example 128x128"),
        (None, {"crop": "centre"}, r"does not state its sensor size"),
        (Sensor(width=9, height=9), {"crop": (9, 0)}, r"crop 9,0 does not begin on the sensor of 9×9"),
        (None, {"crop": (-1, 0)}, r"crop -1,0 does not begin on the sensor; give"),
        (Sensor(width=9, height=9), {"crop": (1, 1), "resize": True}, "cannot be combined"),
    ],
)
def test_what_does_not_fit_is_refused(source, options, text):
    with pytest.raises(AxonnxError, match=text):
        Adapter(Sensor(width=4, height=4), source, **options)


def test_a_smaller_sensor_keeps_its_coordinates():
    events = grid(3, 2)
    assert Adapter(Sensor(width=4, height=4), Sensor(width=3, height=2))(events) is events


def test_polarities_are_exchanged_and_strange_ones_stay():
    events = make_events([0, 1, 2, 3], [0, 1, 2, 3], 0, [0, 1, 2, 255])
    source = FileSource("a", Recording(events, "memory", Sensor(width=4)))
    moved = Fit.of("swap").adapter(source, Sensor(width=4))(events)
    assert moved["p"].tolist() == [1, 0, 2, 255]
    assert events["p"].tolist() == [0, 1, 2, 255]


CAMERA, NETWORK = Sensor(width=346, height=260), Sensor(width=64, height=48)
TRAINED = FitContract(sensor=CAMERA, left=3, top=2, width=340, height=256)


def source(sensor):
    random = np.random.default_rng(0)
    events = make_events(np.arange(50), random.integers(0, 346, 50), random.integers(0, 260, 50))
    return FileSource("some", Recording(events, "memory", sensor))


@pytest.mark.parametrize("stated", [CAMERA, None])
def test_the_sensor_of_training_and_an_unknown_one_are_moved_as_in_training(stated):
    given = source(stated)
    adapter = Fit().adapter(given, NETWORK, TRAINED)
    events = given.recording.events
    inside = [(int(e["x"]) - 3, int(e["y"]) - 2) for e in events if 3 <= e["x"] < 343 and 2 <= e["y"] < 258]
    expected = [((2 * x + 1) * 64 // 680, (2 * y + 1) * 48 // 512) for x, y in inside]
    assert adapter(events)[["x", "y"]].tolist() == expected
    assert adapter.dropped == {"off_sensor": 0, "cropped": 50 - len(inside)}


def test_what_is_asked_for_goes_before_what_training_did():
    moved = Fit(resize=True).adapter(source(CAMERA), NETWORK, TRAINED)
    assert moved.region == (0, 0, 346, 260)
    assert Fit(crop=(5, 6)).adapter(source(CAMERA), NETWORK, TRAINED).region == (5, 6, 64, 48)
    assert Fit(sensor=NETWORK).adapter(source(None), NETWORK, TRAINED).region is None


def test_another_sensor_is_treated_as_without_it():
    with pytest.raises(AxonnxError, match="640×480, but the network expects 64×48"):
        Fit().adapter(source(Sensor(width=640, height=480)), NETWORK, TRAINED)
    assert Fit().adapter(source(NETWORK), NETWORK, TRAINED).region is None


def test_a_region_lies_on_its_sensor():
    with pytest.raises(ValueError, match="340×256 pixels at 7,2 is not inside the sensor of 346×260"):
        FitContract(sensor=CAMERA, left=7, top=2, width=340, height=256)
