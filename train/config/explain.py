"""What is wrong with a setting, in a line that names the key, what was found and what was expected or meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from axonnx.train.config.settings import Config


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
    """The same name in another section, else the nearest name here, else the nearest anywhere, else all names here."""
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
