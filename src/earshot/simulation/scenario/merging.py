"""Merging: a scenario's tables, laid over those of its base.

Tables merge key by key; any other value replaces. Where a table's `kind` changes, keys of the base
that the new kind does not have are dropped. None leaves a key out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from earshot.errors import ScenarioError
from earshot.simulation.settings_schema import settings_of

Table = Mapping[str, Any]

Choices = Mapping[str, Mapping[str, Any]]
"The kinds of each table whose `kind` decides what other keys it has, by the table's key."


def merged(base: Table, over: Table, choices: Choices, name: str = "") -> dict[str, Any]:
    """`over` laid on `base`; `name` is the key the two stand under."""
    found = _kept(base, over, choices.get(name))
    for key, value in over.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            under = found.get(key)
            if isinstance(under, str) and key in choices:
                under = {"kind": under}
            found[key] = merged(under if isinstance(under, Mapping) else {}, value, choices, key)
        elif isinstance(value, str) and key in choices and isinstance(found.get(key), Mapping):
            found[key] = merged(found[key], {"kind": value}, choices, key)
        else:
            found[key] = value
    return found


def _kept(base: Table, over: Table, kinds: Mapping[str, Any] | None) -> dict[str, Any]:
    """What of a base's table stays: all of it, or where the kind changes what the new kind has too."""
    if kinds is not None and "kind" in over and over["kind"] != base.get("kind", over["kind"]):
        chosen = kinds.get(over["kind"])
        known = settings_of(chosen) if chosen is not None else {}
        return {key: value for key, value in base.items() if key in known}
    return dict(base)


def nested(changes: Table) -> dict[str, Any]:
    """`{"medium.range_m": 150}` as tables within tables."""
    found: dict[str, Any] = {}
    for dotted, value in changes.items():
        inner = value
        for part in reversed(dotted.split(".")):
            inner = {part: inner}
        found = _joined(found, inner, dotted)
    return found


def _joined(one: Table, other: Table, dotted: str) -> dict[str, Any]:
    joined = dict(one)
    for key, value in other.items():
        if key not in joined:
            joined[key] = value
        elif isinstance(joined[key], Mapping) and isinstance(value, Mapping):
            joined[key] = _joined(joined[key], value, dotted)
        else:
            raise ScenarioError(f"{dotted}: {key} is set as a whole and in parts")
    return joined


def without(table: Table, left_out: str) -> dict[str, Any]:
    """The table without one dotted key; KeyError where it is not there."""
    first, _, rest = left_out.partition(".")
    if first not in table:
        raise KeyError(left_out)
    if not rest:
        return {key: value for key, value in table.items() if key != first}
    if not isinstance(table[first], Mapping):
        raise KeyError(left_out)
    return {**table, first: without(table[first], rest)}


def leaves(table: Table, prefix: str = "") -> list[str]:
    """Every dotted key of a table that is no table itself."""
    found = []
    for key, value in table.items():
        dotted = f"{prefix}{key}"
        found.extend(leaves(value, f"{dotted}.") if isinstance(value, Mapping) and value else [dotted])
    return found
