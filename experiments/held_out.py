"""Choosing recipes honestly: each speaker or user of the training part is held out in turn, no test part is seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.train.build import prepare
from axonnx.train.config.read import check_config, merged
from axonnx.train.shared_records import Job, Record
from experiments.plan import Plan, Scale, jobs_of

FEWEST_SEEDS = 3


def groups_of(plan: Plan, scale: Scale, chosen: str) -> list[int]:
    """Return the groups that ``chosen`` names: all of the plan's training part, or some, as 1,4,7."""
    first = next(jobs_of(plan, scale))
    known = prepare(check_config(first.settings, first.case).data).splits.groups
    if chosen == "all":
        return known
    try:
        groups = [int(word) for word in chosen.split(",")]
    except ValueError:
        groups = []
    if not groups or not set(groups) <= set(known):
        raise AxonnxError(f"held out {chosen!r}: expected 'all' or some of {','.join(map(str, known))}")
    return groups


def held_out_jobs(plan: Plan, scale: Scale, groups: Sequence[int]) -> Iterator[Job]:
    """Every job once for each group, with three seeds or more."""
    for job in jobs_of(plan, scale, at_least=FEWEST_SEEDS):
        for group in groups:
            settings = merged(job.settings, {"data": {"held_out": [group]}})
            yield job._replace(settings=settings, group=group)


def mean_over_groups(records: Sequence[Record]) -> list[Record]:
    """One record for each case and seed: means over the groups, each of which counts the same."""
    places = dict.fromkeys((record["case"], record["seed"]) for record in records)
    return [_mean([record for record in records if (record["case"], record["seed"]) == place]) for place in places]


def _mean(records: Sequence[Record]) -> Record:
    failed = [record for record in records if "failed" in record]
    whole: Record = failed[0] if failed else _mean_of(records)
    return {**whole, "groups": {str(record["group"]): record["accuracy"] for record in records}}


def _mean_of(values: Sequence[Any]) -> Any:
    """Return the mean of numbers, of each entry of tables and of each place of lists of one length; else the first."""
    first = values[0]
    if isinstance(first, bool) or not all(type(value) is type(first) for value in values):
        return first
    if isinstance(first, dict):
        return {key: _mean_of([value[key] for value in values if key in value]) for key in first}
    if isinstance(first, list) and len({len(value) for value in values}) == 1:
        return [_mean_of(places) for places in zip(*values, strict=True)]
    return float(np.mean(values)) if isinstance(first, float) else first
