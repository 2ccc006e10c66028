"""Workload presets: tables that fit any trace, with the rates and areas that the documentation states."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import ScenarioError, UnknownName
from earshot.events import Event
from earshot.protocols.catalogue import PROTOCOLS
from earshot.simulation import Scenario, run
from earshot.simulation.settings_reader import Where, read
from earshot.simulation.workload.presets import PRESETS, TraceFacts, preset_tables

facts = st.builds(
    TraceFacts,
    width_m=st.floats(0.0, 5e4),
    height_m=st.floats(0.0, 5e4),
    nodes=st.integers(1, 5000),
    present=st.none() | st.floats(0.0, 5000.0),
)


def scenario(name: str, facts: TraceFacts, nodes: int, duration_s: float) -> Scenario:
    """The preset's workload over still nodes."""
    table = {
        "duration_s": duration_s,
        "area": {"width_m": max(1.0, facts.width_m), "height_m": max(1.0, facts.height_m)},
        "nodes": {"car": {"count": nodes}},
        **preset_tables(name, facts),
    }
    return read(Scenario, table, Where(name))


@pytest.mark.parametrize("name", PRESETS)
@given(facts=facts)
def test_every_preset_is_a_valid_workload_for_any_trace(name: str, facts: TraceFacts):
    found = scenario(name, facts, facts.nodes, 10.0)
    assert set(found.publish) == set(found.subscribe)


@pytest.mark.parametrize(
    ("name", "events_per_s"), [("alerts-nearby", 2.4), ("parking", 2.4), ("convoy", 4.8), ("news", 0.6)]
)
def test_the_present_nodes_together_publish_at_the_stated_rate(name: str, events_per_s: float):
    still = TraceFacts(2000.0, 1000.0, 120)
    actions = scenario(name, still, 120, 2000.0).workload(1).actions
    events = [action for action in actions if isinstance(action.what, Event)]
    assert len(events) / 2000.0 == pytest.approx(events_per_s, rel=0.1)


def test_mixed_has_every_other_preset_at_a_quarter_of_its_rate():
    some = TraceFacts(2000.0, 1000.0, 120, 60.0)
    mixed = scenario("mixed", some, 120, 10.0)
    for name in ("alerts-nearby", "parking", "convoy", "news"):
        for entry, alone in scenario(name, some, 120, 10.0).publish.items():
            rate = alone.when.rate_per_s / 4.0
            assert mixed.publish[entry].when.rate_per_s == pytest.approx(rate, rel=1e-3)
            assert msgspec.structs.replace(mixed.publish[entry], when=alone.when) == alone


def test_rates_are_those_of_the_nodes_that_are_present():
    brief = preset_tables("alerts-nearby", TraceFacts(2000.0, 1000.0, 400, 100.0))["publish"]["alerts"]
    assert (brief["count"], brief["when"]["rate_per_s"]) == (80, 0.1)


def test_areas_shrink_with_a_small_trace():
    assert TraceFacts(3000.0, 4000.0, 10).circle(300.0) == "circle:300m"
    assert TraceFacts(300.0, 400.0, 10).circle(300.0) == "circle:100m"
    assert TraceFacts(0.0, 0.0, 10).circle(300.0) == "circle:10m"


def test_an_unknown_preset_and_a_trace_without_nodes_are_refused():
    with pytest.raises(UnknownName, match="no workload named 'alert-nearby'; did you mean 'alerts-nearby'"):
        preset_tables("alert-nearby", TraceFacts(1.0, 1.0, 1))
    with pytest.raises(ScenarioError, match="at least one node"):
        TraceFacts(1.0, 1.0, 0)


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_every_protocol_takes_the_mixed_workload(protocol: str):
    """GeoRendezvous, for one, refuses filters that name no event type."""
    found = scenario("mixed", TraceFacts(300.0, 300.0, 12), 12, 30.0)
    assert run(found, protocol, seed=1).published


