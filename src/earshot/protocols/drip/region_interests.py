"""Beyond the paper: what a region wants, in a few filters and one rectangle, so that every broker knows it.

Section V.B.2 lets brokers share each subscriber's record, which takes longer and more of the channel the larger
the network is. A region's interest is a superset of its subscribers' filters that does not grow with them: an
event type with many filters counts as wanted whole, and places are one rectangle around the subscribers. The
region's own broker, and in the end the subscriber itself, decide exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from earshot.events import Event
from earshot.filters import Filter
from earshot.filters.language.syntax import Always
from earshot.geometry import Position
from earshot.protocols.common.filter_texts import read_filter
from earshot.protocols.common.local_subscriptions import event_types_of
from earshot.protocols.drip.packets import DripSettings, RegionInterest

Box = tuple[float, float, float, float]
"Least x, least y, most x, most y, in metres."
EVERYTHING: Final = str(Filter(Always()))
"The filter that every event meets."
EVERYWHERE: Final[Box] = (-math.inf, -math.inf, math.inf, math.inf)
_BLOCK_M: Final = 100.0
"Rectangles end at multiples of this, so that they do not change with every step of a subscriber."
_SLACK_M: Final = 100.0
"A rectangle is shared larger than it is by this much, so that a subscriber on its border does not change it at once."


def widened(box: Box, by_m: float) -> Box:
    return box[0] - by_m, box[1] - by_m, box[2] + by_m, box[3] + by_m


def is_near(event: Event, box: Box, margin_m: float) -> bool:
    """Whether the event's area may reach into the rectangle, or comes closer to it than the margin."""
    area = event.area
    if area is None:
        return True
    east = max(box[0] - area.at.x_m, area.at.x_m - box[2], 0.0)
    north = max(box[1] - area.at.y_m, area.at.y_m - box[3], 0.0)
    return math.hypot(east, north) <= area.shape.reach_m + margin_m


def box_around(positions: Iterable[Position | None], margin_m: float) -> Box:
    """The rectangle that contains the positions and a margin; everywhere, if one of them is unknown."""
    places = list(positions)
    known = [place for place in places if place is not None]
    if not known or len(known) < len(places):
        return EVERYWHERE
    xs, ys = [place.x_m for place in known], [place.y_m for place in known]
    least = (math.floor((min(values) - margin_m) / _BLOCK_M) * _BLOCK_M for values in (xs, ys))
    most = (math.ceil((max(values) + margin_m) / _BLOCK_M) * _BLOCK_M for values in (xs, ys))
    return (*least, *most)  # type: ignore[return-value]


def summary_of(texts: Iterable[str], most: int) -> tuple[str, ...]:
    """Filters that match whatever one of these matches: a type with more than `most` of them is wanted whole."""
    by_type: dict[str, set[str]] = {}
    for text in set(texts):
        filter = read_filter(text)
        types = None if filter is None else event_types_of(filter)
        for name in ("",) if types is None else types:
            by_type.setdefault(name, set()).add(text)
    found: set[str] = set()
    for name, filters in by_type.items():
        if len(filters) > most:
            found.add(str(Filter.of_type(name)) if name else EVERYTHING)
        else:
            found |= filters
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class Interest:
    """What a region wants."""

    filters: tuple[str, ...] = ()
    box: Box = EVERYWHERE

    def wants(self, event: Event) -> bool:
        """Whether a subscriber of the region may want the event."""
        return is_near(event, self.box, 0.0) and any(
            filter is not None and filter.matches(event) for filter in map(read_filter, self.filters)
        )

    def includes(self, other: Interest) -> bool:
        """Whether everything that the other one wants is wanted here too."""
        (left, low, right, high), (x0, y0, x1, y1) = self.box, other.box
        inside = left <= x0 and low <= y0 and x1 <= right and y1 <= high
        return not other.filters or (inside and all(map(self._covers, other.filters)))

    def _covers(self, text: str) -> bool:
        filter = read_filter(text)
        if text in self.filters or filter is None:
            return True
        return any(own is not None and own.covers(filter) for own in map(read_filter, self.filters))


@dataclass(slots=True)
class InterestOffer:
    """The last interest that was sent to a broker."""

    version: int = 0
    until: float = -math.inf
    "It is sent again after this time."
    attempts: int = 0
    confirmed: int = 0
    "The latest version that the broker has confirmed."


@dataclass(slots=True)
class Interests:
    """This broker's own interest, as the others know it, and theirs."""

    settings: DripSettings
    version: int
    "The number of the own interest; it keeps growing through a restart."
    own: Interest = Interest()
    "The own interest as it was last shared."
    present: Interest = Interest()
    "What it was then without the slack."
    shared_at: float = -math.inf
    others: dict[str, Interest] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    offers: dict[str, InterestOffer] = field(default_factory=dict)

    def update(self, present: Interest, now: float) -> None:
        """What the region wants now. More is shared at once; less waits until the interest is due for renewal."""
        is_old = now - self.shared_at >= self.settings.interest_renew_s
        if not self.own.includes(present) or (is_old and present != self.present):
            self.present = present
            self.own = Interest(present.filters, widened(present.box, _SLACK_M))
            self.version += 1
        if is_old:
            self.shared_at = now

    def due_to(self, brokers: Sequence[str], now: float) -> str:
        """The first broker that lacks the present version and has not been sent it recently; empty if none."""
        for broker in brokers:
            offer = self.offers.setdefault(broker, InterestOffer())
            if offer.confirmed < self.version and (offer.version < self.version or offer.until <= now):
                return broker
        return ""

    def offer_to(self, broker: str, now: float) -> tuple[int, tuple[str, ...], Box]:
        """Count one more attempt; returns what is sent. Each failed attempt doubles the time to the next."""
        offer = self.offers[broker]
        offer.attempts = offer.attempts + 1 if offer.version == self.version else 0
        offer.version = self.version
        offer.until = now + self.settings.taken_wait_s * 2 ** min(offer.attempts, 6)
        return self.version, self.own.filters, self.own.box

    def on_confirmed(self, broker: str, version: int) -> None:
        if (offer := self.offers.get(broker)) is not None:
            offer.confirmed = max(offer.confirmed, min(version, self.version))

    def learn(self, packet: RegionInterest) -> bool:
        """Another broker's interest; returns whether it is newer than what is known."""
        known = packet.origin in self.others
        if known and packet.version <= self.versions[packet.origin]:
            return False
        if (not known and len(self.others) >= self.settings.memory) or len(packet.filters) > self.settings.memory:
            return False
        self.others[packet.origin] = Interest(packet.filters, packet.box)
        self.versions[packet.origin] = packet.version
        return True

    def wanting(self, event: Event, brokers: Iterable[str]) -> list[str]:
        """The brokers whose regions want the event. Of a region that is not known yet, everything counts as wanted."""
        return [broker for broker in brokers if broker not in self.others or self.others[broker].wants(event)]
