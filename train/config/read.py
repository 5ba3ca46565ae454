"""From a shipped name or a TOML file, and settings that replace what stands there, to a checked ``Config``."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from axonnx.base.errors import AxonnxError
from axonnx.train.config.settings import OWN_NETWORK, Config

Tree = dict[str, Any]


class Whole(dict[str, Any]):
    """A table that was given as one value: it replaces the one that was there."""


# optimiser.kl was one of these, and optimiser.kl_weight its λ, for a sum over all neurons and steps.
KINDS = {"neuron": ("log", "neuron"), "weight": ("log", "weight"), "quadratic": ("quadratic", "neuron")}
# Other spellings of sections, and short names of settings.
SECTIONS = {"optimizer": "optimiser", "regularizer": "regulariser", "optim": "optimiser"}
SHORT = {
    "epochs": "optimiser.epochs",
    "batch_size": "optimiser.batch_size",
    "lr": "optimiser.weight_rate",
    "learning_rate": "optimiser.weight_rate",
    "weight_rate": "optimiser.weight_rate",
    "optimiser.lr": "optimiser.weight_rate",
    "optimiser.learning_rate": "optimiser.weight_rate",
    "hidden": "model.hidden",
    "variant.normalization": "variant.normalisation",
    "data.center": "data.centre",
    "estimator": "variant.estimator",
    "data_root": "data.root",
}
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def shipped() -> dict[str, Tree]:
    """Every configuration that comes with the package, by name: a file, or a row of its ``rows`` table."""
    found: dict[str, Tree] = {}
    for path in sorted(files("axonnx.train.config").joinpath("shipped").iterdir(), key=lambda p: p.name):
        tree = tomllib.loads(path.read_text("utf-8"))
        name = path.name.removesuffix(".toml")
        rows, about = tree.pop("rows", None), tree.pop("about")
        for row in rows or [None]:
            full = name if row is None else f"{name}-{row}"
            found[full] = {"about": about, "tree": tree if row is None else merged(tree, {"variant": {"name": row}})}
    return found


def read_config(source: str, settings: Mapping[str, Any] | None = None) -> Config:
    """Read the configuration called ``source`` (a shipped name or a TOML file), with ``settings`` in it."""
    base, over = _tree(source), as_tree(settings or {})
    if source in shipped() and _names_own_network(over):
        base = {key: value for key, value in base.items() if key != "model"}  # sizes of another network
    return check_config(_without_listing(merged(base, over), source), source)


def _names_own_network(over: Tree) -> bool:
    model = over.get("model")
    named = model.get("network") if isinstance(model, Mapping) else None
    return isinstance(named, str) and OWN_NETWORK.fullmatch(named) is not None


def as_tree(settings: Mapping[str, Any]) -> Tree:
    """``{"optimiser.epochs": 3, "seed": 1}`` as sections: keys with dots go down, all others stay."""
    tree: Tree = {}
    for given, value in settings.items():
        place, key = tree, full_name(given)
        *sections, last = key.split(".")
        for section in sections:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise AxonnxError(f"{key}: {section} was given a value of its own before; drop one of the two")
        place[last] = value
    return tree


def flat(tree: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Go through the dotted keys of a tree's values."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and not isinstance(value, Whole):
            yield from flat(value, f"{place}{key}.")
        else:
            yield f"{place}{key}"


def full_name(key: str) -> str:
    """Return the setting that a name means: the same, or another spelling or a short name of it."""
    section, dot, rest = key.partition(".")
    key = f"{SECTIONS.get(section, section)}{dot}{rest}"
    return SHORT.get(key, key)


def parse_config(text: str, where: str) -> Config:
    """Read a configuration from the text of its TOML file."""
    return check_config(_parsed(text, where), where)


def check_config(tree: Tree, where: str) -> Config:
    """Check a tree as a ``Config``; all faults at once, each with the nearest known name or what is expected."""
    try:
        return Config.model_validate(with_present_names(merged({}, tree), where))
    except ValidationError as fault:
        lines = [explain(error) for error in fault.errors()]
        raise AxonnxError(f"{where}: {len(lines)} wrong setting(s)\n  " + "\n  ".join(lines)) from None


def to_toml(config: Config) -> str:
    """Return the resolved configuration, as a file that gives the same run again."""
    lines: list[str] = []
    _write_table(config.model_dump(exclude_none=True), (), lines)
    return "\n".join(lines).strip() + "\n"


def settings() -> Iterator[tuple[str, str, str]]:
    """Every setting there is, as (dotted key, default, what it means)."""
    for key, field in fields():
        default = "required" if field.is_required() else _default(field.get_default(call_default_factory=True))
        yield key, default, field.description or ""


def _tree(source: str) -> Tree:
    known = shipped()
    if source in known:
        tree: Tree = known[source]["tree"]
        return tree
    path = Path(source)
    if not source.endswith(".toml"):
        near = get_close_matches(source, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        if path.exists():  # recordings, or a run
            hint = f" What stands there may be data: axonnx data {source} says how to train on it."
        raise AxonnxError(f"unknown configuration {source!r}.{hint} Give a shipped name or a .toml file")
    if not path.is_file():
        raise AxonnxError(f"{source}: no such file")
    try:
        return _parsed(path.read_text("utf-8"), source)
    except UnicodeDecodeError as fault:
        raise AxonnxError(f"{source}: not a TOML file: {fault}") from None


def _parsed(text: str, where: str) -> Tree:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise AxonnxError(f"{where}: not a TOML file: {fault}") from None
    except RecursionError:
        raise AxonnxError(f"{where}: lists or tables stand too deep within each other; expected two levels") from None


def _without_listing(tree: Tree, where: str) -> Tree:
    """``tree`` without what shipped files tell ``axonnx train --list``: ``about``, and the ``rows`` of a table."""
    rows = tree.get("rows")
    if rows is not None and "name" not in tree.get("variant", {}):
        raise AxonnxError(
            f"{where}: rows = {rows!r} makes one configuration of each, and a run has one. "
            f"Set variant.name to one of them"
        )
    return {key: value for key, value in tree.items() if key not in ("about", "rows")}


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> Tree:
    """Put ``over`` into ``base``: tables are merged, None removes a value, and everything else is replaced."""
    tree = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(tree.get(key, {}), Mapping) and not isinstance(value, Whole)
        tree[key] = merged(tree.get(key, {}), value) if both else value
    return {key: value for key, value in tree.items() if value is not None}


def _write_table(table: Mapping[str, Any], place: tuple[str, ...], lines: list[str]) -> None:
    for key, value in table.items():
        if not isinstance(value, dict) or not value:
            lines.append(f"{_key(key)} = {_literal(value)}")
    for key, value in table.items():
        if isinstance(value, dict) and value:
            lines.extend(["", f"[{'.'.join((*place, _key(key)))}]"])
            _write_table(value, (*place, _key(key)), lines)


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else _literal(name)


def _literal(value: Any) -> str:
    """Return a TOML literal: JSON's, except for tables within lists, the character DEL and numbers not finite."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_literal(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _default(value: Any) -> str:
    return "unset" if value is None else _literal(value)


