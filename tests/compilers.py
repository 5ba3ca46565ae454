"""The C compiler of this machine, for tests of generated code."""

import pytest

from axonnx.runtime.doctor.findings import find_compiler

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler here; install gcc or clang")
