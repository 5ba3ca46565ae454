"""NIR files as strangers may make them: nothing of another file is read, and nothing is decoded without a budget."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.importing import import_network
from axonnx.export.convert.nir_graph import MOST_EDGES, read_graph

nir = pytest.importorskip("nir", reason="the package nir is not installed; see CONTRIBUTING.md")
h5py = pytest.importorskip("h5py")

WEIGHTS = "node/nodes/n0/weight"
SECRET = np.arange(12, dtype=np.float32) + 41


def graph(outputs=4):
    nodes = {
        "input": nir.Input(np.array([3])),
        "n0": nir.Linear(np.ones((outputs, 3), np.float32)),
        "n1": nir.IF(np.ones(outputs), np.ones(outputs)),
        "output": nir.Output(np.array([outputs])),
    }
    return nir.NIRGraph(nodes, [("input", "n0"), ("n0", "n1"), ("n1", "output")])


@pytest.fixture
def path(tmp_path):
    """Return a valid file, beside another one that holds a secret."""
    (tmp_path / "secret.bin").write_bytes(SECRET.tobytes())
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["weight"] = SECRET.reshape(4, 3)
    nir.write(tmp_path / "a.nir", graph())
    return tmp_path / "a.nir"


def replaced(path, make):
    """Put what ``make`` makes in the place of the weights."""
    with h5py.File(path, "r+") as file:
        del file[WEIGHTS]
        make(file)
    return path


def external_storage(file):
    place = [(str(Path(file.filename).with_name("secret.bin")), 0, h5py.h5f.UNLIMITED)]
    file.create_dataset(WEIGHTS, (4, 3), np.float32, external=place)


def virtual(file):
    layout = h5py.VirtualLayout((4, 3), np.float32)
    layout[:] = h5py.VirtualSource(str(Path(file.filename).with_name("secret.h5")), "weight", (4, 3))
    file.create_virtual_dataset(WEIGHTS, layout)


def external_link(file):
    file[WEIGHTS] = h5py.ExternalLink(str(Path(file.filename).with_name("secret.h5")), "weight")


def soft_link(file):
    file[WEIGHTS] = h5py.SoftLink("/version")


def bomb(file):
    file.create_dataset(WEIGHTS, (2**15, 2**15), np.float32, chunks=(2**10, 2**15), compression="gzip", fillvalue=1.0)


def circle(file):
    file[WEIGHTS] = file["node"]


def foreign_filter(file):
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk((4, 3))
    made.set_filter(32015, h5py.h5z.FLAG_OPTIONAL)
    space, where = h5py.h5s.create_simple((4, 3)), WEIGHTS.encode()
    h5py.h5d.create(file.id, where, h5py.h5t.NATIVE_FLOAT, space, made)


REFUSED = {
    external_storage: "weight is not a data set of this file: its values are stored in another one",
    virtual: "weight is not a data set of this file: its values are stored in another one",
    external_link: "weight is not a data set of this file: it is a link to weight",
    soft_link: "weight is not a data set of this file: it is a link to /version",
    bomb: r"its arrays take 4,294,[0-9,]* bytes; at most 53[0-9,]* are accepted for a file of this size",
    circle: "weight is reached twice",
    foreign_filter: "weight is compressed by filter 32015; expected gzip",
}


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
def test_what_is_stored_elsewhere_or_larger_than_the_file_is_refused(make, path):
    with pytest.raises(AxonnxError, match=f"a.nir: h5py cannot read it .*{REFUSED[make]}"):
        read_graph(replaced(path, make))


def test_the_attacks_are_real(path):
    """The package nir, which h5py reads unconfined, gives the bytes of the other files."""
    for make in (external_storage, virtual, external_link):
        found = nir.read(replaced(path, make), type_check=False)
        assert np.array_equal(found.nodes["n0"].weight.flatten(), SECRET), make.__name__


def test_a_valid_file_is_read_as_the_package_reads_it(path):
    ours, theirs = read_graph(path), nir.read(path)
    assert ours.heard["output"] == ("n1",)
    for name, node in theirs.nodes.items():
        assert type(ours.nodes[name]) is type(node)
        for part, value in vars(node).items():
            if isinstance(value, np.ndarray):
                found = getattr(ours.nodes[name], part)
                assert found.dtype == value.dtype
                assert np.array_equal(found, value)


def test_a_graph_with_too_many_edges_is_refused(path):
    with h5py.File(path, "r+") as file:
        del file["node/edges"]
        file["node/edges"] = [["input", "n0"]] * (MOST_EDGES + 1)
    with pytest.raises(AxonnxError, match=r"a.nir: has 8,193 edges; at most 8,192 are accepted"):
        read_graph(path)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("node/type", "os", "holds no NIRGraph under 'node'"),
        ("node/nodes/n0/type", "NIRNodeData", "is not a graph of NIR"),
        ("node/nodes/n0/weight", "text", "is not a graph of NIR"),
        ("node/edges", [["input", "nowhere"]], "'nowhere' which does not exist"),
    ],
)
def test_what_is_no_graph_is_refused_by_one_line(part, value, message, path):
    with h5py.File(path, "r+") as file:
        del file[part]
        file[part] = value
    with pytest.raises(AxonnxError, match=message):
        read_graph(path)


def test_a_named_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.nir")
    for action in (read_graph, lambda path: import_network(path, tmp_path / "a.onnx", dt=1e-3)):
        with pytest.raises(AxonnxError, match=r"a.nir: is a named pipe; expected a file"):
            action(tmp_path / "a.nir")


def test_a_bomb_takes_no_memory_of_this_process(path, tmp_path):
    """A file of some kilobytes that states 4 GiB: the whole import stays below what reading a valid one takes."""
    script = (
        "import resource, sys; from axonnx.export.convert.nir_graph import read_graph\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: read_graph(__import__('pathlib').Path(sys.argv[1]))\n"
        "except ValueError: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before,"
        " resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    replaced(path, bomb)
    assert path.stat().st_size < 100_000
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    own, child = map(int, done.stdout.split())
    assert own < 50_000, f"{own} KiB here"
    assert child < 300_000, f"{child} KiB in the child"
