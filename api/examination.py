"""Collect everything that decides how axonnx works on this machine."""

from __future__ import annotations

import platform

from axonnx.runtime.doctor.findings import (
    Diagnosis,
    examine_engines,
    native_core,
    packages,
    processor,
    programs,
    version,
)
from axonnx.train.data.sets.places import caches, data_folder, data_sets


def examine() -> Diagnosis:
    """Examine the machine, and run every engine on small inputs with known answers.

    Returns:
        Everything that was found; ``well`` states whether no engine is wrong.

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
