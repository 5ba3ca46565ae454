"""``axonnx verify FILE --engines``: what can be proved on the target device, without torch and without the run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.cli.options import add_fit_options, add_result_options, fit_of, print_results
from axonnx.runtime.measure.engine_check import check_engines
from axonnx.runtime.measure.engine_inputs import from_files
from axonnx.runtime.measure.engine_result import EngineResult

EQUAL, DIFFERENT = 0, 1


def main(arguments: Sequence[str]) -> int:
    """``axonnx verify … --engines``: exit 0 when every bit is equal, 1 when one is not, 2 for wrong use."""
    options = make_parser().parse_args(arguments)
    if options.samples < 1:
        raise AxonnxError(f"--samples is {options.samples}; expected 1 or more")
    place, fit = options.data, fit_of(options)
    data = None if place is None else lambda contract: from_files(Path(place), contract, options.samples, fit)
    found = check_engines(Path(options.model), data, options.seed)
    print_results(options, [found], lambda: table(found))
    return EQUAL if found.engines == "equal" else DIFFERENT


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx verify --engines",
        description="Compare all engines on one file, bit for bit: numpy, native, onnxruntime, onnx.reference. Needs "
        "neither torch nor the run; the training network is no part of it (axonnx verify FILE --run RUN compares it).",
        allow_abbrev=False,
    )
    parser.add_argument("model", help="an exported file")
    parser.add_argument("--engines", action="store_true", required=True, help="compare engines only")
    parser.add_argument("--data", metavar="PATH", help="a recording, a folder of them, or frames (default: generated)")
    parser.add_argument("--samples", type=int, default=64, help="of the data, at the most (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of generated input and of a stochastic file's noise")
    add_fit_options(parser.add_argument_group("recordings of another sensor"))
    add_result_options(parser)
    return parser


def table(found: EngineResult) -> str:
    """What was compared, and the verdict."""
    lines = [f"{found.model}  sha256 {found.file_sha256[:16]}…"]
    if found.refusal is not None:
        return "\n".join([*lines, f"FAILED structure: {found.refusal}", NOT_COMPARED])
    data = "" if found.data_sha256 is None else f"  sha256 {found.data_sha256[:16]}…"
    lines += [f"input: {found.source}{data}", *(f"ok     {line}" for line in found.structure)]
    lines.append(f"       {found.ties:,} membranes were put exactly on their thresholds, where ≥ fires")
    lines += ["", f"{'against the numpy engine':<36}{'samples':>8}{'numbers':>14}{'differing':>11}"]
    for entry in found.implementations:
        lines.append(f"{entry.name:<36}{entry.samples:>8}{entry.numbers:>14,}{entry.differing:>11,}")
    total = sum(entry.numbers for entry in found.implementations)
    verdict = f"engines are equal: 0 differences in {total:,} numbers"
    if found.engines == "different":
        verdict = f"ENGINES DIFFER: {found.first_difference}"
    return "\n".join([*lines, "", verdict, NOT_COMPARED])


NOT_COMPARED = "the training network was not part of this: axonnx verify FILE --run RUN compares the file with it"
