"""The training that is suggested for data."""

import numpy as np
import pytest

from axonnx.runtime.binning import Binning, bin_batch
from axonnx.runtime.events.arrays import Sensor, make_events
from axonnx.train.data.recordings import Recordings
from axonnx.train.looking import Look, _clip_for, suggest


@pytest.mark.parametrize("most", [3, 9, 40])
def test_the_clip_is_the_least_that_keeps_nearly_all_events(most):
    random = np.random.default_rng(most)
    sizes = random.integers(1, most + 1, 200)
    data = recordings(sizes)
    binning = Binning(sensor=data.sensor, bins=1, bin_us=100, clip=1)
    found = _clip_for(data, binning)
    for clip, fine in ((found, True), (found - 1, False)):
        if clip:
            made = bin_batch(*data.take(np.arange(len(data))), binning.model_copy(update={"clip": clip}))
            assert (made.clipped.sum() <= 0.01 * sizes.sum()) == fine


def recordings(sizes):
    """Return one recording for each size, all of whose events are in one cell."""
    events = make_events(*np.zeros((4, sizes.sum()), np.int64))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Recordings(events, offsets, np.zeros(len(sizes), np.int64), ("a",), Sensor(width=1, height=1))


@pytest.mark.parametrize(
    ("name", "kind", "configuration"),
    [("digits-static", "images", "digits-static"), ("shd", "events", "shd-sbnn"), ("mnist", "images", "digits-static")],
)
def test_a_data_set_gets_the_configuration_that_was_made_for_it(name, kind, configuration):
    look = Look(name, kind, {"0": 1}, 1, 1)
    suggest(look)
    assert look.configuration == configuration
    assert look.settings() == ({"data.name": name} if name == "mnist" else {})
    assert not look.fault
