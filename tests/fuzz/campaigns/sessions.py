"""Saved sessions with other facts, other arrays and damaged bytes."""

from __future__ import annotations

import json
import random
from io import BytesIO

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.session_state import SessionState
from tests.fuzz.contract_mutations import changed
from tests.fuzz.harness import Finding, shared_folder
from tests.fuzz.numbers import damage, real
from tests.fuzz.recording_samples import some_events
from tests.fuzz.stream_runs import engines, said

NAME = "sessions"
_ENGINES: dict[str, Engine] = {}
_NATIVE: dict[str, Engine] = {}
_SAVED: dict[tuple[str, int], bytes] = {}


def setup() -> None:
    """Sessions at several places of a stream, saved."""
    _ENGINES.update(engines())
    _NATIVE.update(engines("native"))
    path = shared_folder() / "session.npz"
    for name, engine in _ENGINES.items():
        for after in (0, 10, 33, 60):
            session = Session(engine, seed=1)
            session.push(some_events()[:after])
            session.save().write(path)
            _SAVED[name, after] = path.read_bytes()


def material(seed: int) -> bytes:
    """The file of a case."""
    return _case(seed)[1]


def case(seed: int) -> str:
    """Refused, or the same bits from there on in two engines."""
    name, data = _case(seed)
    path = shared_folder() / "case.npz"
    path.write_bytes(data)
    try:
        state = SessionState.read(path)
        found = [_rest(engine, state) for engine in (_ENGINES[name], _NATIVE[name])]
    except AxonnxError:
        return "refused"
    if found[0] != found[1]:
        raise Finding("two engines go on differently")
    return "accepted"


def _rest(engine: Engine, state: SessionState) -> list[tuple[object, ...]]:
    session = Session(engine, seed=1)
    session.restore(state)
    events = some_events()
    events["t"] += 20_000
    return said(session.push(events) + session.flush())


def _case(seed: int) -> tuple[str, bytes]:
    rng = random.Random(seed)
    (name, _), data = rng.choice(list(_SAVED.items()))
    if rng.random() < 0.25:
        return name, damage(rng, data, rng.choice(list(_SAVED.values())))
    with np.load(BytesIO(data)) as found:
        arrays = dict(found)
    if rng.random() < 0.7:
        arrays["facts"] = np.array(changed(rng, str(arrays["facts"])))
        json.dumps(str(arrays["facts"]))
    else:
        key = rng.choice(list(arrays))
        arrays[key] = _other(rng, arrays[key])
    out = BytesIO()
    np.savez(out, **arrays)
    return name, out.getvalue()


def _other(rng: random.Random, array: np.ndarray) -> np.ndarray:
    kind = rng.randrange(4)
    if kind == 0:
        return np.resize(array, rng.choice([(), (0,), (2, 3), (1, *array.shape)]))
    if kind == 1 and array.dtype.kind in "if":
        return array.astype(rng.choice(("f8", "i4", "u1", ">f4")))
    other = array.copy()
    if other.size and other.dtype.kind in "if":
        with np.errstate(all="ignore"):
            other.flat[rng.randrange(other.size)] = np.float64(real(rng, float(other.flat[0]))).astype(other.dtype)
    return other
