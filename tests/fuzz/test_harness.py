"""The harness sees everything that must not be, and goes on."""

import pytest

from fuzz.child import Limits
from fuzz.harness import Result, names, run, table


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    keep = tmp_path_factory.mktemp("findings")
    result = run("tests.fuzz.planted", cases=10, limits=Limits(seconds=2.0, memory=1 << 30), keep=keep)
    return result, keep


def test_every_kind_of_finding_is_seen(seen):
    result, _ = seen
    assert {report.seed: report.kind for report in result.findings} == {
        2: "disagreement",
        3: "raw exception",
        4: "crash",
        5: "hang",
        6: "memory",
        7: "raw exception",
    }
    assert result.counts["accepted"] == 2  # 0 and 8
    assert result.counts["refused"] == 2  # 1 and 9
    assert result.cases == 10


def test_a_finding_says_what_and_how_to_see_it_again(seen):
    result, keep = seen
    texts = {report.seed: report.text for report in result.findings}
    assert texts[2] == "two engines differ"
    assert "KeyError" in texts[3]
    assert "SIGSEGV" in texts[4]
    assert "Fatal Python error" in texts[4]
    assert "no answer after 2 s" in texts[5]
    assert (keep / "planted-4.bin").read_bytes() == b"input of 4"
    assert "-m fuzz tests.fuzz.planted --seed 4" in (keep / "planted-4.txt").read_text()


def test_seconds_end_a_campaign():
    result = run("tests.fuzz.planted", seconds=0.5, first=100)
    assert result.cases > 0
    assert result.counts.keys() == {"accepted", "refused"}
    assert result.findings == []


def test_the_table_has_a_line_for_each_campaign(seen):
    lines = table([seen[0], Result("other")]).splitlines()
    assert len(lines) == 3
    assert "1 crash" in lines[1]
    assert lines[1].split()[:5] == ["tests.fuzz.planted", "10", "2", "2", "6"]


def test_campaigns_are_found_by_their_modules():
    assert {"contracts", "model_files"} <= set(names())
