"""Scenarios: files and bases, overrides, checks, canonical forms, the built-in ones."""

import pickle
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import tomli_w

from earshot.errors import ScenarioError, UnknownName
from earshot.events import Event
from earshot.protocols.catalogue import protocol
from earshot.protocols.codd.machine import Codd
from earshot.protocols.flooding import Flooding
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.faults import Churn
from earshot.simulation.media.medium_settings import Contention, Lossy, Overlay, UnitDisk
from earshot.simulation.media.open_medium import Network
from earshot.simulation.mobility import Given, Lanes, Playback, Uniform
from earshot.simulation.scenario.library import built_in, load_scenario
from earshot.simulation.scenario.scenario import NodeGroup, Scenario
from earshot.simulation.settings_reader import Where, read, to_json
from earshot.simulation.workload.traffic import AtTimes, Periodic, Poisson

SMALL = """
duration_s = 30.0

[medium]
kind = "unit-disk"
range_m = 150.0

[nodes.node]
count = 5

[publish.news]
events = { kind = "topics", count = 3 }
when = { kind = "periodic", interval_s = 5.0 }

[subscribe.news]
filters = { kind = "types", of = "news" }
"""


def write(folder: Path, text: str, name: str = "town.toml") -> Path:
    (folder / name).write_text(text)
    return folder / name


def small(folder: Path, extra: str = "") -> Scenario:
    return load_scenario(write(folder, SMALL + extra))


# Files and bases.


def test_a_file_is_read_and_named_after_itself(tmp_path: Path) -> None:
    town = small(tmp_path)
    assert town.name == "town"
    assert town.medium == UnitDisk(range_m=150.0)
    assert town.names() == ("node-0", "node-1", "node-2", "node-3", "node-4")
    assert len(town.trajectories(1)) == 5


def test_a_child_says_only_what_differs_from_its_base(tmp_path: Path) -> None:
    write(tmp_path, 'description = "a town"\n' + SMALL)
    child = load_scenario(write(tmp_path, 'base = "town.toml"\n[medium]\nrange_m = 99.0', "child.toml"))
    assert child == load_scenario(tmp_path / "town.toml").with_(
        {"medium.range_m": 99.0, "name": "child", "description": None}
    )


def test_a_base_may_be_a_built_in_scenario(tmp_path: Path) -> None:
    child = load_scenario(write(tmp_path, 'base = "base"\nduration_s = 200', "child.toml"))
    assert child == load_scenario("base").with_({"duration_s": 200, "name": "child", "description": None})


