"""Settings: read and checked by msgspec, explained in our own words.

A settings class states its types and bounds in its annotations::

    class UnitDisk(KindTable, frozen=True, tag="unit-disk"):
        range_m: Positive = 100.0

`read_settings` reads a table (from TOML, JSON or a command line) into such a class, or into any
dataclass. What msgspec refuses becomes a `SettingsProblem`: the key, and a sentence that names the unit
or the nearest valid name.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, TypeVar

import msgspec

from earshot.errors import ScenarioError, SettingsError, UsageError, nearest_name

T = TypeVar("T")

LARGEST = sys.float_info.max
Finite = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=LARGEST)]
NotNegative = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]

UNITS: dict[str, str] = {
    "m": "metres",
    "m_s": "metres a second",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "per_s": "a second",
    "per_min": "a minute",
    "deg": "degrees",
    "bytes": "bytes",
    "bit_s": "bits a second",
    "bits_per_s": "bits a second",
    "bps": "bits a second",
    "dbm": "dBm",
    "db": "dB",
    "hz": "hertz",
    "packets": "packets",
    "frames": "frames",
    "s_per_km": "seconds a kilometre",
}


class SettingsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of a scenario's settings classes. Bounds are also checked for values that are built in Python: msgspec
    alone checks them only when it reads."""

    def __post_init__(self) -> None:
        check_bounds(self, ScenarioError)
        self.validate()

    def validate(self) -> None:
        """Raise a `SettingsError` that begins with the key, if values contradict each other."""

    def content(self) -> dict[str, Any]:
        """For settings that name data outside the scenario's files: keys with a digest of that data. They replace the
        keys that name the data when two runs are compared."""
        return {}

    def default_of(self, name: str) -> Any:
        """The value that the key has in these settings when it is not given."""
        return fields_of(type(self))[name].default


def check_bounds(settings: Any, error: type[SettingsError] = SettingsError) -> None:
    """Refuse values that their annotations do not allow, in settings that are built in Python."""
    cls: Any = type(settings)
    for name, hint in _limited_fields(cls):
        value = getattr(settings, name)
        try:
            msgspec.convert(value, hint)
        except msgspec.ValidationError as refusal:
            problem = explain(refusal, hint, value, name)
            between = " " if problem.sentence.startswith("must") else ": "
            raise error(f"{problem.key}{between}{problem.sentence}") from None


class KindTable(SettingsTable, frozen=True, tag_field="kind"):
    """The base of settings classes that a table chooses by its `kind`."""

    @property
    def kind(self) -> str:
        """The word that chooses this class."""
        return kind_of(type(self))


class SettingsProblem(SettingsError):
    """A value that a table must not have: its dotted key (empty for the whole table), and why."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(f"{key}: {sentence}" if key else sentence)
        self.key = key
        self.sentence = sentence

    def __reduce__(self) -> Any:
        return SettingsProblem, (self.key, self.sentence)


def read_settings(
    cls: type[T], table: Any, *, strict: bool = True, read_other: Callable[[Any, Any], Any] | None = None
) -> T:
    """The settings that a table gives. With `strict=False` texts become numbers and lists (`a,b`), as a command line
    needs. `read_other(type, value)` reads the types that msgspec does not know."""
    if dataclasses.is_dataclass(cls) and isinstance(table, Mapping):
        for key in table:
            if key not in fields_of(cls):  # msgspec checks this for structs only
                raise SettingsProblem(key, unknown_key(key, fields_of(cls)))
        if not strict:
            table = {key: _as_list(value, fields_of(cls)[key].hint) for key, value in table.items()}
    try:
        return msgspec.convert(table, cls, strict=strict, dec_hook=read_other)
    except msgspec.ValidationError as error:
        raise explain(error, cls, table, read_other=read_other) from None


def _as_list(value: Any, hint: Any) -> Any:
    """A text such as `a,b` as a list, if the setting is a list."""
    if isinstance(value, str) and all(typing.get_origin(kind) is tuple for kind in alternatives(hint)):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


# What a class says about its keys.


@dataclasses.dataclass(frozen=True, slots=True)
class SettingsField:
    """One key of a settings class: its annotation as a type, and its default."""

    hint: Any
    required: bool
    default: Any
    "None if the key is required."


@lru_cache(maxsize=512)
def fields_of(cls: Any) -> dict[str, SettingsField]:
    """The keys of a settings class, by name."""
    hints = typing.get_type_hints(cls, include_extras=True)
    own: Any = msgspec.structs.fields(cls) if issubclass(cls, msgspec.Struct) else dataclasses.fields(cls)
    missing = (msgspec.NODEFAULT, dataclasses.MISSING)
    found = {}
    for declared in own:
        default = declared.default if declared.default_factory in missing else declared.default_factory()
        required = any(default is none for none in missing)
        found[declared.name] = SettingsField(hints[declared.name], required, None if required else default)
    return found


def kind_of(cls: Any) -> str:
    """The `kind` by which a table chooses this class among others; empty if there is no choice."""
    tag = cls.__struct_config__.tag if isinstance(cls, type) and issubclass(cls, msgspec.Struct) else None
    return str(tag) if tag is not None else ""


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The types that a hint allows, without None."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(kind for arm in typing.get_args(hint) for kind in alternatives(arm))
    return () if hint is types.NoneType else (hint,)


def kinds_of(hint: Any) -> dict[str, Any]:
    """The classes among which a table's `kind` chooses; empty if there is no choice."""
    return {kind_of(cls): cls for cls in alternatives(hint) if is_table(cls) and kind_of(cls)}


