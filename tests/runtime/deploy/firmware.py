"""Firmware, built by the cross compiler and run in qemu, where both are installed."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

TOOLS = ("arm-none-eabi-gcc", "qemu-system-arm", "make")
needs_board = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in TOOLS),
    reason="no cross compiler or no emulator here; install them with: apt-get install gcc-arm-none-eabi "
    "libnewlib-arm-none-eabi qemu-system-arm make",
)


def run_firmware(folder: Path, *recordings: str, cpu: str = "cortex-m4") -> str:
    """What firmware prints on recordings, which are files of its folder."""
    command = ["make", "--silent", "-C", str(folder), "run", f"CPU={cpu}", f"RECORDINGS={' '.join(recordings)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def decisions(text: str) -> list[tuple[str, np.ndarray]]:
    """For each recording the label, and the logits [members, classes]."""
    found: list[tuple[str, list]] = []
    for line in text.splitlines():
        if line.startswith("logits "):
            found[-1][1].append(np.array(line.split()[1:], np.float32))
        else:
            found.append((line.split("  (")[0], []))
    return [(label, np.stack(members)) for label, members in found]
