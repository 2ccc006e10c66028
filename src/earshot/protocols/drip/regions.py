"""What is near a node (section IV.B): its nearest brokers by delay, its neighbours' regions, and next hops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import hypot, inf, isfinite
from operator import attrgetter

from earshot.geometry import ORIGIN, Position
from earshot.protocols.common.byte_budget import BoundedTable, TableBudgets
from earshot.protocols.drip.packets import BrokerAnnouncement, DripSettings, Motion, PlacedAnnouncement, RoutedPacket


@dataclass(slots=True)
class NearbyBroker:
    """A broker as its latest announcement described it."""

    broker: str
    sequence: int
    sent_at: float
    delay_s: float
    heard_at: float
    hops: int
    upstreams: list[str]
    "The neighbours that forwarded the announcement, fastest first: the next hops to the broker."
    place: Position | None = None
    "Where the broker was, if it said so."


_SAFE_SHARE = 0.8
"A neighbour within this share of the farthest one's distance should still be in range."
_by_delay = attrgetter("delay_s", "broker")


class Regions:
    """A node's l nearest brokers, and what follows from them."""

    def __init__(self, node: str, settings: DripSettings, budgets: TableBudgets | None = None) -> None:
        self.node = node
        self.settings = settings
        self.budgets = budgets or TableBudgets()
        self.brokers: dict[str, NearbyBroker] = {}
        "Set S_D of the paper."
        self.next_nearest: NearbyBroker | None = None
        "The nearest broker that the full list rejected: it takes the place of the first that falls silent."
        self.neighbours: dict[str, tuple[str, float]] = {}
        "For each neighbour its local broker, and when it was heard."
        self.motions: dict[str, tuple[Motion, float]] = {}
        "How each neighbour moves, and when it said so."
        self.return_routes: BoundedTable[str, tuple[str, float]] = BoundedTable(settings.memory, self.budgets)
        "For each node the neighbour that its last routed packet came from, and when. The latest comes last."
        self.is_broker = False
        self.capacity = self._places()
        "How many brokers are kept: l, but at least two, because a bridge knows two (V.B.1); a broker counts itself."

    def set_broker(self, is_broker: bool) -> None:
        """The node becomes a broker, which is its own nearest and keeps one less, or stops being one."""
        self.is_broker = is_broker
        self.capacity = self._places() - is_broker
        for nearby in self.ordered()[self.capacity :]:
            del self.brokers[nearby.broker]

    def _places(self) -> int:
        settings = self.settings
        # While brokers are replaced, there may be more than k for a while.
        return max(settings.nearest, 2) if settings.announced_to == "nearest" else 2 * settings.k

    # Announcements.

    def hear(self, announcement: BrokerAnnouncement, sender: str, now: float) -> bool:
        """Section IV.B: enter a broker's announcement. Returns whether to forward it: it improves the list of the
        nearest, or it is a newer announcement of a broker on the list."""
        if announcement.broker == self.node or not isfinite(announcement.sent_at):
            return False
        delay_s = announcement.hops * self.settings.hop_delay_s or max(now - announcement.sent_at, 0.0)
        known = self.brokers.get(announcement.broker)
        if known is not None and self.settings.hop_delay_s:
            # One announcement that came by a detour does not move its broker far away.
            delay_s = min(delay_s, known.delay_s + self.settings.hop_delay_s)
        if known is not None and announcement.sequence <= known.sequence:
            return announcement.sequence == known.sequence and self._hear_again(known, announcement, sender, delay_s)
        nearby = NearbyBroker(
            announcement.broker, announcement.sequence, announcement.sent_at, delay_s, now, announcement.hops, [sender]
        )
        if known is None and len(self.brokers) >= self.capacity:
            farthest = max(self.brokers.values(), key=_by_delay)
            if delay_s >= farthest.delay_s:
                self._reject(nearby)
                return False
            del self.brokers[farthest.broker]
        if isinstance(announcement, PlacedAnnouncement):
            nearby.place = Position(*announcement.place)
        self.brokers[announcement.broker] = nearby
        return True

    def _hear_again(self, known: NearbyBroker, announcement: BrokerAnnouncement, sender: str, delay_s: float) -> bool:
        """Another copy of a known announcement: a route if it made no more hops, an improvement if it was faster."""
        upstreams = known.upstreams
        if delay_s >= known.delay_s:
            # Only a sender that is no farther from the broker is a route: others would send packets back.
            if announcement.hops <= known.hops and len(upstreams) < self.settings.upstreams and sender not in upstreams:
                upstreams.append(sender)
            return False
        is_improvement = known.delay_s - delay_s >= self.settings.improvement_s
        known.delay_s, known.hops = delay_s, announcement.hops
        known.upstreams = [sender, *(other for other in upstreams if other != sender)][: self.settings.upstreams]
        return is_improvement

    def _reject(self, nearby: NearbyBroker) -> None:
        """The list is full of nearer brokers: this one may be the next nearest."""
        best = self.next_nearest
        if (
            best is None
            or nearby.delay_s < best.delay_s
            or (nearby.broker == best.broker and nearby.sequence > best.sequence)
            or nearby.heard_at - best.heard_at > self.settings.announce_interval_s
        ):
            self.next_nearest = nearby

    def forget(self, now: float) -> None:
        """Remove brokers and neighbours that have fallen silent."""
        # The same sum as in `next_expiry`, so that the timer set there finds a broker to remove.
        expiry_s = self.settings.expiry_s
        self.brokers = {name: known for name, known in self.brokers.items() if known.heard_at + expiry_s > now}
        self.neighbours = {name: known for name, known in self.neighbours.items() if known[1] + expiry_s > now}
        self.motions = {name: known for name, known in self.motions.items() if name in self.neighbours}
        self.return_routes.forget(lambda route: now - route[1] > 2 * expiry_s)
        self._fill(now)

    def next_expiry(self, now: float) -> float:
        """When the next broker falls silent, if it is not heard again."""
        return min([nearby.heard_at for nearby in self.brokers.values()], default=now) + self.settings.expiry_s

    def retire(self, broker: str, sequence: int, now: float) -> bool:
        """A node is no longer a broker, as of this sequence number; returns whether it was on the list."""
        if self.next_nearest is not None and self.next_nearest.broker == broker:
            self.next_nearest = None
        known = self.brokers.get(broker)
        if known is None or sequence <= known.sequence:
            return False
        del self.brokers[broker]
        self._fill(now)
        return True

    def _fill(self, now: float) -> None:
        """The next nearest broker takes a free place."""
        best = self.next_nearest
        if best is not None and len(self.brokers) < self.capacity:
            self.next_nearest = None
            if best.broker not in self.brokers and best.heard_at + self.settings.expiry_s > now:
                self.brokers[best.broker] = best

    def ordered(self) -> list[NearbyBroker]:
        """The nearest brokers, nearest first."""
        return sorted(self.brokers.values(), key=_by_delay)

    def nearest(self) -> NearbyBroker | None:
        """The nearest broker, if any is known."""
        return min(self.brokers.values(), key=_by_delay, default=None)

    def nearest_names(self) -> tuple[str, ...]:
        """The l nearest brokers, nearest first; a broker is its own nearest."""
        others = tuple(nearby.broker for nearby in self.ordered())
        return ((self.node, *others) if self.is_broker else others)[: self.settings.nearest]

    def hops_to(self, broker: str) -> int:
        """How many hops away a broker is; 0 if it is this node, or not known."""
        known = self.brokers.get(broker)
        return known.hops if known is not None else 0

    # Neighbours and bridges.

    def hear_neighbour(self, neighbour: str, local_broker: str, now: float) -> None:
        """A neighbour was heard, and named its local broker."""
        if neighbour not in self.neighbours and len(self.neighbours) >= self.budgets.names(self.settings.memory):
            self.forget(now)
            if len(self.neighbours) >= self.budgets.names(self.settings.memory):
                return
        self.neighbours[neighbour] = (local_broker, now)

    def hear_motion(self, neighbour: str, motion: Motion, now: float) -> None:
        """A neighbour has said where it is and how it moves."""
        if neighbour in self.neighbours:
            self.motions[neighbour] = (motion, now)

    def _distance_m(self, neighbour: str, place: Position, now: float) -> float:
        """How far from a place a neighbour should be by now; infinite if it has not said how it moves."""
        if neighbour not in self.motions:
            return inf
        (x, y, east, north), at = self.motions[neighbour]
        return hypot(x + east * (now - at) - place.x_m, y + north * (now - at) - place.y_m)

    def is_neighbouring_broker(self, broker: str) -> bool:
        """Whether a broker was heard directly."""
        nearby = self.brokers.get(broker)
        return (nearby is not None and broker in nearby.upstreams) or self.neighbours.get(broker, ("",))[0] == broker

    def neighbouring_brokers(self) -> set[str]:
        """The neighbours that are their own local broker."""
        return {name for name, (local_broker, _) in self.neighbours.items() if local_broker == name}

    def bridged_broker(self, now: float) -> str:
        """Section V.B.1: the broker that this node is a bridge to; empty if it is not a bridge."""
        if self.is_broker or len(self.brokers) < 2:
            return ""
        other = self.ordered()[1].broker
        return other if self.foreign_neighbour(other, now) else ""

    def foreign_neighbour(self, broker: str, now: float) -> str:
        """A neighbour in that broker's region, preferably one that is a next hop to the broker; empty if none."""
        known = self.brokers.get(broker)
        for neighbour in known.upstreams if known is not None else ():
            if self.neighbours.get(neighbour, ("",))[0] == broker:
                return neighbour
        after = now - self.settings.expiry_s
        in_region = [
            (-heard_at, name)
            for name, (local_broker, heard_at) in self.neighbours.items()
            if local_broker == broker and heard_at > after
        ]
        return min(in_region)[1] if in_region else ""

    # Routes.

    def learn_return_route(self, origin: str, sender: str, now: float) -> None:
        """A packet of `origin` came from this neighbour: packets to `origin` can go back there."""
        self.return_routes.put(origin, (sender, now))

    def next_hop(self, packet: RoutedPacket, now: float, sender: str = "", here: Position = ORIGIN) -> str:
        """The neighbour to hand a packet to, not one that it came from; empty if there is none.

        A neighbour forwards about l announcements in each interval. One that was silent for three such periods has
        probably moved away and is used only if there is no other."""
        if self.settings.next_hop == "nearest":
            return self.nearest_hop(packet.target, now, (sender, packet.origin), here)
        after = now - 3 * self.settings.announce_interval_s / self.settings.nearest
        stale = ""
        for hop in self._possible_hops(packet, now):
            if hop and hop != sender and hop != packet.origin:
                if self.neighbours.get(hop, ("", -1.0))[1] > after:
                    return hop
                stale = stale or hop
        return stale

    def nearest_hop(self, target: str, now: float, avoided: tuple[str, ...], here: Position) -> str:
        """The target itself if it is near, else the nearest of those that forwarded its announcement, which all are
        one hop closer to it, else one that is nearer to its place, else one that brought a packet of the target's."""
        nearby = self.brokers.get(target)
        if target in self.neighbours and (nearby is None or target in nearby.upstreams):
            return target
        if nearby is not None:
            upstreams = [hop for hop in nearby.upstreams if hop not in avoided]
            if upstreams:
                return min(upstreams, key=lambda hop: (self._distance_m(hop, here, now), hop))
            if closer := self._closer_hop(nearby.place, here, now):
                return closer
        back = self._return_hop(target, now)
        return back if back not in avoided else ""

    def _closer_hop(self, place: Position | None, here: Position, now: float) -> str:
        """The neighbour nearest to a place, of those that are nearer to it than this node and well in range; empty
        if there is none. Neighbours were heard from as far away as the range goes."""
        if place is None or not self.motions:
            return ""
        away = {name: self._distance_m(name, here, now) for name in self.motions}
        reach_m, own_m = _SAFE_SHARE * max(away.values()), place.distance_to(here)
        found = [(self._distance_m(name, place, now), name) for name, far_m in away.items() if far_m <= reach_m]
        nearest_m, hop = min(found, default=(inf, ""))
        return hop if nearest_m < own_m else ""

    def _possible_hops(self, packet: RoutedPacket, now: float) -> Iterator[str]:
        """Over its bridge; against the target's announcements; back along the target's own packets; over a
        neighbour in the target's region."""
        target = packet.target
        if packet.via == self.node:
            yield self.foreign_neighbour(target, now)
        elif packet.via:
            yield self._return_hop(packet.via, now)
        if target in self.neighbours:
            yield target
        nearby = self.brokers.get(target)
        if nearby is not None:
            yield from nearby.upstreams
        yield self._return_hop(target, now)
        yield self.foreign_neighbour(target, now)

    def _return_hop(self, node: str, now: float) -> str:
        """The next hop to a node that has sent a packet this way."""
        if node in self.neighbours:
            return node
        hop, heard_at = self.return_routes.get(node) or ("", now)
        return hop if now - heard_at <= 2 * self.settings.expiry_s else ""

    def lose_neighbour(self, neighbour: str, targets: tuple[str, ...]) -> None:
        """A neighbour could not be reached with a packet for these nodes: remove the routes over it."""
        self.neighbours.pop(neighbour, None)
        self.motions.pop(neighbour, None)
        for nearby in self.brokers.values():
            if neighbour in nearby.upstreams:
                nearby.upstreams.remove(neighbour)
        for node in targets:
            if (self.return_routes.get(node) or ("",))[0] == neighbour:
                self.return_routes.pop(node)
