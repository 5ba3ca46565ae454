"""The audit at a small size, and that it can fail. All of it: ``python -m tests.faults``."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.faults import bench
from tests.faults.bench import Bench, Ended, ends, tried

ROOT = Path(__file__).parents[2]


def test_no_quick_fault_escapes():
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--quick"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ESCAPED" not in done.stdout


@ends(1, "the place")
def a_fault_of_this_test(bench: Bench) -> Ended:
    """Nothing is planted: the command is the one that a test wants."""
    return bench.child(lambda: print("here is the place") or 1)


def test_a_fault_is_caught_only_by_its_code_and_its_place(tmp_path):
    fault = a_fault_of_this_test.fault
    table = [(fault, True), (replace(fault, code=0), False), (replace(fault, names="elsewhere"), False)]
    assert [tried(each, Bench(tmp_path)).caught for each, _ in table] == [caught for _, caught in table]


def test_a_child_that_fails_by_itself_has_caught_nothing(tmp_path):
    def fall() -> int:
        raise ValueError("the place")

    ended = Bench(tmp_path).child(fall)
    assert ended.code == bench.CRASHED
    assert "the place" in ended.text
