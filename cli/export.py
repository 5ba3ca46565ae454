"""``axonnx export``: from a run folder to one ONNX file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from torch import Tensor

from axonnx.cli.options import TORCH_THREADS, add_threads, set_torch_threads, tell_of
from axonnx.cli.show.advice import advice
from axonnx.export.grid.place import DEFAULT_WEIGHTS, Stored
from axonnx.export.run import Exported, export_run
from axonnx.models import Network
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.format.values import UNITS
from axonnx.runtime.measure.ways import way_text


def main(arguments: Sequence[str]) -> int:
    """``axonnx export``."""
    options = make_parser().parse_args(arguments)
    members = options.members if options.members is not None else (8 if options.collapse == "sampled" else 1)
    set_torch_threads(options.threads)
    output = options.output or f"model.{options.format}"
    if options.format == "nir" and options.run.endswith(".onnx"):
        print(_wrote_nir(options.run, output, options.dt))
        return 0
    done = export_run(
        options.run,
        str(Path(output).with_suffix(".onnx")) if options.format == "nir" else output,
        mode=options.collapse,
        members=members,
        seed=options.seed,
        prune=options.prune,
        weights=options.weights,
        calibrate=options.calibrate,
        form=options.form,
        trace=options.trace,
        passes=options.passes,
        limit=options.limit,
        tell=tell_of(options),
    )
    print(_report(done, options.run))
    if options.format == "nir":
        print(_wrote_nir(done.path, output, options.dt))
    if (text := advice(done.contract.accuracy, options.collapse, options.calibrate)) is not None:
        print(f"\n{text}", file=sys.stderr)
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx export",
        description="Collapse a trained posterior and write it as one ONNX file, bit-exact in every runtime.",
    )
    parser.add_argument("run", help="a run folder of axonnx train; with --format nir also an exported file")
    parser.add_argument("-o", "--output", help="the file to write (default: model.onnx, or model.nir)")
    parser.add_argument(
        "--format", choices=("onnx", "nir"), default="onnx", help="nir: a NIR graph too, for its users and chips"
    )
    parser.add_argument(
        "--dt", type=float, default=1e-4, metavar="SECONDS", help="time step that a NIR graph is written for (1e-4)"
    )
    parser.add_argument(
        "--collapse",
        choices=("mfa", "sampled", "stochastic"),
        default="mfa",
        help="means and no noise (default); an ensemble of weight sets; neurons that keep their noise",
    )
    parser.add_argument("--members", type=int, help="weight sets of --collapse sampled (default: 8)")
    parser.add_argument("--seed", type=int, default=0, help="of sampled weights and of measured noise")
    parser.add_argument("--calibrate", action="store_true", help="move thresholds so that firing rates survive")
    parser.add_argument("--prune", type=float, metavar="SNR", help="remove weights with |mean|/std below this")
    parser.add_argument(
        "--weights",
        choices=get_args(Stored),
        default=DEFAULT_WEIGHTS,
        help="integer width of the stored weights; float32 keeps the finest grid (default: %(default)s)",
    )
    add_threads(parser, TORCH_THREADS)
    parser.add_argument("--form", choices=("sequence", "step"), default="sequence", help="whole windows, or one step")
    parser.add_argument("--trace", action="store_true", help="spikes and membranes of every layer as outputs")
    parser.add_argument("--passes", type=int, default=8, help="noisy passes of the Bayesian predictive")
    parser.add_argument("--limit", type=int, help="measure on this many test samples, of all classes (default: all)")
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    return parser


def _report(done: Exported, run: str) -> str:
    collapsed, output, data = done.collapsed, done.path, done.contract.provenance.data
    lines = [f"{'synapse':<34}{'weights':>9}{'zeros':>8}{'grid':>8}{'largest sum':>13}"]
    for member in collapsed.members[:1]:
        for certificate in collapsed.certificates[: len(collapsed.certificates) // len(collapsed.members)]:
            weight = _weight(member.network, certificate.weight.removeprefix(member.prefix))
            zeros = float((weight == 0).float().mean())
            lines.append(
                f"{certificate.name.removeprefix(member.prefix):<34}{weight.numel():>9}{100 * zeros:>7.1f}%"
                f"{f'2^-{certificate.grid}':>8}{certificate.bound / UNITS:>12.3f}"
            )
    lines.append("(largest sum: in units of 2^24 grid steps; below 1, every order of additions gives the same bits)")
    lines += ["", f"{'test accuracy':<44}{'':>8}  {'95 % interval':<18}{'NLL':>8}"]
    for entry in done.contract.accuracy:
        low, high = entry.interval
        interval, way = f"{100 * low:.1f} – {100 * high:.1f} %", way_text(entry, done.contract.collapse)
        lines.append(f"{way:<44}{100 * entry.accuracy:>6.1f} %  {interval:<18}{entry.nll:>8.3f}")
    members = f", {len(collapsed.members)} members" if len(collapsed.members) > 1 else ""
    lines += ["", f"wrote {output}: {done.size:,} bytes{members}", "next:"]
    lines += [f"  {command}" for command in _next(output, collapsed.input, data)]
    lines.append(f"  axonnx verify {output} --run {run}")
    lines.append(f"  axonnx profile {output} --run {run}")
    return "\n".join(lines)


def _wrote_nir(model: str | Path, output: str, dt: float) -> str:
    from axonnx.convert.nir_out import write_nir

    return f"wrote {output}: {write_nir(model, output, dt):,} bytes, a NIR graph with time steps of {dt:g} s"


def _next(output: Path, entering: InputContract, data: str | None) -> list[str]:
    """Commands that this very file can be given to."""
    if entering.binning is None:
        source = "IMAGES.npz" if entering.steps is None else "FRAMES.npz"
        return [f"axonnx run {output} {source}   ({describe_input(entering)})", f"axonnx eval {output} --data {data}"]
    return [f"axonnx run {output} RECORDING", f"axonnx eval {output} --data {data}"]


def _weight(network: Network, name: str) -> Tensor:
    owner, _, last = name.rpartition(".")
    weight: Tensor = getattr(network.get_submodule(owner), last)
    return weight
