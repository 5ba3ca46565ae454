"""Model files that are as exported but for their contracts."""

from __future__ import annotations

import random

import onnx

from tests.fuzz.campaigns import model_files
from tests.fuzz.contract_mutations import change_contract
from tests.fuzz.harness import shared_folder
from tests.fuzz.oracle import judge

NAME = "contracts"
setup = model_files.setup


def material(seed: int) -> bytes:
    """The file of a case."""
    rng = random.Random(seed)
    proto = onnx.ModelProto.FromString(rng.choice(list(model_files._SAMPLES.values())))
    change_contract(rng, proto)
    return bytes(proto.SerializeToString())


def case(seed: int) -> str:
    """Refused, or the same bits everywhere."""
    path = shared_folder() / "case.onnx"
    path.write_bytes(material(seed))
    return judge(path)
