"""Figures by their formulas: those of ``metrics_of``, another way, and every forged one is named."""

import numpy as np
import pytest

from axonnx.export.verify.plain_figures import recomputed, wrong_figures
from axonnx.runtime.measure.metrics import metrics_of

P = np.random.default_rng(0).dirichlet(np.ones(4) / 2, 300).astype(np.float32)
LABELS = np.random.default_rng(1).integers(0, 4, 300)


def test_figures_are_those_of_the_library():
    stated = metrics_of(P, LABELS).as_dict()
    assert list(wrong_figures(stated, P.astype(float).tolist(), LABELS.tolist())) == []


@pytest.mark.parametrize("key", ["samples", "accuracy", "accuracy_interval", "nll", "brier", "ece", "confusion"])
def test_every_figure_is_compared(key):
    stated = metrics_of(P, LABELS).as_dict()
    forged = {**stated, key: np.add(stated[key], 1 / 300).tolist()}
    for wrong in (forged, {name: value for name, value in stated.items() if name != key}):
        (line,) = wrong_figures(wrong, P.astype(float).tolist(), LABELS.tolist())
        assert line.startswith(key)


def test_figures_of_three_decisions():
    found = recomputed([[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]], [0, 0, 1])
    assert found["accuracy"] == 1 / 3  # of a tie the first wins
    assert found["confusion"] == [[1, 1], [1, 0]]
    assert found["nll"] == pytest.approx((np.log(4) + np.log(2)) / 3)
    assert found["brier"] == pytest.approx((2 * 0.75**2 + 2 * 0.5**2) / 3)
    assert found["ece"] == pytest.approx((0.75 + 0.5) / 3)
