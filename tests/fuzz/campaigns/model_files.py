"""Model files with changes at the level of protobuf messages, or of bytes."""

from __future__ import annotations

import random

from tests.fuzz.harness import shared_folder
from tests.fuzz.model_mutations import mutate
from tests.fuzz.numbers import damage
from tests.fuzz.oracle import judge
from tests.fuzz.samples import samples

NAME = "model files"
BYTES = 0.15  # share of cases that are damaged byte by byte
_SAMPLES: dict[str, bytes] = {}


def setup() -> None:
    """Samples on disk, kernels compiled: unharmed files must be accepted, all of them once."""
    _SAMPLES.update(samples())
    path, judged = shared_folder() / "unharmed.onnx", shared_folder() / "judged"
    for name, data in list(_SAMPLES.items())[: 1 if judged.exists() else None]:
        path.write_bytes(data)
        assert judge(path) == "accepted", name
    judged.touch()


def material(seed: int) -> bytes:
    """The file of a case."""
    rng = random.Random(seed)
    data = rng.choice(list(_SAMPLES.values()))
    if rng.random() < BYTES:
        return damage(rng, data, rng.choice(list(_SAMPLES.values())))
    return mutate(rng, data)


def case(seed: int) -> str:
    """Refused, or the same bits everywhere."""
    path = shared_folder() / "case.onnx"
    path.write_bytes(material(seed))
    return judge(path)
