"""The native core: plain C that is built with the package, in several instruction sets, and loaded by ctypes.

The processor decides at run time which set runs; ``AXONNX_ISA`` names another one. All of them give the same bits.
Where the package was installed without a compiler there is no core: numpy and onnxruntime do the work, more slowly.
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

FOLDER = Path(__file__).parent  # of the C sources, which ``axonnx compile`` ships too
_FILE = FOLDER / f"axonnx_core{ {'win32': '.dll', 'darwin': '.dylib'}.get(sys.platform, '.so') }"
# Without --no-cache-dir, pip would take the package from its cache as it was built before: without the core.
_BUILD = "pip install --force-reinstall --no-deps --no-cache-dir axonnx"
_CLONE = (FOLDER.parent / "setup.py").is_file()
REMEDY = f"Install a C compiler (gcc or clang), then run: {'make core' if _CLONE else _BUILD}"


class Core(NamedTuple):
    """The loaded library, the instruction set that is used, and all that this processor could run."""

    library: ctypes.CDLL
    isa: str
    isas: tuple[str, ...]

    def function(self, name: str, result: Any, *arguments: Any, isa: str | None = None) -> Any:
        """A function of the library with its types; ``isa``: of those that there are for every instruction set."""
        found = getattr(self.library, f"axonnx_{name}_{isa}" if isa else f"axonnx_{name}")
        found.restype, found.argtypes = result, arguments
        return found


@cache
def find_core() -> Core | str:
    """The core, or why there is none.

    Raises:
        AxonnxError: If ``AXONNX_ISA`` names a set that this build or this processor does not have.
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
        raise AxonnxError(f"AXONNX_ISA is {isa!r}; this processor and this build of axonnx have {', '.join(isas)}")
    core = Core(library, isa, isas)
    if core.function("fuses", ctypes.c_int64, isa=isa)():
        return f"{_FILE}: its compiler fused products with additions, which changes results. {REMEDY}"
    return core


def core() -> Core | None:
    """The core, or None where the package was installed without it."""
    found = find_core()
    return found if isinstance(found, Core) else None


def find_function(name: str, result: Any, *arguments: Any) -> Any | None:
    """A function of the core with its types, or None where there is no core."""
    found = core()
    return None if found is None else found.function(name, result, *arguments)


def address_of(array: NDArray[Any]) -> int:
    """Where an array begins; by a buffer where it can be, in a third of the time that numpy's own way takes."""
    if array.size and array.flags.writeable:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]  # an array is a buffer
    return int(array.ctypes.data)


def needed_core() -> Core:
    """The core; an error that says what to do where there is none."""
    found = find_core()
    if isinstance(found, str):
        raise AxonnxError(found)
    return found
