"""Our decoders against faery's, event by event, where both know a format."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers import confined, read_events

from .event_files import dat_bytes, event_arrays, evt2_bytes, random_events
from .real_data import real

faery = pytest.importorskip("faery")
OFTEN = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def same_events(ours, theirs):
    """Every field of every event, and at least the count."""
    assert len(ours) == len(theirs)
    for name in "txyp":
        np.testing.assert_array_equal(ours[name], theirs[name])


def decode_dat(path):
    with faery.dat.Decoder(path, (304, 240), "dat2") as decoder:
        return np.concatenate(list(decoder))


@pytest.mark.data
def test_every_event_of_the_real_evt2_recording():
    path = real("recordings/expelliarmus_evt2_sample.raw")
    ours = read_events(path).events
    assert len(ours) == 539_481
    same_events(ours, faery.events_stream_from_file(path).to_array())


@pytest.mark.data
def test_every_event_of_the_real_dat_recording():
    path = real("recordings/tonic_sample_ncars.dat")
    theirs = decode_dat(path)
    ours = read_events(path).events
    assert len(ours) == len(theirs) == 2_009
    np.testing.assert_array_equal(ours["t"], theirs["t"])
    np.testing.assert_array_equal(ours["x"], theirs["x"])
    np.testing.assert_array_equal(ours["y"], theirs["y"])
    np.testing.assert_array_equal(ours["p"], theirs["payload"] & 1)


@OFTEN
@given(event_arrays(2048, 2048, 1 << 33))
def test_evt2_files_of_any_events(tmp_path, events):
    path = tmp_path / "random.raw"
    path.write_bytes(evt2_bytes(events))
    ours = read_events(path).events
    same_events(ours, events)
    same_events(ours, faery.events_stream_from_file(path).to_array())


@OFTEN
@given(event_arrays(304, 240, 1 << 32))
def test_dat_files_of_any_events(tmp_path, events):
    path = tmp_path / "random.dat"
    path.write_bytes(dat_bytes(events))
    same_events(read_events(path).events, faery.events_stream_from_file(path).to_array())


@pytest.mark.parametrize("version", ["evt2", "evt3"])
def test_files_that_faery_writes(tmp_path, version):
    events, path = random_events(500), tmp_path / "written.raw"
    array = np.empty(len(events), faery.EVENTS_DTYPE)
    for name in "txyp":
        array[name] = events[name]
    with faery.evt.Encoder(path, version, False, (128, 128), True) as encoder:
        encoder.write({"events": array})
    recording = read_events(path)
    assert recording.format == version
    assert (recording.sensor.width, recording.sensor.height) == (128, 128)
    same_events(recording.events, array)


def test_what_faery_cannot_read_is_our_error(tmp_path):
    for name, data in (
        ("a.aedat4", b"#!AER-DAT4.0\r\n" + bytes(64)),
        ("b.es", b"Event Stream\x09\x09\x09"),
        ("c.aedat4", b"#!AER-DAT4.0\r\n" + b"\x10\0\0\0\xff" * 40),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(AxonnxError, match=f"{name}: faery cannot read it"):
            read_events(tmp_path / name)


def test_evt3_that_ends_inside_a_word_is_refused(tmp_path):
    path = tmp_path / "cut.raw"
    path.write_bytes(b"% evt 3.0\n% end\n" + bytes(7))
    with pytest.raises(AxonnxError, match="byte 22: the last record has 1 of its 2 bytes"):
        read_events(path)


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.raw", b"% evt 3.0\n% end\n\0\0"), ("a.es", b"Event Stream\2\0\0\1"), ("a.aedat4", b"#!AER-DAT4.0\r\n\0")],
)
def test_without_faery_the_error_says_how_to_get_it(tmp_path, monkeypatch, name, data):
    monkeypatch.setattr(confined, "find_spec", lambda _name: None)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(AxonnxError, match=r"pip install 'axonnx\[io\]'"):
        read_events(tmp_path / name)
    (tmp_path / "b.raw").write_bytes(evt2_bytes(random_events(3)))
    assert len(read_events(tmp_path / "b.raw").events) == 3
