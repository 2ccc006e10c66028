"""Checked reading of tables into settings.

Any frozen dataclass can be read from a TOML table: its fields are the keys, its annotations the
types, its own `__post_init__` the last word. A key that is not there, a unit that is missing, a
value of the wrong type is a `ScenarioError` that names the file, the key and the nearest valid one.

A field that may be one of several classes names them in its metadata: `field(metadata={"kinds":
{...}})`; the table's `kind` chooses.
"""

from __future__ import annotations

import difflib
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from earshot.errors import ScenarioError, UsageError
from earshot.filters import Filter
from earshot.geometry import AnyShape, Area, Position, parse_shape
from earshot.simulation.draws import Span
from earshot.simulation.settings_schema import UNITS, DataFile, Key, kind_of, settings_of, unit_of

T = TypeVar("T")


class LocatedError(ScenarioError):
    """A scenario error that says where already."""

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: {key}: {problem}" if key else f"{file}: {problem}")
        self.parts = (file, key, problem)

    def __reduce__(self) -> Any:
        return LocatedError, self.parts


@dataclass(frozen=True, slots=True)
class Where:
    """Where a value stands: its file and its key, for errors; files it names are relative to `folder`.

    A table put together from several files says in `origins` which of its keys came from where.
    """

    file: str
    key: str = ""
    folder: Path = Path()
    origins: Mapping[str, str] = field(default_factory=dict)

    def at(self, key: str) -> Where:
        return replace(self, key=f"{self.key}.{key}" if self.key else key)

    def item(self, number: int) -> Where:
        return replace(self, key=f"{self.key}[{number}]")

    def wrong(self, problem: str) -> LocatedError:
        return LocatedError(self._origin(), self.key, problem)

    def _origin(self) -> str:
        key = self.key.partition("[")[0]
        while key and key not in self.origins:
            key = key.rpartition(".")[0]
            if f"{key}.kind" in self.origins:
                return self.origins[f"{key}.kind"]
        return self.origins.get(key, self.file)


def read(cls: type[T], table: Any, where: Where) -> T:
    """A settings class from a table; every error says where."""
    if not isinstance(table, Mapping):
        raise where.wrong(f"must be a table, got {_said(table)}")
    known = settings_of(cls)
    for given in table:
        if given not in known and not (given == "kind" and kind_of(cls)):
            raise where.at(given).wrong(_unknown(given, known))
    values: dict[str, Any] = {}
    for name, key in known.items():
        if name in table:
            values[name] = _read_key(key, table[name], where.at(name))
        elif key.required:
            raise where.at(name).wrong("is missing" + (f"; it is in {unit}" if (unit := unit_of(name)) else ""))
    try:
        return cls(**values)
    except LocatedError:
        raise
    except UsageError as error:
        # "range_m must be positive": a settings class names its own key first.
        first, _, problem = str(error).partition(" ")
        raise where.at(first).wrong(problem) if first in known else where.wrong(str(error)) from None


def _read_key(key: Key, value: Any, where: Where) -> Any:
    if key.kinds is None:
        return _read_value(key.type, value, where)
    if isinstance(value, Mapping) and "kind" not in value and not key.required:
        value = {"kind": kind_of(type(key.default)), **value}
    return _read_kind(key.kinds, value, where)


def _read_kind(kinds: Mapping[str, Any], value: Any, where: Where) -> Any:
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, Mapping):
        raise where.wrong(f"must be a table with a kind, got {_said(value)}")
    if "kind" not in value:
        raise where.at("kind").wrong(f"is missing; there are: {', '.join(kinds)}")
    if value["kind"] not in kinds:
        raise where.at("kind").wrong(_no_such(value["kind"], kinds))
    rest = {key: one for key, one in value.items() if key != "kind"}
    return read(kinds[value["kind"]], rest, where)


def _read_value(hint: Any, value: Any, where: Where) -> Any:
    reader = _LEAVES.get(hint)
    if reader is not None:
        return reader(value, where)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _read_union(arguments, value, where)
    if origin is typing.Literal:
        if value not in arguments or isinstance(value, bool) != any(isinstance(one, bool) for one in arguments):
            raise where.wrong(_no_such(value, [str(one) for one in arguments]))
        return value
    if origin is tuple:
        return _read_tuple(arguments, value, where)
    if origin in (dict, Mapping, typing.Mapping):
        if not isinstance(value, Mapping):
            raise where.wrong(f"must be a table, got {_said(value)}")
        return {key: _read_value(arguments[1], one, where.at(key)) for key, one in value.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(value)
        except ValueError:
            raise where.wrong(_no_such(value, [str(one.value) for one in hint])) from None
    if is_dataclass(hint):
        return read(typing.cast(Any, hint), value, where)
    raise TypeError(f"{where.key}: no way to read a {hint}")  # pragma: no cover: a settings class of ours is wrong


def _read_union(alternatives: tuple[Any, ...], value: Any, where: Where) -> Any:
    """One of several: tables choose by `kind`; otherwise the first alternative that can read it."""
    choices = [one for one in alternatives if one is not types.NoneType]
    if len(choices) == 1:
        return _read_value(choices[0], value, where)
    if all(is_dataclass(one) for one in choices):
        return _read_kind({_kind_by_field(one): one for one in choices}, value, where)
    problems = []
    for one in choices:
        try:
            return _read_value(one, value, where)
        except LocatedError as error:
            problems.append(error.parts[2])
    raise where.wrong(", or ".join(dict.fromkeys(problems)))


def _kind_by_field(cls: Any) -> str:
    if kind := kind_of(cls):
        return kind
    named = settings_of(cls).get("kind")
    return str(named.field.default) if named is not None else str(cls.__name__).lower()


def _read_tuple(arguments: tuple[Any, ...], value: Any, where: Where) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise where.wrong(f"must be a list, got {_said(value)}")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_read_value(arguments[0], one, where.item(i)) for i, one in enumerate(value))
    if len(value) != len(arguments):
        raise where.wrong(f"must be a list of {len(arguments)}, got {len(value)}")
    pairs = zip(arguments, value, strict=True)
    return tuple(_read_value(hint, one, where.item(i)) for i, (hint, one) in enumerate(pairs))


