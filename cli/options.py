"""What was typed after a verb, ready for the function that it calls."""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from datetime import date, time
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.cli.parsers import JSON, Shared, function_of, make_parser, parameters, split_words
from axonnx.cli.terminal_progress import Shown

if TYPE_CHECKING:
    from axonnx.cli.command import Verb
    from axonnx.model import Model

EXTRA = {
    "json": JSON,
    "list": Shared(("--list",), "show shipped configurations and data sets"),
    "all_settings": Shared(("--settings",), "show every setting, its default and its meaning"),
    "picture": Shared(("-o", "--output"), "draw samples of each class into this file", {"metavar": "SVG"}),
    "plot": Shared(("-o", "--output"), "draw the files side by side: accuracy and energy (profile), agreement (eval)",
                   {"metavar": "FILE"}),
    "animate": Shared(("-o", "--output"), "also write the events and the decision as it forms, as a moving picture",
                      {"metavar": "SVG"}),
    "jobs": Shared(("--jobs",), "processes for many recordings, or a Dask cluster: tcp://host:8786, slurm:profile.yaml",
                   {"default": "1", "metavar": "N|ADDRESS"}),
}  # fmt: skip


def parser_of(name: str, verb: Verb) -> argparse.ArgumentParser:
    """Return the parser of a verb."""
    return make_parser(name, verb.calls, [EXTRA[key] for key in verb.extra], verb.without, verb.epilog)


class Options:
    """The words of one command."""

    def __init__(self, name: str, verb: Verb, given: argparse.Namespace, settings: dict[str, Any]) -> None:
        self.verb, self.given, self.settings = verb, given, settings
        self.progress = Shown(name, given.quiet)
        self.threads: int | None = given.threads

    def __getattr__(self, name: str) -> Any:
        return getattr(self.given, name)

    def of(self, number: int = -1) -> dict[str, Any]:
        """Return the arguments for one of the functions that the verb calls."""
        place = self.verb.calls[number]
        known = [each.name for each in parameters(function_of(place)) if hasattr(self.given, each.name)]
        return {name: getattr(self.given, name) for name in known}

    def load(self, path: str) -> Model:
        """Load a file with the engine and the threads that were named."""
        from axonnx.model import load

        return load(path, getattr(self.given, "engine", "auto"), self.threads or 1)

    def show(self, results: Sequence[BaseModel], text: Callable[[], str]) -> None:
        """Print results as text or, with --json, as JSON; with --json FILE write the JSON and print the text."""
        if self.given.json not in (None, "-"):
            write_text(self.given.json, _json(results, indent=1))
        print(_json(results) if self.given.json == "-" else text())


def read(name: str, verb: Verb, words: Sequence[str]) -> Options:
    """Read the words after a verb."""
    parser = parser_of(name, verb)
    own, apart = split_words(name, parser, words, verb.settings)
    given = parser.parse_args(own)
    _check_place(getattr(given, "json", None))
    if given.trust_code:
        from axonnx.train.config import own as own_code

        own_code.trust_code()
    return Options(name, verb, given, settings_of(apart, many=name == "sweep"))


def _check_place(path: str | None) -> None:
    """Refuse a place where results cannot be written before the work, which may take hours."""
    if path is None or path == "-":
        return
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise AxonnxError(f"--json {path}: is a folder; name a file in it, e.g. {os.path.join(path, 'results.json')}")
    if not os.path.isdir(folder):
        raise AxonnxError(f"--json {path}: there is no folder {folder}; make it first, or name another place")


def _json(results: Sequence[BaseModel], indent: int | None = None) -> str:
    """One result as an object, several as a list."""
    texts = [result.model_dump_json(indent=indent) for result in results]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def set_torch_threads(threads: int | None) -> None:
    """As many threads for torch; without a number what OMP_NUM_THREADS says, else half of the processors.

    A thread that waits for a busy processor holds up all others, so half are left to them. The number does not follow
    the load: sums round with the number of threads, and a resumed run must not.
    """
    import torch  # only verbs that train or verify have it

    if threads is None and "OMP_NUM_THREADS" in os.environ:
        return
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    torch.set_num_threads(threads or max(1, usable // 2))


def settings_of(words: Sequence[str], many: bool = False) -> dict[str, Any]:
    """Return ``--section.key value`` as settings by name; of a sweep, which has ``many`` values of each, as lists."""
    found: dict[str, Any] = {}
    for word, text in _split(words):
        key = word.replace("-", "_")
        if many and key in found:
            raise AxonnxError(f"--{word} is given twice; put all values into one")
        found[key] = _values_of(text) if many else _value_of(text)
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


def _values_of(text: str) -> list[Any]:
    """Read values with commas between them as a TOML list, or else cut the text at its commas: names need no quotes."""
    try:
        found: list[Any] = tomllib.loads(f"v = [{text}]")["v"]
    except (tomllib.TOMLDecodeError, RecursionError):
        found = [_value_of(part.strip()) for part in text.split(",")]
    return found


def _value_of(text: str) -> Any:
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
        from axonnx.train.config.read import Whole

        return Whole(value)
    return text if isinstance(value, date | time) else value  # no setting is a date, but a folder may be called one
