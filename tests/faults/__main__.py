"""``python -m tests.faults``: plant every fault and print the table; exit 1 if one escapes."""

from __future__ import annotations

import argparse
import tempfile
from importlib import import_module
from pathlib import Path

from tests.faults.bench import Bench, faults_of, tried

PARTS = ("training", "figures", "runtime", "imports", "compiled")
WIDTH = 110  # of the column that says where a fault was caught


def run() -> int:
    """Plant the faults of all parts, or of those that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be given several times")
    parser.add_argument("--name", default="", help="only faults with these words in their name")
    parser.add_argument("--quick", action="store_true", help="only those that run with every run of the tests")
    chosen = parser.parse_args()
    faults = [fault for part in chosen.part or PARTS for fault in faults_of(import_module(f"tests.faults.{part}"))]
    faults = [fault for fault in faults if chosen.name in fault.name and (fault.quick or not chosen.quick)]
    print(f"{'part':<10}{'planted':<58}{'caught':<9}where", flush=True)
    escaped = 0
    with tempfile.TemporaryDirectory(prefix="axonnx-faults-") as folder:
        bench = Bench(Path(folder))
        for fault in faults:
            found = tried(fault, bench)
            escaped += not found.caught
            told = ("passes" if fault.code == 0 else "caught") if found.caught else "ESCAPED"
            where = found.where.replace(folder, "…")
            print(f"{fault.part:<10}{fault.name:<58}{told:<9}{where[:WIDTH]}", flush=True)
    planted = sum(fault.code != 0 for fault in faults)
    print(f"{planted} planted, {len(faults) - planted} commands without a fault, {escaped} escaped or failed")
    return 1 if escaped or not planted else 0


if __name__ == "__main__":
    raise SystemExit(run())
