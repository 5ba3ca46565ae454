"""Every benchmark, one after the other, each in an interpreter of its own; arguments go to all of them."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def names() -> list[str]:
    """The modules here that can be run."""
    return sorted(path.stem for path in HERE.glob("*.py") if '__name__ == "__main__"' in path.read_text("utf-8"))


def main() -> int:
    runs = [name for name in names() if name != "__main__"]
    codes = [
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]], check=False).returncode
        for name in runs
    ]
    return max(codes, default=0)


if __name__ == "__main__":
    raise SystemExit(main())
