"""Workload presets: tables that fit any trace, with the rates and areas that the documentation states."""

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
