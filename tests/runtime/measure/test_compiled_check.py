"""Compiled code against its file: what is equal, what is found and where, and what proves nothing."""

import json
import shutil

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.compiling import compile_to
from axonnx.runtime.measure import compiled_check, compiled_targets
from axonnx.runtime.measure.compiled_check import check_compiled
from axonnx.runtime.measure.engine_result import CompiledResult
from axonnx.runtime.measure.samples import open_samples

from ...compilers import needs_compiler
from ..codegen.js.node import needs_node
from ..deploy.firmware import needs_board
from ..streams.small_models import export_all

KINDS = ("plain", "merged", "recurrent", "clocked", "noisy", "binary", "first", "certain", "frames", "images")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return export_all(tmp_path_factory.mktemp("exported"))


@pytest.fixture(autouse=True)
def _one_machine(monkeypatch):
    """Other processors have a test of their own."""
    runners_of = compiled_targets.runners_of
    monkeypatch.setattr(compiled_check, "runners_of", lambda target: runners_of(target)[:1])


def checked(path, folder, target: str, data=None, edit=None) -> CompiledResult:
    made = compile_to(path, folder / target, target).folder
    for name, old, new in edit or ():
        text = (made / name).read_text("utf-8")
        assert old in text
        (made / name).write_text(text.replace(old, new, 1), "utf-8")
    return check_compiled(path, made, data)


def assert_equal(found: CompiledResult) -> None:
    assert found.failures == ()
    assert found.first_difference is None
    assert found.verified
    traced, shipped = found.implementations
    assert traced.spikes > 0
    assert traced.decisions >= shipped.decisions > 0
    assert all(count > 0 for count in found.fired.values())


@needs_node
@pytest.mark.parametrize("name", KINDS)
def test_javascript_is_equal(files, tmp_path, name):
    assert_equal(checked(files[name], tmp_path, "js"))


@needs_compiler
@pytest.mark.parametrize("name", ["plain", "noisy", "binary", "first", "certain", "frames"])
def test_c_is_equal(files, tmp_path, name):
    assert_equal(checked(files[name], tmp_path, "c"))


@needs_node
@pytest.mark.parametrize("new", ["top - total[c] < margin / 2", "top - total[c] <= 1e9"])
def test_other_sets_of_classes_in_javascript_are_found(files, tmp_path, new):
    found = checked(files["certain"], tmp_path, "js", edit=[("network.js", "top - total[c] <= margin", new)])
    assert not found.verified
    assert any("; possible are " in line for line in found.failures)


@needs_compiler
def test_other_sets_of_classes_in_c_are_found(files, tmp_path):
    edit = [("network.c", "top - total[c] <= MARGINS", "2.0 * (top - total[c]) <= MARGINS")]
    found = checked(files["certain"], tmp_path, "c", edit=edit)
    assert not found.verified
    assert any("; possible are " in line for line in found.failures)


@needs_board
@pytest.mark.parametrize("name", ["plain", "merged", "certain"])
def test_firmware_is_equal(files, tmp_path, name):
    assert_equal(checked(files[name], tmp_path, "cortex-m"))


@needs_node
def test_samples_are_run_too_and_the_result_is_json(files, tmp_path):
    frames = np.random.default_rng(1).integers(0, 4, (3, 5, 2, 6, 8))
    np.savez(tmp_path / "some.npz", frames=frames)
    data = lambda contract: open_samples(tmp_path / "some.npz", contract, labelled=False)  # noqa: E731
    found, alone = (checked(files["plain"], tmp_path, "js", given) for given in (data, None))
    assert_equal(found)
    assert [entry.samples for entry in found.implementations] == [e.samples + 3 for e in alone.implementations]
    assert found.source.startswith("3 samples of ")
    assert CompiledResult.model_validate_json(found.model_dump_json()) == found


@needs_node
def test_a_spike_that_differs_has_a_place(files, tmp_path):
    found = checked(files["plain"], tmp_path, "js", edit=[("network.js", "value * unit)", "value * unit * 1.5)")])
    first = found.first_difference
    assert not found.verified
    assert first.layer == "hidden.0.neuron"
    assert first.step is not None
    assert first.neuron
    assert " of generated input " in first.reason
    assert str(first).startswith("js, node, every spike: layer 'hidden.0.neuron', time step ")
    assert "the self-test failed" in found.failures[-1]


