"""``axonnx report``: one HTML file that shows what a file is, what it does and how it came to be."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.report.facts.data import read_samples, samples_of
from axonnx.report.facts.inputs import check_belongs, read_profile, read_run, read_verify
from axonnx.report.facts.material import Material
from axonnx.report.facts.measure import Measured, Samples, Tell, measure
from axonnx.report.facts.model import ModelView, view_model
from axonnx.report.page import render
from axonnx.runtime.engines.choose import MEASURING, measuring_engine
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.measure.sample_choice import choose_samples

LIMIT = 1024  # samples run: all of most test parts
MOST_SHOWN = 20  # samples in detail


def main(arguments: Sequence[str]) -> int:
    """``axonnx report``."""
    options = make_parser().parse_args(arguments)
    _check(options)
    tell = _silent if options.quiet else _tell
    material = gather(options, tell)
    page = render(material)
    write_text(options.output, page)
    print(f"wrote {options.output}: {len(page.encode()):,} bytes; open it in a browser")
    return 0


def gather(options: argparse.Namespace, tell: Tell) -> Material:
    """Read and measure all that the options name."""
    model = view_model(options.model)
    run = read_run(options.run) if options.run else None
    verify = read_verify(options.verify) if options.verify else None
    profile = read_profile(options.profile) if options.profile else None
    for source, result in ((options.verify, verify), (options.profile, profile)):
        if result is not None:
            check_belongs(source, result, model.path)
    warnings = [*(_other_run(model.contract, Path(options.run)) if options.run else [])]
    return Material(
        model=model,
        made=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        run=run,
        verify=verify,
        profile=profile,
        measured=_measured(model, options, tell),
        warnings=tuple(warnings),
    )


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


def _check(options: argparse.Namespace) -> None:
    given = [path for path in (options.model, options.named) if path]
    if len(given) != 1:
        raise AxonnxError("which file? axonnx report model.onnx [--run RUN] [--verify verify.json] [-o report.html]")
    options.model = given[0]
    if not 0 <= options.samples <= MOST_SHOWN:
        raise AxonnxError(f"--samples is {options.samples}; expected 0 to {MOST_SHOWN}: a page has to stay small")
    if options.limit < max(1, options.samples):
        raise AxonnxError(f"--limit is {options.limit}; expected at least the {max(1, options.samples)} of --samples")
    output = Path(options.output)
    if output.is_dir():
        raise AxonnxError(f"{output}: a folder; name the file to write, e.g. {output / 'report.html'}")
    if not output.resolve().parent.is_dir():
        raise AxonnxError(f"{output}: there is no such folder; make it first")


def _measured(model: ModelView, options: argparse.Namespace, tell: Tell) -> Measured | None:
    if options.data:
        samples = read_samples(options.data, model.contract, options.limit)
    elif options.run:
        samples = _test_samples(options.run, model, options.limit)
    else:
        return None
    return measure(measuring_engine(model.program, options.engine), samples, options.samples, options.seed, tell)


def _test_samples(run: str, model: ModelView, limit: int) -> Samples:
    """Test samples of the run's data set, as integers."""
    from axonnx.train.build import prepare
    from axonnx.train.data.batches import Batches
    from axonnx.train.output.run_folder import RunFolder

    config = RunFolder(Path(run)).config()
    prepared = prepare(config.data)
    test = prepared.splits.parts["test"]
    chosen = test.subset(choose_samples(test.labels, limit))
    batches = Batches(chosen, binning=prepared.binning, shuffle=False, dtype="uint8", batch_size=64)
    parts = [np.asarray(batch.x) for batch in batches.epoch(0)]
    timed = [x.swapaxes(0, 1) for x in parts] if prepared.steps else [x[:, np.newaxis] for x in parts]
    source = f"{samples_of(len(chosen), len(test))} of the test part of {config.data.name}"
    return Samples(_fitting(np.concatenate(timed), run, model), chosen.labels, source)


def _fitting(frames: NDArray[np.integer], run: str, model: ModelView) -> NDArray[np.integer]:
    entering = model.contract.input
    expected = (entering.steps or 1, *entering.shape)
    if frames.shape[1:] != expected:
        raise AxonnxError(
            f"{run}: its samples are {list(frames.shape[1:])} and {model.path.name} takes {list(expected)}; name the "
            f"run that the file was exported from"
        )
    return frames


def _other_run(contract: Contract, run: Path) -> list[str]:
    """Says so where the run's weights are not those that the file was made of."""
    from axonnx.train.output.checkpoint import read_index

    stated, index = contract.provenance, read_index(run / "checkpoint")
    if stated.checkpoint is None or stated.checkpoint == index["files"]["weights"]["sha256"]:
        return []
    return [f"The weights in {run} are not those the file was exported from: training went on, or it is another run."]


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def _silent(line: str) -> None:
    pass
