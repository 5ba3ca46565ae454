"""A window's decision is final as soon as it is sure enough; the rest of the window costs nothing."""

import numpy as np
import pytest

from axonnx.runtime.events.arrays import make_events
from axonnx.runtime.streams.session import Session


def busy():
    generator = np.random.default_rng(2)
    times = np.sort(generator.integers(0, 100_000, 2_000))
    return make_events(times, generator.integers(0, 8, 2_000), generator.integers(0, 6, 2_000), times % 2)


def run(engine, **rules):
    session = Session(engine, **rules)
    return session.push(busy()) + session.flush(), session.progress


@pytest.mark.parametrize("name", ["plain", "ensemble"])
def test_early_decisions_are_sure_and_the_first_to_be(engines, name):
    every, _ = run(engines(name))
    found, progress = run(engines(name), stop_at=0.6)
    final = [decision for decision in found if decision.final]
    early = [decision for decision in final if decision.early]
    assert len(final) == 20
    assert 0 < len(early) < 20, "the limit divides the windows, or nothing is tested"
    assert all(decision.confidence >= 0.6 and decision.steps < 5 for decision in early)
    for window in range(20):
        sure = [d.steps for d in every if d.window == window and d.confidence >= 0.6]
        assert [d.steps for d in final if d.window == window] == [min([*sure, 5])]
    assert progress.tally.skipped == sum(5 - decision.steps for decision in final)
    assert progress.tally.computed + progress.tally.skipped == progress.bins == 100


def test_early_decisions_have_the_bits_of_the_same_bin_without_early_exit(engines):
    every = {decision.bin: decision.member_logits.tobytes() for decision in run(engines("plain"))[0]}
    found = run(engines("plain"), stop_at=0.5)[0]
    assert all(every[decision.bin] == decision.member_logits.tobytes() for decision in found)


def test_skipped_bins_fire_no_spikes_and_their_events_are_counted(engines):
    _, all_bins = run(engines("plain"))
    _, few_bins = run(engines("plain"), stop_at=0.3)
    assert 0 < few_bins.tally.spikes["hidden.0.neuron"] < all_bins.tally.spikes["hidden.0.neuron"]
    assert few_bins.binned == all_bins.binned == 2_000


def test_a_limit_of_one_is_reached_by_certainty_only(engines):
    assert not any(decision.early for decision in run(engines("plain"), stop_at=1.0)[0])
