"""The search for a protocol's capacity: by itself, and on Spark with a scenario whose answer is known."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from earshot.cli import earshot
from earshot.errors import ScenarioError, UsageError
from earshot.pipeline.campaigns.capacity import (
    LEAST,
    NARROW,
    CapacitySearch,
    LoadPoint,
    ProtocolCapacity,
    find_capacity,
)
from earshot.pipeline.lake.lake import Lake
from earshot.simulation.scenario.library import load_scenario


def searched(limit: float, most: float = 64.0, count: int = 1) -> tuple[CapacitySearch, int]:
    """A network that carries everything up to the limit, and how many rounds it took to find that."""
    search, rounds = CapacitySearch(0.95, most), 0
    while wanted := search.wanted(count):
        assert len(wanted) <= count
        assert all(LEAST <= one <= most for one in wanted)
        search.arrived.update({one: 1.0 if one <= limit else 0.5 for one in wanted})
        rounds += 1
        assert rounds < 20
    return search, rounds


@given(st.floats(0.07, 63.9), st.integers(1, 6))
def test_the_search_closes_in_on_the_limit(limit: float, count: int) -> None:
    search, rounds = searched(limit, count=count)
    assert search.carried is not None
    assert search.failed is not None
    assert search.carried <= limit < search.failed <= search.carried * NARROW * 1.001
    assert rounds <= 11


def test_the_search_ends_where_everything_or_nothing_is_carried() -> None:
    search, rounds = searched(1000.0)
    assert (search.carried, search.failed, rounds) == (64.0, None, 7)
    search, _ = searched(1000.0, most=5.0)
    assert sorted(search.arrived) == [1.0, 2.0, 4.0, 5.0]
    search, rounds = searched(0.001)
    assert (search.carried, search.failed) == (None, LEAST)


def test_several_multiples_a_round_take_fewer_rounds() -> None:
    assert searched(23.0, count=4)[1] < searched(23.0)[1]


def test_a_load_that_is_carried_above_one_that_is_not_does_not_count() -> None:
    search = CapacitySearch(0.95, 64.0, arrived={1.0: 1.0, 2.0: 0.9, 4.0: 0.97})
    assert (search.carried, search.failed) == (1.0, 2.0)


def test_a_bound_on_a_capacity_that_is_not_asked_for_is_refused() -> None:
    with pytest.raises(UsageError, match="--most is the highest multiple that --capacity tries"):
        CliRunner().invoke(earshot, ["compare", "city", "--most", "4"], catch_exceptions=False, standalone_mode=False)


def test_a_search_ends_at_a_load_so_low_that_nothing_is_to_be_delivered():
    search = CapacitySearch(0.95, 64.0)
    search.arrived[1.0] = 0.8
    assert search.wanted(2) == [0.25, 0.5]
    search.arrived[0.5] = 0.9
    search.empty.add(0.25)
    assert search.wanted() == []
    assert search.carried is None


def test_a_protocol_without_capacity_says_what_arrives():
    def point(multiple: float, delivered: float) -> LoadPoint:
        return LoadPoint(multiple, multiple, delivered, delivered, None, None, 1)

    def words(*points: LoadPoint, capacity: float | None = None, error: str | None = None) -> str:
        return ProtocolCapacity("gossip", capacity, False, points, error).never_words(0.95)

    assert words(point(0.5, 0.9), point(1.0, 0.8)) == (
        "gossip never reaches 95 %: at the base rate 80.0 % of the reachable arrives, at 0.5 times the base rate "
        "90.0 %, and no more at any load that was tried"
    )
    assert words(point(0.5, 0.8), point(1.0, 0.8)) == (
        "gossip never reaches 95 %: at the base rate 80.0 % of the reachable arrives, and no more at lower loads"
    )
    assert words(point(1.0, 0.8)) == "gossip never reaches 95 %: at the base rate 80.0 % of the reachable arrives"
    assert words(point(1.0, 1.0), capacity=1.0) == ""
    assert words(point(1.0, 0.8), error="it failed") == ""


SMALL = {
    "duration_s": 14.0,
    "warm_up_s": 1.0,
    "cool_down_s": 3.0,
    "area": {"width_m": 300.0, "height_m": 300.0},
    "nodes.node.count": 12,
    "nodes.node.mobility": {"kind": "grid"},
    "medium": {"kind": "contention", "range_m": 150.0, "bit_rate_bps": 2e5},
    "publish.news.when": {"kind": "poisson", "rate_per_s": 1.0},
    "publish.news.count": 4,
}


@pytest.mark.spark
def test_a_slow_channel_has_a_capacity_and_an_ideal_one_has_not(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake = Lake(spark, tmp_path_factory.mktemp("capacity") / "lake")
    scene = load_scenario("base").with_(SMALL)
    stated: list[str] = []
    settings = {"flooding": {"jitter_s": 0.05}}
    found = find_capacity(lake, scene, settings, [0], most=32.0, say=stated.append)
    (flooding,) = found.protocols
    assert flooding.capacity is not None
    assert not flooding.exceeds
    assert flooding.error is None
    assert all(point.delivery_of_reachable >= 0.95 for point in flooding.points if point.multiple <= flooding.capacity)
    worse = [point.multiple for point in flooding.points if point.delivery_of_reachable < 0.95]
    assert flooding.capacity < min(worse) <= flooding.capacity * NARROW * 1.001
    assert flooding.at_capacity is not None
    rates = [point.events_per_s / point.multiple for point in flooding.points]
    assert 0.3 < min(rates) <= max(rates) < 2.0
    assert stated[0] == "flooding at 1x: simulating"
    runs = lake.read("runs").count()
    assert find_capacity(lake, scene, settings, [0], most=32.0) == found, "it goes on from what is there"
    assert lake.read("runs").count() == runs
    ideal = scene.with_({"medium": {"kind": "unit-disk", "range_m": 150.0}})
    (unlimited,) = find_capacity(lake, ideal, {"flooding": {}}, [0], most=2.0).protocols
    assert (unlimited.capacity, unlimited.exceeds) == (2.0, True)
    changes = [part for key in ("duration_s", "warm_up_s", "cool_down_s") for part in ("--set", f"{key}={SMALL[key]}")]
    called = [
        "capacity",
        "base",
        "--protocols",
        "flooding",
        "--most",
        "2",
        "--seeds",
        "1",
        "--lake",
        lake.name,
        *changes,
    ]
    done = CliRunner().invoke(earshot, called, catch_exceptions=False, standalone_mode=False)
    assert "flooding  2x or more" in done.stdout
    assert "warning" not in done.stderr
    cells = ["capacity", "base", "--protocols", "georendezvous", "--most", "1", *called[6:]]
    assert "warning: georendezvous' cells have a side of" in CliRunner().invoke(earshot, cells).stderr
    reported = json.loads(CliRunner().invoke(earshot, [*called, "--json"], standalone_mode=False).stdout)
    assert [point["multiple"] for point in reported["protocols"][0]["points"]] == [1.0, 2.0]
    done = CliRunner().invoke(earshot, ["compare", *called[1:], "--capacity"], standalone_mode=False)
    assert "flooding  2x or more" in done.stdout
    as_json = (
        CliRunner().invoke(earshot, ["compare", *called[1:], "--capacity", "--json"], standalone_mode=False).stdout
    )
    reported = json.loads(as_json)["capacity"]
    assert (reported["seeds"], {point["seeds"] for point in reported["protocols"][0]["points"]}) == (1, {1}), (
        "those asked for"
    )
    nobody = scene.with_({"subscribe.news.count": 0, "subscribe.news.share": None})
    with pytest.raises(ScenarioError, match="no delivery is both expected and reachable"):
        find_capacity(lake, nobody, settings, [0])
