"""Files that were made to harm: each is refused at load by every engine, or gives the same bits in all of them."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from axonnx.base.errors import AxonnxError
from axonnx.runtime.codegen.bounds import check_rows
from axonnx.runtime.codegen.plan import Plan
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.engines.state import State
from axonnx.runtime.format.contract import METADATA_KEY
from axonnx.runtime.model import load

from .every import COMPILED, NAMES
from .hand_made import neuron_program

ENGINES = NAMES
NO_ADDRESSES = {
    "Arithmetic.a_constant", "Arithmetic.b_constant", "Arithmetic.kind", "Conv.channels", "Conv.dense_channels",
    "Conv.dense_height", "Conv.dense_width", "Conv.graded", "Conv.offsets", "Conv.old", "Conv.outputs", "Linear.graded",
    "Linear.old", "Linear.outputs", "Neurons.each", "Neurons.same", "Pool.kind",
}  # fmt: skip  # columns that choose or count; dense sizes matter where a layer has dense weights


@pytest.fixture
def changed(exported, tmp_path):
    """A file after a change to it."""

    def get(change, name="recurrent", mode="mfa", form="sequence"):
        proto = onnx.load(exported(name, mode).files[form])
        change(proto)
        path = tmp_path / "changed.onnx"
        path.write_bytes(proto.SerializeToString())
        return path

    return get


@pytest.fixture
def refused(changed):
    """What every engine says to a file after a change to it."""

    def get(change, name="recurrent", mode="mfa", form="sequence"):
        path, said = changed(change, name, mode, form), set()
        for engine in ENGINES:
            with pytest.raises(AxonnxError) as caught:
                load(path, engine)
            said.add(str(caught.value))
        (text,) = said
        return text

    return get


def step_of(proto):
    """The graph of one step, for changes in place."""
    bodies = [a.g for node in proto.graph.node for a in node.attribute if a.name == "body"]
    return bodies[0] if bodies else proto.graph


def convolution(key, values):
    def change(proto):
        node = next(node for node in step_of(proto).node if node.op_type == "Conv")
        kept = [attribute for attribute in node.attribute if attribute.name != key]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(key, values)])

    return change


def contract(change):
    def apply(proto):
        (entry,) = (entry for entry in proto.metadata_props if entry.key == METADATA_KEY)
        facts = json.loads(entry.value)
        change(facts)
        entry.value = json.dumps(facts)

    return apply


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("dilations", [1, 1, 2**45, 5]),
        ("dilations", [2**45, 1]),
        ("dilations", [0, 1]),
        ("strides", [1, 1, 1]),
        ("strides", [1]),
        ("strides", [0, 1]),
        ("strides", [-1, 1]),
        ("strides", [2**62, 2**62]),
        ("pads", [0, 0, 0, 0, 0]),
        ("pads", [1, 1]),
        ("pads", [-1, 1, 1, 1]),
        ("pads", [2**40] * 4),
        ("group", 0),
        ("group", -1),
        ("kernel_shape", [3, 3, 3]),
    ],
)
def test_numbers_of_a_convolution(key, values, refused):
    assert refused(convolution(key, values), "resnet").startswith("changed.onnx: ")


def become(state, source):
    """The next value of a state is another tensor of the step."""

    def change(proto):
        graph = step_of(proto)
        names = [value.name for value in graph.input]
        (target,) = (f"next/{name}" for name in names if name.startswith(state))
        (new,) = (name for name in (*names, *(f"next/{name}" for name in names)) if name.startswith(source))
        for node in graph.node:
            node.output[:] = [f"{name}/was" if name == target else name for name in node.output]
            node.input[:] = [f"{name}/was" if name == target else name for name in node.input]
        graph.node.append(helper.make_node("Identity", [new], [target], name=f"{target}/now"))

    return change


@pytest.mark.parametrize(
    "change",
    [
        become("membrane/readout", "total/readout"),
        become("total/readout", "membrane/readout"),
        become("membrane/readout", "membrane/readout"),
    ],
)
@pytest.mark.parametrize("form", ["sequence", "step"])
def test_states_that_become_each_other(change, form, changed, exported):
    path, x = changed(change, "mlp", form=form), exported("mlp").input(7, 3, 0.4)
    start = load(path, "numpy").run(x[:1]).state.arrays
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(0, 2, array.shape).astype(np.float32) for name, array in start.items()}
    runs = {}
    for engine in ENGINES:
        model = load(path, engine)
        from_here = model.run(x, state=State(0, arrays))
        stepped = model.stepper(model.run(x[:2]).state)
        totals = [stepped.step(frame) for frame in x[2:]][-1]
        runs[engine] = [from_here.member_logits, model.run(x).member_logits, np.array(totals)]
        runs[engine] += [from_here.state.arrays[name] for name in sorted(arrays)]
    for engine in ENGINES:
        for expected, found in zip(runs["numpy"], runs[engine], strict=True):
            assert np.array_equal(expected, found), engine


@pytest.mark.parametrize(
    "after",
    [
        {"membrane": "spikes", "spikes": "membrane"},
        {"membrane": "spikes", "spikes": "next/spikes"},
        {"membrane": "next/membrane", "spikes": "membrane"},
        {"membrane": "membrane", "spikes": "membrane"},
    ],
)
def test_states_are_taken_over_all_at_once(after):
    rng, size = np.random.default_rng(0), 20
    constants = {"decay": np.float32(0.75), "threshold": rng.normal(size=size).astype(np.float32)}
    program = replace(neuron_program("LIF", size, constants, noisy=False, stateful=True), after=after)
    state = State(0, {name: rng.integers(0, 2, (2, size)).astype(np.float32) for name in program.states})
    x = rng.integers(-3, 4, (5, 2, size)).astype(np.float32)
    expected = NumpyEngine(program).advance(state, x, {}).state.arrays
    for make in COMPILED:
        found = make(program).advance(state, x, {}).state.arrays
        assert [name for name in program.states if not np.array_equal(found[name], expected[name])] == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("grid", -2000),
        ("grid", 5000),
        ("grid", 10**400),
        ("input_bits", 10**9),
        ("input_bits", -3),
        ("bound", float("nan")),
        ("bound", float("inf")),
        ("bound", 10**400),
        ("input_max", float("nan")),
        ("input_max", -1.0),
    ],
)
def test_numbers_of_a_certificate(key, value, refused):
    def change(facts):
        facts["synapses"][0][key] = value

    assert f"synapses.0.{key}" in refused(contract(change))


def test_weights_off_a_grid_without_steps(refused):
    def change(proto):
        contract(lambda facts: facts["synapses"][0].update(grid=-2000))(proto)
        name = json.loads(next(e.value for e in proto.metadata_props if e.key == METADATA_KEY))["synapses"][0]["weight"]
        tensor = next(tensor for tensor in step_of(proto).initializer if tensor.name == name)
        noise = np.random.default_rng(0).normal(size=list(tensor.dims)).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(noise, name))

    assert "grid" in refused(change)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (key, value)
        for key in ("largest", "steps", "shift")
        for value in (10**400, 10**9, -1, 0, 1.5, float("nan"))
        if (key, value) != ("shift", 0)  # which most files have
    ],
)
def test_numbers_of_an_input(key, value, refused):
    assert f"input.{key}" in refused(contract(lambda facts: facts["input"].update({key: value})))


@pytest.mark.parametrize("bins", [10**9, 2**63, 10**400, 0, -5])
def test_bins_of_a_contract(bins, refused):
    binning = {"sensor": {"width": 23, "polarities": 1}, "bins": bins, "bin_us": 1}
    assert "bins" in refused(contract(lambda facts: facts["input"].update(binning=binning)))


def test_numbers_in_the_accuracy(refused):
    figures = {"way": "file", "right": 1, "samples": 2, "accuracy": 0.5, "interval": [0.1, 0.9], "nll": 0.7}
    odd = [
        {"samples": 10**400},
        {"samples": 0},
        {"nll": float("nan")},
        {"interval": [0.1]},
        {"way": "guessed"},
        {"later": 1},
    ]
    for change in odd:
        assert "accuracy" in refused(contract(lambda facts, change=change: facts.update(accuracy=[figures | change])))
    assert "two accuracies of 'file'" in refused(contract(lambda facts: facts.update(accuracy=[figures, figures])))


def outside(tensor):
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../weights.bin")


@pytest.mark.parametrize("place", ["step", "around it", "constant"])
def test_data_in_another_file(place, refused, tmp_path):
    (tmp_path.parent / "weights.bin").write_bytes(bytes(10**5))

    def change(proto):
        if place == "constant":
            node = helper.make_node("Constant", [], ["extra"], name="extra", value=numpy_helper.from_array(np.ones(3)))
            outside(node.attribute[0].t)
            proto.graph.node.insert(0, node)
        else:
            outside((step_of(proto) if place == "step" else proto.graph).initializer[0])

    assert "is stored in another file" in refused(change)


def test_nodes_of_one_name(refused):
    def change(proto):
        nodes = [node for node in step_of(proto).node if node.op_type == "Gemm"]
        nodes[1].name = nodes[0].name

    assert "two nodes have the name" in refused(change)


def test_layers_of_one_name(refused):
    def change(facts):
        facts["layers"][1]["name"] = facts["layers"][0]["name"]

    assert "two layers" in refused(contract(change))


def test_a_table_of_too_many_names(refused):
    def change(proto):
        proto.opset_import.add(domain="com.microsoft", version=1)

    assert "imports the operators" in refused(change)


@pytest.mark.parametrize("text", [b"hidden.0.neuron", b"ai.axonnx", b"total/readout", b"axis"])
def test_texts_that_are_none(text, exported, tmp_path):
    path = tmp_path / "changed.onnx"
    path.write_bytes(exported("mlp").path.read_bytes().replace(text, text[:-2] + b"\xff\xfe"))
    with pytest.raises(AxonnxError, match="UTF-8"):
        load(path, "numpy")


def test_a_node_that_nothing_needs(refused):
    def change(proto):
        graph = step_of(proto)
        graph.node.append(helper.make_node("Relu", [graph.input[0].name], ["unused"], name="unused"))

    assert "its result is not used" in refused(change)


def test_a_trace_that_shows_something_else(refused):
    """A membrane is computed under the name of a trace of spikes, and the state becomes the spikes."""
    membrane, spikes, trace = (f"{kind}/hidden.0.neuron" for kind in ("next/membrane", "next/spikes", "trace/spikes"))

    def change(proto):
        graph = step_of(proto)
        for node in graph.node:
            node.output[:] = [trace if name == membrane else name for name in node.output]
        graph.node.append(helper.make_node("Identity", [spikes], [membrane], name="swapped"))
        graph.output.append(next(value for value in graph.output if value.name == membrane))
        graph.output[-1].name = trace

    assert f"'{trace}' is not the trace of that layer" in refused(change, "mlp", form="step")


def test_a_step_that_reads_all_time_steps(refused):
    def change(proto):
        for node in step_of(proto).node:
            node.input[:] = ["events" if name == "events/now" else name for name in node.input]

    refused(change, "mlp")


@pytest.mark.parametrize("name", ["recurrent", "resnet", "mlp-bntt", "two-branches", "binary-resnet"])
def test_every_place_in_a_plan_is_checked(name, exported):
    """Any number of a row that is an address, moved far away, is seen before a kernel uses it."""
    plan = Plan(load(exported(name).path, "numpy").program)
    pools = plan.pools
    check_rows(plan.rows, pools, plan.tables, "as planned")
    seen, escaped = 0, set()
    for at, row in enumerate(plan.rows):
        with pytest.raises(AxonnxError, match=r"it has \d+ numbers; expected"):
            check_rows([*plan.rows[:at], (*row, 0), *plan.rows[at + 1 :]], pools, plan.tables, "wider")
        for column in range(1, len(row)):
            try:
                check_rows([(*row[:column], 2**45, *row[column + 1 :])], pools, plan.tables, "moved")
                escaped.add(f"{type(row).__name__}.{row._fields[column]}")
            except AxonnxError:
                seen += 1
    assert seen > 3 * len(plan.rows)
    unused = {f"Neurons.{side}_{n}" for side, first in (("in", 1), ("out", 1)) for n in range(first, 8)}
    readout = {"Neurons.listed", "Neurons.starts"}  # a layer that never fires has no list
    assert escaped <= NO_ADDRESSES | unused | readout


@pytest.mark.parametrize("place", ["input", "output"])
@pytest.mark.parametrize("size", [0, 1, 7])
def test_a_batch_of_a_fixed_size(place, size, refused):
    def change(proto):
        getattr(step_of(proto), place)[0].type.tensor_type.shape.dim[0].dim_value = size

    refused(change)


def test_what_onnxruntime_cannot_do_is_said_with_the_file(exported, monkeypatch):
    model = load(exported("mlp").path, "ort")
    model.run(exported("mlp").input(1, 1, 0.5))

    class Session:
        def get_outputs(self):
            return []

        def run(self, names, feeds):
            raise RuntimeError("no memory is left")

    monkeypatch.setitem(model.engine.__dict__, "_step", Session())
    with pytest.raises(AxonnxError, match=r"mlp-mfa-sequence\.onnx: onnxruntime does not run it: .* no memory is left"):
        model.run(exported("mlp").input(1, 1, 0.5))


def test_more_numbers_than_memory(refused):
    def change(proto):
        contract(lambda facts: facts["input"].update(shape=[23, 2**20, 2**20]))(proto)
        for value in (*proto.graph.input, *step_of(proto).input):
            if value.name.startswith("events"):
                value.type.tensor_type.shape.dim.add(dim_value=2**20)
                value.type.tensor_type.shape.dim.add(dim_value=2**20)
        for node in step_of(proto).node:
            node.input[:] = ["spikes/hidden.0.neuron" if name == "events/now" else name for name in node.input]
            if node.name == "hidden.0.synapse":
                node.input[1] = "hidden.0.neuron.recurrent_weight"

    refused(change)


def test_buffers_are_counted_before_they_are_made(changed, monkeypatch):
    monkeypatch.setattr("axonnx.runtime.program.compilation.MOST_ELEMENTS", 100)
    with pytest.raises(AxonnxError, match="expected at most 100"):
        load(changed(lambda proto: None), "numpy")


def test_a_constant_around_the_step_that_cannot_be_read(refused):
    def change(proto):
        node = next(node for node in proto.graph.node if node.op_type == "ConstantOfShape")
        node.attribute[0].t.float_data.append(0.0)

    assert "cannot be read" in refused(change)


@pytest.mark.parametrize(("outputs", "says"), [([], "changed"), (["again"], "two nodes have the name")])
def test_zeros_that_nobody_reads_are_refused(outputs, says, refused):
    """They go where a tool shared them: what is wrong with them must be said before."""

    def change(proto):
        zeros = next(node for node in proto.graph.node if node.op_type == "ConstantOfShape")
        proto.graph.node.insert(0, zeros)
        proto.graph.node[0].output[:] = outputs

    assert says in refused(change)
