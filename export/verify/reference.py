"""What a file must agree with: the training network itself, in double precision.

Nothing here calls the collapse, and nothing is taken from the file but which steps it declares. Each step (a weight set
drawn from the posterior, weights removed, thresholds moved, weights rounded) is done again here, plainly, to a copy of
the network as it was trained; the copy then runs by the code of ``models/`` alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from axonnx.models import GaussianPosterior, Network
from axonnx.models.collapsing import hold
from axonnx.runtime.format.contract import CollapseContract


@torch.no_grad()
def references(network: Network, how: CollapseContract, thresholds: Mapping[str, Tensor]) -> dict[str, Network]:
    """A copy of the training network for each member of the file, by the prefix of the member's names."""
    generator = torch.Generator().manual_seed(how.seed or 0)
    found: dict[str, Network] = {}
    for prefix in prefixes(how.members):
        member = copy.deepcopy(network).cpu().double().eval().requires_grad_(False)
        for posterior in posteriors(member):
            keep = None if how.prune is None else worth_keeping(posterior, how.prune)
            if how.mode == "sampled":
                draw(posterior, generator)
            if keep is not None:
                remove(posterior, keep)
        for name, threshold in thresholds.items():
            hold(member.get_submodule(name), threshold=threshold.double())
        found[prefix] = member
    return found


def prefixes(members: int) -> list[str]:
    """What the names of each member of a file begin with."""
    return [""] if members == 1 else [f"member{number}/" for number in range(members)]


def posteriors(network: nn.Module) -> Iterator[GaussianPosterior]:
    """Every posterior, in the order in which layers were assigned: the order in which weight sets are drawn."""
    return (module for module in network.modules() if isinstance(module, GaussianPosterior))


def draw(posterior: GaussianPosterior, generator: torch.Generator) -> None:
    """m ← m + σ ε in float32, where a weight set is drawn: m and σ ε may cancel, and their rounding then shows."""
    if posterior.log_std is not None:
        noise = torch.randn(posterior.raw_mean.shape, generator=generator)
        posterior.raw_mean.copy_(posterior.raw_mean.float() + torch.exp(posterior.log_std.float()) * noise)


def worth_keeping(posterior: GaussianPosterior, least: float) -> Tensor | None:
    """1 where |m| ≥ least · σ, in the float32 of training; None where there is no σ."""
    if posterior.log_std is None:
        return None
    mean = posterior.raw_mean.float()
    mean = mean if posterior.mask is None else mean * posterior.mask.float()
    return (mean.abs() >= least * torch.exp(posterior.log_std.float())).double()


def remove(posterior: GaussianPosterior, keep: Tensor) -> None:
    """Weights that are not kept are gone, and so is their noise."""
    assert posterior.log_std is not None
    posterior.log_std = nn.Parameter(posterior.log_std.expand_as(posterior.raw_mean).clone(), requires_grad=False)
    posterior.granularity = "weight"
    posterior.mask = keep if posterior.mask is None else keep * posterior.mask
    posterior.existing = int(posterior.mask.sum())
