"""Designs in Verilog, simulated by Verilator: spikes, membranes and decisions have the bits of the numpy engine."""

import shutil

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.codegen.expressions import Assignment
from axonnx.runtime.codegen.verilog.pipeline import Pipeline, Value, literal
from axonnx.runtime.deploy.fpga import up5k_files, verilog_files
from axonnx.runtime.deploy.origin import Origin
from axonnx.runtime.measure import compiled_check
from axonnx.runtime.measure.compiled_inputs import device_recording
from axonnx.runtime.measure.compiled_targets import BuiltCode, runners_of

from .networks import Maker

needs_verilator = pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed")


def dense():
    maker = Maker({"width": 6, "height": 5, "polarities": 2})
    maker.dense(20)
    maker.dense(16, threshold=9, late_taken=9, lost=5)
    return maker.program()


def recurrent():
    maker = Maker({"width": 12, "height": 1, "polarities": 1}, clip=1, origin="first", bins=5)
    maker.dense(19, recurrent=True, lift=2, threshold=40, late_taken=0, zeroed=1, round_below=0)
    maker.dense(33, recurrent=True, each=("threshold", "lost"), late_taken=0, taken=1, least=1)
    return maker.program(classes=18, each=("lost",))


def convolutional():
    maker = Maker({"width": 14, "height": 10, "polarities": 2}, downsample=2, polarity="keep", bin_us=777)
    maker.conv(5, kernel=3, stride=2, pad=1)
    maker.conv(18, kernel=2, stride=1, pad=0, threshold=8, late_taken=8)
    maker.dense(7, threshold=10, late_taken=10)
    return maker.program(classes=3)


def wide_window():
    maker = Maker({"width": 16, "height": 8, "polarities": 2}, polarity="merge", clip=255, bins=3)
    maker.conv(17, kernel=3, stride=4, pad=3, dilation=2, threshold=20, late_taken=20)
    return maker.program(classes=2)


NETWORKS = [dense, recurrent, convolutional, wide_window]


def inputs_of(program, seed=1):
    """Windows of events from few to many, of silence, and of cells beyond their limit."""
    rng, binning = np.random.default_rng(seed), program.contract.input.binning
    windows = rng.poisson(rng.choice([0.05, 0.3, 1.0, 2.0], (4, 1, 1, 1, 1)), (4, *binning.shape))
    windows[1, :2] = 0
    return device_recording("random", program.contract.input, np.minimum(windows, binning.limit), rng)


def design(program, files_of, folder):
    folder.mkdir()
    for name, text in files_of(program, Origin("0" * 64, "verilog", 0)).items():
        (folder / name).write_text(text)
    return folder


def compared(program, built):
    """What differs between a design and its network: a figure for each kind, and wrong decisions."""
    expected = compiled_check.expect(program, inputs_of(program))
    reading = compiled_check._Reading("Verilator", program, built.runner, traced=True)
    return *reading.compare(built.run([expected.given.text], all_windows=True), [expected]), expected


def simulated(folder, place):
    return BuiltCode(runners_of("verilog")[0], folder, place, traced=True)


@needs_verilator
@pytest.mark.parametrize(
    ("make", "files_of"),
    [(dense, up5k_files), (recurrent, verilog_files), (convolutional, verilog_files), (wide_window, up5k_files)],
    ids=lambda each: each.__name__,
)
def test_the_design_has_the_bits_of_the_file(make, files_of, tmp_path):
    program = make()
    built = simulated(design(program, files_of, tmp_path / "design"), tmp_path / "built")
    found, wrong, expected = compared(program, built)
    assert wrong == []
    assert found.differing == 0
    assert found.spikes > 100
    assert found.decisions == len(expected.winners)
    fired = {name: int(seen.sum()) for name, seen in expected.seen.items() if name.startswith("spikes/")}
    assert all(fired.values()), fired


def one_bit(text, row):
    """Memory contents with the last bit of one row turned."""
    lines = text.splitlines()
    lines[row] = lines[row][:-1] + f"{int(lines[row][-1], 16) ^ 1:x}"
    return "\n".join(lines) + "\n"


@needs_verilator
def test_a_wrong_bit_of_a_design_is_found(tmp_path):
    """At both ends: in the first memory that an event meets, in the last, in the bins, and in the order of a tie."""
    program = dense()
    folder = design(program, verilog_files, tmp_path / "design")
    files = {name: (folder / name).read_text() for name in ("weights.hex", "constants.hex", "network.v", "core.v")}
    last = len(files["weights.hex"].splitlines()) - 1
    faults = {
        "first weight": {"weights.hex": one_bit(files["weights.hex"], 0)},
        "last weight": {"weights.hex": one_bit(files["weights.hex"], last)},
        "bias of the read-out": {"constants.hex": one_bit(files["constants.hex"], -1)},
        "bins a microsecond long": {"network.v": files["network.v"].replace("40'sd1000", "40'sd1001")},
        "a tie stays silent": {"core.v": files["core.v"].replace("fires = v >= ", "fires = v > ")},
    }
    unchanged = simulated(folder, tmp_path / "built")
    for number, (name, changed) in enumerate(faults.items()):
        ((file, text),) = changed.items()
        assert text != files[file], name
        (folder / file).write_text(text)
        built = unchanged if file.endswith(".hex") else simulated(folder, tmp_path / f"built{number}")
        (built.place / file).write_text(text)
        found, wrong, _ = compared(program, built)
        assert found.differing or wrong, name
        for place in (folder, built.place):
            (place / file).write_text(files[file])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"late_zeroed": 1}, "also removes the input"),
        ({"op": "IntegerBurst", "most": 3}, "IntegerBurst; known are IntegerLIF"),
        ({"scale": 32}, "leaks with different scales"),
    ],
)
def test_what_has_no_form_is_refused_by_name(change, text):
    maker = Maker({"width": 4, "height": 4, "polarities": 2})
    maker.dense(8)
    maker.dense(8, **change)
    with pytest.raises(AxonnxError, match=text):
        verilog_files(maker.program(), Origin("0" * 64, "verilog", 0))


@pytest.mark.parametrize("least", [0, 1])
def test_a_leak_is_its_quotient_unless_there_is_a_least_one(least):
    """The core leaves out the comparison with the least leak if it is zero; here over all membranes of some widths."""
    v = np.arange(-600, 601)
    differing = 0
    for shift in (0, 1, 4):
        for lost in range(1, 2**shift + 1):
            for above in (0, 2**shift - 1):
                for below in (0, 2**shift - 1):
                    quotient = (v * lost + np.where(v >= 0, above, below)) >> shift
                    differing += int((quotient != np.maximum(quotient, np.minimum(v, least))).sum())
    assert (differing == 0) == (least == 0)


def test_numbers_of_a_pipeline_are_as_wide_as_they_must_be():
    pipeline = Pipeline()
    a, b = Value("a", -8, 7, 0), Value("b", 0, 100, 0)
    found = pipeline.run(
        [Assignment("sum", "Add", ("a", "b"), ""), Assignment("more", "Add", ("sum", "sum"), ""),
         Assignment("most", "Add", ("more", "b"), ""), Assignment("never", "GreaterOrEqual", ("a", "limit"), "")],
        {"a": a, "b": b, "limit": literal(8)},
    )  # fmt: skip
    assert (found["sum"].low, found["sum"].high, found["sum"].bits) == (-8, 107, 8)
    assert (found["more"].stage, found["most"].stage) == (0, 1)  # a register behind two adders
    assert found["never"].constant
    assert any(line.startswith("reg signed [7:0] b_1") for line in pipeline.lines)
