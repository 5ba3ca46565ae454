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


class Watch:
    """Whether loss and gradients stay finite.

    On a CPU every step is asked. Asking another device would be waiting for it: there the first fault is noted on the
    device, Adam leaves out that step and all that follow, and the end of the epoch asks.
    """

    def __init__(self, optimiser: torch.optim.Optimizer, device: torch.device) -> None:
        self.device = device
        self.noted: Tensor | None = None  # the number of the first bad batch, then what was not finite in it
        self.names: list[str] = []
        self.optimiser: Any = optimiser

    def step(self, output: Output, loss: Loss, total: Tensor, norms: dict[str, Tensor], epoch: int, batch: int) -> None:
        """Look at a step before the optimiser takes it."""
        if self.device.type == "cpu":
            refuse_non_finite(output, loss, total, norms, f"epoch {epoch}, batch {batch}")
            return
        values = torch.stack([loss.total, total, *norms.values()])
        bad = torch.isfinite(values).logical_not_().float()
        found = bad[:2].amax()
        seen = torch.cat([found[None] * batch, bad])
        self.noted = seen if self.noted is None else torch.where(self.noted[0] > 0, self.noted, seen)
        self.names = list(norms)
        # The fused Adam skips a step where this is not zero, as it does for scaled gradients.
        self.optimiser.grad_scale, self.optimiser.found_inf = None, self.noted[0].clamp(max=1.0)

    def close(self, epoch: int) -> None:
        """Ask once an epoch; a fault says in which batch and where it began."""
        if self.noted is None:
            return
        batch, _, _, *gradients = self.noted.tolist()
        if batch < 1.0:
            return
        named = [name for name, bad in zip(self.names, gradients, strict=True) if bad]
        where = f"the gradient of {named[-1]!r} is" if named else "the loss is"
        raise NonFiniteError(
            f"epoch {epoch}, batch {batch:.0f}: {where} not finite (gradients of "
            f"{len(named)} of {len(gradients)} parameters not finite). Later batches changed no weight. {LOWER_RATES}"
        )


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
    # One copy from the device.
    finite = torch.stack([torch.isfinite(value).all() for value in values.values()]).tolist()
    bad = [name for name, good in zip(values, finite, strict=True) if not good]
    if bad:
        raise NonFiniteError(f"{when}: {bad[0]!r} is not finite after the last step. {LOWER_RATES}")
