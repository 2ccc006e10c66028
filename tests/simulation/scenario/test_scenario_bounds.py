"""The largest scenario that may run, names and laws of its nodes, and the tables that it is merged from."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from earshot.errors import ScenarioError
from earshot.simulation.media.medium_settings import Contention, Overlay, UnitDisk
from earshot.simulation.mobility import Given, Playback
from earshot.simulation.scenario.library import _absolute, built_in_traces, load_scenario
from earshot.simulation.scenario.scenario import (
    NodeGroup,
    PowerLaw,
    Scenario,
    UniformAbility,
    draw_abilities,
    leaves,
    merged,
    nested,
    spelled,
    without,
)
from earshot.simulation.workload.generators import Numbers
from earshot.simulation.workload.traffic import Poisson, PublishEntry


def town(**more: Any) -> Scenario:
    return Scenario(**{"duration_s": 100.0, "nodes": {"n": NodeGroup(count=4)}, **more})


def news(rate_per_s: float, **more: Any) -> dict[str, PublishEntry]:
    return {"news": PublishEntry(events=Numbers(), when=Poisson(rate_per_s=rate_per_s, **more))}


# The largest that may be.


@pytest.mark.parametrize(
    ("most", "more", "problem"),
    [
        ({"duration_s": 1e11}, {"duration_s": 1.01e11}, "duration_s must be at most 1e"),
        ({"medium": UnitDisk(range_m=1e12)}, {"medium": UnitDisk(range_m=1.01e12)}, "medium.range_m must be at most"),
        (
            {"medium": Contention(range_m=9.0, carrier_range_m=1e12)},
            {"medium": Contention(range_m=9.0, carrier_range_m=1.01e12)},
            "medium.carrier_range_m must be at most",
        ),
        ({"warm_up_s": 60.0, "cool_down_s": 39.9}, {"warm_up_s": 60.0, "cool_down_s": 40.0}, "duration_s must exceed"),
        ({"publish": news(1e6)}, {"publish": news(1.01e6)}, "publish.news: about 1.01e"),
        (
            {"publish": news(1e6), "event_rate": 1.0, "warm_up_s": 0.0},
            {"publish": news(1e6), "event_rate": 1.01},
            "publish.news: about 1.01e",
        ),
        ({"publish": news(1.25e6), "warm_up_s": 20.0}, {"publish": news(1.25e6), "warm_up_s": 19.0}, "publish.news: "),
        ({"publish": news(2e6), "cool_down_s": 50.0}, {"publish": news(2e6), "cool_down_s": 49.0}, "publish.news: "),
        ({"publish": news(2.5e5, of="each")}, {"publish": news(2.6e5, of="each")}, "publish.news: about 1.04e"),
    ],
)
def test_a_scenario_may_be_as_large_as_this_and_no_larger(
    most: dict[str, Any], more: dict[str, Any], problem: str
) -> None:
    assert town(**most).node_count == 4
    with pytest.raises(ScenarioError) as refused:
        town(**more)
    assert str(refused.value).startswith(problem)


def test_publishers_are_counted_by_the_groups_and_nodes_that_an_entry_names() -> None:
    groups = {"car": NodeGroup(count=6), "bus": NodeGroup(count=3)}

    def with_publishers(nodes: Any, rate_per_s: float) -> Scenario:
        when = Poisson(rate_per_s=rate_per_s, of="each")
        return town(nodes=groups, publish={"news": PublishEntry(events=Numbers(), when=when, nodes=nodes)})

    for nodes, count in (("all", 9), ("car", 6), ("bus-1", 1), (("bus", "car-0"), 4)):
        most = 1e6 / count
        assert with_publishers(nodes, most * 0.999).names()[0] == "bus-0", "groups are in the order of their names"
        with pytest.raises(ScenarioError, match=r"publish\.news: about "):
            with_publishers(nodes, most * 1.001)


# Nodes.


@pytest.mark.parametrize(
    ("count", "last"), [(1, "bus-0"), (10, "bus-9"), (11, "bus-10"), (100, "bus-99"), (101, "bus-100")]
)
def test_nodes_are_numbered_with_as_many_digits_as_the_last_has(count: int, last: str) -> None:
    names = NodeGroup(count=count).node_names("bus", 1.0)
    assert (len(names), names[-1], len({len(name) for name in names})) == (count, last, 1)
    assert NodeGroup(count=0).node_names("bus", 1.0) == ()


def test_a_group_has_as_many_names_and_places_as_nodes() -> None:
    places = Given(((0.0, 0.0), (1.0, 1.0)))
    assert NodeGroup(count=2, names=("a", "b"), mobility=places).node_names("n", 1.0) == ("a", "b")
    for given, problem in (
        ({"count": 3, "mobility": places}, "count is 3, but given mobility has 2 nodes"),
        ({"count": 3, "names": ("a", "b")}, "count is 3, but there are 2 names"),
        ({"names": ("a",), "mobility": places}, "given mobility has 2 nodes, but there are 1 names"),
        ({"names": ("a", "a")}, "names must differ and not be empty"),
        ({"names": ("a", "")}, "names must differ and not be empty"),
        ({}, "count is missing"),
        ({"names": ("a",), "mobility": Playback(Path("t.csv"))}, "a trace names its nodes itself: leave names out"),
    ):
        with pytest.raises(ScenarioError) as refused:
            NodeGroup(**given)  # type: ignore[arg-type]
        assert str(refused.value) == problem


class Fixed(Random):
    """Draws one number only."""

    def __init__(self, drawn: float) -> None:
        super().__init__()
        self.drawn = drawn

    def random(self) -> float:
        return self.drawn


@pytest.mark.parametrize(
    ("law", "drawn", "ability"),
    [
        (PowerLaw(exponent=2.0), 0.0, 1.0),
        (PowerLaw(exponent=2.0), 0.5, 2.0),
        (PowerLaw(exponent=2.0, least=3.0), 0.75, 12.0),
        (PowerLaw(exponent=3.0), 0.75, 2.0),
        (PowerLaw(exponent=2.0, most=4.0), 0.5, 1.6),
        (PowerLaw(exponent=2.0, least=3.0, most=12.0), 0.5, 4.8),
        (PowerLaw(exponent=2.0, most=4.0), 1.0 - 2.0**-53, 4.0),
        (UniformAbility(least=2.0, most=6.0), 0.25, 3.0),
    ],
)
def test_an_ability_is_that_which_the_inverse_of_its_law_gives(law: Any, drawn: float, ability: float) -> None:
    """P(ability > a) is (a / least) ** (1 - exponent); with a greatest ability this is cut off there."""
    assert law.draw(Fixed(drawn)) == pytest.approx(ability)


def test_a_law_needs_room_between_its_least_and_its_most() -> None:
    assert (UniformAbility(0.0, 0.1).most, PowerLaw(least=1.0, most=1.1).most) == (0.1, 1.1)
    for wrong in (lambda: UniformAbility(1.0, 1.0), lambda: UniformAbility(-0.1, 1.0), lambda: PowerLaw(2.5, 2.0, 2.0)):
        with pytest.raises(ScenarioError):
            wrong()


def test_each_node_has_a_source_of_chance_of_its_own_for_its_ability() -> None:
    law = UniformAbility()
    drawn = draw_abilities(law, ("a", "b", "c"), 3)
    assert drawn == [Random(f"3:ability:{name}").uniform(0.0, 1.0) for name in "abc"]
    assert draw_abilities(law, ("c", "a"), 3) == [drawn[2], drawn[0]]


def test_infrastructure_is_written_out_and_needs_a_radio_beside_it() -> None:
    assert (town(infrastructure=True).infrastructure, town().infrastructure) == (Overlay(), False)
    assert town(medium=Overlay()).medium == Overlay()
    for given in (True, Overlay(latency_s=0.2)):
        with pytest.raises(ScenarioError, match="infrastructure needs a radio beside it"):
            town(medium=Overlay(), infrastructure=given)


# Tables.


def test_a_key_is_taken_out_of_a_table_however_deep_and_the_table_stays() -> None:
    table = {"a": {"b": {"c": 1, "d": 2}, "e": 3}, "f": 4}
    assert without(table, "f") == {"a": {"b": {"c": 1, "d": 2}, "e": 3}}
    assert without(table, "a.b.c") == {"a": {"b": {"d": 2}, "e": 3}, "f": 4}
    assert without(table, "a.b") == {"a": {"e": 3}, "f": 4}
    assert table == {"a": {"b": {"c": 1, "d": 2}, "e": 3}, "f": 4}
    for absent in ("g", "a.g", "f.g", "a.b.c.d"):
        with pytest.raises(KeyError):
            without(table, absent)


def test_the_leaves_of_a_table_are_its_dotted_keys() -> None:
    assert leaves({"a": {"b": {"c": 1}, "e": [2]}, "f": {}, "g": 4}) == ["a.b.c", "a.e", "f", "g"]
    assert leaves({}) == []


def test_dotted_keys_become_tables_within_tables() -> None:
    assert nested({"a.b": 1, "a.c.d": 2, "e": {"f": 3}, "e.g": 4}) == {
        "a": {"b": 1, "c": {"d": 2}}, "e": {"f": 3, "g": 4},
    }  # fmt: skip
    with pytest.raises(ScenarioError, match=r"a\.b: a is set as a whole and in parts"):
        nested({"a": 1, "a.b": 2})


@pytest.mark.parametrize(
    ("medium", "kind"),
    [
        ({"radio": "ideal"}, "unit-disk"),
        ({"radio": "lora-sf7"}, "contention"),
        ({"radio": "lora-sf7", "kind": "lossy"}, "lossy"),
        ({"range_m": 5}, None),
    ],
)
def test_a_radio_alone_says_the_kind_of_medium(medium: dict[str, Any], kind: str | None) -> None:
    found = spelled({"duration_s": 1, "medium": medium})
    assert (found["duration_s"], found["medium"].get("kind")) == (1, kind)
    assert {name: found["medium"][name] for name in medium} == medium


def test_a_table_is_merged_key_by_key_and_another_kind_keeps_the_keys_that_it_has() -> None:
    under = {"medium": {"kind": "lossy", "range_m": 9, "certain_m": 3}, "duration_s": 5, "name": "a"}
    for over, medium in (
        ({"range_m": 7}, {"kind": "lossy", "range_m": 7, "certain_m": 3}),
        ({"kind": "lossy", "range_m": 7}, {"kind": "lossy", "range_m": 7, "certain_m": 3}),
        ({"kind": "unit-disk"}, {"kind": "unit-disk", "range_m": 9}),
        ("unit-disk", {"kind": "unit-disk", "range_m": 9}),
        ({"certain_m": None}, {"kind": "lossy", "range_m": 9}),
    ):
        assert merged(under, {"medium": over}, Scenario) == {**under, "medium": medium}
    assert merged(under, {"medium": None, "name": None}, Scenario) == {"duration_s": 5}
    assert merged({"medium": "lossy"}, {"medium": {"range_m": 7}}, Scenario) == {
        "medium": {"kind": "lossy", "range_m": 7},
    }  # fmt: skip


# Files that a file names.


def test_every_file_that_a_scenario_names_is_found_from_its_folder() -> None:
    folder = Path("/towns/one")
    table = {
        "nodes": {
            "bus": {"mobility": {"kind": "playback", "file": "bus.csv"}},
            "tram": {"mobility": {"kind": "playback", "lake": "../lake"}},
            "car": {"mobility": "./drive.py:Drive"},
            "van": {"mobility": {"kind": "./drive.py:Drive", "file": "/data/van.csv"}},
        },
        "publish": {
            "news": {"events": {"kind": "file", "file": "news.jsonl"}},
            "ads": {"events": {"use": "ads.py:Ads"}},
            "far": {"events": {"kind": "file", "lake": "s3a://bucket/lake"}},
        },
        "medium": {"kind": "air.py:Air", "reception": "./walls.py:Walls"},
        "own": {"events": "e.jsonl", "subscriptions": "s.jsonl", "lake": "lake"},
        "name": "one.py",
    }
    assert _absolute(table, folder) == {
        "nodes": {
            "bus": {"mobility": {"kind": "playback", "file": "/towns/one/bus.csv"}},
            "tram": {"mobility": {"kind": "playback", "lake": "/towns/lake"}},
            "car": {"mobility": "/towns/one/drive.py:Drive"},
            "van": {"mobility": {"kind": "/towns/one/drive.py:Drive", "file": "/data/van.csv"}},
        },
        "publish": {
            "news": {"events": {"kind": "file", "file": "/towns/one/news.jsonl"}},
            "ads": {"events": {"use": "/towns/one/ads.py:Ads"}},
            "far": {"events": {"kind": "file", "lake": "s3a://bucket/lake"}},
        },
        "medium": {"kind": "/towns/one/air.py:Air", "reception": "/towns/one/walls.py:Walls"},
        "own": {
            "events": "/towns/one/e.jsonl", "subscriptions": "/towns/one/s.jsonl", "lake": "/towns/one/lake",
        },
        "name": "one.py",
    }  # fmt: skip
    assert _absolute({"medium": "air.py:Air", "nodes": 3}, folder) == {"medium": "/towns/one/air.py:Air", "nodes": 3}


def test_an_error_names_the_file_that_set_the_key(tmp_path: Path) -> None:
    (tmp_path / "below.toml").write_text('duration_s = 9\nnodes.n.count = 2\nmedium.range_m = "far"\n')
    (tmp_path / "above.toml").write_text('base = "below.toml"\nduration_s = "long"\n')
    with pytest.raises(ScenarioError, match=r"above\.toml: duration_s: "):
        load_scenario(tmp_path / "above.toml")
    (tmp_path / "above.toml").write_text('base = "below.toml"\n')
    with pytest.raises(ScenarioError, match=r"below\.toml: medium\.range_m: "):
        load_scenario(tmp_path / "above.toml")


def test_a_childs_name_and_description_are_not_those_of_its_base(tmp_path: Path) -> None:
    (tmp_path / "below.toml").write_text('name = "lower"\ndescription = "d"\nduration_s = 9\nnodes.n.count = 2\n')
    (tmp_path / "above.toml").write_text('base = "below.toml"\n')
    below, above = (load_scenario(name, tmp_path) for name in ("below.toml", "above.toml"))
    assert [(one.name, one.description) for one in (below, above)] == [("lower", "d"), ("above", "")]


def test_the_traces_that_ship_are_named_without_their_endings() -> None:
    assert all("." not in name and file.name == f"{name}.csv.gz" for name, file in built_in_traces().items())
    assert built_in_traces()
