"""The content-based ODMRP study: its worlds are the paper's, its measurements repeat, its claims can fail."""

from __future__ import annotations

import math
from typing import Any

import pytest
from mutation import flips

from earshot import Filter
from earshot.filters.summaries.structures import TextConstraint
from earshot.protocols.common.local_subscriptions import LocalSubscriptions
from earshot.protocols.content_odmrp.forwarding_mesh import ForwardingMesh
from earshot.protocols.content_odmrp.groups import ContentGroups
from earshot.protocols.content_odmrp.machine import ContentOdmrp, Data
from earshot.protocols.machine import NOTHING
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.workload.interests import FIGURE_3
from earshot.studies.content_odmrp import worlds
from earshot.studies.content_odmrp.runs import (
    changes,
    conversion,
    matching,
    moving,
    regrouping,
    summaries,
    throughput,
    traffic,
)
from earshot.studies.content_odmrp.study import CHANGES, EXPERIMENTS, STUDY, TREE_SYSTEMS
from earshot.studies.figures import Row
from earshot.studies.study import Finding, Rows, judge


def rows_of(measure: Any, *cases: dict[str, Any]) -> list[Row]:
    return [{**case, **row} for case in cases for row in measure(case)]


def finding(start: str, **rows: list[Row]) -> Finding:
    (claim,) = [claim for claim in STUDY.claims if claim.claim.startswith(start)]
    return claim.judge(rows)


@pytest.fixture(scope="module")
def traffic_rows() -> list[Row]:
    return rows_of(traffic, *({"system": system, "subscribers": 5, "seed": 0} for system in TREE_SYSTEMS))


def test_figure_7_as_measured(traffic_rows: list[Row]) -> None:
    delivered = {
        (row["system"], row["broker"]): row["delivered"] for row in traffic_rows if row["broker"].startswith("R")
    }
    assert delivered == {
        (system, broker): count
        for system in TREE_SYSTEMS
        for broker, count in (("R1", 34), ("R2", 33), ("R3", 0), ("R4", 33), ("R5", 0))
    }
    assert [
        finding(start, traffic=traffic_rows).holds
        for start in ("Brokers 1, 2", "One channel costs twice", "The extension costs", "Brokers that want nothing")
    ] == [True, True, True, True]
    least = "least constrained as one group for the type"
    assert [
        [one.holds for one in finding(start, traffic=traffic_rows).readings if one.reading == least]
        for start in ("One channel costs twice", "The extension costs")
    ] == [[False], [False]]


def test_figure_7_would_not_hold_if_the_extension_cost_more(traffic_rows: list[Row]) -> None:
    dear = [{**row, "bytes_in": row["bytes_in"] * (2 if row["system"] == "as written" else 1)} for row in traffic_rows]
    assert finding("One channel costs twice", traffic=dear).holds is False
    assert finding("The extension costs", traffic=dear).holds is False
    missing = [{**row, "delivered": 33 if row["broker"] == "R1" else row["delivered"]} for row in traffic_rows]
    assert finding("Brokers 1, 2", traffic=missing).holds is False


def test_the_same_case_gives_the_same_rows() -> None:
    case = {"system": "as written", "subscribers": 5, "interval_s": 0.1, "seed": 3}
    assert throughput(case) == throughput(case)


def test_more_subscribers_stand_in_turn_under_the_same_routers() -> None:
    scenario = worlds.tree(subscribers=12)
    result = run(scenario, "content-odmrp")
    figures = summarise(scenario, result)
    assert (figures.delivery_ratio, figures.precision, figures.nodes) == (1.0, 1.0, 18)
    spans = sorted(result.subscriptions, key=lambda span: result.nodes.index(span.node))
    wanted = [Filter.parse(span.filter) for span in spans]
    assert wanted[:5] == wanted[5:10] == [Filter.xpath(text) for text in FIGURE_3]


def test_conversion_is_measured_on_what_matches() -> None:
    (row,) = conversion({"elements": 60, "seed": 0})
    assert row["matches"] is True
    assert row["event_us"] > row["comparison_us"] > 0


