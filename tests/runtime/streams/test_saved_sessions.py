"""Sessions that are saved and go on elsewhere, as values and as files."""

import sys
from dataclasses import replace
from threading import Thread

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Outside
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.session_state import SessionState

from .event_strategies import streams
from .naive_session import said

FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", ["first", "ensemble", "noisy"])
@pytest.mark.parametrize("rules", [{}, {"continuous": True}, {"stop_at": 0.45}])
@FEW
@given(data=st.data())
def test_a_session_goes_on_from_a_file_as_if_nothing_had_been(engines, tmp_path, name, rules, data):
    events = data.draw(streams(strays=True))
    cut = data.draw(st.integers(0, len(events)))
    straight = Session(engines(name), seed=2, **rules)
    expected = straight.push(events) + straight.flush()
    first = Session(engines(name), seed=2, **rules)
    found = first.push(events[:cut])
    first.save().write(tmp_path / "session.npz")
    second = Session(engines(name), seed=2, **rules)
    second.restore(SessionState.read(tmp_path / "session.npz"))
    found += second.push(events[cut:]) + second.flush()
    assert said(found) == said(expected)
    assert second.progress == straight.progress


def test_a_saved_state_is_a_value_that_later_pushes_do_not_change(engines):
    session = Session(engines("plain"))
    session.push(make_events([100, 1_100, 2_200], [1, 2, 3]))
    kept = session.save()
    once = session.push(make_events([9_000], 3)) + session.flush()
    session.restore(kept)
    again = session.push(make_events([9_000], 3)) + session.flush()
    assert said(once) == said(again)


def test_a_session_of_another_file_seed_or_rule_is_refused(engines):
    kept = Session(engines("noisy"), seed=1).save()
    for name, rules, text in [
        ("noisy", {"seed": 2}, "differs in seed;"),
        ("noisy", {"seed": 1, "continuous": True}, "differs in continuous;"),
        ("noisy", {"seed": 2, "stop_at": 0.5}, "differs in seed, stop_at;"),
        ("plain", {"seed": 1}, "differs in network;"),
    ]:
        with pytest.raises(AxonnxError, match=text):
            Session(engines(name), **rules).restore(kept)


def test_the_network_is_known_by_its_numbers_not_by_its_name(engines, files, tmp_path):
    from axonnx.runtime.engines.numpy_engine import NumpyEngine
    from axonnx.runtime.program.compilation import compile_file

    copy = tmp_path / "other_name.onnx"
    copy.write_bytes(files["plain"].read_bytes())
    Session(NumpyEngine(compile_file(copy))).restore(Session(engines("plain")).save())


