"""``axonnx profile``: what files cost to run, and what they are worth."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing, write_text
from axonnx.base.fingerprints import sha256_of
from axonnx.runtime.engines.choose import MEASURING, measuring_engine
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.measure.energy import Hardware, read_hardware
from axonnx.runtime.measure.labelled_data import open_labelled
from axonnx.runtime.measure.profile import profile
from axonnx.runtime.measure.sample_choice import choose_samples
from axonnx.runtime.program.compilation import compile_file

Floats = NDArray[np.float32]
Batches = Iterable[tuple[Floats, NDArray[np.int64]]]


class Profiled(NamedTuple):
    """Labelled batches, the sha256 of the data they are of, and that of the run's weights where there is a run."""

    batches: Batches
    sha256: str
    checkpoint_sha256: str | None = None


def main(arguments: Sequence[str]) -> int:
    """``axonnx profile``."""
    options = make_parser().parse_args(arguments)
    hardware = read_hardware(options.hardware)
    results = [profile_file(path, options, hardware) for path in options.models]
    if options.output:
        write_text(options.output, json.dumps(results[0] if len(results) == 1 else results, indent=1))
    if options.plot:
        draw_trade_off(options.plot, results)
    if options.json:
        print(json.dumps(results[0] if len(results) == 1 else results))
    else:
        print(
            "\n\n".join([*(_table(result) for result in results), *([_side_by_side(results)] if results[1:] else [])])
        )
    return 0


def profile_file(path: str, options: argparse.Namespace, hardware: Hardware) -> dict[str, Any]:
    """Profile one file on the data that the options name."""
    program = compile_file(path)
    engine = measuring_engine(program, options.engine)
    data = _from_run(options) if options.run else _from_files(options, program.contract)
    return {
        **profile(engine, data.batches, hardware, options.seed),
        "model": path,
        "file_sha256": sha256_of(path),
        "checkpoint_sha256": data.checkpoint_sha256,
        "data_sha256": data.sha256,
    }


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx profile", description="Spikes, operations, memory, time and energy of exported files, measured."
    )
    parser.add_argument("models", nargs="+", metavar="model.onnx", help="one file, or several to compare")
    parser.add_argument("--run", help="a run folder, whose test data is used")
    parser.add_argument("--data", help="or an npz of frames [N, T, …] or images and labels, or class folders")
    parser.add_argument("--limit", type=int, default=256, help="samples, of all classes (default: %(default)s)")
    parser.add_argument("--engine", choices=MEASURING, default="auto")
    parser.add_argument("--hardware", metavar="TOML", help="energies of your hardware; default: 45 nm")
    parser.add_argument("--seed", type=int, default=0, help="of the noise of stochastic files")
    parser.add_argument("--plot", metavar="PNG", help="draw accuracy against energy, and early exit")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("-o", "--output", help="also write the JSON to this file")
    return parser


def _from_run(options: argparse.Namespace) -> Profiled:
    from axonnx.train.output.checkpoint import read_index  # needs torch, which a device without a run does not have
    from axonnx.train.trained import open_run

    trained = open_run(options.run)
    batches = [(x.numpy(), labels.numpy()) for x, labels in trained.data("test", options.limit)]
    weights = read_index(Path(options.run) / "checkpoint")["files"]["weights"]["sha256"]
    return Profiled(batches, trained.prepared.splits.parts["test"].digest, weights)


def _from_files(options: argparse.Namespace, contract: Contract) -> Profiled:
    if options.data is None:
        raise AxonnxError("which data? --run RUN takes a run's test data, --data your own frames or recordings")
    data = open_labelled(Path(options.data), contract)
    parts = list(data.batches)
    frames, labels = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    chosen = choose_samples(labels, options.limit)
    x = to_input(frames[chosen].swapaxes(0, 1), contract.input)
    return Profiled([(x if contract.kind == "spiking" else x[0], labels[chosen])], data.sha256)


