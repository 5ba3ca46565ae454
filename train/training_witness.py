"""A witness of the training: what the network did while the process that trained it still held it in memory.

A checkpoint says what the weights are, not what they meant. So the process that trained writes beside it what only it
can know: of some test samples the input as it entered the network, what every layer did with it, logits and labels;
of the last epoch's first batch the labels that were learned; and every decision that the run's figures follow from.
``verify`` does all of this again, from the raw data and the checkpoint, by the code of its own day.

Tensors, by name:

samples          numbers of the samples in their part [N]
input/shape      of the input [(T,) N, C, H, W], whose values that are not zero stand in ``input/places`` (flat) and
                 ``input/values``
labels           [N]
float32/…, float64/… and noise/…, passes in both widths, and in float64 one with noise where there is some:
    spikes/L, membranes/L    the first 64 bits of a sha256 of layer L, for each time step and sample [T, N]
    logits                   [N, classes]
learned/samples, learned/labels, learned/input    of a batch to learn from; hashes of its input if nothing augments it
looked_at/X    fingerprints of the samples that X was fitted on: the noise that is left (noise.temper), a temperature
written/F    the bytes of results.csv, and the sha256 of the drawn curves.png, as the process left them
decided/P, truth/P, rates/P    class probabilities, labels and the layers' firing rates behind the figures of part P

Sums of the native core have one order, in every instruction set (see ``models.fast.core``), so the passes in float32
have the same bits on every processor wherever the core does the work. What torch sums itself may be rounded otherwise
by another torch or processor. There the passes in float64 decide, which are too fine for a spike to depend on that.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonnx import models, native
from axonnx.models import MEAN_FIELD, Network, Sample, SpikingNetwork
from axonnx.runtime.format import opset
from axonnx.runtime.measure.samples import choose_samples
from axonnx.train.build import Prepared
from axonnx.train.checkpoint import SPREADS
from axonnx.train.config.settings import Config
from axonnx.train.data.batches import Batches
from axonnx.train.distributed import World
from axonnx.train.evaluate import Predictions
from axonnx.train.feed import Batch, Feed
from axonnx.train.loop import Training, evaluated_at_once, learn_feed, part_feed

PART = "test"
SAMPLES = 16
PASSES = {"float32": torch.float32, "float64": torch.float64, "noise": torch.float64}
CPU = torch.device("cpu")

Tensors = dict[str, Tensor]


def take_witness(
    training: Training, prepared: Prepared, config: Config, predictions: Mapping[str, Predictions]
) -> Tensors:
    """Return what the network in memory does; ``predictions`` are those that the run's figures are made of."""
    network, epoch = training.network, max(0, training.epochs_done - 1)
    chosen = choose_samples(prepared.splits.parts[PART].labels, SAMPLES)
    batch = next(part_feed(prepared, config, CPU, PART, chosen).epoch(0))
    found = {
        "samples": torch.from_numpy(chosen),
        **_input(batch.x),
        "labels": batch.labels,
        **passes(network, batch.x),
        **_learned(prepared, config, epoch),
        **_decided(predictions),
        **{f"looked_at/{name}": torch.from_numpy(seen) for name, seen in training.looked_at.items()},
    }
    return {name: tensor.clone() for name, tensor in found.items()}  # a file holds no memory twice


def written(folder: Path) -> Tensors:
    """Return what stands in the files whose figures nobody can compute again: the networks of those epochs are gone."""
    found: Tensors = {}
    for name, whole in (("results.csv", True), ("curves.png", False)):
        if (path := folder / name).is_file():
            data = path.read_bytes()
            kept = data if whole else hashlib.sha256(data).digest()
            found[f"written/{name}"] = torch.tensor(list(kept), dtype=torch.uint8)
    return found


def fingerprints_of(prepared: Prepared, config: Config, part: str) -> NDArray[np.int64]:
    """Return the fingerprint of each sample of a part, from the data itself."""
    data = prepared.splits.parts[part]
    batches = Batches(data, binning=prepared.binning, centre=config.data.centre, shuffle=False)
    return batches.fingerprints(np.arange(len(data)))


