"""``axonnx profile``: what files cost to run, and what they are worth."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.cli.options.jobs import add_job_options, pool_or_none
from axonnx.cli.show.counting import watching
from axonnx.cli.show.trade_off import draw_trade_off
from axonnx.profiling import profile_file
from axonnx.runtime.engines.choose import MEASURING
from axonnx.runtime.measure.profile_result import ProfileResult


def main(arguments: Sequence[str]) -> int:
    """``axonnx profile``."""
    options = make_parser().parse_args(arguments)
    if (options.run is None) == (options.data is None):
        raise AxonnxError("which data? --run RUN takes a run's test data, --data your own frames or recordings")
    results = [
        profile_file(
            path,
            run=options.run,
            data=options.data,
            limit=None if options.all else options.limit,
            engine=options.engine,
            hardware=options.hardware,
            seed=options.seed,
            pool=pool_or_none(options),
            watch=watching("axonnx profile"),
        )
        for path in options.models
    ]
    if options.output:
        write_text(options.output, _json(results, indent=1))
    if options.plot:
        draw_trade_off(options.plot, results)
    side_by_side = [_side_by_side(results)] if results[1:] else []
    print(_json(results) if options.json else "\n\n".join([*map(_table, results), *side_by_side]))
    return 0


def _json(results: Sequence[ProfileResult], indent: int | None = None) -> str:
    """One result as an object, several as a list."""
    texts = [result.model_dump_json(indent=indent) for result in results]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx profile", description="Spikes, operations, memory, time and energy of exported files, measured."
    )
    parser.add_argument("models", nargs="+", metavar="model.onnx", help="one file, or several to compare")
    parser.add_argument("--run", help="a run folder, whose test data is used")
    parser.add_argument("--data", help="or an npz of frames [N, T, …] or images and labels, or class folders")
    parser.add_argument("--limit", type=int, default=256, help="samples, of all classes (default: %(default)s)")
    parser.add_argument("--all", action="store_true", help="every sample, however many")
    parser.add_argument("--engine", choices=MEASURING, default="auto")
    parser.add_argument("--hardware", metavar="TOML", help="energies of your hardware; default: 45 nm")
    parser.add_argument("--seed", type=int, default=0, help="of the noise of stochastic files")
    parser.add_argument("--plot", metavar="PNG", help="draw accuracy against energy, and early exit")
    add_job_options(parser.add_argument_group("who does the work"))
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("-o", "--output", help="also write the JSON to this file")
    return parser


def _table(result: ProfileResult) -> str:
    totals, energy = result.totals, result.energy
    lines = [f"{result.model} ({result.collapse}), {result.samples} samples, engine {result.engine}", ""]
    lines.append(f"{'layer':<34}{'neurons':>9}{'rate':>9}{'spikes/inference':>18}")
    for layer in result.layers:
        lines.append(f"{layer.name:<34}{layer.neurons:>9}{layer.rate:>9.4f}{layer.spikes_per_inference:>18.1f}")
    lines += ["", f"{'synapse':<34}{'weights':>9}{'zeros':>8}{'ACs':>13}{'MACs':>13}{'dense':>14}{'done':>8}"]
    for entry in result.synapses:
        lines.append(
            f"{entry.name:<34}{entry.weights:>9}{100 * entry.connection_sparsity:>7.1f}%"
            f"{entry.accumulates:>13,.0f}{entry.multiply_accumulates:>13,.0f}"
            f"{entry.dense_operations:>14,}{100 * entry.operations / entry.dense_operations:>7.1f}%"
        )
    sparsity = 100 * totals.activation_sparsity
    low, high = (100 * bound for bound in result.accuracy_interval)
    lines += [
        "",
        f"input events        {totals.events_in:>14,.1f}   activation sparsity {sparsity:.2f} %",
        f"membrane updates    {totals.membrane_updates:>14,}   footprint {totals.footprint_bytes:,} bytes",
        f"latency             {result.latency_ms_per_step:>11.3f} ms   for each step and sample, in this process",
        f"energy              {energy.total_nj:>11.1f} nJ   dense {energy.dense_nj:.1f} nJ; {energy.hardware.name}",
        f"accuracy            {100 * result.accuracy:>12.1f} %   {low:.1f} – {high:.1f} %; ECE {result.ece:.3f}",
    ]
    if result.early_exit:
        exits = ", ".join(
            f"{e.stop_at:g}: {100 * e.accuracy:.1f} % after {e.mean_steps:.1f} steps" for e in result.early_exit
        )
        lines.append(f"early exit          {exits}")
    return "\n".join(lines)


def _side_by_side(results: Sequence[ProfileResult]) -> str:
    lines = [f"{'file':<34}{'accuracy':>10}{'ECE':>8}{'spikes':>10}{'energy nJ':>12}{'bytes':>12}"]
    for result in results:
        lines.append(
            f"{result.model[-33:]:<34}{100 * result.accuracy:>8.1f} %{result.ece:>8.3f}"
            f"{result.spikes_per_inference:>10,.0f}{result.energy.total_nj:>12,.1f}"
            f"{result.totals.footprint_bytes:>12,}"
        )
    return "\n".join(lines)
