"""Means over seeds, and what they say about a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from axonnx.experiments.plan import Claim
from axonnx.experiments.store import Record

Judgement = Literal["confirmed", "refuted", "left open"]
SURE = 0.95


@dataclass(frozen=True)
class Verdict:
    """What became of a claim: the difference of two means, its 95 % interval and Welch's p."""

    claim: Claim
    judgement: Judgement
    difference: float
    interval: tuple[float, float]
    p: float

    def __str__(self) -> str:
        low, high = (100 * end for end in self.interval)
        margin = f" (equal: within ± {100 * self.claim.margin:g} points)" if self.claim.expect == "equal" else ""
        return (
            f"{self.claim.text}: **{self.judgement}**. {self.claim.first} − {self.claim.second} = "
            f"{100 * self.difference:+.1f} points, 95 % interval {low:+.1f} to {high:+.1f}, p = {self.p:.2g}{margin}"
        )


def values_of(records: Sequence[Record], case: str, key: str = "accuracy") -> list[float]:
    """One figure of a case, a value for each seed."""
    return [record[key] for record in records if record["case"] == case and record.get(key) is not None]


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation over seeds (n − 1; nan for one)."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def decide(claim: Claim, records: Sequence[Record]) -> Verdict | None:
    """Confirmed or refuted where the 95 % interval of the difference says so; None with fewer than two seeds.

    ``higher`` is confirmed where the whole interval is above 0 and refuted where none of it is. ``equal`` is confirmed
    where all of it lies within ± margin and refuted where none of it does.
    """
    first, second = values_of(records, claim.first), values_of(records, claim.second)
    if min(len(first), len(second)) < 2:
        return None
    difference, low, high, p = _welch(np.asarray(first), np.asarray(second))
    if claim.expect == "higher":
        confirmed, refuted = low > 0, high <= 0
    else:
        confirmed = -claim.margin < low and high < claim.margin
        refuted = low >= claim.margin or high <= -claim.margin
    judgement: Judgement = "confirmed" if confirmed else "refuted" if refuted else "left open"
    return Verdict(claim, judgement, difference, (low, high), p)


def _welch(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float, float]:
    """Difference of means, its interval and p by Welch's t-test, which does not assume equal variances."""
    gap = float(first.mean() - second.mean())
    parts = np.array([values.var(ddof=1) / len(values) for values in (first, second)])
    error = float(np.sqrt(parts.sum()))
    if error < 1e-9:  # no spread at all
        return gap, gap, gap, 1.0 if abs(gap) < 1e-9 else 0.0
    freedom = float(parts.sum() ** 2 / (parts[0] ** 2 / (len(first) - 1) + parts[1] ** 2 / (len(second) - 1)))
    reach = float(stats.t.ppf((1 + SURE) / 2, freedom)) * error
    return gap, gap - reach, gap + reach, float(2 * stats.t.sf(abs(gap) / error, freedom))
