"""Verdicts follow from the interval of a difference, and from nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from axonnx.train.shared_records import mean_and_std
from experiments.plan import Claim
from experiments.statistics import decide, holm, values_of

HIGHER = Claim(text="a beats b", first="a", second="b")
EQUAL = Claim(text="a is like b", first="a", second="b", expect="equal", margin=0.02)


def decided(claim, found):
    (verdict,) = decide([claim], found)
    return verdict


def records(a, b):
    return [{"case": name, "seed": i, "accuracy": v} for name, vs in (("a", a), ("b", b)) for i, v in enumerate(vs)]


@pytest.mark.parametrize(
    ("claim", "a", "b", "judgement"),
    [
        (HIGHER, [0.90, 0.91, 0.92], [0.50, 0.52, 0.51], "confirmed"),
        (HIGHER, [0.50, 0.52, 0.51], [0.90, 0.91, 0.92], "refuted"),
        (HIGHER, [0.50, 0.90, 0.70], [0.60, 0.65, 0.71], "left open"),
        (EQUAL, [0.800, 0.801, 0.802], [0.801, 0.802, 0.803], "confirmed"),
        (EQUAL, [0.90, 0.91, 0.92], [0.50, 0.52, 0.51], "refuted"),
        (EQUAL, [0.75, 0.80, 0.85], [0.76, 0.81, 0.86], "left open"),
        (HIGHER, [0.5, 0.5], [0.4, 0.4], "confirmed"),
        (HIGHER, [0.4, 0.4], [0.4, 0.4], "refuted"),
    ],
)
def test_verdicts(claim, a, b, judgement):
    assert decided(claim, records(a, b)).judgement == judgement


def test_one_seed_decides_nothing():
    assert decide([HIGHER], records([0.9], [0.1, 0.2])) == []


SHARES = st.lists(st.integers(0, 1000).map(lambda n: n / 1000), min_size=2, max_size=6)


@given(SHARES, SHARES)
def test_a_claim_and_its_reverse_agree(a, b):
    there, back = decided(HIGHER, records(a, b)), decided(HIGHER, records(b, a))
    assert there.difference == pytest.approx(-back.difference, abs=1e-12)
    assert there.interval == pytest.approx([-back.interval[1], -back.interval[0]], abs=1e-9)
    assert not there.judgement == back.judgement == "confirmed"


def test_the_test_is_welchs():
    a, b = [0.5, 0.6, 0.75], [0.4, 0.41, 0.45, 0.5]
    verdict = decided(HIGHER, records(a, b))
    assert verdict.p == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)
    assert "a − b = +17.7 points" in str(verdict)


def test_a_verdict_on_equality_states_its_margin():
    close, alike = [0.800, 0.801, 0.802], [0.801, 0.802, 0.803]
    assert str(decided(EQUAL, records(close, alike))).endswith("(equal: within ± 2 points)")
    assert "within" not in str(decided(HIGHER, records(close, alike)))


def test_spread_is_that_of_a_sample():
    assert mean_and_std([1.0, 2.0, 3.0]) == (2.0, 1.0)
    assert np.isnan(mean_and_std([1.0])[1])
    assert values_of(records([0.1], [0.2]), "b") == [0.2]


@given(SHARES, SHARES, st.sampled_from([HIGHER, EQUAL]))
def test_a_single_verdict_is_what_its_interval_says(a, b, claim):
    verdict = decided(claim, records(a, b))
    low, high = verdict.interval
    edge = min(abs(end - at) for end in (low, high) for at in (-0.02, 0.0, 0.02))
    if edge < 1e-9:
        return  # which side a rounding takes it to is nobody's business
    if claim is HIGHER:
        expected = "confirmed" if low > 0 else "refuted" if high <= 0 else "left open"
    else:
        within, without = low > -0.02 and high < 0.02, low >= 0.02 or high <= -0.02
        expected = "confirmed" if within else "refuted" if without else "left open"
    assert verdict.judgement == expected


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_a_correction_never_makes_surer_nor_changes_the_order(ps):
    found = holm(ps)
    assert all(p <= after <= min(1.0, len(ps) * p) + 1e-12 for p, after in zip(ps, found, strict=True))
    assert sorted(range(len(ps)), key=lambda i: (ps[i], i)) == sorted(
        range(len(ps)), key=lambda i: (found[i], ps[i], i)
    )


def test_more_claims_need_better_evidence():
    """Welch's p is 0.033: enough for one claim, not for two."""
    a, b = [0.50, 0.52, 0.54], [0.46, 0.47, 0.48]
    assert 0.025 < decided(HIGHER, records(a, b)).p < 0.05
    assert decided(HIGHER, records(a, b)).judgement == "confirmed"
    one, other = decide([HIGHER, HIGHER], records(a, b))
    assert one.judgement == other.judgement == "left open"
    assert "; corrected for 2 verdicts: p = 0.0" in str(one)
