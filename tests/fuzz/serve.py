"""The inside of a child: ``python -m tests.fuzz.serve MODULE BYTES`` answers each line that it reads with a line."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys
import traceback
from typing import Any, TextIO

from tests.fuzz.harness import OUTCOMES, Finding, load, shared_folder


def main(module: str, memory: int) -> None:
    """Until the input ends."""
    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a case prints is not an answer
    campaign = load(module)
    if hasattr(campaign, "setup"):
        campaign.setup()
    _limit(memory)
    _answer(answers, "ready", "")
    for line in sys.stdin:
        word, seed = line.split()
        _answer(answers, *(_case(campaign, int(seed)) if word == "case" else _material(campaign, int(seed))))


def _case(campaign: Any, seed: int) -> tuple[str, str]:
    try:
        outcome = campaign.case(seed)
    except Finding as finding:
        return "disagreement", str(finding)
    except MemoryError:
        return "memory", traceback.format_exc()
    except Exception:
        return "raw exception", traceback.format_exc()
    return (outcome, "") if outcome in OUTCOMES else ("raw exception", f"case({seed}) returned {outcome!r}")


def _material(campaign: Any, seed: int) -> tuple[str, str]:
    if not hasattr(campaign, "material"):
        return "none", ""
    try:
        (shared_folder() / "material").write_bytes(campaign.material(seed))
    except Exception:
        return "none", traceback.format_exc()
    return "material", ""


def _limit(memory: int) -> None:
    """So many bytes of address space beyond those in use, and no core files."""
    pages = int(open("/proc/self/statm").read().split()[0])  # noqa: SIM115
    most = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(answers: TextIO, kind: str, text: str) -> None:
    answers.write(json.dumps([kind, text]) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
