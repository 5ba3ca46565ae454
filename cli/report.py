"""``axonnx report``: one HTML file that shows what a file is, what it does and how it came to be."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from axonnx.base.errors import AxonnxError
from axonnx.cli.options import call, tell_of
from axonnx.reporting import LIMIT, report_file
from axonnx.runtime.engines.choose import MEASURING


def main(arguments: Sequence[str]) -> int:
    """``axonnx report``."""
    options = make_parser().parse_args(arguments)
    given = [path for path in (options.model, options.named) if path]
    if len(given) != 1:
        raise AxonnxError("which file? axonnx report model.onnx [--run RUN] [--verify verify.json] [-o report.html]")
    page = call(report_file, options, model=given[0], tell=tell_of(options))
    print(f"wrote {page}: {page.stat().st_size:,} bytes; open it in a browser")
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx report",
        description="Write one HTML file that needs no network: verdict, samples from events to decisions, training, "
        "layers, energy, provenance. What is not named is left out, with the command that makes it.",
        allow_abbrev=False,
    )
    parser.add_argument("model", nargs="?", help="an exported file")
    parser.add_argument("--model", dest="named", metavar="FILE", help="the same")
    parser.add_argument("--run", help="the run folder it was exported from: training curves and test samples")
    parser.add_argument("--data", metavar="NPZ", help="samples to run instead: frames [N, T, C, H, W] and labels [N]")
    parser.add_argument("--verify", metavar="JSON", help="what axonnx verify -o wrote")
    parser.add_argument("--profile", metavar="JSON", help="what axonnx profile -o wrote")
    parser.add_argument("--samples", type=int, default=6, help="samples shown in detail (default: %(default)s)")
    parser.add_argument(
        "--limit", type=int, default=LIMIT, help="samples run for confusion and calibration (default: %(default)s)"
    )
    parser.add_argument("--engine", choices=MEASURING, default="auto", help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the noise of stochastic files")
    parser.add_argument("-o", "--output", default="report.html", help="the file to write (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    return parser
