"""The file against the training network: its constants, its grids, and every layer's membranes and spikes.

Bits cannot be equal here, for the file's weights are rounded to its grid. So the demand is a bound that is derived: a
constant is within half a step of its grid, a membrane within what such weights allow (``bounds``), and a spike is the
training network's own wherever the membrane is farther than that from its threshold.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from axonnx.export.verify.bounds import Bounding, Bounds
from axonnx.export.verify.constants_check import UNIT, Deviation, Place, check_constants, expected_constants
from axonnx.export.verify.forced_file import ForcedFile, Seen
from axonnx.export.verify.grids import coarsest, probe
from axonnx.models import MEAN_FIELD, GaussianPosterior, Network, Replay
from axonnx.models.collapsing import hold
from axonnx.models.network import Output
from axonnx.models.neurons import Neurons
from axonnx.runtime.format.contract import CollapseContract, InputContract
from axonnx.runtime.format.model_file import ModelFile
from axonnx.runtime.format.names import NOISE

Floats = NDArray[np.float32]


class CollapseCheck:
    """One file against one training network; ``thresholds`` replace the network's own where it was calibrated."""

    def __init__(
        self, file: ModelFile, network: Network, arriving: InputContract, thresholds: Mapping[str, Tensor]
    ) -> None:
        self.file, self.arriving, how = file, arriving, file.contract.collapse
        self.stochastic = how.mode == "stochastic"
        self.members = references(network, how, thresholds)
        for member in self.members.values():
            member.keeps_currents = True  # for the bounds
        self.grids = {entry.weight: entry.grid for entry in file.contract.synapses}
        self.expected = {
            prefix: expected_constants(member, prefix, self.stochastic) for prefix, member in self.members.items()
        }
        self.found = Deviation()
        self._bounding: dict[str, Bounding] = {}
        self._forced: ForcedFile | None = None

    def constants(self) -> None:
        """Every constant of the file against its formula."""
        expected = {name: entry for each in self.expected.values() for name, entry in each.items()}
        own = {p + name: value for p, member in self.members.items() for name, value in member.named_buffers()}
        check_constants(self.file.proto, expected, own, self.grids, self.found)

    def running(self, x: Tensor, noise: Mapping[str, Floats], offset: int) -> None:
        """Every layer on one batch, fed with the training network's own spikes; sample numbers begin at ``offset``."""
        outputs = {prefix: self._reference(prefix, x, noise) for prefix in self.members}
        if self._forced is None:
            self._forced = ForcedFile(self.file)
            self._prepare(outputs)
        spikes = {
            prefix + name: layer.spikes.float().numpy()
            for prefix, output in outputs.items()
            for name, layer in output.observations.items()
        }
        seen = self._forced.run(x.numpy(), spikes, noise)
        for number, (prefix, output) in enumerate(outputs.items()):
            bounds = self._bounding[prefix].of(x.double(), output, self._noise(prefix, noise))
            for name in output.observations:
                self._layer(prefix, name, output, bounds, seen, offset)
            told = f"read-out of {prefix or 'the network'}: logit"
            self.found.judge(told, seen.logits[number], output.logits.numpy(), bounds.logits.numpy(), Place(0, offset))
            self.found.logits += output.logits.numel()

    def _reference(self, prefix: str, x: Tensor, noise: Mapping[str, Floats]) -> Output:
        with torch.no_grad():
            how = Replay(self._noise(prefix, noise)) if self.stochastic else MEAN_FIELD
            output: Output = self.members[prefix](x.double(), how)
        return output

    def _noise(self, prefix: str, noise: Mapping[str, Floats]) -> dict[str, Tensor]:
        return {name.removeprefix(NOISE + prefix): torch.from_numpy(drawn).double() for name, drawn in noise.items()}

    def _prepare(self, outputs: Mapping[str, Output]) -> None:
        for prefix, member in self.members.items():
            mine = {name.removeprefix(prefix): grid for name, grid in self.grids.items() if name.startswith(prefix)}
            self._bounding[prefix] = Bounding(member, mine)
            seen = probe(member, self.arriving, outputs[prefix])
            stored = self.file.contract.collapse.weights
            for weight, entry in self.expected[prefix].items():
                if entry.grid_of != weight or weight not in self.grids:
                    continue
                least = coarsest(self.expected[prefix], seen, stored, weight, prefix)
                if self.grids[weight] < least:
                    self.found.fault(
                        f"the grid of {weight!r} is 2^-{self.grids[weight]}; 2^-{least} keeps its sums exact as well, "
                        f"so {least - self.grids[weight]} bits of every weight were thrown away"
                    )

    def _layer(
        self,
        prefix: str,
        name: str,
        output: Output,
        bounds: Bounds,
        seen: Seen,
        offset: int,
    ) -> None:
        layer, neuron = output.observations[name], self.members[prefix].get_submodule(name)
        assert isinstance(neuron, Neurons)
        full, at, bound = prefix + name, self._place(offset), bounds.layers[name]
        membrane = (layer.gap + neuron.threshold if layer.membrane is None else layer.membrane).numpy()
        self.found.judge(f"layer {full!r}: membrane", seen.membranes[full], membrane, bound.membrane.numpy(), at)
        self.found.membranes += layer.gap.numel()
        if bound.variance is not None:
            assert layer.variance is not None
            alone = (layer.variance - neuron.constants().get("base_variance", 0.0)).numpy()
            found = np.broadcast_to(seen.variances[full], alone.shape)
            allowed = (bound.variance + UNIT * layer.variance).numpy()  # their difference rounds as their sum does
            self.found.judge(f"layer {full!r}: variance", found, alone, allowed, at)
        decided = torch.from_numpy(seen.decided[full]).double()
        self._spikes(full, layer.gap, layer.spikes, decided, bound.undecided, at)

    def _spikes(self, layer: str, gap: Tensor, fired: Tensor, decided: Tensor, near: Tensor, at: Place) -> None:
        different = decided != fired
        self.found.spikes += different.numel()
        self.found.spikes_differing += int(different.sum())
        wrong = different & ~near
        if bool(wrong.any()):
            index = tuple(int(i) for i in wrong.nonzero()[0])
            self.found.fault(
                f"layer {layer!r}{at.of(index)}: the file {'fires' if decided[index] else 'is silent'}, the training "
                f"network {'fires' if fired[index] else 'is silent'}, with its membrane {float(gap[index]):.4g} from "
                f"the threshold ({int(wrong.sum())} such spikes)"
            )

    def _place(self, offset: int) -> Place:
        return Place(1 if self.file.contract.kind == "spiking" else 0, offset)


@torch.no_grad()
def references(network: Network, how: CollapseContract, thresholds: Mapping[str, Tensor]) -> dict[str, Network]:
    """Return what each member of the file must agree with, by the prefix of its names: copies of the training network.

    Nothing here calls the collapse, and nothing is taken from the file but which steps it declares. Each step (a weight
    set drawn from the posterior, weights removed, thresholds moved) is done again here, plainly, to a copy of the
    network as it was trained, in double precision; the copy then runs by the code of ``models/`` alone.
    """
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
    """Return what the names of each member of a file begin with."""
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
