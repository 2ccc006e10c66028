"""What a node needs at the last hop of every protocol: its subscriptions, the types they want, the keys it heard, an
event's age."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from earshot.events import Event
from earshot.filters import Filter, FilterIndex, Subscription, Viewer, agrees_in_place
from earshot.filters.language.event_types import is_type_pattern, type_matches
from earshot.filters.language.lowering import loosened
from earshot.filters.language.syntax import And, AnyItem, Axis, Condition, Holds, LocationPath, NodeKind, Or
from earshot.protocols.common.byte_budget import ENTRY_BYTES, TABLE_BYTES, TableBudgets, key_bytes
from earshot.protocols.machine import Machine


def could_match(filter: Filter, subject: str) -> bool:
    """Whether some event of this type might meet the filter."""
    if filter.type is not None and is_type_pattern(filter.type):
        return type_matches(filter.type, subject)
    types = event_types_of(filter)
    return types is None or subject in types


def event_types_of(filter: Filter) -> frozenset[str] | None:
    """The event types that a filter could match; None: any. An XPath names the type in its first step."""
    if filter.type is None or is_type_pattern(filter.type):
        return _types_of(filter.condition)
    return frozenset((filter.type,))


def _types_of(condition: Condition) -> frozenset[str] | None:
    match condition:
        case LocationPath(absolute=True, steps=(first, *_)) if (
            first.axis is Axis.CHILD and first.kind is NodeKind.ELEMENT and first.name != "*"
        ):
            return frozenset((first.name,))
        case Holds() | AnyItem():
            return _types_of(loosened(condition))
        case And(terms):
            named = [types for types in map(_types_of, terms) if types is not None]
            return frozenset.intersection(*named) if named else None
        case Or(terms):
            found = [_types_of(term) for term in terms]
            named = [types for types in found if types is not None]
            return frozenset().union(*named) if len(named) == len(found) else None
        case _:
            return None


MOST_ANSWERS = 1024
"Event types for which `LocalSubscriptions` remembers whether a subscription could match them."


class RecentKeys:
    """The keys heard recently: bounded in number and in bytes, the oldest are forgotten first. A look-up is `key in
    recent.keys`."""

    __slots__ = ("_budgets", "_bytes", "_order", "_short", "_usual_bytes", "capacity", "keys")

    def __init__(self, capacity: int, budgets: TableBudgets | None = None, usual_bytes: int = TABLE_BYTES) -> None:
        self.capacity = capacity
        self.keys: set[Hashable] = set()
        self._order: deque[Hashable] = deque()
        self._budgets = budgets or TableBudgets()
        self._usual_bytes = usual_bytes
        self._bytes: int | None = None
        "None as long as all keys were short."
        self._short = -1
        "`capacity` texts of this length are within the budget; computed for the first key."

    def __contains__(self, key: Hashable) -> bool:
        return key in self.keys

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, key: Hashable) -> bool:
        """Remember the key; False if it was known already."""
        keys = self.keys
        if key in keys:
            return False
        keys.add(key)
        self._order.append(key)
        # The usual key by itself: this is done for every new event.
        if self._bytes is None and type(key) is str and len(key) <= self._short and key.isascii():
            if len(keys) > self.capacity:
                keys.remove(self._order.popleft())
        else:
            self._count(key)
        return True

    def _count(self, key: Hashable) -> None:
        """Count the bytes of the key that was added, and of all others if this is the first long one."""
        most_bytes = self._budgets.of(self._usual_bytes)
        if len(self._order) == 1 and self.capacity:
            self._short = most_bytes // self.capacity - ENTRY_BYTES
            self._bytes = None
            if type(key) is str and len(key) <= self._short and key.isascii():
                return
        self._bytes = self.bytes if self._bytes is None else self._bytes + key_bytes(key)
        while len(self.keys) > self.capacity or self._bytes > most_bytes:
            oldest = self._order.popleft()
            self.keys.remove(oldest)
            self._bytes -= key_bytes(oldest)

    @property
    def bytes(self) -> int:
        """About how many bytes the keys take."""
        return sum(map(key_bytes, self._order)) if self._bytes is None else self._bytes


class LocalSubscriptions:
    """The subscriptions of the applications on this node: the exact test at the last hop of every protocol.

    Everything is asked for the moment of publication, however late the event arrives: whether the subscription
    had begun, where this node was and how it moved. The oracle asks the same.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, Subscription] = {}
        self.since: dict[str, float] = {}
        "When each subscription began on this node."
        self._index = FilterIndex()
        self._could_match: dict[str, bool] = {}
        "Answers of `could_match`, until the subscriptions change."

    def __len__(self) -> int:
        return len(self.by_id)

    def add(self, subscription: Subscription, now: float) -> None:
        """Add the subscription; it replaces one with the same id."""
        self.remove(subscription.id)
        self._index.add(subscription.id, subscription.filter)
        self.by_id[subscription.id] = subscription
        self._could_match.clear()
        self.since[subscription.id] = now

    def remove(self, subscription_id: str) -> Subscription | None:
        """Remove and return the subscription; None if the id is unknown."""
        known = self.by_id.pop(subscription_id, None)
        if known is not None:
            del self.since[subscription_id]
            self._index.remove(subscription_id)
            self._could_match.clear()
        return known

    def could_match(self, subject: str) -> bool:
        """Whether a subscription could match events of this type."""
        known = self._could_match.get(subject)
        if known is None:
            known = any(could_match(subscription.filter, subject) for subscription in self.by_id.values())
            if len(self._could_match) >= MOST_ANSWERS:
                self._could_match.clear()
            self._could_match[subject] = known
        return known

    def accepting(self, event: Event, viewer: Viewer) -> list[str]:
        """The ids of the subscriptions that accept this event, sorted: they had begun when it was published, and
        type, content and place all agree. `viewer` is this node at that time."""
        if not self.by_id:
            return []
        found = [
            key
            for key in self._index.match(event, viewer)
            if self.since[key] <= event.time and agrees_in_place(event, self.by_id[key].region, viewer)
        ]
        found.sort()
        return found

    def deliver_local(self, machine: Machine, event: Event, hops: int, now: float) -> None:
        """Let the machine deliver the event to the local subscriptions that accept it."""
        if self.by_id:
            for subscription in self.accepting(event, machine.viewer_at(event, now)):
                machine.deliver(event, subscription, hops)


def has_expired(event: Event, lifespan_s: float, now: float) -> bool:
    """Whether an event is too old to be passed on; `lifespan_s` is for events without a lifespan of their own."""
    return now - event.time > (lifespan_s if event.lifespan_s is None else event.lifespan_s)
