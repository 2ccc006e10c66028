"""Hearsay's study: its cases change what they say, its claims can fail, and its quick cases run."""

from __future__ import annotations

from typing import Any

import pytest

from earshot.protocols.catalogue import build_settings
from earshot.protocols.hearsay.packets import HearsaySettings
from earshot.simulation.scenario.library import load_scenario
from earshot.studies.hearsay.runs import ABLATIONS, changes_of, simulated
from earshot.studies.hearsay.study import SEEDS, STUDY
from earshot.studies.study import Finding, judge, study


def finding(start: str, **rows: list[dict[str, Any]]) -> Finding:
    (claim,) = [claim for claim in STUDY.claims if claim.claim.startswith(start)]
    return claim.judge({name.replace("_", " "): group for name, group in rows.items()})


def row(protocol: str, delivery: float = 1.0, bytes: float = 100.0, p95_s: float = 0.1, **more: Any) -> dict[str, Any]:
    return {"protocol": protocol, "delivery": delivery, "bytes": bytes, "p95_s": p95_s, "precision": 1.0, **more}


def test_the_study_is_found_by_its_name() -> None:
    assert study("hearsay") is STUDY


def test_the_seeds_are_not_those_of_tuning() -> None:
    used = {case["seed"] for experiment in STUDY.experiments for case in experiment.cases}
    assert used == set(SEEDS)
    assert min(used) > 200


def test_every_case_is_a_scenario_and_every_ablation_a_setting() -> None:
    for experiment in STUDY.experiments:
        for case in experiment.cases:
            load_scenario(case["scenario"]).with_(changes_of(case))
    for settings in ABLATIONS.values():
        build_settings(HearsaySettings, settings)


@pytest.mark.parametrize(("ours", "holds"), [(0.98, True), (0.979, True), (0.977, False)])
def test_delivery_is_judged_against_the_best_other(ours: float, holds: bool) -> None:
    rows = [
        row("hearsay", ours, scenario="base"),
        row("cbf", 0.98, scenario="base"),
        row("steam", 0.9, scenario="base"),
    ]
    assert finding("it delivers no less", scenarios=rows).holds is holds


@pytest.mark.parametrize(
    ("other", "delivery", "holds"), [(199.0, 0.995, False), (200.0, 0.995, True), (1.0, 0.9, True)]
)
def test_bytes_are_judged_against_the_cheapest_that_delivers_as_much(
    other: float, delivery: float, holds: bool
) -> None:
    rows = [row("hearsay", scenario="base"), row("cbf", delivery, other, scenario="base")]
    assert finding("half the bytes", scenarios=rows).holds is holds


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
    assert finding("it carries", load=rows).holds is holds


def test_an_ingredient_without_effect_fails_its_claim() -> None:
    rows = [row("hearsay", scenario="base", without=name) for name in ("whole", "repair")]
    assert finding("every ingredient", ingredients=rows).holds is False
    rows[1]["delivery"] = 0.9
    assert finding("every ingredient", ingredients=rows).holds is True


def test_the_quick_cases_run_and_every_claim_is_judged() -> None:
    rows = {
        experiment.name: [{**case, **found} for case in experiment.quick for found in simulated(case)]
        for experiment in STUDY.experiments
    }
    judged = judge(STUDY, rows)
    assert len(judged) == len(STUDY.claims)
    assert all(one.finding.measured for one in judged)
