"""One parser for each verb, made from the signature and the docstring of the function that the verb calls.

A parameter without a default is a word of the command line, every other one an option: types, defaults and help are
those of the function, so that the two cannot disagree. ``Shared`` adds what has no place in a library.
"""

from __future__ import annotations

import argparse
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from axonnx.base.errors import AxonnxError

SKIPPED = {"self", "cls", "progress", "ready", "settings", "callbacks", "threads", "trust_code"}  # not words
# How often a word may stand, where that is not once; and parameters that are options although they have no default.
TIMES = {"train": {"configuration": "?"}, "run": {"source": "+"}, "eval": {"path": "+"}, "profile": {"path": "+"}}
OPTIONS = {"eval": {"data"}, "profile": {"data"}, "compile": {"output"}}
NAMES = {"path": "model", "folder": "run"}  # of words
ABOUT = {"folder": "a run folder of axonnx train"}
FLAGS = {"output": ("-o", "--output"), "against": ("--run",)}
METAVARS = {"output": "FILE", "data": "DATA", "limit": "N", "jobs": "N|ADDRESS", "against": "RUN", "stop_at": "P"}
MANY = 12  # options, above which help groups them
GROUPS = {
    "events": ("format", "index", "fit", "reorder", "on_disorder", "seconds", "origin"),
    "decisions": ("windows", "every_bin", "continuous", "stop_at", "live"),
    "access": ("host", "port", "token_file", "certificate"),
    "limits": ("clients", "memory_mib", "message_kib", "grace"),
    "random input": ("steps", "largest", "classes", "shape"),
    "collapse": ("collapse", "members", "calibrate", "prune", "weights"),
    "measurement": ("passes", "limit", "coverage", "part", "seed"),
}
# Words of earlier versions and of other tools, by verb, and what they mean: an option, or an option and its value.
OTHER_WORDS: dict[str, dict[str, str]] = {
    "": {
        "--out": "--output",
        "--cluster": "--jobs",
        "--sensor": "--fit",
        "--crop": "--fit",
        "--resize": "--fit=resize",
        "--merge-polarities": "--fit=merge",
    },
    "train": {"--data-root": "--data.root"},
    "export": {"--mode": "--collapse"},
    "import": {"--samples": "--limit"},
    "verify": {"--engines": "", "-o": "--json", "--output": "--json", "--against": "--run"},
    "run": {"--animate": "--output", "--final-only": "", "--tolerance-us": "--reorder"},
    "profile": {"--run": "--data", "--all": "--limit=all", "--plot": "--output"},
    "eval": {"--plot": "--output", "--samples": "--passes"},
}


class Shared(NamedTuple):
    """An option that belongs to the command line alone."""

    flags: tuple[str, ...]
    about: str
    options: dict[str, Any] = {"action": "store_true"}  # noqa: RUF012


JSON = Shared(
    ("--json",),
    "print the result as JSON, or write it to FILE.json (and print the text)",
    {"nargs": "?", "const": "-", "metavar": "FILE.json"},
)
QUIET = Shared(("--quiet",), "no progress, only the result")


def threads(text: str) -> int:
    """Read a number of threads."""
    return _whole(1)(text)


THREADS = Shared(("--threads",), "processor threads", {"type": threads, "metavar": "N"})
TRUST = Shared(("--trust-code",), "execute network.py, the code that a run folder holds of an own network")
COMMON = (QUIET, THREADS, TRUST)  # of every verb


def function_of(place: str) -> Callable[..., Any]:
    """Return the function or method at ``module:name``."""
    module, _, name = place.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return typing.cast("Callable[..., Any]", found)


