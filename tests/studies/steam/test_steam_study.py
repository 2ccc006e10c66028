"""STEAM's study: its positions, its experiments, and claims that can fail."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutation import flips

from earshot.protocols.steam.announcements import LocalAnnouncement
from earshot.protocols.steam.machine import Steam
from earshot.simulation.mobility import Trajectories
from earshot.studies.steam import claims as claims
from earshot.studies.steam import crossing, experiments
from earshot.studies.steam.crossing import (
    ACROSS_S,
    GREEN,
    SPEED_M_S,
    TABLE_1,
    anything_from_the_light,
    approaching_the_light,
    braking,
    delivered,
    discovery,
    passing_times,
    vehicle_path,
)
from earshot.studies.steam.experiments import (
    BEACONED,
    accuracy,
    consumer,
    cost,
    delivering,
    event_types,
    producer,
    raising,
    reach,
)
from earshot.studies.steam.runs import (
    LAYOUTS,
    RADIUS_M,
    RANGE_M,
    SQUARE,
    around,
    covered,
    driving,
    inside,
    standing,
    warn,
)
from earshot.studies.steam.study import STUDY
from earshot.studies.study import Rows, judge


@pytest.mark.parametrize("scenario", "ABCDE")
@pytest.mark.parametrize("saturation", [60, 120, 180, 240])
def test_a_layout_has_as_many_consumers_as_the_saturation_in_the_largest_proximity(
    scenario: str, saturation: int
) -> None:
    points = LAYOUTS[scenario](saturation, Random(1))
    assert len(points) == saturation
    assert max(math.hypot(x, y) for x, y in points) <= RADIUS_M + 0.01


@given(st.floats(-699, 699), st.sampled_from([-1.75, 1.75]), st.floats(4.0, 32.0), st.floats(0.0, 20.0))
def test_a_driver_is_at_its_point_in_time_and_keeps_to_the_road(x: float, y: float, speed: float, at: float) -> None:
    path = Trajectories([driving("car", (x, y), at, speed, 30.0)])
    assert path.position(0, at) == pytest.approx((x, y), abs=1e-6)
    assert path.velocity(0, at)[0] == pytest.approx(math.copysign(speed, y))
    assert all(abs(path.position(0, time)[0]) <= RADIUS_M + 1e-6 for time in range(30))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.floats(-500, 500), st.floats(-500, 500)), min_size=1, max_size=25), st.integers(1, 5))
def test_flooding_reaches_exactly_the_covered_consumers(points: list[tuple[float, float]], radius: int) -> None:
    names = [f"c{k}" for k in range(len(points))]
    nodes = Trajectories(standing(["producer", *names], [(0.0, 0.0), *points]))
    run = warn(nodes, around(radius * 100.0), [0.5], BEACONED, 0)
    graph = nx.Graph()
    graph.add_node(0)
    within = {0, *inside(run, 0)}
    places = run.trajectories.positions(0.5)
    graph.add_edges_from((a, b) for a in within for b in within if a < b and math.dist(places[a], places[b]) <= RANGE_M)
    connected = set(nx.node_connected_component(graph, 0)) - {0}
    assert covered(run, 0) == connected
    assert run.reached[0] == connected


def test_cost_is_one_within_range_and_one_for_each_consumer_beyond_it() -> None:
    rows = cost({"scenario": "A", "saturation": 60, "speed_mph": 30, "seed": 3})
    assert [row["cost"] for row in rows] == [1, 1, *(1 + row["covered"] for row in rows[2:])]
    assert [row["reached"] for row in rows] == [row["covered"] for row in rows]


@pytest.mark.parametrize("scenario", "AB")
def test_with_recovery_exactly_the_consumers_inside_receive_an_event_at_any_phase(scenario: str) -> None:
    case = {"scenario": scenario, "saturation": 60, "seed": 5, "seconds": 12, "proximities_m": [100, 200, 400]}
    for row in reach({**case, "recovery": True}):
        assert row["covered_events"] == row["events"]
        assert row["expected"] == row["delivered"] == row["right"]


def test_silent_nodes_prevent_some_deliveries_and_gossip_saves_messages() -> None:
    rows = accuracy({"scenario": "D", "saturation": 60, "seed": 0})
    assert all(row["reached_with_silent"] <= row["covered"] <= row["inside"] for row in rows)
    assert all(row["gossip_cost"] <= 1 + row["covered"] for row in rows)
    assert any(row["reached_with_silent"] < row["inside"] for row in rows)


def test_table_1_adds_up() -> None:
    assert sum(lane.vehicles for lane in TABLE_1) == 22_058
    assert [round(100 - 100 * lane.filtered / lane.unfiltered, 1) for lane in TABLE_1] == [
        pytest.approx(lane.decrease, abs=0.11) for lane in TABLE_1
    ]


def test_vehicles_pass_in_their_approachs_green() -> None:
    for lane in TABLE_1:
        times = passing_times(lane, 0)
        start, end = GREEN[lane.approach]
        assert len(times) == lane.vehicles
        assert all(start <= time % 100.0 <= end for time in times)


def test_a_vehicle_goes_straight_past_the_light() -> None:
    lane = TABLE_1[0]
    path = vehicle_path("v", lane, 50.0)
    assert (path.xs.tolist(), path.ys.tolist()) == ([-210.0, 210.0], [-3.0, -3.0])
    assert path.presence == ((50.0 - ACROSS_S, 50.0 + ACROSS_S),)


def test_a_vehicle_receives_the_events_raised_while_it_is_inside_after_its_first_beacon() -> None:
    lane, passes_at = TABLE_1[1], 100.37
    near = [s for s in range(200) if abs(s - passes_at) * SPEED_M_S <= RANGE_M]
    ahead = [s for s in range(200) if 0 < (passes_at - s) * SPEED_M_S <= 40.0]
    unfiltered = delivered([(lane, passes_at)], RANGE_M, anything_from_the_light, 0)
    filtered = delivered([(lane, passes_at)], 40.0, approaching_the_light, 0)
    assert unfiltered == [0, 2 * len(near), 0, 0, 0, 0, 0]
    assert filtered == [0, len(ahead), 0, 0, 0, 0, 0]


def test_the_timed_operations_raise_and_deliver() -> None:
    numbers = iter(range(100))
    (data,) = next(raising(producer(5), numbers))()  # type: ignore[misc]
    assert isinstance(data, bytes)
    done = next(delivering(consumer(5), numbers))()
    assert (done.subscription, done.event.type) == ("measured", "Measured")  # type: ignore[attr-defined]


def test_event_types_are_distinct_and_of_the_papers_lengths() -> None:
    names = event_types(500, Random(0))
    assert (len(set(names)), min(map(len, names)), max(map(len, names))) == (500, 14, 18)


@pytest.fixture(scope="module")
def quick() -> Mapping[str, list[dict[str, Any]]]:
    """Every experiment at its smaller size."""
    return {
        experiment.name: [{**case, **row} for case in experiment.quick for row in experiment.measure(case)]
        for experiment in STUDY.experiments
    }


def test_the_whole_study_runs_and_its_exact_claims_hold(quick: Mapping[str, list[dict[str, Any]]]) -> None:
    judged = {one.claim.judge: one for one in judge(STUDY, quick)}
    assert len(judged) == len(STUDY.claims)
    exact = [
        claims.one_message_within_range,
        claims.one_message_and_one_of_each_consumer,
        claims.announcements_cost_the_same,
        claims.forty_do_not_collide,
        claims.forty_thousand_collide_by_chance,
    ]
    assert [judged[claim].finding.holds for claim in exact] == [True] * len(exact)
    assert all(isinstance(one.as_json()["measured"], str) for one in judged.values())
    recovered = judged[claims.nothing_is_lost].finding.readings[-1]
    assert (recovered.reading, recovered.holds) == ("ours with recovery, at a random phase", True)


@pytest.mark.parametrize(
    ("experiment", "column", "change", "claim"),
    [
        ("cost", "cost", 1, claims.one_message_within_range),
        ("cost", "cost", 1, claims.one_message_and_one_of_each_consumer),
        ("cost", "announcement_cost", 1, claims.announcements_cost_the_same),
        ("crossing", "unfiltered", 10_000, claims.unfiltered_events),
        ("crossing", "filtered", 10_000, claims.fewer_events),
        ("collisions", "sharing", 2, claims.forty_do_not_collide),
        ("collisions", "delivered", 1, claims.forty_thousand_collide_by_chance),
    ],
)
def test_a_claim_fails_if_the_numbers_change(
    quick: Mapping[str, list[dict[str, Any]]], experiment: str, column: str, change: int, claim: Any
) -> None:
    bent = [{**row, column: row[column] + change} for row in quick[experiment]]
    assert claim({**quick, experiment: bent}).holds is False


def test_a_slope_in_speed_or_size_fails_its_claim(quick: Mapping[str, list[dict[str, Any]]]) -> None:
    faster = [{**row, "later_cost": row["later_cost"] + row["speed_mph"]} for row in quick["speed"]]
    slower = [{**row, "microseconds": 10.0 * row["size"]} for row in quick["latency"]]
    bent = {**quick, "speed": faster, "latency": slower}
    flat = (claims.speed_does_not_matter, claims.raising_is_flat, claims.delivering_is_flat)
    assert [claim(bent).holds for claim in flat] == [False, False, False]


@pytest.mark.parametrize(("percent", "noise", "holds"), [(0.2, 0.1, True), (2.0, 0.1, False), (0.2, 5.0, False)])
def test_noise_does_not_make_a_cost_flat_in_speed(percent: float, noise: float, holds: bool) -> None:
    """Over speeds from 10 to 70 the cost falls by so many percent, with so much noise either way."""
    rows = [
        {"scenario": "A", "proximity_m": 300, "speed_mph": speed, "seed": seed, "cost": 1, "later_covered": 99_999}
        | {"later_cost": 100_000 - 1000 * (percent * (speed - 10) / 60 + noise * sign)}
        for speed in range(10, 80, 10)
        for seed, sign in enumerate((-1, 1, -1, 1, 0))
    ]
    first, *_ = claims.speed_does_not_matter({"speed": rows}).readings
    assert first.holds is holds


@pytest.mark.parametrize(("per_mph", "holds"), [(0, True), (1, False)])
def test_a_cost_that_rises_with_speed_is_not_hidden_by_what_differs_between_seeds(per_mph: int, holds: bool) -> None:
    rows = [
        {"scenario": "A", "proximity_m": 300, "speed_mph": speed, "seed": seed, "later_cost": 9, "later_covered": 8}
        | {"cost": 50 * seed + per_mph * speed}
        for speed in (10, 20, 30)
        for seed in range(1, 6)
    ]
    *_, at_the_beacon = claims.speed_does_not_matter({"speed": rows}).readings
    assert at_the_beacon.holds is holds


@pytest.mark.parametrize(("times", "holds"), [((9.9, 10.1), True), ((5.0, 15.0), False)])
def test_times_that_are_too_noisy_do_not_show_that_they_are_flat(times: tuple[float, float], holds: bool) -> None:
    operations = ("raise", "raise to subscribers", "deliver")
    rows = [
        {"operation": operation, "size": size, "microseconds": time, "seed": 0}
        for operation in operations
        for size in (1, 10, 100, 1000)
        for time in times
    ]
    for claim in (claims.raising_is_flat, claims.delivering_is_flat):
        finding = claim({"latency": rows})
        assert finding.holds is holds
        # The interval is the slope's, in percent of the time a decade.
        for reading in finding.readings:
            assert reading.seeds == 1
            assert reading.interval is not None
            low, high = reading.interval
            assert low == pytest.approx(-high)
            assert (high <= claims.FLAT_PERCENT) is holds


ROAD = {"scenario": "A", "saturation": 60, "speed_mph": 30, "seed": 3}


REACHED = [
    {"recovery": recovery, "seed": 0, "expected": 9, "delivered": 9, "right": 9, "events": 1}
    for recovery in (False, True)
]


def costs() -> Rows:
    return {"cost": [{**ROAD, **row} for row in cost(ROAD)]}


def test_if_covered_proximities_go_many_hops_an_event_costs_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    flips(
        claims.CLAIMS,
        "one message where the range",
        costs,
        lambda: monkeypatch.setattr(LocalAnnouncement, "multi_hop", lambda *_: True),
    )


def test_if_beacons_stay_with_the_producer_an_announcement_costs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    flips(
        claims.CLAIMS,
        "an announcement costs",
        costs,
        lambda: monkeypatch.setattr(Steam, "may_pass_on", lambda *_: False),
    )


def test_with_sixteen_bits_forty_announcements_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    case = {"announcements": 40, "draws": 300, "seed": 0}

    def draws() -> Rows:
        return {"collisions": [{**case, **row} for row in experiments.collisions(case)]}

    whole = experiments.hashed
    flips(
        claims.CLAIMS,
        "up to 40 announcements",
        draws,
        lambda: monkeypatch.setattr(experiments, "hashed", lambda text: whole(text) & 0xFFFF),
    )


CONTINUOUS = {"beacon_interval_s": 0.1, "location_interval_s": 0.0, "vehicles": 30, "seed": 1}


def test_a_vehicle_that_learns_late_of_the_light_or_of_its_own_place_gets_fewer_events() -> None:
    (row,) = braking(CONTINUOUS)
    assert row["warned"] >= 28
    assert row["beacons"] == pytest.approx(2 * 40.0 / SPEED_M_S / 0.1, rel=0.05)
    (slow,) = braking({**CONTINUOUS, "location_interval_s": 1.0, "beacon_interval_s": 1.0})
    assert slow["warned"] < row["warned"]


def test_a_light_that_raises_an_event_every_two_seconds_warns_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 m less the braking distance take 2.147 s: two events fit in only if there is one a second."""

    each_second = crossing._past_the_light

    def every_two_seconds(passing: Any, speed: Any, radius: Any, interval_s: float, *others: Any) -> Any:
        return each_second(passing, speed, radius, 2 * interval_s, *others)

    flips(
        claims.CLAIMS,
        "a radius of 40 m guarantees two events",
        lambda: {"braking": [{**CONTINUOUS, **row} for row in braking(CONTINUOUS)]},
        lambda: monkeypatch.setattr(crossing, "_past_the_light", every_two_seconds),
    )