def is_table(hint: Any) -> bool:
    """Whether a hint is a settings class."""
    return isinstance(hint, type) and issubclass(hint, SettingsTable)


def unit_of(name: str) -> str:
    """The unit at the end of a key's name, in words; empty if it has none."""
    parts = name.split("_")
    for count in (3, 2, 1):
        if len(parts) > count and "_".join(parts[-count:]) in UNITS:
            return UNITS["_".join(parts[-count:])]
    return ""


@lru_cache(maxsize=512)
def _limited_fields(cls: Any) -> tuple[tuple[str, Any], ...]:
    hints = {name: field.hint for name, field in fields_of(cls).items()}
    return tuple((name, hint) for name, hint in hints.items() if _bounds(hint) or _choices(hint))


def _choices(hint: Any) -> list[Any]:
    literals = [kind for kind in alternatives(hint) if typing.get_origin(kind) is typing.Literal]
    return [value for literal in literals for value in literal.__args__]


def _bounds(hint: Any) -> msgspec.Meta | None:
    """The bounds of a number, or of a list's items: those of the first alternative that has bounds."""
    for kind in alternatives(hint):
        if typing.get_origin(kind) is Annotated:
            return next((meta for meta in kind.__metadata__ if isinstance(meta, msgspec.Meta)), None)
        if typing.get_origin(kind) is tuple and (found := _bounds(typing.get_args(kind)[0])):
            return found
    return None


# Errors in our own words.


def explain(
    error: msgspec.ValidationError,
    hint: Any,
    value: Any,
    key: str = "",
    read_other: Callable[[Any, Any], Any] | None = None,
) -> SettingsProblem:
    """What msgspec refused in `value`, the value of `key`, which should have the type `hint`."""
    refusal, _, path = str(error).partition(" - at `$")
    for name, index in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", path):
        hint = _chosen(hint, value)
        if name:
            choices = hint if isinstance(hint, tuple) else (hint,)
            if name == "kind" and name not in fields_of(choices[0]):
                known = [kind_of(choice) for choice in choices]
                return SettingsProblem(_joined(key, "kind"), no_such_choice(value["kind"], known))
            hint, value, key = fields_of(hint)[name].hint, value[name], _joined(key, name)
        elif index == "...":  # msgspec does not say which key of the table is wrong
            hint = typing.get_args(hint)[1]
            name = next(name for name in value if _refuses(hint, value[name], read_other))
            value, key = value[name], _joined(key, name)
        else:
            hint, value, key = _item(hint, int(index)), value[int(index)], f"{key}[{index}]"
    return _sentence(error, refusal, hint, value, key)


def _joined(key: str, inner: str) -> str:
    return f"{key}.{inner}" if key and inner and not inner.startswith("[") else key + inner


def _chosen(hint: Any, value: Any) -> Any:
    """The alternative of a hint that msgspec reads this value as; all alternatives if no kind matches."""
    kinds = kinds_of(hint)
    if len(kinds) > 1:
        kind = value.get("kind") if isinstance(value, Mapping) else None
        return kinds.get(kind, tuple(kinds.values())) if isinstance(kind, str) else tuple(kinds.values())
    lists = [kind for kind in alternatives(hint) if typing.get_origin(kind) is tuple]
    found = lists if lists and isinstance(value, list | tuple) else alternatives(hint)
    return found[0] if found else hint


def _item(hint: Any, index: int) -> Any:
    arguments = typing.get_args(hint)
    if not arguments:
        return list(fields_of(hint).values())[index].hint  # a struct that is written as a list
    return arguments[0] if arguments[-1] is Ellipsis else arguments[index]


def _refuses(hint: Any, value: Any, read_other: Callable[[Any, Any], Any] | None) -> bool:
    try:
        msgspec.convert(value, hint, dec_hook=read_other)
    except (msgspec.ValidationError, UsageError):
        return True
    return False