def make_parser(
    verb: str, places: Sequence[str], extra: Sequence[Shared] = (), without: Sequence[str] = (), epilog: str = ""
) -> argparse.ArgumentParser:
    """Return the parser of a verb that calls the functions at ``places``, one after the other."""
    parser = argparse.ArgumentParser(
        f"axonnx {verb}", description=_description(places[:2][-1]), epilog=epilog or None, allow_abbrev=False
    )
    found = [each for place in places for each in parameters(function_of(place)) if each.name not in without]
    every = list({each.name: each for each in reversed(found)}.values())[::-1]
    options = [each for each in every if not each.is_word(verb)]
    many = len(options) + len(extra) > MANY
    titles = {name: title for title, names in GROUPS.items() for name in names} if many else {}
    groups: dict[str, Any] = {}
    for each in every:
        if (title := titles.get(each.name)) is not None and title not in groups:
            groups[title] = parser.add_argument_group(title)
        each.add_to(groups[title] if title is not None else parser, verb)
    for shared in extra:
        parser.add_argument(*shared.flags, help=shared.about, **shared.options)
    common = parser.add_argument_group("every verb")
    for shared in COMMON:
        common.add_argument(*shared.flags, help=shared.about, **shared.options)
    return parser


def _description(place: str) -> str:
    """Return what the function does, as its docstring says."""
    return re.split(r"\n\n(?:Args|Returns|Raises|Examples):", inspect.getdoc(function_of(place)) or "")[0]


class Parameter(NamedTuple):
    """A parameter of a function, as the command line has it."""

    name: str
    kinds: tuple[Any, ...]
    default: Any
    about: str
    required: bool

    def is_word(self, verb: str) -> bool:
        """Whether it is a word, and not an option."""
        if self.name in TIMES.get(verb, {}):
            return True
        return self.required and self.name not in OPTIONS.get(verb, ())

    def add_to(self, parser: Any, verb: str) -> None:
        """Add it to a parser, or to a group of one."""
        choices = [choice for kind in self.kinds for choice in _choices(kind)]
        given: dict[str, Any] = {"help": _help(self)}
        if self.kinds == (bool,):
            given["action"] = "store_true"
        elif self.name == "fit":
            given |= {"action": "append", "metavar": "HOW"}
        elif choices and all(_choices(kind) for kind in self.kinds):
            given["choices"] = choices
        else:
            given |= {"type": _reader(self.kinds), "metavar": METAVARS.get(self.name, self.name.upper())}
        if self.is_word(verb):
            times = TIMES.get(verb, {}).get(self.name)
            given |= {"metavar": NAMES.get(self.name, self.name)} | ({} if times is None else {"nargs": times})
            parser.add_argument(self.name, **given)
        else:
            flags = FLAGS.get(self.name, (f"--{self.name.replace('_', '-')}",))
            parser.add_argument(*flags, dest=self.name, default=self.default, **given)


def parameters(function: Callable[..., Any]) -> Iterator[Parameter]:
    """Go through those parameters of a function that can be typed as words."""
    about = _descriptions(inspect.getdoc(function) or "")
    for name, parameter in inspect.signature(function).parameters.items():
        if name in SKIPPED or parameter.kind is parameter.VAR_KEYWORD:
            continue
        required = parameter.default is parameter.empty
        kinds = _kinds(function, str(parameter.annotation))
        text = about.get(name, ABOUT.get(name, ""))
        yield Parameter(name, kinds, None if required else parameter.default, text, required)


def _descriptions(doc: str) -> dict[str, str]:
    """Return the texts below Args: by name."""
    part = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", doc, re.MULTILINE | re.DOTALL)
    found = re.findall(r"^ {4}(\w+): (.*?)(?=^ {4}\w|\Z)", part[1] if part else "", re.MULTILINE | re.DOTALL)
    return {name: " ".join(text.split()) for name, text in found}


def _kinds(function: Callable[..., Any], annotation: str) -> tuple[Any, ...]:
    """Return the types that a value may have; a type that is imported for checkers alone is read as text."""
    names = vars(inspect.getmodule(function) or typing)
    found = [_evaluated(part.strip(), names) for part in re.split(r"\|(?![^\[]*\])", annotation)]
    flat = [kind for each in found for kind in (typing.get_args(each) if _is_union(each) else (each,))]
    return tuple(kind for kind in flat if kind is not None and kind is not types.NoneType)


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) in (types.UnionType, typing.Union)


