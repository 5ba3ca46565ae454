"""Real recordings: the event counts that are known, and what else is known about their content."""

import numpy as np
import pytest

from axonnx.runtime.binning import Binning, Sensor, bin_events
from axonnx.runtime.readers import read_events, read_recordings, read_shd

from .real_data import real

pytestmark = pytest.mark.data


@pytest.mark.parametrize(
    ("name", "format_name", "count", "size"),
    [
        ("expelliarmus_evt2_sample.raw", "evt2", 539_481, None),
        ("tonic_sample_ncars.dat", "dat", 2_009, None),
        ("tonic_sample_nmnist.bin", "nmnist", 4_325, None),
        ("jaer_VowelSounds.aedat", "aedat2", 111_318, (64, 16, 1)),
        ("expelliarmus_evt3_sample.raw", "evt3", 219_596, None),
        ("faery_dvs.es", "es", 473_225, (320, 240, 2)),
        ("tonic_sample.aedat4", "aedat4", 111_954, (320, 240, 2)),
    ],
)
def test_known_event_counts(name, format_name, count, size):
    if format_name in ("evt3", "es", "aedat4"):
        pytest.importorskip("faery")
    recording = read_events(real(f"recordings/{name}"))
    assert (recording.format, len(recording.events)) == (format_name, count)
    assert recording.skipped == {}
    assert recording.in_order
    sensor = recording.sensor
    assert (None if sensor is None else (sensor.width, sensor.height, sensor.polarities)) == size


def test_the_cochlea_uses_all_ears_and_cells_and_says_what_was_assumed():
    recording = read_events(real("recordings/jaer_VowelSounds.aedat"))
    events = recording.events
    assert np.unique(events["y"]).tolist() == list(range(8, 16))  # low-pass cells of both ears
    assert int(events["x"].max()) == 63
    assert not events["p"].any()
    assert events[0].tolist() == (744_094_585, 9, 12, 0)
    assert "no AEChip" in recording.notes[0]


@pytest.mark.parametrize(
    ("label", "count"), [(1, 63_471), (2, 84_260), (3, 113_063), (6, 124_244), (8, 101_288), (9, 141_773)]
)
def test_gestures_fill_their_sensor_and_their_time(label, count):
    recording = read_events(real(f"dvs128_gesture_events/{label}.bs2"))
    events = recording.events
    assert (len(events), int(events["x"].max()), int(events["y"].max())) == (count, 127, 127)
    binned = bin_events(events, Binning.over(1_450_000, 50, Sensor(width=128, height=128), downsample=4))
    assert binned.outside.total == 0
    assert int(binned.frames.sum()) + binned.clipped == count


def test_nmnist_archives_hold_many_labelled_recordings():
    recordings = read_recordings(real("nmnist_test_100.npz"))
    assert len(recordings) == 100
    assert {recording.label for recording in recordings} == set(range(10))
    assert all(recording.in_order and recording.events["x"].max() < 34 for recording in recordings)


def test_shd_recordings_are_those_of_the_file():
    h5py = pytest.importorskip("h5py")
    path = real("shd_regen_mini100.h5")
    recordings = read_shd(path)
    with h5py.File(path) as file:
        times, units, labels = (file[key][:] for key in ("spikes/times", "spikes/units", "labels"))
    assert [recording.label for recording in recordings] == labels.tolist()
    for recording, seconds, unit in zip(recordings, times, units, strict=True):
        assert recording.events["t"].tolist() == [round(float(s) * 1e6) for s in seconds]
        assert recording.events["x"].tolist() == unit.tolist()
    assert recordings[0].sensor == Sensor(width=700, polarities=1)
    assert len(read_events(path, index=7).events) == len(recordings[7].events)
