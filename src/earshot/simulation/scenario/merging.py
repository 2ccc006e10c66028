"""Merging: a scenario's tables, laid over those of its base.

Tables merge key by key; any other value replaces. Where a table's `kind` changes, keys of the base
that the new kind does not have are dropped. None leaves a key out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from earshot.errors import ScenarioError
from earshot.simulation.media.medium_settings import MEDIA
from earshot.simulation.mobility import MOBILITY_KINDS
from earshot.simulation.scenario.nodes import ABILITY_KINDS
from earshot.simulation.settings_schema import settings_of
from earshot.simulation.workload.generators import EVENT_KINDS
from earshot.simulation.workload.interests import FILTER_KINDS
from earshot.simulation.workload.timing import WHEN_KINDS

Table = Mapping[str, Any]

CHOICES: dict[str, Mapping[str, Any]] = {
    "medium": MEDIA,
    "ability": ABILITY_KINDS,
    "mobility": MOBILITY_KINDS,
    "events": EVENT_KINDS,
    "filters": FILTER_KINDS,
    "when": WHEN_KINDS,
}
"The tables whose `kind` decides what other keys they have."


def merged(base: Table, over: Table, name: str = "") -> dict[str, Any]:
    """`over` laid on `base`; `name` is the key the two stand under."""
    found = _kept(base, over, name)
    for key, value in over.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            under = found.get(key)
            if isinstance(under, str) and key in CHOICES:
                under = {"kind": under}
            found[key] = merged(under if isinstance(under, Mapping) else {}, value, key)
        elif isinstance(value, str) and key in CHOICES and isinstance(found.get(key), Mapping):
            found[key] = merged(found[key], {"kind": value}, key)
        else:
            found[key] = value
    return found


def _kept(base: Table, over: Table, name: str) -> dict[str, Any]:
    """What of a base's table stays: all of it, or where the kind changes what the new kind has too."""
    if name in CHOICES and "kind" in over and over["kind"] != base.get("kind", over["kind"]):
        chosen = CHOICES[name].get(over["kind"])
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
