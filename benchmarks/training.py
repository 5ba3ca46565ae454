"""How long a training step takes and what it keeps: our networks beside snnTorch's and Spyx's, and what noise costs.

    python -m benchmarks.training [--repeats 15] [--threads 1] [--device cuda] [--write]

Forward and backward, no optimiser. Networks take turns, repeat by repeat, so that a busy machine is busy for all of
them; tables have medians and ratios of medians.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line does, before torch is loaded

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from axonnx import native
from axonnx.models import LIF, MEAN_FIELD, Network, RecurrentSNN, Sample, SpikingResNet, variant
from axonnx.models.fast.core import GAPS, gaps_as
from axonnx.models.maths.estimators import ImportanceWeighted
from axonnx.models.neurons import Neurons
from benchmarks.machine import machine
from benchmarks.peers import snntorch_training as snntorch
from benchmarks.timing import table

STEPS, BATCH, INPUTS, HIDDEN, CLASSES = 100, 32, 700, 256, 20
DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks-training.md"
Step = Callable[[Tensor, Tensor], None]


def ours(
    make: Callable[..., Network],
    name: str,
    device: torch.device,
    plain: bool = False,
    gaps: str = "float16",  # as `axonnx train` keeps them
    **changed: Any,
) -> Step:
    """A step of our network in one variant, with other settings; ``plain``: neurons step by step in torch."""
    chosen = replace(variant(name), **changed)
    torch.manual_seed(0)  # the same weights for every variant: the time depends on how many neurons fire
    network = make(variant=chosen).to(device)

    def step(x: Tensor, labels: Tensor) -> None:
        network.zero_grad()
        with plain_neurons() if plain else gaps_as(GAPS[gaps]):
            output = network(x, Sample() if chosen.fire == "sample" else MEAN_FIELD)
        loss = nnf.cross_entropy(output.logits, labels)
        if chosen.kl:
            loss = loss + 1e-6 * network.regulariser(output)
        loss.backward()

    return step


@contextmanager
def plain_neurons() -> Iterator[None]:
    """Neurons go through time as their formulas stand, step by step."""
    fused = LIF._through_time, LIF._draws_noise
    LIF._through_time, LIF._draws_noise = Neurons._through_time, Neurons._draws_noise
    try:
        yield
    finally:
        LIF._through_time, LIF._draws_noise = fused


def theirs(network: nn.Module, device: torch.device, autocast: bool = False) -> Step:
    """A step of a network of another library that is torch's; ``autocast``: with bfloat16 products, channels last."""
    network.to(device)
    if autocast:
        network.to(memory_format=torch.channels_last)

    def step(x: Tensor, labels: Tensor) -> None:
        network.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=autocast):
            logits = network(x)
        nnf.cross_entropy(logits.float(), labels).backward()

    return step


def spyx_steps() -> dict[str, Step]:
    """Spyx where it is installed."""
    try:
        form = import_module("benchmarks.peers.spyx_training")
    except ImportError:
        return {}
    found: dict[str, Step] = form.steps(INPUTS, HIDDEN, CLASSES)
    return found


