"""What the doctor finds: the truth where all is well, and each fault by its name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from axonnx import examination
from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.cli import tools as verb
from axonnx.examination import examine
from axonnx.native import REMEDY, Core
from axonnx.runtime.doctor import findings
from axonnx.runtime.doctor.findings import NETWORKS, Diagnosis, examine_engines
from axonnx.runtime.engines.choose import ENGINES
from axonnx.runtime.model import load
from axonnx.train.data.registry import DATA_SETS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found():
    return examine()


def test_every_engine_gives_the_known_answers(found):
    assert [engine.name for engine in found.engines] == list(ENGINES)
    here = [engine for engine in found.engines if engine.status != "missing"]  # the native core may be
    assert {"numpy", "ort", "auto"} <= {engine.name for engine in here}
    assert {(engine.status, engine.numbers, engine.differing) for engine in here} == {("equal", 45, 0)}
    assert found.well


def test_the_files_are_those_that_were_released():
    for name in NETWORKS:
        for kind in ("onnx", "npz"):
            kept = (ROOT / "tests/released/version-1" / f"{name}.{kind}").read_bytes()
            assert (ROOT / "runtime" / "doctor" / f"{name}.{kind}").read_bytes() == kept


def test_what_was_found_survives_json(found):
    assert Diagnosis.model_validate_json(found.model_dump_json()) == found
    assert found.packages["numpy"] == sys.modules["numpy"].__version__
    assert found.python.endswith(".".join(map(str, sys.version_info[:3])))
    assert {"train", "io", "serve"} <= {extra.name for extra in found.extras}
    assert 1 <= found.processor.usable <= found.processor.processors


def test_an_engine_with_a_wrong_bit_or_a_fault_is_named(monkeypatch):
    monkeypatch.setattr("axonnx.runtime.doctor.findings.find_core", lambda: "no core")

    class Wrong:
        def __init__(self, model):
            self.model = model

        def run(self, x, seed):
            result = self.model.run(x, seed=seed)
            logits = result.member_logits.copy()
            logits.view("u4")[0, 0, 0] ^= 1
            return type("Result", (), {"member_logits": logits})

    def loading(path, engine):
        if engine == "native":
            raise AxonnxError(f"axonnx was installed without its native core. {REMEDY}")
        if engine == "ort":
            raise RuntimeError("illegal instruction\nand more")
        return Wrong(load(path, "numpy")) if engine == "auto" else load(path, "numpy")

    engines = {engine.name: engine for engine in examine_engines(loading)}
    assert (engines["auto"].status, engines["auto"].differing) == ("different", 3)
    assert (engines["native"].status, engines["native"].note[:41]) == (
        "missing",
        "AxonnxError: axonnx was installed without",
    )
    assert (engines["ort"].status, engines["ort"].note) == ("failed", "RuntimeError: illegal instruction")
    assert engines["numpy"].status == "equal"


def test_a_core_that_is_there_and_fails_is_not_called_missing(monkeypatch):
    def loading(path, engine):
        if engine == "native":
            raise AxonnxError("AXONNX_ISA is 'sse9'")
        return load(path, "numpy")

    def ruled_out():
        raise AxonnxError("AXONNX_ISA is 'sse9'")

    for core in (lambda: Core(None, "plain", ("plain",)), ruled_out):
        monkeypatch.setattr("axonnx.runtime.doctor.findings.find_core", core)
        engines = {engine.name: engine for engine in examine_engines(loading)}
        assert (engines["native"].status, engines["native"].note) == ("failed", "AxonnxError: AXONNX_ISA is 'sse9'")


AVX2 = Core(None, "avx2", ("avx512", "avx2", "plain"))
BEST = "the best that this processor can run; it can also run"


@pytest.mark.parametrize(
    ("core", "isa", "said"),
    [
        (AVX2._replace(isa="avx512"), None, f"avx512, {BEST} avx2, plain"),
        (AVX2, "avx2", "avx2, named by AXONNX_ISA; it can also run avx512, plain"),
        (Core(None, "plain", ("plain",)), None, f"plain, {BEST} nothing else"),
        ("there is no compiler. Install one", None, "none: there is no compiler. Install one"),
        (AxonnxError("AXONNX_ISA is 'sse9'"), "sse9", "none: AXONNX_ISA is 'sse9'"),
    ],
)
def test_the_doctor_says_which_core_runs_and_why(found, monkeypatch, core, isa, said):
    def looked_for():
        if isinstance(core, AxonnxError):
            raise core
        return core

    monkeypatch.setattr(findings, "find_core", looked_for)
    monkeypatch.delenv("AXONNX_ISA", raising=False)
    if isa is not None:
        monkeypatch.setenv("AXONNX_ISA", isa)
    seen = findings.native_core()
    assert seen.forced == isa
    assert f"\nnative core       {said}\n" in verb.text(found.model_copy(update={"core": seen}))


def test_the_verb_prints_for_people_and_for_programs_and_says_when_an_engine_is_wrong(found, capsys, monkeypatch):
    monkeypatch.setattr(verb, "examine", lambda: found)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "engine numpy      equal: 45 numbers, bit for bit" in said
    assert said.endswith("all engines that are here give the right bits\n")
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(found.model_dump_json())
    wrong = found.engines[0].model_copy(update={"status": "different", "differing": 2})
    monkeypatch.setattr(verb, "examine", lambda: found.model_copy(update={"engines": (wrong,)}))
    assert main(["doctor"]) == 1
    assert "DIFFERENT in 2 of 45 numbers" in capsys.readouterr().out


def test_data_sets_are_found_where_their_files_are(tmp_path):
    assert set(examination.FIRST_FILES) | set(examination.BUILT_IN) == set(DATA_SETS)
    names = ["SHD/shd_train.h5", "NMNIST/Train/3/00001.bin", "MNIST/raw/train-images-idx3-ubyte.gz", "data_batch_1.bin"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    seen = {data.name: data.found for data in examination.data_sets(tmp_path)}
    there = {"shd": 0, "nmnist": 1, "mnist": 2, "cifar10": 3}
    assert {name: place for name, place in seen.items() if place not in (None, "built in")} == {
        name: str(tmp_path / names[at]) for name, at in there.items()
    }
    assert {data.found for data in examination.data_sets(None)} == {None, "built in"}


def test_caches_are_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name, size in (("events-a/x", 10), ("events-b/deep/y", 20), ("frames/z", 5)):
        (tmp_path / "axonnx" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "axonnx" / name).write_bytes(b"0" * size)
    found = {(cache.name, cache.files, cache.bytes) for cache in examination.caches()}
    assert found == {("events", 2, 30), ("frames", 1, 5)}


def test_extras_name_what_they_lack(monkeypatch):
    lines = ["numpy>=2.0", 'surely-not-there>=1; extra == "io"', 'numpy>=2.0; extra == "io"']
    monkeypatch.setattr(findings.metadata, "requires", lambda name: lines)
    versions, extras = findings.packages()
    assert [(extra.name, extra.missing) for extra in extras] == [("io", ("surely-not-there",))]
    assert set(versions) == {"numpy"}


@pytest.mark.parametrize(
    ("given", "here", "found"),
    [
        (None, {"gcc", "clang"}, "/bin/gcc"),
        (None, {"clang"}, "/bin/clang"),
        (None, set(), None),
        ("mine", {"mine", "cc"}, "/bin/mine"),
        ("mine", {"cc"}, None),
    ],
)
def test_the_compiler_is_what_cc_names_or_what_it_is_usually_called(monkeypatch, given, here, found):
    monkeypatch.delenv("CC", raising=False)
    if given is not None:
        monkeypatch.setenv("CC", given)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if name in here else None)
    assert findings.find_compiler() == found


def test_it_needs_nothing_but_what_runs_a_file():
    """The same without what training brings."""
    code = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "sklearn", "h5py", "scipy", "tonic", "safetensors", "tqdm"}:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, Refuse())
import axonnx.examination, axonnx.cli.tools
from axonnx.examination import data_sets
print(len(data_sets(None)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{len(DATA_SETS)}\n"), done.stderr
