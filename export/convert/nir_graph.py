"""A NIR file as a flat graph: nested graphs opened up, each node with the names of what it hears."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from axonnx.base.errors import AxonnxError


@dataclass(frozen=True)
class FlatGraph:
    """Nodes by name, and for each the names of those it hears, in the order of the file."""

    nodes: Mapping[str, Any]
    heard: Mapping[str, tuple[str, ...]]

    def only(self, kind: str) -> str:
        """The one node of a kind."""
        found = [name for name, node in self.nodes.items() if type(node).__name__ == kind]
        if len(found) != 1:
            raise AxonnxError(f"the graph has {len(found)} nodes of the kind {kind}; expected one")
        return found[0]


def nir_package() -> Any:
    """The package nir, which reads and writes the files."""
    if find_spec("nir") is None:
        raise AxonnxError("NIR files are read by the package nir, which is not installed: pip install 'axonnx[nir]'")
    import nir

    return nir


def read_graph(path: Path) -> FlatGraph:
    """A file's graph."""
    if not path.is_file():
        raise AxonnxError(f"{path}: no such file")
    try:
        graph = nir_package().read(path)
    except AxonnxError:
        raise
    except Exception as fault:
        raise AxonnxError(f"{path}: is no NIR file that can be read: {fault}") from None
    return flattened(graph)


def flattened(graph: Any) -> FlatGraph:
    """A graph without graphs in it; inner inputs and outputs are gone."""
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
