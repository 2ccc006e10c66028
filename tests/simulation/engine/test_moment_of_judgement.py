"""Every protocol and the oracle ask about the moment of publication, however slowly an event travels."""

from typing import Any

import pytest

from earshot.protocols.catalogue import PROTOCOLS
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.settings_reader import Where, read
from sizes import LONG, sized


def published(type: str, **more: Any) -> dict[str, Any]:
    attributes = {"x": {"kind": "integer", "low": 0, "high": 9}}
    return {
        "count": 5,
        "events": {"kind": "attributes", "type": type, "attributes": attributes},
        "when": {"kind": "periodic", "interval_s": 3.0},
        **more,
    }


SLOW: dict[str, Any] = {
    "duration_s": 45.0 if LONG else 30.0,
    "warm_up_s": 5.0,
    "area": {"width_m": 500.0, "height_m": 500.0},
    "medium": {"kind": "unit-disk", "range_m": 200.0, "latency_s": 0.6},
    "nodes": {"n": {"count": 24, "mobility": {"kind": "random-waypoint", "speed_m_s": [20.0, 40.0]}}},
    "publish": {
        "near": published("Near", proximity={"shape": "circle:150m", "mobile": True}),
        "fixed": published("Fixed", proximity={"shape": "rectangle:200x150m", "mobile": False}),
        "anywhere": published("Anywhere"),
    },
    "subscribe": {
        "near": {"filters": {"kind": "written", "texts": ["Near: x >= 0", "Near: approaching", "Fixed: x >= 0"]}},
        "anywhere": {"filters": {"kind": "written", "texts": ["Anywhere: within 120 m", "Anywhere: receding"]}},
    },
}
"Nodes at 20 to 40 m/s, areas of 150 m, 0.6 s a hop: who is inside changes while an event travels."

COME_AND_GO = {"faults": {"churn": {"mean_presence_s": 15.0, "mean_absence_s": 3.0}}}


@pytest.mark.parametrize("changes", [{}, COME_AND_GO], ids=["all stay", "nodes come and go"])
@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_whoever_gets_an_event_was_to_get_it_when_it_was_published(protocol: str, changes: dict[str, Any]) -> None:
    scenario = read(Scenario, SLOW, Where("slow")).with_({"name": "slow", **changes})
    for seed in range(sized(1, 8)):
        summary = summarise(scenario, run(scenario, protocol, seed=seed))
        assert summary.delivered > 0
        assert summary.precision == 1.0
