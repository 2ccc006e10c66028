"""Missed events: what a producer holds for those who come back, and what a consumer knows it lacks.

STEAM, section 4.3: consumers recover what a partition kept from them by asking for a retransmission
of previously sent events; the producer answers from what it has cached. Events carry a sequence
number within their announcement; beacons tell the latest one, so a gap shows without any acknowledgement.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from earshot.events import Event
from earshot.geometry import Position
from earshot.protocols.steam.position_history import Trail
from earshot.protocols.steam.relevant_proximities import Key, Relevant


class EventCache:
    """The latest events of one announcement, oldest forgotten first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.latest = 0
        self._events: OrderedDict[int, Event] = OrderedDict()

    def add(self, event: Event) -> int:
        """Hold the event; its sequence number."""
        self.latest += 1
        if self.capacity:
            if len(self._events) == self.capacity:
                self._events.popitem(last=False)
            self._events[self.latest] = event
        return self.latest

    def let_go(self, outlived: Callable[[Event], bool]) -> None:
        """Forget from the oldest on what nobody would want any more."""
        while self._events and outlived(next(iter(self._events.values()))):
            self._events.popitem(last=False)

    @property
    def oldest(self) -> int:
        """The sequence number of the oldest event still held; one past the latest where none is."""
        return next(iter(self._events), self.latest + 1)

    def held(self, sequences: Iterable[int], since: float) -> list[tuple[int, Event]]:
        """Those of the asked that are held and were raised no earlier than `since`, in order."""
        found = [(number, self._events[number]) for number in sorted(set(sequences)) if number in self._events]
        return [(number, event) for number, event in found if event.time >= since]


@dataclass(slots=True)
class Reception:
    """How far this node has heard one announcement's events, and which of them it lacks."""

    epoch: float
    highest: int
    missing: dict[int, int] = field(default_factory=dict)
    "Sequence number -> how often it has been asked for."

    def heard(self, sequence: int, limit: int) -> None:
        """This one arrived; those it skipped are missing."""
        self.missing.pop(sequence, None)
        if sequence > self.highest:
            self.told(sequence - 1, 0, limit)
            self.highest = sequence

    def told(self, latest: int, oldest: int, limit: int) -> None:
        """The producer has raised up to `latest` and holds from `oldest` on. No more than `limit` are
        missed at a time: the newest."""
        if latest > self.highest:
            newly = range(max(self.highest + 1, oldest, latest - limit + 1), latest + 1)
            self.missing.update(dict.fromkeys(newly, 0))
            self.highest = latest
        if self.missing:
            kept = sorted(number for number in self.missing if number >= oldest)[-limit:]
            self.missing = {number: self.missing[number] for number in kept}

    def nothing_before(self, oldest: int) -> None:
        """What came before that one is no longer to be had, or not ours."""
        self.missing = {number: asked for number, asked in self.missing.items() if number >= oldest}

    def ask(self, attempts: int) -> tuple[list[int], list[int]]:
        """What to ask for now, and what has been asked for often enough to give up."""
        given_up = sorted(number for number, asked in self.missing.items() if asked >= attempts)
        for number in given_up:
            del self.missing[number]
        wanted = sorted(self.missing)
        for number in wanted:
            self.missing[number] += 1
        return wanted, given_up


class MissedEvents:
    """What one consumer lacks of the announcements it follows. It asks only for what can be owed to it:
    raised while it stood inside, not too long ago."""

    def __init__(
        self, limit: int, capacity: int, lifespan_s: float, trail: Trail, look: Callable[[float], Position]
    ) -> None:
        self.limit = limit
        "Missing events of one announcement; 0: nothing is followed."
        self.capacity = capacity
        "Announcements followed, the one followed longest forgotten first."
        self.lifespan_s = lifespan_s
        self.trail = trail
        self.look = look
        "Adds to the trail where the node is now."
        self._receptions: OrderedDict[Key, Reception] = OrderedDict()

    def follow(self, entry: Relevant) -> None:
        """From here on: what was raised before is not missed."""
        self._begin(entry, entry.advert.latest)

    def catch_up(self, entry: Relevant, now: float) -> bool:
        """Follow a proximity that has just been discovered, or discovered again after its beacons had
        stopped; whether something is missing."""
        known = self._receptions.get(entry.key)
        if known is None or known.epoch != entry.advert.epoch:
            self._begin(entry, 0)
        return self.told(entry, now)

    def told(self, entry: Relevant, now: float) -> bool:
        """A beacon says how far its producer is; whether something is missing."""
        reception = self._receptions.get(entry.key)
        if reception is None:
            return False
        reception.told(entry.advert.latest, entry.advert.oldest, self.limit)
        if reception.missing and entry.advert.raised_at < self.owed_since(entry, now):
            reception.missing.clear()
        return bool(reception.missing)

    def heard(self, key: Key, epoch: float, sequence: int) -> bool:
        """An event arrived; whether something is missing."""
        reception = self._receptions.get(key)
        if reception is None or reception.epoch != epoch:
            return False
        reception.heard(sequence, self.limit)
        return bool(reception.missing)

    def nothing_before(self, key: Key, epoch: float, oldest: int) -> None:
        """What came before that one is no longer to be had, or not ours."""
        reception = self._receptions.get(key)
        if reception is not None and reception.epoch == epoch:
            reception.nothing_before(oldest)

    def ask(self, key: Key, attempts: int) -> tuple[list[int], list[int]]:
        """What to ask for now, and what to give up."""
        reception = self._receptions.get(key)
        return ([], []) if reception is None else reception.ask(attempts)

    def forget(self, key: Key) -> None:
        """Nothing raised there from now on is missed."""
        self._receptions.pop(key, None)

    def owed_since(self, entry: Relevant, now: float) -> float:
        """Nothing raised before this can be owed to us: too old, or we were not inside yet."""
        self.look(now)
        area = entry.advert.area()
        since = self.trail.start if area is None or entry.mobile else self.trail.inside_since(area)
        return max(now - self.lifespan_s, now if since is None else since)

    def _begin(self, entry: Relevant, highest: int) -> None:
        if not self.limit:
            return
        if len(self._receptions) >= self.capacity:
            self._receptions.popitem(last=False)
        self._receptions[entry.key] = Reception(entry.advert.epoch, highest)
