"""Expected receivers against the test every protocol makes at its last hop, and the figures of a run."""

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.events import Event
from earshot.filters import Filter, Viewer, filter_text
from earshot.filters.subscription import subscription_of
from earshot.geometry import Area, Circle, Position, Velocity
from earshot.protocols.common.local_subscriptions import LocalSubscriptions
from earshot.records.sessions import SubscriptionSpan
from earshot.simulation.engine.oracle import RunOracle, is_up, up_intervals
from earshot.simulation.engine.result import Counts, Deliveries, RunResult
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import quantile, summarise
from earshot.simulation.faults import Churn, Crash, FaultSettings, plan
from earshot.simulation.media.transmission import PacketCount
from earshot.simulation.mobility import Trajectories, Trajectory
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.settings_reader import Where, read
from sizes import sized

FILTERS = [
    "A",
    "A: x > 5",
    "B: x <= 5 and within 100 m",
    "A: approaching",
    "not (within 80 m)",
    "x > 3 or receding",
    "/A[x=7]",
]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Trajectories, list[SubscriptionSpan], list[tuple[Event, float]]]:
    random = Random(draw(st.integers(0, 10**9)))
    count = draw(st.integers(1, 8))
    paths = []
    for i in range(count):
        knots = [(float(t), random.uniform(0, 300), random.uniform(0, 300)) for t in (0, 10, 25)]
        gone = random.random() < 0.3
        presence = ((0.0, 8.0), (15.0, 20.0)) if gone else ((0.0, 30.0),)
        paths.append(Trajectory.through(f"n{i}", knots, presence))
    spans = []
    for k in range(draw(st.integers(0, 12))):
        node = random.randrange(count)
        wanted = random.choice(FILTERS)
        region = Area(Circle(150.0), Position(random.uniform(0, 300), 150.0)) if random.random() < 0.3 else None
        made = Filter.of_type("A") if wanted == "A" else Filter.parse(wanted)
        until = random.choice([math.inf, math.inf, 12.0])
        spans.append(SubscriptionSpan(f"n{node}", f"w{k}", filter_text(made), region, random.choice([0.0, 5.0]), until))
    trajectories = Trajectories(paths)
    events = []
    for k in range(4):
        source, time = random.randrange(count), random.uniform(0, 25)
        here = Position(*trajectories.position(source, time))
        area = Area(Circle(120.0), here) if random.random() < 0.5 else None
        event = Event(random.choice("AB"), {"x": random.randrange(10)}).stamped(
            id=f"e{k}",
            source=f"n{source}",
            time=time,
            position=here,
            velocity=Velocity(*trajectories.velocity(source, time)),
            area=area,
        )
        events.append((event, time))
    return trajectories, spans, events


@settings(max_examples=sized(120, 3000))
@given(worlds())
def test_expected_are_those_whose_own_subscriptions_accept(
    world: tuple[Trajectories, list[SubscriptionSpan], list[tuple[Event, float]]],
) -> None:
    trajectories, spans, events = world
    up = up_intervals(trajectories, plan(FaultSettings(), trajectories.names, 30.0, 1))
    oracle = RunOracle(spans, trajectories, up)
    for event, time in events:
        accepted = set()
        for node, name in enumerate(trajectories.names):
            held = LocalSubscriptions()
            for span in spans:
                if span.node == name and span.start <= time < span.end:
                    held.add(subscription_of(span), span.start)
            viewer = Viewer(Position(*trajectories.position(node, time)), Velocity(*trajectories.velocity(node, time)))
            there = trajectories.present(node, time) and name != event.source
            if there and held.accepting(event, viewer):
                accepted.add(node)
        assert oracle.receivers(event, time) == accepted


def test_a_node_lives_while_it_is_there_and_not_down_for_any_reason() -> None:
    names = ("a", "b")
    trajectories = Trajectories([Trajectory.standing("a", 0, 0), Trajectory.through("b", [(0, 0, 0)], ((2.0, 50.0),))])
    faults = FaultSettings(crashes=(Crash("a", 10.0, 5.0), Crash("b", 20.0)))
    up = up_intervals(trajectories, plan(faults, names, 60.0, 1))
    assert [is_up(up[0], t) for t in (0.0, 9.9, 10.0, 14.9, 15.0, 59.0)] == [True, True, False, False, True, True]
    assert [is_up(up[1], t) for t in (0.0, 2.0, 19.0, 20.0, 40.0)] == [False, True, True, False, False]
    at_the_ends = FaultSettings(crashes=(Crash("b", 2.0, 1.0), Crash("b", 45.0, 5.0)))
    assert up_intervals(trajectories, plan(at_the_ends, names, 60.0, 1))[1] == [(3.0, 45.0)]
    churn = up_intervals(trajectories, plan(FaultSettings(churn=Churn(10.0, 10.0)), names, 400.0, 3))
    share = sum(is_up(churn[0], t / 10) for t in range(4000)) / 4000
    assert 0.2 < share < 0.8


# The figures.

CHAIN = {
    "duration_s": 20.0,
    "warm_up_s": 5.0,
    "medium": {"kind": "unit-disk", "range_m": 60.0, "latency_s": 0.01},
    "nodes": {"n": {"names": ["a", "b", "c"], "mobility": {"kind": "given", "at_m": [[0, 0], [50, 0], [100, 0]]}}},
    "publish": {
        "p": {"nodes": "a", "events": "numbers", "when": {"kind": "at", "times_s": [1.0, 6.0, 7.0]}, "from_s": 0}
    },
    "subscribe": {"s": {"nodes": ["b", "c"], "filters": {"kind": "written", "texts": ["Number: true"]}}},
}


def chain(changes: dict[str, Any] | None = None) -> Scenario:
    return read(Scenario, CHAIN, Where("chain")).with_({"name": "chain", **(changes or {})})


