"""Figures in docs/results: no label is cut, and no panel has more series than there are colours."""

from pathlib import Path

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from axonnx.base.palette import FIGURE_STYLE, LIGHT, SERIES
from axonnx.train.shared_records import read_results
from experiments.figures import case_groups, make_figure
from experiments.plan import read_plan

COLOURS = {f"C{number}" for number in range(SERIES)} | {LIGHT[f"c{number}"] for number in range(1, SERIES + 1)}
STORED = sorted((Path(__file__).parents[2] / "docs/results").glob("*.json"))


def overhang(figure: Figure) -> float:
    """Inches by which what is drawn reaches beyond the figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = figure.get_tightbbox(canvas.get_renderer())
    width, height = figure.get_size_inches()
    return max(-drawn.x0, -drawn.y0, drawn.x1 - width, drawn.y1 - height)


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_everything_drawn_lies_inside_the_figure(path):
    assert overhang(stored_figure(path)) <= 0


def stored_figure(path: Path) -> Figure:
    _, records = read_results(path)
    with matplotlib.rc_context(FIGURE_STYLE):
        return make_figure(read_plan(path.stem.removesuffix("-held-out")), records)


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_panel_has_at_most_six_series_of_different_colours(path):
    _, records = read_results(path)
    shown = []
    for axes in stored_figure(path).axes[::2]:  # the left panels, whose labels make the legend
        handles, labels = axes.get_legend_handles_labels()
        assert 1 <= len(labels) <= SERIES
        assert len({handle.get_color() for handle in handles}) == len(labels)
        assert all(handle.get_color() in COLOURS for handle in handles)
        shown += [f"{label}: {axes.get_title(loc='left')}" for label in labels]
    cases = {record["case"] for record in records if "failed" not in record}
    assert len(shown) == len(cases)


def test_cases_of_two_words_are_grouped_by_the_second():
    names = [f"training {a}: collapse {b}" for a in range(5) for b in range(3)]
    groups = case_groups(names)
    assert list(groups) == ["collapse 0", "collapse 1", "collapse 2"]
    assert groups["collapse 1"]["training 4: collapse 1"] == "training 4"
    assert case_groups(["a", "b"]) == {"": {"a": "a", "b": "b"}}
    assert list(case_groups([*map(str, range(7))])) == ["1 to 3 of 7", "4 to 7 of 7"]


def test_the_check_bites():
    figure = Figure(figsize=(2, 1), layout="constrained")
    figure.subplots().set_ylabel("a label that is far longer than the figure is high")
    assert overhang(figure) > 0
