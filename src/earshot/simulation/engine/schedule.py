"""The schedule: all that is known before a run begins. Nodes join and leave, applications announce,
subscribe and publish, positions are sampled, the warm-up ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from earshot.events import Event, with_quality
from earshot.filters import Subscription, filter_text
from earshot.geometry import Position, Velocity, is_area_of
from earshot.protocols.machine import Announcement
from earshot.protocols.services.fences import Fence
from earshot.records import DropReason, Kind
from earshot.records.details import SubscribeDetail, write_announcement, write_detail
from earshot.records.sessions import AnnouncementSpan, Session, SubscriptionSpan
from earshot.records.trajectories import Trajectories
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.result import Counts
from earshot.simulation.event_queue import Priority, Queue
from earshot.simulation.faults import Outage
from earshot.simulation.workload.actions import Action, Unannounce, Unfence, Unsubscribe, What, Workload

NOT_PRESENT = "not present"
PROGRESS_STEPS = 200
AIRTIME_EVERY_S = 10.0
"How long a window of the airtime records is."


class ScheduledRun(Protocol):
    """What a schedule asks of the engine."""

    names: tuple[str, ...]
    queue: Queue
    log: Log | None
    trajectories: Trajectories
    duration_s: float
    clock_offsets_s: tuple[float, ...]
    up: list[bool]
    counts: Counts
    warm_up: Counts

    def come(self, i: int, why: str) -> None: ...

    def go(self, i: int, why: str, graceful: bool) -> None: ...

    def call(self, i: int, entry_point: str, *arguments: Any) -> None: ...

    def publish(self, i: int, event: Event) -> None: ...

    def drop(self, i: int, reason: DropReason, event: str = "") -> None: ...

    def record_airtime(self) -> None: ...


@dataclass(slots=True)
class Application:
    """The applications on a node. A machine loses its memory in a crash; they do not."""

    session: Session
    "Holds their subscription spans, through all absences of the node."
    announcements: dict[str, Announcement] = field(default_factory=dict)
    "By name, in the order they were made."
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    fences: dict[str, Fence] = field(default_factory=dict)
    published: int = 0

    def subscribe(self, subscription: Subscription, now: float) -> SubscriptionSpan:
        """Begin a subscription."""
        text = filter_text(subscription.filter)
        span = SubscriptionSpan(self.session.node, subscription.id, text, subscription.region, start=now)
        self.session.subscribe(span)
        self.subscriptions[subscription.id] = subscription
        return span

    def unsubscribe(self, id: str, now: float) -> bool:
        """End a subscription; whether there was one."""
        self.session.unsubscribe(id, now)
        return self.subscriptions.pop(id, None) is not None

    def announce(self, announcement: Announcement, now: float) -> None:
        """Begin an announcement."""
        span = AnnouncementSpan(self.session.node, announcement.event_type.subject, announcement.proximity, now)
        self.session.announce(span)
        self.announcements[announcement.name] = announcement

    def unannounce(self, name: str, now: float) -> bool:
        """End an announcement; whether there was one."""
        self.session.unannounce(name, now)
        return self.announcements.pop(name, None) is not None

    def stamp(self, event: Event, time: float, position: Position, velocity: Velocity) -> Event:
        """The event as its publishing node sends it: numbered, dated, placed, with the area its type
        was announced for, and the lifespan and priority of its type where it has none of its own."""
        announcement, source = self._announcement_of(event), self.session.node
        proximity = None if announcement is None else announcement.proximity
        if announcement is not None and announcement.event_type.attributes:
            event = with_quality(event, announcement.event_type.quality)
        stamped = event.stamped(
            id=f"{source}-{self.published}",
            source=source,
            time=time,
            position=position,
            velocity=velocity,
            area=None if proximity is None else proximity.area(position),
        )
        self.published += 1
        return stamped

    def _announcement_of(self, event: Event) -> Announcement | None:
        """The type's announcement. Where several producers on the node announce it, the event's area tells which one
        raises it."""
        unnamed = self.announcements.get(event.type)
        if event.area is None and unnamed is not None:
            return unnamed
        of_type = [one for one in self.announcements.values() if one.event_type.subject == event.type]
        return next((one for one in of_type if is_area_of(event.area, one.proximity)), unnamed)


class Schedule:
    """Puts its entries into the engine's queue and carries them out when their time comes."""

    def __init__(
        self,
        engine: ScheduledRun,
        workload: Workload,
        outages: Sequence[Outage],
        warm_up_s: float,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.subscriptions: list[SubscriptionSpan] = []
        "Every subscription any application ever had, in order of time."
        self._engine = engine
        self._queue = engine.queue
        self._applications = [Application(Session(name)) for name in engine.names]
        self._away: list[set[str]] = [{NOT_PRESENT} for _ in engine.names]
        "Why each node is not there; empty where it is."
        self._progress = progress
        self._put_presence()
        for outage in outages:
            self._queue.at(outage.time_s, Priority.WORLD, self._outage, outage)
        if warm_up_s > 0:
            self._queue.at(warm_up_s, Priority.WORLD, self._end_warm_up)
        self._actions = iter(workload)
        self._put_next_action()
        if engine.log is not None and engine.log.positions_every_s is not None:
            self._queue.at(0.0, Priority.OBSERVER, self._sample_positions, 0)
        if engine.log is not None:
            self._queue.at(AIRTIME_EVERY_S, Priority.OBSERVER, self._record_airtime, 1)
        if progress is not None:
            self._queue.at(0.0, Priority.OBSERVER, self._report_progress, 0)

    # Nodes come and go.

    def _put_presence(self) -> None:
        for i, presence in enumerate(self._engine.trajectories.presence):
            for start_s, end_s in presence:
                if end_s > 0 and start_s <= self._engine.duration_s:
                    self._queue.at(max(start_s, 0.0), Priority.WORLD, self.appear, i)
                if 0 < end_s <= self._engine.duration_s:
                    self._queue.at(end_s, Priority.WORLD, self.vanish, i)

    def appear(self, i: int) -> None:
        """Node i comes on the scene."""
        self._come(i, NOT_PRESENT, "on the scene")

    def vanish(self, i: int) -> None:
        """Node i goes off the scene."""
        self._go(i, NOT_PRESENT, "off the scene", graceful=True)

    def _outage(self, outage: Outage) -> None:
        if outage.back:
            self._come(outage.node, outage.cause, f"after {outage.cause}")
        else:
            self._go(outage.node, outage.cause, outage.cause, outage.graceful)

    def _come(self, i: int, cause: str, why: str) -> None:
        """One reason to be away is over; the node is back when it was the last. Its applications
        then ask its new machine for all they had asked before. That is not new, so it is not logged again."""
        self._away[i].discard(cause)
        if self._away[i] or self._engine.up[i]:
            return
        self._engine.come(i, why)
        application = self._applications[i]
        for announcement in list(application.announcements.values()):
            self._engine.call(i, "announce", announcement)
        for subscription in list(application.subscriptions.values()):
            self._engine.call(i, "subscribe", subscription)
        for fence in list(application.fences.values()):
            self._engine.call(i, "fence", fence)

    def _go(self, i: int, cause: str, why: str, graceful: bool) -> None:
        self._away[i].add(cause)
        if self._engine.up[i]:
            self._engine.go(i, why, graceful)

    # What applications do.

    def _put_next_action(self) -> None:
        action = next(self._actions, None)
        if action is not None:
            self._queue.at(max(action.time, 0.0), Priority.APPLICATION, self._act, action)

    def _act(self, action: Action) -> None:
        self._put_next_action()
        self.carry_out(action.node, action.what)

    def carry_out(self, i: int, what: What) -> None:
        """The application on node i does this now."""
        match what:
            case Event() as event:
                self._publish(i, event)
            case Subscription() as subscription:
                self._subscribe(i, subscription)
            case Unsubscribe(id):
                self._unsubscribe(i, id)
            case Announcement() as announcement:
                self._announce(i, announcement)
            case Unannounce(subject):
                self._unannounce(i, subject)
            case Fence() as fence:
                self._applications[i].fences[fence.id] = fence
                self._engine.call(i, "fence", fence)
            case Unfence(id):
                if self._applications[i].fences.pop(id, None) is not None:
                    self._engine.call(i, "unfence", id)

    def _publish(self, i: int, event: Event) -> None:
        """Stamped by the publishing node, with its own clock."""
        engine, now = self._engine, self._queue.now
        if not engine.up[i]:
            engine.drop(i, DropReason.PUBLISHER_AWAY)
            return
        stamped = self._applications[i].stamp(
            event,
            time=now + engine.clock_offsets_s[i],
            position=Position(*engine.trajectories.position(i, now)),
            velocity=Velocity(*engine.trajectories.velocity(i, now)),
        )
        engine.publish(i, stamped)

    def _subscribe(self, i: int, subscription: Subscription) -> None:
        span = self._applications[i].subscribe(subscription, self._queue.now)
        self.subscriptions.append(span)
        if self._engine.log is not None:
            detail = write_detail(SubscribeDetail(span.filter, span.region))
            self._record(Kind.SUBSCRIBE, i, subscription=subscription.id, detail=detail)
        self._engine.call(i, "subscribe", subscription)

    def _unsubscribe(self, i: int, id: str) -> None:
        if self._applications[i].unsubscribe(id, self._queue.now):
            self._record(Kind.UNSUBSCRIBE, i, subscription=id)
            self._engine.call(i, "unsubscribe", id)

    def _announce(self, i: int, announcement: Announcement) -> None:
        event_type = announcement.event_type
        self._applications[i].announce(announcement, self._queue.now)
        detail = write_announcement(event_type, announcement.proximity, announcement.producer)
        self._record(Kind.ANNOUNCE, i, detail=detail)
        self._engine.call(i, "announce", announcement)

    def _unannounce(self, i: int, name: str) -> None:
        if self._applications[i].unannounce(name, self._queue.now):
            self._record(Kind.UNANNOUNCE, i, detail=name)
            self._engine.call(i, "unannounce", name)

    def _record(self, kind: Kind, i: int, subscription: str = "", detail: str = "") -> None:
        if self._engine.log is not None:
            self._engine.log.row(kind, self._queue.now, i, subscription=subscription, detail=detail)

    # What changes nothing.

    def _end_warm_up(self, _: None) -> None:
        self._engine.warm_up = self._engine.counts.snapshot()

    def _sample_positions(self, k: int) -> None:
        engine, now, log = self._engine, self._queue.now, self._engine.log
        assert log is not None
        assert log.positions_every_s is not None
        for i, (x, y) in enumerate(engine.trajectories.positions(now).tolist()):
            if engine.up[i]:
                log.row(Kind.POSITION, now, i, at=(x, y))
        self._queue.at((k + 1) * log.positions_every_s, Priority.OBSERVER, self._sample_positions, k + 1)

    def _record_airtime(self, k: int) -> None:
        self._engine.record_airtime()
        self._queue.at((k + 1) * AIRTIME_EVERY_S, Priority.OBSERVER, self._record_airtime, k + 1)

    def _report_progress(self, step: int) -> None:
        assert self._progress is not None
        self._progress(self._queue.now)
        if step < PROGRESS_STEPS:
            at = self._engine.duration_s * ((step + 1) / PROGRESS_STEPS)
            self._queue.at(at, Priority.OBSERVER, self._report_progress, step + 1)
