"""Means over seeds, and what they say about a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from axonnx.train.shared_records import Record
from experiments.plan import Claim

Judgement = Literal["confirmed", "refuted", "left open"]
SURE = 0.95


@dataclass(frozen=True)
class Verdict:
    """What became of a claim: the difference of two means, its 95 % interval and Welch's p.

    ``corrected`` is the p of what decides it (of the difference for ``higher``, of the two one-sided tests for
    ``equal``), corrected by Holm for the number of verdicts it was made ``among``.
    """

    claim: Claim
    judgement: Judgement
    difference: float
    interval: tuple[float, float]
    p: float
    corrected: float
    among: int = 1

    def __str__(self) -> str:
        scale, unit = (100, " points") if self.claim.figure == "accuracy" else (1, "")
        low, high = (scale * end for end in self.interval)
        digits = 1 if unit else 4
        margin = f" (equal: within ± {100 * self.claim.margin:g} points)" if self.claim.expect == "equal" else ""
        holm = f"; corrected for {self.among} verdicts: p = {self.corrected:.2g}" if self.among > 1 else ""
        return (
            f"{self.claim.text}: **{self.judgement}**. {self.claim.first} − {self.claim.second} = "
            f"{scale * self.difference:+.{digits}f}{unit}, 95 % interval {low:+.{digits}f} to {high:+.{digits}f}, "
            f"p = {self.p:.2g}"
            f"{holm}{margin}"
        )


def values_of(records: Sequence[Record], case: str, key: str = "accuracy") -> list[float]:
    """One figure of a case, a value for each seed."""
    return [record[key] for record in records if record["case"] == case and record.get(key) is not None]


def decide(claims: Sequence[Claim], records: Sequence[Record]) -> list[Verdict]:
    """Return a verdict on each claim whose cases have two seeds or more, corrected for their number.

    ``higher`` is confirmed where the difference is above 0 and refuted where it is not. ``equal`` is confirmed where it
    lies within ± margin and refuted where it lies outside; each where p, corrected by Holm, is below 5 %. For a single
    claim that is where its 95 % interval says so.
    """
    found = [(claim, _difference(claim, records)) for claim in claims]
    sides = [(claim, measured, _sides(claim, measured)) for claim, measured in found if measured is not None]
    corrected = holm([min(confirm, refute) for _, _, (confirm, refute) in sides])
    return [
        Verdict(claim, _judge(*both, p), measured.value, measured.interval, measured.p, p, len(sides))
        for (claim, measured, both), p in zip(sides, corrected, strict=True)
    ]


def holm(ps: Sequence[float]) -> list[float]:
    """p₍ᵢ₎ ← max over j ≤ i of (m − j + 1) p₍ⱼ₎, in the order of size: with 95 % none of all decisions is wrong."""
    order = sorted(range(len(ps)), key=lambda number: ps[number])
    corrected, largest = [1.0] * len(ps), 0.0
    for place, number in enumerate(order):
        largest = max(largest, (len(ps) - place) * ps[number])
        corrected[number] = min(1.0, largest)
    return corrected


@dataclass(frozen=True)
class Difference:
    """The difference of two means and its standard error, by Welch: variances may differ."""

    value: float
    error: float
    freedom: float

    def above(self, at: float) -> float:
        """Twice the one-sided p of a difference above ``at``, as two-sided tests have it."""
        if self.error < 1e-9:  # all values are equal
            return 0.0 if self.value > at else 1.0
        return min(1.0, 2.0 * float(stats.t.sf((self.value - at) / self.error, self.freedom)))

    def below(self, at: float) -> float:
        """Return the same of a difference not above ``at``."""
        if self.error < 1e-9:
            return 0.0 if self.value <= at else 1.0
        return min(1.0, 2.0 * float(stats.t.cdf((self.value - at) / self.error, self.freedom)))

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % confidence interval."""
        reach = 0.0 if self.error < 1e-9 else float(stats.t.ppf((1 + SURE) / 2, self.freedom)) * self.error
        return self.value - reach, self.value + reach

    @property
    def p(self) -> float:
        """p of the hypothesis that there is no difference."""
        if self.error < 1e-9:
            return 1.0 if abs(self.value) < 1e-9 else 0.0
        return float(2 * stats.t.sf(abs(self.value) / self.error, self.freedom))


def _difference(claim: Claim, records: Sequence[Record]) -> Difference | None:
    if claim.paired:
        return _paired(claim, records)
    first, second = (np.asarray(values_of(records, case, claim.figure)) for case in (claim.first, claim.second))
    if min(len(first), len(second)) < 2:
        return None
    value = float(first.mean() - second.mean())
    parts = np.array([values.var(ddof=1) / len(values) for values in (first, second)])
    weighted = parts[0] ** 2 / (len(first) - 1) + parts[1] ** 2 / (len(second) - 1)
    freedom = float(parts.sum() ** 2 / weighted) if weighted > 0 else float("nan")
    return Difference(value, float(np.sqrt(parts.sum())), freedom)


def _paired(claim: Claim, records: Sequence[Record]) -> Difference | None:
    """Return the mean of differences seed by seed: both cases were tested on the same people."""
    first, second = (
        {
            record["seed"]: record[claim.figure]
            for record in records
            if record["case"] == case and claim.figure in record
        }
        for case in (claim.first, claim.second)
    )
    apart = np.array([first[seed] - second[seed] for seed in first if seed in second])
    if len(apart) < 2:
        return None
    return Difference(float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart))), float(len(apart) - 1))


def _sides(claim: Claim, found: Difference) -> tuple[float, float]:
    """Return the p that confirms a claim, and the p that refutes it."""
    if claim.expect == "higher":
        return found.above(0.0), found.below(0.0)
    inside = max(found.above(-claim.margin), found.below(claim.margin))
    return inside, min(found.above(claim.margin), found.below(-claim.margin))


def _judge(confirm: float, refute: float, corrected: float) -> Judgement:
    if not corrected < 1 - SURE:
        return "left open"
    return "confirmed" if confirm <= refute else "refuted"
