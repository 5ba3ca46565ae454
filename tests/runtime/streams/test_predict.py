"""One answer for a recording, and windows in which a recording ended."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Outside, Sensor, bin_events
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.model import Model
from axonnx.runtime.readers import Recording, read_events, write_npz
from axonnx.runtime.streams.session import Session

from .event_strategies import cuts, streams

FEW = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def models(engines):
    return lambda name: Model(engines(name).program, engines(name))


def whole(model, events, seed=0):
    """The slow twin: the recording binned as a whole, the frames run at once; logits and what is in no frame."""
    binned = bin_events(events, model.contract.input.binning)
    frames = binned.frames[:, None] if model.contract.kind == "spiking" else binned.frames
    return model.run(model.prepare(frames), seed=seed).member_logits[:, 0], binned.outside


@pytest.mark.parametrize("name", ["plain", "first", "merged", "ensemble", "noisy", "recurrent", "clocked", "binary"])
@FEW
@given(data=st.data())
def test_the_answer_is_that_of_the_frames_of_training(models, name, data):
    model, events = models(name), data.draw(streams(strays=True))
    events["t"] += data.draw(st.sampled_from([0, 3, 5_100_000]))
    logits, outside = whole(model, events, seed=4)
    mixed = events[data.draw(st.permutations(range(len(events))))]
    found = model.predict(Recording(mixed, "npz", Sensor(width=8, height=6)), seed=4)
    assert (found.member_logits.tobytes(), found.final, found.window) == (logits.tobytes(), True, 0)
    assert found.outside == outside


@pytest.mark.parametrize("name", ["plain", "first", "noisy"])
@FEW
@given(data=st.data())
def test_a_session_of_one_window_says_the_same_in_any_chunks(models, name, data):
    model, events = models(name), data.draw(streams(strays=True))
    logits, outside = whole(model, events)
    session = model.session(one_window=True, every_bin=False)
    pushed = [decision for chunk in data.draw(cuts(events)) for decision in session.push(chunk)]
    (found,) = pushed + session.flush()
    assert found.member_logits.tobytes() == logits.tobytes()
    assert session.progress.outside == outside
    assert session.progress.binned + outside.total == len(events)
    last = bin_events(events, model.contract.input.binning).frames[-1]
    assert found.partial == (outside.after == 0 and not last.any())


def test_events_files_and_recordings_have_one_answer(models, tmp_path):
    model, events = models("first"), make_events(744_000 + np.arange(0, 9_000, 100), np.arange(90) % 8, 2, 1)
    write_npz(tmp_path / "long.npz", events, Sensor(width=8, height=6))
    answers = [model.predict(each) for each in (events, read_events(tmp_path / "long.npz"), tmp_path / "long.npz")]
    assert len({answer.logits.tobytes() for answer in answers}) == 1
    assert {(answer.t_us, answer.steps, answer.partial, answer.outside.after) for answer in answers} == {
        (749_000, 5, False, 40)
    }
    last = [*(session := model.session()).push(events), *session.flush()][-1]
    assert last.logits.tobytes() != answers[0].logits.tobytes()
    assert answers[0].as_dict()["outside"]["after"] == 40


def test_a_recording_without_an_event_has_an_answer_too(models):
    for name in ("plain", "first"):
        found = models(name).predict(make_events([], []))
        np.testing.assert_array_equal(found.member_logits, whole(models(name), make_events([], []))[0])
        assert (found.partial, found.ended_after, found.outside) == (True, 0, Outside())
    assert found.t_us is None


def test_what_cannot_be_one_sample_is_refused(models, tmp_path):
    wide = make_events([0, 1], [15, 3])
    with pytest.raises(AxonnxError, match="has events on 16×1 pixels, but the network's sensor is 8×6"):
        models("plain").predict(wide)
    write_npz(tmp_path / "wide.npz", wide, Sensor(width=16, height=12))
    with pytest.raises(AxonnxError, match="the source's sensor is 16×12"):
        models("plain").predict(tmp_path / "wide.npz")
    with pytest.raises(AxonnxError, match=r"expected 4 frames of 2×1×3 from an npz"):
        models("frames").predict(wide)


def test_the_window_in_which_a_stream_ended_says_so(engines):
    session = Session(engines("plain"))
    found = session.push(make_events([0, 4_500, 6_200], 3)) + session.flush()
    assert [decision.ended_after for decision in found] == [None] * 7 + [2, 2, 2]
    assert [decision.partial for decision in found if decision.final] == [False, True]
    assert [found[-1].as_dict()[key] for key in ("partial", "ended_after")] == [True, 2]
    full = Session(engines("plain"))
    assert [each.partial for each in full.push(make_events([0, 4_999], 3)) + full.flush()] == [False] * 5


def test_a_session_of_one_window_is_saved_as_such(engines):
    saved = Session(engines("plain"), one_window=True).save()
    with pytest.raises(AxonnxError, match="differs in one_window"):
        Session(engines("plain")).restore(saved)
    session = Session(engines("plain"), one_window=True)
    session.restore(saved)
    assert len(session.push(make_events([0, 99_000], 3))) == 5
    assert (session.flush(), session.progress.outside) == ([], Outside(after=1))
