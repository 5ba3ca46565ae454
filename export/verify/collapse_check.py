"""The file against the training network: its constants, its grids, and every layer's membranes and spikes.

Bits cannot be equal here, for the file's weights are rounded to its grid. So the demand is a bound that is derived: a
constant is within half a step of its grid, a membrane within what such weights allow (``bounds``), and a spike is the
training network's own wherever the membrane is farther than that from its threshold.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonnx.export.verify.bounds import Bounding, Bounds
from axonnx.export.verify.constants_check import check_constants
from axonnx.export.verify.deviation import Deviation, Place
from axonnx.export.verify.expected import UNIT, expected_constants
from axonnx.export.verify.forced_file import ForcedFile, Seen
from axonnx.export.verify.grids import coarsest, probe
from axonnx.export.verify.reference import references
from axonnx.models import MEAN_FIELD, Network, Replay
from axonnx.models.network import Output
from axonnx.models.neurons import Neurons
from axonnx.runtime.format.contract import InputContract
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
