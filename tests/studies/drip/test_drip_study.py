"""The DRIP study: what its run log says, what its claims answer, and its quick cases end to end."""

import math
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mutation import flips

from earshot.events import Event
from earshot.filters import Subscription
from earshot.protocols.common.local_subscriptions import RecentKeys
from earshot.protocols.drip.delay import exact_factor, printed_meeting_time, reach
from earshot.protocols.drip.machine import Drip
from earshot.protocols.drip.regions import Regions
from earshot.protocols.drip.sharing import Sharing
from earshot.simulation.scenario.library import load_scenario
from earshot.studies.drip import analysis_claims, claims
from earshot.studies.drip.claims import moves
from earshot.studies.drip.run_log import RunLog, _total_wait
from earshot.studies.drip.runs import _of_one_subscriber, grown, simulated, walks
from earshot.studies.drip.study import EPIDEMIC_IGNORES, POINTS, RADIOS, SMALL, STUDY, VARIANTS
from earshot.studies.study import Finding, judge, study

QUICK: dict[str, Any] = {"brokers": 10, "nearest": 4, "copies": 2, "units": 15, "seed": 0, "scenario": SMALL}


def finding(start: str, **rows: list[dict[str, Any]]) -> Finding:
    (claim,) = [claim for claim in STUDY.claims if claim.claim.startswith(start)]
    return claim.judge(rows)


def test_the_study_is_found_by_its_name() -> None:
    assert study("drip") is STUDY


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1, 2, 3], 1), ([3, 2, 1], -1), ([1, 3, 2], 0), ([1, 0.97, 2], 1), ([1, 1.01, 1.02], 0), ([1, 1, 1], 0)],
)
def test_a_direction_may_stay_level_for_a_step_but_must_move(values: list[float], expected: int) -> None:
    rows = [{"m": m, "seed": 0, "delay": value} for m, value in enumerate(values)]
    assert {sign for sign in (1, -1) if moves(rows, "m", "delay", sign).holds} == ({expected} - {0})


def test_a_direction_is_in_doubt_where_the_seeds_disagree() -> None:
    def rises(*values: tuple[float, float]) -> tuple[bool, bool]:
        rows = [{"m": m, "seed": seed, "delay": y} for m, pair in enumerate(values) for seed, y in enumerate(pair)]
        found = moves(rows, "m", "delay", 1)
        return found.holds, found.in_doubt

    assert rises((1.0, 1.0), (2.0, 2.1)) == (True, False)
    assert rises((1.0, 1.0), (1.0, 4.0)) == (True, True)
    assert rises((1.0, 1.0), (0.5, 0.52)) == (False, False)
    assert rises((1.0, 1.0), (0.5, 1.4)) == (False, True)


def test_the_wait_until_two_can_communicate() -> None:
    # Apart for 4 s, together for 2, apart for 4: 16 / 2 + 16 / 2.
    assert _total_wait([(4.0, True), (6.0, False)], 0.0, 10.0) == pytest.approx(16.0)
    assert _total_wait([(0.0, True)], 0.0, 10.0) == 0.0
    assert _total_wait([], 0.0, 10.0) == 50.0
    assert _total_wait([(-2.0, True), (-1.0, False), (5.0, True)], 0.0, 10.0) == pytest.approx(12.5)


def test_a_pair_counts_only_while_both_are_brokers() -> None:
    log = object.__new__(RunLog)
    log.result = SimpleNamespace(warm_up_s=0.0, duration_s=100.0)  # type: ignore[assignment]
    log.meetings = {("a", "b"): [(6.0, True)], ("b", "a"): [(6.0, True)]}  # type: ignore[assignment]
    log.terms = {"a": [[0.0, 100.0]], "b": [[4.0, 10.0]]}  # type: ignore[assignment]
    # Both are brokers from 4 s to 10 s, and meet after 2 s of it: 2 * 2 / 2 in 6 s.
    assert log.mean_meeting_s() == pytest.approx(2.0 / 6.0)
    log.terms = {"a": [[0.0, 4.0]], "b": [[4.0, 10.0]]}  # type: ignore[assignment]
    assert math.isnan(log.mean_meeting_s())


