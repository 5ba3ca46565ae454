"""Where events come from: files in chunks, pipes in whatever pieces, datagrams on a local port."""

import socket
import threading
import time
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import EVENT, RECORD, from_records, make_events, to_records
from axonnx.runtime.readers import blocks, write_npz
from axonnx.runtime.streams import sources
from axonnx.runtime.streams.live_sources import CsvSource, RecordSource
from axonnx.runtime.streams.sources import BlockSource, limited, open_source

SOME = make_events(np.arange(100, dtype=np.int64) * 7 - 3, np.arange(100), np.arange(100) % 6, np.arange(100) % 2)
ENDS = make_events(np.array([-(2**63), 2**63 - 1], np.int64), 65535, 65535, 255)


class Pipe(BytesIO):
    """Bytes that arrive in pieces of given sizes."""

    def __init__(self, data, sizes=(1,)):
        super().__init__(data)
        self.sizes, self.at = sizes, 0

    def read1(self, size=-1):
        self.at += 1
        return self.read(self.sizes[self.at % len(self.sizes)])


def all_of(source):
    return np.concatenate([np.empty(0, EVENT), *source.chunks()])


def csv(events, end="\n"):
    return "".join(f"{t},{x},{y},{p}{end}" for t, x, y, p in events.tolist()).encode()


def test_files_come_in_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CHUNK", 30)
    write_npz(tmp_path / "some.npz", SOME, Sensor(width=100, height=6))
    source = open_source(str(tmp_path / "some.npz"))
    assert [len(chunk) for chunk in source.chunks()] == [30, 30, 30, 10]
    assert (all_of(source) == SOME).all()
    assert (source.sensor, source.live) == (Sensor(width=100, height=6), False)


def test_a_large_recording_stays_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "TEXT", 300)
    (tmp_path / "some.csv").write_bytes(b"t,x,y,p\n" + csv(SOME))
    source = open_source(str(tmp_path / "some.csv"))
    assert isinstance(source, BlockSource)
    assert max(len(chunk) for chunk in source.chunks()) < 60
    for _ in range(2):  # as often as one likes
        assert (all_of(source) == SOME).all()
    assert source.reach() == Sensor(width=100, height=6)
    assert (source.sensor, source.live, source.notes, source.skipped) == (None, False, (), {})
    assert (source.in_memory().recording.events == SOME).all()
    assert (all_of(open_source(str(tmp_path / "some.csv"), index=0)) == SOME).all()
    with pytest.raises(AxonnxError, match="has no recording 3"):
        open_source(str(tmp_path / "some.csv"), index=3)


def test_words_that_are_no_events_are_counted_while_they_are_read(tmp_path):
    words = np.array([0, 8 << 28, 5, 10 << 28, 7], "<u4")
    (tmp_path / "a.raw").write_bytes(b"% evt 2.0\n% end\n" + words.tobytes())
    source = open_source(str(tmp_path / "a.raw"))
    assert source.skipped == {}
    assert len(all_of(source)) == 2
    assert source.skipped == {"event before the first time word": 1, "external trigger": 1}


def test_a_recording_without_events_has_no_reach(tmp_path):
    (tmp_path / "a.csv").write_text("t,x\n")
    assert open_source(str(tmp_path / "a.csv")).reach() is None


def test_of_many_recordings_one_must_be_chosen(tmp_path):
    path = tmp_path / "many.npz"
    np.savez(path, t=SOME["t"], x=SOME["x"], offsets=np.array([0, 10, 60, 100]))
    assert len(all_of(open_source(str(path), index=1))) == 50
    with pytest.raises(AxonnxError, match="holds 3 recordings; choose one by its index, 0 … 2"):
        open_source(str(path))
    with pytest.raises(AxonnxError, match="has no recording 3"):
        open_source(str(path), index=3)


def test_a_recording_can_be_sorted_as_a_whole(tmp_path):
    write_npz(tmp_path / "back.npz", SOME[::-1].copy())
    assert (all_of(open_source(str(tmp_path / "back.npz")).sorted()) == SOME).all()


@pytest.mark.parametrize("events", [SOME, ENDS, SOME[:0]])
def test_records_are_16_bytes_and_come_back_as_they_were(events):
    data = to_records(events)
    assert len(data) == 16 * len(events)
    assert (from_records(data, "here") == events).all()


def test_the_layout_of_a_record_is_as_documented():
    event = make_events([0x0102030405060708], 0x0A0B, 0x0C0D, 0x0E)
    assert to_records(event).hex(" ") == "08 07 06 05 04 03 02 01 0b 0a 0d 0c 0e 00 00 00"
    assert RECORD.itemsize == 16


@settings(deadline=None, max_examples=25)
@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_pipes_may_cut_records_and_lines_anywhere(sizes):
    assert (all_of(RecordSource(Pipe(to_records(SOME), sizes))) == SOME).all()
    assert (all_of(CsvSource(Pipe(csv(SOME), sizes))) == SOME).all()
    assert (all_of(CsvSource(Pipe(b"t,x,y,p\r\n" + csv(SOME, "\r\n"), sizes))) == SOME).all()


def test_events_are_handed_on_as_they_arrive():
    chunks = RecordSource(Pipe(to_records(SOME[:3]), (24,))).chunks()
    assert [len(chunk) for chunk in chunks] == [1, 2]


