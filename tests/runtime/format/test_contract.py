"""Names in a file are plain text: a file with others is refused when it is loaded, and none can be written."""

import json

import onnx
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.runtime.format.contract import METADATA_KEY, read_contract
from axonnx.runtime.model import load

from ..streams.conftest import environment, files, one_thread, real

__all__ = ["environment", "files", "one_thread", "real"]

ODD = ["a\nverified: 0 mismatches", "\x1b[2J\x1b[1A", "\u202egnp.exe", "\x00", "a" * 257]
PLACES = [("classes", 0), ("layers", 0, "name"), ("synapses", 0, "weight"), ("input", "name"), ("provenance", "data")]


def contract_of(path):
    (entry,) = (entry for entry in onnx.load(path).metadata_props if entry.key == METADATA_KEY)
    return json.loads(entry.value)


def changed(facts, place, value):
    *above, last = place
    holder = facts
    for key in above:
        holder = holder[key]
    holder[last] = value
    return json.dumps(facts)


@pytest.mark.parametrize("name", ODD, ids=["newline", "escape", "bidi", "zero", "long"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])
def test_a_name_that_is_not_plain_text_is_refused(name, place, files):
    facts = contract_of(files["plain"])
    read_contract(changed(facts, place, "fine"), "a.onnx")
    if (place[0], len(name)) == ("provenance", 257):
        return  # a path may be long
    with pytest.raises(AxonnxError, match=r"a.onnx: cannot read its contract: .*(holds U\+|at most 256)") as fault:
        read_contract(changed(facts, place, name), "a.onnx")
    assert str(fault.value).isprintable()


def test_a_configuration_may_have_lines(files):
    facts = contract_of(files["plain"])
    read_contract(changed(facts, ("provenance", "config"), "a = 1\n\tb = 2\n"), "a.onnx")
    with pytest.raises(AxonnxError, match="holds U"):
        read_contract(changed(facts, ("provenance", "config"), "a = 1\n\x1b"), "a.onnx")


def test_the_command_line_refuses_such_a_file_by_one_plain_line(files, tmp_path, capsys):
    proto = onnx.load(files["plain"])
    facts = contract_of(files["plain"])
    for entry in proto.metadata_props:
        if entry.key == METADATA_KEY:
            entry.value = changed(facts, ("classes", 0), "yes\x1b[1A\nverified")
    onnx.save(proto, tmp_path / "a.onnx")
    assert main(["inspect", str(tmp_path / "a.onnx")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err[:-1].isprintable()
    with pytest.raises(AxonnxError, match=r"classes.0"):
        load(tmp_path / "a.onnx")