def grid(**values: Any) -> list[dict[str, Any]]:
    rows = []
    for k in (10, 20, 30):
        for m in (1, 2, 4):
            row = {"brokers": k, "copies": m, "nearest": 5, "seed": 0, "units": 15, "delivery_ratio": 0.99}
            row["across"] = row["fates"] = {"delivered once": 5}
            rows.append({**row, **{name: value(k, m) for name, value in values.items()}})
    return rows


def both(of: Callable[[int, int], float]) -> dict[str, Callable[[int, int], float]]:
    return {"delay_s": of, "delay_p50_s": of}


def test_claims_about_coverage_and_delay_can_hold_and_fail() -> None:
    def runs(covered: Callable[[int, int], float], delay: Callable[[int, int], float]) -> list[dict[str, Any]]:
        return grid(coverage=covered, coverage_then=covered, **both(delay))

    as_paper = runs(lambda k, m: m / k, lambda k, m: k / m)
    against = runs(lambda k, m: k / m, lambda k, m: m / k)
    for rows, holds in ((as_paper, True), (against, False)):
        assert finding("Broker coverage grows", coverage=rows).holds is holds
        assert finding("Broker coverage falls", coverage=rows).holds is holds
        assert finding("Delivery delay falls", delay=rows).holds is holds
        assert finding("Delivery delay rises", delay=rows).holds is holds


def test_the_comparisons_with_sf_and_with_random_brokers_can_hold_and_fail() -> None:
    delay = grid(**both(lambda *_: 1.0), cost=lambda *_: 1.0, transmissions_per_s=lambda *_: 1.0)
    for other, holds in ((2.0, True), (0.5, False)):
        columns = dict.fromkeys(("delay_s", "delay_p50_s", "cost", "transmissions_per_s"), other)
        rows = [{"brokers": k, "seed": 0, "units": 15, "delivery_ratio": 0.9, **columns} for k in (10, 20, 30)]
        assert finding("DRIP's delay is below", delay=delay, epidemic=rows, load=[]).holds is holds
        assert finding("Brokers chosen by ability give", delay=delay, selection=rows).holds is holds
        assert finding("Brokers chosen by ability need", delay=delay, selection=rows).holds is holds
        assert finding("DRIP needs less transmission", delay=delay, epidemic=rows).holds is holds
        load = [{**row, "protocol": name, "rate": 3.2} for name in ("drip", "drip-sf") for row in rows]
        load = [{**row, "delay_s": 1.0} if row["protocol"] == "drip" else row for row in load]
        readings = finding("DRIP's delay is below", delay=delay, epidemic=rows, load=load).readings
        assert [one.holds for one in readings if one.reading.endswith("3.2 events a second")] == [holds]


def test_an_event_delivered_twice_would_show() -> None:
    rows = grid(handovers_per_node_s=lambda *_: 0.1)
    assert finding("No event is delivered twice", delay=rows, coverage=[]).holds is True
    twice = [{**rows[0], "across": {"delivered once": 4, "delivered twice": 1}}]
    assert finding("No event is delivered twice", delay=twice, coverage=[]).holds is False


def test_losses_are_explained_by_the_most_frequent_reason_of_all_pairs() -> None:
    fates = {"delivered once": 5, "lost: a": 1, "lost: its subscription was not known": 3}
    rows = [{**QUICK, "nodes": 1000, "radio": "ideal", "delivery_ratio": 0.5, "fates": fates}]
    (reading,) = finding("DRIP scales", growing=rows).readings
    assert (reading.holds, reading.reason) == (False, "3 of 4 losses: its subscription was not known")


def test_the_printed_equation_is_reported_as_not_following() -> None:
    terms, exact = finding("The expected delay of equation 2").readings
    assert (terms.holds, exact.holds) == (False, False)
    assert ("l = 4: 7 / 1," in terms.measured, "l = 4: 7 / 2.083" in exact.measured) == (True, True)


def test_an_equation_that_follows_would_be_reported_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis_claims, "printed_factor", exact_factor)
    assert [one.holds for one in finding("The expected delay of equation 2").readings] == [False, True]


def test_more_copies_need_both_more_transmission_and_more_memory() -> None:
    for held, holds in ((lambda _, m: 3.0 + m, True), (lambda *_: 3.0, False)):
        rows = grid(cost=lambda _, m: 100.0 * m, held=held, held_then=lambda _, m: 2.0 + m)
        assert finding("More copies need more", coverage=rows).holds is holds


