"""Options that several verbs have, and what they mean to the library."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from axonnx.base.files import write_text
from axonnx.jobs.running import make_pool
from axonnx.jobs.work import Pool
from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.streams.adapt import Crop
from axonnx.runtime.streams.fit import Fit

TORCH_THREADS = "as OMP_NUM_THREADS says, or half of the processors"

Result = TypeVar("Result")


def call(function: Callable[..., Result], options: argparse.Namespace, **given: Any) -> Result:
    """Call ``function`` with the options that have the names of its arguments; ``given`` stand in for some of them."""
    named = {name: value for name, value in vars(options).items() if name in signature(function).parameters}
    return function(**{**named, **given})


def from_zero(text: str) -> int:
    """A whole number that is not negative."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 0 on")
    return int(text)


def from_one(text: str) -> int:
    """A whole number that is positive."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 1 on")
    return int(text)


def origin(text: str) -> int | Literal["first"]:
    """Where time begins: at the first event, or at so many microseconds."""
    if text == "first":
        return "first"
    try:
        number: int | None = int(text)
    except ValueError:
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r}; expected first, or microseconds of 64 bits")
    return number


def add_result_options(parser: argparse.ArgumentParser) -> None:
    """--json and --output: how ``print_results`` gives results."""
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("-o", "--output", help="also write the JSON to this file")


def print_results(options: argparse.Namespace, results: Sequence[BaseModel], text: Callable[[], str]) -> None:
    """Print the text or the JSON of results, and write the JSON to a file if the options name one."""
    if options.output:
        write_text(options.output, _json(results, indent=1))
    print(_json(results) if options.json else text())


def _json(results: Sequence[BaseModel], indent: int | None = None) -> str:
    """One result as an object, several as a list."""
    texts = [result.model_dump_json(indent=indent) for result in results]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def tell_of(options: argparse.Namespace) -> Callable[[str], None]:
    """Where lines of progress go: to standard error, or nowhere with --quiet."""
    return (lambda line: None) if options.quiet else (lambda line: print(line, file=sys.stderr, flush=True))


def add_threads(parser: argparse.ArgumentParser, default: str) -> None:
    """``--threads N``; ``default`` says what holds without it."""
    parser.add_argument("--threads", type=from_one, metavar="N", help=f"processor threads (default: {default})")


def set_torch_threads(threads: int | None) -> None:
    """As many threads for torch; without a number what OMP_NUM_THREADS says, else half of the processors.

    A thread that waits for a busy processor holds up all others, so half are left to them. The number does not follow
    the load: sums round with the number of threads, and a resumed run must not.
    """
    import torch  # only verbs that train or verify have it

    if threads is None and "OMP_NUM_THREADS" in os.environ:
        return
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    torch.set_num_threads(threads or max(1, usable // 2))


def add_job_options(group: argparse._ArgumentGroup) -> None:
    """--jobs or --cluster."""
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--jobs",
        type=from_one,
        default=1,
        metavar="N",
        help="processes on this machine (default: 1; needs axonnx[jobs])",
    )
    which.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="a Dask cluster instead: tcp://host:8786, or slurm:profile.yaml to start one (needs axonnx[cluster])",
    )


def pool_of(options: argparse.Namespace) -> Pool:
    """The workers that the options name."""
    return make_pool(options.jobs, options.cluster)


def pool_or_none(options: argparse.Namespace) -> Pool | None:
    """The same, and None for this one process."""
    return None if options.jobs == 1 and options.cluster is None else pool_of(options)


def add_fit_options(group: argparse._ArgumentGroup) -> None:
    """--sensor, --resize or --crop, and --merge-polarities: events of another sensor on the network's."""
    group.add_argument("--sensor", type=_sensor, metavar="WxH", help="sensor size, if the file does not state it")
    fit = group.add_mutually_exclusive_group()
    fit.add_argument("--resize", action="store_true", default=None, help="scale to the network's sensor")
    fit.add_argument("--crop", type=_crop, metavar="centre|X,Y", help="cut out a part of the network's size")
    group.add_argument("--merge-polarities", action="store_true", default=None, help="all events of one polarity")


def fit_of(options: argparse.Namespace) -> Fit:
    """How the options bring events onto the network's sensor."""
    return Fit(options.sensor, bool(options.resize), options.crop, bool(options.merge_polarities))


def _numbers(text: str, separator: str, counts: tuple[int, ...], example: str) -> list[int]:
    parts = text.split(separator)
    if len(parts) not in counts or not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r}; expected numbers as in {example}")
    return [int(part) for part in parts]


def _sensor(text: str) -> Sensor:
    width, height, *polarities = _numbers(text, "x", (2, 3), "128x128, or 128x128x1 for one polarity")
    try:
        return Sensor.model_validate(
            {"width": width, "height": height} | ({"polarities": polarities[0]} if polarities else {})
        )
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; expected 1 to 65536 pixels a side, 1 or 2 polarities") from None


def _crop(text: str) -> Crop:
    if text == "centre":
        return "centre"
    left, top = _numbers(text, ",", (2,), "16,0, or centre")
    return left, top
