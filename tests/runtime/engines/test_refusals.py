"""Files that were cut, edited or written by others: each is refused at load, with the reason."""

import json

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.contract import METADATA_KEY
from axonnx.runtime.model import load


@pytest.fixture
def refused(exported, tmp_path):
    """Load a file after a change to it and return what was said."""

    def get(change, name="recurrent", mode="mfa", form="sequence"):
        proto = onnx.load(exported(name, mode).files[form])
        change(proto)
        path = tmp_path / "changed.onnx"
        path.write_bytes(proto.SerializeToString())
        with pytest.raises(AxonnxError) as caught:
            load(path, "numpy")
        assert str(caught.value).startswith("changed.onnx: ")
        return str(caught.value)

    return get


def body_of(proto):
    scan = next((node for node in proto.graph.node if node.op_type == "Scan"), None)
    return proto.graph if scan is None else helper.get_node_attr_value(scan, "body")


def in_body(proto):
    """The Scan's body for changes in place."""
    for node in proto.graph.node:
        for attribute in node.attribute:
            if attribute.name == "body":
                return attribute.g
    return proto.graph


def change_constant(proto, name, change):
    for tensor in in_body(proto).initializer:
        if tensor.name == name:
            values = numpy_helper.to_array(tensor).copy()
            change(values)
            tensor.CopyFrom(numpy_helper.from_array(values, name))
            return
    raise AssertionError(name)


def change_contract(proto, change):
    for entry in proto.metadata_props:
        if entry.key == METADATA_KEY:
            facts = json.loads(entry.value)
            change(facts)
            entry.value = json.dumps(facts)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_file_cut_short(share, exported, tmp_path):
    data = exported("recurrent").path.read_bytes()
    path = tmp_path / "cut.onnx"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(AxonnxError, match=r"cut\.onnx: "):
        load(path, "numpy")


@pytest.mark.parametrize("data", [b"", b"not a model", b"\x89PNG\r\n\x1a\n" * 9, bytes(1000)])
def test_what_is_no_onnx_file(data, tmp_path):
    path = tmp_path / "other.onnx"
    path.write_bytes(data)
    with pytest.raises(AxonnxError, match=r"other\.onnx: \d+ bytes"):
        load(path, "numpy")


def test_no_file_at_all(tmp_path):
    with pytest.raises(AxonnxError, match="cannot be read: No such file"):
        load(tmp_path / "none.onnx")


def test_a_later_version_of_an_operator(refused):
    def change(proto):
        proto.opset_import[1].version = 3

    text = refused(change)
    assert "is ai.axonnx::LIF version 3; expected version 1. Upgrade axonnx, or export the network again" in text


def test_another_opset(refused):
    def change(proto):
        proto.opset_import[0].version = 13

    assert "opset 13; expected opset 20" in refused(change)


def test_an_operator_of_ours_that_is_not_known(refused):
    def change(proto):
        next(node for node in in_body(proto).node if node.op_type == "LIF").op_type = "Izhikevich"

    assert "is the unknown operator ai.axonnx::Izhikevich; known operators are" in refused(change)


def test_someone_elses_operator(refused):
    def change(proto):
        in_body(proto).node[0].domain = "com.microsoft"

    assert "com.microsoft::Gemm" in refused(change)


def test_an_edited_body_with_another_tie_rule(refused):
    def change(proto):
        body = next(function for function in proto.functions if function.name == "LIF")
        next(node for node in body.node if node.op_type == "GreaterOrEqual").op_type = "Greater"

    assert "its body of ai.axonnx::LIF is not that of version 1" in refused(change)


def test_a_missing_body(refused):
    def change(proto):
        del proto.functions[:]

    assert "without their bodies" in refused(change)


def test_no_contract(refused):
    def change(proto):
        del proto.metadata_props[:]

    assert "0 contracts under 'axonnx'" in refused(change)


def test_a_contract_of_another_format(refused):
    assert "cannot read its contract: format" in refused(
        lambda proto: change_contract(proto, lambda facts: facts.update(format=9))
    )


@pytest.mark.parametrize("form", ["sequence", "step"])
def test_a_weight_off_the_grid_is_named_with_its_place(form, refused):
    def change(proto):
        change_constant(proto, "hidden.1.synapse.weight", lambda w: w.__setitem__((2, 3), np.float32(0.1)))

    text = refused(change, form=form)
    assert "synapse 'hidden.1.synapse': its weight [2, 3] is 0.1" in text
    assert "not a multiple of 2^-" in text


def test_a_bias_off_the_grid(refused):
    def change(proto):
        change_constant(proto, "readout.bias", lambda b: b.__setitem__(1, np.float32(1 / 3)))

    assert "synapse 'readout': its bias [1] is 0.333" in refused(change)


