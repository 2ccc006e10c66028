"""Workload presets: what a network might publish and want, made to fit any trace.

A preset is a few publish and subscribe entries. Rates and areas come from plain facts about the trace, so that a
bus line with eight vehicles and a city with two thousand both get a workload of a sensible size: the event rate
grows with the nodes that are present, within bounds, and areas shrink where the trace is small.
`docs/scenarios.md` lists every preset with its rates and areas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from earshot.errors import ScenarioError, UnknownName

DEFAULT_PRESET = "mixed"
LEAST_PER_S, MOST_PER_S = 1.0, 4.0
"The least and the greatest number of events a second; between them, one for each fifty nodes that are present."
FEWEST_PUBLISHERS = 4
"A preset has at least this many publishers, or as many as there are nodes."

Tables = dict[str, dict[str, Any]]
"The tables `publish` and `subscribe` of a scenario."


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What a preset needs to know about a trace."""

    width_m: float
    height_m: float
    nodes: int
    "All nodes of the run."
    present: float | None = None
    "How many nodes are present at a time, on average; by default all."

    def __post_init__(self) -> None:
        if not (self.width_m >= 0 and self.height_m >= 0 and math.isfinite(self.width_m + self.height_m)):
            raise ScenarioError(f"a trace's extent must be finite, got {self.width_m} by {self.height_m} m")
        if self.nodes < 1:
            raise ScenarioError("a workload needs at least one node; check that the window holds rows of the trace")

    @property
    def mean_present(self) -> float:
        """How many nodes are present at a time; at least one."""
        return max(1.0, float(self.nodes) if self.present is None else min(self.present, self.nodes))

    @property
    def events_per_s(self) -> float:
        """How many events a second all nodes publish together."""
        return min(MOST_PER_S, max(LEAST_PER_S, self.mean_present / 50.0))

    def circle(self, radius_m: float) -> str:
        """A circle of this radius, or of a fifth of the trace's diagonal if that is less."""
        largest = math.hypot(self.width_m, self.height_m) / 5.0
        return f"circle:{max(10, round(min(radius_m, largest), -1)):g}m"


@dataclass(frozen=True, slots=True)
class Preset:
    """A workload that fits any trace."""

    name: str
    about: str
    tables: Callable[[TraceFacts, float], Tables]
    "The entries at this many events a second."


def preset_tables(name: str, facts: TraceFacts) -> Tables:
    """The tables `publish` and `subscribe` of this preset for this trace. UnknownName if there is no such preset."""
    if name not in PRESETS:
        raise UnknownName("workload", name, PRESETS)
    return PRESETS[name].tables(facts, facts.events_per_s)


def _publishers(facts: TraceFacts, share: float, events_per_s: float) -> dict[str, Any]:
    """This share of the nodes as publishers, and the rate of each with which those present reach the total."""
    count = min(facts.nodes, max(FEWEST_PUBLISHERS, round(share * facts.nodes)))
    present = max(1.0, count * facts.mean_present / facts.nodes)
    rate_per_s = float(f"{events_per_s / present:.4g}")
    return {"count": count, "when": {"kind": "poisson", "rate_per_s": rate_per_s, "of": "each"}}


def _alerts(facts: TraceFacts, events_per_s: float) -> Tables:
    publish = {
        **_publishers(facts, 0.2, events_per_s),
        "proximity": {"shape": facts.circle(300.0), "mobile": True},
        "lifespan_s": 10.0,
        "priority": 1,
        "events": {
            "kind": "attributes",
            "type": "Alert",
            "attributes": {
                "hazard": {"kind": "choice", "of": ["queue", "ice", "obstacle", "accident"], "zipf": 0.8},
                "severity": {"kind": "integer", "low": 1, "high": 5},
            },
        },
    }
    texts = ["Alert: approaching", "Alert: severity >= 3", "Alert: severity >= 2 and approaching"]
    return _entries("alerts", publish, {"share": 0.8, "filters": {"kind": "written", "texts": texts}})


def _parking(facts: TraceFacts, events_per_s: float) -> Tables:
    publish = {
        **_publishers(facts, 0.2, events_per_s),
        "proximity": {"shape": facts.circle(500.0), "mobile": True},
        "lifespan_s": 30.0,
        "events": {
            "kind": "attributes",
            "type": "Parking",
            "attributes": {
                "free": {"kind": "integer", "low": 1, "high": 20},
                "price": {"kind": "float", "low": 0.5, "high": 6.0},
                "covered": {"kind": "boolean", "chance": 0.4},
            },
        },
    }
    wanted = {"kind": "conjunctions", "of": "parking", "terms": [1, 2], "width": [0.3, 0.6]}
    return _entries("parking", publish, {"share": 0.3, "filters": wanted})


def _convoy(facts: TraceFacts, events_per_s: float) -> Tables:
    publish = {
        **_publishers(facts, 0.1, 2.0 * events_per_s),
        "proximity": {"shape": facts.circle(150.0), "mobile": True},
        "lifespan_s": 1.0,
        "priority": 2,
        "events": {
            "kind": "attributes",
            "type": "Convoy",
            "attributes": {
                "speed": {"kind": "float", "low": 0.0, "high": 40.0, "decimals": 1},
                "braking": {"kind": "boolean", "chance": 0.2},
            },
        },
    }
    texts = ["Convoy: speed >= 0", "Convoy: braking = true"]
    return _entries("convoy", publish, {"share": 0.6, "filters": {"kind": "written", "texts": texts}})


def _news(facts: TraceFacts, events_per_s: float) -> Tables:
    sections = ["local", "traffic", "weather", "sport", "culture"]
    publish = {
        **_publishers(facts, 0.02, events_per_s / 4.0),
        "lifespan_s": 60.0,
        "events": {
            "kind": "attributes",
            "type": "News",
            "attributes": {"section": {"kind": "choice", "of": sections, "zipf": 1.0}},
            "payload_bytes": 100,
        },
    }
    texts = [f"News: section = '{section}'" for section in sections]
    wanted = {"kind": "written", "texts": texts, "zipf": 1.0}
    return _entries("news", publish, {"share": 0.5, "each": [1, 2], "filters": wanted})


def _mixed(facts: TraceFacts, events_per_s: float) -> Tables:
    """All of the others, each at a quarter of its rate."""
    found: Tables = {"publish": {}, "subscribe": {}}
    for tables_of in (_alerts, _parking, _convoy, _news):
        for table, entries in tables_of(facts, events_per_s / 4.0).items():
            found[table].update(entries)
    return found


def _entries(name: str, publish: dict[str, Any], subscribe: dict[str, Any]) -> Tables:
    return {"publish": {name: publish}, "subscribe": {name: subscribe}}


PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("alerts-nearby", "hazards, for the traffic around them", _alerts),
        Preset("parking", "free parking places, for drivers who look for one", _parking),
        Preset("convoy", "how a vehicle moves and brakes, for those close behind it", _convoy),
        Preset("news", "news from a few nodes to all subscribers of a section, anywhere", _news),
        Preset("mixed", "all of these, each at a quarter of its rate", _mixed),
    )
}
