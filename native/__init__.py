"""The native core: plain C for several instruction sets, built with the package and loaded by ctypes.

The processor decides at run time which set is used; ``AXONNX_ISA`` chooses another one. All sets give the same bits. If
the package was installed without a compiler there is no core, and the slower engines numpy and onnxruntime run instead.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from axonnx.base.errors import AxonnxError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = Path(__file__).parent  # folder of the C sources, which ``axonnx compile`` copies too
_FILE = FOLDER / f"axonnx_core{ {'win32': '.dll', 'darwin': '.dylib'}.get(sys.platform, '.so') }"
# Without --no-cache-dir, pip would install its cached build of the package, which has no core.
_BUILD = "pip install --force-reinstall --no-deps --no-cache-dir axonnx"
_CLONE = (FOLDER.parent / "setup.py").is_file()
REMEDY = f"Install a C compiler (gcc or clang), then run: {'make core' if _CLONE else _BUILD}"


class Core(NamedTuple):
    """The loaded library, the instruction set in use, and all sets that this processor supports."""

    library: ctypes.CDLL
    isa: str
    isas: tuple[str, ...]

    def function(self, name: str, result: Any, *arguments: Any, isa: str | None = None) -> Any:
        """Return a function of the library with its types; ``isa`` selects a function that exists for every set."""
        found = getattr(self.library, f"axonnx_{name}_{isa}" if isa else f"axonnx_{name}")
        found.restype, found.argtypes = result, arguments
        return found


@cache
def find_core() -> Core | str:
    """Return the core, or the reason why there is none.

    Raises:
        AxonnxError: If ``AXONNX_ISA`` names a set that this build or this processor does not support.
    """
    if not _FILE.is_file():
        return f"axonnx was installed without its native core. {REMEDY}"
    try:
        library = ctypes.CDLL(str(_FILE))
    except OSError as fault:
        return f"{_FILE}: the native core cannot be loaded ({fault}). {REMEDY}"
    library.axonnx_isas.restype = ctypes.c_char_p
    isas = tuple(library.axonnx_isas().decode().split())
    isa = os.environ.get("AXONNX_ISA") or isas[0]
    if isa not in isas:
        raise AxonnxError(
            f"AXONNX_ISA is {isa!r}, but this processor and this build of axonnx support {', '.join(isas)}; use one of "
            f"them"
        )
    core = Core(library, isa, isas)
    if core.function("fuses", ctypes.c_int64, isa=isa)():
        return f"{_FILE}: its compiler fused products with additions, which changes results. {REMEDY}"
    return core


def core() -> Core | None:
    """Return the core, or None if the package was installed without it."""
    found = find_core()
    return found if isinstance(found, Core) else None


def find_function(name: str, result: Any, *arguments: Any) -> Any | None:
    """Return a function of the core with its types, or None if there is no core."""
    found = core()
    return None if found is None else found.function(name, result, *arguments)


def address_of(array: NDArray[Any]) -> int:
    """Return the address of an array; a writable array's buffer gives it three times faster than numpy does."""
    if array.size and array.flags.writeable:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]  # an array is a buffer
    return int(array.ctypes.data)


def needed_core() -> Core:
    """Return the core; if there is none, raise an error that says what to do."""
    found = find_core()
    if isinstance(found, str):
        raise AxonnxError(found)
    return found
