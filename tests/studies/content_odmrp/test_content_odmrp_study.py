"""The content-based ODMRP study: its worlds are the paper's, its measurements repeat, its claims can fail."""

from __future__ import annotations

from typing import Any

import pytest

from earshot import Filter
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.workload.interests import FIGURE_3
from earshot.studies.content_odmrp import worlds
from earshot.studies.content_odmrp.claims import CLAIMS, THREE
from earshot.studies.content_odmrp.study import EXPERIMENTS, STUDY, conversion, moving, throughput, traffic
from earshot.studies.study import Finding, Row, judge


def rows_of(measure: Any, *cases: dict[str, Any]) -> list[Row]:
    return [{**case, **row} for case in cases for row in measure(case)]


def finding(start: str, **rows: list[Row]) -> Finding:
    (claim,) = [claim for claim in CLAIMS if claim.claim.startswith(start)]
    return claim.judge(rows)


@pytest.fixture(scope="module")
def traffic_rows() -> list[Row]:
    return rows_of(traffic, *({"system": system, "subscribers": 5, "seed": 0} for system in THREE))


def test_figure_7_as_measured(traffic_rows: list[Row]) -> None:
    delivered = {
        (row["system"], row["broker"]): row["delivered"] for row in traffic_rows if row["broker"].startswith("R")
    }
    assert delivered == {
        (system, broker): count
        for system in THREE
        for broker, count in (("R1", 34), ("R2", 33), ("R3", 0), ("R4", 33), ("R5", 0))
    }
    assert [
        finding(start, traffic=traffic_rows).holds
        for start in ("Brokers 1, 2", "One channel costs twice", "The extension costs", "Brokers that want nothing")
    ] == [True, True, True, True]


def test_figure_7_would_not_hold_if_the_extension_cost_more(traffic_rows: list[Row]) -> None:
    dear = [{**row, "bytes_in": row["bytes_in"] * (2 if row["system"] == "extended" else 1)} for row in traffic_rows]
    assert finding("One channel costs twice", traffic=dear).holds is False
    assert finding("The extension costs", traffic=dear).holds is False
    missing = [{**row, "delivered": 33 if row["broker"] == "R1" else row["delivered"]} for row in traffic_rows]
    assert finding("Brokers 1, 2", traffic=missing).holds is False


def test_the_same_case_gives_the_same_rows() -> None:
    case = {"system": "extended", "subscribers": 5, "interval_s": 0.1, "seed": 3}
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


@pytest.mark.parametrize("world", ["alternating", "flapping", "flapping mesh", "walking"])
def test_a_receiver_that_hardly_moves_gets_nearly_all(world: str) -> None:
    (row,) = moving({"world": world, "system": "extended", "step_s": 60.0, "seed": 1})
    assert row["delivery_ratio"] >= 0.9
    assert row["on_requests"] + row["on_data"] == row["delivered"]


def test_with_both_nodes_forwarding_the_mesh_loses_nothing() -> None:
    (row,) = moving({"world": "flapping mesh", "system": "extended", "step_s": 0.5, "seed": 2})
    assert row["delivery_ratio"] == 1.0
    assert 0.3 < row["share_of_detours"] < 0.7


def test_claims_about_speed_can_fail() -> None:
    flat = [
        {"world": "alternating", "system": system, "step_s": step_s, "delivery_ratio": 0.9 + seed / 100}
        for system in ("extended", "one channel")
        for step_s in (0.1, 1.0, 10.0)
        for seed in range(5)
    ]
    assert finding("Links 1 and 2", moving=flat).holds is False
    falling = [{**row, "delivery_ratio": 0.5 + 0.04 * row["step_s"] + row["delivery_ratio"] / 100} for row in flat]
    assert finding("Links 1 and 2", moving=falling).holds is True


def test_a_summary_that_loses_events_would_show() -> None:
    rows = [
        {"summary_bytes": size, "mesh_bytes": mesh, "control_bytes": 10, "delivery_ratio": ratio}
        for size, mesh, ratio in ((32, 200, 0.9), (1000, 100, 1.0))
    ]
    assert finding("A summary that is too small", budgets=rows).holds is False
    assert (
        finding("A summary that is too small", budgets=[{**row, "delivery_ratio": 1.0} for row in rows]).holds is True
    )


def test_every_claim_is_judged_from_the_quick_cases_columns() -> None:
    assert {experiment.name for experiment in EXPERIMENTS} == {
        "traffic",
        "throughput",
        "conversion",
        "moving",
        "growing",
        "budgets",
        "prediction",
    }
    for experiment in EXPERIMENTS:
        assert {tuple(case) for case in experiment.quick} <= {tuple(case) for case in experiment.cases}


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_quick_study_judges_every_claim() -> None:
    rows = {experiment.name: rows_of(experiment.measure, *experiment.quick) for experiment in EXPERIMENTS}
    assert [bool(judged.finding.measured) for judged in judge(STUDY, rows)] == [True] * len(CLAIMS)
