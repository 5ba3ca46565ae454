"""A picture of what several files cost and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.runtime.measure.profile_result import ProfileResult


def draw_trade_off(path: str, results: Sequence[ProfileResult]) -> None:
    """A picture: accuracy against energy of every file, and decision time against accuracy."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise AxonnxError("--plot needs matplotlib: pip install 'axonnx[report]'") from None
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    cost, when = figure.subplots(1, 2)
    for result in results:
        label = f"{result.collapse} ({result.model.rpartition('/')[2]})"
        cost.plot(result.energy.total_nj, 100 * result.accuracy, "o", label=label)
        exits = result.early_exit
        when.plot([e.mean_steps for e in exits], [100 * e.accuracy for e in exits], ".-", label=label)
    cost.set(xlabel="energy of an inference (nJ)", ylabel="accuracy (%)", xscale="log")
    when.set(xlabel="mean time steps to the decision", ylabel="accuracy (%)")
    for axes in (cost, when):
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