def test_more_destinations_must_deliver_more_at_every_l_that_is_meant() -> None:
    def runs(**delivered: float) -> list[dict[str, Any]]:
        row = {"brokers": 20, "copies": 2, "seed": 0, "units": 15, "cost": 9.0}
        return [{**row, "nearest": int(name[1:]), "delivery_ratio": ratio} for name, ratio in delivered.items()]

    for nearest, expected in (
        (runs(l1=0.8, l2=0.9, l4=0.95, l5=0.96, l7=0.97), [True, True]),
        (runs(l1=0.8, l2=0.9, l4=0.95, l5=0.96, l7=0.90), [False, True]),
        (runs(l1=0.8, l2=0.9, l4=0.85, l5=0.96, l7=0.97), [False, False]),
    ):
        readings = finding("The larger l is", nearest=nearest, coverage=[], delay=[]).readings
        assert [reading.holds for reading in readings] == expected


def test_about_five_subscribers_want_an_event() -> None:
    """What row 3's reason says of the workload."""
    work = [action.what for action in load_scenario("drip").with_({"duration_s": 220.0}).workload(0)]
    events = [what for what in work if isinstance(what, Event)]
    subscriptions = [what for what in work if isinstance(what, Subscription)]
    wanted = sum(one.filter.matches(event) for event in events for one in subscriptions)
    assert wanted / len(events) == pytest.approx(5.0, abs=0.5)
    rows = grid(held_more=lambda *_: 0.4, held_then=lambda *_: 6.0, held_most=lambda *_: 20)
    *_, reading = finding("Even in the worst case", coverage=rows, settings=[], **{"one subscriber": one()}).readings
    assert reading.reason.startswith("about five subscribers")


def one(then: float = 0.0, end: float = 0.0, source: float = 0.0) -> list[dict[str, Any]]:
    """Runs of events that one node wants; the shares of the deliveries at which more than m + l brokers hold one."""
    columns = {"one_deliveries": 9, "one_held_then": 3.0, "one_held_end": 5.0, "one_most_then": 6, "one_most_end": 7}
    shares = {"one_more_then": then, "one_more_end": end}
    shares |= {f"{column}_with_source": share + source for column, share in shares.items()}
    return [{"seed": 0, "units": 15, **columns, **shares}]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({}, [True, True, True, True]),
        ({"source": 0.1}, [True, False, True, False]),
        ({"end": 0.1}, [True, True, False, False]),
        ({"then": 0.1}, [False, False, True, True]),
    ],
)
def test_at_most_m_and_l_brokers_are_counted_for_events_of_one_subscriber(
    shares: dict[str, float], expected: list[bool]
) -> None:
    rows = grid(held_more=lambda *_: 0.4, held_then=lambda *_: 6.0, held_most=lambda *_: 20)
    # A run in which nothing was delivered says nothing.
    silent = [{**row, "one_deliveries": 0, "one_most_then": 99, "one_more_then": None} for row in one()]
    fewer = [{**row, "one_most_then": 4, "one_most_end": 5} for row in one(**shares)]
    *readings, _ = finding(
        "Even in the worst case", coverage=rows, settings=[], **{"one subscriber": [*one(**shares), *fewer, *silent]}
    ).readings
    assert [reading.holds for reading in readings] == expected
    assert " of 18 deliveries; 3.0 brokers on average, at most 6" in readings[0].measured
    assert " of 18 deliveries; 5.0 brokers on average, at most 7" in readings[2].measured


