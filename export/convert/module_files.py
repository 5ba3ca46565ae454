"""From a torch module in memory to a file, and the proof that the file is that module. No run folder is needed."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, default_collate

from axonnx.base.errors import AxonnxError
from axonnx.export.collapse.network import Mode
from axonnx.export.convert.bayesian import BayesianModule, bayesian
from axonnx.export.convert.importing import grid_weights
from axonnx.export.convert.proof import compare, of_file
from axonnx.export.exporting import Exported, export_network
from axonnx.export.graph.assemble import Form
from axonnx.export.graph.grid import DEFAULT_WEIGHTS, Stored
from axonnx.export.verify.stages import VerifySettings, verify_origin
from axonnx.export.verify.structure import open_subject
from axonnx.models import GaussianPosterior, Network
from axonnx.models.variant import SG_NBN_1
from axonnx.runtime.format.contract import InputContract, Provenance, unit_of
from axonnx.runtime.format.model_file import read_model_file
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.measure.samples import Samples, choose_samples
from axonnx.runtime.measure.verify_result import Stage, VerifyResult

Tell = Callable[[str], None]
BATCH = 64
FINEST_SHIFT = 16  # that a contract can state
PART = "given"


def export_module(
    net: nn.Module,
    x: Any,
    output: str | Path = "model.onnx",
    *,
    classes: Sequence[str] | None = None,
    collapse: Mode = "mfa",
    members: int = 1,
    seed: int = 0,
    prune: float | None = None,
    weights: Stored = DEFAULT_WEIGHTS,
    form: Form = "sequence",
    trace: bool = False,
    largest: int | None = None,
    shape: Sequence[int] | None = None,
) -> Exported:
    """Write a torch module as one ONNX file; the module stays as it is.

    Args:
        net: What `bayesian` gave, a network of `axonnx.models`, or any module that `bayesian` takes.
        x: What the module is called with: an example batch, (x, y), a Dataset or a DataLoader. The file admits inputs
            of its shape and number of time steps, and values up to the largest that is found.
        output: The file to write.
        classes: The names of the classes (default: their numbers).
        collapse: "mfa" (posterior means), "sampled" (``members`` weight sets drawn with ``seed``) or "stochastic".
        members: How many weight sets are drawn.
        seed: The seed of the draws.
        prune: Remove weights whose mean is within so many standard deviations of zero.
        weights: How weights are stored: "int16", "int8" or "float32".
        form: "sequence", or "step" for one time step with its states.
        trace: Make spikes and membranes of all layers outputs.
        largest: The largest count that the network admits (default: the largest in ``x``).
        shape: The shape of one time step, if it cannot be told from the layers; see `bayesian`.

    Raises:
        AxonnxError: If a layer has no exact form, or values of ``x`` are no multiples of a power of two.
    """
    made = as_bayesian(net, shape)
    arriving = arriving_of(made, x, largest)
    return export_network(
        _copied(made),
        arriving,
        classes,
        output,
        mode=collapse,
        members=members,
        seed=seed,
        prune=prune,
        weights=weights,
        form=form,
        trace=trace,
        provenance=Provenance(checkpoint=digest_of(made.network)),
    )


def verify_module(
    model: str | os.PathLike[str],
    net: nn.Module,
    data: Any,
    *,
    samples: int = 64,
    limit: int | None = None,
    seed: int = 0,
    shape: Sequence[int] | None = None,
    tell: Tell = lambda _line: None,
) -> VerifyResult:
    """Prove that the file ``model`` is the module ``net``, or say what is wrong; see `verify_file` for the stages.

    Args:
        model: The file.
        net: The module that it was made of.
        data: (x, y), x alone, a Dataset or a DataLoader as the module is trained on; or `Samples` of files. Without
            labels the module's own decisions are the labels.
        samples: How many samples each implementation runs.
        limit: How many samples decisions are compared on (default: all).
        seed: The seed of the choice of samples and of noise.
        shape: The shape of one time step, if it cannot be told from the layers; see `bayesian`.
        tell: Is called with a line for each stage.

    Returns:
        The result, whose ``verified`` says whether everything is equal.
    """
    model, made = Path(model), as_bayesian(net, shape)
    contract = read_model_file(model).contract
    origin = LiveNetwork(made, _copied(made), contract.input, contract.classes, _batches(made, data, contract.input))
    settings = VerifySettings(PART, samples, limit, 1, seed, None)
    result = verify_origin(model, origin, settings, tell)
    several = contract.collapse.members > 1 or contract.collapse.mode == "stochastic"  # the module has one set, silent
    if made.source is None or not made.spiking or several or not result.verified:
        return result
    stage = _against_source(model, origin, samples)
    verdict = result.verdict if stage.ok else "different"
    return result.model_copy(update={"stages": (*result.stages, stage), "verdict": verdict})


def as_bayesian(net: nn.Module, shape: Sequence[int] | None = None) -> BayesianModule:
    """Return what `bayesian` gave, found in whatever holds it; a plain module's weights become constants."""
    inner = next((part for part in net.modules() if isinstance(part, BayesianModule)), None)
    return inner or bayesian(net, shape=shape, variant=SG_NBN_1)


