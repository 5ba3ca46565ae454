"""Text with times in seconds: rounded to microseconds, with or without a size, and errors that name the line."""

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.readers import blocks, read_events
from axonnx.runtime.readers.formats import is_meant_as_recording

from .event_files import random_events

LINES = "0.003811000 96 133 0\n0.003820001 346 80 1\n0.003842 345 259 -1\n"


@pytest.mark.parametrize(("head", "size"), [("", None), ("346 260\n", (346, 260))])
@pytest.mark.parametrize("text", [LINES, LINES.replace("\n", "\r\n"), LINES.replace(" ", "\t"), LINES[:-1]])
def test_lines_are_events(head, size, text, tmp_path):
    (tmp_path / "events.txt").write_text(head + text)
    recording = read_events(tmp_path / "events.txt")
    assert recording.events.tolist() == [(3811, 96, 133, 0), (3820, 346, 80, 1), (3842, 345, 259, 0)]
    assert recording.format == "txt"
    assert recording.notes == ("t taken as seconds, and p = -1 as 0",)
    assert (recording.sensor and (recording.sensor.width, recording.sensor.height)) == size


def test_microseconds_come_back_to_the_last_one_over_the_whole_range(tmp_path):
    events = random_events(5000)
    events["t"] = np.sort(np.random.default_rng(0).integers(0, 2**53 - 1, len(events)))
    rows = [f"{t // 10**6}.{t % 10**6:06d} {x} {y} {p}" for t, x, y, p in events.tolist()]
    (tmp_path / "events.txt").write_text("\n".join(rows))
    found = read_events(tmp_path / "events.txt").events
    assert np.abs(found["t"] - events["t"]).max() <= 1  # near 2^53 µs a double is half a microsecond wide
    early = events["t"] < 2**50
    assert np.array_equal(found["t"][early], events["t"][early])
    assert found[["x", "y", "p"]].tolist() == events[["x", "y", "p"]].tolist()


def test_blocks_are_the_whole(tmp_path, monkeypatch):
    (tmp_path / "events.txt").write_text("16 16\n" + LINES * 50)
    whole = read_events(tmp_path / "events.txt").events
    monkeypatch.setattr(blocks, "TEXT", 64)
    assert np.array_equal(read_events(tmp_path / "events.txt").events, whole)
    assert len(whole) == 150


WRONG = ["0.1 1 2", "0.1 1 2 2", "0.1 1 2 0 5", "0.1,1,2,0", "nan 1 2 0", "-1 1 2 0", "0.1 1.5 2 0", "0.1 70000 2 0"]
WRONG += ["1e99 1 2 0", "", "inf 1 2 1", "0x1 1 2 1", "1_0 1 2 1", "t x y p", "\x00", "9999999999999 1 2 0", "١ 1 2 0"]


@pytest.mark.parametrize("line", WRONG)
def test_a_line_that_is_no_event_is_refused_by_its_number(line, tmp_path):
    (tmp_path / "events.txt").write_text(f"346 260\n0.1 1 2 0\n{line}\n0.2 1 2 0\n")
    with pytest.raises(AxonnxError, match=r"events.txt: line 3: found .*; expected seconds"):
        read_events(tmp_path / "events.txt")


def test_lines_are_counted_over_blocks(tmp_path, monkeypatch):
    (tmp_path / "events.txt").write_text("16 16\n" + LINES * 50 + "0.1 1 2 7\n")
    monkeypatch.setattr(blocks, "TEXT", 64)
    with pytest.raises(AxonnxError, match=r"line 152: found '0.1 1 2 7'"):
        read_events(tmp_path / "events.txt")


def test_only_text_that_begins_like_events_is_meant_as_a_recording(tmp_path):
    path = tmp_path / "some.txt"
    for text, meant in (
        ("0.003811000 96 133 0\n", True),
        ("346 260\n0.1 2 3 1\n", True),
        ("0.1 2 3 1\nno event\n", True),  # damaged, but meant as one
        ("recorded in May\n", False),
        ("", False),
    ):
        path.write_text(text)
        assert is_meant_as_recording(path) is meant, text
    assert not is_meant_as_recording(tmp_path / "missing.txt")
    (tmp_path / "cut.npz").write_bytes(b"PK")
    assert is_meant_as_recording(tmp_path / "cut.npz")
