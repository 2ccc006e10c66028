"""The rendezvous cell: where advertisements and subscriptions meet (sections 2.2 and 2.3).

All members of a cell keep the same table, so that any member can act on a packet. They share what
changes, hand everything to newcomers, and move keys whose home is another cell. The part sends nothing
itself: it returns effects, and packets that its machine is to route.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from earshot.events import Event
from earshot.protocols.common.byte_budget import TableBudgets
from earshot.protocols.georendezvous.cell_hash_routing import CellHashRouting, Heading, RoutedPacket
from earshot.protocols.georendezvous.cells import Cell, rank, towards
from earshot.protocols.georendezvous.rendezvous_table import Advertise, PointKey, Record, RendezvousTable, Subscribe
from earshot.protocols.machine import Broadcast, CancelTimer, Drop, Effect, Note, Send, StartTimer
from earshot.records import DropReason
from earshot.wire import Packet, Whole, Word

Orders = list[Effect | RoutedPacket]
"What the machine is to do, in order: hand effects to its host, and route packets."


class Request(RoutedPacket, frozen=True, tag="gr-request"):
    """From a rendezvous cell to a publisher: send this topic's notifications through here."""

    topic: Word
    index: Whole
    rendezvous: Cell
    lifespan_s: float


class Notify(RoutedPacket, frozen=True, tag="gr-notify"):
    """An event, from its publisher to a rendezvous cell and from there to a subscriber."""

    event: Event
    publisher: Word
    index: Whole
    rendezvous: Cell
    "The rendezvous cell: on the first leg where the publisher last knew it, then where it is."
    passed: bool = False
    "A member of that cell that lacks its keys has passed it to another."


class Notifications(Packet, frozen=True, tag="gr-notify-many"):
    """An event for several subscribers that have the same next hop; it divides where their routes do."""

    event: Event
    publisher: Word
    index: Whole
    rendezvous: Cell
    hops: Whole
    subscribers: tuple[tuple[Word, Cell], ...]
    "The nodes, and the cells that they named."

    @classmethod
    def of(cls, group: Sequence[Notify]) -> Notifications:
        """Notifications of one event at the same number of hops, as one packet."""
        one = group[0]
        subscribers = tuple((packet.heading.node, packet.heading.target) for packet in group)
        return cls(one.event, one.publisher, one.index, one.rendezvous, one.hops, subscribers)

    def each(self) -> list[Notify]:
        """The notification of each subscriber."""
        return [
            Notify(Heading(cell, node), self.hops, self.event, self.publisher, self.index, self.rendezvous)
            for node, cell in self.subscribers
        ]


class NotifyAround(Packet, frozen=True, tag="gr-notify-around"):
    """An event for another cell around its rendezvous point, which may keep subscriptions there too."""

    event: Event
    publisher: Word
    index: Whole
    hops: Whole


class Prune(RoutedPacket, frozen=True, tag="gr-prune"):
    """Nothing more of this publisher through here: from a subscriber to the rendezvous cell, or
    (without a subscriber) from there to the publisher."""

    topic: Word
    index: Whole
    publisher: Word
    subscriber: Word
    at: float


class Keep(Packet, frozen=True, tag="gr-keep"):
    """Records for the members of a cell; with a newcomer: all there are, for that node."""

    cell: Cell
    records: tuple[Record, ...]
    newcomer: Word = ""
    home_for_s: float | None = None
    "How long ago a walk around its perimeter has shown this cell to be the records' home; None: unknown."


