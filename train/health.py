"""Signs that a network cannot learn: values that are not finite, lost gradients, neurons far beyond their noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.models import Network, Output
from axonnx.models.maths.normal import standardise
from axonnx.train.objective import Loss

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


LOWER_RATES = "Lower optimiser.weight_rate and optimiser.scale_rate, or set optimiser.clip_norm"


class NonFiniteError(AxonnxError):
    """Training met a value that is not a number; says where."""


def refuse_non_finite(output: Output, loss: Loss, total: Tensor, norms: dict[str, Tensor], when: str) -> None:
    """Name the layer where it began: the first in the forward pass, or else the last, where the backward begins."""
    if torch.isfinite(loss.total) and torch.isfinite(total):
        return
    membranes = [name for name, seen in output.observations.items() if not torch.isfinite(seen.gap).all()]
    gradients = [name for name, norm in norms.items() if not torch.isfinite(norm)]
    if membranes:
        where = f"the membranes of layer {membranes[0]!r} are"
    elif not torch.isfinite(output.logits).all():
        where = "the logits of layer 'readout' are"
    else:
        where = f"the gradient of {gradients[-1]!r} is" if gradients else "the loss is"
    raise NonFiniteError(
        f"{when}: {where} not finite (loss {loss.total.item()}, gradients of {len(gradients)} of {len(norms)} "
        f"parameters not finite). {LOWER_RATES}"
    )


def refuse_non_finite_weights(network: Network, when: str) -> None:
    """Check the last step of an epoch, which has no loss after it that would tell."""
    values = {name: value for name, value in network.state_dict().items() if value.is_floating_point()}
    bad = [name for name, value in values.items() if not torch.isfinite(value).all()]
    if bad:
        raise NonFiniteError(f"{when}: {bad[0]!r} is not finite after the last step. {LOWER_RATES}")
