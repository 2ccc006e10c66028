"""The plan of faults, and what a run makes of it."""

from typing import Any

import pytest
from small_networks import Bench, Word, everybody_wants, flooding, ping, say, standing

from earshot.errors import SettingsError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Position
from earshot.protocols.machine import Announcement
from earshot.records.details import JoinDetail, SubscribeDetail, write_announcement, write_detail
from earshot.simulation.engine.engine import Engine
from earshot.simulation.engine.log import Log
from earshot.simulation.faults import Churn, Crash, FaultSettings, Outage, plan
from earshot.simulation.media.medium_settings import UnitDisk
from earshot.simulation.mobility import Trajectories, Trajectory
from earshot.simulation.workload.actions import Action, Unannounce, Unsubscribe, Workload

NAMES = tuple(f"n{i}" for i in range(100))


def test_crashes_become_outages_in_order_of_time() -> None:
    faults = FaultSettings(crashes=(Crash("n2", 5.0, down_s=2.0), Crash("n1", 4.0)))
    assert plan(faults, NAMES, 100.0, seed=1).outages == (
        Outage(4.0, 1, "crash", back=False),
        Outage(5.0, 2, "crash", back=False),
        Outage(7.0, 2, "crash", back=True),
    )


def test_churn_takes_and_brings_back_every_node_in_turn() -> None:
    churn = FaultSettings(churn=Churn(mean_presence_s=30.0, mean_absence_s=10.0, start_s=20.0))
    outages = plan(churn, NAMES, 2000.0, seed=1).outages
    assert outages == tuple(sorted(outages, key=lambda outage: outage.time_s))
    assert outages[0].time_s >= 20.0
    assert all(not outage.back for outage in [next(o for o in outages if o.node == i) for i in range(100)])
    of_one = [outage for outage in outages if outage.node == 7]
    assert [outage.back for outage in of_one] == [k % 2 == 1 for k in range(len(of_one))]


def test_churn_keeps_to_its_means() -> None:
    churn = FaultSettings(churn=Churn(mean_presence_s=30.0, mean_absence_s=10.0))
    outages = plan(churn, NAMES, 20_000.0, seed=3).outages
    away_s = 0.0
    for i in range(100):
        times = [outage.time_s for outage in outages if outage.node == i]
        away_s += sum(back - gone for gone, back in zip(times[::2], times[1::2], strict=False))
    assert away_s / (100 * 20_000) == pytest.approx(0.25, abs=0.01)
    assert len(outages) / 2 == pytest.approx(100 * 20_000 / 40.0, rel=0.03)


def test_a_share_of_the_nodes_is_silent_drawn_by_the_seed() -> None:
    faults = FaultSettings(silent_share=0.2, silent_nodes=("n5",))
    silent = plan(faults, NAMES, 10.0, seed=1).silent
    assert len(silent - {5}) in (19, 20)
    assert 5 in silent
    assert silent == plan(faults, NAMES, 10.0, seed=1).silent != plan(faults, NAMES, 10.0, seed=2).silent


def test_clocks_are_off_by_no_more_than_the_skew() -> None:
    offsets = plan(FaultSettings(clock_skew_s=0.5), NAMES, 10.0, seed=1).clock_offsets_s
    assert max(offsets) <= 0.5
    assert min(offsets) >= -0.5
    assert len(set(offsets)) == 100
    assert plan(FaultSettings(), NAMES, 10.0, seed=1).clock_offsets_s == (0.0,) * 100


def test_positions_are_wrong_by_a_normal_error() -> None:
    errors = plan(FaultSettings(position_error_m=10.0), NAMES, 10.0, seed=1).position_errors_m
    spread = (sum(x * x + y * y for x, y in errors) / len(errors) / 2) ** 0.5
    assert 8.0 < spread < 12.0
    assert plan(FaultSettings(), NAMES, 10.0, seed=1).position_errors_m == ()
    for axis in (0, 1):
        along = [error[axis] for error in errors]
        mean_m = sum(along) / len(along)
        assert abs(mean_m) < 3.0, "as often to one side as to the other"
        assert 7.0 < (sum((one - mean_m) ** 2 for one in along) / len(along)) ** 0.5 < 13.0


def test_a_node_believes_to_be_elsewhere() -> None:
    nodes = Trajectories([Trajectory.standing("a", 100.0, 50.0), Trajectory.standing("b", 0, 0)])
    bench = Bench(nodes, UnitDisk(range_m=1000.0), faults=FaultSettings(position_error_m=5.0))
    (x, y), _ = plan(FaultSettings(position_error_m=5.0), ["a", "b"], 10.0, seed=0).position_errors_m
    places: list[Position] = []
    bench.do(1.0, "a", lambda probe: places.append(probe.location.position(1.0)))
    bench.run()
    assert places == [Position(100.0 + x, 50.0 + y)]


