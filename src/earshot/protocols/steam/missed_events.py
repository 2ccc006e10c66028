"""Missed events: which events of the announcements it follows a consumer has not received.

STEAM, section 4.3: a consumer recovers missed events by asking the producer to send them again.
Events carry a sequence number within their announcement and beacons carry the latest number, so a
gap is seen without acknowledgements.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from earshot.geometry import Area
from earshot.protocols.machine import Location
from earshot.protocols.steam.packets import Advert, Key


@dataclass(slots=True)
class Reception:
    """Up to which event this node has heard one announcement, and which events are missing."""

    epoch: float
    highest: int
    limit: int
    "At most this many events are missing at a time: the newest."
    missing: dict[int, int] = field(default_factory=dict)
    "Sequence number -> how often this node has asked for it."

    def received(self, sequence: int) -> bool:
        """This event arrived; the ones it skipped are missing. Returns whether any event is missing."""
        self.missing.pop(sequence, None)
        if sequence > self.highest:
            self.raised_up_to(sequence - 1, oldest=0)
            self.highest = sequence
        return bool(self.missing)

    def raised_up_to(self, latest: int, oldest: int) -> bool:
        """The producer has raised events up to `latest` and holds them from `oldest` on. Returns whether any
        event is missing."""
        if latest > self.highest:
            newly = range(max(self.highest + 1, oldest, latest - self.limit + 1), latest + 1)
            self.missing.update(dict.fromkeys(newly, 0))
            self.highest = latest
        if self.missing:
            kept = sorted(number for number in self.missing if number >= oldest)[-self.limit :]
            self.missing = {number: self.missing[number] for number in kept}
        return bool(self.missing)

    def nothing_before(self, oldest: int) -> None:
        """Earlier events are no longer held, or were not raised for this node."""
        self.missing = {number: asked for number, asked in self.missing.items() if number >= oldest}

    def next_request(self, attempts: int) -> tuple[list[int], list[int]]:
        """The numbers to ask for now, and those to give up after `attempts` requests."""
        given_up = sorted(number for number, asked in self.missing.items() if asked >= attempts)
        for number in given_up:
            del self.missing[number]
        wanted = sorted(self.missing)
        for number in wanted:
            self.missing[number] += 1
        return wanted, given_up


class Receptions:
    """The announcements that one consumer follows, at most `capacity`: the oldest are forgotten first."""

    def __init__(self, capacity: int, limit: int) -> None:
        self.capacity = capacity
        self.limit = limit
        "Missing events per announcement; 0: nothing is followed."
        self._by_key: OrderedDict[Key, Reception] = OrderedDict()

    def of(self, key: Key, epoch: float) -> Reception | None:
        """The reception of this announcement; None if this node does not follow it."""
        reception = self._by_key.get(key)
        return None if reception is None or reception.epoch != epoch else reception

    def follow(self, advert: Advert, heard_up_to: int) -> None:
        """Follow an announcement; events up to this number are not missing."""
        if not self.limit:
            return
        if len(self._by_key) >= self.capacity:
            self._by_key.popitem(last=False)
        self._by_key[advert.key] = Reception(advert.epoch, heard_up_to, self.limit)

    def forget(self, key: Key) -> None:
        """Nothing raised there from now on is missed."""
        self._by_key.pop(key, None)


MAX_STEPS = 256
"How many earlier positions `inside_since` looks at."


def inside_since(area: Area, location: Location, earliest: float, now: float, step_s: float) -> float:
    """When the node last entered the area, exact to a millisecond and never too late; `earliest` if it has been
    inside since then, `now` if it is outside. An absence shorter than the step may go unnoticed."""
    if not area.contains(location.position(now)):
        return now
    inside_at, step_s = now, max(step_s, (now - earliest) / MAX_STEPS)
    while inside_at > earliest:
        outside_at = max(earliest, inside_at - step_s)
        if area.contains(location.position(outside_at)):
            inside_at = outside_at
            continue
        while inside_at - outside_at > 0.001:
            middle = (outside_at + inside_at) / 2
            if area.contains(location.position(middle)):
                inside_at = middle
            else:
                outside_at = middle
        return outside_at
    return earliest