def test_a_fast_consumer_may_pass_without_a_beacon() -> None:
    case = {"radius_m": 40, "vehicles": 20, "seed": 0, "beacon_interval_s": 5.0}
    (slow,), (fast,) = (discovery({**case, "speed_mph": speed}) for speed in (10, 70))
    assert slow["discovered"] == 1.0 > fast["discovered"]


def test_events_that_stop_after_two_hops_cost_no_more_in_larger_proximities(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [{"scenario": "A", "saturation": saturation, "speed_mph": 30, "seed": 3} for saturation in (60, 120)]
    flips(
        STUDY.claims,
        "beyond the range cost rises",
        lambda: {"cost": [{**case, **row} for case in cases for row in cost(case)]},
        lambda: monkeypatch.setattr(experiments, "BEACONED", replace(BEACONED, hop_limit=2)),
    )


def test_events_that_stop_after_two_hops_are_lost_to_some(monkeypatch: pytest.MonkeyPatch) -> None:
    flips(
        claims.CLAIMS,
        "no event is lost",
        lambda: {**costs(), "reach": REACHED},
        lambda: monkeypatch.setattr(experiments, "BEACONED", replace(BEACONED, hop_limit=2)),
        reading="the prototype, raised with a beacon",
    )


def test_the_squares_consumers_are_inside_the_disc() -> None:
    points = LAYOUTS[SQUARE](240, Random(1))
    assert len(points) == 240
    assert max(math.hypot(x, y) for x, y in points) <= RADIUS_M