def test_brokers_are_counted_when_an_event_is_delivered_and_in_the_end() -> None:
    log = object.__new__(RunLog)
    log.result = SimpleNamespace(published=[SimpleNamespace(id="x"), SimpleNamespace(id="y"), SimpleNamespace(id="z")])  # type: ignore[assignment]
    log.copies = {"x": {"a": 1.0, "b": 3.0, "c": 9.0}, "y": {"a": 2.0}, "z": {"a": 0.0, "b": 0.0}}  # type: ignore[assignment]
    log.first = {(0, 7): 3.0, (0, 8): 4.0, (1, 7): 5.0}
    log.expected = {(0, 7): 1.0, (0, 8): 1.0, (1, 7): 2.0, (2, 7): 0.0}
    # A copy that a broker gets at the moment of delivery counts.
    assert list(log.copies_then()) == [(0, 2), (0, 2), (1, 1)]
    # What nobody got is not a delivered event.
    assert log.copies_in_the_end() == {0: 3, 1: 1}
    assert log.of_one_subscriber() == {1, 2}
    log.k = 4
    # With at most one broker allowed, the source broker apart: the event of one subscriber has the source's copy only.
    row = _of_one_subscriber(log, 1)
    assert (row["one_deliveries"], row["one_held_then"], row["one_held_end"], row["one_most_end"]) == (1, 1.0, 1.0, 1)
    assert (row["one_more_then"], row["one_more_then_with_source"]) == (0.0, 0.0)
    log.copies["y"] = {"a": 2.0, "b": 3.0, "c": 6.0}
    row = _of_one_subscriber(log, 1)
    assert (row["one_more_then"], row["one_more_then_with_source"]) == (0.0, 1.0)
    assert (row["one_more_end"], row["one_more_end_with_source"]) == (1.0, 1.0)
    log.first[2, 7] = 1.0
    row = _of_one_subscriber(log, 1)
    assert (row["one_deliveries"], row["one_most_then"], row["one_most_end"], row["one_held_end"]) == (2, 2, 3, 2.5)


def test_drip_has_fewer_brokers_hold_an_event_than_sf_both_at_delivery_and_in_the_end() -> None:
    sf = [{"brokers": k, "seed": 0, "units": 15, "coverage": 1.0, "coverage_then": 0.4} for k in (10, 20, 30)]
    for end, then, expected in ((0.5, 0.3, [True, True]), (0.5, 0.5, [True, False]), (1.0, 0.3, [False, True])):
        drip = grid(coverage=lambda *_, end=end: end, coverage_then=lambda *_, then=then: then)
        readings = finding("Only a subset of the brokers", delay=drip, epidemic=sf).readings
        assert [reading.holds for reading in readings] == expected


def test_settings_that_change_an_answer_would_show() -> None:
    def run(point: dict[str, Any]) -> dict[str, Any]:
        return {
            **point,
            "seed": 0,
            "units": 15,
            "coverage_then": point["copies"] / point["brokers"],
            "delay_s": float(point["brokers"]),
            "delivery_ratio": 0.9,
        }

    *drip, random, epidemic = map(run, POINTS)
    fixed = {"delay": drip, "selection": [random], "epidemic": [epidemic]}
    another = [{**row, "variant": "another"} for row in (*drip, random)]
    found = finding("The answers do not depend", settings=another, **fixed)
    assert found.holds is True
    # Coverage and delay change as the paper says; delay is neither below SF's nor below random brokers', but equal.
    assert found.readings[1].measured.count(": yes, yes, no, yes, no, no;") == 1
    changed = [{**row, "coverage_then": 1 / row["copies"]} for row in another]
    assert finding("The answers do not depend", settings=changed, **fixed).holds is False


def test_a_variant_that_sf_does_not_know_has_no_run_of_sf() -> None:
    (settings,) = (one for one in STUDY.experiments if one.name == "settings")
    epidemic = {case["variant"] for case in settings.cases if case["protocol"] == "drip-sf"}
    assert epidemic == set(VARIANTS) - set(EPIDEMIC_IGNORES)
    case = {**QUICK, "units": 3, "protocol": "drip-sf"}
    fixed, *others = (
        simulated({**case, **changed}) for changed in ({}, *(VARIANTS[name] for name in EPIDEMIC_IGNORES))
    )
    assert others == [fixed, fixed]


