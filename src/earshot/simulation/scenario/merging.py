"""Merging: a scenario's tables override those of its base.

Tables merge key by key; any other value replaces. Where a table's `kind` changes, keys of the base
that the new kind does not have are dropped. None removes a key.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from earshot.errors import ScenarioError
from earshot.settings import fields_of, is_table, kinds_of
from earshot.simulation.media.radios import IDEAL

Table = Mapping[str, Any]


def merged(base: Table, over: Table, hint: Any) -> dict[str, Any]:
    """The keys of `base`, overridden by those of `over`; both tables are of the type `hint`."""
    kinds = kinds_of(hint)
    chosen = kinds.get(over.get("kind", base.get("kind"))) if kinds else hint
    known = fields_of(chosen) if is_table(chosen) else {}
    found = dict(base)
    if kinds and "kind" in over and over["kind"] != base.get("kind", over["kind"]):
        found = {key: value for key, value in base.items() if key in known}
    for key, value in over.items():
        inner = (
            known[key].hint if key in known else typing.get_args(hint)[-1] if typing.get_origin(hint) is dict else None
        )
        under = found.get(key)
        if isinstance(under, str) and kinds_of(inner):
            under = {"kind": under}
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            found[key] = merged(under if isinstance(under, Mapping) else {}, value, inner)
        elif isinstance(value, str) and kinds_of(inner) and isinstance(under, Mapping):
            found[key] = merged(under, {"kind": value}, inner)
        else:
            found[key] = value
    return found


def spelled(table: Table) -> dict[str, Any]:
    """A scenario's table with the kind of medium that its radio implies. ScenarioError for a key that was renamed."""
    if "overlay" in table:
        raise ScenarioError("overlay: this table was renamed; write [infrastructure]")
    medium = table.get("medium")
    if isinstance(medium, Mapping) and "radio" in medium and "kind" not in medium:
        kind = "unit-disk" if medium["radio"] == IDEAL else "contention"
        return {**table, "medium": {**medium, "kind": kind}}
    return dict(table)


def nested(changes: Table) -> dict[str, Any]:
    """`{"medium.range_m": 150}` as tables within tables."""
    found: dict[str, Any] = {}
    for dotted, value in changes.items():
        inner = value
        for part in reversed(dotted.split(".")):
            inner = {part: inner}
        found = _joined(found, inner, dotted)
    return found


def _joined(table: Table, other: Table, dotted: str) -> dict[str, Any]:
    joined = dict(table)
    for key, value in other.items():
        if key not in joined:
            joined[key] = value
        elif isinstance(joined[key], Mapping) and isinstance(value, Mapping):
            joined[key] = _joined(joined[key], value, dotted)
        else:
            raise ScenarioError(f"{dotted}: {key} is set as a whole and in parts")
    return joined


def without(table: Table, left_out: str) -> dict[str, Any]:
    """The table without one dotted key; KeyError if the table does not have it."""
    first, _, rest = left_out.partition(".")
    if first not in table:
        raise KeyError(left_out)
    if not rest:
        return {key: value for key, value in table.items() if key != first}
    if not isinstance(table[first], Mapping):
        raise KeyError(left_out)
    return {**table, first: without(table[first], rest)}


def leaves(table: Table, prefix: str = "") -> list[str]:
    """Every dotted key of a table whose value is not a table."""
    found = []
    for key, value in table.items():
        dotted = f"{prefix}{key}"
        found.extend(leaves(value, f"{dotted}.") if isinstance(value, Mapping) and value else [dotted])
    return found
