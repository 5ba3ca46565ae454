"""NIR files with damaged bytes, and with other types, shapes, numbers, names, edges and links in a valid container."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import torch

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.importing import fill
from axonnx.export.convert.nir_source import nir_source
from axonnx.export.convert.proof import compare, of_network
from axonnx.models import variant
from axonnx.models.described import DescribedNetwork
from tests.fuzz.harness import Finding, shared_folder
from tests.fuzz.numbers import damage, integer, real

NAME = "NIR files"
DT = 1e-3
TEXTS = ("", "LIF", "Affine", "Conv2d", "NIRGraph", "Input", "os", "a" * 300, "a\nb", "\x1b[2J", "../x", "é", "x.y")
SHAPES = ((), (0,), (1,), (3, 4), (4, 3), (1, 1, 1), (2, 2, 2, 2), (2, 1, 3, 3))
_SAMPLES: dict[str, bytes] = {}


def setup() -> None:
    """Three graphs, as the package nir writes them."""
    folder = shared_folder() / "nir"
    if not folder.exists():
        folder.mkdir()
        write_graphs(folder)
    _SAMPLES.update({path.name: path.read_bytes() for path in sorted(folder.iterdir())})


def material(seed: int) -> bytes:
    """The file of a case."""
    return _damaged(seed).read_bytes()


def case(seed: int) -> str:
    """Refused, or a network of ours with the spikes of the file's own equations."""
    path = _damaged(seed)
    try:
        source = nir_source(path, DT)
        ours = DescribedNetwork([layer.as_table() for layer in source.plan.layers], variant("sg-nbn-1"))
        ours = fill(ours, source.plan).eval()
        x = torch.ones(3, 2, *source.plan.shapes["input"])
        found = compare("case", source.observe(x), of_network(ours, x), "the layers differ")
    except AxonnxError:
        return "refused"
    if found.first is not None and not found.first.reason.startswith("rounding"):
        raise Finding(f"not the equations of the file: {found.first}")
    return "accepted"


def _damaged(seed: int) -> Path:
    rng = random.Random(seed)
    data = _SAMPLES[rng.choice(list(_SAMPLES))]
    path = shared_folder() / "case.nir"
    path.write_bytes(data)
    if rng.random() < 0.4:
        path.write_bytes(damage(rng, data))
        return path
    import h5py

    with h5py.File(path, "r+") as file:
        for _ in range(rng.choice((1, 1, 1, 2))):
            _change(rng, h5py, file)
    return path


def _change(rng: random.Random, h5py: object, file: object) -> None:
    """One change to a member of the container."""
    places: list[str] = []
    file["node"].visit(places.append)  # type: ignore[index]
    place = f"node/{rng.choice(places)}"
    member, kind = file[place], rng.randrange(6)  # type: ignore[index]
    if kind == 0:
        del file[place]  # type: ignore[attr-defined]
        return
    if kind == 1:
        file.move(place, f"{place.rpartition('/')[0]}/{rng.choice(TEXTS).replace('/', '') or 'x'}2")  # type: ignore[attr-defined]
        return
    if not hasattr(member, "shape"):
        if kind == 2:
            member["again"] = rng.choice((h5py.SoftLink("/node"), file["node"]))  # type: ignore[attr-defined,index]
        return
    value = member[()]
    del file[place]  # type: ignore[attr-defined]
    file[place] = _other(rng, value)  # type: ignore[index]


def _other(rng: random.Random, value: object) -> object:
    """Another value in the place of one: a text, an array of another type or shape, other numbers, other edges."""
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        if array.ndim != 2:
            return rng.choice(TEXTS)
        edges = [[part.decode() for part in edge] for edge in array]
        names = sorted({name for edge in edges for name in edge})
        edges[rng.randrange(len(edges))] = [rng.choice((*names, "new")), rng.choice(names)]
        return edges + edges[: rng.choice((0, 0, 1))]
    if rng.random() < 0.1:
        return rng.choice(TEXTS)
    if rng.random() < 0.3:
        return np.resize(array, rng.choice(SHAPES))
    with np.errstate(all="ignore"):
        other = array.astype(rng.choice(("<f8", "<f4", "<i8", "<f2", "u1", "?")))
        if other.size:
            new = integer(rng) if other.dtype.kind in "iub" else real(rng, float(other.flat[0]))
            wide = other.astype(np.float64)
            wide.flat[rng.randrange(wide.size)] = new
            other = wide.astype(other.dtype)
    return other


def write_graphs(folder: Path) -> None:
    """Write three graphs: dense layers with delays, maps, and a graph within a graph whose neurons hear themselves."""
    import nir

    def neurons(count: int) -> np.ndarray:
        return np.linspace(4e-3, 2e-2, count)

    rng = np.random.default_rng(0)
    one = {
        "input": nir.Input(np.array([6])),
        "first": nir.Affine(rng.standard_normal((5, 6)).astype(np.float32), np.zeros(5, np.float32)),
        "hidden": nir.LIF(neurons(5), np.full(5, 9.0), np.zeros(5), np.ones(5), v_reset=np.zeros(5)),
        "late": nir.Delay(np.full(5, 2 * DT)),
        "last": nir.Linear(rng.standard_normal((3, 5)).astype(np.float32)),
        "out": nir.CubaLIF(*(np.full(3, each) for each in (4e-3, 8e-3, 3.0, 0.0, 0.5)), w_in=np.full(3, 4.0)),
        "output": nir.Output(np.array([3])),
    }
    names = list(one)
    nir.write(folder / "dense.nir", nir.NIRGraph(one, list(itertools.pairwise(names)), type_check=False))
    two = {
        "input": nir.Input(np.array([2, 8, 8])),
        "conv": nir.Conv2d((8, 8), np.ones((4, 2, 3, 3), np.float32), 1, 1, 1, 1, np.zeros(4, np.float32)),
        "fires": nir.IF(np.ones((4, 8, 8)), np.full((4, 8, 8), 5.0)),
        "pool": nir.SumPool2d(np.array([2, 2]), np.array([2, 2]), np.array([0, 0])),
        "flat": nir.Flatten({"input": np.array([4, 4, 4])}, 0),
        "last": nir.Linear(np.ones((3, 64), np.float32)),
        "out": nir.IF(np.ones(3), np.full(3, 9.0)),
        "output": nir.Output(np.array([3])),
    }
    names = list(two)
    nir.write(folder / "maps.nir", nir.NIRGraph(two, list(itertools.pairwise(names)), type_check=False))
    ends = {"input": nir.Input(np.array([5])), "output": nir.Output(np.array([5]))}
    back = nir.Affine(rng.standard_normal((5, 5)).astype(np.float32), np.zeros(5, np.float32))
    edges = [("input", "lif"), ("lif", "back"), ("back", "lif"), ("lif", "output")]
    inner = nir.NIRGraph({**ends, "lif": nir.IF(np.ones(5), np.ones(5)), "back": back}, edges, type_check=False)
    three = {
        "input": nir.Input(np.array([6])),
        "first": one["first"],
        "inner": inner,
        "last": one["last"],
        "out": nir.LI(np.full(3, 8e-3), np.ones(3), np.zeros(3)),
        "output": nir.Output(np.array([3])),
    }
    names = list(three)
    nir.write(folder / "inner.nir", nir.NIRGraph(three, list(itertools.pairwise(names)), type_check=False))
