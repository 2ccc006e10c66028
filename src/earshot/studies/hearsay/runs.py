"""One simulated run of the study: a built-in scenario with changes, a protocol, a seed; its figures as one row."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earshot.errors import TraceError
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.scenario.library import built_in_traces, load_scenario
from earshot.simulation.scenario.scenario import Scenario
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


@dataclass(frozen=True)
class RecordedTrace:
    """A trace that others recorded, and what differs from `base` where it is played back."""

    file: str
    "In the folder EARSHOT_DATA; empty: it ships with this package."
    range_m: float
    duration_s: float
    warm_up_s: float = 20.0
    start_s: float | None = None
    "The trace's time at which the run begins; None: its first."
    max_gap_s: float = 30.0
    "A node without a row for longer has left."
    few: bool = False
    "Of few nodes, two publish more often and all subscribe."


TRACES: Mapping[str, RecordedTrace] = {
    "bologna": RecordedTrace("sumo-bologna/acosta_1800_2100.fcd.csv.gz", 150.0, 40.0, warm_up_s=15.0),
    "liverpool": RecordedTrace("liverpool-bus/route14_outbound.csv", 1000.0, 7200.0, max_gap_s=120.0, few=True),
    "ns2": RecordedTrace("ns2-mobility/default.ns_movements", 60.0, 100.0, few=True),
    "market-town": RecordedTrace("", 100.0, 120.0, start_s=270.0),
}
"The workload is that of `base`: topics, some of them popular."


def trace_file(trace: str) -> Path | None:
    """The trace's file; None where it is not there."""
    name = TRACES[trace].file
    file = Path(os.environ.get("EARSHOT_DATA", "data"), name) if name else built_in_traces()[trace]
    return file.resolve() if file.is_file() else None


def scenario_of(case: Case) -> Scenario:
    """The scenario of a case, with its changes."""
    if "trace" not in case:
        return load_scenario(case["scenario"]).with_(changes_of(case))
    file, trace = trace_file(case["trace"]), TRACES[case["trace"]]
    if file is None:
        raise TraceError(f"no file of the trace {case['trace']}; name the folder of the traces in EARSHOT_DATA")
    changes = {"duration_s": trace.duration_s, "warm_up_s": trace.warm_up_s, **changes_of(case)}
    changes["medium"] = {"range_m": trace.range_m, **changes.get("medium", {})}
    playback: dict[str, Any] = {"kind": "playback", "file": str(file), "max_gap_s": trace.max_gap_s}
    if trace.start_s is not None:
        playback |= {"start_s": trace.start_s, "end_s": trace.start_s + trace.duration_s}
    changes["nodes"] = {"node": {"count": None, "mobility": playback}}
    if trace.few:
        changes["publish"] = {"news": {"count": 2}}
        changes["subscribe"] = {"news": {"share": 1.0, "each": [5, 5]}}
    return load_scenario("base").with_(changes)


def simulated(case: Case) -> list[Row]:
    """The figures of one run. The case names `scenario` or `trace`, `protocol` and `seed`, and perhaps `without` (an
    ingredient of Hearsay that is taken out), or what `changes_of` reads. A trace without its file gives no row."""
    if "trace" in case and trace_file(case["trace"]) is None:
        return []
    scenario = scenario_of(case)
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
