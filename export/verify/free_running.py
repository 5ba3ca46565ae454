"""Every implementation of the collapsed network on the same input, bit for bit: torch, stock runtimes, our engines."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from axonnx.export.collapse.layers import ConstantSynapse, OperatorNeurons
from axonnx.export.verify.integers import integer_members
from axonnx.export.verify.observe import Observed, of_engine, of_file, of_torch
from axonnx.export.verify.op_check import check_op
from axonnx.export.verify.plain_figures import check_ensemble
from axonnx.export.verify.structure import Findings, Subject
from axonnx.export.ways import Sampled
from axonnx.models import GaussianPosterior, LeakyReadout, LinearReadout, Network
from axonnx.models.collapsing import hold
from axonnx.models.neurons import Neurons
from axonnx.models.normalisation import BatchNorm, ChannelScale
from axonnx.models.synapses import Recurrent, Synapse
from axonnx.runtime.engines.choose import native_engines
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.engines.ort_engine import OrtEngine, stock_reference, stock_session
from axonnx.runtime.format.opset import DOMAIN
from axonnx.runtime.measure.comparison import Comparison
from axonnx.runtime.program.step_graph import step_graph

Floats = NDArray[np.float32]
Tell = Callable[[str], None]
Runner = Callable[[Floats, Mapping[str, Floats]], Observed]
TRAINING, STOCK, REFERENCE = "training", "onnxruntime", "onnx.reference"  # keys of implementations, beside engines
NAMES = {
    TRAINING: "training network, file's weights",
    STOCK: "onnxruntime, the file",
    REFERENCE: "onnx.reference, the file",
}
REFERENCE_SAMPLES = 2  # onnx.reference is slow: it runs on the first samples


def check_operators(subject: Subject, found: Findings) -> None:
    """Every spike operator that the file uses."""
    names = sorted(entry.name for entry in subject.file.proto.functions if entry.domain == DOMAIN)
    total = 0
    for name in names:
        compared, different = check_op(name)
        total += compared
        for line in different:
            found.fail(line)
    found.lines.append(f"{', '.join(names)}: {total:,} numbers compared, ties and silence among them")


def compare_running(subject: Subject, data: Sampled, seed: int, tell: Tell) -> list[Comparison]:
    """Every implementation on the same input; the collapsed module is the reference."""
    timed = subject.contract.kind == "spiking"
    thresholds = _thresholds(subject)
    runners = list(_runners(subject))
    comparisons = {key: Comparison(NAMES.get(key, key), key, timed) for key, _ in runners}
    done = 0
    for batch, (x, labels) in enumerate(data):
        noise = draw_noise(subject, x.shape, seed + batch)
        reference = of_torch("collapsed module", _members(subject), x.numpy(), noise, gaps=False)
        for key, run in runners:
            if key == REFERENCE and done > 0:
                continue
            found = run(*(_take(x.numpy(), noise, timed) if key == REFERENCE else (x.numpy(), noise)))
            comparisons[key].margins = partial(_margin, reference, thresholds, timed)
            comparisons[key].add(reference.seen(timed, thresholds if found.gaps else None), found.seen(timed), done)
        done += len(labels)
        tell(f"compared {done} samples")
    return list(comparisons.values())


def check_ensemble_results(subject: Subject, data: Sampled) -> Iterator[str]:
    """Check what a stock runtime gives beside the logits if the file is an ensemble that runs as a whole."""
    if subject.contract.collapse.members > 1 and subject.contract.form == "sequence":
        x, _ = data[0]
        yield from check_ensemble(stock_session(subject.file.proto)({subject.contract.input.name: x.numpy()}))


def _thresholds(subject: Subject) -> dict[str, Floats]:
    """θ of every layer of neurons, by its name in the file."""
    return {
        member.prefix + name: module.threshold.numpy()
        for member in subject.collapsed.members
        for name, module in member.network.named_modules()
        if isinstance(getattr(module, "threshold", None), Tensor)
    }


def engines(subject: Subject) -> list[Engine]:
    """Every engine there is; the fastest last."""
    plain: list[Engine] = [OrtEngine(subject.program, step_graph(subject.file)), NumpyEngine(subject.program)]
    return [*plain, *native_engines(subject.program)]


def draw_noise(subject: Subject, shape: tuple[int, ...], seed: int) -> dict[str, Floats]:
    """Standard-normal noise for every noise input of the file."""
    random = np.random.default_rng(seed)
    lead = shape[:2] if subject.contract.kind == "spiking" else shape[:1]
    layers = [layer for layer in subject.contract.layers if layer.noise]
    return {str(layer.noise): random.standard_normal((*lead, *layer.shape), np.float32) for layer in layers}


def _members(subject: Subject) -> dict[str, Network]:
    return {member.prefix: member.network for member in subject.collapsed.members}


def _runners(subject: Subject) -> Iterator[tuple[str, Runner]]:
    """Every implementation by its key, made once."""
    if subject.contract.dynamics == "integer":
        yield TRAINING, partial(of_torch, NAMES[TRAINING], integer_members(subject), gaps=True)
    else:
        members = subject.collapsed.members
        filled = {member.prefix: refill(subject.trained.network, member.network) for member in members}
        yield TRAINING, partial(of_torch, NAMES[TRAINING], filled, gaps=True)
    if subject.contract.form == "sequence":
        yield STOCK, partial(of_file, NAMES[STOCK], stock_session(subject.file.proto), subject.contract)
        yield REFERENCE, partial(of_file, NAMES[REFERENCE], stock_reference(subject.file.proto), subject.contract)
    for engine in engines(subject):
        yield engine.name, partial(of_engine, engine)


def _take(x: Floats, noise: Mapping[str, Floats], timed: bool) -> tuple[Floats, dict[str, Floats]]:
    part = (slice(None), slice(REFERENCE_SAMPLES)) if timed else (slice(REFERENCE_SAMPLES),)
    return x[part], {name: value[part] for name, value in noise.items()}


def _margin(
    reference: Observed, thresholds: Mapping[str, Floats], timed: bool, layer: str, index: tuple[int, ...]
) -> dict[str, float | str]:
    """Return the threshold of a neuron, and how far the reference's membrane is from it."""
    place, membrane = index if timed else index[1:], reference.membranes.get(layer)
    shape = reference.spikes[layer].shape[2 if timed else 1 :]
    threshold = float(np.broadcast_to(thresholds[layer], shape)[index[2:]])
    found: dict[str, float | str] = {"threshold": threshold}
    return found if membrane is None else {**found, "distance": float(membrane[place]) - threshold}


