"""Publish and subscribe entries drawn into actions; workloads from files of the user's own."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from earshot.errors import ScenarioError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Circle, Position, Proximity, Rectangle
from earshot.protocols.machine import Announcement
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.workload.actions import Action, Unannounce, Unsubscribe, Workload

NUMBER = EventType("Number", {"value": "integer"})
TABLE: dict[str, Any] = {
    "publish": {"p": {"events": "numbers", "when": {"kind": "at", "times_s": [2.0, 5.0]}, "announce_s": 0.5}},
    "subscribe": {"s": {"filters": {"kind": "written", "texts": ["Number: value > 3"]}, "at_s": 0.25}},
}
GIVEN = {"names": ["a", "b"], "mobility": {"kind": "given", "at_m": [[10, 20], [30, 40]]}}


def scenario(changes: dict[str, Any] | None = None) -> Scenario:
    from earshot.simulation.settings_reader import Where, read

    table = {"duration_s": 10.0, "nodes": {"n": GIVEN}, **TABLE}
    return read(Scenario, table, Where("test")).with_(changes or {})


def actions(changes: dict[str, Any] | None = None, seed: int = 1) -> list[Action]:
    return list(scenario(changes).workload(seed))


def whats(found: list[Action], kind: type) -> list[tuple[float, int, Any]]:
    return [(action.time, action.node, action.what) for action in found if isinstance(action.what, kind)]


def test_a_workload_is_ordered_by_time_and_stable() -> None:
    late, early, also = Action(2.0, 0, Event("A")), Action(1.0, 1, Event("B")), Action(2.0, 1, Event("C"))
    assert list(Workload([late, early, also])) == [early, late, also]


def test_entries_become_subscriptions_announcements_and_events() -> None:
    found = actions()
    wanted = Filter.parse("Number: value > 3")
    assert [(action.time, action.node) for action in found] == [
        (0.25, 0),
        (0.25, 1),
        (0.5, 0),
        (0.5, 1),
        (2.0, 0),
        (2.0, 1),
        (5.0, 0),
        (5.0, 1),
    ]
    assert [action.what for action in found[:4]] == [
        Subscription("a/s/0", "a", wanted),
        Subscription("b/s/0", "b", wanted),
        Announcement(NUMBER),
        Announcement(NUMBER),
    ]
    assert all(isinstance(action.what, Event) and action.what.type == "Number" for action in found[4:])


def test_publishing_keeps_to_the_warm_up_and_the_cool_down() -> None:
    periodic = {"publish.p.when": {"kind": "periodic", "interval_s": 1.0, "phase": "zero"}}
    times = [
        time for time, node, _ in whats(actions({"warm_up_s": 3, "cool_down_s": 2, **periodic}), Event) if node == 0
    ]
    assert times == [3.0, 4.0, 5.0, 6.0, 7.0]
    own = {"publish.p.from_s": 1.0, "publish.p.until_s": 3.0}
    found = actions({"warm_up_s": 3, **periodic, **own})
    assert [time for time, node, _ in whats(found, Event) if node == 0] == [1.0, 2.0]
    assert whats(found, Unannounce) == [(3.0, 0, Unannounce("Number")), (3.0, 1, Unannounce("Number"))]


def test_events_may_be_few_and_carry_lifespan_and_priority() -> None:
    found = whats(actions({"publish.p.limit": 1, "publish.p.lifespan_s": 7.0, "publish.p.priority": 2}), Event)
    assert [(time, node, event.lifespan_s, event.priority) for time, node, event in found] == [(2.0, 0, 7.0, 2)]


def test_publishers_may_not_announce() -> None:
    assert whats(actions({"publish.p.announce": False}), Announcement) == []


@pytest.mark.parametrize(
    ("nodes", "who"),
    [("all", [0, 1]), ("n", [0, 1]), ("b", [1]), (["a", "n"], [0, 1]), ([], [])],
)
def test_entries_name_groups_and_nodes(nodes: Any, who: list[int]) -> None:
    assert [node for _, node, _ in whats(actions({"subscribe.s.nodes": nodes}), Subscription)] == who


def test_share_count_and_chance_choose_among_them() -> None:
    base = load_scenario("base").with_({"nodes.node.count": 400, "subscribe.news.share": None})

    def subscribers(seed: int = 1, **choice: Any) -> set[int]:
        town = base.with_({f"subscribe.news.{name}": value for name, value in choice.items()})
        return {node for _, node, _ in whats(list(town.workload(seed)), Subscription)}

    assert len(subscribers(share=0.25)) == 100
    assert len(subscribers(count=7)) == 7
    assert len(subscribers(chance=0.5)) == pytest.approx(200, abs=40)
    assert len({len(subscribers(seed, chance=0.5)) for seed in range(8)}) > 3
    assert subscribers(1, count=7) != subscribers(2, count=7)
    with pytest.raises(ScenarioError, match=r"subscribe.news: count is 401, but there are only 400 nodes"):
        subscribers(count=401)


def test_a_proximity_is_pinned_to_the_publisher_or_to_its_place() -> None:
    def proximities(**proximity: Any) -> list[Proximity]:
        found = whats(actions({"publish.p.proximity": {"shape": "circle:50m", **proximity}}), Announcement)
        return [announcement.proximity for _, _, announcement in found]

    circle = Circle(50.0)
    assert proximities() == [
        Proximity(circle, Position(10, 20), mobile=True),
        Proximity(circle, Position(30, 40), True),
    ]
    assert proximities(mobile=False)[1] == Proximity(circle, Position(30, 40), mobile=False)
    assert proximities(mobile=False, at=[5, 6])[1] == Proximity(circle, Position(5, 6), mobile=False)
    boxes = proximities(shape="rectangle:10x20m@45")
    assert boxes[0].shape == Rectangle(10.0, 20.0, 45.0)


def test_a_region_lies_around_the_node_anywhere_or_where_it_is_put() -> None:
    def regions(**region: Any) -> list[Area]:
        found = whats(actions({"subscribe.s.region": {"shape": "circle:50m", **region}}), Subscription)
        return [subscription.region for _, _, subscription in found]

    assert regions() == [Area(Circle(50.0), Position(10, 20)), Area(Circle(50.0), Position(30, 40))]
    assert regions(at=[1, 2]) == [Area(Circle(50.0), Position(1, 2))] * 2
    anywhere = [region.at for region in regions(at="anywhere")]
    assert len(set(anywhere)) == 2
    assert all(0 <= at.x_m <= 1000 and 0 <= at.y_m <= 1000 for at in anywhere)


def test_subscribers_may_hold_several_and_leave() -> None:
    found = actions({"subscribe.s.each": [2, 3], "subscribe.s.until_s": 6.0, "subscribe.s.nodes": "a"})
    held = [what.id for _, _, what in whats(found, Subscription)]
    assert held in (["a/s/0", "a/s/1"], ["a/s/0", "a/s/1", "a/s/2"])
    assert [(time, what.id) for time, _, what in whats(found, Unsubscribe)] == [(6.0, id) for id in held]


def test_subscriptions_may_be_changed_for_others_again_and_again() -> None:
    texts = {"kind": "written", "texts": ["Number: value > 3", "Number: value > 4"], "choose": "in-turn"}
    found = actions({"subscribe.s.lasting_s": 4.0, "subscribe.s.nodes": "a", "subscribe.s.filters": texts})
    assert [(time, what.id, str(what.filter)) for time, _, what in whats(found, Subscription)] == [
        (0.25, "a/s/0.0", "Number: value > 3"),
        (4.25, "a/s/0.1", "Number: value > 4"),
        (8.25, "a/s/0.2", "Number: value > 3"),
    ]
    assert [(time, what.id) for time, _, what in whats(found, Unsubscribe)] == [(4.25, "a/s/0.0"), (8.25, "a/s/0.1")]


def test_a_node_that_is_not_there_neither_publishes_nor_subscribes_before_it_comes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("node,time,x_m,y_m\nbus,0,0,0\nbus,3,9,9\nlate,4,7,8\nlate,9,7,8\n")
    playback = {"kind": "playback", "file": str(tmp_path / "t.csv")}
    found = actions({"nodes": {"n": {"names": [], "mobility": playback}}, "subscribe.s.region": {"shape": "circle:5m"}})
    assert [(time, node) for time, node, _ in whats(found, Event)] == [(2.0, 0), (5.0, 1)]
    subscriptions = [(time, what.id, what.region.at) for time, _, what in whats(found, Subscription)]
    assert subscriptions == [(0.25, "bus/s/0", Position(0.75, 0.75)), (4.0, "late/s/0", Position(7.0, 8.0))]
    assert [(time, node) for time, node, _ in whats(found, Announcement)] == [(0.5, 0), (4.0, 1)]


def test_one_node_announces_one_type_in_one_way() -> None:
    second = {**TABLE["publish"]["p"], "proximity": {"shape": "circle:50m"}}
    with pytest.raises(ScenarioError, match="two publish entries announce 'Number' on one node"):
        actions({"publish.q": second})
    actions({"publish.q": {**second, "nodes": "a"}, "publish.p.nodes": "b"})
    actions({"publish.q": TABLE["publish"]["p"]})


# Files of the user's own.

EVENTS = """{"time_s": 3.5, "node": "b", "type": "Siren", "content": {"speed": 21.5}}
{"time_s": 1, "node": "a", "xml": "<CD><price>9</price></CD>"}
{"time_s": 99, "node": "a", "type": "TooLate"}
"""
WISHES = """{"node": "a", "filter": "Siren: speed > 10", "at_s": 2, "until_s": 5, "id": "mine"}
{"node": "b", "filter": "/CD", "region": {"shape": "circle:300m", "at": [500, 400]}}
"""


def own(folder: Path, events: str = EVENTS, subscriptions: str = WISHES, **extra: Any) -> list[Action]:
    (folder / "events.jsonl").write_text(events)
    (folder / "wishes.jsonl").write_text(subscriptions)
    files = {"events": str(folder / "events.jsonl"), "subscriptions": str(folder / "wishes.jsonl"), **extra}
    return actions({"publish": None, "subscribe": None, "own": files})


def test_a_workload_may_come_from_files(tmp_path: Path) -> None:
    found = own(tmp_path, proximity={"shape": "circle:50m"})
    siren = Filter.parse("Siren: speed > 10")
    assert [(time, node, type(what).__name__) for time, node, what in whats(found, object)] == [
        (0.0, 1, "Subscription"),
        (0.0, 1, "Announcement"),
        (0.0, 0, "Announcement"),
        (0.0, 0, "Announcement"),
        (1.0, 0, "Event"),
        (2.0, 0, "Subscription"),
        (3.5, 1, "Event"),
        (5.0, 0, "Unsubscribe"),
    ]
    assert whats(found, Subscription)[1][2] == Subscription("mine", "a", siren)
    assert whats(found, Subscription)[0][2].region == Area(Circle(300.0), Position(500, 400))
    assert whats(found, Event)[1][2] == Event("Siren", {"speed": 21.5})
    assert whats(found, Event)[0][2].type == "CD"
    assert whats(found, Announcement)[0][2] == Announcement(
        EventType("Siren", {"speed": "float"}), Proximity(Circle(50.0), Position(30, 40), mobile=True)
    )


def test_announcements_of_own_events_may_be_left_out(tmp_path: Path) -> None:
    assert whats(own(tmp_path, announce=False), Announcement) == []


@pytest.mark.parametrize(
    ("events", "subscriptions", "problem"),
    [
        ('{"node": "a", "type": "A"}', "", r"events.jsonl: line 1: time_s must be a number of seconds, got None"),
        ('{"time_s": 1, "type": "A"}', "", r"events.jsonl: line 1: node must be a text, got None"),
        ('{"time_s": 1, "node": "zed", "type": "A"}', "", r"events.jsonl: no node is called 'zed'"),
        (
            '{"time_s": -1, "node": "a", "type": "A"}',
            "",
            r"events.jsonl: an event's time_s must not be negative, got -1",
        ),
        ("", '{"node": "a", "filter": "x >"}', r"wishes.jsonl: line 1: "),
        ("", '{"node": "a"}', r"wishes.jsonl: line 1: filter must be a text, got None"),
        ("", '{"node": "a", "filter": "/CD", "until": 3}', r"wishes.jsonl: line 1: no such key as 'until'"),
        ("", '{"node": "a", "filter": "/CD", "region": 3}', r"wishes.jsonl: line 1: a region is "),
        ("", '{"node": "a", "filter": "/CD", "at_s": "x"}', r"wishes.jsonl: line 1: at_s must be a number"),
    ],
)
def test_a_bad_line_is_refused_with_the_reason(tmp_path: Path, events: str, subscriptions: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        own(tmp_path, events, subscriptions)


def test_the_city_has_something_for_everyone() -> None:
    found = list(load_scenario("city").workload(1))
    published = Counter(action.what.type for action in found if isinstance(action.what, Event))
    assert {"Traffic", "Parking", "Siren", "CD"} < set(published)
    assert any(isinstance(action.what, Event) and not isinstance(action.what.content, dict) for action in found)
    shapes = {type(what.proximity.shape) for _, _, what in whats(found, Announcement) if what.proximity}
    assert shapes == {Circle, Rectangle}


RATES = [
    (
        {"kind": "periodic", "interval_s": 1.0, "phase": "zero"},
        2.0,
        {"kind": "periodic", "interval_s": 0.5, "phase": "zero"},
    ),
    ({"kind": "poisson", "rate_per_s": 3.0}, 0.5, {"kind": "poisson", "rate_per_s": 1.5}),
    ({"kind": "at", "times_s": [6.0, 2.0]}, 2.0, {"kind": "at", "times_s": [2.0, 4.0, 6.0, 8.0]}),
    ({"kind": "at", "times_s": [1.0, 2.0, 3.0, 4.0]}, 0.5, {"kind": "at", "times_s": [2.0, 4.0]}),
    ({"kind": "at", "times_s": [2.0, 4.0]}, 1.5, {"kind": "at", "times_s": [2.0, 4.0, 5.0]}),
]


@pytest.mark.parametrize(("when", "multiple", "same"), RATES)
def test_an_event_rate_multiplies_every_entry(when: dict[str, Any], multiple: float, same: dict[str, Any]) -> None:
    faster = actions({"publish.p.when": when, "event_rate": multiple})
    assert faster == actions({"publish.p.when": same})
    assert whats(faster, Event)


def test_an_event_rate_multiplies_the_limit_of_an_entry() -> None:
    assert len(whats(actions({"publish.p.limit": 3}), Event)) == 3
    assert len(whats(actions({"publish.p.limit": 3, "event_rate": 2}), Event)) == 6


def test_an_event_rate_repeats_the_events_of_a_file_between_one_and_the_next(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    lines = [f'{{"time_s": {time}, "node": "{node}", "type": "{kind}"}}' for time, node, kind in
             ((5.0, "b", "B"), (1.0, "a", "A"), (2.0, "b", "C"))]  # fmt: skip
    events.write_text("\n".join(lines))
    own = {"own.events": str(events), "publish.p": None}
    found = whats(actions({**own, "event_rate": 2.0}), Event)
    assert [(time, node, event.type) for time, node, event in found] == [
        (1.0, 0, "A"), (1.5, 0, "A"), (2.0, 1, "C"), (3.5, 1, "C"), (5.0, 1, "B"), (6.5, 1, "B"),
    ]  # fmt: skip
    assert [time for time, *_ in whats(actions(own), Event)] == [1.0, 2.0, 5.0]
