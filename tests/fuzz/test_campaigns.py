"""Some hundred cases of each campaign, the same in every run; ``make fuzz`` runs others for as long as one likes."""

import pytest

from fuzz.harness import names, run

CASES = 120


@pytest.mark.parametrize("campaign", names())
def test_nothing_is_found(campaign):
    result = run(campaign, cases=CASES)
    assert [f"{report.seed}: {report.kind}: {report.text}" for report in result.findings] == []
    assert result.cases == CASES
    assert result.counts["accepted"] > 0
    assert result.counts["refused"] > 0
