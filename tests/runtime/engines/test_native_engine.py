"""The engine in C: networks as lesser processors run them, members by themselves, machines without a compiler."""

import numpy as np
import pytest

from axonnx.base import c_compiler
from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.runtime import load
from axonnx.runtime.engines import choose
from axonnx.runtime.engines.c import layered, library
from axonnx.runtime.engines.c.members import member_of
from axonnx.runtime.engines.c.order import LEAN_SPIKES, NONE
from axonnx.runtime.engines.table import narrow, rows
from axonnx.runtime.model import Model

from .every import IN_C

needs_compiler = pytest.mark.skipif(not IN_C, reason="no C compiler here; install gcc or clang")
CASES = [
    ("recurrent", "mfa"),
    ("recurrent", "sampled"),
    ("resnet", "mfa"),
    ("resnet-conv", "int8"),
    ("two-branches", "mfa"),
    ("recurrent", "int8"),
    ("recurrent", "int16"),
    ("resnet", "int16"),
]
ROW, MORE, FIRE, LEAN, THEN = range(5)  # of a turn


@needs_compiler
@pytest.mark.parametrize(("name", "mode"), CASES)
def test_every_processor_gives_the_same_bits(name, mode, exported):
    case = exported(name, mode)
    model = load(case.path, "numpy")
    for density, graded in ((0.1, True), (0.2, False), (1.0, True)):
        x = case.input(8, 2, density)
        x = x if graded else (x > 0).astype(np.float32)
        expected = model.run(x, trace=True)
        for make in IN_C:
            compiled = Model(model.program, make(model.program))
            traced, plain = compiled.run(x, trace=True), compiled.run(x)
            assert np.array_equal(traced.member_logits, expected.member_logits)
            assert np.array_equal(plain.member_logits, expected.member_logits)
            assert [
                key for key, trace in expected.traces.items() if not np.array_equal(traced.traces[key], trace)
            ] == []
            arrays = plain.state.arrays
            assert [key for key, value in expected.state.arrays.items() if not np.array_equal(arrays[key], value)] == []


@needs_compiler
def test_what_belongs_together_is_taken_together(exported):
    engine = IN_C[0](load(exported("recurrent").path, "numpy").program)
    joined = [turn for turn in engine.order.turns if turn[MORE] != NONE and turn[FIRE] != NONE]
    assert len(joined) == 2  # feed-forward and recurrent rows of both layers
    assert all(turn[LEAN] & LEAN_SPIKES for turn in joined)
    residual = IN_C[0](load(exported("resnet").path, "numpy").program)
    assert any(turn[FIRE] != NONE and turn[THEN] != NONE for turn in residual.order.turns)
    assert sorted(row for turn in residual.order.turns for row in turn[[ROW, MORE, FIRE, THEN]] if row >= 0) == list(
        range(len(residual.plan.rows))
    )


@needs_compiler
@pytest.mark.parametrize(
    ("name", "mode"), [("resnet", "mfa"), ("mlp", "mfa"), ("mlp-bntt", "mfa"), ("resnet", "stochastic")]
)
def test_layers_one_after_another_give_the_same_bits(name, mode, exported):
    """Over more steps than have places of their own, from a state in the middle of them, few events and many."""
    case = exported(name, mode)
    model = load(case.path, "numpy")
    compiled = Model(model.program, IN_C[0](model.program))
    assert compiled.engine.order.layered is not None
    for density in (0.1, 1.0):
        x = case.input(2 * layered.STEPS + 7, 2, density)
        expected = model.run(x, trace=True)
        first = compiled.run(x[:5])
        for found in (compiled.run(x), compiled.run(x[5:], state=first.state)):
            assert np.array_equal(found.member_logits, expected.member_logits)
            arrays = found.state.arrays
            assert [key for key, value in expected.state.arrays.items() if not np.array_equal(arrays[key], value)] == []
        traces = compiled.run(x, trace=True).traces
        assert [key for key, trace in expected.traces.items() if not np.array_equal(traces[key], trace)] == []
        counted = compiled.run(x).activity
        for name, counts in expected.activity.spikes.items():
            assert np.array_equal(counted.spikes[name], counts)
        for name, counts in expected.activity.operations.items():
            assert np.array_equal(counted.operations[name], counts)


@needs_compiler
@pytest.mark.parametrize("name", ["recurrent", "two-branches", "binary-mlp"])
def test_what_feeds_back_or_has_no_time_goes_step_by_step(name, exported):
    assert IN_C[0](load(exported(name).path, "numpy").program).order.layered is None


@needs_compiler
def test_weights_are_integers_where_the_grid_allows_it(exported):
    def stored(name, mode):
        plan = IN_C[0](load(exported(name, mode).path, "numpy").program).plan
        return {row.stored for row in plan.rows if isinstance(row, rows.Linear | rows.Conv)}

    assert stored("recurrent", "int8") == {narrow.BYTES}
    assert stored("recurrent", "int16") == {narrow.SHORTS}
    assert narrow.FLOATS in stored("recurrent", "mfa")


@needs_compiler
def test_members_go_through_time_one_after_another(exported):
    program = load(exported("recurrent", "sampled").path, "numpy").program
    assert set(member_of(program).values()) == {0, 1}
    assert len(IN_C[0](program).order.groups) == 1 + 2
    alone = load(exported("recurrent").path, "numpy").program
    assert set(member_of(alone).values()) == {0}


def test_without_a_compiler_numba_runs_and_one_line_says_so(exported, monkeypatch, capsys, tmp_path):
    case = exported("binary-mlp")
    monkeypatch.setattr(c_compiler, "find_compiler", lambda: None)
    monkeypatch.setattr(choose, "find_compiler", lambda: None)
    library.compiled.cache_clear()
    model = load(case.path)
    assert (model.engine.name, model.engine.events.name) == ("auto", "numba")
    assert [engine.name for engine in choose.compiled_engines(model.program)] == ["numba"]
    with pytest.raises(AxonnxError, match="no C compiler was found"):
        load(case.path, "c")
    np.save(tmp_path / "images.npy", np.zeros((1, 23), np.uint8))
    main(["run", str(case.path), str(tmp_path / "images.npy")])
    said = capsys.readouterr().err.splitlines()
    assert len([line for line in said if line.startswith("engine c is not used: no C compiler was found")]) == 1
