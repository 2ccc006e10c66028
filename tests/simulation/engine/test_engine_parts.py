"""Small parts of a run: what is counted since the warm-up, the protocol's name, and what a silent node withholds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from small_networks import Bench, say, standing

from earshot.events import Event
from earshot.protocols.flooding import Flooding
from earshot.records.trajectories import Trajectories, Trajectory
from earshot.simulation import load_scenario, run
from earshot.simulation.engine.coupling import Coupling
from earshot.simulation.engine.oracle import is_up, up_intervals
from earshot.simulation.engine.result import Counts, PacketCount
from earshot.simulation.engine.summary import quantile
from earshot.simulation.event_queue import Priority, Queue
from earshot.simulation.faults import FaultPlan, Outage


def test_counts_since_the_warm_up_have_every_tag() -> None:
    def counted(tag: str, *numbers: int) -> PacketCount:
        return PacketCount(tag, True, False, *numbers)

    before = Counts({"a": counted("a", 1, 10, 2)}, Counter({"lost": 1}))
    kept = before.snapshot()
    after = Counts({"a": counted("a", 4, 50, 9), "b": counted("b", 2, 20, 3)}, Counter({"lost": 3, "full": 1}))
    found = after.since(before)
    assert found.packets == {"a": counted("a", 3, 40, 7), "b": counted("b", 2, 20, 3)}
    assert found.drops == {"lost": 2, "full": 1}
    assert (after.sends, after.receives, after.bytes_sent) == (6, 12, 70)
    before.packets["a"].sends = 99
    assert kept.packets["a"].sends == 1


def test_a_warm_up_may_be_shorter_than_a_second() -> None:
    bench = Bench(standing((0, 0), (5, 0)), warm_up_s=0.5)
    bench.do(0.25, "a", say("early"))
    bench.do(0.75, "a", say("late"))
    bench.run()
    assert (bench.engine.warm_up.sends, bench.engine.counts.sends) == (1, 2)


def test_a_run_is_named_after_its_protocol_however_that_was_given_and_shown_without_trajectories() -> None:
    small = load_scenario("base").with_({"nodes.node.count": 20, "duration_s": 30.0})
    by_name, by_class = run(small, "flooding", {}, 1), run(small, Flooding, {}, 1)
    assert (by_name.protocol, by_class.protocol) == ("flooding", "flooding")
    assert by_name.queue_calls == by_class.queue_calls > 0
    assert "trajectories" not in repr(by_name)
    assert by_name.trajectories is not by_class.trajectories
    assert by_name == replace(by_name, trajectories=by_class.trajectories), "only what happened is compared"


# Expected receivers.


def test_a_node_is_up_while_it_is_there_and_down_for_no_reason() -> None:
    nodes = Trajectories(
        [
            Trajectory.through("a", [(0.0, 0.0, 0.0)], ((0.0, 10.0), (20.0, 30.0))),
            Trajectory.standing("b", 0.0, 0.0),
            Trajectory.standing("c", 0.0, 0.0),
        ]
    )
    outages = (
        Outage(2.0, 1, "crash", back=False), Outage(3.0, 1, "churn", back=False), Outage(4.0, 1, "crash", back=True),
        Outage(5.0, 0, "crash", back=False), Outage(6.0, 1, "churn", back=True), Outage(7.0, 2, "crash", back=True),
        Outage(8.0, 2, "crash", back=False), Outage(9.0, 2, "crash", back=False), Outage(25.0, 0, "crash", back=True),
    )  # fmt: skip
    up = up_intervals(nodes, FaultPlan(outages, frozenset(), (0.0,) * 3))
    assert up == [
        [(0.0, 5.0), (25.0, 30.0)], [(-math.inf, 2.0), (6.0, math.inf)], [(-math.inf, 8.0)],
    ]  # fmt: skip
    assert [is_up(up[0], time) for time in (-0.1, 0.0, 4.9, 5.0, 25.0, 30.0)] == [
        False, True, True, False, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("count", "share", "value"),
    [(1, 0.5, 1), (2, 0.5, 1), (3, 0.5, 2), (100, 0.5, 50), (100, 0.95, 95), (100, 0.99, 99), (101, 0.99, 100),
     (5, 1.0, 5), (5, 0.0, 1)],
)  # fmt: skip
def test_a_quantile_is_the_least_value_that_so_many_do_not_exceed(count: int, share: float, value: int) -> None:
    ordered = list(range(1, count + 1))
    assert quantile(ordered, share) == value
    assert sum(one <= value for one in ordered) >= share * count
    assert quantile([], share) is None


# In step with SUMO.


def test_the_steps_of_sumo_come_before_what_else_is_added_for_their_times() -> None:
    reported: list[object] = []
    coupling = Coupling.__new__(Coupling)
    coupling._times, coupling._step = [0.0, 1.0, 2.0], reported.append  # type: ignore[method-assign]
    engine = SimpleNamespace(queue=Queue(), schedule=None)
    engine.queue.at(1.0, Priority.WORLD, reported.append, "was there before")
    coupling.attach(engine)  # type: ignore[arg-type]
    engine.queue.at(1.0, Priority.WORLD, reported.append, "a node comes")
    engine.queue.on_air(0.0, reported.append, "a packet arrives")
    engine.queue.run(9.0)
    assert reported == [0, "a packet arrives", "was there before", 1, "a node comes"], "the last time only ends a step"


def test_a_driver_learns_of_events_that_its_own_node_received() -> None:
    coupling = Coupling.__new__(Coupling)
    coupling._names, coupling._delivered = {3: "car"}, []
    event = Event("Jam", {"edge": "e"})
    coupling.delivered(3, event)
    coupling.delivered(4, event)
    assert coupling._delivered == [("car", event)]
