"""``axonnx eval``: accuracy and calibration of an exported file on labelled data, or of a run on its own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.cli.options.fit import add_fit_options, fit_of
from axonnx.cli.options.jobs import add_job_options, pool_or_none
from axonnx.cli.options.threads import add_threads
from axonnx.cli.show.counting import watching
from axonnx.evaluating import evaluate_file
from axonnx.runtime.engines.choose import ENGINES
from axonnx.runtime.measure.evaluation import Evaluation


def main(arguments: Sequence[str]) -> int:
    """``axonnx eval``."""
    parser = make_parser()
    options, _ = parser.parse_known_args(arguments)
    if Path(options.target).is_dir() or (options.data is None and not Path(options.target).exists()):
        from axonnx.cli.train import main_eval

        return main_eval(arguments)
    options = parser.parse_args(arguments)
    if options.data is None:
        raise AxonnxError(
            f"which data? axonnx eval {options.target} --data PATH|NAME takes a folder of class folders, an npz of "
            f"frames and labels, or a data set by its name"
        )
    result = evaluate_file(
        options.target,
        options.data,
        part=options.part,
        data_root=options.data_root,
        fit=fit_of(options),
        engine=options.engine,
        threads=options.threads or 1,
        seed=options.seed,
        pool=pool_or_none(options),
        watch=watching("axonnx eval"),
    )
    if options.output:
        write_text(options.output, result.model_dump_json(indent=1))
    print(result.model_dump_json() if options.json else table(result))
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx eval",
        description="Accuracy, NLL, Brier score and calibration with 95 % intervals, and the confusion of classes: of "
        "an exported file on labelled data (all of it), or of a run folder on its own data.",
        epilog="A run folder takes --samples (noisy passes), --device, --threads and --json only.",
        allow_abbrev=False,
    )
    parser.add_argument("target", metavar="model.onnx|RUN", help="an exported file, or a run folder")
    parser.add_argument(
        "--data",
        metavar="PATH|NAME",
        help="<folder>/<class>/<recording>, an npz of frames and labels, or a data set by name (needs axonnx[train])",
    )
    parser.add_argument("--part", help="of data that has parts (default: test)")
    parser.add_argument("--data-root", help="where a data set's files are (default: as AXONNX_DATA says)")
    parser.add_argument("--engine", choices=ENGINES, default="auto", help="what computes (default: %(default)s)")
    add_threads(parser, "1 for a file, half of the processors for a run")
    parser.add_argument("--seed", type=int, default=0, help="of a stochastic file's noise and of the bootstrap")
    add_fit_options(parser.add_argument_group("recordings of another sensor"))
    add_job_options(parser.add_argument_group("who does the work (of a file)"))
    parser.add_argument("--json", action="store_true", help="everything as one JSON object")
    parser.add_argument("-o", "--output", help="also write the JSON to this file")
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


FIGURES = (("accuracy", "accuracy", 100, " %"), ("NLL", "nll", 1, ""), ("Brier", "brier", 1, ""), ("ECE", "ece", 1, ""))


def _confusion(result: Evaluation) -> list[str]:
    classes, width = result.classes, max(len(name) for name in result.classes)
    cell = max(5, 1 + max(len(str(count)) for row in result.confusion for count in row))
    head = "".join(f"{number:>{cell}}" for number in range(len(classes)))
    lines = ["confusion: true classes down, decisions across", f"{'':<{width + 5}}{head}"]
    for number, (name, row) in enumerate(zip(classes, result.confusion, strict=True)):
        lines.append(f"{number:>3}  {name:<{width}}" + "".join(f"{count or '·':>{cell}}" for count in row))
    return lines
