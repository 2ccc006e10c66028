"""The schedule by itself: what it asks of an engine that keeps notes, and when."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Circle, Position, Proximity, Velocity
from earshot.protocols.machine import Announcement
from earshot.protocols.services.fences import Fence
from earshot.records import DropReason, Kind
from earshot.records.sessions import Session, SubscriptionSpan
from earshot.records.trajectories import Interval, Trajectories, Trajectory
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.result import Counts, PacketCount
from earshot.simulation.engine.schedule import Application, Schedule
from earshot.simulation.event_queue import Queue
from earshot.simulation.faults import Outage
from earshot.simulation.workload.actions import Action, Unannounce, Unfence, Unsubscribe, Workload

HERE = Position(3.0, 4.0)
EAST = Velocity(1.0, 0.0)


class Engine:
    """Keeps note of what the schedule asks for, with the time."""

    def __init__(self, *presences: Sequence[Interval], log: Log | None = None) -> None:
        nodes = [
            Trajectory.through(name, [(0.0, 0.0, 0.0), (10.0, 100.0, 50.0)], tuple(presence))
            for name, presence in zip("abc", presences, strict=False)
        ]
        self.trajectories = Trajectories(nodes)
        self.names = self.trajectories.names
        self.queue, self.log, self.duration_s = Queue(), log, 10.0
        self.clock_offsets_s = (0.5,) * len(nodes)
        self.up = [False] * len(nodes)
        self.counts = self.warm_up = Counts()
        self.did: list[tuple[Any, ...]] = []
        if log is not None:
            log.begin(self.names)

    def _note(self, *what: Any) -> None:
        self.did.append((self.queue.now, *what))

    def come(self, i: int, why: str) -> None:
        self.up[i] = True
        self._note("come", i, why)

    def go(self, i: int, why: str, graceful: bool) -> None:
        self.up[i] = False
        self._note("go", i, why, graceful)

    def call(self, i: int, entry_point: str, *arguments: Any) -> None:
        self._note(entry_point, i, *arguments)

    def publish(self, i: int, event: Event) -> None:
        self._note("publish", i, event)

    def drop(self, i: int, reason: DropReason, event: str = "") -> None:
        self._note("drop", i, reason, event)

    def record_airtime(self) -> None:
        self._note("airtime")

    def played(
        self,
        *actions: Action,
        outages: Sequence[Outage] = (),
        warm_up_s: float = 0.0,
        progress: Callable[[float], None] | None = None,
    ) -> Schedule:
        schedule = Schedule(self, Workload(actions), outages, warm_up_s, progress)
        self.queue.run(self.duration_s)
        return schedule


ALWAYS = ((-math.inf, math.inf),)


# Nodes come and go.


def test_a_node_comes_and_goes_with_its_presence_until_the_run_ends() -> None:
    engine = Engine([(-5.0, 0.0), (2.0, 4.0), (6.0, 10.0)], [(10.0, 12.0)], [(10.1, 12.0), (-math.inf, 3.0)])
    engine.played()
    on, off = "on the scene", "off the scene"
    assert engine.did == [
        (0.0, "come", 2, on), (2.0, "come", 0, on), (3.0, "go", 2, off, True), (4.0, "go", 0, off, True),
        (6.0, "come", 0, on), (10.0, "go", 0, off, True), (10.0, "come", 1, on),
    ]  # fmt: skip


def test_a_node_is_back_when_its_last_reason_to_be_away_is_over() -> None:
    engine = Engine([(-math.inf, 3.0), (5.0, math.inf)])
    outages = [
        Outage(1.0, 0, "crash", back=False), Outage(2.0, 0, "churn", back=False, graceful=True),
        Outage(4.0, 0, "crash", back=True), Outage(6.0, 0, "churn", back=True),
        Outage(7.0, 0, "churn", back=False, graceful=True), Outage(8.0, 0, "crash", back=True),
    ]  # fmt: skip
    engine.played(outages=outages)
    assert engine.did == [
        (0.0, "come", 0, "on the scene"), (1.0, "go", 0, "crash", False), (6.0, "come", 0, "after churn"),
        (7.0, "go", 0, "churn", True),
    ]  # fmt: skip


def test_applications_ask_a_new_machine_for_what_they_still_have() -> None:
    engine = Engine(ALWAYS)
    kept, ended = Announcement(EventType("A")), Announcement(EventType("B"))
    wanted = Subscription("s", "a", Filter.of_type("A"))
    fence = Fence("f", near_m=5.0)
    actions = [
        Action(1.0, 0, kept), Action(1.0, 0, ended), Action(1.0, 0, wanted), Action(1.0, 0, fence),
        Action(1.0, 0, Fence("g", "A")), Action(2.0, 0, Unannounce("B")), Action(2.0, 0, Unfence("g")),
        Action(2.0, 0, Unannounce("B")), Action(2.0, 0, Unfence("g")), Action(2.0, 0, Unsubscribe("t")),
    ]  # fmt: skip
    engine.played(*actions, outages=[Outage(4.0, 0, "crash", back=False), Outage(5.0, 0, "crash", back=True)])
    assert [one for one in engine.did if one[0] == 2.0] == [(2.0, "unannounce", 0, "B"), (2.0, "unfence", 0, "g")]
    assert [one for one in engine.did if one[0] == 5.0] == [
        (5.0, "come", 0, "after crash"), (5.0, "announce", 0, kept), (5.0, "subscribe", 0, wanted),
        (5.0, "fence", 0, fence),
    ]  # fmt: skip


# What applications do.


def test_an_event_is_stamped_with_the_clock_and_the_place_of_its_node_while_that_is_there() -> None:
    engine = Engine([(-math.inf, 5.0)])
    engine.played(Action(2.0, 0, Event("A", {"n": 1})), Action(6.0, 0, Event("A")), Action(-1.0, 0, Event("B")))
    area = None
    assert engine.did[1:3] == [
        (0.0, "publish", 0, Event("B", {}, "a-0", "a", Position(0.0, 0.0), Velocity(10.0, 5.0), 0.5, area)),
        (2.0, "publish", 0, Event("A", {"n": 1}, "a-1", "a", Position(20.0, 10.0), Velocity(10.0, 5.0), 2.5, area)),
    ]
    assert engine.did[-1] == (6.0, "drop", 0, DropReason.PUBLISHER_AWAY, "")


def test_subscriptions_are_kept_with_their_spans_and_recorded() -> None:
    engine = Engine(ALWAYS, log=Log())
    wanted = Subscription("s", "a", Filter.of_type("A"), Area(Circle(5.0)))
    schedule = engine.played(Action(1.0, 0, wanted), Action(3.0, 0, Unsubscribe("s")), Action(4.0, 0, Unsubscribe("s")))
    assert schedule.subscriptions == [SubscriptionSpan("a", "s", str(wanted.filter), wanted.region, 1.0, 3.0)]
    assert engine.log is not None
    rows = [(row["time"], row["kind"], row["node"], row["subscription"]) for row in engine.log.rows()]
    assert rows == [(1.0, Kind.SUBSCRIBE, "a", "s"), (3.0, Kind.UNSUBSCRIBE, "a", "s")]


def announced(subject: str, shape_m: float | None, producer: str = "", **quality: Any) -> Announcement:
    proximity = None if shape_m is None else Proximity(Circle(shape_m), HERE, mobile=True)
    return Announcement(EventType(subject, {}, quality), proximity, producer)


def stamped(event: Event, *announcements: Announcement) -> Event:
    application = Application(Session("a"))
    for one in announcements:
        application.announce(one, 0.0)
    return application.stamp(event, 9.0, HERE, EAST)


def test_an_event_has_the_area_and_the_quality_that_its_type_was_announced_with() -> None:
    siren = announced("Siren", 50.0, lifespan_s=30.0, priority=2)
    plain = Event("Siren", {}, "a-0", "a", HERE, EAST, 9.0)
    assert stamped(Event("Siren")) == plain
    assert stamped(Event("Siren"), siren) == Event(
        "Siren", {}, "a-0", "a", HERE, EAST, 9.0, Area(Circle(50.0), HERE), 30.0, 2
    )
    assert stamped(Event("Siren", lifespan_s=5.0, priority=1), siren).lifespan_s == 5.0
    assert stamped(Event("Tram"), siren).area is None


def test_of_several_producers_the_events_area_tells_which_one_raises_it() -> None:
    near, far = announced("Siren", 50.0, "near"), announced("Siren", 900.0, "far")
    asked = Event("Siren", area=Area(Circle(900.0), HERE))
    assert stamped(asked, near, far).area == Area(Circle(900.0), HERE)
    own = announced("Siren", 7.0)
    assert stamped(Event("Siren"), near, own, far).area == Area(Circle(7.0), HERE)
    unknown = Event("Siren", area=Area(Circle(1.0), HERE))
    assert stamped(unknown, near, own).area == Area(Circle(7.0), HERE), "the type's own announcement"
    assert stamped(unknown, near, far).area is None


def test_events_of_a_node_are_numbered() -> None:
    application = Application(Session("a"))
    ids = [application.stamp(Event("A"), 1.0, HERE, EAST).id for _ in range(3)]
    assert (ids, application.published) == (["a-0", "a-1", "a-2"], 3)


# What changes nothing.


def test_what_is_counted_up_to_the_warm_up_is_put_aside() -> None:
    engine = Engine(ALWAYS)
    engine.counts.packets["p"] = PacketCount("p", carries_event=True, counts_hops=False, sends=3)
    engine.played(warm_up_s=2.0)
    engine.counts.packets["p"].sends = 9
    assert engine.warm_up.packets["p"].sends == 3


def test_positions_of_nodes_that_are_there_are_sampled_from_the_start_on() -> None:
    engine = Engine([(-math.inf, 5.0)], [(4.0, math.inf)], log=Log(positions_every_s=2.5))
    engine.played()
    assert engine.log is not None
    rows = [
        (row["time"], row["node"], row["x_m"], row["y_m"]) for row in engine.log.rows() if row["kind"] == "position"
    ]
    assert rows == [
        (0.0, "a", 0.0, 0.0), (2.5, "a", 25.0, 12.5), (5.0, "b", 50.0, 25.0), (7.5, "b", 75.0, 37.5),
        (10.0, "b", 100.0, 50.0),
    ]  # fmt: skip


def test_airtime_is_recorded_each_ten_seconds_where_there_is_a_log() -> None:
    for log, expected in ((Log(), [10.0, 20.0, 30.0]), (None, [])):
        engine = Engine(ALWAYS, log=log)
        engine.duration_s = 35.0
        engine.played()
        assert [one[0] for one in engine.did if one[1] == "airtime"] == expected


def test_progress_is_reported_in_even_steps_from_the_start_to_the_end() -> None:
    reported: list[float] = []
    Engine(ALWAYS).played(progress=reported.append)
    assert (reported[0], reported[-1]) == (0.0, 10.0)
    assert [later - earlier for earlier, later in pairwise(reported)] == pytest.approx([0.05] * 200)