@torch.no_grad()
def refill(network: Network, collapsed: Network) -> Network:
    """Return a copy of ``network`` whose posterior means, scales, biases and thresholds are the collapsed ones.

    Everything else is the training code: its layers, its pass through time, its firing decision.
    """
    filled = copy.deepcopy(network).cpu().float().eval()
    sources = dict(collapsed.named_modules())
    for name, module in list(filled.named_modules()):
        source: Any = sources.get(name)
        if isinstance(module, Synapse):
            _synapse(module, source)
        elif isinstance(module, Neurons):
            hold(module, threshold=source.threshold)
            if module.recurrent is not None and source.recurrent_weight is not None:
                module.recurrent.posterior.raw_mean.copy_(source.recurrent_weight)
                module.recurrent = _FileRecurrent(module.recurrent, source)
        elif isinstance(module, LeakyReadout | LinearReadout):
            module.weight.copy_(source.weight)
            module.bias.copy_(source.bias)
    return filled


def _synapse(module: Synapse, source: ConstantSynapse) -> None:
    """Weights that hold the scale already go with a scale of one; batch norm through time stays as it is."""
    if isinstance(module.norm, BatchNorm) and module.norm.steps is None:
        module.norm = ChannelScale(len(source.weight))
    if isinstance(module.norm, ChannelScale) and source.bias is not None:
        module.norm.scale.fill_(1.0)
        module.norm.bias.copy_(source.bias)
    module.posterior.raw_mean.copy_(source.weight)
    if source.gain is not None or source.spread is not None:
        module.posterior = _FilePosterior(module.posterior, source)


class _FilePosterior(GaussianPosterior):
    """A posterior whose variances are the file's a² σ², which hold the scale too."""

    def __init__(self, posterior: GaussianPosterior, source: ConstantSynapse) -> None:
        super().__init__(tuple(posterior.raw_mean.shape), posterior.granularity, posterior.spread)
        self.load_state_dict(posterior.state_dict())
        self._gain, self._spread = source.gain, source.spread

    def shared_gain(self, scale: Tensor | None = None) -> Tensor | None:
        """Return the file's gain."""
        return self._gain

    def noise_of(
        self, product: Callable[[Tensor, Tensor], Tensor], x: Tensor, scale: Tensor | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """By the file's gain, or by its variances of single weights."""
        if self._spread is not None:
            return product(x.square(), self._spread), None
        return product(x.square(), torch.ones_like(self.raw_mean[:1])), self._gain


class _FileRecurrent(Recurrent):
    """Recurrent synapses with the file's variances, where it has some."""

    def __init__(self, recurrent: Recurrent, source: OperatorNeurons) -> None:
        nn.Module.__init__(self)
        self.posterior = recurrent.posterior
        filled = source.recurrent_gain if source.recurrent_spread is None else source.recurrent_spread
        self._variance = super().weights()[1] if filled is None else filled

    def weights(self) -> tuple[Tensor, Tensor | None]:
        """Means and variances of the file."""
        return self.posterior.mean, self._variance
