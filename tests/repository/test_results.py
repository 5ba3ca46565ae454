"""Every number of docs/results.md's experiments comes from the records beside it."""

from pathlib import Path

import pytest

from axonnx.train.shared_records import read_results
from experiments.perform import filled
from experiments.plan import jobs_of, plan_names, read_plan
from experiments.tables import block

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", plan_names())
def test_tables_follow_from_the_stored_records(name):
    scale, records = read_results(DOCS / "results" / f"{name}.json")
    assert filled(DOCS / "results.md", name) == block(read_plan(name), scale, records)
    assert (DOCS / "results" / f"{name}.svg").is_file()


def test_the_margin_of_equality_is_stated():
    margins = {claim.margin for name in plan_names() for claim in read_plan(name).claims if claim.expect == "equal"}
    (margin,) = margins
    assert f"within ± {100 * margin:g} points: it is confirmed where" in (DOCS / "results.md").read_text("utf-8")


@pytest.mark.parametrize("name", plan_names())
def test_records_are_those_of_the_plan(name):
    scale, records = read_results(DOCS / "results" / f"{name}.json")
    done = {(record["case"], record["seed"]): record["digest"] for record in records}
    assert done == {(job.case, job.seed): job.digest for job in jobs_of(read_plan(name), scale)}
