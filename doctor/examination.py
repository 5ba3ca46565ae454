"""``examine``: everything that decides how axonnx works here."""

from __future__ import annotations

import platform

from axonnx.doctor.engines import examine_engines
from axonnx.doctor.findings import Diagnosis
from axonnx.doctor.machine import native_core, packages, processor, programs, version
from axonnx.doctor.places import caches, data_folder, data_sets


def examine() -> Diagnosis:
    """Look at the machine, and have every engine answer small questions whose answers are known.

    Returns:
        What was found; ``well`` says whether every engine that is here gives the right bits.

    Examples:
        >>> axonnx.examine().well
        True
    """
    versions, extras = packages()
    root = data_folder()
    return Diagnosis(
        axonnx=version("axonnx") or "not installed",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=platform.platform(),
        packages=versions,
        extras=extras,
        processor=processor(),
        programs=programs(),
        core=native_core(),
        engines=examine_engines(),
        caches=caches(),
        data_root=None if root is None else str(root),
        data=data_sets(root),
    )