WIDE = TraceFacts(20_000.0, 15_000.0, 100, 50.0)
"A hundred nodes, of which half are present: one event a second."


def rate(count: int, per_s: float) -> dict[str, object]:
    return {"count": count, "when": {"kind": "poisson", "rate_per_s": per_s, "of": "each"}}


def test_the_preset_of_alerts():
    assert preset_tables("alerts-nearby", WIDE) == {
        "publish": {
            "alerts": {
                **rate(20, 0.1),
                "proximity": {"shape": "circle:300m", "mobile": True},
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
        },
        "subscribe": {
            "alerts": {
                "share": 0.8,
                "filters": {
                    "kind": "written",
                    "texts": ["Alert: approaching", "Alert: severity >= 3", "Alert: severity >= 2 and approaching"],
                },
            }
        },
    }


def test_the_preset_of_parking_places():
    assert preset_tables("parking", WIDE) == {
        "publish": {
            "parking": {
                **rate(20, 0.1),
                "proximity": {"shape": "circle:500m", "mobile": True},
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
        },
        "subscribe": {
            "parking": {
                "share": 0.3,
                "filters": {"kind": "conjunctions", "of": "parking", "terms": [1, 2], "width": [0.3, 0.6]},
            }
        },
    }


def test_the_preset_of_convoys():
    assert preset_tables("convoy", WIDE) == {
        "publish": {
            "convoy": {
                **rate(10, 0.4),
                "proximity": {"shape": "circle:150m", "mobile": True},
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
        },
        "subscribe": {
            "convoy": {
                "share": 0.6,
                "filters": {"kind": "written", "texts": ["Convoy: speed >= 0", "Convoy: braking = true"]},
            }
        },
    }


def test_the_preset_of_news():
    sections = ["local", "traffic", "weather", "sport", "culture"]
    assert preset_tables("news", WIDE) == {
        "publish": {
            "news": {
                **rate(4, 0.125),
                "lifespan_s": 60.0,
                "events": {
                    "kind": "attributes",
                    "type": "News",
                    "attributes": {"section": {"kind": "choice", "of": sections, "zipf": 1.0}},
                    "payload_bytes": 100,
                },
            }
        },
        "subscribe": {
            "news": {
                "share": 0.5,
                "each": [1, 2],
                "filters": {
                    "kind": "written",
                    "texts": [f"News: section = '{name}'" for name in sections],
                    "zipf": 1.0,
                },
            }
        },
    }


@pytest.mark.parametrize(
    ("nodes", "present", "expected"),
    [(10, None, 1.0), (50, None, 1.0), (100, None, 2.0), (100, 75.0, 1.5), (500, None, 4.0), (60, 90.0, 1.2)],
)
def test_the_rate_grows_with_the_present_nodes_within_bounds(nodes: int, present: float | None, expected: float):
    assert TraceFacts(1.0, 1.0, nodes, present).events_per_s == pytest.approx(expected)


@pytest.mark.parametrize(
    ("nodes", "present", "count", "rate_per_s"), [(3, None, 3, 0.3333), (1, 0.0, 1, 1.0), (4, 1.0, 4, 1.0)]
)
def test_a_small_trace_has_four_publishers_or_as_many_as_nodes(
    nodes: int, present: float | None, count: int, rate_per_s: float
):
    entry = preset_tables("alerts-nearby", TraceFacts(1.0, 1.0, nodes, present))["publish"]["alerts"]
    assert (entry["count"], entry["when"]["rate_per_s"]) == (count, rate_per_s)


@pytest.mark.parametrize(("width_m", "height_m"), [(-1.0, 1.0), (1.0, -1.0), (math.inf, 1.0), (1.0, math.nan)])
def test_an_extent_that_is_none_is_refused(width_m: float, height_m: float):
    with pytest.raises(ScenarioError, match="a trace's extent must be finite"):
        TraceFacts(width_m, height_m, 1)
    assert TraceFacts(0.0, 0.0, 1).mean_present == 1.0
