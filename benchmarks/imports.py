"""Networks trained in other libraries on real data, imported: how many spikes and decisions are those of the source.

    python -m benchmarks.imports [--only snntorch …] [--epochs 4] [--write]

snnTorch on N-MNIST (1,000 recordings) and on still images, SpikingJelly on the embedded digits, Norse on regenerated
SHD, and a NIR file that snnTorch wrote of a network of its own. Each is trained there with that library's own neurons
and gradients, imported, verified, run on a recording (or an image) and profiled. Needs the recordings of AXONNX_DATA
(or ../shared/data).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

import axonnx
from axonnx.cli import main as command
from axonnx.export.convert.importing import Imported
from axonnx.export.verify.stages import verify_file
from axonnx.runtime.frame_pipeline import open_frames
from axonnx.runtime.readers import write_npz
from axonnx.train.build import prepare
from axonnx.train.config.read import as_tree, check_config
from axonnx.train.data.recordings import Frames
from axonnx.train.loop import part_feed
from axonnx.train.trained import open_run

DOCUMENT = Path(__file__).parents[1] / "docs" / "import.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
NMNIST = {"data.name": "nmnist-1000", "data.bins": 20, "data.duration_ms": 300, "data.downsample": 2, "data.clip": 3}
DIGITS = {"data.name": "digits-saccade", "data.bins": 20, "data.duration_ms": 300, "data.clip": 3}
SHD = {"data.name": "shd-regenerated", "data.bins": 40, "data.duration_ms": 1000, "data.clip": 3}
IMAGES = {"data.name": "digits-static", "data.repeat": 25, "data.shift": 4}
DT = 1e-4  # of the files that snnTorch writes


class Leaky(nn.Module):
    """snnTorch, as its tutorials write a network."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        import snntorch

        self.fc1, self.lif1 = nn.Linear(inputs, 64), snntorch.Leaky(beta=0.9)
        self.fc2, self.lif2 = nn.Linear(64, classes), snntorch.Leaky(beta=0.9)

    def forward(self, x: Tensor) -> Tensor:
        mem1, mem2, spikes = self.lif1.reset_mem(), self.lif2.reset_mem(), []
        for step in range(x.shape[0]):
            hidden, mem1 = self.lif1(self.fc1(x[step].flatten(1)), mem1)
            out, mem2 = self.lif2(self.fc2(hidden), mem2)
            spikes.append(out)
        return torch.stack(spikes)


