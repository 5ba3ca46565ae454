"""``axonnx run --live``: the picture is that of the bin, and the decisions are those of any other run."""

import io
import re

import numpy as np
import pytest

from axonnx.cli import main
from axonnx.cli.live_view import bar_rows, picture_rows, show
from axonnx.runtime.binning.recordings import bin_events
from axonnx.runtime.events.arrays import EVENT
from axonnx.runtime.readers import write_npz
from axonnx.runtime.streams.adapt import Adapter
from axonnx.runtime.streams.pipeline import EventHistory
from axonnx.runtime.streams.session import Session

from ..runtime.streams.small_models import BINNING


def recording(count=400):
    events = np.zeros(count, EVENT)
    random = np.random.default_rng(0)
    events["t"] = np.sort(random.integers(0, BINNING.duration_us, count))
    events["x"], events["y"] = random.integers(BINNING.sensor.width, size=count), 0
    events["y"] = random.integers(BINNING.sensor.height, size=count)
    events["p"] = random.integers(2, size=count)
    return events


@pytest.mark.parametrize("chunk", [1, 7, 400])
def test_every_bin_is_shown_as_it_was_binned(engines, chunk):
    events, engine = recording(), engines("plain")
    session, seen = Session(engine), EventHistory(Adapter(BINNING.sensor, BINNING.sensor), BINNING)
    frames = []
    for start in range(0, len(events), chunk):
        frames += [seen.frame(d.t_us) for d in session.push(seen(events[start : start + chunk]))]
    frames += [seen.frame(d.t_us) for d in session.flush()]
    np.testing.assert_array_equal(np.stack(frames), bin_events(events, BINNING).frames)
    assert len(seen.events) == 0


def test_decisions_are_drawn_over_each_other(engines):
    events, out = recording(), io.StringIO()
    seen = EventHistory(Adapter(BINNING.sensor, BINNING.sensor), BINNING)
    session = Session(engines("plain"))
    show([*session.push(seen(events)), *session.flush()], seen, out, seconds_per_bin=0.0)
    text = out.getvalue()
    assert text.count("step ") == BINNING.bins
    assert len(re.findall(r"\x1b\[\d+A", text)) == BINNING.bins - 1
    assert "◀" in text


def test_the_picture_says_that_the_events_have_ended(files, tmp_path, capsys):
    write_npz(tmp_path / "short.npz", recording()[:100], BINNING.sensor)
    assert main(["run", str(files["plain"]), str(tmp_path / "short.npz"), "--engine", "numpy", "--live"]) == 0
    drawn = capsys.readouterr().out
    assert "step 1 of window 0\x1b" in drawn
    assert f"step {BINNING.bins} of window 0, partly filled: the events have ended" in drawn
    write_npz(tmp_path / "empty.npz", recording()[:0], BINNING.sensor)
    assert main(["run", str(files["first"]), str(tmp_path / "empty.npz"), "--engine", "numpy", "--live"]) == 0


def test_the_command_draws_and_closes_with_the_summary(files, tmp_path, capsys):
    write_npz(tmp_path / "r.npz", recording(), BINNING.sensor)
    assert main(["run", str(files["plain"]), str(tmp_path / "r.npz"), "--engine", "numpy", "--live"]) == 0
    live = capsys.readouterr().out
    assert main(["run", str(files["plain"]), str(tmp_path / "r.npz"), "--engine", "numpy", "--every-bin"]) == 0
    plain = capsys.readouterr().out
    assert live.splitlines()[-1] == plain.splitlines()[-1]
    assert f"step {BINNING.bins} of window 0" in live


def test_drawing_and_printing_for_programs_exclude_each_other(files, capsys):
    assert main(["run", str(files["plain"]), "r.npz", "--live", "--json"]) == 2
    assert "choose one" in capsys.readouterr().err


def test_live_is_for_events(files, capsys):
    assert main(["run", str(files["frames"]), "r.npz", "--live"]) == 2
    assert "--live is for events" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("shape", "rows", "columns"), [((2, 16, 16), 16, 16), ((2, 128, 128), 32, 32), ((1, 1, 700), 1, 64)]
)
def test_pictures_fit_a_terminal_and_lose_no_active_pixel(shape, rows, columns):
    frame = np.zeros(shape, np.uint8)
    assert "█" not in "".join(picture_rows(frame))
    frame[-1, -1, -1] = 3
    picture = [re.sub(r"\x1b\[\d+m", "", row) for row in picture_rows(frame)]
    assert [len(row) for row in picture] == [columns] * rows
    assert picture[-1][-1] == "█"
    assert "".join(picture).count("█") == 1


def test_bars_show_the_likeliest_and_mark_the_winner():
    p = np.linspace(0, 1, 20, dtype=np.float32)
    rows = bar_rows(p / p.sum(), [f"class {i}" for i in range(20)])
    assert len(rows) == 12
    assert [("◀" in row) for row in rows] == [False] * 11 + [True]
