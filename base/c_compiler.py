"""The C compiler of this machine."""

from __future__ import annotations

import os
import shutil
from functools import cache


@cache
def find_compiler() -> str | None:
    """The C compiler: $CC, or cc, gcc or clang; None where there is none."""
    given = os.environ.get("CC")
    for name in [given] if given else ["cc", "gcc", "clang"]:
        found = shutil.which(name)
        if found is not None:
            return found
    return None
