"""Write files of this release, with their inputs and what they gave: ``python tests/released/write_files.py FOLDER``.

Once, at a release; a folder that was released is never written again. What is kept beside a file is what the collapsed
torch network gave, so that no engine is held against itself; noise is that of the seed, which must stay the same too.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from axonnx.export.collapsed import Collapsed, CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.write import build_model, write_model
from axonnx.models import (
    MEAN_FIELD,
    BinaryMLP,
    BinaryResNet,
    LIFSettings,
    Network,
    RecurrentSNN,
    Replay,
    SpikingMLP,
    SpikingResNet,
    variant,
)
from axonnx.runtime import load
from axonnx.runtime.format.contract import InputContract

STEPS, BATCH, CLASSES = 24, 3, 5
NETWORKS = {
    "binary-mlp-mfa": (lambda: BinaryMLP(23, [19, 33], CLASSES), (23,), CollapseSettings()),
    "binary-resnet-int8": (
        lambda: BinaryResNet(3, (4, 8), 1, CLASSES, size=8),
        (3, 8, 8),
        CollapseSettings(weights="int8"),
    ),
    "mlp-zero-stochastic": (
        lambda: SpikingMLP(23, [19, 33], CLASSES, settings=LIFSettings(reset="zero")),
        (23,),
        CollapseSettings(mode="stochastic"),
    ),
    "mlp-bntt-mfa": (lambda: SpikingMLP(23, [19], CLASSES, variant("sg-bn"), steps=STEPS), (23,), CollapseSettings()),
    "recurrent-decays-sampled": (
        lambda: RecurrentSNN(23, [19, 33], CLASSES, settings=LIFSettings(learn_decay="neuron")),
        (23,),
        CollapseSettings(mode="sampled", members=2),
    ),
    "resnet-mfa": (lambda: SpikingResNet(2, (4, 8), 1, CLASSES, size=8), (2, 8, 8), CollapseSettings()),
    "recurrent-int8": (lambda: RecurrentSNN(23, [19, 33], CLASSES), (23,), CollapseSettings(weights="int8")),
}


def main(folder: Path) -> None:
    """Every network: its file, and an npz of input, seed and logits."""
    folder.mkdir(parents=True)
    for number, (name, (build, shape, settings)) in enumerate(NETWORKS.items()):
        torch.manual_seed(number)
        spiking = not name.startswith("binary")
        path, x = folder / f"{name}.onnx", _input(shape, spiking, number)
        collapsed = _write(build(), shape, spiking, settings, path)
        noise = _noise(path, x, spiking)
        logits = _logits(collapsed, x, noise)
        np.savez_compressed(path.with_suffix(".npz"), x=x, logits=logits, seed=np.int64(number))


def _write(
    network: Network, shape: tuple[int, ...], spiking: bool, settings: CollapseSettings, path: Path
) -> Collapsed:
    arriving = InputContract(name="events", shape=shape, steps=STEPS if spiking else None, largest=3)
    collapsed = collapse_network(network.eval(), arriving, settings)
    write_model(build_model(collapsed, make_contract(collapsed, tuple("abcde"), "sequence")), path)
    return collapsed


def _input(shape: tuple[int, ...], spiking: bool, seed: int) -> NDArray[np.float32]:
    rng, full = np.random.default_rng(seed), (STEPS, BATCH, *shape) if spiking else (BATCH, *shape)
    return (rng.integers(1, 4, full) * (rng.random(full) < 0.3)).astype(np.float32)


def _noise(path: Path, x: NDArray[np.float32], spiking: bool) -> dict[str, NDArray[np.float32]]:
    model, seed = load(path, "numpy"), list(NETWORKS).index(path.stem)
    drawn = model.noise(seed, range(BATCH), 0, len(x) if spiking else 1) if model.program.noises else {}
    return {name.removeprefix("noise/"): value if spiking else value[0] for name, value in drawn.items()}


def _logits(collapsed: Collapsed, x: NDArray[np.float32], noise: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    how = Replay({name: torch.from_numpy(value) for name, value in noise.items()}) if noise else MEAN_FIELD
    with torch.no_grad():
        return np.stack([member.network(torch.from_numpy(x), how).logits.numpy() for member in collapsed.members])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