def test_a_child_leaves_out_what_it_names_under_without(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    text = 'base = "town.toml"\nwithout = ["nodes.node", "subscribe"]\n[nodes.car]\ncount = 2'
    child = load_scenario(write(tmp_path, text, "child.toml"))
    assert child.names() == ("car-0", "car-1")
    assert child.subscribe == {}


def test_a_new_kind_keeps_what_both_kinds_have(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    text = """
    base = "town.toml"
    medium.kind = "contention"
    [nodes.node.mobility]
    kind = "lanes"
    lanes = [{ start_m = [0, 0], end_m = [9, 0], speed_m_s = 1 }]
    """
    child = load_scenario(write(tmp_path, text, "child.toml"))
    assert child.medium == Contention(range_m=150.0)
    assert isinstance(child.nodes["node"].mobility, Lanes)
    # In short: a text alone is a kind.
    assert child.with_({"nodes.node.mobility": "uniform"}).nodes["node"].mobility == Uniform()
    assert child.with_({"medium": "overlay"}).medium == Overlay()


def test_files_are_found_from_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "trace.csv").write_text("node,time,x_m,y_m\nbus,0,1,1\nbus,50,2,2\n")
    (tmp_path / "deep" / "events.jsonl").write_text('{"time_s": 1, "node": "bus", "type": "A"}\n')
    text = """
    duration_s = 9
    nodes.bus.mobility = { kind = "playback", file = "trace.csv" }
    own.events = "events.jsonl"
    """
    write(tmp_path / "deep", text, "bus.toml")
    child = load_scenario(write(tmp_path, 'base = "deep/bus.toml"', "child.toml"))
    assert child.names() == ("bus",)
    assert [action.what for action in child.workload(1) if isinstance(action.what, Event)] == [Event("A", {})]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('base = "bse"', "town.toml: base: no scenario named 'bse'; did you mean 'base'?"),
        ('base = "none.toml"', "town.toml: base: none.toml: no such scenario file"),
        ("base = 3", "town.toml: base: must be the name of a built-in scenario or a path to one"),
        ('base = "town.toml"', "town.toml: base: leads back to itself"),
        ('base = "base"\nwithout = ["nodes.nod"]', "town.toml: without: the base has no 'nodes.nod'"),
        ('base = "base"\nwithout = ["duration_s.x"]', "town.toml: without: the base has no 'duration_s.x'"),
        ('base = "base"\nwithout = "x"', "town.toml: without: must be a list of keys of the base"),
        ('without = ["x"]', "town.toml: without: there is no base to remove anything from"),
        ("a = ", "town.toml: not TOML: "),
        ('base = "base"\nmedium = 3', "town.toml: medium: must be a table with a kind, got the number 3"),
        ('base = "base"\n[medium]\nrange = 3', "town.toml: medium.range: lacks its unit; write range_m (metres)"),
        ('base = "base"\n[medium]\nrange_m = -3', "town.toml: medium.range_m: must be a positive number of metres"),
    ],
)
def test_an_error_in_a_file_names_file_and_key(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(write(tmp_path, text))
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(problem)


def test_an_error_in_the_base_names_the_base_file(tmp_path: Path) -> None:
    write(tmp_path, SMALL.replace("range_m", "rang_m"))
    with pytest.raises(ScenarioError, match=r"/town\.toml: medium\.rang_m: no such key"):
        load_scenario(write(tmp_path, 'base = "town.toml"', "child.toml"))


def test_no_scenario_of_that_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no scenario named 'citty'; did you mean 'city'"):
        load_scenario("citty")
    with pytest.raises(ScenarioError, match=r"lost/town\.toml: no such scenario file"):
        load_scenario("lost/town.toml")
    with pytest.raises(ScenarioError, match=r"is a folder; name a scenario file \(\.toml\) or a built-in scenario"):
        load_scenario(tmp_path)
    with pytest.raises(ScenarioError, match="/dev/null is no regular file; name a scenario file"):
        load_scenario("/dev/null")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match=r"binary\.toml: not TOML"):
        load_scenario(tmp_path / "binary.toml")


def test_too_many_bases_are_refused(tmp_path: Path) -> None:
    write(tmp_path, SMALL, "s0.toml")
    for i in range(1, 20):
        write(tmp_path, f'base = "s{i - 1}.toml"', f"s{i}.toml")
    assert load_scenario(tmp_path / "s15.toml").name == "s15"
    with pytest.raises(ScenarioError, match="has more than 16 bases below it"):
        load_scenario(tmp_path / "s19.toml")


