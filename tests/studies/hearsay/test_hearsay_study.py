"""Hearsay's study: its cases change what they say, its claims can fail, and its quick cases run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from earshot.errors import TraceError
from earshot.protocols.catalogue import build_settings
from earshot.protocols.hearsay.packets import HearsaySettings
from earshot.simulation.scenario.library import built_in, load_scenario
from earshot.studies.hearsay.runs import ABLATIONS, TRACES, changes_of, scenario_of, simulated
from earshot.studies.hearsay.study import SEEDS, STUDY
from earshot.studies.study import Finding, judge, study


def finding(start: str, **rows: list[dict[str, Any]]) -> Finding:
    (claim,) = [claim for claim in STUDY.claims if claim.claim.startswith(start)]
    return claim.judge({name.replace("_", " "): group for name, group in rows.items()})


def row(protocol: str, delivery: float = 1.0, bytes: float = 100.0, p95_s: float = 0.1, **more: Any) -> dict[str, Any]:
    figures = {"delivery": delivery, "bytes": bytes, "p95_s": p95_s, "precision": 1.0}
    return {"protocol": protocol, "seed": 201, **figures, **more}


def reachable(share: float, **where: str) -> dict[str, Any]:
    return {"seed": 201, "reachable": share, **where}


def test_the_study_is_found_by_its_name() -> None:
    assert study("hearsay") is STUDY


def test_the_seeds_are_not_those_of_tuning() -> None:
    used = {case["seed"] for experiment in STUDY.experiments for case in experiment.cases}
    assert used == set(SEEDS)
    assert min(used) > 200


def test_the_study_has_every_axis() -> None:
    seen: dict[str, set[Any]] = {}
    for experiment in STUDY.experiments:
        for case in experiment.cases:
            for key, value in case.items():
                seen.setdefault(key, set()).add(str(value))
    radios = {name for name in built_in() if not load_scenario(name).infrastructure}
    assert seen["scenario"] == radios
    assert seen["trace"] == {"bologna", "liverpool", "ns2", "market-town"}
    assert len(seen["radio"]) >= 4
    assert {"10", "1000"} <= seen["nodes"]
    assert {"0.0", "40.0"} <= seen["speed_m_s"]
    assert {"0.0", "5.0", "10.0", "20.0"} == seen["position_error_m"]
    assert seen["without"] == set(ABLATIONS)
    assert seen["lossy_m"]
    assert seen["presence_s"]
    assert len(seen["seed"]) >= 5


def test_a_trace_is_played_back_with_its_own_range_and_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    town = scenario_of({"trace": "market-town", "seed": 201, "radio": "802.11b-1M"})
    assert (town.medium.range_m, town.duration_s, len(town.names()) > 50) == (100.0, 120.0, True)  # type: ignore[union-attr]
    monkeypatch.setenv("EARSHOT_DATA", "nowhere")
    assert simulated({"trace": "ns2", "protocol": "hearsay", "seed": 201}) == []
    with pytest.raises(TraceError, match="EARSHOT_DATA"):
        scenario_of({"trace": "ns2", "seed": 201})


@pytest.mark.parametrize("trace", TRACES)
def test_the_traces_of_others_can_be_played_back(
    trace: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EARSHOT_DATA", str(shared_data))
    assert scenario_of({"trace": trace, "seed": 201}).names()


def test_every_case_is_a_scenario_and_every_ablation_a_setting() -> None:
    cases = [case for experiment in STUDY.experiments for case in experiment.cases if "scenario" in case]
    # Cases of several protocols and seeds have one scenario.
    made = {repr((case["scenario"], changes_of(case))): (case["scenario"], changes_of(case)) for case in cases}
    assert 10 < len(made) < len(cases)
    for scenario, changes in made.values():
        load_scenario(scenario).with_(changes)
    for settings in ABLATIONS.values():
        build_settings(HearsaySettings, settings)


@pytest.mark.parametrize(("ours", "holds"), [(0.98, True), (0.979, True), (0.977, False)])
def test_delivery_is_judged_against_the_best_other(ours: float, holds: bool) -> None:
    rows = [
        row("hearsay", ours, scenario="base"),
        row("cbf", 0.98, scenario="base"),
        row("steam", 0.9, scenario="base"),
    ]
    assert finding("it delivers no less than", scenarios=rows).holds is holds


@pytest.mark.parametrize(
    ("other", "delivery", "holds"), [(199.0, 0.995, False), (200.0, 0.995, True), (1.0, 0.9, True)]
)
def test_bytes_are_judged_against_the_cheapest_that_delivers_as_much(
    other: float, delivery: float, holds: bool
) -> None:
    rows = [row("hearsay", scenario="base"), row("cbf", delivery, other, scenario="base")]
    assert finding("half the bytes of", scenarios=rows).holds is holds


@pytest.mark.parametrize(("late_s", "holds"), [(0.3, True), (0.31, False)])
def test_latency_is_judged_against_flooding(late_s: float, holds: bool) -> None:
    rows = [row("hearsay", p95_s=late_s, scenario="base"), row("flooding", p95_s=0.1, scenario="base")]
    assert finding("the slowest", scenarios=rows).holds is holds


@pytest.mark.parametrize(("at_most", "holds"), [(0.96, True), (0.94, False)])
def test_load_is_carried_while_enough_arrives(at_most: float, holds: bool) -> None:
    rows = [
        row("hearsay", 1.0, scenario="city", rate=1.0),
        row("hearsay", at_most, scenario="city", rate=32.0),
        row("cbf", 0.99, scenario="city", rate=1.0),
    ]
    assert finding("it carries 32", load=rows, bounds=[reachable(1.0, scenario="city")]).holds is holds
    assert finding("it carries 32", load=rows, bounds=[]).holds is None


def test_between_two_loads_a_protocol_carries_what_the_line_through_them_says() -> None:
    rows = [row("hearsay", 1.0, scenario="city", rate=1.0), row("hearsay", 1.0, scenario="city", rate=40.0)]
    rows += [
        row("cbf", arrived, scenario="city", rate=rate) for rate, arrived in ((1.0, 1.0), (8.0, 0.96), (12.0, 0.92))
    ]
    rows += [row("steam", 0.94, scenario="city", rate=1.0), row("steam", 0.99, scenario="city", rate=8.0)]
    found = finding("it carries 4 times", load=rows, bounds=[reachable(1.0, scenario="city")])
    assert found.measured == "on lines between the loads tried, city: 40.0 times its own rate, cbf 9.0 times"
    assert found.holds is True


@pytest.mark.parametrize(("ours", "holds"), [(32.0, True), (16.0, False)])
def test_load_is_compared_with_the_best_other(ours: float, holds: bool) -> None:
    rows = [
        row("hearsay", 1.0, scenario="city", rate=1.0),
        row("hearsay", 1.0, scenario="city", rate=ours),
        row("steam", 0.99, scenario="city", rate=8.0),
        row("cbf", 0.99, scenario="city", rate=4.0),
    ]
    assert finding("it carries 4 times", load=rows, bounds=[reachable(1.0, scenario="city")]).holds is holds


@pytest.mark.parametrize(("ceiling", "holds"), [(0.98, True), (1.0, False)])
def test_delivery_of_the_reachable_is_judged_by_the_ceiling(ceiling: float, holds: bool) -> None:
    rows = [row("hearsay", 0.96, scenario="disaster"), row("steam", 0.8, scenario="disaster")]
    bound = [reachable(ceiling, scenario="disaster")]
    assert finding("in the disaster", scenarios=rows, bounds=bound).holds is holds
    assert finding("in the disaster", scenarios=rows, bounds=[]).holds is None


@pytest.mark.parametrize(("needed", "holds"), [(51.0, True), (50.0, False)])
def test_missing_half_the_bytes_is_judged_by_what_perfect_places_need(needed: float, holds: bool) -> None:
    rows = [row("hearsay", bytes=90.0, scenario="highway"), row("cbf", bytes=100.0, scenario="highway")]
    needs = {"everybody_bytes": needed, "omniscient_bytes": 40.0, "least_bytes": 30.0}
    bound = [{**reachable(1.0, scenario="highway"), **needs}]
    assert finding("where half", scenarios=rows, traces=[], bounds=bound).holds is holds
    on_trace = [{**one, "trace": "ns2"} for one in rows]
    bound = [{"trace": "ns2", **bound[0]}]
    assert finding("where half", scenarios=[], traces=on_trace, bounds=bound).holds is holds
    rows[0]["bytes"] = 50.0
    assert finding("where half", scenarios=rows, traces=[], bounds=bound).measured == "nowhere missed"


def test_traces_are_judged_like_scenarios() -> None:
    rows = [row("hearsay", 0.9, 100.0, trace="ns2"), row("cbf", 0.91, 150.0, trace="ns2")]
    assert finding("it delivers no less on recorded", traces=rows).holds is False
    assert finding("half the bytes on recorded", traces=rows).holds is False
    rows[1].update(delivery=0.9, bytes=200.0)
    assert finding("it delivers no less on recorded", traces=rows).holds is True
    assert finding("half the bytes on recorded", traces=rows).holds is True


def test_an_ingredient_without_effect_fails_its_claim() -> None:
    rows = [row("hearsay", scenario="base", without=name) for name in ("whole", "repair")]
    assert finding("every ingredient", ingredients=rows).holds is False
    rows[1]["delivery"] = 0.9
    assert finding("every ingredient", ingredients=rows).holds is True


def test_the_quick_cases_run_and_every_claim_is_judged() -> None:
    rows = {
        experiment.name: [{**case, **found} for case in experiment.quick for found in experiment.measure(case)]
        for experiment in STUDY.experiments
    }
    judged = judge(STUDY, rows)
    assert len(judged) == len(STUDY.claims)
    unmeasured = [one.claim.claim for one in judged if one.finding.holds is None]
    assert unmeasured == ["in the disaster it delivers 97 % of what is reachable"], "its runs are not quick"
    assert all(one.finding.measured and "nan" not in one.finding.measured for one in judged)


def test_a_run_without_an_expected_delivery_proves_nothing() -> None:
    rows = [{**row(name, trace="ns2"), "delivery": None, "bytes": None} for name in ("hearsay", "cbf")]
    assert finding("it delivers no less on recorded", traces=rows).holds is None
    assert finding("half the bytes on recorded", traces=rows).holds is None


def test_a_lead_that_chance_could_have_made_is_in_doubt() -> None:
    deliveries = {"hearsay": (0.99, 0.90), "cbf": (0.90, 0.91)}
    rows = [
        row(name, delivery, scenario="base", seed=seed)
        for name, each in deliveries.items()
        for seed, delivery in enumerate(each)
    ]
    (reading,) = finding("it delivers no less than", scenarios=rows).readings
    assert (reading.holds, reading.in_doubt, reading.seeds) == (True, True, 2)


@pytest.mark.parametrize(("loss", "dearer", "holds"), [(0.002, 1.0, True), (0.0, 1.021, True), (0.001, 1.019, False)])
def test_an_ingredient_pays_in_delivery_or_in_bytes(loss: float, dearer: float, holds: bool) -> None:
    whole = row("hearsay", 1.0, 100.0, scenario="base", without="whole")
    without = row("hearsay", 1.0 - loss, 100.0 * dearer, scenario="base", without="echo")
    assert finding("every ingredient", ingredients=[whole, without]).holds is holds
