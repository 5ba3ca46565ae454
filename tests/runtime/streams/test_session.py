"""Sessions against their slow twin, against onnxruntime, and against themselves in other chunks."""

import numpy as np
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Outside, bin_events
from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.program.layer_noise import draw_noise, stream_noise
from axonnx.runtime.streams.session import Session

from .event_strategies import cuts, streams
from .naive_session import naive_decisions, said

FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
RULES = [{}, {"continuous": True}, {"stop_at": 0.45}]


def everything(engine, chunks, **rules):
    session = Session(engine, **rules)
    decisions = [decision for chunk in chunks for decision in session.push(chunk)]
    return decisions + session.flush(), session


def busy(count=300, span=40_000, seed=1):
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(0, span, count))
    return make_events(times, generator.integers(0, 8, count), generator.integers(0, 6, count), times % 2)


@pytest.mark.parametrize("name", ["plain", "ensemble", "noisy", "recurrent", "counted", "alone"])
@pytest.mark.parametrize("rules", RULES)
@FEW
@given(data=st.data())
def test_a_session_says_what_its_slow_twin_says(engines, name, rules, data):
    events = data.draw(streams())
    expected, spikes = naive_decisions(engines(name), events, seed=3, **rules)
    found, session = everything(engines(name), [events], seed=3, **rules)
    assert said(found) == expected
    if name != "noisy" or rules.get("continuous"):  # else silent windows are passed over, and said so
        assert session.progress.tally.spikes == spikes
        assert rules.get("stop_at") or session.progress.tally.skipped == 0


@pytest.mark.parametrize("name", ["plain", "first", "ensemble", "noisy", "counted"])
@pytest.mark.parametrize("rules", RULES)
@FEW
@given(data=st.data())
def test_any_chunking_gives_the_same_bits(engines, name, rules, data):
    events = data.draw(streams(strays=True))
    whole, one = everything(engines(name), [events], **rules)
    cut, other = everything(engines(name), data.draw(cuts(events)), **rules)
    single, _ = everything(engines(name), np.split(events, len(events)), **rules)
    assert said(whole) == said(cut) == said(single)
    assert one.progress == other.progress


@pytest.mark.parametrize("rules", [*RULES, {"continuous": True, "seed": 4}])
@FEW
@given(data=st.data())
def test_final_only_gives_the_final_ones(engines, rules, data):
    events = data.draw(streams(strays=True))
    every, _ = everything(engines("noisy"), [events], **rules)
    final, _ = everything(engines("noisy"), data.draw(cuts(events)), every_bin=False, **rules)
    assert said(final) == [each for each in said(every) if each.final]


@FEW
@given(data=st.data())
def test_unsorted_streams_give_the_same_bits_too_and_count_what_came_late(engines, data):
    events = data.draw(streams(strays=True))
    mixed = events[data.draw(st.permutations(range(len(events))))]
    whole, one = everything(engines("plain"), [mixed])
    cut, other = everything(engines("plain"), data.draw(cuts(mixed)))
    assert said(whole) == said(cut)
    assert one.progress == other.progress
    assert one.progress.events == len(events) == one.progress.binned + one.progress.outside.total


def test_noise_is_that_of_the_window_and_its_steps(engines):
    program = engines("noisy").program
    noise = stream_noise(program, 8)
    for window, step in [(0, 0), (3, 2), (2**32 + 3, 2)]:
        for name, drawn in noise(window, step, 2).items():
            expected = draw_noise(program, 8, [window % 2**32], step, 2)[name]
            np.testing.assert_array_equal(drawn, expected)
            assert drawn.shape == (2, 1, 12)
    assert dict(stream_noise(engines("plain").program, 8)(0, 0, 2)) == {}


def test_the_comparison_bites(engines):
    events = busy()
    moved = events.copy()
    moved["x"][150] ^= 1
    assert said(everything(engines("plain"), [events])[0]) != said(everything(engines("plain"), [moved])[0])
    noisy = [said(everything(engines("noisy"), [events], seed=seed)[0]) for seed in (0, 0, 1)]
    assert noisy[0] == noisy[1] != noisy[2]


@pytest.mark.parametrize("name", ["plain", "merged", "ensemble", "recurrent", "clocked"])
def test_final_logits_are_those_of_onnxruntime_on_the_whole_window(engines, files, name):
    events = busy(span=9_999)
    decisions = [decision for decision in everything(engines(name), [events])[0] if decision.final]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    stock = onnxruntime.InferenceSession(files[name], options, providers=["CPUExecutionProvider"])
    output = "member_logits" if name == "ensemble" else "logits"
    binning = engines(name).program.contract.input.binning
    frames = bin_events(events, binning.model_copy(update={"bins": 10})).frames.astype(np.float32)
    assert len(decisions) == 2
    for decision, window in zip(decisions, (frames[:5], frames[5:]), strict=True):
        (logits,) = stock.run([output], {"events": window[:, None]})
        np.testing.assert_array_equal(decision.member_logits, logits.reshape(-1, 4))
        assert decision.logits.argmax() == decision.winner


def test_a_file_of_one_step_says_what_the_file_of_a_sequence_says(engines):
    step, sequence = (everything(engines(name), [busy()])[0] for name in ("step", "plain"))
    assert engines("step").program.contract.form == "step"
    assert said(step) == said(sequence)


