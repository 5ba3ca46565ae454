"""Small exports of every kind, made by the exporter itself: ``python -m tests.fuzz.samples FOLDER``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fuzz.harness import ROOT, shared_folder

SAMPLES = "AXONNX_FUZZ_SAMPLES"
STEPS = 8
CLASSES = ("left", "right", "none")


def samples(*wanted: str) -> dict[str, bytes]:
    """The files by name, all or those wanted; made once for all children, in a process apart: torch is large."""
    folder = shared_folder() / "samples"
    if not folder.exists():
        part = shared_folder() / "samples.part"
        part.mkdir(exist_ok=True)
        subprocess.run([sys.executable, "-m", "tests.fuzz.samples", str(part), *wanted], cwd=ROOT, check=True)
        part.rename(folder)
    return {path.stem: path.read_bytes() for path in sorted(folder.glob("*.onnx"))}


def main(folder: Path, *wanted: str) -> None:
    """Write all of them, or those wanted."""
    import torch

    from tests.fuzz.sample_networks import networks

    torch.manual_seed(0)
    torch.set_num_threads(1)
    for name, (network, shape, ways) in networks(STEPS, len(CLASSES)).items():
        _stir(network)
        for way in (way for way in ways if not wanted or f"{name}-{way}" in wanted):
            (folder / f"{name}-{way}.onnx").write_bytes(_file(network.eval(), shape, way))


def _stir(network: Any) -> None:
    """Scales and statistics that are not one and zero."""
    import torch

    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if name.endswith(("scale", "running_variance")):
                tensor.mul_(0.5 + torch.rand_like(tensor))
            elif name.endswith(("bias", "running_mean")):
                tensor.add_(0.2 * torch.randn_like(tensor))


def _file(network: Any, shape: tuple[int, ...], way: str) -> bytes:
    from axonnx.export.collapsed import CollapseSettings, collapse_network
    from axonnx.export.contract import make_contract
    from axonnx.export.write import build_model
    from axonnx.models import SpikingNetwork
    from axonnx.runtime.binning import Binning
    from axonnx.runtime.format.contract import InputContract

    spiking = isinstance(network, SpikingNetwork)
    sensor = {
        "width": shape[-1],
        "height": shape[1] if len(shape) == 3 else 1,
        "polarities": 2 if len(shape) == 3 else 1,
    }
    binning = Binning.model_validate({"sensor": sensor, "bins": STEPS, "bin_us": 1000, "clip": 3}) if spiking else None
    arriving = InputContract(name="events", shape=shape, steps=STEPS if spiking else None, largest=3, binning=binning)
    settings = {
        "sampled": CollapseSettings(mode="sampled", members=2),
        "stochastic": CollapseSettings(mode="stochastic"),
        "int8": CollapseSettings(weights="int8"),
        "float32": CollapseSettings(weights="float32"),
    }.get(way, CollapseSettings())
    collapsed = collapse_network(network, arriving, settings)
    contract = make_contract(collapsed, CLASSES, "step" if way == "step" else "sequence")
    return build_model(collapsed, contract, with_traces=way == "traces").SerializeToString(deterministic=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