def with_present_names(tree: dict[str, Any], where: str) -> dict[str, Any]:
    """``tree`` with ``[regulariser]`` for ``optimiser.kl`` and ``optimiser.kl_weight`` of an earlier version."""
    optimiser = tree.get("optimiser")
    old = [key for key in ("kl", "kl_weight") if isinstance(optimiser, dict) and key in optimiser]
    if not old or not isinstance(optimiser, dict):
        return tree
    if "regulariser" in tree:
        raise AxonnxError(
            f"{where}: optimiser.{old[0]} is of an earlier version, and the section regulariser, which took its place, "
            f"is there too. Set regulariser.weight, which is for a mean over neurons and steps; the λ of "
            f"optimiser.kl_weight was for a sum, regulariser.total = 'sum'"
        )
    kind, weight = optimiser.get("kl", "neuron"), optimiser.get("kl_weight", 1e-6)
    if kind not in KINDS:
        raise AxonnxError(f"{where}: optimiser.kl is {kind!r}; expected one of {', '.join(map(repr, KINDS))}")
    form, of = KINDS[kind]
    rest = {key: value for key, value in optimiser.items() if key not in old}
    return {**tree, "optimiser": rest, "regulariser": {"form": form, "of": of, "weight": weight, "total": "sum"}}


def fields(model: type[BaseModel] = Config, place: tuple[str, ...] = ()) -> Iterator[tuple[str, FieldInfo]]:
    """Every setting there is, as (dotted key, field); sections are gone into."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from fields(kind, (*place, name))
        else:
            yield ".".join((*place, name)), field


def explain(error: Any) -> str:
    """One of pydantic's errors, as a line of ours."""
    place = [str(part) for part in error["loc"]]
    dotted = ".".join(place)
    if error["type"] == "missing":
        return f"{dotted}: is missing and has no default"
    if error["type"] in ("model_type", "model_attributes_type", "dict_type") and _is_section(place):
        names = _names_in(place)
        meant = f"; did you mean {dotted}.name?" if "name" in names else ""
        return f"{dotted}: is a section of settings ({', '.join(names[:4])}, …), found {error['input']!r}{meant}"
    if error["type"] != "extra_forbidden":
        return f"{dotted}: {error['msg'][0].lower()}{error['msg'][1:]} (found {error['input']!r})"
    return f"{dotted}: unknown key; {_meant(place)}"


def _meant(place: Sequence[str]) -> str:
    """Suggest this name in another section, else the nearest name here, else the nearest anywhere, else all here."""
    *section, name = place
    elsewhere: dict[str, list[str]] = {}
    for key, _ in fields():
        elsewhere.setdefault(key.rpartition(".")[2], []).append(key)
    here = _names_in(section)
    near = get_close_matches(name, here, n=1, cutoff=0.5)
    far = get_close_matches(name, elsewhere, n=1, cutoff=0.75)
    meant = elsewhere.get(name) or near or (elsewhere[far[0]] if far else [])
    return f"did you mean {' or '.join(map(repr, meant))}?" if meant else f"known here: {', '.join(here)}"


def _is_section(place: Sequence[str]) -> bool:
    return len(place) == 1 and any(key.startswith(f"{place[0]}.") for key, _ in fields())


def _names_in(section: Sequence[str]) -> list[str]:
    model: Any = Config
    for part in section:
        model = model.model_fields[part].annotation
    return list(model.model_fields)
