"""A machine with services beside it: what every protocol's host owes its applications.

`Served` is itself a machine. It passes everything on to the protocol's machine, adds what the services ask for to its
effects, and hears the services' own packets (`SERVICE_PACKETS`). A network that uses none of it sends none of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import msgspec

from earshot.errors import ContentMismatch, UsageError
from earshot.events import Event, EventType
from earshot.filters import Subscription, Viewer
from earshot.filters.subscription import accepts
from earshot.geometry import Position
from earshot.protocols.common.byte_budget import SMALL_TABLE_BYTES, BoundedTable
from earshot.protocols.common.local_subscriptions import RecentKeys, could_match
from earshot.protocols.common.packet_events import events_in
from earshot.protocols.machine import NOTHING, Announcement, Deliver, Effects, Machine, Timer
from earshot.protocols.services.announced_types import (
    HOP_LIMIT,
    MOST_STATEMENTS,
    STATE_EVERY_S,
    Announced,
    AnnouncedTypes,
    Key,
    Statement,
    statement_bytes,
)
from earshot.protocols.services.fences import LOOK_EVERY_S, AreasWanted, Fence, Fences, Here
from earshot.protocols.services.history import (
    ANSWER_S,
    MOST_ASKING,
    RECOVER_S,
    ROUND_S,
    ROUNDS,
    Asking,
    DeliverPast,
    History,
    PastEvent,
    PastWanted,
    expired,
)
from earshot.quality import MOST_HISTORY, PLAIN
from earshot.records import DropReason
from earshot.wire import Packet

ENOUGH_COPIES = 2
"Who has heard a statement this often again leaves it to others to repeat it."
PASS_ON_S = 0.05
"Statements are passed on after a random time up to this, so that neighbours do not all send at once."
AREAS_EVERY_S = 20.0
"How often a node with fences asks for areas; they are stated for three times as long."
HERE_EVERY_S = 1.0
HERE_LASTS_S = 3.5
MOST_WAITING = 1024
MOST_DELIVERED = 8192
SERVICE = "service"
"The first word of the services' timers."

Neighbours = Callable[[], Iterable[tuple[str, Position]]]
SERVICE_PACKETS = frozenset({Announced, AreasWanted, PastWanted, PastEvent, Here})


class Late(msgspec.Struct, frozen=True, gc=False):
    """The event, delivered next, missed its deadline by this time."""

    event: Event
    subscription: str
    late_s: float


class Warn(msgspec.Struct, frozen=True, gc=False):
    """Tell the user of a mistake that two nodes made together."""

    message: str


class Served(Machine):
    """The machine of a protocol, with history, deadlines and fences beside it."""

    def __init__(self, protocol: Machine, name: str, random: Random, neighbours: Neighbours | None = None) -> None:
        super().__init__(protocol.node, protocol.settings, protocol.location, random, protocol.channel)
        self.protocol = protocol
        self.budgets = protocol.budgets
        self.types = AnnouncedTypes(name, protocol.kept_qualities(protocol.settings), self.budgets)
        self.history = History()
        self.fences = Fences()
        self._neighbours = neighbours
        "Where the neighbours are, as the host's frames say; None: nodes with fences tell it to each other."
        self._announced: dict[str, Announcement] = {}
        "By name: a type may have several producers here."
        self._subscribed: dict[str, tuple[Subscription, float]] = {}
        self._asking: dict[tuple[str, Key], Asking] = {}
        self._asked: dict[str, RecentKeys] = {}
        "Of which publishers each subscription has had the past."
        self._recovering: dict[Key, int] = {}
        "Publishers of which reliable events are missing, and how often this node has asked since their last statement."
        self._delivered = RecentKeys(MOST_DELIVERED, self.budgets)
        "Event and subscription: what was recovered may still come by the protocol."
        self._answers: dict[str, Event] = {}
        self._answered: BoundedTable[tuple[str, Key], float] = BoundedTable(
            MOST_WAITING, self.budgets, SMALL_TABLE_BYTES
        )
        self._passing_on: dict[Any, Packet] = {}
        self._passing_bytes = 0
        self._areas_until = -1.0
        self._areas_asked: BoundedTable[str, int] = BoundedTable(MOST_STATEMENTS, self.budgets, SMALL_TABLE_BYTES)
        self._questions = 0
        self._stating = False
        self._here: BoundedTable[str, tuple[Position, float]]
        self._here = BoundedTable(MOST_STATEMENTS, self.budgets, SMALL_TABLE_BYTES)

    # What the application does.

    def start(self, now: float) -> Effects:
        return self.protocol.start(now)

    def announce(self, announcement: Announcement, now: float) -> Effects:
        if announcement.producer and not self.protocol.several_producers:
            raise UsageError(
                f"{self.types.protocol} has one producer of a type on a node, got {announcement.producer!r}"
            )
        self.types.check(announcement.event_type)
        effects = self.protocol.announce(announcement, now)
        self._announced[announcement.name] = announcement
        self.types.own[announcement.event_type.subject] = announcement
        self._state_all(now)
        return self._with(effects)

    def unannounce(self, subject: str, now: float) -> Effects:
        effects = self.protocol.unannounce(subject, now)
        if (announcement := self._announced.pop(subject, None)) is not None:
            type = announcement.event_type.subject
            others = [one for one in self._announced.values() if one.event_type.subject == type]
            if others:
                self.types.own[type] = others[-1]
            else:
                del self.types.own[type]
                if self._is_stated(announcement, now):
                    self._state(announcement, now, ended=True)
        return self._with(effects)

    def declare(self, subscription: str, event_type: EventType) -> None:
        """The subscriber expects this type, with these attributes. Refused where a publisher in reach has others."""
        self.types.check(event_type)
        self.types.declared[subscription] = event_type

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        effects = self.protocol.subscribe(subscription, now)
        self._subscribed[subscription.id] = (subscription, now)
        self._asked[subscription.id] = RecentKeys(MOST_STATEMENTS, self.budgets, SMALL_TABLE_BYTES)
        for key, statement in list(self.types.heard.items()):
            self._want_past(key, statement, now)
        return self._with(effects)

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        self._subscribed.pop(subscription, None)
        self._asked.pop(subscription, None)
        self.types.declared.pop(subscription, None)
        return self.protocol.unsubscribe(subscription, now)

    def publish(self, event: Event, now: float) -> Effects:
        effects = self.protocol.publish(event, now)
        own = self.types.own.get(event.type)
        if own is not None and own.event_type.quality is not PLAIN:
            self.history.keep(event, own.event_type.quality)
        return effects

    def fence(self, fence: Fence, now: float) -> Effects:
        """The application wants notices of crossings."""
        if not self.fences:
            self._at("look", now)
            self._at("areas", now)
        self.fences.add(fence)
        return self.effects()

    def unfence(self, fence: str, now: float) -> Effects:
        self.fences.remove(fence)
        return NOTHING

    def state_position(self, now: float) -> Effects:
        """State to neighbours where this node is, every second from now on."""
        self._at("here", now + self.random.uniform(0.0, HERE_EVERY_S))
        return self.effects()

    # What happens to the machine.

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        if type(packet) not in SERVICE_PACKETS:
            for event in events_in(packet):
                self._keep(event)
            return self._judged(self.protocol.hear(packet, sender, now), now)
        match packet:
            case Announced():
                self._on_announced(packet, now)
            case AreasWanted():
                self._on_areas_wanted(packet, now)
            case PastWanted():
                self._on_past_wanted(packet, sender, now)
            case PastEvent():
                self._on_past_event(packet.event, now)
            case Here():
                self._on_here(packet, sender, now)
        return self.effects()

    def wake(self, timer: Timer, now: float) -> Effects:
        if not (isinstance(timer, tuple) and timer and timer[0] == SERVICE):
            return self._judged(self.protocol.wake(timer, now), now)
        match timer[1:]:
            case ("state",):
                self._state_again(now)
            case ("pass on", what):
                if (packet := self._passing_on.pop(what, None)) is not None:
                    self._passing_bytes -= _waiting_bytes(packet)
                    self.broadcast(packet)
            case ("gather", str(subscription), key):
                self._gathered((subscription, key), now)
            case ("recover", key):
                self._recover(key, now)
            case ("answer",):
                self._answer(now)
            case ("look",):
                self._look(now)
            case ("areas",):
                self._ask_for_areas(now)
            case ("here",):
                self.broadcast(Here(self.location.position(now)))
                self._at("here", now + HERE_EVERY_S)
        return self.effects()

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        return self._judged(self.protocol.unreachable(packet, peer, now), now)

    def forget(self, now: float) -> None:
        """Forget what other nodes stated and did not renew. A host calls this now and then."""
        self.types.forget(now)
        self._forget_positions(now)
        if now >= self._areas_until:
            self._areas_asked.clear()

    def stop(self, now: float) -> Effects:
        effects = self.protocol.stop(now)
        for announcement in self.types.own.values():
            if self._is_stated(announcement, now):
                self._state(announcement, now, ended=True)
        return self._with(effects)

    def _with(self, effects: Effects) -> Effects:
        """The protocol's effects, then those of the services."""
        return effects if not self._effects else [*effects, *self.effects()]

    def _at(self, what: str, at: float) -> None:
        self.start_timer((SERVICE, what), at)

    # Deadlines, and types that differ.

    def _judged(self, effects: Effects, now: float) -> Effects:
        """The protocol's effects: deliveries that come late are marked, those of a type that differs are dropped."""
        return self._with(effects if effects is NOTHING else self._only_due(effects, now))

    def _only_due(self, effects: Effects, now: float) -> Effects:
        if not any(type(effect) is Deliver for effect in effects):
            return effects
        found: list[Any] = []
        for effect in effects:
            if type(effect) is not Deliver:
                found.append(effect)
                continue
            event = effect.event
            if not self._delivered.add((event.id, effect.subscription)):
                continue
            if expired(event, now):
                self.drop(DropReason.EXPIRED, event.id)
            elif self.types.refuses(event.source, event.type, effect.subscription):
                self.drop(DropReason.ATTRIBUTES_DIFFER, event.id)
            else:
                quality = self.types.quality(event.source, event.type)
                late_s = 0.0 if quality is None or quality.deadline_s is None else now - event.time - quality.deadline_s
                if late_s > 0.0:
                    found.append(Late(event, effect.subscription, late_s))
                found.append(effect)
        return found

    # Stating announced types.

    def _is_stated(self, announcement: Announcement, now: float) -> bool:
        wanted = announcement.proximity is not None and now < self._areas_until
        return wanted or bool(announcement.event_type.attributes)

    def _state_all(self, now: float) -> None:
        for announcement in self.types.own.values():
            if self._is_stated(announcement, now):
                self._state(announcement, now)
                self._keep_stating(now)

    def _state(self, announcement: Announcement, now: float, ended: bool = False) -> None:
        kind = announcement.event_type
        at, velocity = self.location.position(now), self.location.velocity(now)
        key, quality = (self.node, kind.subject), kind.quality
        oldest = self.history.oldest(key, quality.history)
        recent = self.history.recent(key, now) if quality.reliability == "reliable" else ()
        self.broadcast(
            Announced(
                self.node,
                now,
                kind.subject,
                dict(kind.content),
                dict(kind.attributes),
                announcement.proximity,
                at,
                velocity,
                now if oldest is None else oldest,
                tuple(recent),
                ended,
                hops=1,
            )
        )

    def _state_again(self, now: float) -> None:
        """State this node's types again, and those of reliable publishers that neighbours may have missed."""
        self._stating = False
        self.types.forget(now)
        for statement in self.types.heard.values():
            if statement.is_reliable:
                self._keep_stating(now)
                if statement.copies < ENOUGH_COPIES and statement.passed_on_from(self.location.position(now)):
                    self.broadcast(msgspec.structs.replace(statement.stated, hops=statement.stated.hops + 1))
                statement.copies = 0
        self._state_all(now)

    def _keep_stating(self, now: float) -> None:
        if not self._stating:
            self._stating = True
            self._at("state", now + STATE_EVERY_S * self.random.uniform(0.8, 1.0))

    def _on_announced(self, stated: Announced, now: float) -> None:
        if stated.source == self.node:
            return
        key = (stated.source, stated.subject)
        before = self.types.heard.get(key)
        statement = self.types.hear(stated, now)
        if statement is None:
            return
        if stated.hops < HOP_LIMIT and statement.passed_on_from(self.location.position(now)):
            self._pass_on(key, msgspec.structs.replace(stated, hops=stated.hops + 1), now)
        if stated.ended:
            return
        if statement.is_reliable:
            self._keep_stating(now)
        if statement.refused and (before is None or not before.refused):
            self.drop(DropReason.ATTRIBUTES_DIFFER)
            self._effects.append(Warn(statement.refused))  # type: ignore[arg-type]
        self._want_past(key, statement, now)
        if stated.recent:
            if key not in self._recovering:
                self._recover_later(key, now)
            self._recovering[key] = 0

    def _pass_on(self, what: Any, packet: Packet, now: float) -> None:
        size = _waiting_bytes(packet)
        if len(self._passing_on) >= MOST_WAITING or self._passing_bytes + size > self.budgets.table_bytes:
            self.drop(DropReason.TOO_MANY_PACKETS_WAITING)
            return
        if (before := self._passing_on.get(what)) is not None:
            self._passing_bytes -= _waiting_bytes(before)
        self._passing_on[what] = packet
        self._passing_bytes += size
        self.start_timer((SERVICE, "pass on", what), now + self.random.uniform(0.0, PASS_ON_S))

    # History.

    def _keep(self, event: Event) -> None:
        statement = self.types.heard.get((event.source, event.type))
        if statement is not None:
            self.history.keep(event, statement.event_type.quality)

    def _want_past(self, key: Key, statement: Statement, now: float) -> None:
        """Ask for the publisher's past events, once for each subscription that its type could match."""
        depth = statement.event_type.quality.history
        for id, (subscription, since) in self._subscribed.items() if depth else ():
            wanted = key not in self._asked[id] and could_match(subscription.filter, key[1])
            if wanted and not self.types.refuses(*key, id) and len(self._asking) < MOST_ASKING:
                self._asked[id].add(key)
                asking = self._asking[id, key] = Asking(id, since, depth)
                self._ask(key, asking, now)

    def _ask(self, key: Key, asking: Asking, now: float) -> None:
        asking.rounds += 1
        asking.before_round = len(asking.gathered)
        held = [event.id for event in self.history.before(key, asking.before, now)]
        known = tuple(sorted({*asking.gathered, *held}))[: 2 * MOST_HISTORY]
        self.broadcast(PastWanted(*key, (), asking.before, known))
        self.start_timer((SERVICE, "gather", asking.subscription, key), now + ROUND_S)

    def _gathered(self, which: tuple[str, Key], now: float) -> None:
        """A round is over: ask again, or deliver the last events."""
        asking = self._asking[which]
        if asking.subscription not in self._subscribed:
            del self._asking[which]
            return
        if not asking.over():
            self._ask(which[1], asking, now)
            return
        del self._asking[which]
        asking.gathered.update({event.id: event for event in self.history.before(which[1], asking.before, now)})
        subscription, _ = self._subscribed[asking.subscription]
        viewer = Viewer(self.location.position(now), self.location.velocity(now))
        statement = self.types.heard.get(which[1])
        since = statement.stated.past_since if statement is not None else now
        for event in asking.last_events():
            typed = _typed(event, statement) if event.time >= since else None
            if typed is not None and accepts(typed, subscription, viewer):
                self._effects.append(DeliverPast(typed, subscription.id))  # type: ignore[arg-type]

    def _on_past_wanted(self, wanted: PastWanted, sender: str, now: float) -> None:
        """Answer after a short wait with what the neighbour lacks; the publisher first."""
        key = (wanted.source, wanted.subject)
        answered_at = self._answered.get((sender, key))
        if answered_at is not None and now - answered_at < 0.8 * ROUND_S:
            return
        if wanted.missed:
            kept = self.history.before(key, math.inf, now)
            lacked = [event for event in kept if event.id in wanted.missed]
        else:
            lacked = [event for event in self.history.before(key, wanted.before, now) if event.id not in wanted.held]
        if not lacked or len(self._answers) + len(lacked) > MOST_WAITING:
            return
        self._answered.put((sender, key), now)
        if not self._answers:
            longest_s = ANSWER_S / 4 if wanted.source == self.node else ANSWER_S
            self._at("answer", now + self.random.uniform(0.0, longest_s))
        self._answers.update({event.id: event for event in lacked})

    def _answer(self, now: float) -> None:
        for event in self._answers.values():
            self.broadcast(PastEvent(event))
        self._answers.clear()

    def _on_past_event(self, event: Event, now: float) -> None:
        self._answers.pop(event.id, None)
        self._deliver_missed(event, now)
        self._keep(event)
        for (_, key), asking in self._asking.items():
            wanted = key == (event.source, event.type) and event.time < asking.before
            if wanted and len(asking.gathered) < 2 * MOST_HISTORY:
                asking.gathered[event.id] = event

    # Reliability.

    def _recover_later(self, key: Key, now: float) -> None:
        if len(self._recovering) <= MOST_ASKING:
            self.start_timer((SERVICE, "recover", key), now + RECOVER_S * self.random.uniform(0.5, 1.0))

    def _recover(self, key: Key, now: float) -> None:
        """Deliver what the protocol has passed through here and not delivered, and ask for the events that have still
        not come, some times after each statement."""
        statement, rounds = self.types.heard.get(key), self._recovering.pop(key, ROUNDS)
        recent = () if statement is None else statement.stated.recent
        for event in self.history.before(key, math.inf, now):
            if event.id in recent:
                self._deliver_missed(event, now)
        missing = self.history.missing(key, recent)
        if missing and rounds < ROUNDS:
            self.broadcast(PastWanted(*key, tuple(missing), 0.0, ()))
            self._recovering[key] = rounds + 1
            self._recover_later(key, now)

    def _deliver_missed(self, event: Event, now: float) -> None:
        """Deliver a recovered event to the subscriptions that should have had it."""
        statement = self.types.heard.get((event.source, event.type))
        if statement is None or not statement.is_reliable:
            return
        typed = _typed(event, statement)
        if typed is None or expired(event, now) or event.source == self.node:
            return
        found = []
        for id, (subscription, since) in self._subscribed.items():
            if since <= event.time and accepts(typed, subscription, self.viewer_at(event, now)):
                found.append(Deliver(typed, id))
        due = self._only_due(found, now)
        self._effects.extend(due)

    # Fences.

    def _look(self, now: float) -> None:
        """See which fences have been crossed, and set the time of the next look."""
        if not self.fences:
            return
        self._at("look", now + LOOK_EVERY_S)
        self.types.forget(now)
        others: Iterable[tuple[str, Position]]
        if self._neighbours is not None:
            others = self._neighbours()
        else:
            self._forget_positions(now)
            others = [(name, at) for name, (at, _) in self._here.items()]
        crossed: Sequence[Any] = list(self.fences.look(self.location.position(now), self.types.heard, others, now))
        self._effects.extend(crossed)

    def _ask_for_areas(self, now: float) -> None:
        if not self.fences:
            return
        self._at("areas", now + AREAS_EVERY_S)
        if any(fence.event_type is not None for fence in self.fences.by_id.values()):
            self._questions += 1
            self.broadcast(AreasWanted(self.node, self._questions, hops=1))

    def _on_areas_wanted(self, wanted: AreasWanted, now: float) -> None:
        """State this node's areas for a while, and let others know that they are wanted."""
        if wanted.source == self.node or self._areas_asked.get(wanted.source) == wanted.number:
            return
        self._areas_asked.put(wanted.source, wanted.number)
        self._areas_until = now + 3 * AREAS_EVERY_S
        if not self._stating and self.types.own:
            self._stating = True
            self._at("state", now + self.random.uniform(0.0, PASS_ON_S))
        if wanted.hops < HOP_LIMIT:
            self._pass_on(wanted.source, msgspec.structs.replace(wanted, hops=wanted.hops + 1), now)

    def _on_here(self, here: Here, sender: str, now: float) -> None:
        self._here.put(sender, (here.at, now))

    def _forget_positions(self, now: float) -> None:
        self._here.forget(lambda heard: now - heard[1] > HERE_LASTS_S)


def _waiting_bytes(packet: Packet) -> int:
    """About how many bytes a packet takes that waits to be passed on."""
    return statement_bytes(packet) if isinstance(packet, Announced) else 1024


def _typed(event: Event, statement: Statement | None) -> Event | None:
    """The event with its values converted to the announced type; None if they do not fit."""
    if statement is None or not statement.event_type.content:
        return event
    try:
        return statement.event_type.read(event)
    except ContentMismatch:
        return None
