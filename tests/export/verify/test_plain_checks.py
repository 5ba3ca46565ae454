"""What verification does again in the plainest way is right itself, and says what is not."""

import numpy as np
import pytest
import torch

from axonnx.export.verify.plain_events import border_events, check_borders, plainly
from axonnx.export.verify.plain_figures import check_ensemble, count
from axonnx.runtime.binning import Binning
from axonnx.runtime.events.arrays import make_events

SENSOR = {"width": 8, "height": 4}
BINNINGS = {
    "counts": {"bins": 7, "bin_us": 1000, "clip": 3},
    "first event": {"bins": 7, "bin_us": 999, "origin": "first"},
    "binary, merged": {"bins": 3, "bin_us": 1, "values": "binary", "polarity": "merge"},
    "many bins, smaller": {"bins": 300, "bin_us": 10**9, "downsample": 2, "clip": 1},
    "one row": {"sensor": {"width": 700, "height": 1, "polarities": 1}, "bins": 20, "bin_us": 50_000, "downsample": 5},
}


@pytest.fixture(params=BINNINGS)
def binning(request):
    return Binning.model_validate({"sensor": SENSOR, **BINNINGS[request.param]})


def test_bins_of_training_and_of_streams_are_those_of_a_plain_count(binning):
    assert check_borders(binning, binning, seed=3) is None
    times = border_events(binning, 3)["t"]
    inside = (times - times[0]) % binning.bin_us
    assert {0, binning.bin_us - 1} <= set(inside.tolist())
    assert plainly(border_events(binning, 3), binning).max() == binning.limit


@pytest.mark.parametrize("other", [{"bin_us": 1001}, {"clip": 2}, {"bins": 8}, {"origin": "first"}])
def test_bins_of_another_file_are_told(other):
    binning = Binning.model_validate({"sensor": SENSOR, **BINNINGS["counts"]})
    changed = binning.model_copy(update=other)
    told = check_borders(binning, changed, seed=3)
    assert told == (
        None if "origin" in other else "a session bins events on the borders of bins otherwise than a plain count does"
    )  # the first event is at zero


def test_a_plain_count_of_three_events():
    binning = Binning.model_validate({"sensor": SENSOR, "bins": 2, "bin_us": 10, "clip": 1})
    frames = plainly(make_events([0, 9, 9, 10], [1, 2, 2, 7], [0, 0, 0, 3], [0, 1, 1, 0]), binning)
    assert {tuple(map(int, cell)) for cell in np.argwhere(frames)} == {(0, 0, 0, 1), (0, 1, 0, 2), (1, 0, 3, 7)}
    assert frames.max() == 1


def test_counting():
    x = torch.tensor([[3.0, 1.0], [1.0, 1.0], [0.0, 2.0]])
    found = count(lambda rows: rows, [(x[:2], torch.tensor([0, 1])), (x[2:], torch.tensor([0]))])
    assert found.right == 1  # of a tie the first wins
    assert found.nll == pytest.approx((-np.log(0.75) - np.log(0.5) - np.log(1e-30)) / 3)
    assert found.losses == pytest.approx([-np.log(0.75), -np.log(0.5), -np.log(1e-30)])


def ensemble():
    one, other = np.array([[0.75, 0.25]]), np.array([[0.25, 0.75]])
    h = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    return {
        "member_logits": np.log(np.stack([one, other])).astype(np.float32),
        "probabilities": np.array([[0.5, 0.5]], np.float32),
        "entropy": np.array([np.log(2)], np.float32),
        "mutual_information": np.array([np.log(2) - h], np.float32),
    }


def test_results_of_an_ensemble():
    assert list(check_ensemble(ensemble())) == []
    for name in ("probabilities", "entropy", "mutual_information"):
        (told,) = check_ensemble({**ensemble(), name: ensemble()[name] + 1e-3})
        assert told.startswith(f"output '{name}' of the file is not what")
    assert len(list(check_ensemble({**ensemble(), "entropy": np.array([np.nan], np.float32)}))) == 1
