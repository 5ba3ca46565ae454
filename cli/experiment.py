"""``axonnx experiment``: run the paper's experiments, and draw what they found."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from axonnx.base.errors import AxonnxError
from axonnx.cli.options import add_job_options, pool_of, tell_of
from axonnx.experiments.perform import draw_again, perform
from axonnx.experiments.plan import Scale, plan_names, read_plan


def main(arguments: Sequence[str]) -> int:
    """``axonnx experiment``."""
    options = make_parser().parse_args(arguments)
    if options.list:
        print(_listing())
        return 0
    if not options.names:
        raise AxonnxError("which experiment? axonnx experiment --list shows them; 'all' takes every one")
    scale: Scale = "quick" if options.quick else options.scale
    names = plan_names() if options.names == ["all"] else options.names
    for name in names:
        read_plan(name)  # a wrong name is told before hours of work
    for name in names:
        where = {"results": options.results, "hold_out": options.hold_out, "document": options.document}
        if options.draw:
            done = draw_again(name, scale, options.out, **where)
        else:
            done = perform(name, scale, options.out, tell=tell_of(options), pool=pool_of(options), **where)
        print(f"## {done.title}\n\n{done.text}\n\nrecords: {done.records}; figure: {done.figure}\n")
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx experiment",
        description="Run the paper's experiments. Interrupted at any moment, the same command goes on; a "
        "second one, started beside it, shares the work.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments, or 'all'")
    parser.add_argument("--list", action="store_true", help="show all experiments and their scales")
    parser.add_argument("--scale", choices=("cpu", "paper"), default="cpu", help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="a scale for trying it out: seconds, on embedded data")
    parser.add_argument(
        "--hold-out",
        metavar="all|1,4,…",
        help="choose a recipe: test on each of these speakers or users of the training part in turn, with three seeds "
        "or more, and not on the test part",
    )
    parser.add_argument("--out", default="runs/experiments", help="runs and records (default: %(default)s)")
    parser.add_argument("--results", help="tables' and figures' folder (default: OUT/results/SCALE)")
    parser.add_argument("--draw", action="store_true", help="only make table and figure again, from stored results")
    parser.add_argument("--document", metavar="MD", help="put tables between this document's marks")
    add_job_options(parser.add_argument_group("parallel execution"))
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    return parser


def _listing() -> str:
    lines = []
    for name in plan_names():
        plan = read_plan(name)
        lines.append(f"{name}: {plan.title}")
        lines += [
            f"    {scale:<6} {size.seeds} seeds × {len(plan.cases)} cases; {size.about}"
            for scale, size in plan.scales.items()
        ]
    return "\n".join(lines)
