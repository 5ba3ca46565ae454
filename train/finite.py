"""Values that are not finite end a run, with the name of the layer where they began."""

from __future__ import annotations

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.models import Network, Output
from axonnx.train.objective import Loss

REMEDY = "Lower optimiser.weight_rate and optimiser.scale_rate, or set optimiser.clip_norm"


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
        f"parameters not finite). {REMEDY}"
    )


def refuse_non_finite_weights(network: Network, when: str) -> None:
    """Check the last step of an epoch, which has no loss after it that would tell."""
    values = {name: value for name, value in network.state_dict().items() if value.is_floating_point()}
    bad = [name for name, value in values.items() if not torch.isfinite(value).all()]
    if bad:
        raise NonFiniteError(f"{when}: {bad[0]!r} is not finite after the last step. {REMEDY}")