def test_one_kind_of_fault_does_not_shift_another() -> None:
    alone = plan(FaultSettings(silent_share=0.2), NAMES, 500.0, seed=1)
    together = plan(FaultSettings(silent_share=0.2, clock_skew_s=1.0, churn=Churn(100.0, 10.0)), NAMES, 500.0, seed=1)
    assert alone.silent == together.silent


WRONG: list[tuple[Any, str]] = [
    (lambda: Crash("a", -1.0), "time_s must not be negative, got -1.0"),
    (lambda: Crash("a", 1.0, 0.0), "down_s must be a positive number of seconds, got 0.0"),
    (lambda: Churn(0.0, 1.0), "mean_presence_s must be a positive number of seconds, got 0.0"),
    (lambda: FaultSettings(silent_share=1.5), "silent_share must be from 0 to 1, got 1.5"),
    (lambda: FaultSettings(clock_skew_s=-1), "clock_skew_s must not be negative, got -1"),
    (
        lambda: plan(FaultSettings(crashes=(Crash("x", 1.0),)), NAMES, 10.0, 0),
        "the faults name a node 'x', which the scenario does not have",
    ),
    (
        lambda: plan(FaultSettings(silent_nodes=("y",)), NAMES, 10.0, 0),
        "the faults name a node 'y', which the scenario does not have",
    ),
]


