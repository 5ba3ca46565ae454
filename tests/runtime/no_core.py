"""Numpy's passes on a machine that has the native core, to compare the two."""

from contextlib import contextmanager

import pytest

from axonnx import native

needs_core = pytest.mark.skipif(native.core() is None, reason="the package was installed without its native core")


@contextmanager
def without_core():
    """What is made in here finds no native core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "core", lambda: None)
        yield
