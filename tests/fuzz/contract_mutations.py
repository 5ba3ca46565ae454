"""Changes to the JSON of a contract: numbers out of range, kinds of values, keys, lengths, texts that are no JSON."""

from __future__ import annotations

import json
import random
from typing import Any

import onnx

from tests.fuzz.numbers import INTEGERS, integer, real

KEY = "axonnx"
TEXTS = (
    "1e400",
    "-1e999",
    "NaN",
    "Infinity",
    "1" + "0" * 400,
    "1e9",
    "-0",
    "0.1",
    "[]",
    "{}",
    "null",
    "true",
    '""',
    '"\\ud800"',
)
ODD = ("a\nverified", "\x1b[2J", "\u202egnp", "\x00", "n" * 300)


def change_contract(rng: random.Random, proto: onnx.ModelProto) -> None:
    """One change to the contract in a model's metadata."""
    for entry in proto.metadata_props:
        if entry.key == KEY:
            entry.value = changed(rng, entry.value)


def changed(rng: random.Random, text: str) -> str:
    """The text with one to three values of it changed."""
    try:
        facts = json.loads(text)
    except ValueError:
        return text
    marks: dict[str, str] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = _places(facts)
        if not places:
            break
        holder, key = rng.choice(places)
        _change(rng, holder, key, marks)
    out = json.dumps(facts)
    for mark, verbatim in marks.items():
        out = out.replace(f'"{mark}"', verbatim)
    return out if rng.random() < 0.97 else out[: rng.randrange(len(out))]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) inside a value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *_places(value[key])]]


def _change(rng: random.Random, holder: Any, key: Any, marks: dict[str, str]) -> None:
    now, kind = holder[key], rng.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.append(now)
    elif kind == 2 and isinstance(now, list):
        holder[key] = now * rng.choice((0, 2, 100))
    elif kind == 3:
        mark = f"mark{len(marks)}"
        marks[mark] = rng.choice(TEXTS)
        holder[key] = mark
    elif kind == 4 and isinstance(holder, dict):
        holder[rng.choice([*holder, "new"])] = now
    elif isinstance(now, bool) or now is None or isinstance(now, str):
        holder[key] = rng.choice([None, True, "x", "", "spiking", "binary", "step", integer(rng), *ODD])
    elif isinstance(now, int):
        holder[key] = integer(rng, now) if rng.random() < 0.7 else rng.choice((*INTEGERS, 10**30, -2000, 5000, 1.5))
    elif isinstance(now, float):
        holder[key] = real(rng, now)
