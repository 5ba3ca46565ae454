"""Changes to any protobuf message, by what its description says it may hold."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.fuzz.numbers import damage, integer, real


def messages(root: Any) -> Iterator[Any]:
    """A message and all messages inside it."""
    yield root
    for field, value in root.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                yield from messages(part)


def change_any(rng: random.Random, root: Any) -> None:
    """One field of one message somewhere inside ``root``."""
    found = list(messages(root))
    message = rng.choice(found)
    present = [field for field, _ in message.ListFields()]
    fields = present if present and rng.random() < 0.85 else list(message.DESCRIPTOR.fields)
    field = rng.choice(fields)
    if field.is_repeated:
        _change_list(rng, message, field, found)
    elif field.message_type is not None:
        _change_message(rng, message, field, found)
    elif rng.random() < 0.1:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, scalar(rng, field, getattr(message, field.name)))


def scalar(rng: random.Random, field: Any, now: Any) -> Any:
    """Another value of a field's kind."""
    kind = field.cpp_type
    if kind == field.CPPTYPE_STRING:
        return damage(rng, now, b"\xff\xfe\x00") if isinstance(now, bytes) else text(rng, now)
    if kind == field.CPPTYPE_ENUM:
        return rng.choice([value.number for value in field.enum_type.values])
    if kind in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
        return real(rng, now)
    if kind == field.CPPTYPE_BOOL:
        return not now
    number = integer(rng, now)
    bits = 32 if kind in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32) else 64
    if kind in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
        return number % 2**bits
    return (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def text(rng: random.Random, now: str) -> str:
    """Another text."""
    return rng.choice(
        ("", now + "x", now[:-1], now * 2, "é\u2028", "x" * 300, "step", "a/b", "\x00", now.upper(), "{}")
    )


def _change_list(rng: random.Random, message: Any, field: Any, found: list[Any]) -> None:
    values = getattr(message, field.name)
    kind = rng.randrange(4)
    if kind == 0 and len(values):
        del values[rng.randrange(len(values))]
    elif kind == 1 and len(values) > 1 and field.message_type is None:
        a, b = rng.randrange(len(values)), rng.randrange(len(values))
        values[a], values[b] = values[b], values[a]
    elif field.message_type is None:
        now = values[rng.randrange(len(values))] if len(values) else _empty(field)
        if kind == 2 or not len(values):
            values.append(scalar(rng, field, now))
        else:
            values[rng.randrange(len(values))] = scalar(rng, field, now)
    else:
        same = [other for other in found if other.DESCRIPTOR is field.message_type]
        values.add().CopyFrom(_copy(rng.choice(same))) if same else values.add()


def _empty(field: Any) -> Any:
    if field.cpp_type == field.CPPTYPE_STRING:
        return b"" if field.type == field.TYPE_BYTES else ""
    return 0


def _change_message(rng: random.Random, message: Any, field: Any, found: list[Any]) -> None:
    same = [other for other in found if other.DESCRIPTOR is field.message_type and other is not message]
    if rng.random() < 0.4 or not same:
        message.ClearField(field.name)
        return
    getattr(message, field.name).CopyFrom(_copy(rng.choice(same)))


def _copy(message: Any) -> Any:
    """A message of its own: one that is put into a part of itself would never end."""
    return type(message).FromString(message.SerializeToString())