def test_a_run_is_measured_whole() -> None:
    rows = [row for seed in range(3) for row in simulated({**QUICK, "seed": seed})]
    expected = sum(row["expected"] for row in rows)
    assert 0.7 <= sum(row["delivery_ratio"] * row["expected"] for row in rows) / expected <= 1.0
    row = rows[0]
    assert 0.1 <= row["coverage"] <= 1.0
    assert 0.0 < row["delay_p50_s"] <= row["delay_p95_s"]
    assert row["exact_s"] == pytest.approx(row["meeting_s"] * (1 + 1 / 2 + 1 / 3 + 1 / 4) / 2)
    assert row["handovers_per_node_s"] > 0
    assert row["fates"].get("delivered twice", 0) == 0
    assert sum(row["fates"].values()) == row["expected"] >= sum(row["across"].values())
    assert row["held_most"] >= row["held_then"] >= 1
    # m + l is 6.
    assert [one["held_more"] > 0 for one in rows] == [one["held_most"] > 6 for one in rows]
    assert row["held"] >= 1
    assert row["coverage"] >= row["coverage_then"] * 0.8
    assert 0.9 <= row["attached_share"] <= 1.0
    assert 0.3 < row["nearest_share"] <= row["next_nearest_share"] <= 1.0


def test_the_hops_beyond_the_nearest_broker_are_those_of_the_graph() -> None:
    """Five nodes in a row, 100 m apart, brokers at both ends: the second node is with the far one, three hops away."""
    places = np.array([[100.0 * place, 0.0] for place in range(5)])
    log = object.__new__(RunLog)
    log.result = SimpleNamespace(warm_up_s=0.0, duration_s=1.0, seed=0, nodes=list("abcde"))  # type: ignore[assignment]
    trajectories = SimpleNamespace(positions=lambda _: places)
    log.scenario = SimpleNamespace(trajectories=lambda _: trajectories)  # type: ignore[assignment]
    log.terms = {"a": [[0.0, 1.0]], "e": [[0.0, 1.0]]}  # type: ignore[assignment]
    log.attached = {0: [(0.0, "a")], 1: [(0.0, "e")], 2: [(0.0, "a")], 3: [], 4: [(0.0, "e")]}  # type: ignore[assignment]
    assert log.hops_beyond_nearest() == {2: 1, 0: 1}


def test_walks_meet_sooner_where_brokers_reach_farther() -> None:
    few, many = (walks({"brokers": k, "grid": 400, "walks": 400, "seed": 1})[0] for k in (10, 30))
    assert (few["alpha"] > many["alpha"], few["steps"] < many["steps"]) == (True, True)


def test_claims_about_the_analysis_can_hold_and_fail() -> None:
    for factor, holds in ((1.0, True), (2.0, False)):
        met = [
            {"brokers": k, "grid": 400, "seed": 0, "steps": factor * printed_meeting_time(reach(k, 400), 400)}
            for k in (10, 20, 30)
        ]
        assert finding("The time until two regions meet", walks=met).holds is holds
        sizes = [
            {"what": what, "seed": 0, "packet_bytes": size, "bare_bytes": size}
            for what, size in (("subscription", 100), ("event", 150 / factor))
        ]
        assert finding("Subscription packets are smaller", packets=sizes).holds is holds
        share = 0.95 / factor
        shares = [{**row, "nearest_share": share, "next_nearest_share": share} for row in grid()]
        assert finding("The local broker of a node", delay=shares).holds is holds
    assert [one.holds for one in finding("The delay is in a logarithmic").readings] == [False, True]
    assert [one.holds for one in finding("Equation 2 gives the number").readings] == [False, True]


def test_an_expected_delay_must_be_near_the_measured_one() -> None:
    def rows(expected: float) -> list[dict[str, Any]]:
        """Where every broker reaches every other at once, nobody waits for a meeting: the expected delay is 0."""
        columns = {"exact_s": expected, "printed_s": 6 * expected, "destinations_s": 10.0, "meeting_s": expected}
        return [{**row, **columns, "destinations_reached": 0.7} for row in grid()]

    for expected, holds in ((13.0, [True, False]), (0.0, [False, False])):
        readings = finding("The expected delay, with the measured rate", delay=rows(expected)).readings
        assert [one.holds for one in readings] == holds
    # Every k and m counts by itself: where one is far off, the others do not make up for it.
    far = [{**row, "exact_s": 23.0} if (row["brokers"], row["copies"]) == (30, 1) else row for row in rows(13.0)]
    exact, _ = finding("The expected delay, with the measured rate", delay=far).readings
    assert exact.holds is False
    assert "m = 1 (by k) 10: 1.30, 20: 1.30, 30: 2.30; m = 2 (by k) 10: 1.30" in exact.measured


