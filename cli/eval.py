"""``axonnx eval``: accuracy and calibration of an exported file on labelled data, or of a run on its own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.cli.options import (
    add_fit_options,
    add_job_options,
    add_result_options,
    add_threads,
    call,
    fit_of,
    pool_or_none,
    print_results,
)
from axonnx.cli.show.job_progress import watching
from axonnx.evaluating import evaluate_file
from axonnx.report.pictures import agreement_picture
from axonnx.runtime.engines.choose import ENGINES
from axonnx.runtime.measure.agreement import agreement_of
from axonnx.runtime.measure.evaluation import Evaluation


def main(arguments: Sequence[str]) -> int:
    """``axonnx eval``."""
    parser = make_parser()
    options, _ = parser.parse_known_args(arguments)
    target = options.targets[0]
    if Path(target).is_dir() or (options.data is None and not Path(target).exists()):
        from axonnx.cli.train import main_eval

        return main_eval(arguments)
    options = parser.parse_args(arguments)
    if options.data is None:
        raise AxonnxError(
            f"which data? axonnx eval {target} --data PATH|NAME takes a folder of class folders, an npz of "
            f"frames and labels, or a data set by its name"
        )
    results = [_evaluated(path, options) for path in options.targets]
    print_results(options, results, lambda: side_by_side(results) if results[1:] else table(results[0]))
    if options.plot:
        write_text(options.plot, agreement_picture(agreement_of(results)))
    return 0


def _evaluated(path: str, options: argparse.Namespace) -> Evaluation:
    work = {"threads": options.threads or 1, "pool": pool_or_none(options), "watch": watching("axonnx eval")}
    return call(evaluate_file, options, model=path, fit=fit_of(options), **work)


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx eval",
        description="Accuracy, NLL, Brier score and calibration with 95 % intervals, and the confusion of classes: of "
        "an exported file on labelled data (all of it), or of a run folder on its own data.",
        epilog="A run folder takes --samples (noisy passes), --device, --threads and --json only.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "targets", nargs="+", metavar="model.onnx|RUN", help="an exported file, several to compare, or a run folder"
    )
    parser.add_argument(
        "--data",
        metavar="PATH|NAME",
        help="<folder>/<class>/<recording>, an npz of frames and labels, or a data set by name (needs axonnx[train])",
    )
    parser.add_argument("--part", help="of data that has parts (default: test)")
    parser.add_argument("--data-root", help="where a data set's files are (default: as AXONNX_DATA says)")
    parser.add_argument("--engine", choices=ENGINES, default="auto", help="inference engine (default: %(default)s)")
    add_threads(parser, "1 for a file, half of the processors for a run")
    parser.add_argument("--seed", type=int, default=0, help="of a stochastic file's noise and of the bootstrap")
    add_fit_options(parser.add_argument_group("recordings of another sensor"))
    add_job_options(parser.add_argument_group("parallel execution (of a file)"))
    parser.add_argument("--plot", metavar="SVG", help="draw where several files decide alike, and where not")
    add_result_options(parser)
    return parser


def table(result: Evaluation) -> str:
    """The figures as text."""
    lines = [f"{result.model} on {result.data}: {result.samples} samples, engine {result.engine}", ""]
    for name, key, factor, unit in FIGURES:
        low, high = (factor * value for value in getattr(result.intervals, key))
        digits = 1 if unit else 3
        interval = f"{low:.{digits}f} – {high:.{digits}f}{unit}"
        lines.append(f"{name:<12}{factor * getattr(result, key):>8.{digits}f}{unit:<3} ({interval})")
    lines += ["(95 % intervals: Wilson for the accuracy, bootstrap for the others)", "", *_confusion(result)]
    if result.left_out:
        shares = ", ".join(f"{count:,} {reason}" for reason, count in result.left_out.items())
        lines += ["", f"of {result.events:,} events are in no frame: {shares}"]
    return "\n".join([*lines, *(f"note: {note}" for note in result.notes)])


def side_by_side(results: Sequence[Evaluation]) -> str:
    """Several files: their figures, and on how many samples they decide alike."""
    found = agreement_of(results)
    width = 2 + max(len(name) for name in (*found.files, "the truth"))
    lines = [f"{len(results)} files on {found.data}: {len(found.truth)} samples", ""]
    lines.append(f"{'file':<{width}}{'accuracy':>10}{'NLL':>8}{'Brier':>8}{'ECE':>8}")
    for name, result in zip(found.files, results, strict=True):
        figures = "".join(f"{value:>8.3f}" for value in (result.nll, result.brier, result.ece))
        lines.append(f"{name:<{width}}{100 * result.accuracy:>8.1f} %{figures}")
    names = (*found.files, "the truth")
    lines += ["", f"{'decide alike':<{width}}" + "".join(f"{name:>{width}}" for name in names)]
    for name, row in zip(found.files, found.alike, strict=False):
        lines.append(f"{name:<{width}}" + "".join(f"{count:>{width}}" for count in row))
    alike = len(found.truth) - len(found.disputed)
    return "\n".join([*lines, "", f"all decide alike on {alike}, and {found.wrong_alike} of these are wrong"])


FIGURES = (("accuracy", "accuracy", 100, " %"), ("NLL", "nll", 1, ""), ("Brier", "brier", 1, ""), ("ECE", "ece", 1, ""))


def _confusion(result: Evaluation) -> list[str]:
    classes, width = result.classes, max(len(name) for name in result.classes)
    cell = max(5, 1 + max(len(str(count)) for row in result.confusion for count in row))
    head = "".join(f"{number:>{cell}}" for number in range(len(classes)))
    lines = ["confusion: true classes down, decisions across", f"{'':<{width + 5}}{head}"]
    for number, (name, row) in enumerate(zip(classes, result.confusion, strict=True)):
        lines.append(f"{number:>3}  {name:<{width}}" + "".join(f"{count or '·':>{cell}}" for count in row))
    return lines