@pytest.mark.parametrize("keep", [0, 10, 400, -30])
def test_a_file_that_was_cut_off_is_refused(engines, tmp_path, keep):
    path = tmp_path / "session.npz"
    Session(engines("plain")).save().write(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(AxonnxError, match=r"session\.npz: is not a saved session"):
        SessionState.read(path)


def test_other_npz_files_and_missing_ones_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", t=np.arange(3))
    for name in ("other.npz", "missing.npz"):
        with pytest.raises(AxonnxError, match="is not a saved session of format 1"):
            SessionState.read(tmp_path / name)


def test_writing_leaves_nothing_but_the_file(engines, tmp_path):
    Session(engines("plain")).save().write(tmp_path / "session.npz")
    Session(engines("plain")).save().write(tmp_path / "session.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["session.npz"]


def under_way(engines, **rules):
    """A session two bins into a window of the network "plain", and its state."""
    session = Session(engines("plain"), **rules)
    session.push(make_events([100, 1_100, 2_200], [1, 2, 3]))
    state = session.save()
    assert (state.binner.bin, state.step, state.decided) == (2, 2, False)
    return session, state


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"step": 10**12}, "step is 1000000000000, but 2 of"),
        ({"step": -(10**12)}, "step is -1000000000000"),
        ({"step": 3}, "step is 3, but 2 of 5 bins of the window are complete and it has not decided"),
        ({"step": 0}, "step is 0"),
        ({"step": 2.0}, "step is 2.0"),
        ({"step": True}, "step is True"),
        ({"decided": True}, "step is 2, but 2 of 5 bins of the window are complete and it has decided"),
        ({"decided": 1}, "decided is 1"),
    ],
)
def test_a_step_that_the_bins_did_not_lead_to_is_refused(engines, changes, fault):
    session, state = under_way(engines)
    with pytest.raises(AxonnxError, match=fault):
        session.restore(replace(state, **changes))
    session.restore(state)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"bin": -3}, "its open bin is -3"),
        ({"bin": 2**70}, "its open bin is"),
        ({"bin": 3}, "step is 2, but 3 of 5"),
        ({"bin": "2"}, "its open bin is '2'"),
        ({"origin": 2**63}, "its origin is"),
        ({"origin": 0.5}, r"its origin is 0\.5"),
        ({"origin": None}, "its origin is missing"),
        ({"touched": None}, "is marked as empty"),
        ({"touched": False}, "is marked as empty"),
        ({"events": -1}, r"binner\.events is -1"),
        ({"events": 2**63}, r"binner\.events is 9223372036854775808"),
        ({"clipped": 0.5}, r"binner\.clipped is 0\.5"),
        ({"clipped": 10**400}, r"binner\.clipped is 1000"),
        ({"outside": Outside(after=2**64)}, r"binner\.outside\.after is 18446744073709551616"),
        ({"counts": np.full(48, 2**63 - 1)}, "its open bin has counts"),
        ({"counts": np.full(48, -1)}, "its open bin has counts"),
        ({"counts": np.zeros(3, np.int64)}, "its open bin has counts"),
    ],
)
def test_a_binner_that_no_stream_led_to_is_refused(engines, changes, fault):
    session, state = under_way(engines)
    with pytest.raises(AxonnxError, match=fault):
        session.restore(replace(state, binner=replace(state.binner, **changes)))


def test_counts_and_arrays_of_another_kind_are_refused(engines):
    session, state = under_way(engines)
    for changes, fault in [
        ({"progress": replace(state.progress, decisions=-1)}, "progress.decisions is -1"),
        ({"progress": replace(state.progress, counted={})}, "progress.counted is {}"),
        ({"progress": replace(state.progress, tally=replace(state.progress.tally, spikes={"a": 0.5}))}, "spikes.a is"),
        ({"arrays": {name: array[0, 0] for name, array in state.arrays.items()}}, "does not hold exactly one stream"),
        (
            {"arrays": {name: np.concatenate([array] * 2) for name, array in state.arrays.items()}},
            "not hold exactly one stream",
        ),
    ]:
        with pytest.raises(AxonnxError, match=fault):
            session.restore(replace(state, **changes))


def test_what_was_left_out_before_the_session_is_kept_with_it(engines, tmp_path):
    session, state = under_way(engines)
    state.write(tmp_path / "plain.npz")
    assert "left_out" not in str(
        np.load(tmp_path / "plain.npz")["facts"]
    )  # as files were before there was such a count
    replace(state, left_out={"cropped": 3}).write(tmp_path / "session.npz")
    assert SessionState.read(tmp_path / "session.npz").left_out == {"cropped": 3}
    with pytest.raises(AxonnxError, match=r"left_out\.cropped is -3"):
        session.restore(replace(state, left_out={"cropped": -3}))
    with pytest.raises(AxonnxError, match=r"left_out is \[\]"):
        session.restore(replace(state, left_out=[]))


@pytest.mark.parametrize("facts", ["[]", "3", "{}", '{"format": 1}', "[" * 100_000, '{"format": 1' + "0" * 5000 + "}"])
def test_facts_of_another_layout_are_refused(engines, tmp_path, facts):
    path = tmp_path / "session.npz"
    Session(engines("plain")).save().write(path)
    arrays = dict(np.load(path))
    np.savez(path, **{**arrays, "facts": np.array(facts)})
    with pytest.raises(AxonnxError, match="is not a saved session of format 1"):
        SessionState.read(path)


def test_threads_that_share_a_session_lose_no_event(engines):
    session = Session(engines("plain"))
    chunk = make_events(np.arange(0, 500, 10), np.arange(50) % 8)

    def work():
        for _ in range(40):
            session.push(chunk)

    threads = [Thread(target=work) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    session.flush()
    progress = session.progress
    assert progress.events == progress.binned + progress.outside.total == 8 * 40 * 50