def test_one_channel_costs_more_only_where_the_matches_saved_cost_more_than_the_conversion() -> None:
    rows = rows_of(matching, {"seed": 0})
    assert [(row["brokers"], row["wanted_by"], row["passed"]) for row in rows] == [(5, 1, 1)] * 3
    assert all(row["converting_us"] > 0 and row["reading_us"] > 0 and row["comparing_us"] > 0 for row in rows)
    # Four matches of 10 us are saved, and four of 50 us if the message is read too.
    for converting, expected in ((30.0, [True, True]), (50.0, [True, False]), (250.0, [False, False])):
        times = {"reading_us": 40.0, "matching_us": 10.0, "converting_us": converting, "comparing_us": 1.0}
        readings = finding("ODMRP with one channel", matching=[{**row, **times} for row in rows]).readings
        assert [reading.holds for reading in readings] == expected
    # A comparison costs too.
    compared = {"reading_us": 0.0, "matching_us": 10.0, "converting_us": 35.0, "comparing_us": 10.0}
    assert finding("ODMRP with one channel", matching=[{**row, **compared} for row in rows]).holds is False
    # Brokers that match nothing cost nothing.
    free = [{**row, "reading_us": 0.0, "matching_us": 0.0} for row in rows]
    assert [one.holds for one in finding("ODMRP with one channel", matching=free).readings] == [False, False]


@pytest.mark.parametrize("world", ["alternating", "flapping", "flapping mesh", "walking"])
def test_a_receiver_that_hardly_moves_gets_nearly_all(world: str) -> None:
    (row,) = moving({"world": world, "system": "as written", "step_s": 60.0, "seed": 1})
    assert row["delivery_ratio"] >= 0.9
    assert row["on_requests"] + row["on_data"] == row["delivered"]


def test_with_both_nodes_forwarding_the_mesh_loses_nothing() -> None:
    (row,) = moving({"world": "flapping mesh", "system": "as written", "step_s": 0.5, "seed": 2})
    assert row["delivery_ratio"] == 1.0
    assert 0.3 < row["share_of_detours"] < 0.7


def test_claims_about_speed_can_fail() -> None:
    flat = [
        {
            "world": "alternating",
            "system": "as written",
            "step_s": step_s,
            "seed": seed,
            "delivery_ratio": 0.9 + seed / 100,
            "later_ratio": 0.9 + seed * step_s / 10_000,
        }
        for step_s in (0.1, 1.0, 10.0)
        for seed in range(-2, 3)
    ]
    assert finding("Links 1 and 2", moving=flat).holds is False
    falling = [{**row, "later_ratio": 0.5 + 0.04 * row["step_s"] + row["delivery_ratio"] / 100} for row in flat]
    assert finding("Links 1 and 2", moving=falling).holds is True


def test_messages_come_on_requests_rather_than_on_data_only_if_most_of_them_do() -> None:
    def walk(fastest: float) -> list[Row]:
        return [
            {"world": "walking", "system": "as written", "step_s": step_s, "seed": seed, "share_on_requests": share}
            for step_s, share in ((0.1, fastest), (1.0, 0.1), (10.0, 0.05))
            for seed in range(3)
        ]

    for fastest, holds in ((0.15, [True, False]), (0.6, [True, True])):
        readings = finding("Walking past nodes 1 to 9: the faster", moving=walk(fastest)).readings
        assert [one.holds for one in readings] == holds


def test_throughput_is_compared_with_the_channels_and_the_interval_is_the_ratios() -> None:
    def sent(share: float) -> list[Row]:
        return [
            {"system": system, "subscribers": 5, "interval_s": 0.5, "seed": seed, "throughput_per_s": rate * (8 + seed)}
            for system, rate in (("as written", share), ("N channels", 1.0))
            for seed in range(3)
        ]

    for share, holds in ((0.8, True), (0.7, False)):
        (reading,) = finding("The extension's throughput", throughput=sent(share)).readings
        assert (reading.holds, reading.interval) == (holds, (pytest.approx(share), pytest.approx(share)))


def test_bytes_must_be_fewer_at_every_size() -> None:
    def grown(largest: float) -> list[Row]:
        return [
            {"system": system, "brokers": brokers, "subscriptions": 1, "seed": seed, "bytes": factor * (100 + seed)}
            for brokers, ours in ((100, 0.5), (300, largest))
            for system, factor in (("ours", ours), ("flooding", 1.0), ("one channel", 1.0))
            for seed in range(2)
        ]

    for largest, holds in ((0.8, True), (1.1, False)):
        for start in ("Many moving brokers: fewer bytes than f", "Many moving brokers: fewer bytes than O"):
            (reading,) = finding(start, growing=grown(largest)).readings
            assert (reading.holds, reading.interval) == (holds, (pytest.approx(largest), pytest.approx(largest)))


def test_a_summary_that_loses_events_would_show() -> None:
    rows = [
        {"summary_bytes": size, "mesh_bytes": mesh, "control_bytes": 10, "delivery_ratio": ratio, "seed": 0}
        for size, mesh, ratio in ((32, 200, 0.9), (1000, 100, 1.0))
    ]
    assert finding("A summary that is too small", budgets=rows).holds is False
    assert (
        finding("A summary that is too small", budgets=[{**row, "delivery_ratio": 1.0} for row in rows]).holds is True
    )


