"""How many threads torch and the engines use: ``--threads``, or what leaves room for others on the machine."""

from __future__ import annotations

import argparse
import os
import sys

from axonnx.cli.options.numbers import from_one

TORCH_THREADS = "as OMP_NUM_THREADS says, or half of the processors"


def add_threads(parser: argparse.ArgumentParser, default: str) -> None:
    """``--threads N``; ``default`` says what holds without it."""
    parser.add_argument("--threads", type=from_one, metavar="N", help=f"processor threads (default: {default})")


def half_of_the_processors() -> int:
    """Half of the processors that this process may use, at least one: a thread that waits for a busy processor holds
    up all others. It does not follow the load: sums round with the number of threads, and a resumed run must not.
    """
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, usable // 2)


def set_torch_threads(threads: int | None) -> None:
    """As many threads for torch; without a number what OMP_NUM_THREADS says, else half of the processors."""
    import torch  # only verbs that train or verify have it

    if threads is None and "OMP_NUM_THREADS" in os.environ:
        return
    torch.set_num_threads(threads or half_of_the_processors())
