"""Reading a scenario's tables into settings classes, and writing them as tables again.

`earshot.settings` reads and explains; this file adds what scenarios write in their own way (spans of
numbers, shapes, areas, filters, files), the short form of tables with a `kind`, and which file a key
came from. Every error names the file, the key and what to write instead.

A table's `kind` may name a plug-in: `mobility = { kind = "./orbit.py:Orbit", radius_m = 300 }`. The plug-in is a
`SettingsTable` of its own with the methods of its kind. In a scenario it stands inside a `PluginTable`, one for each
kind of table: the name in `use`, the plug-in itself in `settings`.
"""

from __future__ import annotations

import hashlib
import typing
from abc import ABCMeta
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import msgspec

from earshot.errors import ScenarioError, UsageError
from earshot.filters import Filter
from earshot.geometry import AnyShape, Area, Circle, Ellipse, Polygon, Position, Rectangle, parse_shape
from earshot.plugins import PluginError, installed, is_outside, named, plugin_digest
from earshot.settings import (
    KindTable,
    SettingsProblem,
    SettingsTable,
    alternatives,
    fields_of,
    is_table,
    kind_of,
    kinds_of,
    read_settings,
    shown,
    unknown_key,
)
from earshot.simulation.draws import Span

PLUGIN = "plugin"
"The `kind` that a table with a plug-in's name is read as."

if TYPE_CHECKING:
    PluginSettings = Any
else:
    PluginSettings = ABCMeta("PluginSettings", (), {"__module__": __name__})
    PluginSettings.register(SettingsTable)


@dataclass(frozen=True, slots=True)
class UnreadSettings:
    """A plug-in's class, and its keys as a file has them."""

    cls: type[SettingsTable]
    table: Any


class PluginTable(KindTable, frozen=True):
    """A plug-in, by its name and with its settings."""

    use: str
    "The plug-in: an entry point's name, module:Class or ./file.py:Class."
    settings: PluginSettings
    "The plug-in's own keys; they may also stand beside kind."

    group: ClassVar[str]
    "The kind of plug-in."
    methods: ClassVar[tuple[str, ...]]
    "What its class must have."

    @property
    def code(self) -> str:
        """A hash of the plug-in's code."""
        plugin_class(type(self), self.use)
        return plugin_digest(self.group, self.use)


def plugin_class(table: type[PluginTable], name: str) -> type[SettingsTable]:
    """The class that a plug-in of this kind is; PluginError where it is not one."""

    def checked(name: str, value: Any) -> type[SettingsTable]:
        if not (isinstance(value, type) and issubclass(value, SettingsTable)):
            raise PluginError(f"{name} is not a table: derive a class from earshot.simulation.SettingsTable")
        if missing := [method for method in table.methods if not hasattr(value, method)]:
            raise PluginError(f"{name} lacks {', '.join(missing)}; docs/extending.md shows what each kind needs")
        return value

    return named(table.group, name, {}, checked)


