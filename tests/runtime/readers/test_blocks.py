"""Files read block by block: the same events, notes and refusals for any block, with or without the core."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonnx import native
from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import EVENT
from axonnx.runtime.readers import blocks, opener, read_events
from axonnx.runtime.readers.recording import Recording

from .event_files import csv_bytes, dat_bytes, evt2_bytes, random_events

EVENTS = random_events(300, width=200, height=200, span=1 << 20)
FILES = {
    "a.raw": evt2_bytes(EVENTS),
    "a.dat": dat_bytes(EVENTS),
    "a.csv": csv_bytes(EVENTS),
    "b.csv": csv_bytes(EVENTS, "x,t,p") + b" \n\n",
}
FORMATS = {"raw": "evt2", "dat": "dat", "csv": "csv"}
WAYS = [(1, 1, False), (7, 50, True), (2**16, 2**20, True), (2**16, 2**20, False)]  # records, text, with the core


def in_blocks(monkeypatch, way):
    records, text, with_core = way
    monkeypatch.setattr(blocks, "BLOCK", records)
    monkeypatch.setattr(blocks, "TEXT", text)
    if not with_core:
        monkeypatch.setattr(native, "core", lambda: None)


def told(path):
    """All that a reader gives, or that it refuses (of several faults, blocks decide which is found first)."""
    try:
        found = read_events(path, format=FORMATS[path.suffix[1:]])
    except AxonnxError:
        return "refused"
    return found.events.tolist(), found.sensor, found.skipped, found.notes


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FILES)
def test_blocks_are_the_whole(tmp_path, monkeypatch, name, way):
    in_blocks(monkeypatch, way)
    (tmp_path / name).write_bytes(FILES[name])
    recording = read_events(tmp_path / name)
    expected = EVENTS.copy()
    if name == "b.csv":
        expected["y"] = 0
    assert recording.events.tobytes() == expected.tobytes()
    opened = opener(tmp_path / name)()
    assert np.concatenate(list(opened.blocks)).tobytes() == expected.tobytes()
    facts = (opened.format, opened.sensor, opened.skipped, opened.notes)
    assert facts == (recording.format, recording.sensor, recording.skipped, recording.notes)


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(sorted(FILES)))
def test_damage_is_the_same_in_every_way(tmp_path, data, name):
    """Changed bytes, cut ends: what is read or refused does not depend on blocks or on the core."""
    changed = bytearray(FILES[name][: data.draw(st.integers(0, 900))])
    positions = st.integers(0, max(0, len(changed) - 1))
    for at, value in data.draw(st.dictionaries(positions, st.integers(0, 255), max_size=3)).items():
        changed[at : at + 1] = bytes([value])
    (tmp_path / name).write_bytes(bytes(changed))
    answers = []
    for way in WAYS:
        with pytest.MonkeyPatch.context() as monkeypatch:
            in_blocks(monkeypatch, way)
            answers.append(told(tmp_path / name))
    assert all(answer == answers[0] for answer in answers)


def test_a_fault_far_down_is_named_with_its_line(tmp_path, monkeypatch):
    in_blocks(monkeypatch, (1, 50, True))
    text = csv_bytes(EVENTS) + b"5,6,7\n"
    (tmp_path / "a.csv").write_bytes(text)
    with pytest.raises(AxonnxError, match="line 302: found 3 values; expected 4 values: t,x,y,p"):
        read_events(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(csv_bytes(EVENTS) + b"\n5,6,7,0\n")
    with pytest.raises(AxonnxError, match="line 302: found an empty line"):
        read_events(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(csv_bytes(EVENTS) + b"5,6,7,\xff\n")
    with pytest.raises(AxonnxError, match=f"byte {len(csv_bytes(EVENTS)) + 6}: is not UTF-8 text"):
        read_events(tmp_path / "a.csv")


def test_a_header_longer_than_the_head(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "HEAD_BYTES", 8)
    for name in ("a.raw", "a.dat"):
        (tmp_path / name).write_bytes(FILES[name])
        assert read_events(tmp_path / name).events.tobytes() == EVENTS.tobytes()


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path, monkeypatch):
    in_blocks(monkeypatch, (10, 50, False))
    path = tmp_path / "a.dat"
    path.write_bytes(FILES["a.dat"] + bytes(2**20))  # beyond what the system reads ahead
    parts = opener(path)().blocks
    next(parts)
    path.write_bytes(FILES["a.dat"][:200])
    with pytest.raises(AxonnxError, match="became shorter while it was read"):
        list(parts)


def peak(action):
    tracemalloc.start()
    action()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


@pytest.mark.parametrize("with_core", [True, False], ids=["native", "numpy"])
@pytest.mark.parametrize("name", ["a.raw", "a.dat", "a.csv"])
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, name, with_core):
    in_blocks(monkeypatch, (2**11, 2**14, with_core))
    header, body = FILES[name].split(b"t,x,y,p\n")[-1], FILES[name]
    peaks, path = [], tmp_path / name
    for times in (20, 100):
        path.write_bytes(body + header * (times - 1) if name == "a.csv" else _repeated(name, times))
        count = 0

        def go(path=path):
            nonlocal count
            count = sum(len(block) for block in opener(path)().blocks)

        go()  # what is made once is there
        peaks.append(peak(go))
        assert count == 300 * times
        whole = peak(lambda path=path: read_events(path))
        assert whole < 300 * times * EVENT.itemsize * 2.2 + peaks[-1] + 2**16
    assert peaks[1] < peaks[0] + 2**14
    assert peaks[1] < 2**20


def _repeated(name, times):
    """The file with its records many times."""
    data = FILES[name]
    start = data.index(b"% end\n") + 6 if name == "a.raw" else data.index(b"% Height 240\n") + 15
    return data[:start] + data[start:] * times


def test_gathering_keeps_one_copy():
    many = [EVENTS] * 50
    opened = blocks.OpenRecording("memory", None, iter(many), {"odd": 1}, ("note",))
    found = blocks.gathered(opened)
    assert isinstance(found, Recording)
    assert (found.events.tobytes(), found.skipped, found.notes) == (EVENTS.tobytes() * 50, {"odd": 1}, ("note",))
