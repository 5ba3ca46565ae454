"""Some hundred cases of each campaign, the same in every run; ``make fuzz`` runs others for as long as one likes."""

import pytest

from tests.fuzz.harness import names, run

CASES = 120
FEWER = {
    "confined": 8,
    "nir_files": 24,
    "run_folders": 60,
    "configurations": 60,
    "sessions": 60,
}  # slow ones; findings of before are among them


@pytest.fixture(scope="module", autouse=True)
def samples_are_made_once(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXONNX_FUZZ_SAMPLES", str(tmp_path_factory.mktemp("samples")))
        yield


@pytest.mark.parametrize("campaign", names())
def test_nothing_is_found(campaign):
    if campaign == "confined":
        pytest.importorskip("h5py")
        pytest.importorskip("faery")
    if campaign == "nir_files":
        pytest.importorskip("nir", reason="the package nir is not installed; see CONTRIBUTING.md")
    if campaign == "messages":
        pytest.importorskip("uvicorn", reason="serving needs uvicorn: pip install 'axonnx[serve]'")
    cases = FEWER.get(campaign, CASES)
    result = run(campaign, cases=cases)
    assert [f"{report.seed}: {report.kind}: {report.text}" for report in result.findings] == []
    assert result.cases == cases
    assert result.counts["accepted"] > 0
    assert result.counts["refused"] > 0
