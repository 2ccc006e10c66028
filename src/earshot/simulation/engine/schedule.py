"""The agenda: all that is known before a run begins. Nodes come and go, applications announce,
subscribe and publish, positions are sampled, the warm-up ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from earshot.events import Event
from earshot.filters import Subscription
from earshot.geometry import Position, Velocity
from earshot.protocols.machine import Announcement
from earshot.records import DropReason, Kind
from earshot.simulation.engine.applications import Application
from earshot.simulation.engine.result import Wish
from earshot.simulation.event_queue import Priority
from earshot.simulation.faults import Outage
from earshot.simulation.workload.actions import Action, Unannounce, Unsubscribe, Workload

if TYPE_CHECKING:
    from earshot.simulation.engine.engine import Engine

NOT_ON_THE_SCENE = "not on the scene"
PROGRESS_STEPS = 200


class Agenda:
    """Puts its points into the engine's queue and sees to them when their time comes."""

    def __init__(
        self,
        engine: Engine,
        workload: Workload,
        outages: Sequence[Outage],
        warm_up_s: float,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.wishes: list[Wish] = []
        "Every subscription any application ever had, in order of time."
        self._engine = engine
        self._queue = engine.queue
        self._applications = [Application() for _ in engine.names]
        self._away: list[set[str]] = [{NOT_ON_THE_SCENE} for _ in engine.names]
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
        if progress is not None:
            self._queue.at(0.0, Priority.OBSERVER, self._tell_progress, 0)

    # Nodes come and go.

    def _put_presence(self) -> None:
        for i, presence in enumerate(self._engine.trajectories.presence):
            for start_s, end_s in presence:
                if end_s > 0 and start_s <= self._engine.duration_s:
                    self._queue.at(max(start_s, 0.0), Priority.WORLD, self._appear, i)
                if 0 < end_s <= self._engine.duration_s:
                    self._queue.at(end_s, Priority.WORLD, self._vanish, i)

    def _appear(self, i: int) -> None:
        self._come(i, NOT_ON_THE_SCENE, "on the scene")

    def _vanish(self, i: int) -> None:
        self._go(i, NOT_ON_THE_SCENE, "off the scene", graceful=True)

    def _outage(self, outage: Outage) -> None:
        if outage.back:
            self._come(outage.node, outage.cause, f"after {outage.cause}")
        else:
            self._go(outage.node, outage.cause, outage.cause, outage.graceful)

    def _come(self, i: int, cause: str, why: str) -> None:
        """One reason to be away is over; the node is back when it was the last. Its applications
        then ask its new machine for all they had asked before: no news, so not logged again."""
        self._away[i].discard(cause)
        if self._away[i] or self._engine.up[i]:
            return
        self._engine.come(i, why)
        application = self._applications[i]
        for announcement in list(application.announcements.values()):
            self._engine.call(i, "announce", announcement)
        for subscription in list(application.subscriptions.values()):
            self._engine.call(i, "subscribe", subscription)

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
        i = action.node
        match action.what:
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

    def _publish(self, i: int, event: Event) -> None:
        """Stamped by the publishing node, with its own clock."""
        engine, now = self._engine, self._queue.now
        if not engine.up[i]:
            engine.drop(i, DropReason.PUBLISHER_AWAY)
            return
        stamped = self._applications[i].stamp(
            event,
            source=engine.names[i],
            time=now + engine.clock_offsets_s[i],
            position=Position(*engine.trajectories.position(i, now)),
            velocity=Velocity(*engine.trajectories.velocity(i, now)),
        )
        engine.publish(i, stamped)

    def _subscribe(self, i: int, subscription: Subscription) -> None:
        application, now = self._applications[i], self._queue.now
        self._end_wish(application, subscription.id)
        wish = Wish(i, subscription, now)
        self.wishes.append(wish)
        application.wishes[subscription.id] = wish
        application.subscriptions[subscription.id] = subscription
        self._record(Kind.SUBSCRIBE, i, subscription=subscription.id, detail=subscription.filter)
        self._engine.call(i, "subscribe", subscription)

    def _unsubscribe(self, i: int, id: str) -> None:
        application = self._applications[i]
        if application.subscriptions.pop(id, None) is not None:
            self._end_wish(application, id)
            self._record(Kind.UNSUBSCRIBE, i, subscription=id)
            self._engine.call(i, "unsubscribe", id)

    def _end_wish(self, application: Application, id: str) -> None:
        wish = application.wishes.pop(id, None)
        if wish is not None:
            wish.until_s = self._queue.now

    def _announce(self, i: int, announcement: Announcement) -> None:
        subject, proximity = announcement.event_type.subject, announcement.proximity
        self._applications[i].announcements[subject] = announcement
        where = "" if proximity is None else f" within {proximity.shape} of {proximity.naval}"
        self._record(Kind.ANNOUNCE, i, detail=f"{subject}{where}")
        self._engine.call(i, "announce", announcement)

    def _unannounce(self, i: int, subject: str) -> None:
        if self._applications[i].announcements.pop(subject, None) is not None:
            self._record(Kind.UNANNOUNCE, i, detail=subject)
            self._engine.call(i, "unannounce", subject)

    def _record(self, kind: Kind, i: int, subscription: str = "", detail: object = "") -> None:
        if self._engine.log is not None:
            self._engine.log.row(kind, self._queue.now, i, subscription=subscription, detail=str(detail))

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

    def _tell_progress(self, step: int) -> None:
        assert self._progress is not None
        self._progress(self._queue.now)
        if step < PROGRESS_STEPS:
            at = self._engine.duration_s * ((step + 1) / PROGRESS_STEPS)
            self._queue.at(at, Priority.OBSERVER, self._tell_progress, step + 1)