def test_the_share_of_events_that_brokers_detect_follows_from_the_power_law(monkeypatch: pytest.MonkeyPatch) -> None:
    start = "Most events are detected by brokers themselves"
    expected = finding(start)
    # The share of the largest q of a density that falls with the power of -2.5: q to the power of 1 - 1 / 1.5.
    by_law = [(k / 200) ** (1 / 3) for k in (10, 20, 30)]
    assert (expected.holds, expected.series[0].y) == (False, pytest.approx(by_law, abs=0.06))
    heavier = load_scenario("drip").with_({"ability.exponent": 2.1})
    monkeypatch.setattr(claims, "load_scenario", lambda _: heavier)
    assert finding(start).holds is True


def test_every_claim_that_can_be_measured_names_what_would_make_it_fail() -> None:
    assert [claim.claim for claim in STUDY.claims if not claim.fails_if] == [
        "The expected delay of equation 2 follows from equation 1",
    ]


def test_able_brokers_detect_more_of_the_unwanted_events_only_if_ability_chooses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def verdicts() -> list[bool | None]:
        return [one.holds for one in finding("Larger ability lets brokers delete").readings]

    assert verdicts() == [True, None]
    monkeypatch.setattr(claims, "_ablest", lambda scenario, seed: Random(seed).sample(range(scenario.node_count), 200))
    assert verdicts() == [False, None]


def test_the_events_that_no_node_wants_are_counted_by_the_filters_of_the_run() -> None:
    for seed in range(3):
        every, wanted, unwanted = (claims._detected(seed, which)[1] for which in (None, True, False))
        assert every == wanted + unwanted
        work = [action.what for action in load_scenario("drip").with_({"duration_s": claims.UNITS}).workload(seed)]
        asked = [what.filter for what in work if isinstance(what, Subscription)]
        events = [what for what in work if isinstance(what, Event)]
        assert unwanted.total() == sum(not any(one.matches(event) for one in asked) for event in events)


# Named mutations of the protocol turn the verdicts.


def measured(**changed: Any) -> list[dict[str, Any]]:
    case = {**QUICK, **changed}
    return [{**case, **row} for row in simulated(case)]


def test_if_every_node_forwards_every_announcement_there_is_a_storm(monkeypatch: pytest.MonkeyPatch) -> None:
    flips(
        STUDY.claims,
        "Announcements cause no broadcast storm",
        lambda: dict.fromkeys(("delay", "coverage"), measured(brokers=20, nearest=2, copies=1, units=6)),
        lambda: monkeypatch.setattr(Regions, "_places", lambda self: 2 * self.settings.k),
    )


def test_without_exchanged_subscriptions_less_than_90_percent_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    case = {"nodes": 100, "brokers": 10, "nearest": 4, "copies": 2, "units": 8, "seed": 0, "radio": "ideal"}
    case |= {"warm_up_s": 20.0, "cool_down_s": 40.0, "scenario": RADIOS["ideal"]}
    flips(
        STUDY.claims,
        "DRIP scales",
        lambda: {"growing": [{**case, **row} for row in grown(case)]},
        lambda: monkeypatch.setattr(Sharing, "shares_subscriptions", False),
    )


def test_a_node_that_forgets_what_it_delivered_gets_events_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Drip._hand_over

    def forgetful(self: Drip, chosen: str, now: float) -> None:
        self.delivered = RecentKeys(self.settings.memory)
        self.flooded = RecentKeys(self.settings.memory)
        self.recent_events.clear()
        plain(self, chosen, now)

    flips(
        STUDY.claims,
        "No event is delivered twice",
        lambda: {"delay": measured(units=10), "coverage": []},
        lambda: monkeypatch.setattr(Drip, "_hand_over", forgetful),
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_quick_study_judges_every_claim() -> None:
    rows = {
        experiment.name: [{**case, **row} for case in experiment.quick for row in experiment.measure(case)]
        for experiment in STUDY.experiments
    }
    (crashed,) = rows["crashes"]
    # 12 s after its last sign of life; on a shared channel up to three announcements, 2 s apart, may be lost before.
    assert (crashed["replaced"], 12.0 - 3 * 2.0 < crashed["replacement_s"] < 30.0) == (1, True)
    assert [bool(judged.finding.measured) for judged in judge(STUDY, rows)] == [True] * len(STUDY.claims)
