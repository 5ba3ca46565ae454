"""What a benchmark ran on, for its page."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

BUSY = 0.3  # of a core: other work that is noticed


def machine(*packages: str) -> str:
    """Processor, load and versions, in one line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.processor())
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    other = " The machine was busy with other work: compare ratios, not milliseconds." if load > BUSY * cores else ""
    versions = ", ".join(f"{name} {found}" for name in packages if (found := installed_version(name)))
    where = f"{model}, {cores} cores, load {load:.1f} at the start"
    return f"{where}; Python {platform.python_version()}, {versions}.{other}\n"


def installed_version(name: str) -> str | None:
    """The version of a package; None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
