"""What a binning may be, and the texts when it may not."""

import pytest
from pydantic import ValidationError

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Binning, Sensor

SENSOR = Sensor(width=8, height=6)


def test_shapes_after_down_sampling_and_merging():
    binning = Binning(sensor=SENSOR, bins=5, bin_us=100, downsample=2)
    assert binning.shape == (5, 2, 3, 4)
    assert (binning.channels, binning.height, binning.width, binning.cells) == (2, 3, 4, 24)
    assert binning.duration_us == 500
    assert binning.model_copy(update={"polarity": "merge"}).shape == (5, 1, 3, 4)


def test_over_a_duration():
    binning = Binning.over(1_450_000, 50, SENSOR, origin="first", values="binary")
    assert (binning.bins, binning.bin_us, binning.duration_us) == (50, 29_000, 1_450_000)
    assert (binning.origin, binning.values, binning.limit) == ("first", "binary", 1)


@pytest.mark.parametrize(("duration", "nearest"), [(1_000_001, 1_000_000), (1_000_051, 1_000_100), (149, 100)])
def test_a_duration_that_does_not_divide_names_the_nearest_that_does(duration, nearest):
    with pytest.raises(AxonnxError, match=f"{duration} µs cannot be divided into 100 bins.* is {nearest} µs"):
        Binning.over(duration, 100, SENSOR)


@pytest.mark.parametrize(("duration", "bins"), [(0, 1), (-5, 1), (10, 0), (99, 100)])
def test_a_duration_without_a_microsecond_for_each_bin_is_refused(duration, bins):
    with pytest.raises(AxonnxError, match="at least 1 µs for each"):
        Binning.over(duration, bins, SENSOR)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"downsample": 4}, "downsample 4 does not divide the sensor's height 6"),
        ({"downsample": 3}, "downsample 3 does not divide the sensor's width 8"),
        ({"clip": 0}, "clip"),
        ({"clip": 256}, "clip"),
        ({"bins": 0}, "bins"),
        ({"bin_us": 0}, "bin_us"),
        ({"bin_us": 0.5}, "bin_us"),
        ({"bins": 2, "bin_us": 2**62}, "exceed the range of int64"),
        ({"origin": "start"}, "'zero' or 'first'"),
        ({"colour": 1}, "colour"),
    ],
)
def test_what_cannot_be_is_refused(change, text):
    with pytest.raises(ValidationError, match=text):
        Binning(**({"sensor": SENSOR, "bins": 4, "bin_us": 10} | change))


@pytest.mark.parametrize("change", [{"width": 0}, {"width": 65537}, {"height": 0}, {"polarities": 3}, {"depth": 1}])
def test_impossible_sensors_are_refused(change):
    with pytest.raises(ValidationError, match=next(iter(change))):
        Sensor(**({"width": 2} | change))


def test_settings_are_values():
    binning = Binning(sensor=SENSOR, bins=4, bin_us=10)
    assert Binning.model_validate_json(binning.model_dump_json()) == binning
    with pytest.raises(ValidationError, match="frozen"):
        binning.bins = 5
