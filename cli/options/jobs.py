"""Options of the command line that say who does many jobs."""

from __future__ import annotations

import argparse

from axonnx.cli.options.numbers import from_one
from axonnx.jobs.running import make_pool
from axonnx.jobs.work import Pool


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
    """What the options say."""
    return make_pool(options.jobs, options.cluster)


def pool_or_none(options: argparse.Namespace) -> Pool | None:
    """The same, and None for this one process."""
    return None if options.jobs == 1 and options.cluster is None else pool_of(options)
