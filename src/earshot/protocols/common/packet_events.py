"""The events in a packet: a packet may carry several, in lists or in parts of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, get_type_hints

import msgspec

from earshot.events import Event
from earshot.wire import Packet


def events_in(packet: Packet) -> Iterator[Event]:
    """All events that a packet carries, however deep."""
    for name in _event_fields(type(packet)):
        yield from _events_of(getattr(packet, name))


def _events_of(value: Any) -> Iterator[Event]:
    if isinstance(value, Event):
        yield value
    elif isinstance(value, list | tuple | frozenset):
        for inner in value:
            yield from _events_of(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _events_of(inner)
    elif isinstance(value, msgspec.Struct):
        for name in _event_fields(type(value)):
            yield from _events_of(getattr(value, name))


@cache
def _event_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of a struct that may hold events."""
    hints = get_type_hints(kind)
    return tuple(name for name in kind.__struct_fields__ if _may_hold_events(hints[name], (kind,)))


def _may_hold_events(hint: Any, above: tuple[Any, ...]) -> bool:
    if hint is Event or hint is Any:
        return True
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        if hint in above:
            return False
        return any(_may_hold_events(inner, (*above, hint)) for inner in get_type_hints(hint).values())
    return any(_may_hold_events(inner, above) for inner in getattr(hint, "__args__", ()))