@needs_node
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"left", "right", "up", "down"', '"right", "up", "down", "left"', ": it says '"),
        (
            "const SELFTEST_SUM = ",
            "const SELFTEST_SUM = 1 + ",
            "as it ships: the program fails (exit 1): the self-test",
        ),
        ("function softmax(z) {", "function softmax(z) {;;(", "every spike: the program fails (exit 1): "),
    ],
)
def test_what_is_no_number_is_said_in_words(files, tmp_path, old, new, why):
    found = checked(files["plain"], tmp_path, "js", edit=[("network.js", old, new)])
    assert not found.verified
    assert any(why in line for line in found.failures)


@needs_node
def test_membranes_are_compared_where_spikes_are_equal(files, tmp_path):
    """A ten millionth is added where no neuron fires."""
    edit = [("network.js", "round(charged - reset)", "round(charged - reset) + (charged < -0.5 ? 1e-7 : 0)")]
    found = checked(files["plain"], tmp_path, "js", edit=edit)
    assert found.first_difference is None
    assert "its membranes have other bits, although every spike is equal" in found.failures[0]
    assert "layer 'hidden.0.neuron', time step " in found.failures[0]


def test_no_single_number_can_differ_unseen():
    rows = np.random.default_rng(1).standard_normal((1, 300)).astype(np.float32)
    for place in range(300):
        for bit in (0, 13, 31):
            other = rows.copy()
            other.view(np.uint32)[0, place] ^= np.uint32(1 << bit)
            assert compiled_check.sums_of(other) != compiled_check.sums_of(rows)


@needs_node
def test_a_program_that_prints_less_is_different(files, tmp_path):
    edit = [("run.mjs", "for (const layer of network.layers)", "for (const layer of network.layers.slice(1))")]
    found = checked(files["plain"], tmp_path, "js", edit=edit)
    assert "prints too few lines" in found.failures[0]


@needs_node
def test_code_of_another_file_is_different_even_if_it_is_equal(files, tmp_path):
    made = compile_to(files["plain"], tmp_path / "js", "js").folder
    record = json.loads((made / "compiled.json").read_text())
    (made / "compiled.json").write_text(json.dumps(record | {"sha256": "0" * 64}))
    found = check_compiled(files["plain"], made)
    assert found.first_difference is None
    assert "compiled from a file with the sha256 000" in found.failures[0]


@needs_node
def test_silence_proves_nothing(files, tmp_path, monkeypatch):
    crafted = compiled_check.crafted
    monkeypatch.setattr(compiled_check, "crafted", lambda program, seed: list(crafted(program, seed))[:1])
    fired = compiled_check._fired
    monkeypatch.setattr(compiled_check, "_fired", lambda *given: dict.fromkeys(fired(*given), 0))
    found = checked(files["plain"], tmp_path, "js")
    assert found.first_difference is None
    assert not found.verified
    assert "layer 'hidden.0.neuron' never fired, so nothing is proved of it" in found.failures[0]


def test_a_missing_tool_is_named(files, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(AxonnxError, match=r"node: not installed here.*apt-get install nodejs"):
        checked(files["plain"], tmp_path, "js")


def test_a_folder_of_something_else_is_refused(files, tmp_path):
    with pytest.raises(AxonnxError, match=r"is not a folder of compiled code; expected compiled\.json"):
        check_compiled(files["plain"], tmp_path)


@pytest.mark.parametrize("number", [1, 2])
def test_other_processors_are_equal(files, tmp_path, monkeypatch, number):
    runner = compiled_targets.runners_of("c")[number]
    if compiled_targets.missing(runner):
        pytest.skip(f"not installed: {', '.join(compiled_targets.missing(runner))}")
    monkeypatch.setattr(compiled_check, "runners_of", lambda _target: [runner])
    found = checked(files["plain"], tmp_path, "c")
    assert found.verified
    assert [entry.name for entry in found.implementations] == [f"c, {runner.name}, every spike"]


@needs_compiler
def test_builds_that_are_not_made_are_named(files, tmp_path, monkeypatch):
    here = compiled_targets.runners_of("c")[0]
    absent = compiled_targets._emulated("vax", "vax-dec-ultrix")
    monkeypatch.setattr(compiled_check, "runners_of", lambda _target: [here, absent])
    found = checked(files["plain"], tmp_path, "c")
    assert found.verified
    assert found.left_out == ("vax in qemu: vax-dec-ultrix-gcc, qemu-vax is not installed",)