# What a scenario checks itself.


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"duration_s": 0}, "duration_s: must be a positive number of seconds, got 0"),
        ({"duration_s": float("inf")}, "duration_s: must be a positive number of seconds, got inf"),
        ({"duration_s": 1e300}, "duration_s: must be at most 1e+11 s (3,000 years), got 1e+300: lower it"),
        ({"medium.range_m": 1e308}, "medium.range_m: must be at most 1e+12 m, got 1e+308: lower it"),
        (
            {"publish.news.when": {"kind": "poisson", "rate_per_s": 1e9}},
            "publish.news: about 3e+10 events would be published, and a run has at most 100,000,000: publish less",
        ),
        ({"publish.news.when": {"kind": "periodic", "interval_s": 1e-9, "of": "each"}}, "publish.news: about "),
        ({"event_rate": 1e12}, "publish.news: about "),
        ({"warm_up_s": -1}, "warm_up_s: must not be negative, got -1"),
        ({"warm_up_s": 20, "cool_down_s": 10}, "duration_s: must exceed warm_up_s and cool_down_s together"),
        ({"nodes": None}, "nodes: is missing: write a table such as [nodes.car] with a count"),
        ({"nodes.node.count": -1}, "nodes.node.count: must not be negative, got -1"),
        ({"nodes.node.count": None}, "nodes.node.count: is missing"),
        ({"nodes.node.names": ["a"]}, "nodes.node.count: is 5, but there are 1 names"),
        ({"nodes.node.count": 2, "nodes.node.names": ["a", "a"]}, "nodes.node.names: must differ and not be empty"),
        ({"nodes.twin.names": ["node-3"]}, "nodes: two nodes are called 'node-3'"),
        ({"nodes.node.mobility": {"kind": "given", "at_m": [[1, 1]]}}, "nodes.node.count: is 5, but given"),
        ({"nodes.node.mobility.box_m": [0, 0, 5000, 5]}, "nodes.node.mobility: box_m must be"),
        ({"publish.news.nodes": "cars"}, "publish.news.nodes: no node or group is called 'cars'"),
        ({"publish.news.nodes": ["node", "node-9"]}, "publish.news.nodes: no node or group is called 'node-9';"),
        ({"publish.news.share": 0.5, "publish.news.count": 1}, "publish.news: write one of share, chance and count"),
        ({"publish.news.share": 2}, "publish.news.share: must be from 0 to 1, got 2"),
        ({"publish.news.count": -2}, "publish.news.count: must not be negative, got -2"),
        ({"publish.news.until_s": 1, "publish.news.from_s": 2}, "publish.news.until_s: must come after from_s"),
        ({"publish.news.from_s": -2}, "publish.news.from_s: must not be negative, got -2"),
        ({"publish.news.limit": -2}, "publish.news.limit: must not be negative, got -2"),
        ({"publish.news.lifespan_s": 0}, "publish.news.lifespan_s: must be a positive number of seconds, got 0"),
        (
            {"publish.news.announce": False, "publish.news.proximity": {"shape": "circle:5m"}},
            "publish.news: a proximity is part of an announcement",
        ),
        (
            {"publish.news.proximity": {"shape": "circle:5m", "at": [1, 1]}},
            "publish.news.proximity.at: belongs to a stationary proximity",
        ),
        ({"publish.news.events.zipf": -1}, "publish.news.events.zipf: must not be negative, got -1"),
        ({"publish.news.events.count": 0}, "publish.news.events.count: must be at least 1, got 0"),
        (
            {"publish.news.when.interval_s": 0},
            "publish.news.when.interval_s: must be a positive number of seconds, got 0",
        ),
        ({"publish.news.when": {"kind": "poisson", "rate_per_s": 0}}, "publish.news.when.rate_per_s: must be positive"),
        ({"publish.news.when": {"kind": "at", "times_s": [-1]}}, "publish.news.when.times_s[0]: must not be negative"),
        ({"subscribe.news.filters.of": "nws"}, "subscribe.news.filters: of: there is no publish entry 'nws';"),
        (
            {"subscribe.news.filters": {"kind": "conjunctions", "of": "news"}},
            "subscribe.news.filters: of must name a publish entry whose events are of kind \"attributes\", got 'news'",
        ),
        ({"subscribe.news.each": 1.5}, "subscribe.news.each: must be whole numbers, at least 0, got [1.5, 1.5]"),
        ({"subscribe.news.at_s": -1}, "subscribe.news.at_s: must not be negative, got -1"),
        ({"subscribe.news.until_s": 0.5}, "subscribe.news.until_s: must come after at_s, got 0.5 and 1"),
        ({"subscribe.news.lasting_s": 0}, "subscribe.news.lasting_s: must begin above 0, got 0"),
        ({"ability.kind": "power-law", "ability.exponent": 1}, "ability.exponent: must be above 1, got 1"),
        ({"ability.kind": "power-law", "ability.most": 1}, "ability.most: must exceed least, got 1.0 and 1.0"),
        ({"ability.kind": "uniform", "ability.least": 2}, "ability.least: must be at least 0 and below most"),
        ({"faults.silent_nodes": ["nod-1"]}, "faults.silent_nodes: no node or group is called 'nod-1'; did you mean"),
        ({"faults.crashes": [{"node": "x", "time_s": 1}]}, "faults.crashes: no node or group is called 'x';"),
        ({"medium.links.graph": [["node-0", "x"]]}, "medium.links: no node or group is called 'x'"),
        (
            {"infrastructure.links.changes": [{"time_s": 1, "a": "x", "b": "y", "state": "up"}]},
            "infrastructure.links: no node",
        ),
        ({"medium.links.rotations": [{"links": [["x", "y"]], "interval_s": 1}]}, "medium.links: no node"),
        ({"medium": {"kind": "unit_disk"}}, "medium.kind: no such choice as 'unit_disk'; did you mean 'unit-disk'?"),
    ],
)
def test_an_impossible_value_is_refused_with_its_key(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    town = small(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        town.with_(changes)
    where, _, shown = str(caught.value).partition(": ")
    assert where in ("town", "override of town")
    assert shown.startswith(problem)


def test_as_many_events_as_a_run_may_have_are_counted_with_publishers_and_times(tmp_path: Path) -> None:
    town = small(tmp_path)
    news = town.publish["news"]

    def expected(**changes: Any) -> float:
        return msgspec.structs.replace(news, **changes).expected(5, 2.0, 12.0)

    each, shared = Periodic(interval_s=0.5), Periodic(interval_s=0.5, of="all")
    assert expected(when=each, count=None) == 100.0
    assert expected(when=each, count=2) == 40.0
    assert expected(when=each, count=None, share=0.4) == 40.0
    assert expected(when=shared, count=None) == 20.0
    assert expected(when=Poisson(rate_per_s=3.0), count=None) == 30.0
    assert expected(when=Poisson(rate_per_s=3.0, of="each"), count=None, from_s=4.0, until_s=6.0) == 30.0
    assert expected(when=AtTimes(times_s=(1.0, 5.0)), count=None) == 10.0


def test_an_override_may_come_whole_and_in_parts_but_not_contradict_itself(tmp_path: Path) -> None:
    town = small(tmp_path)
    whole = {"kind": "lossy", "certain_m": 20}
    assert town.with_({"medium": whole, "medium.range_m": 60}).medium == Lossy(range_m=60.0, certain_m=20.0)
    assert whole == {"kind": "lossy", "certain_m": 20}
    with pytest.raises(ScenarioError, match=r"medium\.range_m: medium is set as a whole and in parts"):
        town.with_({"medium": "lossy", "medium.range_m": 5})
    with pytest.raises(ScenarioError, match="medium: range_m is set as a whole and in parts"):
        town.with_({"medium.range_m": 5, "medium": {"range_m": 6}})


def test_a_kind_may_be_left_out_where_there_is_a_default(tmp_path: Path) -> None:
    town = load_scenario(write(tmp_path, "duration_s = 5\nnodes.n.count = 1\nmedium.range_m = 60"))
    assert town.medium == UnitDisk(range_m=60.0)
    assert town.with_({"nodes.n.mobility.box_m": [0, 0, 5, 5]}).nodes["n"].mobility == Uniform((0, 0, 5, 5))


def test_a_trace_names_its_nodes_itself(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("node,time,x_m,y_m\nbus,0,1,1\nbus,9,2,2\ntram,0,1,1\ntram,9,2,2\n")
    town = small(tmp_path, '[nodes.bus]\nmobility = { kind = "playback", file = "trace.csv" }\n')
    assert town.names()[:2] == ("bus", "tram")
    assert town.with_({"nodes.bus.count": 1}).names()[:2] == ("bus", "node-0")
    with pytest.raises(ScenarioError, match="a trace names its nodes itself: leave names out"):
        town.with_({"nodes.bus.names": ["x", "y"]})
    with pytest.raises(ScenarioError, match=r"nodes\.bus: count is 3, but the trace has 2 nodes"):
        town.with_({"nodes.bus.count": 3})


# Overrides.


def test_an_override_changes_one_key_and_none_leaves_it_out(tmp_path: Path) -> None:
    town = small(tmp_path)
    churning = town.with_({"faults.churn.mean_presence_s": 60, "faults.churn.mean_absence_s": 5})
    assert churning.faults.churn == Churn(60.0, 5.0)
    assert churning.with_({"faults.churn": None}) == town
    assert town.with_(**{"medium.range_m": 10}).medium == UnitDisk(range_m=10.0)
    assert town.with_() == town


def test_each_protocol_has_its_network(tmp_path: Path) -> None:
    town = small(tmp_path, "[infrastructure]\nlatency_s = 0.1\n")
    assert town.network(Flooding) == Network(UnitDisk(range_m=150.0))
    assert town.network(Codd) == Network(UnitDisk(range_m=150.0), routed=True, infrastructure=Overlay(latency_s=0.1))
    only_overlay = town.with_({"medium": {"kind": "overlay", "latency_s": 0.3}, "infrastructure": False})
    assert only_overlay.network(Codd).medium == Overlay(latency_s=0.3)
    with pytest.raises(ScenarioError, match=r"town: medium.kind is overlay, and flooding needs a radio"):
        only_overlay.network(Flooding)
    with pytest.raises(ScenarioError, match="infrastructure: needs a radio beside it"):
        town.with_({"medium": {"kind": "overlay"}})


def test_a_network_is_said_in_words(tmp_path: Path) -> None:
    town = small(tmp_path)
    words = {
        "ideal": "ideal 150 m",
        "802.11b-2M": "802.11b-2M 150 m",
        "lora-sf7": "lora-sf7 150 m",
    }
    for radio, expected in words.items():
        over = town.with_({"medium.radio": radio})
        assert over.network_of("flooding") == expected
        assert over.network_of("codd") == expected
        assert over.network(protocol("codd")).routing == "ideal routing"
        assert over.network(protocol("flooding")).routing == ""
        reactive = over.with_({"medium.routing": "reactive"})
        assert (reactive.network_of("siena"), reactive.network(protocol("siena")).routing) == (
            expected,
            "reactive routing",
        )
        assert over.with_({"infrastructure": True}).network(protocol("codd")).routing == ""
        assert over.with_({"infrastructure": True}).network_of("codd") == f"{expected} + infrastructure"
        assert over.with_({"infrastructure": True}).network_of("flooding") == expected
    faster = town.with_({"medium.radio": "802.11b-2M", "medium.bit_rate_bps": 11e6})
    assert faster.network_of("flooding") == "802.11b-2M 150 m (bit_rate_bps=1.1e+07)"
    assert town.with_({"medium": {"kind": "lossy"}}).network_of("gossip") == "lossy 50 to 150 m"
    assert town.with_({"medium": {"kind": "overlay"}}).network_of("codd") == "overlay 0.05 s"


def test_infrastructure_is_true_or_a_table(tmp_path: Path) -> None:
    town = small(tmp_path)
    assert town.infrastructure is False
    assert town.with_({"infrastructure": True}).infrastructure == Overlay()
    assert town.with_({"infrastructure.loss": 0.1}).infrastructure == Overlay(loss=0.1)
    assert town.with_({"infrastructure": True}).with_({"infrastructure.loss": 0.1}).infrastructure == Overlay(loss=0.1)
    assert town.with_({"infrastructure": True}).with_({"infrastructure": False}) == town


def test_the_overlay_table_of_old_is_refused_with_its_new_name(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"town.toml: overlay: this table was renamed"):
        small(tmp_path, "[overlay]\nlatency_s = 0.1\n")
    with pytest.raises(ScenarioError, match="overlay: this table was renamed"):
        small(tmp_path).with_({"overlay.loss": 0.1})


def test_a_radio_chooses_the_kind_and_explicit_keys_win(tmp_path: Path) -> None:
    town = small(tmp_path)
    assert town.with_({"medium.radio": "802.11p-6M"}).medium == Contention(radio="802.11p-6M", range_m=150.0)
    slow = town.with_({"medium.radio": "802.11p-6M", "medium.slot_s": 2e-5})
    assert slow.medium == Contention(radio="802.11p-6M", range_m=150.0, slot_s=2e-5)
    assert slow.with_({"medium.radio": "802.11b-1M"}).medium == Contention(
        radio="802.11b-1M", range_m=150.0, slot_s=2e-5
    )
    assert slow.with_({"medium.radio": "ideal"}).medium == UnitDisk(range_m=150.0)
    assert slow.with_({"medium.kind": "unit-disk"}).medium == UnitDisk(range_m=150.0, radio="802.11p-6M")
    with pytest.raises(ScenarioError, match="an ideal radio has no contention"):
        town.with_({"medium": {"kind": "contention", "radio": "ideal"}})
    with pytest.raises(ScenarioError, match=r"medium.radio: no such choice as 'lora'; did you mean 'lora-sf7'"):
        town.with_({"medium.radio": "lora"})


# Canonical forms.


def test_names_and_order_do_not_matter_but_everything_else_does(tmp_path: Path) -> None:
    town = small(tmp_path, "[nodes.car]\ncount = 1\n")
    shuffled = SMALL.replace("[nodes.node]\ncount = 5", "[nodes.car]\ncount = 1\n[nodes.node]\ncount = 5")
    same = load_scenario(write(tmp_path, 'name = "other"\ndescription = "d"\n' + shuffled, "other.toml"))
    assert same.canonical() == town.canonical()
    assert to_json(same.canonical()) == to_json(town.canonical())
    assert list(same.workload(3)) == list(town.workload(3))
    assert same.trajectories(3).positions(7.0).tolist() == town.trajectories(3).positions(7.0).tolist()
    for changes in ({"medium.range_m": 151}, {"duration_s": 31}, {"publish.news.events.zipf": 0.5}):
        assert town.with_(changes).canonical() != town.canonical()


def test_the_way_a_value_is_written_does_not_matter(tmp_path: Path) -> None:
    town = small(tmp_path)
    assert town.with_({"medium.range_m": 150, "medium.latency_s": 0.001}).canonical() == town.canonical()


DIGESTS = """
import hashlib
from earshot.simulation.scenario.library import built_in, load_scenario
from earshot.simulation.settings_reader import to_json
for name in built_in():
    scenario = load_scenario(name)
    shown = to_json(scenario.canonical()) + repr(list(scenario.workload(5))).encode()
    shown += scenario.trajectories(5).positions(33.3).tobytes() + scenario.abilities(5).tobytes()
    print(name, hashlib.sha256(shown).hexdigest())
"""


def test_canonical_form_and_draws_are_the_same_in_every_process() -> None:
    shown = [
        subprocess.run(
            [sys.executable, "-c", DIGESTS], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    ]
    assert shown[0] == shown[1]
    assert len(shown[0].splitlines()) == len(built_in())


def test_a_seed_changes_every_draw() -> None:
    town = load_scenario("drip")
    one, two = town.trajectories(1), town.trajectories(2)
    assert not np.isclose(one.positions(0.0), two.positions(0.0)).any()
    assert list(town.workload(1)) != list(town.workload(2))
    assert not np.isclose(town.abilities(1), town.abilities(2)).any()


def test_a_scenario_survives_pickling() -> None:
    for name in built_in():
        scenario = load_scenario(name)
        again = pickle.loads(pickle.dumps(scenario))
        assert again == scenario
        assert again.canonical() == scenario.canonical()


def test_a_scenario_may_be_built_in_python() -> None:
    scenario = Scenario(duration_s=10.0, nodes={"n": NodeGroup(count=3)})
    assert scenario.names() == ("n-0", "n-1", "n-2")
    assert read(Scenario, scenario.table(), Where("x")) == scenario
    assert len(scenario.workload(1)) == 0


def test_abilities_follow_their_law() -> None:
    base = load_scenario("base").with_({"nodes.node.count": 4000})
    assert base.abilities(1).tolist() == [1.0] * 4000
    law = base.with_({"ability": {"kind": "power-law", "exponent": 2.5, "least": 2.0}}).abilities(1)
    assert law.min() >= 2.0
    # P(ability > a) = (a / least) ** (1 - exponent)
    for bound in (3.0, 8.0):
        assert (law > bound).mean() == pytest.approx((bound / 2.0) ** -1.5, abs=0.03)
    bounded = base.with_({"ability": {"kind": "power-law", "most": 5.0}}).abilities(1)
    assert bounded.min() >= 1.0
    assert bounded.max() <= 5.0
    even = base.with_({"ability": {"kind": "uniform", "least": 1.0, "most": 3.0}}).abilities(1)
    assert even.mean() == pytest.approx(2.0, abs=0.05)


# The built-in ones.

BUILT_IN = tuple(built_in())


def test_the_nodes_that_all_know_are_the_first() -> None:
    assert load_scenario("city").first_nodes == ("ambulance-0", "ambulance-1", "car-00")


def test_the_nodes_that_all_know_stay_longest_in_a_trace(tmp_path: Path) -> None:
    """A central node that has left, or has not come yet, would make CoDD and Siena deliver nothing."""
    stays = {"a": (0, 2), "b": (0, 10), "c": (8, 10), "d": (1, 9), "e": (0, 10)}
    rows = [f"{node},{time},{10 * i},0" for i, (node, ends) in enumerate(stays.items()) for time in ends]
    (tmp_path / "trace.csv").write_text("\n".join(["node,time,x_m,y_m", *rows]))
    scenario = Scenario(
        name="town", duration_s=10.0, nodes={"car": NodeGroup(mobility=Playback(tmp_path / "trace.csv"))}
    )
    assert scenario.names() == ("a", "b", "c", "d", "e")
    assert scenario.first_nodes == ("b", "e", "d")


def test_these_are_built_in() -> None:
    assert BUILT_IN == (
        "base",
        "city",
        "codd-customer",
        "codd-news",
        "codd-protein",
        "codd",
        "disaster",
        "drip",
        "georendezvous",
        "highway",
        "odmrp-mobile",
        "odmrp",
        "overlay",
    )


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_scenario_is_whole(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    assert 20 < len(scenario.description) < 110
    assert "\n" not in scenario.description
    assert read(Scenario, scenario.table(), Where("x")) == scenario
    assert read(Scenario, tomllib.loads(tomli_w.dumps(scenario.table())), Where("x")) == scenario


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_scenario_runs(name: str) -> None:
    scenario = load_scenario(name)
    short = scenario.with_({"duration_s": scenario.warm_up_s + 6.0, "cool_down_s": 1.0})
    first, again = (run(short, "flooding", seed=4) for _ in range(2))
    summary = summarise(short, first)
    assert summary.expected > 0
    assert (summary.delivery_ratio or 0) > 0.5
    assert list(first.deliveries.time) == list(again.deliveries.time)


def test_drip_is_the_papers_setting() -> None:
    drip = load_scenario("drip")
    events = [action.time for action in drip.workload(1) if isinstance(action.what, Event)]
    assert len(drip.names()) == 200
    assert len(events) == pytest.approx(0.8 * 500, abs=60)
    assert min(events) >= 10.0
    assert max(events) < 510.0


def test_georendezvous_has_forty_five_neighbours_a_node() -> None:
    scenario = load_scenario("georendezvous")
    degrees = []
    for seed in range(5):
        places = scenario.trajectories(seed).positions(0.0)
        apart = np.hypot(*(places[:, None, :] - places[None, :, :]).transpose(2, 0, 1))
        degrees.append((apart <= scenario.medium.range_m).sum() / len(places) - 1)  # type: ignore[union-attr]
    assert np.mean(degrees) == pytest.approx(45, abs=1)


def test_a_group_without_a_count_has_a_node_for_each_given_place() -> None:
    places = tuple((float(number), 0.0) for number in range(11))
    names = NodeGroup(mobility=Given(places)).node_names("post", until_s=10.0)
    assert (len(names), names[0], names[-1]) == (11, "post-00", "post-10")
