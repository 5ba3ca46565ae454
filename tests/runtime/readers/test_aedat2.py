"""AEDAT 2.0: addresses of each chip by hand, the chip from header, addresses or caller."""

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.runtime.readers import read_events

from .event_files import aedat2_bytes

DVS = "# AEChip: ch.unizh.ini.jaer.chip.retina.DVS128"
DAVIS = "# AEChip: eu.seebetter.ini.chips.davis.DAVIS240C"
COCHLEA = "# AEChip: ch.unizh.ini.jaer.chip.cochlea.CochleaAMS1c"


def read(tmp_path, addresses, times=None, header=(), **options):
    path = tmp_path / "a.aedat"
    path.write_bytes(aedat2_bytes(addresses, times or range(len(addresses)), header))
    return read_events(path, **options)


def test_dvs128_mirrors_x_and_calls_a_zero_bit_on(tmp_path):
    recording = read(tmp_path, [5 << 8 | 3 << 1 | 0, 127 << 8 | 127 << 1 | 1], header=[DVS])
    assert recording.events.tolist() == [(0, 124, 5, 1), (1, 0, 127, 0)]
    assert (recording.sensor, recording.notes) == (Sensor(width=128, height=128), ())


def test_external_input_is_skipped_and_counted(tmp_path):
    recording = read(tmp_path, [0, 1 << 15, 0], header=[DVS])
    assert len(recording.events) == 2
    assert recording.skipped == {"external input": 1}


def test_davis_addresses(tmp_path):
    event = 100 << 22 | 30 << 12 | 1 << 11
    recording = read(tmp_path, [event, 1 << 31 | 5, event | 1 << 10], header=[DAVIS])
    assert recording.events.tolist() == [(0, 209, 100, 1)]
    assert recording.sensor == Sensor(width=240, height=180)
    assert recording.skipped == {"frame, inertial or external input": 2}


def test_cochlea_addresses(tmp_path):
    recording = read(tmp_path, [0x27, 63 << 2 | 3 << 8, 0x2000], header=[COCHLEA])
    assert recording.events.tolist() == [(0, 9, 12, 0), (1, 63, 3, 0)]
    assert recording.sensor == Sensor(width=64, height=16, polarities=1)
    assert recording.skipped == {"analogue sample": 1}


def test_all_ten_bits_of_a_cochlea_address_are_kept(tmp_path):
    events = read(tmp_path, list(range(1024)), header=[COCHLEA]).events
    assert len({(x, y) for _, x, y, _ in events.tolist()}) == 1024


@pytest.mark.parametrize(
    ("address", "chip", "width"), [(0x3FF, "cochlea", 64), (0x400, "dvs128", 128), (0x8000, "dvs128", 128)]
)
def test_without_a_chip_the_addresses_decide_and_a_note_says_so(tmp_path, address, chip, width):
    recording = read(tmp_path, [address])
    assert recording.sensor.width == width
    assert f"read as those of a {chip}" in recording.notes[0]


def test_wide_addresses_without_a_chip_are_refused_until_the_caller_says(tmp_path):
    with pytest.raises(AxonnxError, match=r"names no AEChip and addresses use 23 bits.*format='aedat2-…'"):
        read(tmp_path, [1 << 22])
    recording = read(tmp_path, [1 << 22], format="aedat2-davis346")
    assert recording.events.tolist() == [(0, 345, 1, 0)]


@pytest.mark.parametrize("chip", ["ch.unizh.DVS128andCochleaAMS1b", "x.CochleaLP", "x.Foo"])
def test_other_chips_are_refused_by_name(tmp_path, chip):
    with pytest.raises(AxonnxError, match=f"names the unknown AEChip '{chip}'; known chips are cochlea, dvs128"):
        read(tmp_path, [1], header=[f"# AEChip: {chip}"])


def test_a_column_beyond_the_chip_is_refused(tmp_path):
    with pytest.raises(AxonnxError, match="column 300, but the chip has only 240 columns"):
        read(tmp_path, [300 << 12], header=[DAVIS])


def test_times_go_on_when_32_bits_run_out(tmp_path):
    recording = read(tmp_path, [1, 1], [2**31 - 1, -(2**31)], header=[COCHLEA])
    assert recording.events["t"].tolist() == [2**31 - 1, 2**31]


def test_a_first_record_that_begins_like_a_comment_is_no_header(tmp_path):
    address = 0x23 << 24 | 5 << 12
    times = [10, 0x0D0A_0000]
    assert read(tmp_path, [address, address], times, header=[DAVIS]).events["t"].tolist() == times


def test_no_events(tmp_path):
    assert len(read(tmp_path, []).events) == 0


def test_wrong_magic_and_cut_off_files_are_refused(tmp_path):
    path = tmp_path / "a.aedat"
    path.write_bytes(b"#!AER-DAT1.0\r\n")
    with pytest.raises(AxonnxError, match=r"found b'#!AER-DAT1.0'; expected b'#!AER-DAT2.0'"):
        read_events(path, format="aedat2")
    path.write_bytes(aedat2_bytes([1, 2], [0, 0])[:-3])
    with pytest.raises(AxonnxError, match="the last record has 5 of its 8 bytes"):
        read_events(path)
