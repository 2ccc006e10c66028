"""Settings classes as plain values: their keys, their units, and themselves as TOML and JSON have them.

A settings class is a frozen dataclass: its fields are the keys, its annotations the types. One that
is chosen by a table's `kind` has that word as a class attribute. `toml.py` reads them.
"""

from __future__ import annotations

import hashlib
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from earshot.errors import ScenarioError
from earshot.filters import Filter
from earshot.geometry import Area, Circle, Ellipse, Polygon, Position, Rectangle
from earshot.simulation.draws import Span

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


def unit_of(name: str) -> str:
    """The unit a key's name ends with, in words; empty where it has none."""
    parts = name.split("_")
    for taken in (3, 2, 1):
        if len(parts) > taken and "_".join(parts[-taken:]) in UNITS:
            return UNITS["_".join(parts[-taken:])]
    return ""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of the user's own that a scenario names; known by its content, not by its path."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def sha256(self) -> str:
        """The hash of what is in it (of a folder: of all its files, by name)."""
        if not self.path.exists():
            raise ScenarioError(f"{self.path}: no such file")
        parts = sorted(self.path.rglob("*")) if self.path.is_dir() else [self.path]
        digest = hashlib.sha256()
        for part in parts:
            if part.is_file():
                if part != self.path:
                    digest.update(str(part.relative_to(self.path)).encode())
                digest.update(part.read_bytes())
        return digest.hexdigest()


def kind_of(cls: Any) -> str:
    """The word by which tables choose this class among others; empty where there is no choice."""
    kind = cls.__dict__.get("kind", "")
    return kind if isinstance(kind, str) and "kind" not in {field.name for field in fields(cls)} else ""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a settings class: its field, and its annotation as a type."""

    field: Field[Any]
    type: Any

    @property
    def kinds(self) -> Mapping[str, Any] | None:
        """The classes its table's `kind` chooses from, where there is a choice."""
        return self.field.metadata.get("kinds")

    @property
    def required(self) -> bool:
        return self.field.default is MISSING and self.field.default_factory is MISSING

    @property
    def default(self) -> Any:
        """What holds where the key is not given (None where it must be)."""
        if self.field.default is not MISSING:
            return self.field.default
        return self.field.default_factory() if self.field.default_factory is not MISSING else None


def settings_of(cls: Any) -> dict[str, Key]:
    """A settings class' keys by name."""
    known = _known_settings.get(cls)
    if known is None:
        hints = typing.get_type_hints(cls)
        known = {field.name: Key(field, hints[field.name]) for field in fields(cls) if field.init}
        _known_settings[cls] = known
    return known


_known_settings: dict[Any, dict[str, Key]] = {}


def plain(value: Any, *, by_content: bool = False, sparse: bool = False) -> Any:
    """The value as TOML and JSON have it; `read` takes it back.

    With `by_content` a file is its content's hash: what makes two runs the same. With `sparse`
    what equals its default is left out.
    """
    match value:
        case None | bool() | int() | float() | str() if not isinstance(value, Enum):
            return value
        case Enum():
            return value.value
        case Span():
            return value.low if value.low == value.high else [value.low, value.high]
        case DataFile():
            return {"sha256": value.sha256} if by_content else str(value.path)
        case Position():
            return [value.x_m, value.y_m]
        case Area():
            return {"shape": str(value.shape), "at": plain(value.at)}
        case Circle() | Rectangle() | Ellipse() | Polygon() | Filter() | Path():
            return str(value)
        case Mapping():
            return {str(key): plain(one, by_content=by_content, sparse=sparse) for key, one in value.items()}
        case tuple() | list():
            return [plain(one, by_content=by_content, sparse=sparse) for one in value]
        case set() | frozenset():
            return sorted(plain(one) for one in value)
    if is_dataclass(value):
        kind = kind_of(type(value))
        found = {"kind": kind} if kind else {}
        for name, key in settings_of(type(value)).items():
            one = getattr(value, name)
            if one is not None and not (sparse and not key.required and one == key.default):
                found[name] = plain(one, by_content=by_content, sparse=sparse)
        return found
    raise TypeError(f"{type(value).__name__} has no plain form")


def to_json(value: Any) -> bytes:
    """Plain values as JSON that is the same for the same values: keys in order, no spaces."""
    return msgspec.json.encode(value, order="deterministic")
