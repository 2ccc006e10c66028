"""The live host: runs one machine, unchanged, between real hosts.

It calls the machine's entry points with what happens on the network and in the application, carries
out the effects they return, counts drops, and writes records into the spool.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from earshot.errors import MalformedPacket, UsageError
from earshot.events import Element, Event, EventType
from earshot.filters import Subscription
from earshot.geometry import Position
from earshot.live.datagrams import MAX_NAME, Frame
from earshot.live.location import Fix, LocationService, TrackedLocation, plane_name
from earshot.live.network import NetworkSettings
from earshot.live.spool import Spool
from earshot.live.transport import Transport
from earshot.protocols.machine import (
    NOTHING,
    Announcement,
    Broadcast,
    CancelTimer,
    Deliver,
    Drop,
    Effects,
    JoinGroup,
    LeaveGroup,
    Machine,
    Note,
    Send,
    StartTimer,
    Timer,
)
from earshot.records import DropReason, Kind, Record
from earshot.records.details import (
    STARTED,
    STOPPED,
    JoinDetail,
    SubscribeDetail,
    write_announcement,
    write_detail,
)
from earshot.wire import Packet, decode, tag_of

logger = logging.getLogger("earshot.live")

POSITION_EVERY_S = 1.0
MAX_TIMERS = 65_536

Handler = Callable[[Event], None]
"Called with each delivered event of one subscription."


class Host:
    """One node: a machine, its transport, its timers and its spool."""

    def __init__(
        self,
        name: str,
        protocol: type[Machine],
        settings: Any,
        network: NetworkSettings,
        location: TrackedLocation,
        *,
        plane: str = "",
        spool: Spool | None = None,
        life: int | None = None,
    ) -> None:
        if not 1 <= len(name) <= MAX_NAME:
            raise UsageError(f"a node's name has 1 to {MAX_NAME} characters, got {len(name)}")
        self.name = name
        self.network = network
        self.life = time.time_ns() if life is None else life
        self.location = location
        self.spool = spool
        self.settings = settings
        self.drops: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.machine = protocol(name, settings, location, Random(f"{self.life}:{name}"))
        self.transport = Transport(name, self.life, plane, network, self, self.now)
        self._plane = plane
        self._now = 0.0
        self._published = 0
        self._announcements: dict[str, Announcement] = {}
        self._handlers: dict[str, Handler] = {}
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        self._ticking: asyncio.TimerHandle | None = None
        self._flushing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._carry: dict[type[Any], Callable[[Any], None]] = {
            Broadcast: self._broadcast,
            Send: self._send,
            StartTimer: self._start_timer,
            CancelTimer: self._cancel_timer,
            Deliver: self._deliver,
            Drop: self._drop,
            JoinGroup: self._join_group,
            LeaveGroup: self._leave_group,
            Note: self._note,
        }

    def now(self) -> float:
        """Seconds since the epoch; never earlier than before."""
        now = time.time()
        if now < self._now:
            return self._now
        self._now = now
        return now

    # From start to stop.

    def start(self) -> None:
        """Open the network and start the machine."""
        self._loop = asyncio.get_running_loop()
        self.transport.open()
        if not self.network.keys:
            logger.warning(
                "%s: no network key: anyone in range can read, forge and replay; give one with --key-file",
                self.name,
            )
        if self.spool is not None:
            detail = JoinDetail(
                self.machine.name, self.settings, self._plane, self.network.emulate_range_m, self.life, STARTED
            )
            self.record(Kind.JOIN, detail=write_detail(detail), at=self.location.exact(self.now()))
        self._carry_out(self.machine.start(self.now()))
        self._tick()

    def stop(self) -> None:
        """Stop the machine in good order and close the network."""
        if self._loop is None:
            return
        self._guarded(self.machine.stop)
        if self._ticking is not None:
            self._ticking.cancel()
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        self.transport.close()
        if self.spool is not None:
            self.record(Kind.LEAVE, detail=STOPPED, at=self.location.exact(self.now()))
            self.spool.close()
            self.spool = None
        self._loop = None

    def _tick(self) -> None:
        """Once a second: write the position into the spool, and warn if it has become stale."""
        at = self.location.exact(self.now())
        if self.spool is not None:
            self.record(Kind.POSITION, at=at)
        if self._loop is not None:
            self._ticking = self._loop.call_later(POSITION_EVERY_S, self._tick)

    # What the application does. Its mistakes are raised here.

    def announce(self, announcement: Announcement) -> None:
        """The application will publish events of this type."""
        effects = self.machine.announce(announcement, self.now())
        self._announcements[announcement.event_type.subject] = announcement
        if self.spool is not None:
            self.record(Kind.ANNOUNCE, detail=write_announcement(announcement.event_type, announcement.proximity))
        self._carry_out(effects)

    def unannounce(self, subject: str) -> None:
        """The application will publish no more events of this type."""
        if self._announcements.pop(subject, None) is not None:
            if self.spool is not None:
                self.record(Kind.UNANNOUNCE, detail=subject)
            self._carry_out(self.machine.unannounce(subject, self.now()))

    def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        """The application subscribes; `handler` is called with each event."""
        self._handlers[subscription.id] = handler
        if self.spool is not None:
            detail = write_detail(SubscribeDetail(str(subscription.filter), subscription.region))
            self.record(Kind.SUBSCRIBE, subscription=subscription.id, detail=detail)
        try:
            self._carry_out(self.machine.subscribe(subscription, self.now()))
        except Exception:
            del self._handlers[subscription.id]
            raise

    def unsubscribe(self, subscription: str) -> None:
        """The application unsubscribes."""
        if self._handlers.pop(subscription, None) is not None and self._loop is not None:
            if self.spool is not None:
                self.record(Kind.UNSUBSCRIBE, subscription=subscription)
            self._carry_out(self.machine.unsubscribe(subscription, self.now()))

    def publish(self, event: Event, event_type: EventType | None = None) -> Event:
        """Publish an event; returns it stamped, with its content converted to its type."""
        if event_type is not None and event_type.content:
            event = event_type.read(event)
        return self.publish_new(event.type, event.content, event.lifespan_s, event.priority)

    def publish_new(
        self, subject: str, content: dict[str, Any] | Element, lifespan_s: float | None = None, priority: int = 0
    ) -> Event:
        """Publish an event of this type and content, at the current time and position; returns it."""
        now = self.now()
        position = self.location.position(now)
        announcement = self._announcements.get(subject)
        proximity = None if announcement is None else announcement.proximity
        self._published += 1
        event = Event(
            subject,
            content,
            f"{self.name}-{self.life:x}-{self._published}",
            self.name,
            position,
            self.location.velocity(now),
            now,
            None if proximity is None else proximity.area(position),
            lifespan_s,
            priority,
        )
        effects = self.machine.publish(event, now)
        if self.spool is not None:
            at = self.location.exact(now)
            self.record(Kind.PUBLISH, event=event.id, detail=event.to_json().decode(), at=at)
        self._carry_out(effects)
        return event

    def fix(self) -> Fix:
        """The node's latest fix; `age_s` is its age."""
        return self.location.fix(self.now())

    # Carrying out what the machine asks.

    def _carry_out(self, effects: Effects) -> None:
        for effect in effects:
            self._carry[type(effect)](effect)

    def _guarded(self, entry_point: Callable[..., Effects], *arguments: Any) -> None:
        """Call an entry point for something that came from outside: a failure is counted and logged, never raised."""
        try:
            self._carry_out(entry_point(*arguments, self.now()))
        except Exception:
            self.dropped(DropReason.MACHINE_FAILURE)
            if self.drops[DropReason.MACHINE_FAILURE] <= 10:
                logger.exception("%s: %s failed", self.name, entry_point.__qualname__)

    def _broadcast(self, effect: Broadcast) -> None:
        self.transport.broadcast(effect.packet, effect.group)

    def _send(self, effect: Send) -> None:
        self.transport.send(effect.peer, effect.packet)

    def _start_timer(self, effect: StartTimer) -> None:
        assert self._loop is not None
        running = self._timers.pop(effect.name, None)
        if running is not None:
            running.cancel()
        elif len(self._timers) >= MAX_TIMERS:
            self.dropped(DropReason.TOO_MANY_TIMERS)
            return
        delay_s = max(0.0, effect.at - self.now())
        self._timers[effect.name] = self._loop.call_later(delay_s, self._fire, effect.name)

    def _fire(self, name: Timer) -> None:
        del self._timers[name]
        self._guarded(self.machine.wake, name)

    def _cancel_timer(self, effect: CancelTimer) -> None:
        running = self._timers.pop(effect.name, None)
        if running is not None:
            running.cancel()

    def _deliver(self, effect: Deliver) -> None:
        self.counts["deliver"] += 1
        if self.spool is not None:
            event, hops = effect.event.id, effect.hops
            at = self.location.exact(self.now())
            self.record(Kind.DELIVER, event=event, subscription=effect.subscription, hops=hops, at=at)
        handler = self._handlers.get(effect.subscription)
        if handler is not None:
            handler(effect.event)

    def _drop(self, effect: Drop) -> None:
        self.drops[effect.reason] += 1
        if self.spool is not None:
            self.record(Kind.DROP, event=effect.event, detail=effect.reason)

    def _join_group(self, effect: JoinGroup) -> None:
        self.transport.join(effect.group)

    def _leave_group(self, effect: LeaveGroup) -> None:
        self.transport.leave(effect.group)

    def _note(self, effect: Note) -> None:
        if self.spool is not None:
            self.record(Kind.NOTE, detail=f"{effect.topic}: {effect.detail}")

    # What the transport reports: see `transport.Listener`.

    def heard(self, data: bytes, frame: Frame, index: int, now: float) -> None:
        try:
            packet = decode(data)
        except MalformedPacket:
            self.dropped(DropReason.MALFORMED, frame.sender)
            return
        self.counts["receive"] += 1
        if self.spool is not None:
            self._record_packet(Kind.RECEIVE, packet, len(data), frame.sender, frame.transmission(index))
        try:
            effects = self.machine.hear(packet, frame.sender, now)
            if effects is not NOTHING:
                self._carry_out(effects)
        except Exception:
            self.dropped(DropReason.MACHINE_FAILURE, frame.sender)
            if self.drops[DropReason.MACHINE_FAILURE] <= 10:
                logger.exception("%s: hearing a %s failed", self.name, tag_of(packet))

    def sent(self, packet: Packet, size: int, peer: str, frame: Frame, index: int) -> None:
        self.counts["send"] += 1
        if self.spool is not None:
            self._record_packet(Kind.SEND, packet, size, peer, frame.transmission(index))

    def unreachable(self, packet: Packet, peer: str) -> None:
        if self._loop is not None:
            self.drops[DropReason.UNREACHABLE] += 1
            if self.spool is not None:
                self._record_packet(Kind.DROP, packet, -1, peer, -1, detail=DropReason.UNREACHABLE)
            self._guarded(self.machine.unreachable, packet, peer)

    def dropped(self, reason: DropReason, peer: str = "", event: str = "") -> None:
        self.drops[reason] += 1
        # Further refused datagrams are only counted: a flood must not fill the disk.
        if self.spool is not None and (event or self.drops[reason] <= 1000):
            self.record(Kind.DROP, detail=reason, peer=peer, event=event)

    def header_position(self, now: float) -> Position | None:
        return self.location.recent_position(now)

    def warn(self, message: str) -> None:
        """Warn the user about the node's location or its subscribers."""
        logger.warning("%s: %s", self.name, message)
        if self.spool is not None:
            self.record(Kind.NOTE, detail=message)

    # The spool.

    def record(
        self,
        kind: Kind,
        *,
        peer: str = "",
        event: str = "",
        subscription: str = "",
        hops: int = -1,
        detail: str = "",
        at: Position | None = None,
    ) -> None:
        """Put a record into the spool; it is written to the file at the end of this turn of the loop."""
        if self.spool is None:
            return
        x_m, y_m = (None, None) if at is None else (at.x_m, at.y_m)
        self._write(
            Record(
                self.now(),
                self.name,
                kind,
                peer=peer,
                event=event,
                subscription=subscription,
                hops=hops,
                detail=detail,
                x_m=x_m,
                y_m=y_m,
            )
        )

    def _record_packet(
        self, kind: Kind, packet: Packet, size: int, peer: str, transmission: int, detail: str = ""
    ) -> None:
        event = getattr(packet, "event", None)
        hops = getattr(packet, "hops", -1) if kind is Kind.RECEIVE else -1
        self._write(
            Record(
                self.now(),
                self.name,
                kind,
                transmission,
                tag_of(packet),
                size,
                peer,
                event.id if isinstance(event, Event) else "",
                hops=hops if isinstance(hops, int) else -1,
                detail=detail,
            )
        )

    def _write(self, record: Record) -> None:
        assert self.spool is not None
        self.spool.write(record)
        if not self._flushing and self._loop is not None:
            self._flushing = True
            self._loop.call_soon(self._flush_spool)

    def _flush_spool(self) -> None:
        self._flushing = False
        if self.spool is not None:
            self.spool.flush()


async def open_host(
    name: str,
    protocol: type[Machine],
    settings: Any,
    network: NetworkSettings,
    service: LocationService,
    *,
    plane: Any = None,
    spool: str = "",
    stale_s: float,
    precision_m: float | None = None,
) -> Host:
    """Start the location service, then the host on it."""
    await service.start(time.time, plane)
    life = time.time_ns()
    try:
        opened = Spool(spool, name, life) if spool else None
        warnings: list[Callable[[str], None]] = []
        where = TrackedLocation(service, lambda text: warnings[0](text), stale_s=stale_s, precision_m=precision_m)
        host = Host(name, protocol, settings, network, where, plane=plane_name(service.plane), spool=opened, life=life)
        warnings.append(host.warn)
        try:
            host.start()
        except BaseException:
            host.stop()
            raise
    except BaseException:
        await service.stop()
        raise
    return host
