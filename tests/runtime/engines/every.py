"""The native engine as every processor runs it that this one can stand for, and as every density would."""

from functools import partial

from axonnx.native import core
from axonnx.runtime.engines.native_engine import NativeEngine

NEVER, ALWAYS = (101,) * 4, (0,) * 4
ISAS = core().isas if core() else ()
NATIVE = [partial(NativeEngine, isa=isa) for isa in ISAS]
COMPILED = [
    *NATIVE,
    *(partial(NativeEngine, isa=isa, dense_from=dense) for isa in ISAS if isa != "plain" for dense in (NEVER, ALWAYS)),
]
NAMES = ("numpy", "ort", *(("native",) if ISAS else ()))
