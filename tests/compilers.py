"""The C compiler of this machine, for tests of generated code."""

import os
import shutil
from functools import cache

import pytest


@cache
def find_compiler() -> str | None:
    """$CC, or cc, gcc or clang; None where there is none."""
    given = os.environ.get("CC")
    return next(filter(None, map(shutil.which, [given] if given else ["cc", "gcc", "clang"])), None)


needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler here; install gcc or clang")