@dataclass(frozen=True)
class LiveNetwork:
    """A network in memory as the origin of a file, with the data that it is verified on."""

    module: BayesianModule
    network: Network
    arriving: InputContract
    classes: tuple[str, ...]
    batches: list[tuple[Tensor, Tensor]]
    name: str | None = None
    parts: Sequence[str] = (PART,)
    units: tuple[str, ...] | None = None

    @property
    def bayesian(self) -> bool:
        """Whether its weights have a posterior."""
        return any(part.log_std is not None for part in self.network.modules() if isinstance(part, GaussianPosterior))

    def data(self, part: str, limit: int | None) -> list[tuple[Tensor, Tensor]]:
        """All samples, or a stratified choice."""
        time = 1 if self.module.spiking else 0
        x, y = torch.cat([x for x, _ in self.batches], time), torch.cat([y for _, y in self.batches])
        chosen = torch.from_numpy(choose_samples(y.numpy(), limit))
        return [(x.index_select(time, some), y[some]) for some in chosen.split(BATCH)]

    def provenance(self) -> Provenance:
        """Return the digest of its weights."""
        return Provenance(checkpoint=digest_of(self.network))


def digest_of(network: Network) -> str:
    """sha256 of all weights and constants, by name."""
    found = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        found.update(f"{name} {tuple(value.shape)}".encode())
        found.update(value.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def arriving_of(module: BayesianModule, data: Any, largest: int | None = None) -> InputContract:
    """Find from data what the network is fed: its shape, its steps, its unit and its largest value."""
    shift, most, shape, steps = 0, 1.0, None, None
    for x, _ in _given(data, module):
        arranged = module.arranged(x)
        lead = 2 if module.spiking else 1
        found = tuple(arranged.shape[lead:]), len(arranged) if module.spiking else None
        if shape is not None and found != (shape, steps):
            raise AxonnxError(
                f"samples of {shape} in {steps} time steps, and of {found[0]} in {found[1]}; expected one"
            )
        shape, steps = found
        shift, most = max(shift, _shift_of(x)), max(most, float(x.abs().max()))
    if shape is None:
        raise AxonnxError("there is no sample in the data; give a batch, a Dataset or a DataLoader")
    reached = most / unit_of(shift)
    bound = reached if largest is None else largest
    if bound < reached:
        raise AxonnxError(f"largest is {largest}; the data has {reached:g} units of 2^-{shift}")
    return InputContract(
        name="events", shape=shape, steps=steps, repeated=module.repeats > 0, shift=shift, largest=int(bound)
    )


def _shift_of(x: Tensor) -> int:
    """Return the least s so that x is a multiple of 2^−s."""
    wide = x.detach().double()
    for shift in range(FINEST_SHIFT + 1):
        if torch.equal(units := wide / unit_of(shift), units.round()):
            return shift
    odd = wide.flatten()[(wide.flatten() / unit_of(FINEST_SHIFT)).frac() != 0][0]
    raise AxonnxError(
        f"the input holds {float(odd):g}; sums are exact for multiples of a power of two. Give event counts, or grey "
        f"levels as (255 * x).round() / 256"
    )


def _batches(module: BayesianModule, data: Any, arriving: InputContract) -> list[tuple[Tensor, Tensor]]:
    """Return the data as the network takes it, held against what the file admits, with labels."""
    found: list[tuple[Tensor, Tensor | None]] = []
    for x, labels in _given(data, module, arriving):
        arranged = module.arranged(x).float().cpu()
        lead = 2 if module.spiking else 1
        units = arranged / arriving.unit
        if tuple(arranged.shape[lead:]) != arriving.shape or (module.spiking and len(arranged) != arriving.steps):
            raise AxonnxError(
                f"data of {list(arranged.shape)}; the file takes {arriving.shape}, {arriving.steps} steps"
            )
        if float(units.abs().max()) > arriving.largest or not torch.equal(units, units.round()):
            raise AxonnxError(
                f"the data holds values that the file does not admit: multiples of 2^-{arriving.shift} up to "
                f"{arriving.largest * arriving.unit:g}. Export with data that shows the largest values, or give largest"
            )
        found.append((arranged, labels))
    if all(labels is not None for _, labels in found):
        return [(x, labels) for x, labels in found if labels is not None]
    network = _copied(module)
    with torch.no_grad():
        return [(x, network(x).logits.argmax(-1)) for x, _ in found]


def _given(
    data: Any, module: BayesianModule, arriving: InputContract | None = None
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Batches and labels of whatever holds them."""
    if isinstance(data, Samples) and arriving is not None:
        for frames, classes in data.batches:
            steps = torch.from_numpy(to_input(frames.swapaxes(0, 1), arriving))
            yield steps[0] if not module.spiking or module.repeats else steps, torch.from_numpy(classes)
        return
    pair = isinstance(data, tuple | list) and len(data) == 2 and isinstance(data[0], _ARRAYS)
    single = pair or isinstance(data, _ARRAYS)
    sets = hasattr(data, "__getitem__") and not isinstance(data, (*_ARRAYS, tuple, list))
    loader = DataLoader(data, BATCH) if sets else data
    samples_first = isinstance(loader, DataLoader) and loader.collate_fn is default_collate
    timed = module.spiking and not module.repeats
    for batch in [loader] if single else loader:
        x, labels = batch if isinstance(batch, tuple | list) else (batch, None)
        x = torch.as_tensor(x)
        labels = None if labels is None else torch.as_tensor(labels).long().cpu()
        yield (x.transpose(0, 1) if samples_first and timed else x), labels


_ARRAYS = (Tensor, np.ndarray)


def _copied(module: BayesianModule) -> Network:
    """Return the network by itself, on the CPU, in evaluation mode; the module goes on where it is."""
    return copy.deepcopy(module.network).cpu().float().eval()


def _against_source(model: str | Path, origin: LiveNetwork, samples: int) -> Stage:
    """Return the module that the network was made of, with the file's weights in it, spike by spike."""
    assert origin.module.source is not None
    network = open_subject(model, origin).collapsed.network
    source = origin.module.source.with_weights(grid_weights(network))
    source.network.cpu().float().eval()
    x = torch.cat([x for x, _ in origin.data(PART, samples)], 1)
    what = "the module with the file's weights, and the file"
    found = compare(what, source.observe(x), of_file(str(model), x, origin.network), "the layers differ")
    lines = found.lines() if found.fired else [*found.lines(), "no neuron fired, so that equal spikes prove nothing"]
    return Stage(name="module", ok=found.explained and found.fired > 0, lines=tuple(lines))
