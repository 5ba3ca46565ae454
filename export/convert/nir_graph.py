"""A NIR file as a flat graph: nested graphs opened up, each node with the names of what it hears."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.base.plain_text import check_names
from axonnx.runtime.readers.confined import read_tree

MOST_EDGES = 2**13
DIMENSIONS = {"Affine": 2, "Linear": 2, "Conv1d": 3, "Conv2d": 4}  # of a node's weights
SIDES = {"stride": 1, "padding": 0, "dilation": 1, "kernel_size": 1}  # of windows, with their least value
MOST_SIDE = 2**16
NO_NUMBERS = ("input_type", "output_type", "metadata")


@dataclass(frozen=True)
class FlatGraph:
    """Nodes by name, and for each the names of those it hears, in the order of the file."""

    nodes: Mapping[str, Any]
    heard: Mapping[str, tuple[str, ...]]

    def only(self, kind: str) -> str:
        """Return the one node of a kind."""
        found = [name for name, node in self.nodes.items() if type(node).__name__ == kind]
        if len(found) != 1:
            raise AxonnxError(f"the graph has {len(found)} nodes of the kind {kind}; expected one")
        return found[0]


def nir_package() -> Any:
    """Return the package nir, which reads and writes the files."""
    if find_spec("nir") is None:
        raise AxonnxError("NIR files are read by the package nir, which is not installed: pip install 'axonnx[nir]'")
    import nir

    return nir


def read_graph(path: Path) -> FlatGraph:
    """Return a file's graph. The file is decoded in a confined child; the package nir gets plain arrays.

    Raises:
        AxonnxError: If the file is not a graph of NIR, points to other files, or is larger than any network.
    """
    nir = nir_package()
    file = read_tree(path)
    _check_counts(file.members.get("node"), path)
    try:
        graph = flattened(nir.dict2NIRNode(file.members["node"] | {"type_check": True}))
    except Exception as fault:  # what the package raises on a wrong graph: assertions, KeyError, TypeError and others
        reason = str(fault) if not isinstance(fault, KeyError) else f"it has no {fault}"
        raise AxonnxError(
            f"{path}: is not a graph of NIR: {reason or type(fault).__name__}. Write it again with nir.write"
        ) from None
    check_names(graph.nodes, f"{path}: node")
    for name, node in graph.nodes.items():
        _check_numbers(node, f"{path}: {name}")
    return graph


def _check_numbers(node: Any, where: str) -> None:
    """Refuse a node whose parts are not numbers, or whose weights do not have the shape of their kind."""
    parts = {part: value for part, value in vars(node).items() if part not in NO_NUMBERS and value is not None}
    if isinstance(parts.get("padding"), str):  # "same" or "valid"
        del parts["padding"]
    for part, value in parts.items():
        numbers = np.asarray(value) if not isinstance(value, dict) else np.asarray("a group")
        if numbers.dtype.kind not in "biuf":
            raise AxonnxError(f"{where}: {part} is {str(value)[:60]!r}; expected numbers")
        if part == "groups" and not (numbers.shape == () and 1 <= numbers < MOST_SIDE):
            raise AxonnxError(f"{where}: groups is {str(value)[:60]!r}; expected one number from 1")
        if part in SIDES and not (numbers.size in (1, 2) and SIDES[part] <= numbers.min() <= numbers.max() < MOST_SIDE):
            raise AxonnxError(f"{where}: {part} is {str(value)[:60]!r}; expected one or two numbers from {SIDES[part]}")
    dimensions, shape = DIMENSIONS.get(type(node).__name__), np.shape(parts.get("weight", 0))
    if dimensions is not None and (len(shape) != dimensions or 0 in shape):
        raise AxonnxError(f"{where}: weight has the shape {list(shape)}; expected {dimensions} dimensions")
    if "bias" in parts and np.shape(parts["bias"]) not in ((), shape[:1]):
        raise AxonnxError(f"{where}: bias has the shape {list(np.shape(parts['bias']))}; expected {list(shape[:1])}")


def _check_counts(node: Any, path: Path) -> None:
    """Refuse a graph with so many edges that going through them takes minutes; inner graphs count too."""
    if not isinstance(node, dict) or node.get("type") != "NIRGraph":
        raise AxonnxError(f"{path}: holds no NIRGraph under 'node'; expected a file that nir.write has written")
    edges, waiting = 0, [node]
    while waiting:
        each = waiting.pop()
        found = each.get("edges")
        edges += len(found) if isinstance(found, list) else 0
        inner = each.get("nodes")
        waiting += [part for part in (inner.values() if isinstance(inner, dict) else ()) if isinstance(part, dict)]
    if edges > MOST_EDGES:
        raise AxonnxError(f"{path}: has {edges:,} edges; at most {MOST_EDGES:,} are accepted")


def flattened(graph: Any) -> FlatGraph:
    """Return the graph without graphs in it; inner inputs and outputs are gone."""
    nodes, edges = _opened(graph, "")
    borders = [name for name, node in nodes.items() if "." in name and type(node).__name__ in ("Input", "Output")]
    for border in borders:
        before = [one for one, other in edges if other == border]
        after = [other for one, other in edges if one == border]
        edges = [edge for edge in edges if border not in edge] + [(one, other) for one in before for other in after]
        del nodes[border]
    heard = {name: tuple(dict.fromkeys(one for one, other in edges if other == name)) for name in nodes}
    return FlatGraph(nodes, heard)


def _opened(graph: Any, prefix: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    nodes: dict[str, Any] = {}
    edges: list[tuple[str, str]] = []
    inner: dict[str, tuple[str, str]] = {}
    for name, node in graph.nodes.items():
        if hasattr(node, "nodes"):
            below, between = _opened(node, f"{prefix}{name}.")
            nodes |= below
            edges += between
            ends = [
                next((each for each, part in below.items() if type(part).__name__ == kind), None)
                for kind in ("Input", "Output")
            ]
            inner[name] = (ends[0] or "", ends[1] or "")
        else:
            nodes[prefix + name] = node
    for one, other in graph.edges:
        begin = inner[one][1] if one in inner else prefix + one
        end = inner[other][0] if other in inner else prefix + other
        edges.append((begin, end))
    return nodes, edges
