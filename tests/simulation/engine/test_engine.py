"""The engine: calling machines, carrying out effects, what applications do, what fails."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_networks import (
    Bench,
    Probe,
    Word,
    everybody_wants,
    failure_of,
    flooding,
    ping,
    say,
    send_word,
    standing,
)

from earshot.errors import MachineFailure, SettingsError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Circle, Position, Proximity, Velocity
from earshot.protocols.flooding import Flood, Flooding, FloodingSettings
from earshot.protocols.machine import Announcement, Effects, FixedLocation, Location
from earshot.protocols.steam.machine import Steam
from earshot.protocols.steam.packets import SteamSettings
from earshot.records import DropReason
from earshot.records.details import read_announce
from earshot.records.sessions import SubscriptionSpan
from earshot.simulation.engine.engine import Engine
from earshot.simulation.engine.log import Log
from earshot.simulation.faults import Crash, FaultSettings
from earshot.simulation.media.medium_settings import UnitDisk
from earshot.simulation.mobility import Trajectories, Trajectory
from earshot.simulation.workload.actions import Action, Unannounce, Workload
from earshot.wire import MAX_PACKET_BYTES, Packet


def test_a_broadcast_is_heard_by_all_in_range_and_no_other_node() -> None:
    bench = Bench(standing((0, 0), (10, 0), (0, 10), (11, 0)))
    bench.do(1.0, "a", say("hello"))
    bench.run()
    heard = {node: bench.calls(node, "hear") for node in "abcd"}
    assert heard == {"a": [], "b": [(Word("hello"), "a", 1.001)], "c": [(Word("hello"), "a", 1.001)], "d": []}


def test_a_broadcast_to_a_group_is_heard_by_its_members() -> None:
    bench = Bench(standing((0, 0), (1, 0), (2, 0)))
    bench.do(1.0, "b", lambda probe: probe.join_group(5))
    bench.do(2.0, "a", lambda probe: probe.broadcast(Word("one"), group=5))
    bench.do(3.0, "b", lambda probe: probe.leave_group(5))
    bench.do(3.0, "c", lambda probe: probe.leave_group(6))
    bench.do(4.0, "a", lambda probe: probe.broadcast(Word("two"), group=5))
    bench.run()
    assert (bench.calls("b", "hear"), bench.calls("c", "hear")) == ([(Word("one"), "a", 2.001)], [])
    assert bench.rows("node", "kind", packet="word of the tests") == [("a", "send"), ("b", "receive"), ("a", "send")]


def test_a_send_is_heard_by_its_peer_alone() -> None:
    bench = Bench(standing((0, 0), (1, 0), (2, 0)))
    bench.do(1.0, "a", send_word("c", "psst"))
    bench.run()
    assert (bench.calls("b", "hear"), bench.calls("c", "hear")) == ([], [(Word("psst"), "a", 1.001)])


@pytest.mark.parametrize("peer", ["b", "a", "nobody", "d"])
def test_a_send_that_cannot_arrive_comes_back(peer: str) -> None:
    """b is out of range, a is the sender itself, nobody is no node, d has crashed."""
    faults = FaultSettings(crashes=(Crash("d", 0.5),))
    bench = Bench(standing((0, 0), (99, 0), (1, 0), (2, 0)), faults=faults)
    bench.do(1.0, "a", send_word(peer, "psst"))
    bench.run()
    assert bench.calls("a", "unreachable") == [(Word("psst"), peer, 1.001)]
    assert bench.rows("time", "node", "peer", "transmission", kind="drop", detail="unreachable") == [
        (1.001, "a", peer, 1)
    ]
    assert bench.engine.counts.drops == {"unreachable": 1}


def test_a_new_machine_hears_nothing_of_what_the_old_one_sent() -> None:
    faults = FaultSettings(crashes=(Crash("a", 1.0002, down_s=0.0002),))
    bench = Bench(standing((0, 0), (99, 0)), faults=faults)
    bench.do(1.0, "a", send_word("b", "psst"))
    bench.run()
    assert (len(bench.lives), bench.calls("a", "unreachable")) == (3, [])


def test_timers_are_replaced_cancelled_and_never_run_late() -> None:
    bench = Bench(standing((0, 0)))

    def start(probe: Probe) -> None:
        probe.start_timer("twice", 5.0)
        probe.start_timer("twice", 3.0)
        probe.start_timer("later", 2.0)
        probe.start_timer("later", 4.0)
        probe.start_timer("never", 2.5)
        probe.cancel_timer("never")
        probe.cancel_timer("unknown")
        probe.start_timer(("a", "tuple"), 0.1)

    bench.do(1.0, "a", start)
    bench.run()
    assert bench.calls("a", "wake") == [(("a", "tuple"), 1.0), ("twice", 3.0), ("later", 4.0)]


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from("xyz"), st.integers(0, 6) | st.none()), max_size=20))
def test_a_timer_runs_out_as_it_was_last_set_in_the_order_of_setting(acts: list[tuple[int, str, int | None]]) -> None:
    """Each act at its time sets a timer, or with None cancels it; `running` is all there is to know of timers."""
    acts.sort(key=lambda act: act[0])
    bench = Bench(standing((0, 0)))
    for time, name, at in acts:
        bench.do(float(time), "a", lambda probe, name=name, at=at: set_timer(probe, name, at))  # type: ignore[misc]
    running: dict[str, tuple[float, int]] = {}
    expected: list[tuple[str, float]] = []

    def run_out(until: float) -> None:
        for at, number, name in sorted((at, number, name) for name, (at, number) in running.items()):
            if at < until:
                expected.append((name, at))
                assert running.pop(name) == (at, number)

    for number, (time, name, at) in enumerate(acts):
        run_out(time)
        running.pop(name, None)
        if at is not None:
            running[name] = (float(max(at, time)), number)
    run_out(10.0)
    assert bench.run().calls("a", "wake") == expected


def set_timer(probe: Probe, name: str, at: int | None) -> None:
    if at is None:
        probe.cancel_timer(name)
    else:
        probe.start_timer(name, at)


def test_a_timer_may_be_started_again_when_it_runs_out() -> None:
    def again(probe: Probe, timer: Any, now: float) -> None:
        if now < 3.0:
            probe.start_timer(timer, now + 1.0)

    bench = Bench(standing((0, 0)), on={"start": lambda probe, _: probe.start_timer("tick", 1.0), "wake": again}).run()
    assert bench.calls("a", "wake") == [("tick", 1.0), ("tick", 2.0), ("tick", 3.0)]


def test_only_timers_at_one_time_are_a_livelock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.simulation.engine.engine.MOST_AT_ONE_TIME", 5)

    def tick(probe: Probe, timer: Any, now: float) -> None:
        probe.start_timer(timer, now + 0.5)

    on = {"start": lambda probe, _: probe.start_timer("tick", 0.5), "wake": tick}
    bench = Bench(standing((0, 0), (1, 0)), on=on).run()
    assert len(bench.calls("a", "wake")) == len(bench.calls("b", "wake")) == 20

    def at_once(probe: Probe, timer: Any, now: float) -> None:
        if len(probe.calls) <= 5:
            probe.start_timer(timer, now)

    on = {"start": lambda probe, _: probe.start_timer("tick", 0.5), "wake": at_once}
    assert len(Bench(standing((0, 0), (1, 0)), on=on).run().calls("b", "wake")) == 5, "each node may wake so often"
    on["wake"] = lambda probe, timer, now: probe.start_timer(timer, now)
    assert "did wrong: it has woken" in failure_of(Bench(standing((0, 0)), on=on).run)


def test_an_event_without_an_area_belongs_to_the_announcement_without_a_name() -> None:
    near, far = (Proximity(Circle(60.0), Position(x_m, 0.0)) for x_m in (80.0, -80.0))
    light = EventType("Light")
    actions = [
        Action(0.0, 0, Announcement(light, near, "north")),
        Action(0.0, 0, Announcement(light, far)),
        Action(1.0, 0, Event("Light")),
        Action(2.0, 0, Event("Light", area=near.area())),
    ]
    bench = Bench(standing((0, 0)), actions=actions).run()
    assert [event.area for event in bench.engine.published] == [far.area(), near.area()]


def test_the_application_asks_and_the_host_stamps() -> None:
    nodes = Trajectories([Trajectory.through("a", [(0, 0, 0), (10, 100, 50)])])
    fixed = Proximity(Circle(30.0), naval=Position(1.0, 2.0))
    mobile = Proximity(Circle(40.0), naval=Position(0.0, 0.0), mobile=True)
    actions = [
        Action(0.0, 0, Announcement(EventType("Still"), fixed)),
        Action(0.0, 0, Announcement(EventType("Moving"), mobile)),
        Action(2.0, 0, Event(type="Still", content={"x": 1}, lifespan_s=3.0, priority=2)),
        Action(4.0, 0, Event(type="Moving")),
        Action(4.0, 0, Event(type="Unannounced")),
    ]
    bench = Bench(nodes, actions=actions).run()
    stamp: dict[str, Any] = {"source": "a", "velocity": Velocity(10.0, 5.0)}
    assert [event for event, _ in bench.calls("a", "publish")] == [
        Event(
            type="Still",
            content={"x": 1},
            id="a-0",
            time=2.0,
            position=Position(20.0, 10.0),
            area=Area(Circle(30.0), Position(1.0, 2.0)),
            lifespan_s=3.0,
            priority=2,
            **stamp,
        ),
        Event(
            type="Moving",
            id="a-1",
            time=4.0,
            position=Position(40.0, 20.0),
            area=Area(Circle(40.0), Position(40.0, 20.0)),
            **stamp,
        ),
        Event(type="Unannounced", id="a-2", time=4.0, position=Position(40.0, 20.0), **stamp),
    ]
    assert [Event.from_json(text) for (text,) in bench.rows("detail", kind="publish")] == bench.engine.published
    announced = [read_announce(text) for (text,) in bench.rows("detail", kind="announce")]
    assert [(one.subject, one.proximity) for one in announced] == [
        ("Still", Proximity(Circle(30.0), Position(1.0, 2.0))),
        ("Moving", Proximity(Circle(40.0), Position(0.0, 0.0), mobile=True)),
    ]


def test_subscriptions_last_from_subscribe_to_unsubscribe() -> None:
    from earshot.simulation.workload.actions import Unsubscribe

    first, second = (Subscription("s", "a", Filter.of_type(kind)) for kind in ("One", "Two"))
    actions = [
        Action(1.0, 0, first),
        Action(2.0, 0, second),
        Action(3.0, 0, Unsubscribe("s")),
        Action(3.5, 0, Unsubscribe("s")),
        Action(4.0, 0, first),
    ]
    bench = Bench(standing((0, 0)), actions=actions).run()
    assert bench.engine.schedule.subscriptions == [
        SubscriptionSpan("a", "s", "One: true", None, 1.0, 2.0),
        SubscriptionSpan("a", "s", "Two: true", None, 2.0, 3.0),
        SubscriptionSpan("a", "s", "One: true", None, 4.0),
    ]
    assert bench.calls("a", "unsubscribe") == [("s", 3.0)]


@pytest.mark.parametrize(("ahead_s", "arrives"), [(0.0, True), (3.0, False), (-3.0, True), (0.5, True)])
def test_an_event_has_expired_by_the_clock_of_the_node_that_receives_it(ahead_s: float, arrives: bool) -> None:
    """It is delivered 1.5 s after its own time, and lasts for two seconds."""
    event = Event(type="Ping", id="e", source="x", time=0.5, lifespan_s=2.0)
    bench = Bench(standing((0, 0)), actions=[Action(0.0, 0, Subscription("s", "a", Filter.of_type("Ping")))])
    bench.engine.clock_offsets_s = (ahead_s,)
    bench.do(2.0 + ahead_s, "a", lambda probe: probe.deliver(event, "s"))
    bench.run()
    assert (len(bench.engine.deliveries), bench.engine.counts.drops["expired"]) == ((1, 0) if arrives else (0, 1))


def test_a_node_that_has_left_before_the_start_never_comes_and_never_goes() -> None:
    there = [
        Trajectory.through("a", [(0.0, 0.0, 0.0)], ((-5.0, 0.0),)),
        Trajectory.through("b", [(0.0, 0.0, 0.0)], ((-5.0, 1.0),)),
    ]
    bench = Bench(Trajectories(there)).run()
    assert [row for row in bench.rows("kind", "node") if row[0] in ("join", "leave")] == [("join", "b"), ("leave", "b")]


def test_deliveries_drops_and_notes_are_kept_and_logged() -> None:
    event = Event(type="Ping")

    def publish(probe: Probe, event: Event, _: float) -> None:
        probe.deliver(event, "s", hops=3)
        probe.deliver(Event(type="Ping", id="never published"), "t")
        probe.drop(DropReason.EXPIRED, event.id)
        probe.note("broker", "b")

    wanted = [Action(1.0, 0, Subscription(id, "a", Filter.where("n > 0"))) for id in ("s", "t")]
    bench = Bench(standing((3, 4)), actions=[*wanted, Action(2.0, 0, event)], on={"publish": publish}).run()
    found = bench.engine.deliveries
    assert list(zip(found.time, found.node, found.event, found.subscription, found.hops, strict=True)) == [
        (2.0, 0, 0, "s", 3),
        (2.0, 0, -1, "t", -1),
    ]
    assert bench.engine.counts.drops == {"expired": 1}
    columns = ("kind", "event", "subscription", "hops", "detail", "x_m", "y_m")
    rows = bench.rows(*columns)[4:]
    assert rows[0] == ("deliver", "a-0", "s", 3, "", 3.0, 4.0)
    assert rows[1] == ("deliver", "never published", "t", -1, "", 3.0, 4.0)
    assert [row[:5] for row in rows[2:]] == [("drop", "a-0", "", -1, "expired"), ("note", "", "", -1, "broker: b")]


def test_counts_tell_sends_receipts_and_bytes_by_kind_of_packet() -> None:
    bench = Bench(standing((0, 0), (1, 0), (2, 0)), warm_up_s=2.0)
    bench.do(1.0, "a", say("x"))
    bench.do(3.0, "a", say("y"))
    bench.do(3.0, "b", send_word("c", "z"))
    for time in (1.0, 3.0, 3.1):
        bench.do(time, "c", lambda probe: probe.drop(DropReason.EXPIRED))
    counts = bench.run().engine.counts
    (word,) = counts.packets.values()
    measured = counts.since(bench.engine.warm_up).packets["word of the tests"]
    assert (word.sends, word.receives, word.carries_event, counts.bytes_sent) == (3, 5, False, word.bytes_sent)
    assert (measured.sends, measured.receives) == (2, 3)
    assert (counts.drops, counts.since(bench.engine.warm_up).drops) == ({"expired": 3}, {"expired": 2})
    assert bench.rows("transmission", "bytes", "peer", kind="send") == [(1, 22, ""), (2, 22, ""), (3, 22, "c")]


def test_a_packet_no_peer_would_read_is_not_sent() -> None:
    bench = Bench(standing((0, 0), (1, 0)))
    bench.do(1.0, "a", say("x" * MAX_PACKET_BYTES))
    bench.run()
    assert (bench.calls("b", "hear"), bench.engine.counts.drops) == ([], {"packet-too-large": 1})


def test_positions_are_sampled_at_an_interval() -> None:
    nodes = Trajectories(
        [
            Trajectory.through("a", [(0, 0, 0), (10, 10, 0)]),
            Trajectory.through("b", [(0, 1, 1)], presence=((0.5, 99.0),)),
        ]
    )
    log = Log(positions_every_s=1.0)
    Engine(flooding(), nodes, UnitDisk(), Workload([]), duration_s=2.5, log=log).run()
    found = [(row["time"], row["node"], row["x_m"], row["y_m"]) for row in log.rows() if row["kind"] == "position"]
    assert found == [
        (0.0, "a", 0.0, 0.0),
        (1.0, "a", 1.0, 0.0),
        (1.0, "b", 1.0, 1.0),
        (2.0, "a", 2.0, 0.0),
        (2.0, "b", 1.0, 1.0),
    ]


def test_progress_is_reported_from_the_beginning_to_the_end() -> None:
    reported: list[float] = []
    Engine(flooding(), standing((0, 0)), UnitDisk(), Workload([]), duration_s=7.0, progress=reported.append).run()
    assert (reported[0], reported[-1], len(reported)) == (0.0, 7.0, 201)
    assert reported == sorted(reported)


# One exchange, through the engine and by hand.


class Recorded(Flooding):
    """Flooding that writes down each call and the effects it returned."""

    def __init__(self, node: str, location: Location, random: Random, book: list[Any]) -> None:
        super().__init__(node, FloodingSettings(jitter_s=0.01, hop_limit=3), location, random)
        self.book = book

    def publish(self, event: Event, now: float) -> Effects:
        return self._write("publish", (event, now), super().publish(event, now))

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        return self._write("hear", (packet, sender, now), super().hear(packet, sender, now))

    def wake(self, timer: Any, now: float) -> Effects:
        return self._write("wake", (timer, now), super().wake(timer, now))

    def _write(self, entry_point: str, arguments: tuple[Any, ...], effects: Effects) -> Effects:
        self.book.append((self.node, entry_point, arguments, list(effects)))
        return effects


def test_an_event_belongs_to_the_producer_on_its_node_that_announced_its_area() -> None:
    near, far = (Proximity(Circle(60.0), Position(x_m, 0.0)) for x_m in (80.0, -80.0))
    light = EventType("Light")
    engine = Engine(
        lambda node, location, random, _: Steam(node, SteamSettings(), location, random),
        standing((0, 0), (80, 0), (-80, 0)),
        UnitDisk(range_m=200.0),
        Workload(
            [
                Action(0.0, 0, Announcement(light, near, "north")),
                Action(0.0, 0, Announcement(light, far, "south")),
                *(Action(0.0, i, Subscription(f"s{i}", f"n{i}", Filter.of_type("Light"))) for i in (1, 2)),
                Action(5.0, 0, Event("Light", area=near.area())),
                Action(6.0, 0, Event("Light", area=far.area())),
                Action(7.0, 0, Unannounce("Light#north")),
                Action(8.0, 0, Event("Light", area=far.area())),
            ]
        ),
        duration_s=10.0,
        seed=1,
    )
    engine.run()
    assert [event.area for event in engine.published] == [near.area(), far.area(), far.area()]
    assert sorted(zip(engine.deliveries.node, engine.deliveries.event, strict=True)) == [(1, 0), (2, 1), (2, 2)]


def test_effects_through_the_engine_are_those_of_direct_calls() -> None:
    book: list[Any] = []
    nodes = standing(*((8.0 * k, 0.0) for k in range(6)))
    Engine(
        lambda node, location, random, _: Recorded(node, location, random, book),
        nodes,
        UnitDisk(range_m=17.0),
        Workload([*everybody_wants(6), ping(1.0, 0), ping(1.005, 4)]),
        duration_s=5.0,
        seed=11,
    ).run()
    alone = {
        name: Flooding(
            name,
            FloodingSettings(jitter_s=0.01, hop_limit=3),
            FixedLocation(Position(*nodes.position(i, 0.0))),
            Random(f"11:{name}"),
        )
        for i, name in enumerate(nodes.names)
    }
    for i, name in enumerate(nodes.names):
        alone[name].subscribe(Subscription(f"s{i}", f"n{i}", Filter.of_type("Ping")), 0.0)
    by_hand = [
        (node, entry_point, arguments, list(getattr(alone[node], entry_point)(*arguments)))
        for node, entry_point, arguments, _ in book
    ]
    assert by_hand == book
    assert sum(len(effects) for *_, effects in book) > 20


# What fails.


def test_a_machine_that_raises_stops_the_run_and_says_how_to_repeat_it() -> None:
    def hear(*_: Any) -> None:
        raise KeyError("no route")

    bench = Bench(standing((0, 0), (1, 0)), on={"hear": hear}, seed=41)
    bench.do(1.5, "a", say("hello"))
    line = hear.__code__.co_firstlineno + 1
    with pytest.raises(MachineFailure) as caught:
        bench.run()
    assert str(caught.value) == (
        "Probe on node 'b' raised KeyError: 'no route'\n"
        f"  at 1.501 s, in hear(Word(text='hello'), 'a') ({__file__}, line {line}: raise KeyError(\"no route\"))\n"
        "  to repeat it: the same scenario and settings with seed 41"
    )
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_failure_names_the_entry_point_whichever_it_is() -> None:
    def fail(*_: Any) -> None:
        raise ValueError("broken")

    for entry_point, expected in {
        "start": "Probe on node 'a' raised ValueError: broken\n  at 0.0 s, in start()",
        "wake": "Probe on node 'a' raised ValueError: broken\n  at 2.0 s, in wake('tick')",
        "unreachable": "Probe on node 'a' raised ValueError: broken\n  at 3.001 s, in unreachable(Word(text='x'), 'z')",
    }.items():

        def on_start(probe: Probe, _: float) -> None:
            probe.start_timer("tick", 2.0)

        def on_wake(probe: Probe, timer: Any, _: float) -> None:
            if timer == "tick":
                probe.start_timer("send", 3.0)
            else:
                probe.send("z", Word("x"))

        bench = Bench(standing((0, 0)), on={"start": on_start, "wake": on_wake, entry_point: fail})
        assert failure_of(bench.run).startswith(expected)


class Forgetful(Flooding):
    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        super().hear(packet, sender, now)
        return None  # type: ignore[return-value]


def test_a_machine_that_forgets_its_effects_ends_the_run() -> None:
    engine = Engine(
        lambda node, location, random, _: Forgetful(node, FloodingSettings(), location, random),
        standing((0, 0), (1, 0)),
        UnitDisk(),
        Workload([ping(1.0, 0)]),
        duration_s=2.0,
    )
    assert failure_of(engine.run).startswith(
        "Forgetful on node 'b' did wrong: it returned None instead of a list of effects; an entry point ends with"
    )


def test_an_effect_that_is_none_is_refused() -> None:
    class Odd(Flooding):
        def start(self, now: float) -> Effects:
            return ["shout"]  # type: ignore[list-item]

    engine = Engine(
        lambda node, location, random, _: Odd(node, FloodingSettings(), location, random),
        standing((0, 0)),
        UnitDisk(),
        Workload([]),
        duration_s=2.0,
    )
    assert "it returned 'shout' among its effects" in failure_of(engine.run)


class Odd(Packet, frozen=True, tag="odd of the tests"):
    anything: Any


@pytest.mark.parametrize(
    ("act", "stated"),
    [
        (lambda probe: probe.send("", Word("x")), "did wrong: it sent to the peer ''; a peer is a node's name"),
        (lambda probe: probe.broadcast("x"), "did wrong: it sent 'x', which is not a packet"),
        (lambda probe: probe.broadcast(Odd(object())), "raised TypeError: Encoding objects of type object is unsup"),
    ],
)
def test_what_cannot_be_sent_is_the_machines_fault(act: Any, stated: str) -> None:
    bench = Bench(standing((0, 0), (1, 0)))
    bench.do(1.0, "a", act)
    assert failure_of(bench.run).startswith(f"Probe on node 'a' {stated}")


def test_a_long_packet_is_cut_short_in_the_message() -> None:
    def hear(*_: Any) -> None:
        raise RuntimeError("too much")

    bench = Bench(standing((0, 0), (1, 0)), on={"hear": hear})
    bench.do(1.0, "a", say("x" * 100_000))
    assert len(failure_of(bench.run)) < 1000


def test_settings_of_a_run_are_checked() -> None:
    twins = Trajectories([Trajectory.standing("a", 0, 0), Trajectory.standing("a", 1, 1)])
    with pytest.raises(SettingsError, match="two nodes have the same name; give each its own"):
        Engine(flooding(), twins, UnitDisk(), Workload([]), duration_s=1.0)
    with pytest.raises(SettingsError, match="duration_s must be a positive number of seconds, got 0"):
        Engine(flooding(), standing((0, 0)), UnitDisk(), Workload([]), duration_s=0)


def test_a_duplicate_costs_a_look_up_and_returns_the_one_nothing() -> None:
    from earshot.protocols.machine import NOTHING

    node = Flooding("a", FloodingSettings(), FixedLocation(), Random(1))
    flood = Flood(Event(type="Ping", id="x-0", source="x"), hops=1)
    assert node.hear(flood, "b", now=0.0)
    assert node.hear(flood, "c", now=0.0) is NOTHING
    assert node.hear(Word("not for me"), "c", now=0.0) is NOTHING
