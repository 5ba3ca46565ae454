"""Write files of this release, with their inputs and what they gave: ``python -m tests.released.write_files FOLDER``.

Once, at a release; a folder that was released is never written again. What is kept beside a file is what the collapsed
torch network gave, so that no engine is held against itself; noise is that of the seed, which must stay the same too.

``python -m tests.released.write_files FOLDER operators`` writes the set of ``version-1-operators``: a file for every
operator, instruction and way to store weights, with hashes of all traces and states and counts of spikes and
operations, or only the networks whose names follow. It stops if two engines, or an engine and torch, differ in a single
number. To write files of an earlier version, put its installation first:
``PYTHONPATH=/path/to/it python -m tests.released.write_files …``.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray

import axonnx
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
from axonnx.runtime.engines.choose import ENGINES
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.model import load
from axonnx.runtime.result import RunResult

from ..runtime.engines.small_networks import stir
from . import operator_networks
from .record import differences, make_record

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


DENSITIES = (0.0, 0.03, 0.3, 1.0)  # of the inputs that are active: one sample each
QUIET = slice(5, 9)  # steps without input of the third sample
# Pads of torch are the same on both sides. These give outputs of the same size, so a file can be changed to them.
UNEVEN_PADS = {"halves": [2, 0, 0, 0], "wide": [1, 5, 3, 1], "each": [0, 2, 0, 0]}


def write_operators(folder: Path, *names: str) -> None:
    """Write every network of ``operator_networks``, or those that are named, in all of their modes."""
    print(f"files of {Path(axonnx.__file__).parent} on the engines {', '.join(ENGINES)}")
    folder.mkdir(parents=True)
    torch.set_num_threads(1)
    for number, (name, golden) in enumerate(operator_networks.NETWORKS.items()):
        for mode in golden.modes if not names or name in names else ():
            path, x = folder / f"{name}-{mode}.onnx", _mixed_input(golden, number)
            collapsed = _write_golden(golden, mode, number, path)
            _record(path, x, number, collapsed)
    if names:
        return
    path = folder / "convolutions-uneven-mfa.onnx"
    _with_uneven_pads(folder / "convolutions-mfa.onnx", path)
    _record(path, _mixed_input(operator_networks.NETWORKS["convolutions"], 99), 99, None)


def _mixed_input(golden: operator_networks.Golden, seed: int) -> NDArray[np.float32]:
    """One silent sample, a sparse one, one with a pause, and one in which every input is active; some are negative."""
    rng, batch = np.random.default_rng(seed), len(DENSITIES)
    full = (golden.steps, batch, *golden.shape) if golden.spiking else (batch, *golden.shape)
    density = np.array(DENSITIES).reshape(batch, *(1,) * len(golden.shape))
    signs = rng.choice([-1, 1], full, p=[0.1, 0.9]) if golden.largest > 1 else 1
    active = rng.random(full) < density
    (active[0, 1] if golden.spiking else active[1]).flat[0] = True  # small images would be silent otherwise
    values = rng.integers(1, golden.largest + 1, full) * signs * active
    if golden.spiking:
        values[QUIET, 2] = 0
    return (values * 2.0**-golden.shift).astype(np.float32)


def _write_golden(golden: operator_networks.Golden, mode: str, seed: int, path: Path) -> Collapsed:
    torch.manual_seed(seed)
    network = golden.build()
    (operator_networks.make_exact if golden.ties else stir)(network)
    arriving = InputContract(
        name="events",
        shape=golden.shape,
        steps=golden.steps if golden.spiking else None,
        largest=golden.largest,
        centre=golden.centre,
        shift=golden.shift,
    )
    collapsed = collapse_network(network.eval(), arriving, operator_networks.MODE_OF[mode])
    contract = make_contract(collapsed, tuple("abcde"), "step" if mode == "step" else "sequence")
    write_model(build_model(collapsed, contract), path)
    return collapsed


def _with_uneven_pads(source: Path, path: Path) -> None:
    model, changed = onnx.load(source), 0
    body = next(a.g for node in model.graph.node for a in node.attribute if a.name == "body")
    for node in body.node:
        if node.op_type == "Conv" and node.name in UNEVEN_PADS:
            pads = next(attribute for attribute in node.attribute if attribute.name == "pads")
            pads.ints[:] = UNEVEN_PADS[node.name]
            changed += 1
    assert changed == len(UNEVEN_PADS)
    write_model(model, path)


def _record(path: Path, x: NDArray[np.float32], seed: int, collapsed: Collapsed | None) -> None:
    """Keep what numpy gives, once all engines and torch have given the same."""
    model = load(path, "numpy")
    result = model.run(x, seed=seed, trace=True)
    record = make_record(x, seed, result)
    for engine in ENGINES:
        other = load(path, engine).run(x, seed=seed, trace=True)
        assert not differences(record, other), (path.name, engine, differences(record, other))
    if collapsed is not None:
        _compare_with_torch(path, collapsed, x, seed, result)
    moments = x.size // math.prod(model.contract.input.shape)  # samples, times steps
    rates = {
        layer.name: float(record.spikes[layer.name].sum()) / layer.size / moments for layer in model.program.layers
    }
    assert all(0 < rate < 1 for rate in rates.values()), (path.name, rates)
    print(path.name, path.stat().st_size, {name: round(rate, 3) for name, rate in rates.items()})
    record.write(path.with_suffix(".npz"))


def _compare_with_torch(path: Path, collapsed: Collapsed, x: NDArray[np.float32], seed: int, result: RunResult) -> None:
    model = load(path, "numpy")
    spiking = model.contract.kind == "spiking"
    drawn = model.noise(seed, range(len(DENSITIES)), 0, len(x) if spiking else 1) if model.program.noises else {}
    noise = {
        name.removeprefix("noise/"): torch.from_numpy(value if spiking else value[0]) for name, value in drawn.items()
    }
    compared = 0
    for number, member in enumerate(collapsed.members):
        with torch.no_grad():
            output = member.network(torch.from_numpy(x), Replay(noise) if noise else MEAN_FIELD)
        assert np.array_equal(output.logits.numpy(), result.member_logits[number]), path.name
        for layer, seen in output.observations.items():
            pairs = {"spikes": seen.spikes, "membrane": seen.gap} if spiking else {"spikes": seen.spikes}
            for kind, value in pairs.items():
                trace = result.traces[f"{kind}/{member.prefix}{layer}"]
                assert np.array_equal(value.numpy(), trace if spiking else trace[0]), (path.name, kind, layer)
                compared += 1
    traces = [name for name in result.traces if spiking or name.startswith("spikes/")]
    assert compared == len(traces), (path.name, compared, traces)


SETS = {"networks": main, "operators": write_operators}

if __name__ == "__main__":
    SETS[sys.argv[2] if len(sys.argv) > 2 else "networks"](Path(sys.argv[1]), *sys.argv[3:])