def test_a_record_that_is_cut_off_at_the_end_is_counted():
    source = RecordSource(Pipe(to_records(SOME)[:-5], (1000,)))
    assert len(all_of(source)) == 99
    assert source.skipped == {"cut_off_record": 1}


def test_records_out_of_step_are_refused():
    source = RecordSource(Pipe(to_records(SOME) + b"\x01" + to_records(SOME), (4096,)))
    with pytest.raises(AxonnxError, match=r"standard input: record 101: bytes 13 to 15 are \[.*\]; expected zeros"):
        all_of(source)


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (b"", []),
        (b"\n\n", []),
        (b"t,x,y,p\n", []),
        (b"1,2,3,1", [(1, 2, 3, 1)]),
        (b"1,2,3,1\n\n\n", [(1, 2, 3, 1)]),
        (b"x,t\n7,5\n", [(5, 7, 0, 0)]),
        (b"\xef\xbb\xbft,x\n7,5\n", [(7, 5, 0, 0)]),
        (b"9223372036854775807,0,0,0\n", [(2**63 - 1, 0, 0, 0)]),
    ],
)
def test_csv_without_and_with_names(text, events):
    assert all_of(CsvSource(Pipe(text, (3,)))).tolist() == events


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"1,2,3,1\n2,2,3\n", r"standard input: line 2: found 3 values; expected 4 values: t,x,y,p"),
        (b"1,2,3,1\n\n4,2,3,1\n", r"line 2: found an empty line"),
        (b"t,x,y,p\n1,2,3,1\n2,two,3,1\n", r"line 3, column x: found 'two'"),
        (b"t,x,y,q\n", r"line 1: found the columns"),
        (b"1,70000,3,1\n", r"line 1, column x: found 70000; expected 0 to 65535"),
        (b"9223372036854775808,0,0,0\n", r"line 1, column t: found '9223372036854775808'"),
        (b"\xff\xfe\xfd\n", r"is not UTF-8 text"),
        (bytes(5000), r"no end of line within 4096 bytes; .* the format 'records'"),
    ],
)
def test_csv_faults_name_the_line(text, fault):
    with pytest.raises(AxonnxError, match=fault):
        all_of(CsvSource(Pipe(text, (8192,))))


def test_an_interrupt_ends_a_live_stream():
    class Interrupted(Pipe):
        def read1(self, size=-1):
            data = super().read1(size)
            if not data:
                raise KeyboardInterrupt
            return data

    assert len(all_of(RecordSource(Interrupted(to_records(SOME), (160,))))) == 100


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def send(port, datagrams, stop):
    """The datagrams again and again, until the listener has had enough: none is known to arrive."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        while not stop.is_set():
            for datagram in datagrams:
                out.sendto(datagram, ("127.0.0.1", port))
            time.sleep(0.01)


@pytest.mark.parametrize("text", ["udp:{}", "udp:127.0.0.1:{}", "udp://127.0.0.1:{}"])
def test_datagrams_are_read_until_there_are_enough(text):
    port, stop = free_port(), threading.Event()
    source = open_source(text.format(port), seconds=20)
    datagrams = [to_records(SOME[:50]), b"not whole records", b"", b"\xff" * 32, to_records(SOME[50:])]
    sender = threading.Thread(target=send, args=(port, datagrams, stop))
    sender.start()
    try:
        chunks = list(limited(source.chunks(), 275))
    finally:
        stop.set()
        sender.join()
    found = np.concatenate(chunks)
    assert len(found) == 275
    begun = 0 if found["t"][0] == SOME["t"][0] else 50  # on a busy machine, listening may begin between two datagrams
    assert np.array_equal(found[begun:][:100], SOME)
    assert source.skipped["malformed_datagram"] >= 2
    assert source.skipped["empty_datagram"] >= 1
    assert source.live


def test_listening_ends_after_the_given_time():
    begun = time.monotonic()
    assert len(all_of(open_source(f"udp:{free_port()}", seconds=0.3))) == 0
    assert 0.3 <= time.monotonic() - begun < 60


def test_a_port_that_is_taken_is_said_so():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(AxonnxError, match=r"udp:127\.0\.0\.1:\d+: cannot listen on this address"):
            all_of(open_source(f"udp:{taken.getsockname()[1]}"))


@pytest.mark.parametrize(
    ("text", "options", "fault"),
    [
        ("udp:", {}, "is not a port; expected udp:PORT"),
        ("udp:99999", {}, "is not a port"),
        ("udp:3333", {"seconds": float("nan")}, "expected more than 0"),
        ("udp:localhost:http", {}, "'http' is not a port"),
        ("udp:3333", {"seconds": 0.0}, "expected more than 0"),
        ("-", {"format_name": "npz"}, "cannot read the format 'npz' from a stream; expected csv or records"),
        ("-", {"seconds": 1.0}, "seconds limits how long a udp source listens"),
        ("missing.npz", {}, "cannot be read"),
    ],
)
def test_sources_that_are_none_are_refused(text, options, fault):
    with pytest.raises(AxonnxError, match=fault):
        open_source(text, **options)


def test_the_first_events_only():
    chunks = [SOME[:30], SOME[30:60], SOME[60:]]
    assert [len(chunk) for chunk in limited(iter(chunks), 45)] == [30, 15]
    assert [len(chunk) for chunk in limited(iter(chunks), 60)] == [30, 30]
    assert [len(chunk) for chunk in limited(iter(chunks), None)] == [30, 30, 40]
