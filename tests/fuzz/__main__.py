"""``python -m tests.fuzz``: all campaigns for so many minutes, then a table; exit 1 where anything was found."""

from __future__ import annotations

import argparse
import time

from tests.fuzz.harness import FINDINGS, load, names, revision, run, table


def main() -> int:
    """Campaigns share the time."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("campaigns", nargs="*", help=f"of {', '.join(names())}; all unless given")
    parser.add_argument("--minutes", type=float, default=10.0, help="in all")
    parser.add_argument("--cases", type=int, help="so many of each instead")
    parser.add_argument("--first", type=int, help="the first seed; by the clock unless given")
    parser.add_argument("--seed", type=int, help="one case, in this process, with its traceback")
    chosen = parser.parse_args()
    wanted = chosen.campaigns or names()
    if chosen.seed is not None:
        return _one(wanted[0], chosen.seed)
    first = int(time.time()) * 1000 if chosen.first is None else chosen.first
    share = None if chosen.cases else 60 * chosen.minutes / len(wanted)
    print(f"axonnx {revision()}, seeds from {first} on", flush=True)
    results = []
    for name in wanted:
        results.append(run(name, cases=chosen.cases, seconds=share, first=first, keep=FINDINGS))
        print(table(results[-1:]) if len(results) == 1 else table(results[-1:]).splitlines()[1], flush=True)
    found = sum(len(result.findings) for result in results)
    print(f"{sum(result.cases for result in results)} cases, {found} findings" + (f", in {FINDINGS}" if found else ""))
    return 1 if found else 0


def _one(module: str, seed: int) -> int:
    campaign = load(module)
    getattr(campaign, "setup", lambda: None)()
    print(campaign.case(seed))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
