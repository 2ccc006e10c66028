"""How much of what it hears a broker's summary lets pass, by event type.

A broker whose many subscriptions want nearly every event, or whose summary can no longer tell them
apart, says so in a few bytes instead of a long summary: it hears a little more in vain, and the
network carries less. Only events that come to everybody may be counted: what the mesh brings was
chosen by the summary itself.
"""

from __future__ import annotations

from dataclasses import dataclass

ENOUGH = 12
"Events to hear before the share means something."
WINDOW = 64
"Events after which the older half counts half."
SLACK = 0.2
"By how much the share must fall below the limit before the broker is choosy again."


@dataclass(slots=True)
class _Share:
    heard: float = 0.0
    passed: float = 0.0
    greedy: bool = False


class Appetite:
    """Shares of events that pass, by event type; at most `capacity` types."""

    def __init__(self, limit: float, capacity: int) -> None:
        self._limit = limit
        self._capacity = capacity
        self._types: dict[int, _Share] = {}

    def note(self, type: int, passes: bool) -> bool:
        """An event of this type was heard; True where that changes whether the broker is greedy for it."""
        share = self._types.get(type)
        if share is None:
            if len(self._types) >= self._capacity:
                return False
            share = self._types[type] = _Share()
        share.heard += 1
        share.passed += passes
        if share.heard >= WINDOW:
            share.heard /= 2
            share.passed /= 2
        if share.heard < ENOUGH:
            return False
        was = share.greedy
        share.greedy = share.passed >= (self._limit - SLACK if was else self._limit) * share.heard
        return share.greedy != was

    def greedy(self, type: int) -> bool:
        """Whether the broker wants nearly every event of this type."""
        share = self._types.get(type)
        return share is not None and share.greedy

    def clear(self) -> None:
        """Its subscriptions have changed: begin anew."""
        self._types.clear()
