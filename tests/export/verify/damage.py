"""Wrong collapses, planted in the code that exports and that verifies: faults that such code has had or could have."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from axonnx.export import collapsed as collapsing
from axonnx.export.collapse.layers import ConstantSynapse, OperatorNeurons
from axonnx.export.collapse.network import WeightChoice
from axonnx.export.graph import grid
from axonnx.models import DelayLine, LeakyReadout, LinearReadout, Network

READOUTS = (LeakyReadout, LinearReadout)
Damage = Callable[[nn.Module, Network], None]


def in_collapsed(damage: Damage) -> Callable[[pytest.MonkeyPatch], None]:
    """Every network that is collapsed comes out damaged."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        collapse = collapsing.collapse

        def wrong(network: Network, *arguments: object, **options: object) -> Network:
            collapsed = collapse(network, *arguments, **options)
            with torch.no_grad():
                damage(collapsed, network)
            return collapsed

        patch.setattr(collapsing, "collapse", wrong)

    return plant


def each(kind: type | tuple[type, ...], change: Callable) -> Damage:
    """The same change to every layer of a kind."""

    def damage(collapsed: nn.Module, network: Network) -> None:
        for name, module in collapsed.named_modules():
            if isinstance(module, kind):
                change(module, network.get_submodule(name))

    return damage


def _forget_scale(synapse, trained):
    scale, _ = trained.norm.folded()
    synapse.weight /= scale.reshape(-1, *(1,) * (synapse.weight.dim() - 1))


def _to_zero(neurons, _trained):
    neurons.op = f"{neurons.op}ToZero"
    neurons.operators = (neurons.op,)


def _permute_rows(readout, _trained):
    order = torch.arange(len(readout.weight)).roll(1)
    readout.weight, readout.bias = readout.weight[order].clone(), readout.bias[order].clone()


def _permute_inputs(synapse, _trained):
    synapse.weight = synapse.weight.roll(1, 1).clone()


def _late_by_one(line, _trained):
    line.delays = tuple(max(delay - 1, 0) for delay in line.delays)


def _draw_for_means(patch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(9)
    patch.setattr(collapsing, "WeightChoice", lambda _generator, prune: WeightChoice(generator, prune))


def _double_std(patch: pytest.MonkeyPatch) -> None:
    def drawn(choice, posterior):
        mean = posterior.mean.detach()
        return mean + 2.0 * (posterior.sample(choice.generator) - mean)

    patch.setattr(WeightChoice, "__call__", drawn)


def _coarse_grid(patch: pytest.MonkeyPatch) -> None:
    finest = grid.finest_grid
    patch.setattr(grid, "finest_grid", lambda *given: finest(*given) - 12)


def _prune_the_others(patch: pytest.MonkeyPatch) -> None:
    kept = WeightChoice.kept
    patch.setattr(WeightChoice, "kept", lambda choice, posterior: 1.0 - kept(choice, posterior))


@dataclass(frozen=True)
class Fault:
    """A fault, the export it shows in, and the layer that a stage of verification must name."""

    plant: Callable[[pytest.MonkeyPatch], None]
    layer: str
    options: tuple[str, ...] = ()
    recurrent: bool = False
    stage: str = "collapse"


STOCHASTIC, SAMPLED = ("stochastic",), ("sampled",)
FAULTS: dict[str, Fault] = {
    "scale forgotten": Fault(in_collapsed(each(ConstantSynapse, _forget_scale)), "hidden.0.synapse"),
    "bias dropped": Fault(in_collapsed(each(ConstantSynapse, lambda s, _t: s.bias.zero_())), "hidden.0.synapse"),
    "bias negated": Fault(in_collapsed(each(ConstantSynapse, lambda s, _t: s.bias.neg_())), "hidden.0.synapse"),
    "recurrent weights transposed": Fault(
        in_collapsed(each(OperatorNeurons, lambda n, _t: n.recurrent_weight.copy_(n.recurrent_weight.T.clone()))),
        "hidden.0.neuron",
        recurrent=True,
    ),
    "delays one step short": Fault(in_collapsed(each(DelayLine, _late_by_one)), "hidden.0.neuron", recurrent=True),
    "read-out rows permuted": Fault(in_collapsed(each(READOUTS, _permute_rows)), "readout"),
    "input channels permuted": Fault(in_collapsed(each(ConstantSynapse, _permute_inputs)), "hidden.0.synapse"),
    "all weights negated": Fault(
        in_collapsed(each(ConstantSynapse, lambda s, _t: s.weight.neg_())), "hidden.0.synapse"
    ),
    "thresholds times 0.75": Fault(
        in_collapsed(each(OperatorNeurons, lambda n, _t: n.threshold.mul_(0.75))),
        "hidden.0.neuron",
    ),
    "decay times 0.99": Fault(in_collapsed(each(OperatorNeurons, lambda n, _t: n.decay.mul_(0.99))), "hidden.0.neuron"),
    "another reset": Fault(
        in_collapsed(each(OperatorNeurons, _to_zero)),
        "hidden.0.neuron",
    ),
    "another reset stated": Fault(
        in_collapsed(each(OperatorNeurons, lambda n, _t: setattr(n, "op", "LIFToZero"))),
        "hidden.0.neuron",
        stage="structure",
    ),
    "variance 4 a σ²": Fault(
        in_collapsed(each(ConstantSynapse, lambda s, _t: s.gain is None or s.gain.mul_(4.0))),
        "hidden.0.synapse",
        STOCHASTIC,
    ),
    "recurrent variance dropped": Fault(
        in_collapsed(each(OperatorNeurons, lambda n, _t: n.recurrent_gain is None or n.recurrent_gain.zero_())),
        "hidden.0.neuron",
        STOCHASTIC,
        True,
    ),
    "noise of the threshold dropped": Fault(
        in_collapsed(each(OperatorNeurons, lambda n, _t: n.stochastic and n.base_variance.zero_())),
        "hidden.0.neuron",
        STOCHASTIC,
    ),
    "a draw shipped as the means": Fault(_draw_for_means, "hidden.0.synapse"),
    "sampled std doubled": Fault(_double_std, "member0/hidden.0.synapse", SAMPLED),
    "grid 12 bits too coarse": Fault(_coarse_grid, "hidden.0.synapse"),
    "read-out bias dropped": Fault(in_collapsed(each(READOUTS, lambda r, _t: r.bias.zero_())), "readout"),
    "the wrong weights pruned": Fault(_prune_the_others, "hidden.0.synapse", ("pruned",)),
}
