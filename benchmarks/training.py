"""How long a training step takes: our recurrent network beside the same one in snnTorch, and what noise costs.

    python -m benchmarks.training [--repeats 15] [--threads 1] [--write]

700-256-256-20 recurrent, T = 100, batch 32, 11 % of inputs active: forward and backward, no optimiser. Networks take
turns, repeat by repeat, so that a busy machine is busy for all of them; the table has medians and ratios of medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import snntorch
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from axonnx.models import LIF, MEAN_FIELD, RecurrentSNN, Sample, SpikingResNet, variant
from axonnx.models.fast import dispatch as kernels
from axonnx.models.neurons import DEFAULT_DECAY

STEPS, BATCH, INPUTS, HIDDEN, CLASSES = 100, 32, 700, 256, 20
DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks-training.md"


class SnnTorchNetwork(nn.Module):
    """The same network of snnTorch's layers, as its documentation writes one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(INPUTS, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.lif1 = snntorch.RLeaky(DEFAULT_DECAY, linear_features=HIDDEN)
        self.lif2 = snntorch.RLeaky(DEFAULT_DECAY, linear_features=HIDDEN)
        self.last = nn.Linear(HIDDEN, CLASSES)
        self.readout = snntorch.Leaky(DEFAULT_DECAY, reset_mechanism="none")

    def forward(self, x: Tensor) -> Tensor:
        spikes1, membrane1 = self.lif1.init_rleaky()
        spikes2, membrane2 = self.lif2.init_rleaky()
        membrane3, total = self.readout.init_leaky(), 0.0
        for step in x:
            spikes1, membrane1 = self.lif1(self.first(step), spikes1, membrane1)
            spikes2, membrane2 = self.lif2(self.second(spikes1), spikes2, membrane2)
            _, membrane3 = self.readout(self.last(spikes2), membrane3)
            total = total + membrane3
        return total / len(x)


def ours(name: str, plain: bool = False) -> Callable[[Tensor, Tensor], None]:
    """A step of our network in one variant; ``plain`` without the hand-written backward pass."""
    chosen = variant(name)
    network = RecurrentSNN(variant=chosen)

    def step(x: Tensor, labels: Tensor) -> None:
        network.zero_grad()
        fused = LIF._fused
        if plain:
            LIF._fused = lambda self, current, state, noise, run: self._plain(current, state, noise, None, run)
        try:
            output = network(x, Sample() if chosen.fire == "sample" else MEAN_FIELD)
        finally:
            LIF._fused = fused
        loss = nnf.cross_entropy(output.logits, labels)
        if chosen.kl:
            loss = loss + 1e-6 * network.regulariser(output)
        loss.backward()

    return step


def theirs() -> Callable[[Tensor, Tensor], None]:
    """A step of the snnTorch network."""
    network = SnnTorchNetwork()

    def step(x: Tensor, labels: Tensor) -> None:
        network.zero_grad()
        nnf.cross_entropy(network(x), labels).backward()

    return step


def time_each(steps: dict[str, Callable[[Tensor, Tensor], None]], repeats: int) -> dict[str, float]:
    """Median seconds of each, taken in turns."""
    torch.manual_seed(0)
    x = (torch.rand(STEPS, BATCH, INPUTS) < 0.11).float()
    labels = torch.randint(CLASSES, (BATCH,))
    times: dict[str, list[float]] = {name: [] for name in steps}
    # With one thread the processor's time is the step's own, whatever else the machine does.
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    for repeat in range(repeats + 2):
        for name, step in steps.items():
            began = clock()
            step(x, labels)
            if repeat >= 2:  # the first ones warm up
                times[name].append(clock() - began)
    return {name: statistics.median(values) for name, values in times.items()}


def saved_megabytes(network: nn.Module, x: Tensor, fire: object) -> float:
    """What a forward pass keeps for its backward pass."""
    sizes: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(x, fire)
    return sum(sizes.values()) / 2**20


def report(medians: dict[str, float], threads: int) -> str:
    """The table."""
    base, sg = medians["snnTorch RLeaky"], medians["surrogate gradient (sg-nbn-1)"]
    way = "without numba" if kernels.compiled("lif_kernels") is None else "with numba"
    lines = [
        f"Training step, 700-256-256-20 recurrent, T = {STEPS}, batch {BATCH}, {threads} thread(s), {way}, medians:",
        "",
        "| network | ms | of snnTorch | of our surrogate gradient |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += [f"| {name} | {1e3 * t:.0f} | {t / base:.2f} | {t / sg:.2f} |" for name, t in medians.items()]
    events = (torch.rand(STEPS, BATCH, INPUTS) < 0.11).float()
    frames = (torch.rand(16, 8, 2, 32, 32) < 0.1).float()
    memory = {
        "recurrent, T = 100, batch 32": saved_megabytes(RecurrentSNN(), events, Sample()),
        "spiking ResNet-20, T = 16, batch 8": saved_megabytes(SpikingResNet(), frames, Sample()),
    }
    lines += ["", "| kept for the backward pass | MiB |", "| --- | ---: |"]
    lines += [f"| {name} | {size:.0f} |" for name, size in memory.items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    steps = {
        "snnTorch RLeaky": theirs(),
        "surrogate gradient (sg-nbn-1)": ours("sg-nbn-1"),
        "Bayesian, mean-field (mfa)": ours("mfa"),
        "Bayesian, sampled (sbnn)": ours("sbnn"),
        "Bayesian, sampled, plain loop": ours("sbnn", plain=True),
    }
    text = report(time_each(steps, options.repeats), options.threads)
    print(text)
    if options.write:
        command = f"python -m benchmarks.training --repeats {options.repeats} --threads {options.threads}"
        DOCUMENT.write_text(f"# Training speed\n\n`{command}` printed:\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
