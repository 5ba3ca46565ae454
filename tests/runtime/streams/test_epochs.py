"""A camera's reset: the clock goes back, and the network goes on seeing; single late events change nothing."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import concatenate_events, make_events
from axonnx.runtime.streams import pipeline as pipelines
from axonnx.runtime.streams.epochs import BACK, CONFIRM, Epochs
from axonnx.runtime.streams.live_sources import LiveSource
from axonnx.runtime.streams.opening import open_stream


def at(*times):
    return make_events(np.array(times, np.int64), 1)


def spread(first, count, step=1000):
    return make_events(first + step * np.arange(count), np.arange(count) % 8, 0, 1)


def epochs_of(*chunks):
    """Times by epoch, however they came out in pieces, and where each epoch says that the clock went back from."""
    epochs, found, backs = Epochs(), [[]], []
    pieces = [piece for chunk in chunks for piece in epochs.push(chunk)] + epochs.flush()
    for piece in pieces:
        if piece.back_from is not None:
            found.append([])
            backs.append(piece.back_from)
        found[-1] += piece.events["t"].tolist()
    return found, backs


LATER = 5_000_000


def test_a_confirmed_step_back_begins_an_epoch():
    before, after = spread(LATER, 100), spread(0, CONFIRM)
    assert epochs_of(before, after) == ([before["t"].tolist(), after["t"].tolist()], [LATER + 99_000])


def test_fewer_events_confirm_it_if_they_last_for_a_second():
    found, backs = epochs_of(at(LATER), at(0, BACK // 2), at(BACK))
    assert (found, backs) == ([[LATER], [0, BACK // 2, BACK]], [LATER])
    assert epochs_of(at(LATER), at(0, BACK - 1)) == ([[LATER, 0, BACK - 1]], [])


def test_strays_between_events_of_the_old_clock_stay_late():
    chunks = [spread(LATER, 10), *(piece for i in range(100) for piece in (at(i), at(LATER + 10_000 + i)))]
    found, backs = epochs_of(*chunks)
    assert backs == []
    assert found == [[int(t) for chunk in chunks for t in chunk["t"]]]


def test_a_small_step_back_is_disorder_and_no_reset():
    assert epochs_of(spread(LATER, 10), spread(LATER + 9000 - BACK, 200, 0))[1] == []
    assert epochs_of(spread(LATER, 10), spread(LATER + 9000 - BACK - 1, 200, 0))[1] == [LATER + 9000]


def test_times_at_the_ends_of_int64():
    low, high = at(*[-(2**63)] * CONFIRM), at(2**63 - 1)
    assert epochs_of(high, low) == ([[2**63 - 1], [-(2**63)] * CONFIRM], [2**63 - 1])
    assert epochs_of(low, high)[1] == []


@given(
    steps=st.lists(st.tuples(st.sampled_from([0, LATER, 3 * LATER]), st.integers(1, 2 * CONFIRM)), max_size=6),
    cuts=st.lists(st.integers(0, 600), max_size=8),
)
def test_the_epochs_do_not_depend_on_the_chunks(steps, cuts):
    whole = concatenate_events([at(0), *(spread(first, count) for first, count in steps)])
    edges = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})
    parts = [whole[a:b] for a, b in pairwise(edges)]
    assert epochs_of(*parts) == epochs_of(whole)
    assert [t for epoch in epochs_of(whole)[0] for t in epoch] == whole["t"].tolist()


class Camera(LiveSource):
    """Gives these chunks, and hears that its clock began again."""

    def __init__(self, *parts):
        super().__init__("camera")
        self.parts, self.begins = parts, []

    def restarted(self, t_us):
        self.begins.append(t_us)

    def _arriving(self):
        for part in self.parts:
            if isinstance(part, str):
                self._skip(part)
            else:
                yield part


def run(files, *parts, **options):
    from axonnx.runtime.model import load

    source, told = Camera(*parts), []
    opened = open_stream(load(files["plain"], "numpy").engine, source, **{"on_disorder": "drop", **options})
    opened.tell = told.append
    return list(opened.decisions()), opened.summary(), told, source


def bits(decisions):
    return [(each.t_us, each.bin, each.window, each.logits.tobytes(), each.final) for each in decisions]


@pytest.mark.parametrize("seen", [False, True])
def test_after_a_reset_the_network_decides_as_on_a_new_stream(files, seen):
    before, after = spread(LATER, 3000), spread(0, 6000)
    alone = [run(files, part)[0] for part in (before, after)]
    decisions, summary, told, source = run(files, before[:1000], before[1000:], after[:7], after[7:], seen=seen)
    assert bits(decisions) == bits(alone[0]) + bits(alone[1])
    assert [each.epoch for each in decisions] == [0] * len(alone[0]) + [1] * len(alone[1])
    assert [each.as_dict().get("epoch") for each in decisions] == [None] * len(alone[0]) + [1] * len(alone[1])
    assert summary["clock_resets"] == 1
    assert summary["dropped"].get("disorder", 0) == 0
    assert summary["events"] == 9000 == summary["binned"] + sum(summary["dropped"].values())
    assert source.begins == [0]
    assert told == [
        "warning: camera: the clock went back from 7.999 s to 0.000 s, as after a reset; the open window is decided, "
        "and epoch 1 begins"
    ]


def test_without_a_reset_nothing_is_told(files):
    _, summary, told, _ = run(files, spread(0, 500), spread(500_000, 500))
    assert (told, "clock_resets" in summary) == ([], False)


def test_refused_disorder_stays_an_error(files):
    with pytest.raises(AxonnxError, match="µs late"):
        run(files, spread(LATER, 10), spread(0, 100), on_disorder="refuse")


def test_losses_are_told_while_they_happen_and_once_a_second(files, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(pipelines, "monotonic", lambda: clock[0])

    class Slow(Camera):
        def _arriving(self):
            for part in super()._arriving():
                clock[0] += 0.25
                yield part

    monkeypatch.setitem(globals(), "Camera", Slow)
    late, idle = at(900_000), at()
    first = "warning: camera: lost so far: 1 disorder"
    assert run(files, spread(0, 1000), late)[2] == [first]  # at once
    assert run(files, spread(0, 1000), late, late, idle)[2] == [first]
    told = run(files, spread(0, 1000), late, late, "malformed_datagram", idle, idle, idle, idle, idle)[2]
    assert told == [first, "warning: camera: lost so far: 2 disorder, 1 malformed datagram"]