def _table(result: dict[str, Any]) -> str:
    totals, energy = result["totals"], result["energy"]
    lines = [f"{result['model']} ({result['collapse']}), {result['samples']} samples, engine {result['engine']}", ""]
    lines.append(f"{'layer':<34}{'neurons':>9}{'rate':>9}{'spikes/inference':>18}")
    for layer in result["layers"]:
        spikes = layer["spikes_per_inference"]
        lines.append(f"{layer['name']:<34}{layer['neurons']:>9}{layer['rate']:>9.4f}{spikes:>18.1f}")
    lines += ["", f"{'synapse':<34}{'weights':>9}{'zeros':>8}{'ACs':>13}{'MACs':>13}{'dense':>14}{'done':>8}"]
    for entry in result["synapses"]:
        done = (entry["accumulates"] + entry["multiply_accumulates"]) / entry["dense_operations"]
        lines.append(
            f"{entry['name']:<34}{entry['weights']:>9}{100 * entry['connection_sparsity']:>7.1f}%"
            f"{entry['accumulates']:>13,.0f}{entry['multiply_accumulates']:>13,.0f}"
            f"{entry['dense_operations']:>14,}{100 * done:>7.1f}%"
        )
    sparsity = 100 * totals["activation_sparsity"]
    low, high = (100 * bound for bound in result["accuracy_interval"])
    lines += [
        "",
        f"input events        {totals['events_in']:>14,.1f}   activation sparsity {sparsity:.2f} %",
        f"membrane updates    {totals['membrane_updates']:>14,}   footprint {totals['footprint_bytes']:,} bytes",
        f"latency             {result['latency_ms_per_step']:>11.3f} ms   for each step and sample, in this process",
        f"energy              {energy['total_nj']:>11.1f} nJ   dense {energy['dense_nj']:.1f} nJ; {energy['hardware']}",
        f"accuracy            {100 * result['accuracy']:>12.1f} %   {low:.1f} – {high:.1f} %; ECE {result['ece']:.3f}",
    ]
    if result["early_exit"]:
        exits = ", ".join(
            f"{e['stop_at']:g}: {100 * e['accuracy']:.1f} % after {e['mean_steps']:.1f} steps"
            for e in result["early_exit"]
        )
        lines.append(f"early exit          {exits}")
    return "\n".join(lines)


def _side_by_side(results: list[dict[str, Any]]) -> str:
    lines = [f"{'file':<34}{'accuracy':>10}{'ECE':>8}{'spikes':>10}{'energy nJ':>12}{'bytes':>12}"]
    for result in results:
        spikes = sum(layer["spikes_per_inference"] for layer in result["layers"])
        lines.append(
            f"{result['model'][-33:]:<34}{100 * result['accuracy']:>8.1f} %{result['ece']:>8.3f}{spikes:>10,.0f}"
            f"{result['energy']['total_nj']:>12,.1f}{result['totals']['footprint_bytes']:>12,}"
        )
    return "\n".join(lines)


def draw_trade_off(path: str, results: list[dict[str, Any]]) -> None:
    """A picture: accuracy against energy of every file, and decision time against accuracy."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise AxonnxError("--plot needs matplotlib: pip install 'axonnx[report]'") from None
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    cost, when = figure.subplots(1, 2)
    for result in results:
        label = f"{result['collapse']} ({result['model'].rpartition('/')[2]})"
        cost.plot(result["energy"]["total_nj"], 100 * result["accuracy"], "o", label=label)
        exits = result["early_exit"]
        when.plot([e["mean_steps"] for e in exits], [100 * e["accuracy"] for e in exits], ".-", label=label)
    cost.set(xlabel="energy of an inference (nJ)", ylabel="accuracy (%)", xscale="log")
    when.set(xlabel="mean time steps to the decision", ylabel="accuracy (%)")
    for axes in (cost, when):
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