class RendezvousCell:
    """One member's half of its cell's work."""

    def __init__(
        self,
        routing: CellHashRouting,
        target: Callable[[PointKey], Cell],
        record_lifespan_s: float,
        handover_delay_s: float,
        keep_records: int = 0,
        place_margin_m: float = math.inf,
        asks_again: bool = True,
        budgets: TableBudgets | None = None,
    ) -> None:
        self.routing = routing
        "This node's cell and the other members."
        self.target = target
        "The cell that a rendezvous point lies in."
        self.record_lifespan_s = record_lifespan_s
        self.handover_delay_s = handover_delay_s
        self.keep_records = keep_records
        "How many records one packet to another member carries; 0: members share them in one broadcast."
        self.asks_again = asks_again
        "Whether publishers wait to be asked, and are pruned; otherwise they notify all their points."
        self.place_margin_m = place_margin_m
        "A subscriber whose cell is farther from an event's area than this does not get the event."
        self.table = RendezvousTable(record_lifespan_s, budgets)
        self._handing: dict[str, float] = {}
        "Newcomers that wait for the cell's keys, and since when they lack them."
        self._noted = 0

    def on_record(self, record: Record, now: float) -> Orders:
        """Section 2.2: keep the advertisement or subscription; the first match asks the publisher."""
        if isinstance(record, Subscribe) and not record.readable:
            return [Drop(DropReason.MALFORMED_FILTER)]
        if not self.table.put(record, now):
            return []
        walked_at = self.routing.homes.get(self.target(record.key))
        return self.settle([record.key], [record], now, home_for_s=None if walked_at is None else now - walked_at)

    def settle(
        self, keys: list[PointKey], records: list[Record], now: float, home_for_s: float | None = None
    ) -> Orders:
        """These points have changed: ask publishers that are wanted and not asked yet, prune those that are
        asked and no longer wanted, and share the records with the other members."""
        orders: Orders = []
        changed = list(records)
        for key in keys if self.asks_again else ():
            for advert in self.table.advertised(key, now):
                wanted = self.table.wanted(key, advert.owner, now)
                if wanted == advert.asked:
                    continue
                changed.append(self.table.mark_asked(advert, wanted, now))
                if wanted:
                    heading = Heading(advert.cell, node=advert.owner)
                    orders.append(Request(heading, 0, *key, self.routing.cell, self.record_lifespan_s))
                else:
                    orders.append(self._prune(advert, now))
        return orders + self._share(changed, home_for_s)

    def _share(self, records: list[Record], home_for_s: float | None) -> Orders:
        """Records for the other members: one broadcast, or acknowledged packets to each."""
        others = self.routing.others()
        if not records or not others:
            return []
        if not self.keep_records:
            return [Broadcast(Keep(self.routing.cell, tuple(records), home_for_s=home_for_s))]
        return [Send(member, keep) for member in others for keep in self._keeps(records, "", home_for_s)]

    def _keeps(self, records: list[Record], newcomer: str, home_for_s: float | None = None) -> list[Keep]:
        size = self.keep_records
        parts = [tuple(records[first : first + size]) for first in range(0, len(records), size)]
        return [Keep(self.routing.cell, part, newcomer, home_for_s) for part in parts]

    def _prune(self, advert: Advertise, now: float) -> Prune:
        """Inform a publisher that no subscriber is left here."""
        return Prune(Heading(advert.cell, node=advert.owner), 0, *advert.key, advert.owner, "", now)

    def on_event(self, packet: Notify, now: float) -> Orders:
        """Section 2.2: forward to each subscriber that has not pruned this path."""
        event, key = packet.event, (packet.event.type, packet.index)
        if event.lifespan_s is not None and now > event.time + event.lifespan_s:
            return [Drop(DropReason.EXPIRED, event.id)]
        orders: Orders = []
        if not packet.passed:
            around = NotifyAround(event, packet.publisher, packet.index, packet.hops + 1)
            orders += [Send(peer, around) for peer in self.routing.cells_around(self.target(key))]
        if key not in self.table:
            return [*orders, self.find_keys(packet, key)]
        wanting = [record for record in self.table.subscribed(key, now) if record.wants(packet.publisher)]
        if not wanting:
            # An earlier prune did not reach the publisher: send it again.
            known = self.table.advertised(key, now) if self.asks_again else []
            adverts = [advert for advert in known if advert.owner == packet.publisher]
            return [
                *orders,
                Drop(DropReason.NO_SUBSCRIBER, event.id),
                *(self._prune(advert, now) for advert in adverts),
            ]
        return orders + self.notifications(wanting, packet)

    def on_event_around(self, packet: NotifyAround, now: float) -> Orders:
        """Forward to the subscribers that this cell knows; the one that asks forwards to those that it knows."""
        event, key = packet.event, (packet.event.type, packet.index)
        if event.lifespan_s is not None and now > event.time + event.lifespan_s:
            return []
        wanting = [record for record in self.table.subscribed(key, now) if record.wants(packet.publisher)]
        return self.notifications(wanting, packet)

    def notifications(self, wanting: list[Subscribe], packet: Notify | NotifyAround) -> Orders:
        """The event for each of these subscribers whose filters match and that may be in its area."""
        event, here = packet.event, self.routing.cell
        return [
            Notify(Heading(record.cell, record.owner), packet.hops, event, packet.publisher, packet.index, here)
            for record in wanting
            if record.accepts(event) and self.may_reach(event, record)
        ]

    def may_reach(self, event: Event, record: Subscribe) -> bool:
        """Whether the subscriber, by the cell that it named, may be in the event's area."""
        area = event.area
        if area is None:
            return True
        away_m = area.at.distance_to(self.routing.grid.centre(record.cell))
        return away_m <= area.shape.reach_m + self.place_margin_m

    def find_keys(self, packet: Notify, key: PointKey) -> Effect | RoutedPacket:
        """This member lacks the keys: another may have them, or they have moved to another cell."""
        others = self.routing.others()
        target = self.target(key)
        if others and not packet.passed:
            peer = self.routing.random.choice(others)
            return Send(peer, msgspec.structs.replace(packet, hops=packet.hops + 1, passed=True))
        if packet.heading.target != target:
            return msgspec.structs.replace(packet, heading=Heading(target), passed=False)
        return Drop(DropReason.UNKNOWN_TOPIC, packet.event.id)

    def on_prune(self, prune: Prune, now: float) -> Orders:
        """Section 2.3: this subscriber has a better path; the publisher is pruned when no subscriber is left."""
        key = (prune.topic, prune.index)
        known = self.table.subscription(key, prune.subscriber, now)
        if known is None:
            target = self.target(key)
            moved = prune.heading.target != target
            return [msgspec.structs.replace(prune, heading=Heading(target))] if moved else []
        if prune.at < known.at:
            return []
        pruned = tuple(sorted({*known.pruned, prune.publisher}))
        record = msgspec.structs.replace(known, pruned=pruned, at=prune.at)
        self.table.put(record, now)
        return self.settle([key], [record], now)

    # Section 2.2: all nodes of the cell are responsible for its keys.

    def on_keep(self, keep: Keep, now: float) -> Orders:
        """Another member shares what has changed. Where two members acted at the same moment on different
        changes, the first member by name sees both and settles them."""
        if keep.cell != self.routing.cell:
            return []
        orders: Orders = []
        if keep.newcomer in self._handing:
            del self._handing[keep.newcomer]
            orders.append(CancelTimer(("hand", keep.newcomer)))
        for record in keep.records:
            if isinstance(record, Advertise) or record.readable:
                self.table.put(record, now)
                if keep.home_for_s is not None:
                    self.routing.homes[self.target(record.key)] = now - keep.home_for_s
        if self.routing.leads():
            orders += self.settle(sorted({record.key for record in keep.records}), [], now)
        return orders

    def newcomer(self, node: str, now: float, since: float = -math.inf) -> Orders:
        """A node has come into this cell, or is back: after a random delay one member hands it what it lacks."""
        if not len(self.table):
            return []
        self._handing[node] = min(since, self._handing.get(node, since))
        return [StartTimer(("hand", node), at=now + self.routing.random.random() * self.handover_delay_s)]

    def hand_keys_to(self, newcomer: str, now: float) -> Orders:
        since = self._handing.pop(newcomer, -math.inf)
        records = self.table.all_records(now, since)
        if records and newcomer in self.routing.others():
            if self.keep_records:
                # The other members do not hear acknowledged packets: an empty broadcast tells them that it is done.
                done = Broadcast(Keep(self.routing.cell, (), newcomer))
                return [done, *(Send(newcomer, keep) for keep in self._keeps(records, newcomer))]
            return [Broadcast(Keep(self.routing.cell, tuple(records), newcomer))]
        return []

    def cell_left(self, last: bool, now: float) -> Orders:
        """The last member to leave a cell sends its keys to their new home; otherwise the others keep them."""
        left, self.table = self.table, RendezvousTable(self.record_lifespan_s, self.table.budgets)
        return [self.sent_home(record) for record in left.all_records(now)] if last else []

    def cell_appeared(self, cell: Cell, now: float) -> Orders:
        """Keys that are closer to a newly populated neighbour move there."""
        orders: Orders = []
        if self.routing.leads():
            for key in self.table.points():
                target = self.target(key)
                if rank(cell, target) < rank(self.routing.cell, target):
                    orders += map(self.sent_home, self.table.records(key, now))
                    self.table.drop(key)
        return orders

    def sent_home(self, record: Record) -> RoutedPacket:
        """As its owner would send it. The cell that is home now asks the publishers again."""
        if isinstance(record, Advertise) and self.asks_again:
            record = msgspec.structs.replace(record, asked=False)
        return msgspec.structs.replace(record, heading=Heading(self.target(record.key)), hops=0)

    def stop(self, now: float) -> Orders:
        """The last member hands each record to the neighbouring cell closest to the record's point."""
        around = [towards(self.routing.cell, direction) for direction in range(8)]
        populated = [cell for cell in around if cell in self.routing.members]
        if self.routing.others() or not populated:
            return []
        orders: Orders = []
        for record in self.table.all_records(now):
            target = self.target(record.key)
            nearest = min(populated, key=lambda cell: rank(cell, target))
            peer = self.routing.random.choice(list(self.routing.members[nearest]))
            orders.append(Send(peer, msgspec.structs.replace(record, heading=Heading(target), hops=1)))
        return orders

    def expire(self, now: float) -> Orders:
        """Remove what its owners have stopped renewing; note how much this cell keeps when that changes."""
        orders: Orders = []
        ended = self.table.expire(now)
        if ended and self.routing.leads():
            orders += self.settle(ended, [], now)
        if len(self.table) != self._noted:
            self._noted = len(self.table)
            column, row = self.routing.cell
            orders.append(Note("records", f"{column},{row}: {self._noted}"))
        return orders
