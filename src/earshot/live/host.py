"""The live host: runs one machine, unchanged, between real hosts.

It calls the machine's entry points with what happens on the network and in the application, carries
out the effects they return, counts drops, and writes records into the spool.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from earshot.errors import EventError, MalformedPacket, UsageError
from earshot.events import Element, Event, EventType
from earshot.filters import Subscription
from earshot.geometry import Position
from earshot.live.channel import MeasuredChannel
from earshot.live.credentials import Credentials
from earshot.live.datagrams import MAX_NAME, Frame
from earshot.live.location import STALE_S, LocationService, TrackedLocation, plane_name
from earshot.live.memory import EventBytes
from earshot.live.network import NetworkSettings
from earshot.live.spool import Spool
from earshot.live.transport import Transport
from earshot.live.trust import Refused
from earshot.protocols import machine as machines
from earshot.protocols.catalogue import protocol_name
from earshot.protocols.common.byte_budget import ENTRY_BYTES, TABLE_BYTES
from earshot.protocols.machine import NOTHING, Announcement, Effects, Machine, Timer
from earshot.protocols.machine_failures import MOST_AT_ONE_TIME, checked_effects, is_ours, livelock
from earshot.protocols.services.fences import Crossed, Fence
from earshot.protocols.services.history import DeliverPast
from earshot.protocols.services.served import SERVICE_PACKETS, Late, Served, Warn
from earshot.quality import PLAIN
from earshot.records import DropReason, Kind, Record
from earshot.records.details import (
    KEYS_CHANGED,
    STARTED,
    STOPPED,
    JoinDetail,
    SubscribeDetail,
    write_announcement,
    write_detail,
)
from earshot.wire import MAX_WORD, Packet, decode, tag_of

logger = logging.getLogger("earshot.live")

POSITION_EVERY_S = 1.0
CLOCK_STEP_S = 2.0
"If the clock is set back by more than this, the protocol restarts; if by less, time stands still until it catches up."
TIMER_AGAIN_S = 1.0
"A timer whose handling failed fires again after this time, so that no packet can end a protocol's beacons."
MAX_TIMERS = 65_536
TIMER_BYTES = 512
"About what a timer takes; its name shares its texts with a table."
MAX_DELIVERED = 10_000
TABLES_A_MEMORY = 64
"A usual table of the machine gets the memory divided by this."
_OF_SERVICES: frozenset[Any] = frozenset({Crossed, DeliverPast, Late, Warn})

Handler = Callable[[Event], None]
"Called with each delivered event of one subscription."
FenceHandler = Callable[[Crossed, float], None]
"Called with each crossing of one fence, and when it was seen."


class Host:
    """One node: a machine, its transport, its timers and its spool. Its location service has been started."""

    def __init__(
        self,
        name: str,
        protocol: type[Machine],
        settings: Any,
        network: NetworkSettings,
        service: LocationService,
        spool: str | Path | None = None,
        stale_s: float = STALE_S,
        precision_m: float | None = None,
        credentials: Credentials | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 1 <= len(name) <= MAX_NAME:
            raise UsageError(f"a node's name has 1 to {MAX_NAME} characters, got {len(name)}")
        self.name = name
        self.network = network
        self.life = int(clock() * 1e9)
        self.spool = Spool(spool, name, self.life, trouble=self.warn) if spool else None
        self.settings = settings
        self.drops: Counter[str] = Counter()
        self.counts: dict[str, int] = dict.fromkeys(("send", "receive", Kind.DELIVER, Kind.HISTORY, "late"), 0)
        self.memory = EventBytes(network.memory_bytes // 4)
        self._clock = clock
        self._now = 0.0
        self._plane = plane_name(service.plane)
        self.location = TrackedLocation(service, self.warn, stale_s=stale_s, precision_m=precision_m)
        self.channel = MeasuredChannel(network.bit_rate_bps)
        self._protocol = protocol
        self.machine, self.served = self._new_machine()
        self._credentials = credentials or Credentials(name)
        self._identity, self._verifier = self._credentials.identity, self._credentials.verifier
        self.transport = Transport(
            name,
            self.life,
            self._plane,
            network,
            self,
            self.now,
            self._identity,
            self._verifier,
            two_way=protocol.needs_two_way_links,
        )
        if self._credentials.keys:
            self.transport.use_keys(self._credentials.keys)
        self._actions = self._action_table()
        self._outside = not is_ours(protocol)
        "The effects of a machine that is not part of this package are checked."
        self.published = 0
        "How many events were published: an event's id ends with its number."
        self._announcements: dict[str, Announcement] = {}
        self._handlers: dict[str, Handler] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._declared: dict[str, EventType] = {}
        self._fences: dict[str, tuple[Fence, FenceHandler]] = {}
        self._delivered: dict[str, set[str]] = {}
        "For each subscription the events of the latest deliveries: a machine that restarts does not remember them."
        self._delivered_before: dict[str, set[str]] = {}
        self._delivered_count = 0
        self._delivered_bytes = 0
        self._delivered_limit = self.machine.budgets.table_bytes // 2
        self.on_deliver: Callable[[float], None] | None = None
        "Called with the age of each delivered event in seconds, if set."
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        self._most_timers = min(MAX_TIMERS, network.memory_bytes // 16 // TIMER_BYTES)
        self._at_once = 0
        "How many timers since the last tick were already due when they were started: too many are a livelock."
        self._ticking: asyncio.TimerHandle | None = None
        self._flushing = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def _new_machine(self) -> tuple[Machine, Served]:
        """The protocol's machine, and the same machine with the services beside it."""
        random = Random(f"{self.life}:{self.name}")
        machine = self._protocol(self.name, self.settings, self.location, random, self.channel)
        machine.budgets.limit(self.network.memory_bytes / TABLES_A_MEMORY / TABLE_BYTES)
        services = Random(f"{self.life}:{self.name}:services")
        return machine, Served(machine, protocol_name(self._protocol), services, self._neighbours)

    def _neighbours(self) -> list[tuple[str, Position]]:
        present = self.transport.peers.present(time.monotonic())
        return [(peer.name, peer.position) for peer in present if peer.position is not None]

    def now(self) -> float:
        """Seconds since the epoch; never less than at the last call, unless the clock was set back by some seconds."""
        now = self._clock()
        if now < self._now:
            if self._now - now <= CLOCK_STEP_S or self._loop is None:
                return self._now
            self._loop.call_soon(self._start_again, self._now - now)
        self._now = now
        return now

    def _start_again(self, back_s: float) -> None:
        """Start a new machine: the old one would keep everything with an expiry time too long."""
        if self._loop is None:
            return
        self.warn(f"the clock was set back by {back_s:,.0f} s: the protocol restarts")
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        for group in list(self.transport.joined):
            self.transport.leave(group)
        self.location.forget()
        self.machine, self.served = self._new_machine()
        self._guarded(self.served.start)
        for announcement in self._announcements.values():
            self._guarded(self.served.announce, announcement)
        self.served.types.declared.update(self._declared)
        for subscription in self._subscriptions.values():
            self._guarded(self.served.subscribe, subscription)
        for fence, _ in self._fences.values():
            self._guarded(self.served.fence, fence)

    # From start to stop.

    def start(self) -> None:
        """Open the network and start the machine."""
        self._loop = asyncio.get_running_loop()
        self.transport.open()
        if not self.network.keys:
            logger.warning(
                "%s: no network key: anyone in range can read, forge and replay; give a key_file (--key-file)",
                self.name,
            )
        self._record_join(STARTED)
        self._carry_out(self.served.start(self.now()))
        self._tick()

    def _record_join(self, reason: str) -> None:
        if self.spool is not None:
            detail = JoinDetail(
                protocol_name(type(self.machine)),
                self.settings,
                self._plane,
                self.network.emulate_range_m,
                self.life,
                reason,
                self.transport.joined_network(),
            )
            self.record(Kind.JOIN, self.location.exact(self.now()), detail=write_detail(detail))

    def stop(self) -> None:
        """Stop the machine in good order and close the network."""
        if self._loop is None:
            return
        self._guarded(self.served.stop)
        if self._ticking is not None:
            self._ticking.cancel()
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        self.transport.say_goodbye()
        self.transport.close()
        if self.spool is not None:
            self.record(Kind.LEAVE, self.location.exact(self.now()), detail=STOPPED)
            spool, self.spool = self.spool, None
            spool.close()
        self._loop = None

    def _tick(self) -> None:
        """Once a second: write the position into the spool, warn if it has become stale, read key files that have
        changed, and forget what peers stated and did not renew."""
        if self._credentials.reread():
            self.transport.use_keys(self._credentials.keys)
            self._record_join(KEYS_CHANGED)
        self.record(Kind.POSITION, self.location.exact(self.now()))
        self.served.forget(self._now)
        self._at_once = 0
        if self._loop is not None:
            self._ticking = self._loop.call_later(POSITION_EVERY_S, self._tick)

    # What the application does. The application's mistakes are raised here.

    def announce(self, announcement: Announcement) -> None:
        """The application will publish events of this type."""
        effects = self._asked(self.served.announce, announcement)
        self._announcements[announcement.name] = announcement
        self.record(
            Kind.ANNOUNCE,
            detail=write_announcement(announcement.event_type, announcement.proximity, announcement.producer),
        )
        self._carry_out(effects)

    def unannounce(self, name: str) -> None:
        """The application will publish no more events with the announcement of this name."""
        if self._announcements.pop(name, None) is not None:
            self.record(Kind.UNANNOUNCE, detail=name)
            self._carry_out(self._asked(self.served.unannounce, name))

    def subscribe(self, subscription: Subscription, handler: Handler, expected: EventType | None = None) -> None:
        """The application subscribes; `handler` is called with each event. QualityError if a publisher in reach
        announces the expected type with other attributes."""
        if expected is not None:
            self.served.declare(subscription.id, expected)
            self._declared[subscription.id] = expected
        self._handlers[subscription.id] = handler
        self._subscriptions[subscription.id] = subscription
        detail = write_detail(SubscribeDetail(str(subscription.filter), subscription.region))
        self.record(Kind.SUBSCRIBE, subscription=subscription.id, detail=detail)
        try:
            self._carry_out(self._asked(self.served.subscribe, subscription))
        except Exception:
            del self._handlers[subscription.id], self._subscriptions[subscription.id]
            self._declared.pop(subscription.id, None)
            raise

    def unsubscribe(self, subscription: str) -> None:
        """The application unsubscribes."""
        if self._handlers.pop(subscription, None) is not None and self._loop is not None:
            del self._subscriptions[subscription]
            self._declared.pop(subscription, None)
            self.record(Kind.UNSUBSCRIBE, subscription=subscription)
            self._carry_out(self._asked(self.served.unsubscribe, subscription))

    @property
    def subscriptions(self) -> int:
        """How many subscriptions the applications have."""
        return len(self._subscriptions)

    def fence(self, fence: Fence, handler: FenceHandler) -> None:
        """The application wants to know of crossings; `handler` is called with each."""
        self._fences[fence.id] = (fence, handler)
        self._carry_out(self._asked(self.served.fence, fence))

    def unfence(self, fence: str) -> None:
        """The application no longer wants to know of crossings."""
        if self._fences.pop(fence, None) is not None and self._loop is not None:
            self._asked(self.served.unfence, fence)

    def publish(self, event: Event, announced: str = "") -> Event:
        """Publish an event; returns it stamped."""
        return self.publish_new(event.type, event.content, event.lifespan_s, event.priority, announced)

    def publish_new(
        self,
        subject: str,
        content: dict[str, Any] | Element,
        lifespan_s: float | None = None,
        priority: int = 0,
        announced: str = "",
    ) -> Event:
        """Publish an event of this type and content, at the current time and position, with the announcement of this
        name (by default the type's own); returns it."""
        if len(subject) > MAX_WORD:
            raise EventError(f"an event type has at most {MAX_WORD} characters, got {len(subject)}")
        now = self.now()
        position = self.location.position(now)
        announcement = self._announcements.get(announced or subject)
        proximity, publish = None, self.served.publish
        if announcement is not None:
            proximity, quality = announcement.proximity, announcement.event_type.quality
            if quality is PLAIN:
                publish = self.machine.publish  # The services keep nothing of such events.
            else:
                lifespan_s = quality.lifespan_s if lifespan_s is None else lifespan_s
                priority = priority or quality.priority
        self.published += 1
        event = Event(
            subject,
            content,
            f"{self.name}-{self.life:x}-{self.published}",
            self.name,
            position,
            self.location.velocity(now),
            now,
            None if proximity is None else proximity.area(position),
            lifespan_s,
            priority,
        )
        if self._identity is not None:
            if announcement is not None and announcement.event_type.content:
                event = announcement.event_type.read(event)
            event = self._identity.sign_event(event)
        written = event.to_json().decode() if self.spool is not None else ""
        effects = self._asked(publish, event, now)
        if self.spool is not None:
            self.record(Kind.PUBLISH, self.location.exact(now), event=event.id, detail=written)
            self._flush_spool()
        self._carry_out(effects)
        return event

    # Carrying out what the machine asks.

    def _carry_out(self, effects: Effects) -> None:
        if self._outside:
            own = effects if effects is NOTHING else [effect for effect in effects if type(effect) not in _OF_SERVICES]
            checked_effects(self.machine, "its effects", own, self._handlers, self._now)
        actions = self._actions
        for effect in effects:
            actions[type(effect)](effect)

    def _action_table(self) -> dict[type, Callable[[Any], None]]:
        """How the host carries out each kind of effect. (A table, because patterns would be tried one by one.)"""
        return {
            machines.Broadcast: lambda effect: self.transport.broadcast(effect.packet, effect.group),
            machines.Send: lambda effect: self.transport.send(effect.peer, effect.packet),
            machines.JoinGroup: lambda effect: self.transport.join(effect.group),
            machines.LeaveGroup: lambda effect: self.transport.leave(effect.group),
            machines.Deliver: self._deliver,
            machines.Drop: self._count_drop,
            machines.StartTimer: self._start_timer,
            machines.CancelTimer: self._cancel_timer,
            machines.Note: lambda effect: self.record(Kind.NOTE, detail=f"{effect.topic}: {effect.detail}"),
            Late: self._mark_late,
            DeliverPast: lambda past: self._deliver(machines.Deliver(past.event, past.subscription), Kind.HISTORY),
            Crossed: self._report_crossing,
            Warn: lambda effect: self.warn(effect.message),
        }

    def _count_drop(self, effect: machines.Drop) -> None:
        self.drops[effect.reason] += 1
        if self.spool is not None:
            self.record(Kind.DROP, event=effect.event, detail=effect.reason)

    def _mark_late(self, effect: Late) -> None:
        effect.event.__dict__["late_s"] = effect.late_s
        self.counts["late"] += 1
        detail = f"{effect.late_s:.6f}"
        self.record(Kind.LATE, event=effect.event.id, subscription=effect.subscription, detail=detail)

    def _report_crossing(self, effect: Crossed) -> None:
        now = self.now()
        detail, at = f"{effect.crossing} {effect.subject}".rstrip(), self.location.exact(now)
        self.record(Kind.FENCE, at, subscription=effect.fence, peer=effect.peer, detail=detail)
        if effect.fence in self._fences:
            self._fences[effect.fence][1](effect, now)

    def _asked(self, entry_point: Callable[..., Effects], argument: Any, now: float | None = None) -> Effects:
        """Call an entry point for the application. The application's mistakes are raised; any other failure is caused
        by what peers sent, and is counted and logged."""
        try:
            return entry_point(argument, self.now() if now is None else now)
        except UsageError:
            raise
        except Exception:
            return self._failed(entry_point.__qualname__)

    def _guarded(self, entry_point: Callable[..., Effects], *arguments: Any) -> bool:
        """Call an entry point for something that came from outside: a failure is counted and logged, never raised.
        Returns whether it succeeded."""
        try:
            self._carry_out(entry_point(*arguments, self.now()))
        except Exception:
            self._failed(entry_point.__qualname__)
            return False
        return True

    def _failed(self, what: str, peer: str = "") -> Effects:
        """Count and log an exception in the machine. Effects before the exception come with its next effects."""
        self.dropped(DropReason.MACHINE_FAILURE, peer)
        if self.drops[DropReason.MACHINE_FAILURE] <= 10:
            logger.exception("%s: %s failed", self.name, what)
        return NOTHING

    def _cancel_timer(self, effect: machines.CancelTimer) -> None:
        if running := self._timers.pop(effect.name, None):
            running.cancel()

    def _start_timer(self, effect: machines.StartTimer) -> None:
        assert self._loop is not None
        running = self._timers.pop(effect.name, None)
        if running is not None:
            running.cancel()
        elif len(self._timers) >= self._most_timers:
            self.dropped(DropReason.TOO_MANY_TIMERS)
            return
        delay_s = max(0.0, effect.at - self.now())
        if delay_s == 0.0 and self._is_livelock(effect.name):
            delay_s = TIMER_AGAIN_S
        self._timers[effect.name] = self._loop.call_later(delay_s, self._fire, effect.name)

    def _is_livelock(self, timer: Timer) -> bool:
        """Whether the machine starts timers for the present time again and again. Logged once a second."""
        self._at_once += 1
        if self._at_once == MOST_AT_ONE_TIME:
            self.dropped(DropReason.MACHINE_FAILURE)
            logger.error("%s", livelock(self.machine, self.name, timer, self._now, ""))
        return self._at_once >= MOST_AT_ONE_TIME

    def _fire(self, name: Timer) -> None:
        del self._timers[name]
        if not self._guarded(self.served.wake, name) and name not in self._timers:
            self._start_timer(machines.StartTimer(name, self.now() + TIMER_AGAIN_S))

    def _deliver(self, effect: machines.Deliver, kind: Kind = Kind.DELIVER) -> None:
        event, subscription = effect.event, effect.subscription
        id = event.id
        if event.lifespan_s is not None and self._now - event.time > event.lifespan_s:
            self.dropped(DropReason.EXPIRED, event=id)
            return
        delivered = self._delivered.get(subscription)
        if delivered is None:
            delivered = self._delivered[subscription] = set()
        if id in delivered or (self._delivered_before and id in self._delivered_before.get(subscription, ())):
            return
        delivered.add(id)
        self._delivered_count += 1
        self._delivered_bytes += ENTRY_BYTES + (len(id) if id.isascii() else 4 * len(id))
        if self._delivered_count >= MAX_DELIVERED or self._delivered_bytes >= self._delivered_limit:
            self._delivered, self._delivered_before = {}, self._delivered
            self._delivered_count = self._delivered_bytes = 0
        self.counts[kind] += 1
        if self.on_deliver is not None and kind is Kind.DELIVER:
            self.on_deliver(self.now() - event.time)
        if self.spool is not None:
            at = self.location.exact(self.now())
            self.record(kind, at, event=id, subscription=subscription, hops=effect.hops)
            self._flush_spool()
        handler = self._handlers.get(subscription)
        if handler is not None:
            handler(event)

    # What the transport reports: see `transport.Listener`.

    def heard(self, datas: Sequence[bytes], frame: Frame, now: float) -> None:
        sender, verifier, spool = frame.sender, self._verifier, self.spool
        admits = self.memory.admits
        for index, data in enumerate(datas):
            try:
                packet = decode(data)
                if verifier is not None:
                    verifier.check_packet(packet, sender, now)
            except MalformedPacket:
                self.dropped(DropReason.MALFORMED, sender)
                continue
            except Refused as refused:
                self.dropped(refused.reason, sender)
                continue
            if not admits(packet, len(data)):
                self.dropped(DropReason.OUT_OF_MEMORY, sender)
                continue
            self.counts["receive"] += 1
            if self.network.bit_rate_bps is not None:
                self.channel.count(len(data), now)
            if spool is not None:
                transmission = frame.transmission(index)
                self._record_packet(Kind.RECEIVE, packet, bytes=len(data), peer=sender, transmission=transmission)
            try:
                types = self.served.types
                if not (types.heard or types.declared or type(packet) in SERVICE_PACKETS):  # It concerns no service.
                    effects = self.machine.hear(packet, sender, now)
                else:
                    effects = self.served.hear(packet, sender, now)
                if effects is not NOTHING or self._outside:
                    self._carry_out(effects)
            except Exception:
                self._failed(f"hearing a {tag_of(packet)}", sender)

    def sent(self, packets: Sequence[Packet], datas: Sequence[bytes], peer: str, frame: Frame) -> None:
        self.counts["send"] += len(packets)
        if self.network.bit_rate_bps is not None:
            for data in datas:
                self.channel.count(len(data), frame.time)
        if self.spool is not None:
            for index, (packet, data) in enumerate(zip(packets, datas, strict=True)):
                transmission = frame.transmission(index)
                self._record_packet(Kind.SEND, packet, bytes=len(data), peer=peer, transmission=transmission)

    def unreachable(self, packet: Packet, peer: str) -> None:
        if self._loop is not None:
            self.drops[DropReason.UNREACHABLE] += 1
            self._record_packet(Kind.DROP, packet, peer=peer, detail=DropReason.UNREACHABLE)
            self._guarded(self.served.unreachable, packet, peer)

    def dropped(self, reason: DropReason, peer: str = "", count: int = 1, event: str = "") -> None:
        self.drops[reason] += count
        # Further refused datagrams are only counted: a flood must not fill the disk.
        if event or self.drops[reason] <= 1000:
            self.record(Kind.DROP, detail=reason, peer=peer, event=event)

    def header_position(self, now: float) -> Position | None:
        return self.location.position(now)

    def warn(self, message: str) -> None:
        """Warn the user about the node's location or its subscribers."""
        logger.warning("%s: %s", self.name, message)
        self.record(Kind.NOTE, detail=message)

    # The spool.

    def record(self, kind: Kind, at: Position | None = None, **columns: Any) -> None:
        """Put a record into the spool; it is written to the file at the end of this turn of the loop."""
        if self.spool is None:
            return
        if at is not None:
            columns.update(x_m=at.x_m, y_m=at.y_m)
        self.spool.write(Record(self.now(), self.name, kind, **columns))
        if not self._flushing and self._loop is not None:
            self._flushing = True
            self._loop.call_soon(self._flush_spool)

    def _record_packet(self, kind: Kind, packet: Packet, **columns: Any) -> None:
        event, hops = getattr(packet, "event", None), getattr(packet, "hops", None)
        if isinstance(event, Event):
            columns["event"] = event.id
        if kind is Kind.RECEIVE and isinstance(hops, int):
            columns["hops"] = hops
        self.record(kind, packet=tag_of(packet), **columns)

    def _flush_spool(self) -> None:
        self._flushing = False
        if self.spool is not None:
            self.spool.flush()
            if self.spool.lost:
                self.drops[DropReason.SPOOL_NOT_WRITTEN] = self.spool.lost
