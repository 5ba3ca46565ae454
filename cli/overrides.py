"""``--section.key value`` on the command line, as settings."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from datetime import date, time
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.train.config.read import Tree, Whole, as_tree


def parse_overrides(words: Sequence[str]) -> Tree:
    """``["--optimiser.epochs", "3", "--data.values=binary"]`` as a tree."""
    return as_tree(pairs(words))


def pairs(words: Sequence[str], many: bool = False) -> dict[str, Any]:
    """Return settings by name; of a sweep, which has ``many`` values of each, as lists."""
    found: dict[str, Any] = {}
    for word, text in _split(words):
        key = word.replace("-", "_")
        if many and key in found:
            raise AxonnxError(f"--{word} is given twice; put all values into one")
        found[key] = values_of(text) if many else value_of(text)
    return found


def _split(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            raise AxonnxError(f"unexpected word {word!r}; overrides look like --optimiser.epochs 10")
        key, equals, value = word[2:].partition("=")
        if not equals:
            value = next(rest, "--")
            if value.startswith("--"):
                raise AxonnxError(f"{word} needs a value, e.g. --optimiser.epochs 10")
        yield key, value


def values_of(text: str) -> list[Any]:
    """Read values with commas between them as a TOML list, or else cut the text at its commas: names need no quotes."""
    try:
        found: list[Any] = tomllib.loads(f"v = [{text}]")["v"]
    except (tomllib.TOMLDecodeError, RecursionError):
        found = [value_of(part.strip()) for part in text.split(",")]
    return found


def value_of(text: str) -> Any:
    """Read a value as TOML; what is no TOML value is a string, so that names need no quotes. unset means None."""
    if text == "unset":
        return None
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text
    except RecursionError:
        raise AxonnxError("an override whose lists or tables stand too deep within each other") from None
    if isinstance(value, dict):
        return Whole(value)
    return text if isinstance(value, date | time) else value  # no setting is a date, but a folder may be called one
