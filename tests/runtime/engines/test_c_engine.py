"""The engine in C: networks as lesser processors run them, members by themselves, machines without a compiler."""

import numpy as np
import pytest

from axonnx.base import c_compiler
from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.runtime import load
from axonnx.runtime.engines import choose
from axonnx.runtime.engines.c import library
from axonnx.runtime.engines.c.members import member_of
from axonnx.runtime.engines.c.order import LEAN_SPIKES, NONE
from axonnx.runtime.model import Model

from .every import IN_C

needs_compiler = pytest.mark.skipif(not IN_C, reason="no C compiler here; install gcc or clang")
CASES = [
    ("recurrent", "mfa"),
    ("recurrent", "sampled"),
    ("resnet", "mfa"),
    ("resnet-conv", "int8"),
    ("two-branches", "mfa"),
]
ROW, MORE, FIRE, LEAN, THEN = range(5)  # of a turn


@needs_compiler
@pytest.mark.parametrize(("name", "mode"), CASES)
def test_every_processor_gives_the_same_bits(name, mode, exported):
    case = exported(name, mode)
    model = load(case.path, "numpy")
    for density in (0.1, 1.0):
        x = case.input(8, 2, density)
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
