"""Sessions that are saved and go on elsewhere, as values and as files."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonnx.runtime.errors import AxonnxError
from axonnx.runtime.events import make_events
from axonnx.runtime.session import Session
from axonnx.runtime.session_state import SessionState

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
    from axonnx.runtime.compile_program import compile_file
    from axonnx.runtime.numpy_engine import NumpyEngine

    copy = tmp_path / "other_name.onnx"
    copy.write_bytes(files["plain"].read_bytes())
    Session(NumpyEngine(compile_file(copy))).restore(Session(engines("plain")).save())


@pytest.mark.parametrize("keep", [0, 10, 400, -30])
def test_a_file_that_was_cut_off_is_refused(engines, tmp_path, keep):
    path = tmp_path / "session.npz"
    Session(engines("plain")).save().write(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(AxonnxError, match=r"session\.npz: is no saved session"):
        SessionState.read(path)


def test_other_npz_files_and_missing_ones_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", t=np.arange(3))
    for name in ("other.npz", "missing.npz"):
        with pytest.raises(AxonnxError, match="is no saved session of format 1"):
            SessionState.read(tmp_path / name)


def test_writing_leaves_nothing_but_the_file(engines, tmp_path):
    Session(engines("plain")).save().write(tmp_path / "session.npz")
    Session(engines("plain")).save().write(tmp_path / "session.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["session.npz"]
