"""``python -m experiments NAME``: run the paper's experiments and draw what they found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from axonnx.cli.guard import FINE, guarded
from axonnx.cli.terminal_progress import Shown
from axonnx.runtime.jobs.running import pool_for
from experiments.perform import draw_again, perform
from experiments.plan import plan_names, read_plan


def main(words: Sequence[str] | None = None) -> int:
    """Run the experiments that are named. Interrupted at any moment, the same command goes on."""
    given = _parser().parse_args(words)
    return guarded("experiments", lambda: _run(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m experiments",
        description="Run the paper's experiments and draw what they found. Interrupted at any moment, the same command "
        "goes on; a second one, started beside it, shares the work.",
        epilog="Without a name, all experiments are listed; all runs every one.",
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="*", help="name of an experiment")
    parser.add_argument("-o", "--output", default="runs/experiments", help="folder of runs and records")
    parser.add_argument("--scale", choices=("cpu", "paper", "quick"), default="cpu",
                        help="cpu, paper (the sizes of the paper), or quick (seconds, on built-in data)")  # fmt: skip
    parser.add_argument("--hold-out", help="test on each of these speakers or users of the training part (all, or "
                        "1,4,…) instead of on the test part, with three seeds or more: to choose a recipe")  # fmt: skip
    parser.add_argument("--results", help="folder of tables and figures (default: OUTPUT/results/SCALE)")
    parser.add_argument("--draw", action="store_true", help="only draw table and figure again, from stored results")
    parser.add_argument("--document", help="put tables between the marks of this document")
    parser.add_argument("--jobs", default="1", help="processes on this machine, or a Dask cluster: tcp://host:8786, "
                        "or slurm:profile.yaml to start one")  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")
    return parser


def _run(given: argparse.Namespace) -> int:
    if not given.name:
        print(_listing())
        return FINE
    names = plan_names() if given.name == ["all"] else given.name
    for name in names:
        read_plan(name)  # a wrong name is told before hours of work
    tell = Shown("experiments", given.quiet).note
    for name in names:
        where = {"results": given.results, "hold_out": given.hold_out, "document": given.document}
        if given.draw:
            done = draw_again(name, given.scale, Path(given.output), **where)
        else:
            done = perform(name, given.scale, Path(given.output), tell=tell, pool=pool_for(given.jobs), **where)
        print(f"## {done.title}\n\n{done.text}\n\nrecords: {done.records}; figure: {done.figure}\n")
    return FINE


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


if __name__ == "__main__":
    sys.exit(main())
