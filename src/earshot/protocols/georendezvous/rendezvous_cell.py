"""The rendezvous cell: where advertisements and subscriptions meet (sections 2.2 and 2.3).

All members of a cell keep the same table, so whichever member a packet reaches can act on it. They
tell each other what has changed, tell newcomers everything, and move keys whose home is elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from earshot.events import Event
from earshot.protocols.georendezvous.cell_hash_routing import CellHashRouting, Heading, RoutedPacket
from earshot.protocols.georendezvous.cells import Cell, rank, towards
from earshot.protocols.georendezvous.rendezvous_table import Advertise, Key, RendezvousTable, Subscribe
from earshot.protocols.machine import Machine
from earshot.records import DropReason
from earshot.wire import Packet


class Request(RoutedPacket, frozen=True, tag="gr-request"):
    """From a rendezvous cell to a publisher: send this topic's notifications through here."""

    topic: str
    index: int
    rendezvous: Cell
    lifespan_s: float


class Notify(RoutedPacket, frozen=True, tag="gr-notify"):
    """An event, from its publisher to a rendezvous cell and from there to a subscriber."""

    event: Event
    publisher: str
    index: int
    rendezvous: Cell
    "The rendezvous cell: on the first leg as the publisher last heard of it, then as it is."
    passed: bool = False
    "A member of that cell who lacks its keys has passed it to another."


class Prune(RoutedPacket, frozen=True, tag="gr-prune"):
    """Of this publisher nothing through here any more: from a subscriber to the rendezvous cell, or
    (without a subscriber) from there to the publisher."""

    topic: str
    index: int
    publisher: str
    subscriber: str
    at: float


class Keep(Packet, frozen=True, tag="gr-keep"):
    """Records for the members of a cell; with a newcomer: all there are, for that one."""

    cell: Cell
    records: tuple[Advertise | Subscribe, ...]
    newcomer: str = ""
    home_for_s: float | None = None
    "How long ago a walk around its perimeter has shown this cell to be the records' home; None: unknown."


