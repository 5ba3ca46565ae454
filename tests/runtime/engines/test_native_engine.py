"""The native engine: the same bits on every instruction set, whatever is taken together, dense or by events."""

import numpy as np
import pytest

from axonnx.runtime.codegen import rows
from axonnx.runtime.codegen.order import LEAN_SPIKES, NONE
from axonnx.runtime.engines.native_engine import NativeEngine
from axonnx.runtime.model import Model, load

from .every import ALWAYS, COMPILED, ISAS

pytestmark = pytest.mark.skipif(not ISAS, reason="axonnx was installed without its native core")
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


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_every_processor_gives_the_same_bits(name, mode, exported):
    case = exported(name, mode)
    model = load(case.path, "numpy")
    for density, graded in ((0.1, True), (0.2, False), (1.0, True)):
        x = case.input(8, 2, density)
        x = x if graded else (x > 0).astype(np.float32)
        expected = model.run(x, trace=True)
        for make in COMPILED:
            compiled = Model(model.program, make(model.program))
            traced, plain = compiled.run(x, trace=True), compiled.run(x)
            assert np.array_equal(traced.member_logits, expected.member_logits)
            assert np.array_equal(plain.member_logits, expected.member_logits)
            assert [
                key for key, trace in expected.traces.items() if not np.array_equal(traced.traces[key], trace)
            ] == []
            arrays = plain.state.arrays
            assert [key for key, value in expected.state.arrays.items() if not np.array_equal(arrays[key], value)] == []


def test_what_belongs_together_is_taken_together(exported):
    engine = NativeEngine(load(exported("recurrent").path, "numpy").program)
    joined = [turn for turn in engine.order.turns if turn[MORE] != NONE and turn[FIRE] != NONE]
    assert len(joined) == 2  # feed-forward and recurrent rows of both layers
    assert all(turn[LEAN] & LEAN_SPIKES for turn in joined)
    residual = NativeEngine(load(exported("resnet").path, "numpy").program)
    assert any(turn[FIRE] != NONE and turn[THEN] != NONE for turn in residual.order.turns)
    assert sorted(row for turn in residual.order.turns for row in turn[[ROW, MORE, FIRE, THEN]] if row >= 0) == list(
        range(len(residual.plan.rows))
    )


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("resnet", "mfa"),
        ("mlp", "mfa"),
        ("mlp-bntt", "mfa"),
        ("resnet", "stochastic"),
        ("recurrent", "mfa"),
        ("recurrent", "int8"),
        ("recurrent", "int16"),
        ("recurrent", "sampled"),
        ("recurrent", "stochastic"),
    ],
)
def test_layers_one_after_another_give_the_same_bits(name, mode, exported):
    """Over more steps than have places of their own, from a state in the middle of them, few events and many."""
    case = exported(name, mode)
    model = load(case.path, "numpy")
    compiled = Model(model.program, NativeEngine(model.program))
    assert compiled.engine.order.slots == rows.SLOTS
    for density in (0.1, 1.0):
        x = case.input(2 * rows.SLOTS + 7, 2, density)
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


@pytest.mark.parametrize("name", ["two-branches", "binary-mlp"])
def test_delayed_states_and_networks_without_time_go_step_by_step(name, exported):
    assert NativeEngine(load(exported(name).path, "numpy").program).order.slots == 1


def test_a_layer_that_feeds_back_is_one_group(exported):
    order = NativeEngine(load(exported("recurrent").path, "numpy").program).order
    taken = [order.turns[begin:end] for begin, end in zip(order.groups, order.groups[1:], strict=False)]
    joined = [group for group in taken if any(turn[MORE] != NONE and turn[FIRE] != NONE for turn in group)]
    assert len(joined) == 2  # each layer with its own recurrent synapse, and not both together
    old = {row.listed for row in order.plan.rows if isinstance(row, rows.Linear) and row.old}
    assert len(old) == 2


@pytest.mark.parametrize("isa", [isa for isa in ISAS if isa != "plain"])
def test_dense_steps_are_taken_together_only_where_they_follow_each_other(isa, exported):
    """Silent, graded and busy time steps in turn, so that tiles begin and end anywhere."""
    case = exported("recurrent", "int16")
    model = load(case.path, "numpy")
    x = (case.input(40, 2, 1.0) > 0).astype(np.float32)
    x[5] = 0.0
    x[20:23] = 0.0
    x[30, :, ::2] = 2.0
    engine = NativeEngine(model.program, dense_from=ALWAYS, isa=isa)
    found, expected = Model(model.program, engine).run(x, trace=True), model.run(x, trace=True)
    assert np.array_equal(found.member_logits, expected.member_logits)
    assert all(np.array_equal(found.traces[name], trace) for name, trace in expected.traces.items())


def test_weights_are_integers_where_the_grid_allows_it(exported):
    def stored(name, mode):
        plan = NativeEngine(load(exported(name, mode).path, "numpy").program).plan
        return {row.stored for row in plan.rows if isinstance(row, rows.Linear | rows.Conv)}

    assert stored("recurrent", "int8") == {rows.BYTES}
    assert stored("recurrent", "int16") == {rows.SHORTS}
    assert rows.FLOATS in stored("recurrent", "mfa")
