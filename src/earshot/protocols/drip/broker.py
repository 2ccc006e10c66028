"""A broker's work (section V): registrations, matching, notification, and talking to other brokers.

It lives inside a machine as long as its node is a broker, and asks that machine to send.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import structs

from earshot.events import Event
from earshot.protocols.common.soft_table import SoftTable
from earshot.protocols.drip.memory import EventMemory, Held
from earshot.protocols.drip.packets import Bridge, Copy, Exchange, InRegion, Notice, Quit, Record, Register, Taken
from earshot.protocols.drip.sharing import Sharing
from earshot.protocols.drip.subscribers import Subscriber, Subscribers
from earshot.records import DropReason

if TYPE_CHECKING:
    from earshot.protocols.drip.machine import Drip

IDLE_S = 1.0
"A broker with nothing due looks whom it can talk to this often."


class Broker:
    """What only brokers do."""

    def __init__(self, machine: Drip, sharing: Sharing, now: float) -> None:
        self.machine = machine
        self.node = machine.node
        self.settings = machine.settings
        self.sharing = sharing
        settings = machine.settings
        self.subscribers = Subscribers(machine.node, settings.memory, 6 * settings.register_interval_s)
        self.events = EventMemory(settings.memory_events)
        self.bridges: SoftTable[str, str] = SoftTable(settings.memory)
        "Over which bridge each broker is reached: the one that reported last."
        self.since = now
        self.next_contact = now
        self.told: dict[str, int] = {}
        "Up to which version each broker has confirmed our news of subscribers."
        self.telling: dict[str, tuple[int, float, tuple[tuple[str, float], ...]]] = {}
        "The version told last, when, and whose subscriptions were in it."
        self.told_whole: dict[str, set[tuple[str, float]]] = {}
        "Whose subscriptions, since when, each broker has confirmed to have."
        self.heard_of: dict[str, float] = {}
        "Of each broker the latest announcement anyone has told of."
        self.reachable: set[str] = set()

    # Section V.A.1: subscriptions.

    def on_register(self, letter: Register, now: float) -> None:
        known = self.subscribers.table.get(letter.origin)
        was_here = known is not None and known.record.broker == self.node
        record = Record(letter.origin, letter.stamp, self.node, letter.nearest, letter.subscriptions, letter.since)
        subscriber = self.subscribers.learn(record, now)
        if subscriber is None:
            return
        if not was_here and letter.origin != self.node:
            self._catch_up(subscriber, set(letter.known), now)
        self.contact_soon(now)

    def on_quit(self, letter: Quit, now: float) -> None:
        if self.subscribers.quit(letter.origin, letter.stamp):
            self.machine.note("quit", letter.origin)

    def _catch_up(self, subscriber: Subscriber, known: set[str], now: float) -> None:
        """Section V.B.2: a subscriber has come into the region and gets what waited for it here."""
        for held in list(self.events.held.values()):
            if held.event.id not in known and held.until > now and subscriber.could_want(held.event):
                self.machine.post(
                    Notice(self.node, subscriber.record.subscriber, "", 1, held.event, held.hops + 1), now
                )

    # Sections V.A.2 and V.A.3: publication and notification.

    def on_event(self, event: Event, hops: int, now: float) -> None:
        """An event has come from its publisher: match it, notify the region, share it with other brokers."""
        if event.id in self.events.held:
            return
        held = self._hold(event, hops, now)
        if held is None:
            return
        held.at_source = True
        matching = self.subscribers.matching(event)
        elsewhere = [one for one in matching if one.record.broker != self.node and one.record.subscriptions]
        self.sharing.at_source(held, elsewhere, self.node)
        for one in elsewhere:
            near = " ".join(one.record.nearest)
            self.machine.note("wanted", f"{event.id} by {one.record.subscriber} near {near}")
        self._notify(held, matching, now)
        self.contact_soon(now)

    def on_copy(self, copy: Copy, now: float) -> None:
        """Section V.B.2: a copy from another broker."""
        self.machine.post(Taken(self.node, copy.origin, "", 1, copy.event.id), now)
        held = self.events.held.get(copy.event.id)
        if held is None:
            if copy.event.id in self.machine.brokered:
                return  # it was here, and has been let go since
            held = self._hold(copy.event, copy.hops, now)
            if held is None:
                return
            self._notify(held, self.subscribers.matching(copy.event), now)
        self.sharing.at_receiver(held, copy.origin, copy.destinations, copy.carry, self.node)
        self.contact_soon(now)

    def _hold(self, event: Event, hops: int, now: float) -> Held | None:
        machine = self.machine
        until = event.time + machine.lifespan_s(event)
        if not now < until:
            machine.drop(DropReason.EXPIRED, event.id)
            return None
        machine.brokered.add(event.id)
        machine.note("copy", event.id)
        held = Held(event, until, self.subscribers.relation(event), hops)
        for gone in self.events.add(held):
            machine.drop(DropReason.BROKER_MEMORY, gone.event.id)
        machine.tell(event, hops, now)
        return held

    def _notify(self, held: Held, matching: list[Subscriber], now: float) -> None:
        """Section V.A.3: flood the event in the region where somebody there wants it."""
        here = [one for one in matching if one.record.broker == self.node and one.record.subscriber != self.node]
        if here and not held.flooded:
            held.flooded = True
            self.machine.heard.add((held.event.id, self.node))
            self.machine.broadcast(InRegion(held.event, held.hops + 1, self.node))

    # Section V.B.1: whom this broker can talk to.

    def on_bridge(self, letter: Bridge, now: float) -> None:
        if letter.other != self.node:
            self.bridges.put(letter.other, letter.origin, now + 1.5 * self.settings.bridge_interval_s)

    def bridge_to(self, broker: str, now: float) -> str | None:
        """The bridge to take to a broker; the empty text where it is a neighbour; None: it cannot be reached."""
        regions = self.machine.regions
        nearby = regions.brokers.get(broker)
        if nearby is not None and broker in nearby.upstreams:
            return ""
        heard = regions.neighbours.get(broker)
        if heard is not None and heard[0] == broker:
            return ""
        return self.bridges.get(broker, now)

    def peers(self, now: float) -> list[str]:
        """The brokers that can be reached, the nearest first."""
        regions = self.machine.regions
        found = {other for other, _ in self.bridges.items(now)}
        found |= {name for name, (attached, _) in regions.neighbours.items() if attached == name}
        found.discard(self.node)
        near = {nearby.broker: place for place, nearby in enumerate(regions.ordered())}
        for broker in sorted(found ^ self.reachable):
            self.machine.note("meets" if broker in found else "parts", broker)
        self.reachable = found
        return sorted(found, key=lambda broker: (near.get(broker, len(near)), broker))

    # Section V.B.2 and V.C: contacts, one broker at a time.

    def contact_soon(self, now: float) -> None:
        self.machine.start_timer("contact", at=max(now, self.next_contact))

    def contact(self, now: float) -> None:
        """Talk to one broker: the one the oldest event is due to, or one there is news of subscribers for."""
        for held in self.events.forget(now):
            if not self.sharing.is_done(held) and held.destinations:
                self.machine.drop(DropReason.EXPIRED_WITH_DESTINATIONS_LEFT, held.event.id)
        self.bridges.forget(now)
        peers = self.peers(now)
        busy = self._hand_over(peers, now) or self._exchange(peers, now)
        self.next_contact = now + self.settings.contact_interval_s
        idle_s = max(IDLE_S, self.settings.contact_interval_s)
        self.machine.start_timer("contact", at=self.next_contact if busy else now + idle_s)

    def _hand_over(self, peers: list[str], now: float) -> bool:
        peer, due = self._due(peers, now)
        if not due:
            return False
        bridge = self.bridge_to(peer, now) or ""
        for held in due:
            carry = self.sharing.carries(held, peer, now)
            held.send_to(peer, carry, now, self.settings.taken_wait_s)
            copy = Copy(self.node, peer, bridge, 1, held.event, held.hops + 1, held.destinations, carry)
            self.machine.post(copy, now)
        return True

    def _due(self, peers: list[str], now: float) -> tuple[str, list[Held]]:
        """The nearest of those the oldest event is due to, and as much as one contact carries of what is due there."""
        chosen = ""
        due: list[Held] = []
        for held in self.events.held.values():
            if self.sharing.is_done(held):
                continue
            for peer in [chosen] if chosen else peers:
                if self.sharing.is_due(held, peer, now):
                    chosen = peer
                    due.append(held)
                    break
            if len(due) == self.settings.contact_events:
                break
        return chosen, due

    def on_taken(self, letter: Taken, now: float) -> None:
        """A broker has what was sent to it."""
        peer = letter.origin
        if letter.event_id:
            if held := self.events.held.get(letter.event_id):
                held.taken_by(peer)
            return
        version, _, whole = self.telling.get(peer, (-1, 0.0, ()))
        if letter.version == version:
            self.told[peer] = version
            self.told_whole.setdefault(peer, set()).update(whole)

    def _exchange(self, peers: list[str], now: float) -> bool:
        """Section V.B.2: news of subscribers to one broker, and how lately brokers were heard of."""
        limit = self.settings.contact_records if self.sharing.shares_subscriptions else 0
        for told_at, peer in sorted((self.telling.get(peer, (0, -math.inf, ()))[1], peer) for peer in peers):
            if now - told_at < self.settings.exchange_interval_s:
                break
            news = self.subscribers.news_for(peer, self.told.get(peer, 0), limit)
            if not news and now - told_at < self.settings.announce_interval_s:
                continue
            version = news[-1].version if len(news) == limit > 0 else self.subscribers.version
            has = self.told_whole.get(peer, set())
            whole = [one.spread for one in news if one.spread is not None]
            records = tuple(
                structs.replace(one, subscriptions=None) if (one.subscriber, one.since) in has else one for one in whole
            )
            self.telling[peer] = (version, now, tuple((one.subscriber, one.since) for one in whole))
            self._tell_news(peer, version, records, now)
            return True
        return False

    def _tell_news(self, peer: str, version: int, records: tuple[Record, ...], now: float) -> None:
        held = () if self.sharing.shares_subscriptions else tuple(self.events.held)
        brokers = {name: at for name, at in sorted(self.heard_of.items()) if now - at < self.settings.replace_after_s}
        brokers[self.node] = now
        bridge = self.bridge_to(peer, now) or ""
        self.machine.post(Exchange(self.node, peer, bridge, 1, version, records, brokers, held), now)

    def on_exchange(self, letter: Exchange, now: float) -> None:
        """Section V.B.2: what another broker knows."""
        self.machine.post(Taken(self.node, letter.origin, "", 1, "", letter.version), now)
        for broker, at in letter.brokers.items():
            self.heard(broker, at, now)
        for record in letter.records:
            unknown = record.subscriber not in self.subscribers.table
            subscriber = self.subscribers.learn(record, now, letter.origin)
            if unknown and subscriber is not None and record.broker != self.node:
                self._pull(subscriber)
        for event in letter.held:
            held = self.events.held.get(event)
            if held is not None:
                held.has.add(letter.origin)
        self.contact_soon(now)

    def _pull(self, subscriber: Subscriber) -> None:
        """A subscriber unknown until now may want what is here already."""
        for held in self.events.held.values():
            if held.at_source and subscriber.could_want(held.event):
                self.sharing.at_source(held, [subscriber], self.node)

    # Keeping the table and the other brokers in sight.

    def look_around(self, now: float) -> None:
        """Once an announcement interval: forget subscribers and replace brokers that have fallen silent."""
        for name in self.subscribers.silent(now - 3 * self.settings.register_interval_s):
            self.subscribers.quit(name, math.inf)
            self.machine.note("silent", name)
        for name in self.subscribers.lost(now - 12 * self.settings.register_interval_s):
            after = math.nextafter(self.subscribers.table[name].record.stamp, math.inf)
            self.subscribers.learn(Record(name, after, "", (), (), after), now)

    def last_sign_of(self, broker: str) -> float:
        """The latest announcement of a broker that anyone has told of."""
        return self.heard_of.get(broker, -math.inf)

    def heard(self, broker: str, sent_at: float, now: float) -> None:
        """A sign of life of a broker, whether or not its announcement is passed on; not one from the future."""
        known = self.heard_of.get(broker, -math.inf)
        if not known < sent_at <= now + self.settings.announce_interval_s:
            return
        if known > -math.inf or len(self.heard_of) < self.settings.memory:
            self.heard_of[broker] = sent_at