def _evaluated(text: str, names: dict[str, Any]) -> Any:
    try:
        return eval(text, names)  # our own annotations
    except NameError:
        return str


def _choices(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()


def _reader(kinds: Sequence[Any]) -> Callable[[str], Any]:
    """Return a reader that takes a word as the first of these types that it can be."""
    readers = [_one(kind) for kind in kinds if not _choices(kind)]
    words = [choice for kind in kinds for choice in _choices(kind)]

    def read(text: str) -> Any:
        if text in words:
            return text
        faults = []
        for reader in readers:
            try:
                return reader(text)
            except (ValueError, argparse.ArgumentTypeError) as fault:
                faults.append(str(fault))
        expected = f"; or {', '.join(words)}" if words else ""
        raise argparse.ArgumentTypeError(f"{faults[0]}{expected}")

    return read


def _one(kind: Any) -> Callable[[str], Any]:
    if typing.get_origin(kind) is typing.Annotated:
        return _whole(kind.__metadata__[0])
    if typing.get_origin(kind) is Sequence:
        (of,) = typing.get_args(kind)
        return lambda text: [of(part) for part in re.split("[x×,]" if of is int else ",", text)]
    if kind is int:
        return _integer
    return kind if kind is float else str


def _integer(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number") from None
    if not -(2**63) <= number < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number of 64 bits")
    return number


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from {least} on")
        return int(text)

    return read


def _help(each: Parameter) -> str:
    """Its description, with the default that the function has."""
    text = each.about.removesuffix(".").replace("%", "%%").replace("``", "")
    text = text[:1].lower() + text[1:] if text[:2].istitle() else text
    if each.required or each.default in (None, False) or "default" in text:
        return text
    return f"{text} (default: %(default)s)"


def split_words(
    verb: str, parser: argparse.ArgumentParser, words: Sequence[str], settings: bool
) -> tuple[list[str], list[str]]:
    """Give options their present names, and settings (``--section.key value``) a list of their own."""
    known = parser._option_string_actions
    own: list[str] = []
    apart: list[str] = []
    rest = iter(_renamed(verb, words))
    for word in rest:
        key, equals, _ = word.partition("=")
        if not word.startswith("--") or word == "--" or key in known:
            own.append(word)
            if key in known and known[key].nargs is None and not equals:
                own += [value for value in [next(rest, None)] if value is not None]
        elif settings:
            apart += [word] if equals else [word, *(value for value in [next(rest, None)] if value is not None)]
        else:
            own.append(word)
    return own, apart


def _renamed(verb: str, words: Sequence[str]) -> Iterator[str]:
    names = {**OTHER_WORDS[""], **OTHER_WORDS.get(verb, {})}
    after = list(words)
    while after:
        word = after.pop(0)
        key, equals, value = word.partition("=")
        if key.startswith("--") and "." not in key and key.replace("_", "-") in names:
            key = key.replace("_", "-")
        if key in names:
            key = names[key]
            if not key:
                continue
        if verb == "sweep" and key == "--set":
            name, _, values = (value if equals else after.pop(0) if after else "").partition("=")
            if not name or not values:
                raise AxonnxError(f"--set {name}: expected a setting and its values, optimiser.weight_rate=1e-3,3e-3")
            yield f"--{name}={values}"
            continue
        if verb == "run" and key in ("-o", "--output") and (value or "".join(after[:1])).endswith(".jsonl"):
            yield f"--json={value or after.pop(0)}"
            continue
        if key == "--json" and not equals:
            follows = after[0] if after else ""
            named = follows.endswith((".json", ".jsonl"))
            yield f"--json={after.pop(0) if named else '-'}"
            continue
        yield f"{key}{equals}{value}"
