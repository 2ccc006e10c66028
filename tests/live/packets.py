"""Packets at random, from the fields that their classes declare: what a decoder lets in, and no sender ever meant."""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Any, Literal

import msgspec

from earshot import wire
from earshot.errors import GeometryError
from earshot.events import Event
from earshot.geometry import Area, Circle, Position
from earshot.protocols.catalogue import PROTOCOLS

NAMES = ("", "a", "b", "target", "m0", "m1", "m2", "m3", "nobody")
TYPES = ("Siren", "Bell", "CD")
FILTERS = (
    "Siren",
    "Siren: speed > 10",
    "Bell",
    "/CD[price < 20]",
    "Siren: speed > 1 or speed < 3 and x = 1",
    "(((",
    "",
)
TIME = 1.8e9


_type_info = lru_cache(msgspec.inspect.type_info)


@lru_cache
def packet_classes(protocol: str) -> list[type[wire.Packet]]:
    """The packets of one protocol: those declared in its module, or in its folder."""
    module = PROTOCOLS[protocol].__module__
    room = module.rpartition(".")[0] if module.endswith("machine") or module.count(".") > 2 else module
    wire._register()
    found = [cls for _, cls in sorted(wire._classes.items()) if cls.__module__.startswith(room)]
    return [cls for cls in found if cls.__module__.startswith("earshot.")]


Worst = bool | Literal["names"]
"""Whether packets hold as much as they may, and always another; `names`: of names and ids only, so that tables of those
fill before events take all memory."""


def longest_name(number: int, limit: int = wire.MAX_NAME) -> str:
    """A name that takes as many bytes as a name may, another one for each number."""
    return f"{number:08x}" + "\N{GRINNING FACE}" * (limit - 8)


def _text(random: Random, limit: int | None, name: str, worst: Worst) -> str:
    if random.random() < (0.9 if worst == "names" and limit != wire.MAX_FILTER_TEXT else 0.5 * bool(worst)):
        # As long as the decoder lets in, and always another one.
        text = f"{random.getrandbits(64):x}" + "\N{GRINNING FACE}" * (limit or 4000)
        if limit == wire.MAX_FILTER_TEXT:
            return _long_filter(random, limit)
        return text[:limit]
    if limit == wire.MAX_FILTER_TEXT:
        return random.choice(FILTERS)
    if "type" in name or "topic" in name or "subject" in name:
        return random.choice(TYPES)
    return random.choice((*NAMES, f"id-{random.randrange(10**6)}"))


def _long_filter(random: Random, limit: int) -> str:
    names = random.randbytes(4 * 800).hex()  # drawn at once: one by one they would take most of the time
    terms = " and ".join([f"f{names[8 * n : 8 * n + 8]} > {n}" for n in range(800)])
    return f"Siren: {terms}"[: limit - 20].rpartition(" and ")[0]


def _event(random: Random, worst: Worst) -> Event:
    pad: Any = "x" * (random.choice((0, 10_000)) if worst is True else random.choice((0, 0, 40)))
    # A pad of a megabyte would make the test slow and find nothing that ten kilobytes do not.
    many = [[] for _ in range(800)] if worst is True and random.random() < 0.3 else None
    made = Event(
        random.choice(TYPES),
        {"speed": random.choice((5.0, 18.0)), "pad": pad},
        _text(random, wire.MAX_WORD, "id", worst),
        random.choice(NAMES),
        random.choice((None, Position(random.uniform(-500, 500), 0.0))),
        None,
        random.choice((TIME, 0.0, 4e9, 1e20)),
        random.choice((None, Area(Circle(random.choice((1.0, 1e3, 1e308)))))),
        random.choice((None, 1.0, 1e9)),
    )
    if many is not None:  # few bytes on the wire, many in memory; its receiver reads through them, and we need not
        made.content["pad"] = many
    return made


def value(random: Random, kind: Any, name: str = "", worst: Worst = False) -> Any:
    """A value of a declared type (of `msgspec.inspect`)."""
    inspect = msgspec.inspect
    match kind:
        case inspect.StructType():
            if kind.cls is Event:
                return _event(random, worst)
            values = {field.name: value(random, field.type, field.name, worst) for field in kind.fields}
            return kind.cls(**values)
        case inspect.DataclassType() | inspect.NamedTupleType():
            return kind.cls(**{field.name: value(random, field.type, field.name, worst) for field in kind.fields})
        case inspect.UnionType():
            chosen = random.choice(kind.types)
            return value(random, chosen, name, worst)
        case inspect.NoneType():
            return None
        case inspect.StrType():
            return _text(random, kind.max_length, name, worst) or "a" * (kind.min_length or 0)
        case inspect.IntType():
            least, most = kind.ge if kind.ge is not None else -(2**63), kind.le if kind.le is not None else 2**63 - 1
            chosen = random.choice((0, 1, 2, 3, 7, random.getrandbits(16), least, most))
            return min(max(chosen, least), most)
        case inspect.FloatType():
            if kind.ge is not None:
                return random.choice((kind.ge, kind.ge + 1.0))
            return random.choice((0.0, 1.0, TIME, TIME + 1, -1.0, 1e308, float("inf"), float("nan")))
        case inspect.BoolType():
            return random.random() < 0.5
        case inspect.BytesType():
            return random.randbytes(
                min(random.choice((0, 4, 60_000 if worst is True else 64)), kind.max_length or 60_000)
            )
        case inspect.TupleType():
            return tuple(value(random, one, name, worst) for one in kind.item_types)
        case inspect.VarTupleType() | inspect.ListType():
            many = max(random.choice((1, 8) if worst else (0, 1, 2, 5)), getattr(kind, "min_length", None) or 0)
            if worst and random.random() < 0.02:
                many = min(60, kind.max_length or 60)  # about as many of the longest texts as a packet holds
            return tuple(value(random, kind.item_type, name, worst) for _ in range(many))
        case inspect.DictType():
            many = random.choice((0, 1, 3))
            keys = [value(random, kind.key_type, name, worst) for _ in range(many)]
            return {key: value(random, kind.value_type, name, worst) for key in keys}
        case inspect.LiteralType():
            return random.choice(kind.values)
    raise TypeError(f"no values of {kind}")


def packet(random: Random, cls: type[wire.Packet], worst: Worst = False) -> wire.Packet:
    """A packet of this class with random fields; `worst`: see `Worst`."""
    while True:
        try:
            made = value(random, _type_info(cls), worst=worst)
        except GeometryError:
            continue
        assert isinstance(made, cls)
        return made