@pytest.mark.parametrize(("build", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_settings_are_refused_with_the_reason(build: Any, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build()
    assert str(caught.value) == message


# In a run.


def joined(reason: str, life: int) -> str:
    return write_detail(JoinDetail("probe", None, life=life, reason=reason))


def test_a_crash_takes_memory_timers_and_groups_and_a_restart_asks_again() -> None:
    faults = FaultSettings(crashes=(Crash("b", 3.0, down_s=2.0),))
    actions = [
        Action(0.0, 1, Announcement(EventType("Ping"))),
        Action(0.0, 1, Announcement(EventType("Old"))),
        Action(0.0, 1, Subscription("s", "b", Filter.of_type("Ping"))),
        Action(0.0, 1, Subscription("t", "b", Filter.of_type("Ping"))),
        Action(1.0, 1, Unsubscribe("t")),
        Action(1.0, 1, Unannounce("Old")),
        Action(4.0, 1, Subscription("while down", "b", Filter.of_type("Ping"))),
        Action(4.0, 1, Event(type="Ping")),
    ]
    bench = Bench(standing((0, 0), (5, 0)), actions=actions, faults=faults)
    bench.do(2.0, "b", lambda probe: probe.start_timer("later", 4.0))
    bench.do(2.0, "b", lambda probe: probe.join_group(7))
    for time in (3.5, 6.0):
        bench.do(time, "a", say(f"at {time}"))
        bench.do(time, "a", lambda probe: probe.broadcast(Word("to seven"), group=7))
    bench.run()
    lives = [probe.calls for probe in bench.lives if probe.node == "b"]
    assert lives == [
        [
            ("start", 0.0),
            ("announce", "Ping", 0.0),
            ("announce", "Old", 0.0),
            ("subscribe", "s", 0.0),
            ("subscribe", "t", 0.0),
            ("unsubscribe", "t", 1.0),
            ("unannounce", "Old", 1.0),
        ],
        [
            ("start", 5.0),
            ("announce", "Ping", 5.0),
            ("subscribe", "s", 5.0),
            ("subscribe", "while down", 5.0),
            ("hear", Word("at 6.0"), "a", 6.001),
        ],
    ]
    assert bench.rows("time", "kind", "detail", node="b") == [
        (0.0, "join", joined("on the scene", 0)),
        (0.0, "announce", write_announcement(EventType("Ping"), None)),
        (0.0, "announce", write_announcement(EventType("Old"), None)),
        (0.0, "subscribe", write_detail(SubscribeDetail(str(Filter.of_type("Ping"))))),
        (0.0, "subscribe", write_detail(SubscribeDetail(str(Filter.of_type("Ping"))))),
        (1.0, "unsubscribe", ""),
        (1.0, "unannounce", "Old"),
        (3.0, "leave", "crash"),
        (4.0, "subscribe", write_detail(SubscribeDetail(str(Filter.of_type("Ping"))))),
        (4.0, "drop", "publisher-away"),
        (5.0, "join", joined("after crash", 1)),
        (6.001, "receive", ""),
    ]


def test_stop_is_called_before_a_graceful_leave_and_not_before_a_crash() -> None:
    crash = Bench(standing((0, 0)), faults=FaultSettings(crashes=(Crash("a", 3.0),))).run()
    assert crash.calls("a", "stop") == []
    for graceful, stops in ((True, 1), (False, 0)):
        churn = Churn(mean_presence_s=3.0, mean_absence_s=1000.0, graceful=graceful)
        bench = Bench(standing((0, 0)), faults=FaultSettings(churn=churn), duration_s=30.0, seed=2).run()
        assert len(bench.calls("a", "stop")) == stops
        assert [kind for (kind,) in bench.rows("kind", detail="churn")] == ["leave"]


def test_a_restarted_machine_has_another_chance_and_counts_its_events_on() -> None:
    faults = FaultSettings(crashes=(Crash("a", 3.0, down_s=1.0),))
    actions = [Action(time, 0, Event(type="Ping")) for time in (1.0, 2.0, 5.0)]
    bench = Bench(standing((0, 0)), actions=actions, faults=faults).run()
    first, second = bench.lives
    assert first.random.random() != second.random.random()
    assert [event.id for event in bench.engine.published] == ["a-0", "a-1", "a-2"]


def test_a_silent_node_hears_and_publishes_but_passes_nothing_on() -> None:
    """a - b - c in a row, b silent."""
    nodes = standing((0, 0), (8, 0), (16, 0))
    engine = Engine(
        flooding(),
        nodes,
        UnitDisk(range_m=10.0),
        Workload([*everybody_wants(3), ping(1.0, 0), ping(2.0, 1), ping(3.0, 2)]),
        duration_s=5.0,
        faults=FaultSettings(silent_nodes=("b",)),
        log=Log(),
    )
    engine.run()
    assert sorted(zip(engine.deliveries.event, engine.deliveries.node, strict=True)) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert engine.counts.drops == {"silent-node": 2}


def test_a_node_sees_its_own_clock_and_the_log_the_true_one() -> None:
    faults = FaultSettings(clock_skew_s=5.0)
    nodes = Trajectories([Trajectory.through("a", [(0, 0, 0), (10, 100, 0)]), Trajectory.standing("b", 0, 0)])
    bench = Bench(nodes, UnitDisk(range_m=1000.0), actions=[Action(4.0, 0, Event(type="Ping"))], faults=faults)
    offsets = bench.engine.clock_offsets_s
    places = []
    bench.do(offsets[0] + 2.0, "a", lambda probe: places.append(probe.location.position(offsets[0] + 2.0)))
    bench.do(offsets[0] + 3.0, "a", say("now"))
    bench.run()
    assert 0.0 not in offsets
    assert bench.calls("a", "start") == [(offsets[0],)]
    assert [place.x_m for place in places] == [pytest.approx(20.0)]
    assert bench.calls("b", "hear") == [(Word("now"), "a", 3.001 + offsets[1])]
    assert bench.rows("time", kind="receive") == [(3.001,)]
    (event,) = bench.engine.published
    assert (event.time, event.position.x_m if event.position else None) == (4.0 + offsets[0], pytest.approx(40.0))
    assert bench.rows("time", "x_m", kind="publish") == [(4.0, pytest.approx(40.0))]


def test_nodes_are_there_when_their_path_says_so() -> None:
    nodes = Trajectories(
        [
            Trajectory.through("a", [(0, 0, 0)], presence=((-5.0, 2.0), (4.0, 6.0))),
            Trajectory.through("b", [(0, 0, 0)], presence=((3.0, 50.0),)),
            Trajectory.through("c", [(0, 0, 0)], presence=((60.0, 70.0),)),
        ]
    )
    bench = Bench(nodes, duration_s=10.0).run()
    assert bench.rows("time", "node", "kind", "detail") == [
        (0.0, "a", "join", joined("on the scene", 0)),
        (2.0, "a", "leave", "off the scene"),
        (3.0, "b", "join", joined("on the scene", 0)),
        (4.0, "a", "join", joined("on the scene", 1)),
        (6.0, "a", "leave", "off the scene"),
    ]
    assert bench.calls("a", "stop") == [(2.0,), (6.0,)]


def test_a_node_is_back_only_when_no_reason_to_be_away_is_left() -> None:
    nodes = Trajectories([Trajectory.through("a", [(0, 0, 0)], presence=((0.0, 2.0), (4.0, 9.0)))])
    bench = Bench(nodes, faults=FaultSettings(crashes=(Crash("a", 1.0, down_s=5.0),))).run()
    assert bench.rows("time", "kind") == [(0.0, "join"), (1.0, "leave"), (6.0, "join"), (9.0, "leave")]


def test_a_partition_parts_a_flood() -> None:
    from earshot.geometry import Area, Circle, Position
    from earshot.simulation.faults import Partition

    nodes = standing((0, 0), (8, 0), (16, 0), (24, 0))
    partition = Partition(1.5, 2.5, area=Area(Circle(10.0), Position(0.0, 0.0)))
    engine = Engine(
        flooding(),
        nodes,
        UnitDisk(range_m=10.0),
        Workload([*everybody_wants(4), ping(1.0, 0), ping(2.0, 0), ping(3.0, 0)]),
        duration_s=5.0,
        faults=FaultSettings(partitions=(partition,)),
    )
    engine.run()
    reached = [(event, node) for event, node in zip(engine.deliveries.event, engine.deliveries.node, strict=True)]
    assert reached == [(0, 1), (0, 2), (0, 3), (1, 1), (2, 1), (2, 2), (2, 3)]