_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def _sentence(error: msgspec.ValidationError, refusal: str, hint: Any, value: Any, key: str) -> SettingsProblem:
    chosen = _chosen(hint, value)
    unit = _of_unit(re.split(r"[.\[]", key.rpartition(".")[2])[0])
    if isinstance(error.__cause__, SettingsProblem):
        problem = error.__cause__
        return SettingsProblem(_joined(key, problem.key), problem.sentence.replace("a number", f"a number{unit}"))
    if error.__cause__ is not None:
        # A class that checks itself names its key first: "range_m must be positive", "nodes.car: count is 3".
        first_word, _, rest = str(error.__cause__).partition(" ")
        if is_table(chosen) and re.split(r"[.\[:]", first_word)[0] in fields_of(chosen):
            return SettingsProblem(_joined(key, first_word.rstrip(":")), rest)
        return SettingsProblem(key, str(error.__cause__))
    quoted = re.findall(r"`([^`]*)`", refusal)
    if refusal.startswith("Object contains unknown field"):
        return SettingsProblem(_joined(key, quoted[0]), unknown_key(quoted[0], fields_of(chosen)))
    if refusal.startswith("Object missing required field"):
        name = quoted[0]
        kinds = kinds_of(hint)
        more = f"; it is in {unit_of(name)}" if unit_of(name) else ""
        if name == "kind" and len(kinds) > 1:
            more = f"; there are: {', '.join(kinds)}"
        return SettingsProblem(_joined(key, name), f"is missing{more}")
    if refusal.startswith("Invalid"):
        choices = _choices(hint) or [member.value for member in chosen]
        return SettingsProblem(key, no_such_choice(value, choices))
    if length := re.fullmatch(r"Expected `array` of (?:at least )?length (\d+), got (\d+)", refusal):
        return SettingsProblem(key, f"must be a list of {length[1]} values, got {length[2]}")
    if value != value:
        return SettingsProblem(key, f"must be a number{unit}, got nan")
    if bounds := _bounds(hint) if "got `" not in refusal else None:
        return SettingsProblem(key, f"{_requirement(bounds, unit)}, got {value}")
    wanted = [_WORDS.get(word, word) for word in quoted[0].split(" | ") if word != "null"]
    if len(kinds_of(hint)) > 1:
        wanted = ["a table with a kind"]
    words = " or ".join(wanted).replace("a number", f"a number{unit}")
    return SettingsProblem(key, f"must be {words}, got {shown(value)}")


def _of_unit(name: str) -> str:
    """The unit after "a number", as in " of metres"; empty for rates, and if the key names no unit."""
    unit = unit_of(name)
    return f" of {unit}" if unit and not unit.startswith("a ") else ""


def _requirement(bounds: msgspec.Meta, unit: str) -> str:
    least, most = (None if bound in (-LARGEST, LARGEST) else bound for bound in (bounds.ge, bounds.le))
    match bounds.gt, least, bounds.lt, most:
        case 0, None, None, None:
            return f"must be a positive number{unit}" if unit else "must be positive"
        case None, 0, None, None:
            return "must not be negative"
        case None, None, None, None if bounds.min_length is None:
            return f"must be a finite number{unit}"
        case None, None, None, None:
            return f"must have at least {bounds.min_length}"
        case None, least, None, None:
            return f"must be at least {least}"
        case None, least, None, most:
            return f"must be from {least:g} to {most:,}"
        case None, least, below, None:
            return f"must be at least {least:g} and below {below:g}"
        case above, None, None, None:
            return f"must be above {above:g}"
        case above, None, below, None:
            return f"must be between {above:g} and {below:g}"
    raise TypeError(f"no words for {bounds}")  # pragma: no cover: a settings class of ours is wrong


def unknown_key(key: str, known: Iterable[str]) -> str:
    """What to write instead of a key that does not exist."""
    names = list(known)
    with_unit = [name for name in names if name.startswith(f"{key}_") and name[len(key) + 1 :] in UNITS]
    if with_unit:
        return f"lacks its unit; write {with_unit[0]} ({unit_of(with_unit[0])})"
    stem = next(
        (key.removesuffix(f"_{unit}") for unit in sorted(UNITS, key=len, reverse=True) if key.endswith(f"_{unit}")), key
    )
    same = [name for name in names if unit_of(name) and name.startswith(f"{stem}_")]
    nearest = same[:1] or difflib.get_close_matches(key, names, n=1)
    if nearest:
        unit = unit_of(nearest[0])
        return f"no such key; did you mean {nearest[0]}{f' ({unit})' if unit else ''}?"
    return f"no such key; there are: {', '.join(sorted(names)) or 'none'}"


def no_such_choice(value: Any, known: Collection[Any]) -> str:
    """What to write instead of a value that is not among the choices."""
    return f"no such choice as {value!r}; {nearest_name(str(value), map(str, known))}"


def shown(value: Any) -> str:
    """A value as an error shows it, with its TOML type."""
    kind = {bool: "the boolean", int: "the number", float: "the number", str: "the text"}.get(type(value))
    if kind is None:
        return "a list" if isinstance(value, list | tuple) else "a table" if isinstance(value, Mapping) else str(value)
    text = repr(value).lower() if isinstance(value, bool) else repr(value)
    return f"{kind} {text[:60]}"
