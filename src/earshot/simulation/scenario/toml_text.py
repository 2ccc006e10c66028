"""Plain tables as TOML text, for people to read and to start a scenario of their own from."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(table: Mapping[str, Any]) -> str:
    """The table as a TOML document; `tomllib.loads` takes it back."""
    lines: list[str] = []
    _write(table, "", lines)
    return "\n".join(lines).strip() + "\n"


def _write(table: Mapping[str, Any], prefix: str, lines: list[str]) -> None:
    """Plain values first; then the tables, each under its own heading. Empty ones say nothing."""
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    if plain and prefix:
        lines.extend(("", f"[{prefix}]"))
    lines.extend(f"{_key(key)} = {_value(value)}" for key, value in plain.items())
    for key, value in table.items():
        if isinstance(value, Mapping):
            _write(value, f"{prefix}.{_key(key)}" if prefix else _key(key), lines)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case int() | float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            return "{ " + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(_value(one) for one in value) + "]"
    raise TypeError(f"TOML has no {type(value).__name__}")
