"""Configurations: shipped ones with other values, keys and texts, and overrides of the command line."""

from __future__ import annotations

import random
from typing import Any

import torch

from axonnx.base.errors import AxonnxError
from axonnx.cli.options import settings_of
from axonnx.train.build import Prepared, make_network, prepare
from axonnx.train.config.read import read_config, settings, shipped, to_toml
from tests.fuzz.harness import Finding, shared_folder
from tests.fuzz.numbers import FLOATS, INTEGERS, damage

NAME = "configurations"
_PREPARED: dict[str, Prepared] = {}
_TEXTS: list[str] = []
KEYS = [key for key, _, _ in settings()]
WORDS = (
    "",
    "x",
    "true",
    "[]",
    "{}",
    "[1,2]",
    "1979-05-27",
    '"',
    "[" * 2000,
    "{a={a={a=1}}}",
    "nan",
    "-inf",
    "é",
    "\0",
    "1_0",
)
DATA = ("digits-static", "digits-saccade")


def setup() -> None:
    """The data that is built in, and all shipped configurations as text."""
    for name in DATA:
        _PREPARED[name] = prepare(read_config(name).data)
    _TEXTS.extend(to_toml(read_config(name)) for name in shipped())


def material(seed: int) -> bytes:
    """File and overrides of a case."""
    text, words = _case(seed)
    return text + b"\n# " + repr(words).encode()


def case(seed: int) -> str:
    """Refused, or a configuration that is the same once written and read, and a network."""
    text, words = _case(seed)
    path = shared_folder() / "case.toml"
    path.write_bytes(text)
    try:
        config = read_config(str(path), settings_of(words))
    except AxonnxError:
        return "refused"
    path.write_text(to_toml(config), encoding="utf-8")
    if read_config(str(path)) != config:
        raise Finding("another configuration once it was written and read")
    try:
        prepared = prepare(config.data) if config.data.name in DATA and not config.data.options else None
        with torch.device("meta"):
            make_network(config, prepared or _PREPARED["digits-saccade"])
    except AxonnxError:
        return "refused"
    return "accepted"


def _case(seed: int) -> tuple[bytes, list[str]]:
    rng = random.Random(seed)
    text = rng.choice(_TEXTS).encode()
    if rng.random() < 0.4:
        text = damage(rng, text, rng.choice(_TEXTS).encode())
    words: list[str] = []
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        key = rng.choice(KEYS)
        if rng.random() < 0.1:
            key = rng.choice((key[:-1], f"{key}.more", key.partition(".")[0], "..", "data.options.sensor"))
        words += [f"--{key}={_value(rng)}"]
    if rng.random() < 0.05:
        words.append(rng.choice(("--", "-x", "stray", "--=", "--seed")))
    return text, words


def _value(rng: random.Random) -> str:
    kinds: tuple[Any, ...] = (rng.choice(INTEGERS), rng.choice(FLOATS), rng.choice(WORDS), rng.randrange(100))
    value = rng.choice(kinds)
    return f"[{value}, {rng.choice(kinds)}]" if rng.random() < 0.2 else str(value)