def time_each(steps: dict[str, Step], x: Tensor, labels: Tensor, repeats: int) -> dict[str, float]:
    """Median seconds of each, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    # With one thread the processor's time is the step's own, whatever else the machine does.
    on_cpu = x.device.type == "cpu"
    clock = time.process_time if on_cpu and torch.get_num_threads() == 1 else time.perf_counter
    for repeat in range(repeats + 2):
        for name, step in steps.items():
            began = clock()
            step(x, labels)
            if not on_cpu:
                torch.cuda.synchronize()
            if repeat >= 2:  # the first ones warm up
                times[name].append(clock() - began)
    return {name: statistics.median(values) for name, values in times.items()}


def kept_megabytes(step: Step, x: Tensor, labels: Tensor) -> float:
    """What a forward pass keeps for its backward pass, parameters and input excepted."""
    sizes: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if not isinstance(tensor, nn.Parameter) and storage.data_ptr() != x.untyped_storage().data_ptr():
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    gc.collect()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        step(x, labels)
    return sum(sizes.values()) / 2**20


def recurrent(device: torch.device, repeats: int, threads: int) -> str:
    """700-256-256-20."""
    torch.manual_seed(0)
    x = (torch.rand(STEPS, BATCH, INPUTS) < 0.11).float().to(device)
    labels = torch.randint(CLASSES, (BATCH,)).to(device)
    sizes = (INPUTS, HIDDEN, CLASSES)
    steps = {
        "snnTorch RLeaky": theirs(snntorch.Recurrent(*sizes), device),
        "snnTorch RLeaky, layer by layer": theirs(snntorch.LayerWise(*sizes), device),
        "snnTorch RLeaky, layer by layer, autocast": theirs(snntorch.LayerWise(*sizes), device, autocast=True),
        **(spyx_steps() if device.type == "cpu" else {}),
        "surrogate gradient (sg-nbn-1)": ours(RecurrentSNN, "sg-nbn-1", device),
        "Bayesian, mean-field (mfa)": ours(RecurrentSNN, "mfa", device),
        "Bayesian, sampled (sbnn)": ours(RecurrentSNN, "sbnn", device),
        "Bayesian, sampled, IW-ST": ours(RecurrentSNN, "sbnn", device, estimator=ImportanceWeighted()),
        "Bayesian, sampled, gap recomputed": ours(RecurrentSNN, "sbnn", device, gaps="recomputed"),
        "Bayesian, sampled, plain loop": ours(RecurrentSNN, "sbnn", device, plain=True),
    }
    medians = time_each(steps, x, labels, repeats)
    kept = {name: kept_megabytes(step, x, labels) for name, step in steps.items() if "Spyx" not in name}
    title = f"Recurrent 700-256-256-20, T = {STEPS}, batch {BATCH}, {threads} thread(s)"
    return _table(title, medians, kept, "snnTorch RLeaky, layer by layer")


def residual(device: torch.device, repeats: int, threads: int) -> str:
    """Spiking ResNet-20."""
    torch.manual_seed(0)
    x = (torch.rand(16, 8, 2, 32, 32) < 0.1).float().to(device)
    labels = torch.randint(11, (8,)).to(device)
    steps = {
        "snnTorch Leaky, layer by layer": theirs(snntorch.ResNet(), device),
        "snnTorch Leaky, layer by layer, autocast and channels last": theirs(snntorch.ResNet(), device, autocast=True),
        "surrogate gradient (sg-nbn-1)": ours(SpikingResNet, "sg-nbn-1", device),
        "Bayesian, mean-field (mfa)": ours(SpikingResNet, "mfa", device),
        "Bayesian, sampled (sbnn)": ours(SpikingResNet, "sbnn", device),
        "Bayesian, sampled, IW-ST": ours(SpikingResNet, "sbnn", device, estimator=ImportanceWeighted()),
        "Bayesian, sampled, gap recomputed": ours(SpikingResNet, "sbnn", device, gaps="recomputed"),
    }
    medians = time_each(steps, x, labels, max(3, repeats // 3))
    kept = {name: kept_megabytes(step, x, labels) for name, step in steps.items()}
    title = f"Spiking ResNet-20 (32→64→128 channels, 32 × 32), T = 16, batch 8, {threads} thread(s)"
    return _table(title, medians, kept, "snnTorch Leaky, layer by layer")


def two_threads(repeats: int) -> str:
    """Our networks with one thread and with two, by the clock on the wall; taking turns."""
    rows = []
    for title, make, shape, classes in (
        (f"recurrent 700-256-256-20, T = {STEPS}, batch {BATCH}", RecurrentSNN, (STEPS, BATCH, INPUTS), CLASSES),
        ("ResNet-20, T = 16, batch 8", SpikingResNet, (16, 8, 2, 32, 32), 11),
    ):
        torch.manual_seed(0)
        x, labels = (torch.rand(shape) < 0.1).float(), torch.randint(classes, shape[1:2])
        step, times = ours(make, "sbnn", torch.device("cpu")), {1: [], 2: []}
        for repeat in range(max(3, repeats // 3) + 1):
            for threads, taken in times.items():
                torch.set_num_threads(threads)
                began = time.perf_counter()
                step(x, labels)
                taken += [time.perf_counter() - began] * (repeat > 0)
        one, two = (1e3 * statistics.median(taken) for taken in times.values())
        rows.append([title, f"{one:.0f}", f"{two:.0f}", f"{one / two:.2f}"])
    return table("One thread and two, Bayesian, sampled", ["network", "one, ms", "two, ms", "times as fast"], rows)


def _table(title: str, medians: dict[str, float], kept: dict[str, float], unit: str) -> str:
    rows = [
        [name, f"{1e3 * t:.0f}", f"{t / medians[unit]:.2f}", f"{kept[name]:.0f}" if name in kept else ""]
        for name, t in medians.items()
    ]
    return table(title, ["network", "ms", f"of {unit}", "kept for the backward pass, MiB"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--quick", action="store_true", help="three repeats")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {DOCUMENT.name}")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device, repeats = torch.device(options.device), 3 if options.quick else options.repeats
    way = "without the native core" if native.core() is None else "with the native core"
    parts = [
        "# Training speed\n",
        f"Made by `python -m benchmarks.training --repeats {repeats} --threads {options.threads} --device "
        f"{options.device} --write`, {way}: forward and backward, no optimiser; medians, networks taking turns. One "
        f'thread is timed by the processor\'s clock. Gaps are kept as float16; "gap recomputed" is '
        f'`optimiser.gaps = "recomputed"`, which keeps float32 gaps of residual streams alone.\n',
        machine("torch", "snntorch", "spyx", "jax"),
    ]
    for make in (recurrent, residual):
        parts.append(make(device, repeats, options.threads))
        print(parts[-1], flush=True)
    if device.type == "cpu" and (os.cpu_count() or 1) > 1:
        parts.append(two_threads(repeats))
        print(parts[-1], flush=True)
    if options.write:
        DOCUMENT.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