def test_a_weight_on_the_grid_but_too_large(refused):
    def change(proto):
        change_constant(proto, "hidden.0.synapse.weight", lambda w: w.__setitem__((0, 0), np.float32(4096)))

    assert "A weight or bias was changed" in refused(change)


def test_a_weight_that_makes_the_certificate_too_small(refused):
    def change(proto):
        change_contract(proto, lambda facts: facts["synapses"][-1].update(bound=1.0))

    assert "states 1." in refused(change)


def test_recurrent_synapses_are_bound_together(refused):
    def change(proto):
        def halve(facts):
            for stated in facts["synapses"]:
                stated["bound"] *= 0.85

        change_contract(proto, halve)

    assert " and " in refused(change)


def test_a_certificate_for_smaller_inputs_than_the_contract_admits(refused):
    def change(proto):
        change_contract(proto, lambda facts: facts["input"].update(largest=200))

    assert "is certified for inputs up to 3 with 0 fractional bits" in refused(change)


def test_integer_weights_are_checked_as_the_floats_they_stand_for(refused):
    def change(proto):
        change_constant(proto, "readout.weight/step", lambda step: step.__setitem__((), np.float32(0.3)))

    assert "synapse 'readout': its weight" in refused(change, mode="int8")


def test_weights_that_are_not_finite(refused):
    def change(proto):
        change_constant(proto, "readout.weight", lambda w: w.__setitem__((0, 0), np.nan))

    assert "'readout.weight' holds numbers that are not finite" in refused(change)


def test_an_operator_that_cannot_stand_in_a_step(refused):
    def change(proto):
        body = in_body(proto)
        lif = next(node for node in body.node if node.op_type == "LIF")
        softmax = helper.make_node("Softmax", [lif.input[0]], ["soft"], name="soft")
        lif.input[0] = "soft"
        body.node.insert(list(body.node).index(lif), softmax)

    text = refused(change)
    assert (
        "node 'soft' (Softmax): this operator is not allowed in a step; allowed are AdaptiveLIF, Add, AveragePool"
        in text
    )


def test_attributes_that_are_not_known(refused):
    def change(proto):
        gemm = next(node for node in in_body(proto).node if node.op_type == "Gemm")
        gemm.attribute.append(helper.make_attribute("alpha", 2.0))

    assert "(Gemm): attributes" in refused(change)


def test_results_that_were_changed_outside_the_step(refused):
    def change(proto):
        division = next(node for node in proto.graph.node if node.op_type == "Div")
        division.op_type = "Mul"

    assert "outside its step, 'logits/0' is Mul(final/total/readout, steps); expected Div" in refused(change)


def test_states_that_do_not_begin_at_zero(refused):
    def change(proto):
        first = next(node for node in proto.graph.node if node.op_type == "ConstantOfShape")
        first.attribute[0].t.CopyFrom(helper.make_tensor("one", onnx.TensorProto.FLOAT, [1], [1.0]))

    assert "outside its step" in refused(change)


def test_an_ensembles_results_that_were_changed(refused):
    def change(proto):
        next(node for node in proto.graph.node if node.op_type == "ReduceMean").op_type = "ReduceSum"

    assert "'probabilities' is ReduceSum(member_probabilities, axis_members); expected ReduceMean" in refused(
        change, mode="sampled"
    )


def test_a_pool_over_real_numbers(refused):
    def change(proto):
        body = in_body(proto)
        pool = next(node for node in body.node if node.op_type == "AveragePool")
        conv = next(node for node in body.node if node.op_type == "Add")
        pool.input[0] = conv.output[0]

    assert "(AveragePool)" in refused(change, name="resnet")


def test_a_synapse_on_real_numbers(refused):
    def change(proto):
        body = in_body(proto)
        gemms = [node for node in body.node if node.name == "hidden.1.synapse"]
        gemms[0].input[0] = "next/membrane/hidden.0.neuron"

    assert "synapse 'hidden.1.synapse' receives real numbers of any size" in refused(change)


def test_a_contract_that_forgets_a_state(refused):
    def change(proto):
        change_contract(proto, lambda facts: facts["layers"][0].update(states=[]))

    assert "its contract states the states" in refused(change)


def test_an_unchanged_file_is_not_refused(exported):
    for engine in ("numpy", "ort"):
        assert load(exported("recurrent").path, engine).contract.kind == "spiking"
    assert body_of(onnx.load(exported("recurrent").path)).node


def test_a_delay_line_that_is_read_by_itself(refused):
    """What it holds is known from what it is joined with; read otherwise, it could hold anything."""

    def change(proto):
        node = next(node for node in in_body(proto).node if node.name == "late/Slice")
        node.input[0] = "delayed/late"

    text = refused(change, "two-branches")
    assert "node 'late/Slice' (Slice) reads 'delayed/late', which holds graded ≤ 1, 2^-2; expected a Concat" in text