def test_every_claim_is_judged_from_the_quick_cases_columns() -> None:
    for experiment in EXPERIMENTS:
        assert {tuple(case) for case in experiment.quick} <= {tuple(case) for case in experiment.cases}


def traffic_again() -> Rows:
    return {"traffic": rows_of(traffic, *({"system": one, "subscribers": 5, "seed": 0} for one in TREE_SYSTEMS))}


def changes_again() -> Rows:
    return {"changes": rows_of(changes, *CHANGES)}


@pytest.fixture(scope="module")
def before(traffic_rows: list[Row]) -> Rows:
    """What three mutations each start from."""
    return {"traffic": traffic_rows, **changes_again()}


def test_without_the_exact_filter_brokers_get_more_than_their_messages(
    before: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everything(self: LocalSubscriptions, machine: Any, event: Any, hops: int, _: float) -> None:
        for id in self.by_id:
            machine.deliver(event, id, hops)

    flips(
        STUDY.claims,
        "Brokers 1, 2",
        traffic_again,
        lambda: monkeypatch.setattr(LocalSubscriptions, "deliver_local", everything),
        before=before,
    )


def test_with_one_group_for_the_type_the_extension_costs_more_than_channels(
    before: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    flips(
        STUDY.claims,
        "The extension costs",
        traffic_again,
        lambda: monkeypatch.setattr(ContentGroups, "_smallest", ContentGroups._wide),
        before=before,
    )


def test_if_every_node_forwards_one_channel_does_not_cost_twice(before: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def forwards(self: ContentOdmrp, data: Data, now: float) -> None:
        if self.deliver_local(data.event, data.hops, now):
            onward = Data(data.group, data.event, data.hops + 1)
            self._effects.append(self.mesh.pass_on(onward, data.hops, data.event, now))

    flips(
        STUDY.claims,
        "One channel costs",
        traffic_again,
        lambda: monkeypatch.setattr(ContentOdmrp, "on_data", forwards),
        before=before,
    )


def test_if_flags_never_expire_forwarding_nodes_do_not_demote(before: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    flips(
        STUDY.claims,
        "Forwarding nodes demote",
        changes_again,
        lambda: monkeypatch.setattr(ForwardingMesh, "until", lambda _, now: now + 1e6),
        before=before,
    )


def test_if_changes_are_not_reported_registering_comes_late(before: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    flips(
        STUDY.claims,
        "Subscriptions can be registered",
        changes_again,
        lambda: monkeypatch.setattr(ContentOdmrp, "_subscriptions_changed", lambda *_: NOTHING),
        before=before,
    )


def test_if_announcing_sends_nothing_the_first_event_has_no_route(
    before: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    flips(
        STUDY.claims,
        "Advertisement mode",
        changes_again,
        lambda: monkeypatch.setattr(ContentOdmrp, "announce", lambda *_: NOTHING),
        before=before,
    )


def regrouping_again() -> Rows:
    (experiment,) = (one for one in EXPERIMENTS if one.name == "regrouping")
    return {"regrouping": rows_of(regrouping, *experiment.cases)}


def test_groups_are_combined_and_with_a_limit_of_noise_split() -> None:
    regrouped = finding("Brokers split and combine", **regrouping_again())
    assert [(one.reading, one.holds) for one in regrouped.readings] == [
        ("subscriptions change, as written: any noise", False),
        ("subscriptions change, at most 40 % noise", True),
        ("events change, as written: any noise", False),
        ("events change, at most 40 % noise", True),
    ]


@pytest.mark.parametrize("changing", ["subscriptions", "events"])
def test_groups_that_are_kept_as_they_were_made_are_never_split(changing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep() -> None:
        monkeypatch.setattr(ContentGroups, "regroup", lambda *_: None)
        monkeypatch.setattr(ContentGroups, "first_end", lambda *_: math.inf)

    reading = f"{changing} change, at most 40 % noise"
    flips(STUDY.claims, "Brokers split and combine", regrouping_again, keep, reading)


def test_a_summary_that_asks_the_wrong_vector_misses_events(monkeypatch: pytest.MonkeyPatch) -> None:
    flips(
        STUDY.claims,
        "Errors of a summary",
        lambda: {"summaries": rows_of(summaries, *({"subscriptions": count, "seed": 0} for count in (1, 10)))},
        lambda: monkeypatch.setattr(TextConstraint, "equals", TextConstraint.holds),
    )


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_quick_study_judges_every_claim() -> None:
    rows = {experiment.name: rows_of(experiment.measure, *experiment.quick) for experiment in EXPERIMENTS}
    assert [bool(judged.finding.measured) for judged in judge(STUDY, rows)] == [True] * len(STUDY.claims)
