"""Who is near (section IV.B): a node's nearest brokers by delay, the ways to them, and its neighbours' regions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from operator import attrgetter

from earshot.protocols.drip.packets import Announcement, Letter
from earshot.protocols.drip.settings import DripSettings


@dataclass(slots=True)
class Nearby:
    """A broker among the nearest, as its latest announcement told."""

    broker: str
    sequence: int
    sent_at: float
    delay_s: float
    heard_at: float
    hops: int
    upstreams: list[str] = field(default_factory=list)
    "The neighbours it came from, fastest first: the ways to the broker."


_by_delay = attrgetter("delay_s", "broker")


def _nearby(announcement: Announcement, sender: str, delay_s: float, now: float) -> Nearby:
    return Nearby(
        announcement.broker, announcement.sequence, announcement.sent_at, delay_s, now, announcement.hops, [sender]
    )


class Regions:
    """The l nearest brokers, and what follows from them."""

    def __init__(self, node: str, settings: DripSettings) -> None:
        self.node = node
        self.settings = settings
        self.brokers: dict[str, Nearby] = {}
        "Set S_D of the paper."
        self.spare: Nearby | None = None
        "The nearest of those turned away lately: it takes the place of the first that falls silent."
        self.neighbours: dict[str, tuple[str, float]] = {}
        "Of each neighbour: its local broker, and when it was heard."
        self.toward: dict[str, tuple[str, float]] = {}
        "The neighbour a letter of each node came from, and when: the way back. The latest comes last."
        self.is_broker = False
        self.room = max(settings.nearest, 2)
        "How many brokers are kept: l, and two at least, for bridges know two (V.B.1); a broker is one of its own."
        self.lasts_s = settings.expiry_s
        self._passes_on_within_s = 3 * settings.announce_interval_s / settings.nearest
        "A neighbour passes about l announcements on in each interval: who has not been heard for three has gone."

    def centre(self, is_broker: bool) -> None:
        """This node becomes a broker, which is its own nearest and keeps one less, or ceases to be one."""
        self.is_broker = is_broker
        self.room = max(self.settings.nearest, 2) - is_broker
        for nearby in self.ordered()[self.room :]:
            del self.brokers[nearby.broker]

    # Announcements.

    def hear(self, announcement: Announcement, sender: str, now: float) -> bool:
        """Whether the announcement is to be passed on: it improves the list, or is news of one who is on it."""
        if announcement.broker == self.node:
            return False
        delay_s = now - announcement.sent_at
        if delay_s < 0.0:
            delay_s = 0.0
        known = self.brokers.get(announcement.broker)
        if known is None:
            return self._hear_of(announcement, sender, delay_s, now)
        if announcement.sequence == known.sequence:
            upstreams = known.upstreams
            if delay_s < known.delay_s:
                better = known.delay_s - delay_s >= self.settings.improvement_s
                known.delay_s, known.hops = delay_s, announcement.hops
                if sender in upstreams:
                    upstreams.remove(sender)
                upstreams.insert(0, sender)
                del upstreams[self.settings.upstreams :]
                return better
            if announcement.hops <= known.hops:
                self.also_over(sender, known)
            return False
        if announcement.sequence < known.sequence or not isfinite(announcement.sent_at):
            return False
        known.sequence, known.sent_at, known.delay_s = announcement.sequence, announcement.sent_at, delay_s
        known.heard_at, known.hops, known.upstreams = now, announcement.hops, [sender]
        return True

    def also_over(self, neighbour: str, known: Nearby) -> None:
        """Another way to a broker. Only who is nearer than this node is one: others would send letters back."""
        if len(known.upstreams) < self.settings.upstreams and neighbour not in known.upstreams:
            known.upstreams.append(neighbour)

    def _hear_of(self, announcement: Announcement, sender: str, delay_s: float, now: float) -> bool:
        """Of a broker that is not on the list: it takes the place of the farthest, if it is nearer."""
        if not isfinite(announcement.sent_at):
            return False
        if self.turns_away(announcement, sender, delay_s, now):
            return False
        if len(self.brokers) >= self.room:
            farthest = max(self.brokers.values(), key=_by_delay)
            del self.brokers[farthest.broker]
        self.brokers[announcement.broker] = _nearby(announcement, sender, delay_s, now)
        return True

    def turns_away(self, announcement: Announcement, sender: str, delay_s: float, now: float) -> bool:
        """Whether the list is full of brokers no farther than this one."""
        if len(self.brokers) < self.room:
            return False
        for nearby in self.brokers.values():
            if delay_s < nearby.delay_s:
                return False
        spare = self.spare
        if (
            spare is None
            or delay_s < spare.delay_s
            or (announcement.broker == spare.broker and announcement.sequence > spare.sequence)
            or now - spare.heard_at > self.settings.announce_interval_s
        ):
            self.spare = _nearby(announcement, sender, delay_s, now) if isfinite(delay_s) else None
        return True

    def forget(self, now: float) -> None:
        """Let go who has fallen silent."""
        # Written as in `next_end`, so that the timer set there finds somebody to let go.
        lasts_s = self.lasts_s
        for broker in [nearby.broker for nearby in self.brokers.values() if nearby.heard_at + lasts_s <= now]:
            del self.brokers[broker]
        for neighbour in [name for name, (_, heard_at) in self.neighbours.items() if heard_at + lasts_s <= now]:
            del self.neighbours[neighbour]
        self.fill(now)

    def drop(self, broker: str, sequence: int, now: float) -> bool:
        """A broker is none any more, as of this number; whether it was on the list."""
        if self.spare is not None and self.spare.broker == broker:
            self.spare = None
        known = self.brokers.get(broker)
        if known is None or sequence <= known.sequence:
            return False
        del self.brokers[broker]
        self.fill(now)
        return True

    def fill(self, now: float) -> None:
        """Where there is room, the spare has it."""
        spare = self.spare
        if spare is not None and len(self.brokers) < self.room:
            self.spare = None
            if spare.broker not in self.brokers and spare.heard_at + self.lasts_s > now:
                self.brokers[spare.broker] = spare

    def next_end(self, now: float) -> float:
        """When the next broker falls silent, if nothing is heard of it."""
        first = min([nearby.heard_at for nearby in self.brokers.values()], default=now)
        return first + self.lasts_s

    def ordered(self) -> list[Nearby]:
        """The nearest brokers, nearest first."""
        return sorted(self.brokers.values(), key=_by_delay)

    def nearest(self) -> Nearby | None:
        """The nearest broker, where any is known."""
        found = None
        for nearby in self.brokers.values():
            if (
                found is None
                or nearby.delay_s < found.delay_s
                or (nearby.delay_s == found.delay_s and nearby.broker < found.broker)
            ):
                found = nearby
        return found

    def nearest_names(self) -> tuple[str, ...]:
        """The l nearest brokers, nearest first; a broker is its own nearest."""
        others = tuple(nearby.broker for nearby in self.ordered())
        return ((self.node, *others) if self.is_broker else others)[: self.settings.nearest]

    # Neighbours and bridges.

    def sees(self, neighbour: str, attached: str, now: float) -> None:
        """A neighbour was heard, and tells its region."""
        if neighbour not in self.neighbours and len(self.neighbours) >= self.settings.memory:
            self.forget(now)
            if len(self.neighbours) >= self.settings.memory:
                return
        self.neighbours[neighbour] = (attached, now)

    def bridges_to(self, now: float) -> str:
        """Section V.B.1: the broker this node is a bridge to; none: the empty text."""
        if self.is_broker or len(self.brokers) < 2:
            return ""
        other = self.ordered()[1].broker
        return other if self.foreign_neighbour(other, now) else ""

    def foreign_neighbour(self, broker: str, now: float) -> str:
        """A neighbour in that broker's region, best one that is on the way to the broker."""
        after = now - self.settings.expiry_s
        known = self.brokers.get(broker)
        if known is not None:
            for neighbour in known.upstreams:
                if self.neighbours.get(neighbour, ("", 0.0))[0] == broker:
                    return neighbour
        living = [
            (-heard_at, name)
            for name, (attached, heard_at) in self.neighbours.items()
            if attached == broker and heard_at > after
        ]
        return min(living)[1] if living else ""

    # Letters.

    def came(self, letter: Letter, sender: str, now: float) -> None:
        """A letter passes: whoever sent it is reached over the neighbour it came from."""
        toward = self.toward
        if toward.pop(letter.origin, None) is None and len(toward) >= self.settings.memory:
            del toward[next(iter(toward))]
        toward[letter.origin] = (sender, now)

    def next_hop(self, letter: Letter, now: float, sender: str = "") -> str:
        """The neighbour to hand a letter to, not one it came from; none: the empty text. Who has probably gone is
        asked only if there is nobody else."""
        after = now - self._passes_on_within_s
        stale = ""
        for way in self._ways(letter, now):
            if way and way != sender and way != letter.origin:
                if self.neighbours.get(way, ("", -1.0))[1] > after:
                    return way
                stale = stale or way
        return stale

    def _ways(self, letter: Letter, now: float) -> Iterator[str]:
        """Over its bridge; along the announcements of its target; back along its target's own letters; over
        whoever was heard lately and lives in the target's region."""
        target = letter.target
        if letter.via == self.node:
            yield self.foreign_neighbour(target, now)
        elif letter.via:
            yield self._back(letter.via, now)
        if target in self.neighbours:
            yield target
        nearby = self.brokers.get(target)
        if nearby is not None:
            yield from nearby.upstreams
        yield self._back(target, now)
        yield self.foreign_neighbour(target, now)

    def _back(self, node: str, now: float) -> str:
        """The way to a node from whom a letter has come."""
        if node in self.neighbours:
            return node
        back = self.toward.get(node)
        return back[0] if back is not None and now - back[1] <= 2 * self.settings.expiry_s else ""

    def lost(self, neighbour: str, letter: Letter) -> None:
        """A neighbour is out of reach: no way leads over it any more."""
        self.neighbours.pop(neighbour, None)
        for nearby in self.brokers.values():
            if neighbour in nearby.upstreams:
                nearby.upstreams.remove(neighbour)
        for node in (letter.target, letter.via):
            if self.toward.get(node, ("", 0.0))[0] == neighbour:
                del self.toward[node]
