"""``axonnx import``: a network of another library becomes a run folder and a file. Exit 1 where they are not equal."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import get_args

from axonnx.base.errors import AxonnxError
from axonnx.cli.guard import FAILED, FINE
from axonnx.cli.options import TORCH_THREADS, add_threads, call, set_torch_threads, tell_of
from axonnx.cli.overrides import parse_overrides
from axonnx.convert.importing import IMPORTED_WEIGHTS, Imported, import_network
from axonnx.export.grid.place import Stored


def main(arguments: Sequence[str]) -> int:
    """``axonnx import``."""
    options, overrides = make_parser().parse_known_args(arguments)
    set_torch_threads(options.threads)
    done = call(
        import_network,
        options,
        settings=_flat(parse_overrides(overrides)),
        shape=_sides(options.shape),
        classes=None if options.classes is None else options.classes.split(","),
        tell=tell_of(options),
    )
    print(_report(done))
    return FINE if done.proof.equal else FAILED


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx import",
        description="Make a trained network of snnTorch, SpikingJelly, Norse or NIR one of ours: a run folder, one "
        "ONNX file and a proof, spike by spike, against the source.",
        epilog="What the network is fed: --data NAME with settings such as --data.bins 20 --data.duration_ms 300 "
        "(axonnx train --settings shows them). Without data random events take its place, labelled by the source.",
    )
    parser.add_argument("source", help="a NIR file, or 'my_network.py:make', what gives the trained torch module")
    parser.add_argument("-o", "--output", default="model.onnx", help="the file to write (default: %(default)s)")
    parser.add_argument("--run", help="the run folder to write (default: the file's name without .onnx)")
    parser.add_argument("--data", help="a data set's name, or the path of one's own data")
    parser.add_argument("--shape", metavar="CxHxW", help="of one time step, e.g. 2x34x34, where no data tells it")
    parser.add_argument("--steps", type=int, default=50, help="time steps of random input (default: %(default)s)")
    parser.add_argument("--largest", type=int, default=1, help="largest count of random input (default: %(default)s)")
    parser.add_argument("--dt", type=float, metavar="SECONDS", help="time step of a NIR file, which has time constants")
    parser.add_argument("--value", type=int, default=0, help="which of the values it returns has the classes")
    parser.add_argument("--classes", help="their names, with commas between them (random input)")
    parser.add_argument("--samples", type=int, default=64, help="samples that are compared (default: %(default)s)")
    parser.add_argument(
        "--weights",
        choices=get_args(Stored),
        default=IMPORTED_WEIGHTS,
        help="integer width of the stored weights; float32 keeps the finest grid (default: %(default)s)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the run that is there")
    add_threads(parser, TORCH_THREADS)
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    return parser


def _sides(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(side) for side in re.split("[x×,]", text)]
    except ValueError:
        raise AxonnxError(f"--shape {text!r}; expected channels, height and width, e.g. 2x34x34") from None


def _flat(tree: object, place: str = "") -> dict[str, object]:
    """Settings as dotted keys."""
    if not isinstance(tree, dict):
        return {place: tree}
    found: dict[str, object] = {}
    for key, value in tree.items():
        found |= _flat(value, f"{place}.{key}" if place else str(key))
    return found


def _report(done: Imported) -> str:
    lines = [f"{done.source}, layer by layer:"]
    lines += [f"  {name}" for name in done.layers]
    if done.notes:
        lines += ["", "assumed:", *(f"  {note}" for note in done.notes)]
    lines += ["", *done.proof.lines(), "", _verdict(done)]
    lines += [f"wrote {done.exported.path}: {done.exported.size:,} bytes; run folder: {done.folder}", "next:"]
    lines += [f"  axonnx {verb} {done.exported.path} --run {done.folder}" for verb in ("verify", "profile", "report")]
    return "\n".join(lines)


def _verdict(done: Imported) -> str:
    proof = done.proof
    if proof.same_weights.equal and proof.imported.equal:
        count = proof.same_weights
        return f"equal: {count.spikes:,} spikes and {count.samples} decisions, in both comparisons"
    if proof.equal:
        return "equal but for rounding: where spikes differ, the first was that close to its threshold"
    return "NOT EQUAL: the import does not do what its source does"
