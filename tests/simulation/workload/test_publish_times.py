"""When events are published, and by whom; regions, fences, windows of a workload, interests: each by itself."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from earshot.errors import QualityError, ScenarioError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Circle, Position, Proximity
from earshot.protocols.machine import Announcement
from earshot.protocols.services.fences import Fence
from earshot.records.trajectories import Trajectories, Trajectory
from earshot.simulation.draws import Span
from earshot.simulation.extent import Extent
from earshot.simulation.workload.actions import Action, Services, Unannounce, Unfence, Unsubscribe, Workload
from earshot.simulation.workload.generators import Attributes, Boolean, Choice, Generator, Integer, Numbers
from earshot.simulation.workload.interests import Conjunctions, NumberIntervals, Types, Written
from earshot.simulation.workload.traffic import (
    AtTimes,
    DrawContext,
    OwnWorkload,
    Periodic,
    Poisson,
    ProximitySettings,
    PublishEntry,
    PublishingNode,
    RegionSettings,
    SubscribeEntry,
    Who,
    check_announcements,
    repeated,
)


def publishers(count: int = 3, abilities: tuple[float, ...] = ()) -> list[PublishingNode]:
    return [PublishingNode(i, abilities[i] if abilities else 1.0, Random(f"own:{i}")) for i in range(count)]


def times(when: Any, count: int = 3, from_s: float = 2.0, until_s: float = 10.0) -> list[tuple[float, int]]:
    return [(time, one.node) for time, one in when.times(publishers(count), Random("all"), from_s, until_s)]


# When.


def test_one_event_comes_in_every_interval_of_each_publisher() -> None:
    assert times(Periodic(3.0, phase="zero"), 2) == [(2.0, 0), (5.0, 0), (8.0, 0), (2.0, 1), (5.0, 1), (8.0, 1)]
    assert times(Periodic(4.0, phase="zero"), 1) == [(2.0, 0), (6.0, 0)], "the end does not belong to it"
    shifted = times(Periodic(3.0), 200)
    firsts = [min(time for time, node in shifted if node == one) for one in range(200)]
    assert (min(firsts), max(firsts)) == (pytest.approx(2.0, abs=0.1), pytest.approx(5.0, abs=0.1))
    for one in range(200):
        mine = [time for time, node in shifted if node == one]
        assert [after - before for before, after in pairwise(mine)] == pytest.approx([3.0] * (len(mine) - 1))
        assert mine[-1] + 3.0 >= 10.0 > mine[-1]


def test_publishers_that_share_an_interval_take_turns_or_are_drawn() -> None:
    assert times(Periodic(2.0, of="all", choose="in-turn"), 3) == [(2.0, 0), (4.0, 1), (6.0, 2), (8.0, 0)]
    drawn = times(Periodic(0.01, of="all"), 4)
    assert [time for time, _ in drawn[:3]] == pytest.approx([2.0, 2.01, 2.02])
    assert min(Counter(node for _, node in drawn).values()) == pytest.approx(200, abs=60)


def test_each_event_is_late_by_at_most_its_jitter_and_none_comes_after_the_end() -> None:
    when = Periodic(1.0, phase="zero", jitter_s=3.0)
    late = [time - 2.0 - step for step, (time, _) in enumerate(times(when, 1, until_s=200.0)[:150])]
    assert len(late) == 150
    many = times(Periodic(0.5, phase="zero", jitter_s=3.0), 1, until_s=10.0)
    assert all(2.0 <= time < 10.0 for time, _ in many)
    on_time = [2.0 + 0.5 * step for step in range(16)]
    assert len(many) < len(on_time), "some would come after the end"


def test_an_ability_is_a_weight() -> None:
    when, some = (
        AtTimes(tuple(float(t) for t in range(900)), of="all", choose="ability"),
        publishers(3, (1.0, 0.0, 2.0)),
    )
    drawn = Counter(one.node for _, one in when.times(some, Random(4), 0.0, 900.0))
    assert drawn == {0: pytest.approx(300, abs=45), 2: pytest.approx(600, abs=45)}


@pytest.mark.parametrize("of", ["all", "each"])
def test_random_times_have_their_rate(of: Any) -> None:
    found = times(Poisson(5.0, of=of), 2, from_s=100.0, until_s=300.0)
    share = Counter(node for _, node in found)
    rate = 5.0 if of == "each" else 2.5
    assert [share[node] / 200.0 for node in (0, 1)] == pytest.approx([rate, rate], rel=0.1)
    mine = sorted(time for time, node in found if node == 0)
    assert (mine[0], mine[-1]) == (pytest.approx(100.0, abs=3.0), pytest.approx(300.0, abs=3.0))
    assert 100.0 < mine[0] < mine[-1] < 300.0
    gaps = [after - before for before, after in pairwise(mine)]
    assert sum(gap > 1 / rate for gap in gaps) / len(gaps) == pytest.approx(math.exp(-1), abs=0.06)


def test_given_times_count_from_the_first_until_before_the_last() -> None:
    when = AtTimes((1.9, 2.0, 5.0, 10.0))
    assert times(when, 2) == [(2.0, 0), (2.0, 1), (5.0, 0), (5.0, 1)]
    assert times(AtTimes((2.0, 3.0, 4.0), of="all"), 2) == [(2.0, 0), (3.0, 1), (4.0, 0)]


def test_about_as_many_events_are_expected_as_are_published() -> None:
    assert [Periodic(2.0, of=of).expected(3, 10.0) for of in ("each", "all")] == [15.0, 5.0]
    assert [Poisson(2.0, of=of).expected(3, 10.0) for of in ("each", "all")] == [60.0, 20.0]
    assert [AtTimes((1.0, 2.0), of=of).expected(3, 10.0) for of in ("each", "all")] == [6, 2]


def test_times_are_repeated_evenly_up_to_the_next_or_left_out_evenly() -> None:
    assert repeated([0.0, 3.0, 9.0], 3.0) == [
        (0.0, 0), (1.0, 0), (2.0, 0), (3.0, 1), (5.0, 1), (7.0, 1), (9.0, 2), (11.0, 2), (13.0, 2),
    ]  # fmt: skip
    assert repeated([0.0, 1.0, 2.0, 3.0, 4.0], 0.4) == [(2.0, 2), (4.0, 4)]
    assert (repeated([5.0], 2.0), repeated([], 2.0)) == ([(5.0, 0), (5.5, 0)], [])


# Entries.


def context(**given: Any) -> DrawContext:
    """Nodes a, b, c and d; c comes at 4 s, d is there until 3 s and from 8 s on."""
    nodes = [
        Trajectory.standing("a", 10.0, 20.0),
        Trajectory.through("b", [(0.0, 0.0, 0.0), (10.0, 100.0, 50.0)]),
        Trajectory.through("c", [(4.0, 7.0, 8.0)], ((4.0, math.inf),)),
        Trajectory.through("d", [(0.0, 1.0, 1.0)], ((-math.inf, 3.0), (8.0, 99.0))),
    ]
    base: dict[str, Any] = {
        "seed": 1, "groups": {"cars": ("a", "c")}, "trajectories": Trajectories(nodes), "abilities": (1.0,) * 4,
        "extent": Extent(200.0, 100.0, 1000.0, 500.0), "warm_up_s": 2.0, "publish_until_s": 9.0, "duration_s": 10.0,
    }  # fmt: skip
    return DrawContext(**{**base, **given})


def test_a_node_is_first_there_when_it_is_present_or_comes() -> None:
    here = context()
    assert [here.first_there(2, time) for time in (0.0, 4.0, 5.0)] == [4.0, 4.0, 5.0]
    assert [here.first_there(3, time) for time in (0.0, 2.9, 3.0, 8.0, 98.9, 99.0)] == [
        0.0,
        2.9,
        8.0,
        8.0,
        98.9,
        math.inf,
    ]


def test_nodes_are_named_by_group_and_name_and_each_counts_once() -> None:
    assert context().chosen(Who(nodes=("cars", "a", "b")), "e") == [0, 1, 2]
    with pytest.raises(ScenarioError, match="e: nodes: no group and no node is called 'buses'; groups: cars"):
        context().chosen(Who(nodes="buses"), "e")
    assert context().chosen(Who(share=0.5), "e") == sorted(context().chosen(Who(count=2), "e"))
    assert [len(context().chosen(Who(**{name: value}), "e")) for name, value in
            (("share", 0.0), ("share", 1.0), ("count", 0), ("count", 4), ("chance", 0.0), ("chance", 1.0))] == [
        0, 4, 0, 4, 0, 4,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "given", [{"share": 0.5, "count": 1}, {"share": 0.5, "chance": 1.0}, {"chance": 1.0, "count": 1}]
)
def test_nodes_are_chosen_in_one_way(given: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match="write one of share, chance and count, not"):
        Who(**given)


NUMBER = EventType("Number", {"value": "integer"})


def entry(**given: Any) -> PublishEntry:
    base: dict[str, Any] = {
        "events": Numbers(),
        "when": AtTimes((1.0, 2.0, 5.0, 8.5, 9.0)),
        "announce_s": Span(0.5, 0.5),
    }
    return PublishEntry(**{**base, **given})


def published(found: PublishEntry, **given: Any) -> list[tuple[float, int, str]]:
    return [(one.time, one.node, type(one.what).__name__) for one in found.actions("e", context(**given))]


def test_publishers_announce_when_they_are_there_and_publish_between_warm_up_and_cool_down() -> None:
    assert published(entry(nodes=("a", "d"))) == [
        (0.5, 0, "Announcement"), (0.5, 3, "Announcement"), (2.0, 0, "Event"), (2.0, 3, "Event"), (5.0, 0, "Event"),
        (8.5, 0, "Event"), (8.5, 3, "Event"),
    ]  # fmt: skip
    assert published(entry(nodes="c"), duration_s=4.0, publish_until_s=4.0) == [], "it comes too late"


def test_publishing_that_ends_before_the_run_is_unannounced() -> None:
    assert published(entry(nodes="a", from_s=0.0, until_s=5.0))[-3:] == [
        (1.0, 0, "Event"), (2.0, 0, "Event"), (5.0, 0, "Unannounce"),
    ]  # fmt: skip
    (last,) = [
        one.what for one in entry(nodes="a", until_s=9.9).actions("e", context()) if isinstance(one.what, Unannounce)
    ]
    assert last == Unannounce("Number")
    for silent in (entry(nodes="a", until_s=10.0), entry(nodes="a", until_s=5.0, announce=False), entry(nodes="a")):
        assert "Unannounce" not in [kind for _, _, kind in published(silent)]


def test_an_entry_expects_as_many_events_as_its_own_times_and_nodes_give() -> None:
    assert entry(when=Periodic(1.0)).expected(10, 2.0, 12.0) == 100.0
    assert entry(when=Periodic(1.0), share=0.25).expected(10, 2.0, 12.0) == 30.0
    assert entry(when=Periodic(1.0), chance=0.25).expected(10, 2.0, 12.0) == 30.0
    assert entry(when=Periodic(1.0), count=4).expected(10, 2.0, 12.0) == 40.0
    assert entry(when=Periodic(1.0), from_s=3.0, until_s=5.0).expected(10, 2.0, 12.0) == 20.0
    assert entry(when=Periodic(1.0), from_s=12.5).expected(10, 2.0, 12.0) == 0.0


def test_a_stationary_proximity_may_have_its_place_and_a_mobile_one_may_not() -> None:
    circle, here = Circle(5.0), Position(1.0, 2.0)
    assert ProximitySettings(circle).proximity(here) == Proximity(circle, here, mobile=True)
    there = ProximitySettings(circle, mobile=False, at=Position(9.0, 9.0)).proximity(here)
    assert there == Proximity(circle, Position(9.0, 9.0), mobile=False)
    with pytest.raises(ScenarioError, match="at belongs to a stationary proximity"):
        ProximitySettings(circle, at=here)


def test_a_region_anywhere_lies_in_the_extent() -> None:
    extent, random = Extent(200.0, 100.0, 1000.0, 500.0), Random(1)
    region = RegionSettings(Circle(5.0), "anywhere")
    at = [region.area(Position(0.0, 0.0), extent, random).at for _ in range(400)]
    assert (min(one.x_m for one in at), max(one.x_m for one in at)) == (
        pytest.approx(1000, abs=3),
        pytest.approx(1200, abs=3),
    )
    assert (min(one.y_m for one in at), max(one.y_m for one in at)) == (
        pytest.approx(500, abs=3),
        pytest.approx(600, abs=3),
    )
    assert RegionSettings(Circle(5.0)).area(Position(3.0, 4.0), extent, random) == Area(Circle(5.0), Position(3.0, 4.0))


def subscribed(**given: Any) -> list[Action]:
    base: dict[str, Any] = {
        "filters": Written((Filter.parse("Siren: speed > 10"),)),
        "at_s": Span(0.25, 0.25),
        "nodes": "a",
    }
    return list(SubscribeEntry(**{**base, **given}).actions("e", context(), {}))


def test_fences_come_and_go_with_their_subscription() -> None:
    found = subscribed(fence=True, near_m=30.0, until_s=6.0)
    fences = [Fence("a/e/0/fence/Siren", "Siren"), Fence("a/e/0/near", near_m=30.0)]
    assert [(one.time, one.what) for one in found[1:3]] == [(0.25, fence) for fence in fences]
    assert [(one.time, one.what) for one in found[3:]] == [
        (6.0, Unsubscribe("a/e/0")), (6.0, Unfence("a/e/0/fence/Siren")), (6.0, Unfence("a/e/0/near")),
    ]  # fmt: skip
    assert [type(one.what) for one in subscribed()] == [Subscription]
    any_type = subscribed(fence=True, filters=Written((Filter.where("speed > 3"),)))
    assert [one.what.event_type for one in any_type if isinstance(one.what, Fence)] == ["**"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"each": Span(-1, 2)}, "each must be whole numbers, at least 0"),
        ({"each": Span(0.5, 2)}, "each must be whole numbers"),
        ({"each": Span(1, 2.5)}, "each must be whole numbers"),
        ({"at_s": Span(-0.1, 2)}, "at_s must not be negative"),
        ({"until_s": 0.25}, "until_s must come after at_s"),
        ({"lasting_s": Span(0, 2)}, "lasting_s must begin above 0"),
    ],
)
def test_a_subscribe_entry_that_cannot_be_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        subscribed(**given)
    assert subscribed(each=Span(0, 0)) == []


def test_a_subscription_that_lasts_until_the_end_is_not_ended() -> None:
    assert [type(one.what) for one in subscribed(until_s=10.0)] == [Subscription]
    assert [(one.time, type(one.what)) for one in subscribed(until_s=9.9)][1:] == [(9.9, Unsubscribe)]
    replaced = [(one.time, type(one.what).__name__) for one in subscribed(lasting_s=Span(4.0, 4.0), until_s=7.0)]
    assert replaced == [
        (0.25, "Subscription"), (4.25, "Unsubscribe"), (4.25, "Subscription"), (7.0, "Unsubscribe"),
    ]  # fmt: skip


# A workload of the user's own, and a window of it.

EVENTS = """{"time_s": 103, "node": "a", "type": "A", "content": {"n": 1}}
{"time_s": 99, "node": "a", "type": "A", "content": {"n": 0}}
{"time_s": 100, "node": "b", "type": "B"}
{"time_s": 110, "node": "a", "type": "Late"}
{"time_s": 104, "node": "zed", "type": "A"}
"""
SUBSCRIPTIONS = """{"node": "a", "filter": "A", "at_s": 50, "until_s": 106}
{"node": "c", "filter": "A", "at_s": 101, "until_s": 104}
{"node": "b", "filter": "A", "at_s": 102}
{"node": "zed", "filter": "A", "at_s": 102}
{"node": "b", "filter": "A", "at_s": 20, "until_s": 99}
"""


def own(folder: Path, **given: Any) -> list[tuple[float, int, Any]]:
    (folder / "events.jsonl").write_text(EVENTS)
    (folder / "subscriptions.jsonl").write_text(SUBSCRIPTIONS)
    workload = OwnWorkload(folder / "events.jsonl", folder / "subscriptions.jsonl", **given)
    return [(one.time, one.node, one.what) for one in workload.actions(context())]


def test_a_window_of_a_workload_counts_from_its_start_and_leaves_out_what_lies_outside(tmp_path: Path) -> None:
    found = own(tmp_path, start_s=100.0)
    wanted = Filter.parse("A")
    assert [one for one in found if not isinstance(one[2], Announcement)] == [
        (0.0, 0, Subscription("a/own/0", "a", wanted)),
        (6.0, 0, Unsubscribe("a/own/0")),
        (2.0, 1, Subscription("b/own/2", "b", wanted)),
        (3.0, 0, Event("A", {"n": 1})),
        (0.0, 1, Event("B")),
    ], "c is there from 4 s on, when its subscription has ended"
    assert [(time, node, what.event_type) for time, node, what in found if isinstance(what, Announcement)] == [
        (0.0, 0, EventType("A", {"n": "integer"})), (0.0, 1, EventType("B")),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"lake": "l"}, "lake and workload belong together"),
        ({"workload": "w"}, "lake and workload belong together"),
        ({"lake": "l", "workload": "w", "events": Path("e")}, "not both"),
        ({"lake": "l", "workload": "w", "subscriptions": Path("e")}, "not both"),
    ],
)
def test_a_workload_lies_in_files_or_in_a_lake(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        OwnWorkload(**given)


def test_announcements_of_one_node_and_type_agree_in_shape_and_motion_and_not_in_place() -> None:
    here, there = Position(0.0, 0.0), Position(5.0, 0.0)

    def stated(*proximities: Proximity | None, nodes: tuple[int, int] = (0, 0)) -> None:
        check_announcements(
            [Action(0.0, node, Announcement(NUMBER, one)) for node, one in zip(nodes, proximities, strict=True)]
        )

    stated(Proximity(Circle(5.0), here, mobile=True), Proximity(Circle(5.0), there, mobile=True))
    stated(None, None)
    stated(None, Proximity(Circle(5.0), here), nodes=(0, 1))
    for other in (None, Proximity(Circle(6.0), here), Proximity(Circle(5.0), here, mobile=True)):
        with pytest.raises(ScenarioError, match="two publish entries announce 'Number' on one node"):
            stated(Proximity(Circle(5.0), here), other)


def test_services_are_wanted_for_attributes_and_fences() -> None:
    def of(*whats: Any) -> Services:
        return Services.wanted_by(Workload([Action(0.0, 0, what) for what in whats]))

    kept = Announcement(EventType("A", {}, {"history": 2}))
    assert of(Announcement(EventType("A"))) == Services()
    assert of(Announcement(EventType("B")), kept, kept) == Services(wanted=True)
    assert of(Fence("f", "A")) == Services(wanted=True)
    assert of(Fence("f", "A"), Fence("g", near_m=3.0)) == Services(wanted=True, near=True)
    with pytest.raises(QualityError, match="A: another announcement has history = 2, this node no attributes"):
        of(kept, Announcement(EventType("A")))


def test_an_entry_without_times_has_none_at_any_rate() -> None:
    assert entry(when=AtTimes(())).at_rate(2.0).when == AtTimes(())


# Interests.

CAR = Attributes(
    "Car",
    {"speed": Integer(10, 50), "fuel": Choice(("gas", "wood")), "lit": Boolean(), "age": Integer(0, 100)},
)
SOURCES: dict[str, Generator] = {"cars": CAR, "numbers": Numbers()}


def test_a_conjunction_accepts_the_share_of_a_range_that_is_asked_for() -> None:
    random = Random(3)
    interest = Conjunctions("cars", terms=Span(1, 1), width=Span(0.25, 0.25))
    widths: dict[str, list[float]] = {"speed": [], "age": []}
    for number in range(300):
        accepted: dict[str, list[int]] = {"speed": [], "age": []}
        wanted = interest.draw(random, number, SOURCES)
        for name, least, most in (("speed", 10, 50), ("age", 0, 100)):
            if f"{name} >=" in str(wanted):
                accepted[name] = [v for v in range(least, most + 1) if wanted.matches(Event("Car", {name: v}))]
                assert min(accepted[name], default=least) >= least
                widths[name].append(len(accepted[name]))
    assert sum(widths["speed"]) / len(widths["speed"]) == pytest.approx(10.0, abs=0.6)
    assert sum(widths["age"]) / len(widths["age"]) == pytest.approx(25.0, abs=0.6)


def test_a_conjunction_names_as_many_attributes_as_are_asked_for_and_what_every_filter_has() -> None:
    random = Random(3)
    every = Conjunctions("cars", terms=Span(9, 9), also="within 300 m").draw(random, 0, SOURCES)
    assert [name for name in ("age", "fuel", "lit", "speed", "within") if name in str(every)] == [
        "age", "fuel", "lit", "speed", "within",
    ]  # fmt: skip
    assert Conjunctions("cars", terms=Span(0, 0)).draw(random, 0, SOURCES) == Filter.of_type("Car")
    one = Conjunctions("cars", terms=Span(0, 0), also="speed > 3").draw(random, 0, SOURCES)
    assert (one.matches(Event("Car", {"speed": 4})), one.matches(Event("Bus", {"speed": 4}))) == (True, False)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Conjunctions("cars", terms=Span(-1, 1)), "terms must not be negative"),
        (lambda: Conjunctions("cars", width=Span(-0.1, 1)), "width must be from 0 to 1"),
        (lambda: Conjunctions("cars", width=Span(0, 1.1)), "width must be from 0 to 1"),
        (
            lambda: Conjunctions("numbers").check(SOURCES),
            'of must name a publish entry whose events are of kind "attributes"',
        ),
        (lambda: Types("trams").check(SOURCES), "there is no publish entry 'trams'; there are: cars, numbers"),
        (lambda: Types("trams").check({}), "there are: none"),
        (lambda: NumberIntervals(low=5, high=4), "low must not exceed high, got 5 and 4"),
        (lambda: Written(()), "texts needs at least one filter"),
    ],
)
def test_an_interest_that_cannot_be_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        make()


def test_an_interval_of_numbers_has_its_mean_length_and_stays_within_its_bounds() -> None:
    random, interest = Random(3), NumberIntervals(low=1, high=1000, length_mean=30.0, length_variance=16.0)
    lengths = []
    for number in range(2000):
        low, high = sorted(map(float, re.findall(r"= ([\d.]+)", str(interest.draw(random, number, {})))))
        assert 1 <= low <= high <= 1000
        if low > 40 and high < 960:
            lengths.append(high - low)
    mean = sum(lengths) / len(lengths)
    assert mean == pytest.approx(30.0, abs=0.4)
    assert math.sqrt(sum((one - mean) ** 2 for one in lengths) / len(lengths)) == pytest.approx(4.0, abs=0.3)
    point = NumberIntervals(low=7, high=7).draw(random, 0, {})
    assert [point.matches(Event("Number", {"value": value})) for value in (6, 7, 8)] == [False, True, False]