def test_the_summary_of_a_chain_is_as_one_counts_by_hand() -> None:
    result = run(chain(), "flooding", seed=1)
    reported = summarise(chain(), result).as_dict()
    bytes_each = next(packet.bytes_sent // packet.sends for packet in result.counts.packets.values())
    assert reported.pop("data_bytes") == pytest.approx(6 * bytes_each, abs=24)
    assert reported.pop("bytes_per_delivery") == pytest.approx(6 * bytes_each / 4, abs=6)
    assert [reported.pop(f"latency_{name}_s") for name in ("p50", "p95", "p99")] == pytest.approx([0.01, 0.02, 0.02])
    assert reported == {
        "scenario": "chain",
        "protocol": "flooding",
        "seed": 1,
        "nodes": 3,
        "measured_s": 15.0,
        "events": 2,
        "expected": 4,
        "delivered": 4,
        "delivery_ratio": 1.0,
        "precision": 1.0,
        "transmissions": 6,
        "cost": 3.0,
        "control_bytes": 0,
        "hops_mean": 1.5,
        "drops": {},
    }


def test_what_is_not_reached_lowers_the_ratio() -> None:
    cut = chain({"medium.links.changes": [{"time_s": 6.5, "a": "b", "b": "c", "state": "down"}]})
    summary = summarise(cut, run(cut, "flooding", seed=1))
    assert (summary.expected, summary.delivered, summary.delivery_ratio, summary.precision) == (4, 3, 0.75, 1.0)


def test_a_node_that_is_down_is_not_expected() -> None:
    down = chain({"faults.crashes": [{"node": "c", "time_s": 6.5}]})
    summary = summarise(down, run(down, "flooding", seed=1))
    assert (summary.expected, summary.delivery_ratio) == (3, 1.0)


def test_wrong_clocks_do_not_disturb_the_figures() -> None:
    skewed = chain({"faults.clock_skew_s": 3.0})
    summary = summarise(skewed, run(skewed, "flooding", seed=1))
    assert (summary.events, summary.expected, summary.delivery_ratio) == (2, 4, 1.0)
    assert summary.latency_p50_s == pytest.approx(0.01)


def test_nothing_published_leaves_nothing_to_say() -> None:
    quiet = chain({"publish": None})
    summary = summarise(quiet, run(quiet, "flooding", seed=1))
    assert (summary.events, summary.expected, summary.delivered) == (0, 0, 0)
    assert [summary.delivery_ratio, summary.precision, summary.cost, summary.latency_p50_s, summary.hops_mean] == [
        None
    ] * 5


def test_unexpected_and_repeated_deliveries_are_distinguished() -> None:
    """A result written by hand: b is delivered twice, a stranger to the event once, one event lost."""
    scenario = chain()
    events = [
        Event("Number", {"value": 1}).stamped(id=f"a-{k}", source="a", time=t, position=Position(0, 0))
        for k, t in enumerate((6.0, 7.0))
    ]
    span = SubscriptionSpan("b", "b/s/0", "Number: true")
    deliveries = Deliveries()

    def deliver(time: float, node: int, event: int, hops: int) -> None:
        deliveries.time.append(time)
        deliveries.node.append(node)
        deliveries.event.append(event)
        deliveries.subscription.append("x")
        deliveries.hops.append(hops)

    for row in ((6.5, 1, 0, 2), (6.6, 1, 0, 3), (6.5, 2, 0, 1), (7.0, 0, -1, -1)):
        deliver(*row)
    counts = Counts({"d": PacketCount("d", True, True, 9, 900, 9), "c": PacketCount("c", False, False, 4, 40, 4)})
    counts.drops["collision"] = 5
    before = Counts({"d": PacketCount("d", True, True, 1, 100, 1)})
    before.drops["collision"] = 2
    result = RunResult(
        scenario="chain",
        protocol="p",
        settings={},
        seed=1,
        duration_s=20.0,
        warm_up_s=5.0,
        nodes=("a", "b", "c"),
        counts=counts,
        warm_up=before,
        published=events,
        subscriptions=[span],
        deliveries=deliveries,
        queue_calls=0,
    )
    summary = summarise(scenario, result)
    assert (summary.expected, summary.delivered) == (2, 2)
    assert (summary.delivery_ratio, summary.precision) == (0.5, 0.5)
    assert (summary.transmissions, summary.cost, summary.data_bytes, summary.control_bytes) == (12, 4.0, 800, 40)
    assert (summary.bytes_per_delivery, summary.latency_p50_s, summary.hops_mean) == (420.0, 0.5, 2.0)
    assert summary.drops == {"collision": 3}
    deliver(7.25, 1, 1, hops=0)
    assert summarise(scenario, result).hops_mean == 1.0, "a delivery without a hop counts, one without a count does not"


def test_an_ideal_flood_over_a_connected_city_delivers_all_and_only_what_it_should() -> None:
    still = load_scenario("city").with_(
        {
            "duration_s": 40.0,
            "medium.radio": "ideal",
            "medium.range_m": 300.0,
            "nodes.car.mobility": "uniform",
            "nodes.walker.mobility": "uniform",
            "nodes.ambulance.mobility": "uniform",
        }
    )
    for seed in range(2):
        summary = summarise(still, run(still, "flooding", seed=seed))
        assert summary.expected > 50
        assert (summary.delivery_ratio, summary.precision) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("values", "share", "answer"),
    [([], 0.5, None), ([1.0], 0.99, 1.0), ([1.0, 2.0], 0.5, 1.0), ([1.0, 2.0, 3.0, 4.0], 0.95, 4.0)],
)
def test_quantiles(values: list[float], share: float, answer: float | None) -> None:
    assert quantile(values, share) == answer