# Leaves.


def _bool(value: Any, where: Where) -> bool:
    if not isinstance(value, bool):
        raise where.wrong(f"must be true or false, got {_said(value)}")
    return value


def _int(value: Any, where: Where) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise where.wrong(f"must be a whole number, got {_said(value)}")
    return value


def _float(value: Any, where: Where) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        unit = unit_of(where.key.rpartition(".")[2].partition("[")[0])
        raise where.wrong(f"must be a number{f' of {unit}' if unit else ''}, got {_said(value)}")
    if math.isnan(value):
        raise where.wrong("must be a number, got nan")
    return float(value)


def _str(value: Any, where: Where) -> str:
    if not isinstance(value, str):
        raise where.wrong(f"must be a text, got {_said(value)}")
    return value


def _span(value: Any, where: Where) -> Span:
    if isinstance(value, (list, tuple)):
        if len(value) != 2:
            raise where.wrong(f"must be a number or [low, high], got a list of {len(value)}")
        low, high = (_float(one, where.item(i)) for i, one in enumerate(value))
    else:
        low = high = _float(value, where)
    return _made(lambda: Span(low, high), where)


def _position(value: Any, where: Where) -> Position:
    x, y = _read_tuple((float, float), value, where)
    return Position(x, y)


def _shape(value: Any, where: Where) -> AnyShape:
    return _made(lambda: parse_shape(_str(value, where)), where)


def _area(value: Any, where: Where) -> Area:
    if isinstance(value, str):
        text, _, at = value.partition(" at ")
        place = [_number(part) for part in at.split(",")] if at else [0.0, 0.0]
        value = {"shape": text, "at": place}
    if not isinstance(value, Mapping):
        raise where.wrong(f'must be a table as in {{ shape = "circle:300m", at = [500, 500] }}, got {_said(value)}')
    for key in value:
        if key not in ("shape", "at"):
            raise where.at(key).wrong(_unknown(key, ("shape", "at")))
    if "shape" not in value:
        raise where.at("shape").wrong("is missing")
    shape = _shape(value["shape"], where.at("shape"))
    return Area(shape, _position(value.get("at", [0.0, 0.0]), where.at("at")))


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _filter(value: Any, where: Where) -> Filter:
    return _made(lambda: Filter.parse(_str(value, where)), where)


def _file(value: Any, where: Where) -> DataFile:
    path = (where.folder / Path(_str(value, where)).expanduser()).resolve()
    if not path.exists():
        raise where.wrong(f"no such file: {path}")
    return DataFile(path)


_LEAVES: dict[Any, Any] = {
    bool: _bool,
    int: _int,
    float: _float,
    str: _str,
    Span: _span,
    Position: _position,
    AnyShape: _shape,
    Area: _area,
    Filter: _filter,
    DataFile: _file,
    Path: lambda value, where: _file(value, where).path,
}


def _made(make: Callable[[], T], where: Where) -> T:
    """What the class itself refuses is told with its place."""
    try:
        return make()
    except LocatedError:
        raise
    except UsageError as error:
        raise where.wrong(str(error)) from None


# Words for errors.


def _unknown(key: str, known: Any) -> str:
    names = list(known)
    united = [name for name in names if name.startswith(f"{key}_") and name[len(key) + 1 :] in UNITS]
    if united:
        return f"lacks its unit; write {united[0]} ({unit_of(united[0])})"
    stem = key
    for unit in sorted(UNITS, key=len, reverse=True):
        if key.endswith(f"_{unit}"):
            stem = key.removesuffix(f"_{unit}")
            break
    same = [name for name in names if unit_of(name) and name.startswith(f"{stem}_")]
    nearest = same[:1] or difflib.get_close_matches(key, names, n=1)
    if nearest:
        unit = unit_of(nearest[0])
        return f"no such key; did you mean {nearest[0]}{f' ({unit})' if unit else ''}?"
    return f"no such key; there are: {', '.join(sorted(names)) or 'none'}"


def _no_such(value: Any, known: Any) -> str:
    names = [str(one) for one in known]
    nearest = difflib.get_close_matches(str(value), names, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are: {', '.join(names)}"
    return f"no such choice as {value!r}; {hint}"


def _said(value: Any) -> str:
    """A value as an error shows it, with its TOML type."""
    kind = {bool: "the boolean", int: "the number", float: "the number", str: "the text"}.get(type(value))
    if kind is None:
        return "a list" if isinstance(value, list) else "a table" if isinstance(value, Mapping) else str(value)
    text = repr(value).lower() if isinstance(value, bool) else repr(value)
    return f"{kind} {text[:60]}"
