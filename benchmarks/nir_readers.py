"""NIR graphs of ours, read by other libraries: how many of their output spikes are our file's.

    python -m benchmarks.nir_readers [--write]

Each network is written by ``axonnx export -o FILE.nir`` for the time step that the reader assumes, read by the
reader's own importer, and run on random events step by step.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import axonnx
from axonnx.export.convert.nir_out import write_nir
from axonnx.export.exporting import export_network
from axonnx.models import variant
from axonnx.models.described import DescribedNetwork
from axonnx.runtime.format.contract import InputContract

DOCUMENT = Path(__file__).parents[1] / "docs" / "import.md"
BEGIN, END = "<!-- readers: begin -->", "<!-- readers: end -->"
INPUTS, HIDDEN, CLASSES, STEPS, BATCH = 12, 16, 6, 200, 8
TO_ZERO = {"threshold": 1.0, "zeroed": 1.0}


def dense(neurons: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """Two layers of these neurons; the first may hear itself."""
    second = {key: value for key, value in options.items() if key != "recurrent"}
    return [
        {"name": "flat", "kind": "flatten", "of": ["input"]},
        {"name": "fc1", "kind": "linear", "of": ["flat"], "inputs": INPUTS, "outputs": HIDDEN},
        {"name": "lif1", "kind": "neurons", "of": ["fc1"], "constants": neurons, **options},
        {"name": "fc2", "kind": "linear", "of": ["lif1"], "inputs": HIDDEN, "outputs": CLASSES},
        {"name": "lif2", "kind": "neurons", "of": ["fc2"], "constants": neurons, **second},
        {"name": "readout", "kind": "readout", "of": ["lif2"]},
    ]  # fmt: skip


def maps() -> list[dict[str, Any]]:
    """Convolution, average pooling, and a dense layer."""
    sizes = {"inputs": 2, "outputs": 4}
    return [
        {"name": "conv", "kind": "conv2d", "of": ["input"], **sizes, "kernel": [3, 3], "padding": [1, 1]},
        {"name": "lif1", "kind": "neurons", "of": ["conv"], "constants": {**TO_ZERO, "decay": 0.5}},
        {"name": "pool", "kind": "average_pool", "of": ["lif1"], "window": [2, 2]},
        {"name": "flat", "kind": "flatten", "of": ["pool"]},
        {"name": "fc2", "kind": "linear", "of": ["flat"], "inputs": 64, "outputs": CLASSES},
        {"name": "lif2", "kind": "neurons", "of": ["fc2"], "constants": {**TO_ZERO, "decay": 0.5}},
        {"name": "readout", "kind": "readout", "of": ["lif2"]},
    ]  # fmt: skip


def late() -> list[dict[str, Any]]:
    """Weights for now and for three steps ago."""
    layers = dense({**TO_ZERO, "decay": 0.875})
    layers[1] |= {"of": ["late"], "inputs": 2 * INPUTS}
    return [layers[0], {"name": "late", "kind": "delay", "of": ["flat"], "delays": [0, 3]}, *layers[1:]]


NETWORKS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "Affine, LIF": lambda: dense({**TO_ZERO, "decay": 0.875}),
    "Affine, IF": lambda: dense({**TO_ZERO, "decay": 1.0}),
    "Affine, CubaLIF": lambda: dense({**TO_ZERO, "decay": 0.75, "synaptic_decay": 0.5}, synaptic=True),
    "Affine, LIF with recurrent weights": lambda: dense({**TO_ZERO, "decay": 0.75}, recurrent=HIDDEN),
    "Conv2d, LIF, AvgPool2d, Affine, LIF": maps,
    "Delay, Affine, LIF": late,
}


def network(name: str) -> tuple[DescribedNetwork, tuple[int, int, int]]:
    torch.manual_seed(1)
    made = DescribedNetwork(NETWORKS[name](), variant("sg-nbn-1")).eval()
    with torch.no_grad():
        for key, value in made.named_parameters():
            if key.endswith("raw_mean"):
                value.copy_(torch.round((value * (0.3 if "recurrent" in key else 1.0) + 0.05) * 32) / 32)
    return made, (2, 8, 8) if "Conv2d" in name else (1, 1, INPUTS)


def snntorch_steps(graph: Any, x: Tensor) -> list[Tensor]:
    from snntorch.import_nir import import_from_nir

    net, state, out = import_from_nir(graph), None, []
    for step in x:
        y, state = net(step, state)
        out.append(y[0] if isinstance(y, tuple) else y)
    return out


def norse_steps(graph: Any, x: Tensor) -> list[Tensor]:
    import norse.torch as norse

    net, state, out = norse.from_nir(graph, dt=1e-3), None, []
    for step in x:
        y, state = net(step, state)
        out.append(y)
    return out


def spikingjelly_steps(graph: Any, x: Tensor) -> list[Tensor]:
    from spikingjelly.activation_based.nir_exchange import import_from_nir

    net, state, out = import_from_nir(graph, dt=1e-4), None, []
    for step in x:
        y, state = net(step, state)
        out.append(y)
    return out


def sinabs_steps(graph: Any, x: Tensor) -> list[Tensor]:
    from sinabs.nir import from_nir

    net = from_nir(graph, batch_size=BATCH)
    out = []
    for step in x:
        y = net(step)
        out.append(y[0] if isinstance(y, tuple) else y)
    return out


READERS: dict[str, tuple[float, Callable[[Any, Tensor], list[Tensor]]]] = {
    "snnTorch 1.0.0": (1e-4, snntorch_steps),
    "Norse 1.1.0": (1e-3, norse_steps),
    "SpikingJelly 2.0.0": (1e-4, spikingjelly_steps),
    "sinabs 3.1.3": (1e-4, sinabs_steps),
}


def cell(name: str, reader: str, folder: Path) -> str:
    """Equal output spikes, or why the reader gives none."""
    import nir

    made, shape = network(name)
    arriving = InputContract(name="events", shape=shape, steps=STEPS, largest=1)
    path = folder / "net.onnx"
    # On the finest grid, so that the readers' own rounding shows.
    export_network(made, arriving, [str(c) for c in range(CLASSES)], path, weights="float32")
    dt, steps = READERS[reader]
    write_nir(path, folder / "net.nir", dt)
    x = (torch.rand(STEPS, BATCH, *shape, generator=torch.Generator().manual_seed(2)) < 0.2).float()
    engine = axonnx.load(path).engine
    ours = engine.advance(engine.initial_state(BATCH), x.numpy(), {}, trace=True).traces["spikes/layers.lif2"]
    try:
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = torch.stack(steps(nir.read(folder / "net.nir"), x.flatten(2) if shape[0] == 1 else x))
    except Exception as fault:
        return f"not read: {str(fault).splitlines()[0][:60]}" if str(fault) else f"not read: {type(fault).__name__}"
    if theirs.numel() != ours.size:
        return f"not read: outputs of {list(theirs.shape[2:])} for {CLASSES} classes"
    equal = int((np.asarray(theirs.detach().reshape(ours.shape)) == ours).sum())
    return f"{equal:,} of {ours.size:,}" + (" ✓" if equal == ours.size else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options, _ = parser.parse_known_args()
    logging.disable(logging.WARNING)
    lines = ["| network | " + " | ".join(READERS) + " |", "| --- |" + " --- |" * len(READERS)]
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            lines.append(f"| {name} | " + " | ".join(cell(name, reader, Path(folder)) for reader in READERS) + " |")
            print(lines[-1], flush=True)
    if options.write:
        text = DOCUMENT.read_text("utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        DOCUMENT.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
