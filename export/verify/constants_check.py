"""Every constant of a file against the formula that the training network gives for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor

from axonnx.export.verify.deviation import Deviation, Place
from axonnx.export.verify.expected import Expected

AS_IT_IS = Place(counts=False)


def check_constants(
    proto: onnx.ModelProto,
    expected: Mapping[str, Expected],
    buffers: Mapping[str, Tensor],
    grids: Mapping[str, int],
    found: Deviation,
) -> None:
    """All of ``expected`` are there, and nothing else is but ``buffers`` of the user's own and the graph's numbers."""
    held = constants_of(proto)
    for name, entry in expected.items():
        if name in held:
            _constant(name, entry, held[name], grids, found)
        elif bool(entry.value.any()):
            found.fault(f"constant {name!r} is missing from the file")
    for name in sorted(held.keys() - expected.keys()):
        _other(name, held[name], buffers.get(name), found)


def constants_of(proto: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    """Every constant of a file's graphs by name; weights kept as integers as the numbers they stand for."""
    graphs = [proto.graph, *(a.g for node in proto.graph.node for a in node.attribute if a.HasField("g"))]
    found = {tensor.name: numpy_helper.to_array(tensor) for graph in graphs for tensor in graph.initializer}
    for name in [name for name in found if name.endswith(("/int8", "/int16"))]:
        weight = name.rpartition("/")[0]
        found[weight] = found.pop(name).astype(np.float64) * found.pop(f"{weight}/step")
    return found


def _constant(name: str, entry: Expected, held: NDArray[Any], grids: Mapping[str, int], found: Deviation) -> None:
    value = entry.value.numpy()
    found.constants += held.size
    if value.shape != held.shape:
        found.fault(f"constant {name!r} is {list(held.shape)}; the training network gives {list(value.shape)}")
    elif entry.grid_of is not None and entry.grid_of not in grids:
        found.fault(f"constant {name!r} has no certificate of its grid")
    else:
        found.judge(f"constant {name!r}", held, value, entry.tolerance(grids).numpy(), AS_IT_IS)


def _written_in_the_graph(name: str, held: NDArray[Any]) -> bool:
    """A number of the graph itself: without a layer's name, or called by its value, such as number/0.25."""
    return held.size == 1 and ("." not in name or name == f"number/{held.item()!r}")


def _other(name: str, held: NDArray[Any], own: Tensor | None, found: Deviation) -> None:
    """What training did not make: a user's own buffer, ones that sum up, or numbers of the graph itself."""
    if own is not None:
        if not np.array_equal(own.float().numpy(), held):
            found.fault(f"constant {name!r} is not the buffer of that name in the training network")
    elif name.endswith(".ones"):
        if not np.isin(held, (0.0, 1.0)).all():
            found.fault(f"constant {name!r} holds other numbers than zeros and ones")
    elif np.issubdtype(held.dtype, np.floating) and not _written_in_the_graph(name, held):
        found.fault(f"constant {name!r} is in the file; the training network has no such number")
