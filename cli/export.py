"""``axonnx export``: from a run folder to one ONNX file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.cli.show.advice import advice
from axonnx.export.calibrate import SAMPLES, calibrated_thresholds
from axonnx.export.collapsed import Collapsed, CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.gap import Score, accuracy_of, measure_ways
from axonnx.export.write import build_model, write_model
from axonnx.models import Network
from axonnx.runtime.format.contract import InputContract, Measured
from axonnx.runtime.format.network_input import describe_input
from axonnx.train.trained import Trained, load_trained

Tell = Callable[[str], None]


def main(arguments: Sequence[str]) -> int:
    """``axonnx export``."""
    options = _parser().parse_args(arguments)
    _check(options)
    trained = load_trained(options.run)
    settings = CollapseSettings(options.collapse, options.members, options.seed, options.prune, options.weights)
    tell = _silent if options.quiet else _tell
    test = trained.data("test", options.limit)
    measured = Measured(samples=sum(len(labels) for _, labels in test), passes=options.passes, seed=options.seed)
    thresholds = _calibrated(trained, settings, tell) if options.calibrate else None
    collapsed = collapse_network(trained.network, trained.arriving, settings, thresholds)
    tell(f"measuring the gap on {measured.samples} test samples")
    scores = measure_ways(trained.network, collapsed, thresholds, test, measured, trained.bayesian, tell)
    contract = make_contract(
        collapsed, trained.prepared.splits.classes, options.form, accuracy_of(scores), trained.provenance(), measured
    )
    size = write_model(build_model(collapsed, contract, options.trace), options.output)
    print(_report(collapsed, scores, options.output, size, options.run, trained.config.data.name))
    if (text := advice(scores, options.collapse, options.calibrate)) is not None:
        print(f"\n{text}", file=sys.stderr)
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.members is None:
        options.members = 8 if options.collapse == "sampled" else 1
    if options.calibrate and options.collapse != "mfa":
        raise AxonnxError(
            "--calibrate makes a deterministic network fire as the noisy one did: only with --collapse mfa"
        )
    for option in ("passes", "limit"):
        if (number := getattr(options, option)) is not None and number < 1:
            raise AxonnxError(f"--{option} is {number}; expected 1 or more")
    if Path(options.output).is_dir():
        raise AxonnxError(f"{options.output}: a folder; name the file to write, e.g. {options.output}/model.onnx")
    if not Path(options.output).resolve().parent.is_dir():
        raise AxonnxError(f"{options.output}: there is no such folder; make it first")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "axonnx export",
        description="Collapse a trained posterior and write it as one ONNX file, bit-exact in every runtime.",
    )
    parser.add_argument("run", help="a run folder of axonnx train")
    parser.add_argument("-o", "--output", default="model.onnx", help="the file to write (default: %(default)s)")
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
    parser.add_argument("--weights", choices=("float32", "int16", "int8"), default="float32", help="how to store them")
    parser.add_argument("--form", choices=("sequence", "step"), default="sequence", help="whole windows, or one step")
    parser.add_argument("--trace", action="store_true", help="spikes and membranes of every layer as outputs")
    parser.add_argument("--passes", type=int, default=8, help="noisy passes of the Bayesian predictive")
    parser.add_argument("--limit", type=int, help="measure on this many test samples, of all classes (default: all)")
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    return parser


def _calibrated(trained: Trained, settings: CollapseSettings, tell: Tell) -> dict[str, Tensor]:
    if not trained.bayesian:
        raise AxonnxError("--calibrate needs a posterior; this network was trained without noise")
    inputs = [x for x, _ in trained.data("train", SAMPLES)]
    return calibrated_thresholds(trained.network, trained.arriving, settings, inputs, tell)


def _report(collapsed: Collapsed, scores: list[Score], output: str, size: int, run: str, data: str) -> str:
    lines = [f"{'synapse':<34}{'weights':>9}{'zeros':>8}{'grid':>8}{'largest sum':>13}"]
    for member in collapsed.members[:1]:
        for certificate in collapsed.certificates[: len(collapsed.certificates) // len(collapsed.members)]:
            weight = _weight(member.network, certificate.weight.removeprefix(member.prefix))
            zeros = float((weight == 0).float().mean())
            lines.append(
                f"{certificate.name.removeprefix(member.prefix):<34}{weight.numel():>9}{100 * zeros:>7.1f}%"
                f"{f'2^-{certificate.grid}':>8}{certificate.bound / 2**24:>12.3f}"
            )
    lines.append("(largest sum: in units of 2^24 grid steps; below 1, every order of additions gives the same bits)")
    lines += ["", f"{'test accuracy':<44}{'':>8}  {'95 % interval':<18}{'NLL':>8}"]
    for entry in scores:
        low, high = entry.interval
        interval = f"{100 * low:.1f} – {100 * high:.1f} %"
        lines.append(f"{entry.name:<44}{100 * entry.accuracy:>6.1f} %  {interval:<18}{entry.nll:>8.3f}")
    members = f", {len(collapsed.members)} members" if len(collapsed.members) > 1 else ""
    lines += ["", f"wrote {output}: {size:,} bytes{members}", "next:"]
    lines += [f"  {command}" for command in _next(output, collapsed.input, data)]
    lines.append(f"  axonnx verify {output} --run {run}")
    lines.append(f"  axonnx profile {output} --run {run}")
    return "\n".join(lines)


def _next(output: str, entering: InputContract, data: str) -> list[str]:
    """Commands that this very file can be given to."""
    if entering.binning is None:
        source = "IMAGES.npz" if entering.steps is None else "FRAMES.npz"
        return [f"axonnx run {output} {source}   ({describe_input(entering)})", f"axonnx eval {output} --data {data}"]
    return [f"axonnx run {output} RECORDING", f"axonnx eval {output} --data {data}"]


def _weight(network: Network, name: str) -> Tensor:
    owner, _, last = name.rpartition(".")
    weight: Tensor = getattr(network.get_submodule(owner), last)
    return weight


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def _silent(line: str) -> None:
    pass