def spelled_plugin(table: type[PluginTable], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A table that names a plug-in as its kind, in the form that `PluginTable` reads; others as they are."""
    kind = value.get("kind")
    if not isinstance(kind, str):
        return value
    if kind != PLUGIN:
        if not is_outside(kind) and all(offer.name != kind for offer in installed(table.group)):
            return value
        value = {**value, "kind": PLUGIN, "use": kind}
    if not isinstance(value.get("use"), str) or isinstance(value.get("settings"), SettingsTable):
        return value
    own = {*fields_of(table), "kind"}
    inside = value.get("settings", {})
    if isinstance(inside, Mapping):
        inside = {**inside, **{key: entry for key, entry in value.items() if key not in own}}
    kept = {key: entry for key, entry in value.items() if key in own}
    return {**kept, "settings": UnreadSettings(plugin_class(table, value["use"]), inside)}


T = TypeVar("T")

# Types that a table writes in its own way. To msgspec they are unknown, so it asks `_read_other`.
if TYPE_CHECKING:
    SpanSetting = Span
    ShapeSetting = AnyShape
    AreaSetting = Area
    FilterSetting = Filter
else:

    def _marker(name: str, *read_as: type) -> ABCMeta:
        made = ABCMeta(name, (), {"__module__": __name__})
        for readable in read_as:
            made.register(readable)
        return made

    SpanSetting = _marker("SpanSetting", Span)
    ShapeSetting = _marker("ShapeSetting", Circle, Rectangle, Ellipse, Polygon)
    AreaSetting = _marker("AreaSetting", Area)
    FilterSetting = _marker("FilterSetting", Filter)


class LocatedError(ScenarioError):
    """A scenario error that says where."""

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: {key}: {problem}" if key else f"{file}: {problem}")
        self.parts = (file, key, problem)

    def __reduce__(self) -> Any:
        return LocatedError, self.parts


@dataclass(frozen=True, slots=True)
class Where:
    """Where a table stands: its file and its key, for errors; files it names are relative to `folder`.

    A table put together from several files says in `origins` which of its keys came from where.
    """

    file: str
    key: str = ""
    folder: Path = Path()
    origins: Mapping[str, str] = field(default_factory=dict)

    def wrong(self, key: str, problem: str) -> LocatedError:
        """The error about a key of this table."""
        whole = ".".join(part for part in (self.key, key) if part)
        return LocatedError(self._origin(whole), whole, problem)

    def _origin(self, key: str) -> str:
        key = key.partition("[")[0]
        while key and key not in self.origins:
            key = key.rpartition(".")[0]
            if f"{key}.kind" in self.origins:
                return self.origins[f"{key}.kind"]
        return self.origins.get(key, self.file)


def read(cls: type[T], table: Any, where: Where) -> T:
    """A settings class from a table; every error says where."""
    try:
        return read_settings(cls, _spelled_out(cls, table), read_other=partial(_read_other, where.folder))
    except SettingsProblem as problem:
        raise where.wrong(problem.key, problem.sentence) from None
    except UsageError as error:
        raise where.wrong("", str(error)) from None


def _spelled_out(hint: Any, value: Any, default: Any = None) -> Any:
    """The value with its short forms written out: `"grid"` is `{ kind = "grid" }`, a table without a kind has
    the default's, and 3.0 is a whole number where one is wanted."""
    chosen = alternatives(hint)
    if kinds := kinds_of(hint):
        if isinstance(value, str):
            value = {"kind": value}
        elif isinstance(value, Mapping) and "kind" not in value:
            usual = kind_of(type(default)) or (next(iter(kinds)) if len(kinds) == 1 else "")
            value = {"kind": usual, **value} if usual else value
        plugin = kinds.get(PLUGIN)
        if plugin is not None and isinstance(value, Mapping):
            value = spelled_plugin(plugin, value)
        kind = value.get("kind") if isinstance(value, Mapping) else None
        chosen = (kinds[kind],) if isinstance(kind, str) and kind in kinds else ()
    origin = typing.get_origin(chosen[0]) if chosen else None
    if isinstance(value, Mapping):
        if origin is dict:
            inner = typing.get_args(chosen[0])[1]
            return {key: _spelled_out(inner, entry) for key, entry in value.items()}
        if chosen and is_table(chosen[0]):
            known = fields_of(chosen[0])
            return {
                key: _spelled_out(known[key].hint, entry, known[key].default) if key in known else entry
                for key, entry in value.items()
            }
    elif isinstance(value, list) and origin is tuple and typing.get_args(chosen[0])[-1] is Ellipsis:
        return [_spelled_out(typing.get_args(chosen[0])[0], entry) for entry in value]
    elif isinstance(value, float) and value.is_integer() and _wants_int(chosen):
        return int(value)
    return value


def _wants_int(chosen: tuple[Any, ...]) -> bool:
    return any(int in (hint, *typing.get_args(hint)[:1]) for hint in chosen)


def _read_other(folder: Path, wanted: Any, value: Any) -> Any:
    """Reads what msgspec does not know. What the class itself refuses is a ValueError, so that msgspec says where."""
    if isinstance(value, wanted):
        return value
    try:
        if wanted is PluginSettings and isinstance(value, UnreadSettings):
            given = _spelled_out(value.cls, value.table)
            return read_settings(value.cls, given, read_other=partial(_read_other, folder))
        if wanted is SpanSetting:
            return _span(value)
        if wanted is AreaSetting:
            return _area(value)
        if not isinstance(value, str):
            raise ScenarioError(f"must be a text, got {shown(value)}")
        if wanted is ShapeSetting:
            return parse_shape(value)
        if wanted is FilterSetting:
            return Filter.parse(value)
        if wanted is Path:
            return _existing(folder / Path(value).expanduser())
    except SettingsProblem:
        raise
    except UsageError as error:
        raise ScenarioError(str(error)) from None
    raise TypeError(f"cannot read a {wanted}")  # pragma: no cover: a settings class of ours is wrong


def _span(value: Any) -> Span:
    if isinstance(value, list | tuple) and len(value) != 2:
        raise ScenarioError(f"must be a number or [low, high], got a list of {len(value)}")
    for i, number in enumerate(value) if isinstance(value, list | tuple) else (("", value),):
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise SettingsProblem(f"[{i}]" if i != "" else "", f"must be a number, got {shown(number)}")
    return Span(*value) if isinstance(value, list | tuple) else Span(value, value)


def _area(value: Any) -> Area:
    if isinstance(value, str):
        text, _, at = value.partition(" at ")
        value = {"shape": text, "at": at.split(",") if at else [0.0, 0.0]}
    if not isinstance(value, Mapping) or not isinstance(value.get("shape", ""), str):
        raise ScenarioError(f'must be a table as in {{ shape = "circle:300m", at = [500, 500] }}, got {shown(value)}')
    for key in value:
        if key not in ("shape", "at"):
            raise SettingsProblem(key, unknown_key(key, ("shape", "at")))
    if "shape" not in value:
        raise SettingsProblem("shape", "is missing")
    try:
        place = msgspec.convert(value.get("at", [0.0, 0.0]), Position, strict=False)
    except msgspec.ValidationError:
        raise SettingsProblem("at", f"must be [x, y], got {value['at']}") from None
    return Area(parse_shape(value["shape"]), place)


def _existing(path: Path) -> Path:
    found = path.resolve()
    if not found.exists():
        raise ScenarioError(f"no such file: {found}; check the path")
    return found


# The other way round.


def as_table(value: Any, *, by_content: bool = False, sparse: bool = False) -> Any:
    """The value as TOML and JSON have it; `read` takes it back.

    With `by_content` a file is its content's hash, which says whether two runs are the same. With `sparse`
    what equals its default is left out.
    """
    match value:
        case None | bool() | int() | float() | str() if not isinstance(value, Enum):
            return value
        case Enum():
            return value.value
        case Span():
            return value.low if value.low == value.high else [value.low, value.high]
        case Position():
            return [value.x_m, value.y_m]
        case Area():
            return {"shape": str(value.shape), "at": as_table(value.at)}
        case Path() if by_content:
            return {"sha256": content_hash(value)}
        case Circle() | Rectangle() | Ellipse() | Polygon() | Filter() | Path():
            return str(value)
        case Mapping():
            return {str(key): as_table(item, by_content=by_content, sparse=sparse) for key, item in value.items()}
        case tuple() | list():
            return [as_table(item, by_content=by_content, sparse=sparse) for item in value]
        case set() | frozenset():
            return sorted(as_table(item) for item in value)
    if isinstance(value, PluginTable):
        return _plugin_as_table(value, by_content, sparse)
    if isinstance(value, SettingsTable):
        kind = kind_of(type(value))
        found = {"kind": kind} if kind else {}
        for name, key in fields_of(cast(Any, type(value))).items():
            item = getattr(value, name)
            if item is not None and not (sparse and not key.required and item == value.default_of(name)):
                found[name] = as_table(item, by_content=by_content, sparse=sparse)
        if by_content and (held := value.content()):
            found = {key: item for key, item in {**found, **held}.items() if item is not None}
        return found
    raise TypeError(f"{type(value).__name__} cannot be written as a table")


def _plugin_as_table(value: PluginTable, by_content: bool, sparse: bool) -> dict[str, Any]:
    """A plug-in's table as its author writes it: the name as the kind, and all keys beside it."""
    found: dict[str, Any] = {"kind": value.use, **({"code": value.code} if by_content else {})}
    for name, key in fields_of(cast(Any, type(value))).items():
        item = getattr(value, name)
        if name not in ("use", "settings") and not (sparse and item == key.default):
            found[name] = as_table(item, by_content=by_content, sparse=sparse)
    return {**found, **as_table(value.settings, by_content=by_content, sparse=sparse)}


def content_hash(path: Path) -> str:
    """The SHA-256 of a file's content; of a folder: of all its files, by name."""
    if not path.exists():
        raise ScenarioError(f"{path}: no such file; check the path")
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            if file != path:
                digest.update(str(file.relative_to(path)).encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def to_json(table: Any) -> bytes:
    """A table as JSON that is the same for the same values: keys in order, no spaces."""
    return msgspec.json.encode(table, order="deterministic")