class RendezvousCell:
    """One member's half of its cell's work."""

    def __init__(
        self,
        machine: Machine,
        routing: CellHashRouting,
        target: Callable[[Key], Cell],
        record_lifespan_s: float,
        handover_delay_s: float,
    ) -> None:
        self.machine = machine
        self.routing = routing
        self.target = target
        "The cell that a rendezvous point lies in."
        self.record_lifespan_s = record_lifespan_s
        self.handover_delay_s = handover_delay_s
        self.table = RendezvousTable(record_lifespan_s)
        self._handing: set[str] = set()
        self._noted = 0

    def on_record(self, record: Advertise | Subscribe, now: float) -> None:
        """Section 2.2: keep the advertisement or subscription; the first match asks the publisher."""
        if isinstance(record, Subscribe) and not record.readable:
            self.machine.drop(DropReason.MALFORMED_FILTER)
            return
        if self.table.put(record, now):
            walked_at = self.routing.homes.get(self.target(record.key))
            self.share(
                [record, *self.settle(record.key, now)], home_for_s=None if walked_at is None else now - walked_at
            )

    def settle(self, key: Key, now: float) -> list[Advertise | Subscribe]:
        """Ask publishers whom somebody wants and nobody has asked; tell those whom nobody wants any more.

        Returns the advertisements that changed by it.
        """
        changed: list[Advertise | Subscribe] = []
        for advert in self.table.advertised(key, now):
            wanted = self.table.wanted(key, advert.owner, now)
            if wanted == advert.asked:
                continue
            held = self.table.adverts[key][advert.owner]
            held.record = msgspec.structs.replace(advert, asked=wanted)
            changed.append(held.remaining(now))
            heading = Heading(advert.cell, node=advert.owner)
            if wanted:
                self.routing.route(Request(heading, 0, *key, self.routing.cell, self.record_lifespan_s), now)
            else:
                self.routing.route(Prune(heading, 0, *key, advert.owner, "", now), now)
        return changed

    def on_event(self, packet: Notify, now: float) -> None:
        """Section 2.2: forward to each subscriber that has not pruned this path."""
        event, key = packet.event, (packet.event.type, packet.index)
        if event.lifespan_s is not None and now > event.time + event.lifespan_s:
            self.machine.drop(DropReason.EXPIRED, event.id)
            return
        if key not in self.table:
            self.look_for_keys(packet, key, now)
            return
        wanting = [record for record in self.table.subscribed(key, now) if record.wants(packet.publisher)]
        if not wanting:
            self.machine.drop(DropReason.NO_SUBSCRIBER, event.id)
            self.say_unwanted(key, packet.publisher, now)
        for record in wanting:
            if record.accepts(event):
                heading = Heading(record.cell, record.owner)
                onward = Notify(heading, packet.hops, event, packet.publisher, packet.index, self.routing.cell)
                self.routing.route(onward, now)

    def look_for_keys(self, packet: Notify, key: Key, now: float) -> None:
        """This member lacks the keys: another may have them, or they have moved to another cell."""
        others = self.routing.others()
        target = self.target(key)
        if others and not packet.passed:
            peer = self.machine.random.choice(others)
            self.machine.send(peer, msgspec.structs.replace(packet, hops=packet.hops + 1, passed=True))
        elif packet.heading.target != target:
            self.routing.route(msgspec.structs.replace(packet, heading=Heading(target), passed=False), now)
        else:
            self.machine.drop(DropReason.UNKNOWN_TOPIC, packet.event.id)

    def on_prune(self, prune: Prune, now: float) -> None:
        """Section 2.3: this subscriber has a better path; forwarded to the publisher when nobody is left."""
        key = (prune.topic, prune.index)
        held = self.table.subscriptions.get(key, {}).get(prune.subscriber)
        if held is None:
            target = self.target(key)
            if prune.heading.target != target:
                self.routing.route(msgspec.structs.replace(prune, heading=Heading(target)), now)
        elif prune.at >= held.record.at:
            pruned = tuple(sorted({*held.record.pruned, prune.publisher}))
            record = msgspec.structs.replace(held.remaining(now), pruned=pruned, at=prune.at)
            self.table.put(record, now)
            self.share([record, *self.settle(key, now)])

    def say_unwanted(self, key: Key, publisher: str, now: float) -> None:
        """A notification came although nobody here wants it: an earlier prune has got lost."""
        for advert in self.table.advertised(key, now):
            if advert.owner == publisher:
                heading = Heading(advert.cell, node=publisher)
                self.routing.route(Prune(heading, 0, *key, publisher, "", now), now)

    # Keys live on all nodes of a cell.

    def share(self, records: list[Advertise | Subscribe], home_for_s: float | None = None) -> None:
        """Tell the other members what has changed."""
        if records and self.routing.others():
            self.machine.broadcast(Keep(self.routing.cell, tuple(records), home_for_s=home_for_s))

    def on_keep(self, keep: Keep, now: float) -> None:
        """Another member's news. Where two members acted at the same moment on different news, the
        first member by name sees both and settles it."""
        if keep.cell != self.routing.cell:
            return
        if keep.newcomer in self._handing:
            self._handing.discard(keep.newcomer)
            self.machine.cancel_timer(("hand", keep.newcomer))
        for record in keep.records:
            if isinstance(record, Advertise) or record.readable:
                self.table.put(record, now)
                if keep.home_for_s is not None:
                    self.routing.homes[self.target(record.key)] = now - keep.home_for_s
        if self.routing.leads():
            keys = sorted({record.key for record in keep.records})
            self.share([advert for key in keys for advert in self.settle(key, now)])

    def newcomer(self, node: str, now: float) -> None:
        """Somebody has come into this cell: one member tells it the keys."""
        if len(self.table):
            self._handing.add(node)
            self.machine.start_timer(("hand", node), at=now + self.machine.random.random() * self.handover_delay_s)

    def hand_keys_to(self, newcomer: str, now: float) -> None:
        self._handing.discard(newcomer)
        records = [record for key in self.table.points() for record in self.table.records(key, now)]
        if records and newcomer in self.routing.others():
            self.machine.broadcast(Keep(self.routing.cell, tuple(records), newcomer))

    def cell_left(self, last: bool, now: float) -> None:
        """The last of a cell takes its keys to their new home; else they stay with the others."""
        left, self.table = self.table, RendezvousTable(self.record_lifespan_s)
        if last:
            for key in left.points():
                for record in left.records(key, now):
                    self.send_home(record, now)

    def stop(self, now: float) -> None:
        """The last of a cell hands its keys over before it goes."""
        if not self.routing.others():
            for key in self.table.points():
                for record in self.table.records(key, now):
                    self.hand_to_neighbour(record)

    def cell_appeared(self, cell: Cell, now: float) -> None:
        """Keys that are closer to a newly populated neighbour move there."""
        if not len(self.table) or not self.routing.leads():
            return
        here = self.routing.cell
        for key in self.table.points():
            target = self.target(key)
            if rank(cell, target) < rank(here, target):
                records = self.table.records(key, now)
                self.table.drop(key)
                for record in records:
                    self.send_home(record, now)

    def send_home(self, record: Advertise | Subscribe, now: float) -> None:
        """As its owner would send it. Whoever is home now asks the publishers anew."""
        if isinstance(record, Advertise):
            record = msgspec.structs.replace(record, asked=False)
        self.routing.route(msgspec.structs.replace(record, heading=Heading(self.target(record.key)), hops=0), now)

    def hand_to_neighbour(self, record: Advertise | Subscribe) -> None:
        """Out of a cell that is about to be empty, into the neighbouring one closest to the record's point."""
        target = self.target(record.key)
        around = [towards(self.routing.cell, direction) for direction in range(8)]
        populated = [cell for cell in around if cell in self.routing.members]
        if populated:
            nearest = min(populated, key=lambda cell: rank(cell, target))
            peer = self.machine.random.choice(list(self.routing.members[nearest]))
            self.machine.send(peer, msgspec.structs.replace(record, heading=Heading(target), hops=1))

    def sweep(self, now: float) -> None:
        """Let go what nobody renews; how much this cell keeps is worth a note when it changes."""
        ended = self.table.expire(now)
        if ended and self.routing.leads():
            self.share([advert for key in ended for advert in self.settle(key, now)])
        if len(self.table) != self._noted:
            self._noted = len(self.table)
            column, row = self.routing.cell
            self.machine.note("records", f"{column},{row}: {self._noted}")
