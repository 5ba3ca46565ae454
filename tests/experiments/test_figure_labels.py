"""No label of a figure in docs/results is cut."""

from pathlib import Path

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from axonnx.base.palette import FIGURE_STYLE
from axonnx.experiments.figures import make_figure
from axonnx.experiments.plan import read_plan
from axonnx.experiments.store import read_results

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
    _, records = read_results(path)
    with matplotlib.rc_context(FIGURE_STYLE):
        assert overhang(make_figure(read_plan(path.stem.removesuffix("-held-out")), records)) <= 0


def test_the_check_bites():
    figure = Figure(figsize=(2, 1), layout="constrained")
    figure.subplots().set_ylabel("a label that is far longer than the figure is high")
    assert overhang(figure) > 0
