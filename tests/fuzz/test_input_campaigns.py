"""Some cases of every campaign on what arrives from outside: none may be a finding. ``make fuzz`` runs many more."""

import pytest

from fuzz.harness import run

# Findings of before are among them: sessions 19, configurations 30, run folders 1, 4 and 51.
CASES = {"recordings": 300, "confined": 8, "streams": 100, "sessions": 100, "configurations": 60, "run_folders": 60}


@pytest.mark.parametrize("campaign", CASES)
def test_nothing_is_found(campaign):
    if campaign == "confined":
        pytest.importorskip("h5py")
        pytest.importorskip("faery")
    result = run(campaign, cases=CASES[campaign], first=0)
    assert [(report.seed, report.kind, report.text) for report in result.findings] == []
    assert result.counts["accepted"] > 0
    assert result.counts["refused"] > 0
