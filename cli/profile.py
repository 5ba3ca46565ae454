"""``axonnx profile``: what files cost to run, and what they are worth."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.base.palette import FIGURE_STYLE, groups_of_series
from axonnx.cli.options import add_job_options, add_result_options, call, pool_or_none, print_results
from axonnx.cli.show.job_progress import watching
from axonnx.profiling import profile_file
from axonnx.runtime.engines.choose import MEASURING
from axonnx.runtime.measure.profile_result import ProfileResult


def main(arguments: Sequence[str]) -> int:
    """``axonnx profile``."""
    options = make_parser().parse_args(arguments)
    if (options.run is None) == (options.data is None):
        raise AxonnxError("which data? --run RUN takes a run's test data, --data your own frames or recordings")
    options.limit = None if options.all else options.limit
    work = {"pool": pool_or_none(options), "watch": watching("axonnx profile")}
    results = [call(profile_file, options, model=path, **work) for path in options.models]
    side_by_side = [_side_by_side(results)] if results[1:] else []
    print_results(options, results, lambda: "\n\n".join([*map(_table, results), *side_by_side]))
    if options.plot:
        _draw_trade_off(options.plot, results)
    return 0


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
    add_job_options(parser.add_argument_group("parallel execution"))
    add_result_options(parser)
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


def _draw_trade_off(path: str, results: Sequence[ProfileResult]) -> None:
    """A picture: accuracy against energy of every file, and decision time against accuracy."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise AxonnxError("--plot needs matplotlib: pip install 'axonnx[report]'") from None
    with matplotlib.rc_context(FIGURE_STYLE):
        figure = Figure(figsize=(9, 0.6 + 3.0 * len(groups_of_series(results))), layout="constrained")
        rows = figure.subplots(len(groups_of_series(results)), 2, sharex="col", sharey="col", squeeze=False)
        for (cost, when), group in zip(rows, groups_of_series(results), strict=True):
            for result in group:
                label = f"{result.collapse} ({result.model.rpartition('/')[2]})"
                cost.plot(result.energy.total_nj, 100 * result.accuracy, "o", label=label)
                exits = result.early_exit
                when.plot([e.mean_steps for e in exits], [100 * e.accuracy for e in exits], ".-", label=label)
            cost.set(xlabel="energy of an inference (nJ)", ylabel="accuracy (%)", xscale="log")
            when.set(xlabel="mean time steps to the decision", ylabel="accuracy (%)")
            when.legend()
        with replacing(path) as temporary:
            figure.savefig(temporary, format="png", dpi=110)