def test_a_binary_network_decides_at_every_bin_on_that_bin_alone(engines):
    engine, events = engines("binary"), busy(span=9_999)
    decisions = everything(engine, [events])[0]
    frames = bin_events(events, engine.program.contract.input.binning.model_copy(update={"bins": 10})).frames
    assert [decision.final for decision in decisions] == [True] * 10
    for decision, frame in zip(decisions, frames.astype(np.float32), strict=True):
        chunk = engine.advance(engine.initial_state(1), frame[None, None], {})
        np.testing.assert_array_equal(decision.member_logits, chunk.logits[:, 0])


def test_decisions_say_when_and_what(engines):
    session = Session(engines("plain"))
    decisions = session.push(make_events([0, 999, 1000, 2500], 3, 2))
    assert [(d.t_us, d.bin, d.window, d.steps, d.final) for d in decisions] == [
        (1000, 0, 0, 1, False),
        (2000, 1, 0, 2, False),
    ]
    assert [(d.t_us, d.final) for d in session.flush()] == [(3000, False), (4000, False), (5000, True)]
    assert session.flush() == []
    assert decisions[0].label == decisions[0].classes[decisions[0].winner]


def test_time_moves_with_events_on_the_sensor_only(engines):
    session = Session(engines("plain"))
    assert session.push(make_events([0, 50_000, 60_000], [3, 8, 3], [0, 0, 6])) == []
    assert session.push(make_events([61_000], 0, 0, 2)) == []
    assert session.progress.outside == Outside(off_sensor=2, bad_polarity=1)
    assert [d.bin for d in session.flush()] == [0, 1, 2, 3, 4]


def test_a_clock_of_your_own_completes_bins_without_events(engines):
    session = Session(engines("plain"))
    session.push(make_events([100], 3))
    assert [d.bin for d in session.advance(2_999)] == [0, 1]
    assert [(d.bin, d.windows) for d in session.advance(15_000)] == [(2, 1), (3, 1), (4, 1), (14, 2)]
    straight, _ = everything(engines("plain"), [make_events([100, 15_500], 3)])
    rest = session.push(make_events([15_500], 3)) + session.flush()
    assert said(rest) == said(straight)[6:]


@pytest.mark.parametrize("rules", [{}, {"continuous": True}])
def test_the_clock_may_be_told_at_any_time(engines, rules):
    first, second = make_events([100], 3), make_events([31_200], 4)
    expected = everything(engines("plain"), [first, second], **rules)[0]
    for t_us in range(0, 32_000, 500):
        session = Session(engines("plain"), **rules)
        found = session.push(first) + session.advance(t_us) + session.push(second) + session.flush()
        bits = {decision.bin: decision.member_logits.tobytes() for decision in found}
        assert all(bits[decision.bin] == decision.member_logits.tobytes() for decision in expected)
        assert sum(decision.windows for decision in found if decision.final) == 7
        assert session.progress.tally.computed == session.progress.bins == 35


def test_an_empty_stream_gives_no_decision(engines):
    decisions, session = everything(engines("plain"), [make_events([], []), make_events([], [])])
    assert decisions == []
    assert session.progress.events == session.progress.bins == 0


def test_events_before_the_origin_are_counted(engines):
    decisions, session = everything(engines("plain"), [make_events([-5, -1, 0], 3)])
    assert len(decisions) == 5
    assert session.progress.outside == Outside(before=2)
    none, session = everything(engines("plain"), [make_events([-5], 3)])
    assert none == []
    assert session.progress.outside == Outside(before=1)


def test_the_origin_can_be_the_first_event_or_any_time(engines):
    events = busy(span=9_000)
    events["t"][0] = 0
    moved = events.copy()
    moved["t"] += 744_094_585
    straight = everything(engines("plain"), [events])[0]
    for rules in ({"origin": "first"}, {"origin": 744_094_585}):
        found = everything(engines("plain"), [moved], **rules)[0]
        assert [s.bits for s in said(found)] == [s.bits for s in said(straight)]
        assert found[0].t_us == 744_095_585
    by_contract = everything(engines("first"), [moved])[0]
    assert [s.bits for s in said(by_contract)] == [s.bits for s in said(straight)]


def test_the_first_event_on_the_sensor_is_the_origin(engines):
    events = make_events([500, 1600, 2700], [99, 3, 3])
    found = everything(engines("first"), [events])[0]
    assert [d.t_us for d in found] == [2600, 3600, 4600, 5600, 6600]
    frames = bin_events(events, engines("first").program.contract.input.binning).frames
    assert frames[0].sum() == frames[1].sum() == 1


def test_rules_that_make_no_sense_are_refused(engines):
    for rules, text in [
        ({"stop_at": 0.0}, "expected a probability"),
        ({"stop_at": 1.5}, "expected a probability"),
        ({"stop_at": 0.9, "continuous": True}, "must process every bin"),
    ]:
        with pytest.raises(AxonnxError, match=text):
            Session(engines("plain"), **rules)
    with pytest.raises(
        AxonnxError,
        match=r"clocked\.onnx: cannot run continuously: its normalisation has",
    ):
        Session(engines("clocked"), continuous=True)
    with pytest.raises(AxonnxError, match=r"expected 4 frames of 2×1×3 from an npz"):
        Session(engines("frames"))


def test_decisions_must_be_gone_through_before_the_next_chunk(engines):
    session = Session(engines("plain"))
    arriving = session.stream(make_events([0, 3_000], 3))
    next(arriving)
    for act in (lambda: session.push(make_events([4_000], 3)), session.save, session.flush):
        with pytest.raises(AxonnxError, match="consume all decisions of the previous chunk"):
            act()
    assert len(list(arriving)) == 2
    assert len(session.push(make_events([4_000], 3))) == 1
