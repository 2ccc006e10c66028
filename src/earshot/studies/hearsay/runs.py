"""One simulated run of the study: a built-in scenario with changes, a protocol, a seed; its figures as one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.scenario.library import load_scenario
from earshot.studies.figures import Row
from earshot.studies.study import Case

ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "whole": {},
    "suppression": {"worth": 0.0},
    "waits": {"wait_frames": 0.0},
    "echo": {"echo": 1.0},
    "patience": {"patience": 1.0},
    "area limit": {"area_margin": 1e9},
    "repair": {"repair_airtime": 0.0},
    "early hellos": {"hello_drift": 1e9},
    "learnt reach": {"reach_trust": 1e9},
    "place": {"knows_place": False},
}
"By ingredient, the settings that take it out."


def simulated(case: Case) -> list[Row]:
    """The figures of one run. The case names `scenario`, `protocol` and `seed`, and perhaps `changes` to the scenario,
    `without` (an ingredient of Hearsay that is taken out), or what the other keys below say."""
    scenario = load_scenario(case["scenario"]).with_(changes_of(case))
    settings = ABLATIONS[case.get("without", "whole")]
    summary = summarise(scenario, run(scenario, case["protocol"], settings, seed=case["seed"]))
    return [
        {
            "delivery": summary.delivery_ratio,
            "expected": summary.expected,
            "bytes": summary.bytes_per_delivery,
            "cost": summary.cost,
            "p95_s": summary.latency_p95_s,
            "precision": summary.precision,
        }
    ]


def changes_of(case: Case) -> dict[str, Any]:
    """What a case changes in its scenario, as the scenario's own tables."""
    changes: dict[str, Any] = {}
    medium: dict[str, Any] = {}
    faults: dict[str, Any] = {}
    if "radio" in case:
        medium["radio"] = case["radio"]
    if "lossy_m" in case:
        certain_m, range_m = case["lossy_m"]
        medium |= {"kind": "lossy", "certain_m": certain_m, "range_m": range_m}
    if "rate" in case:
        changes["event_rate"] = case["rate"]
    if "duration_s" in case:
        changes["duration_s"] = case["duration_s"]
    if "position_error_m" in case:
        faults["position_error_m"] = case["position_error_m"]
    if "presence_s" in case:
        faults["churn"] = {"mean_presence_s": case["presence_s"], "mean_absence_s": case["presence_s"] / 10.0}
    if "nodes" in case:
        changes["nodes"] = {"node": {"count": case["nodes"]}}
    if "speed_m_s" in case:
        speed_m_s = case["speed_m_s"]
        mobility: dict[str, Any] = {
            "kind": "random-waypoint",
            "speed_m_s": [speed_m_s, speed_m_s],
            "pause_s": [0.0, 0.0],
        }
        if not speed_m_s:
            mobility = {"kind": "grid", "jitter_m": 40.0}
        changes["nodes"] = {"node": {"mobility": mobility}}
    if medium:
        changes["medium"] = medium
    if faults:
        changes["faults"] = faults
    return changes
