"""Several files on the same samples: who decides alike, held against counting by hand."""

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.measure.comparison import agreement_of
from axonnx.runtime.report.pictures import agreement_picture

SVG = "{http://www.w3.org/2000/svg}"
TRUTH = (0, 1, 2, 0, 1, 2, 2)
DECISIONS = {
    "means.onnx": (0, 1, 2, 0, 1, 1, 2),
    "ensemble.onnx": (0, 1, 2, 0, 0, 1, 1),
    "noisy.onnx": (0, 2, 2, 0, 0, 1, 2),
}


def evaluated(name, **changes):
    plain = {"data": "digits", "data_sha256": "a", "classes": ("zero", "one", "two"), "truth": TRUTH}
    return SimpleNamespace(model=f"runs/{name}", decisions=DECISIONS[name], **(plain | changes))


def found():
    return agreement_of([evaluated(name) for name in DECISIONS])


def test_counts_are_those_of_a_loop():
    rows = [*DECISIONS.values(), TRUTH]
    by_hand = [[sum(a == b for a, b in zip(one, other, strict=True)) for other in rows] for one in rows]
    assert found().alike.tolist() == by_hand
    assert found().disputed.tolist() == [1, 4, 6]
    assert found().wrong_alike == 1


def test_the_picture_has_a_cell_for_each_pair_and_each_disputed_sample():
    drawing = ElementTree.fromstring(agreement_picture(found()))
    kinds = [rect.get("class") for rect in drawing.iter(SVG + "rect")]
    assert kinds.count("apart") == 3 * 3  # two others and the truth
    assert (kinds.count("right"), kinds.count("wrong")) == (5, 4)
    told = [title.text for title in drawing.iter(SVG + "title")]
    assert told.count("sample 1: two") == 1
    assert told.count("sample 1: one") == 3  # two files and the truth
    numbers = [text.text for text in drawing.iter(SVG + "text") if text.text.isdigit()]
    assert numbers == [str(7 - found().alike[a, b]) for a in range(3) for b in range(4) if a != b]
    alone = agreement_of([evaluated("means.onnx"), evaluated("means.onnx")])
    assert "All decide alike." in agreement_picture(alone)


def test_names_cannot_break_the_picture():
    DECISIONS["<b>&.onnx"] = DECISIONS["means.onnx"]
    try:
        assert np.all(ElementTree.fromstring(agreement_picture(found())).tag == SVG + "svg")
    finally:
        del DECISIONS["<b>&.onnx"]


@pytest.mark.parametrize("other", [{"data_sha256": "b"}, {"classes": ("one", "two", "zero")}])
def test_other_data_is_refused(other):
    with pytest.raises(AxonnxError, match="its data or its classes differ"):
        agreement_of([evaluated("means.onnx"), evaluated("noisy.onnx", **other)])