class Maxima(nn.Module):
    """snnTorch's convolutional tutorial: a maximum of the currents, then neurons."""

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        import snntorch

        flat = 8 * ((shape[1] - 4) // 2) * ((shape[2] - 4) // 2)
        self.conv1, self.lif1 = nn.Conv2d(shape[0], 8, 5), snntorch.Leaky(beta=0.5)
        self.fc1, self.lif2 = nn.Linear(flat, classes), snntorch.Leaky(beta=0.5)

    def forward(self, x: Tensor) -> Tensor:
        mem1, mem2, spikes = self.lif1.reset_mem(), self.lif2.reset_mem(), []
        for step in range(x.shape[0]):
            hidden, mem1 = self.lif1(nnf.max_pool2d(self.conv1(x[step]), 2), mem1)
            out, mem2 = self.lif2(self.fc1(hidden.flatten(1)), mem2)
            spikes.append(out)
        return torch.stack(spikes)


class Images(nn.Module):
    """snnTorch's first tutorials: the loop over time is the network's own, and every step sees the same image."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        import snntorch

        self.fc1, self.lif1 = nn.Linear(inputs, 64), snntorch.Leaky(beta=0.95)
        self.fc2, self.lif2 = nn.Linear(64, classes), snntorch.Leaky(beta=0.95)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mem1, mem2, spikes, membranes = self.lif1.reset_mem(), self.lif2.reset_mem(), [], []
        for _ in range(IMAGES["data.repeat"]):
            hidden, mem1 = self.lif1(self.fc1(x.view(x.shape[0], -1)), mem1)
            out, mem2 = self.lif2(self.fc2(hidden), mem2)
            spikes.append(out)
            membranes.append(mem2)
        return torch.stack(spikes), torch.stack(membranes)


def snntorch_network(shape: tuple[int, ...], classes: int) -> nn.Module:
    return Leaky(shape[0] * shape[1] * shape[2], classes)


def spikingjelly_network(shape: tuple[int, ...], classes: int) -> nn.Module:
    from spikingjelly.activation_based import functional, layer, neuron

    flat = 8 * (shape[1] // 2) * (shape[2] // 2)
    network = nn.Sequential(
        layer.Conv2d(shape[0], 8, 3, padding=1),
        layer.BatchNorm2d(8),
        neuron.LIFNode(tau=2.0),
        layer.MaxPool2d(2),
        layer.Flatten(),
        layer.Linear(flat, classes),
        neuron.LIFNode(tau=2.0),
    )
    functional.set_step_mode(network, "m")
    return network


def norse_network(shape: tuple[int, ...], classes: int) -> nn.Module:
    import norse.torch as norse

    p = norse.LIFParameters(v_th=torch.tensor(0.5), alpha=torch.tensor(10.0))
    return norse.SequentialState(nn.Linear(shape[2], 64), norse.LIFCell(p), nn.Linear(64, classes), norse.LICell())


def nir_network(shape: tuple[int, ...], classes: int) -> nn.Module:
    import snntorch

    def leaky(neurons: int) -> nn.Module:  # its exporter wants constants of single neurons
        beta, threshold = torch.full((neurons,), 0.9), torch.ones(neurons)
        return snntorch.Leaky(beta, threshold, init_hidden=True, reset_mechanism="zero")

    return nn.Sequential(
        nn.Linear(shape[0] * shape[1] * shape[2], 64), leaky(64), nn.Linear(64, classes), leaky(classes)
    )


def sequence(network: nn.Module, x: Tensor) -> Tensor:
    """The outputs of every step, as each library runs its networks; [T, B, classes]."""
    library = {type(module).__module__.partition(".")[0] for module in network.modules()}
    if "norse" in library:
        state, out = None, []
        for step in x.flatten(2):
            y, state = network(step, state)
            out.append(y)
        return torch.stack(out)
    if "spikingjelly" in library:
        from spikingjelly.activation_based import functional

        functional.reset_net(network)
        return network(x)
    if isinstance(network, Leaky | Maxima):
        return network(x)
    if isinstance(network, Images):
        return network(x[0])[0]
    from snntorch import utils

    utils.reset(network)
    return torch.stack([network(step) for step in x.flatten(2)])


@dataclass(frozen=True)
class Trial:
    name: str
    settings: dict[str, Any]
    make: Callable[[tuple[int, ...], int], nn.Module]
    scale: float = 10.0  # of outputs, as logits
    nir: bool = False


TRIALS = {
    "snntorch": Trial("snnTorch: Linear, Leaky, Linear, Leaky", NMNIST, snntorch_network),
    "maxima": Trial("snnTorch: Conv2d, max_pool2d, Leaky, Linear, Leaky", NMNIST, Maxima),
    "images": Trial(
        "snnTorch: Linear, Leaky, Linear, Leaky, on an image in 25 time steps", IMAGES,
        lambda shape, classes: Images(math.prod(shape), classes),
    ),
    "spikingjelly": Trial(
        "SpikingJelly: Conv2d, BatchNorm2d, LIFNode, MaxPool2d, Linear, LIFNode", DIGITS, spikingjelly_network
    ),
    "norse": Trial("Norse: Linear, LIFCell, Linear, LICell", SHD, norse_network, 20.0),
    "nir": Trial("NIR: Affine, LIF, Affine, LIF, trained and written by snnTorch", NMNIST, nir_network, 10.0, True),
}  # fmt: skip


def trained(trial: Trial, epochs: int, seed: int = 0) -> tuple[nn.Module, float]:
    """The network, trained in its own library, and its accuracy on the test part there."""
    config = check_config(
        as_tree({**trial.settings, "model.network": "layers", "optimiser.batch_size": 64}), trial.name
    )
    prepared = prepare(config.data)
    torch.manual_seed(seed)
    network = trial.make(prepared.shape[-3:], len(prepared.splits.classes))
    optimiser = torch.optim.Adam(network.parameters(), 3e-3)
    feeds = {part: part_feed(prepared, config, torch.device("cpu"), part) for part in ("train", "test")}
    batches = list(feeds["train"].epoch(0))
    random = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for number in torch.randperm(len(batches), generator=random).tolist():
            optimiser.zero_grad()
            outputs = sequence(network, batches[number].x)
            nnf.cross_entropy(trial.scale * outputs.mean(0), batches[number].labels).backward()
            optimiser.step()
    network.eval()
    with torch.no_grad():
        right = [sequence(network, b.x).mean(0).argmax(-1) == b.labels for b in feeds["test"].epoch(0)]
    return network, float(torch.cat(right).float().mean())


def imported(trial: Trial, network: nn.Module, folder: Path) -> Imported:
    """The import, of the network itself or of the NIR file that its library writes of it."""
    source: Any = network
    options: dict[str, Any] = {}
    if trial.nir:
        import nir
        from snntorch.export_nir import export_to_nir

        shape = prepare(check_config(as_tree({**trial.settings, "model.network": "layers"}), "nir").data).shape
        nir.write(folder / "net.nir", export_to_nir(network, torch.zeros(math.prod(shape[-3:]))))
        source, options = folder / "net.nir", {"dt": DT}
    return axonnx.import_network(
        source, folder / "net.onnx", run=folder / "net", settings=trial.settings, limit=1000, **options
    )


def row(trial: Trial, epochs: int, folder: Path) -> str:
    network, accuracy = trained(trial, epochs)
    done = imported(trial, network, folder)
    verified = verify_file(done.exported.path, done.folder)
    verdict = verified.verdict
    if verdict != "equal":
        print([(stage.name, stage.lines) for stage in verified.stages if not stage.ok])
    run = open_run(done.folder)
    recording, test = folder / "recording.npz", run.prepared.splits.test
    model = axonnx.load(done.exported.path)
    if isinstance(test, Frames):
        np.savez(recording, frames=test.frames[:1, 0])
        label = next(open_frames(model.engine, str(recording)).decisions()).label
    else:
        write_npz(recording, test[0], run.prepared.splits.sensor)
        label = model.predict(recording).label
    with contextlib.redirect_stdout(io.StringIO()):
        assert command(["profile", str(done.exported.path), "--run", str(done.folder), "--limit", "32", "--json"]) == 0
    p = done.proof
    file = next(entry for entry in done.exported.contract.accuracy if entry.way == "file")
    cells = [
        trial.name,
        trial.settings["data.name"],
        f"{100 * accuracy:.1f} %",
        f"{100 * file.accuracy:.1f} %",
        *(f"{c.spikes - c.spikes_differing:,} of {c.spikes:,}" for c in (p.imported, p.same_weights, p.file)),
        f"{p.file.samples - p.file.decisions_differing} of {p.file.samples}",
        verdict,
    ]
    print(json.dumps({"name": trial.name, "first recording": label, "lines": p.lines()}, indent=1), flush=True)
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "| trained in | data | accuracy there | of the file | spikes equal: import | file's weights in the source | file | "
    "decisions equal: file | verify |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--write", action="store_true")
    options, _ = parser.parse_known_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    lines = [HEAD]
    for name in options.only:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(row(TRIALS[name], options.epochs, Path(folder)))
            print(lines[-1], flush=True)
    if options.write:
        text = DOCUMENT.read_text("utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        DOCUMENT.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
