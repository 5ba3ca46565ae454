"""The compiled engines of this machine, and the one in C as processors run it that can do less."""

import platform
from functools import partial

from axonnx.base.c_compiler import find_compiler
from axonnx.runtime.engines.c.engine import CEngine
from axonnx.runtime.engines.numba.engine import NumbaEngine

LESS = [("-mno-avx512f",), ("-mno-avx",)] if platform.machine() in ("x86_64", "AMD64") else []
IN_C = [CEngine, *(partial(CEngine, flags=flags) for flags in LESS)] if find_compiler() else []
COMPILED = [NumbaEngine, *IN_C]
NAMES = ("numpy", "numba", "ort", *(("c",) if find_compiler() else ()))
