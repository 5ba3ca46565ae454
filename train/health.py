"""Signs that a network cannot learn: gradients that do not reach its first layer, neurons far beyond their noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from axonnx.models import Output
from axonnx.models.maths.normal import standardise

VANISHED = 1e-3  # of the last hidden layer's gradient
SATURATED = 10.0  # φ(10)/φ(0) is 2e-22
REMEDY = (
    "Set regulariser.weight to 'auto' or raise it, lower optimiser.scale_rate, or begin with variant.init = 'narrow'"
)


def median_sizes(output: Output) -> dict[str, Tensor]:
    """Return the median of |z| in each layer that has noise."""
    return {
        name: standardise(seen.gap.detach(), seen.variance.detach())[0].abs().median()
        for name, seen in output.observations.items()
        if seen.variance is not None
    }


def new_warnings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the last epoch shows and the one before did not."""
    before = _signs(rows[-2]) if len(rows) > 1 else {}
    return [text for kind, text in _signs(rows[-1]).items() if kind not in before]


def _signs(row: Mapping[str, Any]) -> dict[str, str]:
    """Each kind of trouble that a row of results tells of."""
    found: dict[str, str] = {}
    gradients = _columns(row, "gradient/")
    gradients.pop("readout", None)
    if len(gradients) > 1:
        (first, low), *_, (last, high) = gradients.items()
        if low < VANISHED * high:
            found["gradients"] = f"gradients vanish: {low:.1e} in {first!r}, {high:.1e} in {last!r}. {REMEDY}"
    sizes = _columns(row, "z/")
    name = max(sizes, key=lambda layer: sizes[layer], default="")
    if name and sizes[name] > SATURATED:
        found["neurons"] = f"neurons saturate: half of layer {name!r} is more than {sizes[name]:.0f} κ from θ. {REMEDY}"
    return found


def _columns(row: Mapping[str, Any], kind: str) -> dict[str, float]:
    return {name.removeprefix(kind): value for name, value in row.items() if name.startswith(kind)}