def made_again(prepared: Prepared, config: Config, part: str, chosen: NDArray[np.int64]) -> Batch:
    """Return these samples of a part as one batch, from the data itself: nothing that a cache holds is taken."""
    kept, binning = prepared.splits.parts[part].subset(chosen), prepared.binning
    batches = Batches(kept, binning=binning, centre=config.data.centre, batch_size=len(chosen), shuffle=False)
    return next(Feed(batches, config.data.shift, CPU, config.data.scale_to).epoch(0))


@torch.no_grad()
def passes(network: Network, x: Tensor) -> Tensors:
    """Return what a copy of the network does with a batch, on the CPU, in every kind of pass."""
    found: Tensors = {}
    noisy = any(name.endswith(SPREADS) for name in network.state_dict())
    with threads(1):
        for width, dtype in list(PASSES.items())[: 3 if noisy else 2]:
            fire = Sample(torch.Generator().manual_seed(0)) if width == "noise" else MEAN_FIELD
            output = copy.deepcopy(network).cpu().to(dtype).eval()(x.to(dtype), fire)
            for layer, seen in output.observations.items():
                membrane = seen.gap if seen.membrane is None else seen.membrane
                for name, values in (("spikes", seen.spikes), ("membranes", membrane)):
                    found[f"{width}/{name}/{layer}"] = hashes(values, isinstance(network, SpikingNetwork))
            found[f"{width}/logits"] = output.logits
    return found


def hashes(values: Tensor, timed: bool) -> Tensor:
    """Return the first 64 bits of a sha256 for each time step and sample of [(T,) B, …]; [1, B] without time."""
    steps = (values + 0.0).cpu().numpy()  # −0 is 0
    rows = [[_hash(sample) for sample in step] for step in (steps if timed else steps[None])]
    return torch.tensor(rows, dtype=torch.int64)


def input_of(tensors: Mapping[str, Tensor]) -> Tensor:
    """Return the input that a witness holds."""
    shape = tuple(tensors["input/shape"].tolist())
    x = torch.zeros(int(np.prod(shape)))
    x[tensors["input/places"]] = tensors["input/values"]
    return x.reshape(shape)


def circumstances(device: str) -> dict[str, str]:
    """Return what rounding may depend on, and which code and operators there are."""
    return {
        "device": device,
        "torch": torch.__version__,
        "processor": torch.backends.cpu.get_cpu_capability(),
        "core": "no" if native.core() is None else "yes",
        "threads": str(torch.get_num_threads()),
        "operators": f"{opset.DOMAIN} {opset.VERSION}, {_code_of([Path(opset.__file__)])}",
        "models": _code_of(sorted(Path(models.__file__).parent.rglob("*.py"))),
    }


def _input(x: Tensor) -> Tensors:
    flat = x.reshape(-1)
    places = flat.nonzero()[:, 0]
    return {"input/shape": torch.tensor(x.shape), "input/places": places, "input/values": flat[places]}


def batches_of(prepared: Prepared, config: Config, part: str) -> list[NDArray[np.int64]]:
    """Return the numbers of the samples in each batch of a part, as training evaluates it."""
    count, size = len(prepared.splits.parts[part]), evaluated_at_once(config)
    return np.split(np.arange(count), range(size, count, size))


def _learned(prepared: Prepared, config: Config, epoch: int) -> Tensors:
    """Return the first batch of an epoch as training learns from it."""
    feed = learn_feed(prepared, config, CPU, World())
    batch, samples = next(feed.epoch(epoch)), feed.batches.make(epoch, 0).indices
    found = {"learned/samples": torch.from_numpy(samples), "learned/labels": batch.labels}
    if config.data.augmentation.is_off:  # what augmentation makes of a sample is no meaning of the network
        found["learned/input"] = hashes(batch.x, prepared.steps is not None)
    return found


def _decided(predictions: Mapping[str, Predictions]) -> Tensors:
    found: dict[str, Any] = {}
    for part, each in predictions.items():
        found[f"decided/{part}"] = torch.from_numpy(each.probabilities)
        found[f"truth/{part}"] = torch.from_numpy(each.labels)
        found[f"rates/{part}"] = torch.tensor(list(each.rates.values()), dtype=torch.float64)
    return found


def _hash(values: NDArray[np.generic]) -> int:
    return int.from_bytes(hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest()[:8], "little", signed=True)


def _code_of(paths: list[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Let torch sum in so many threads, on which the order of its sums may depend."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
