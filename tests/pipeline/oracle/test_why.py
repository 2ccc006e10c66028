"""Why an event did, or did not, reach a node."""

from __future__ import annotations

from typing import Any

from earshot import Area, Circle, Event, Filter, Position, Viewer
from earshot.pipeline.oracle.why import Explanation, Hop, expectation, explain_receiver
from earshot.pipeline.oracle.workloads import area_of
from earshot.records.sessions import SubscriptionSpan

EVENT = Event(type="Siren", content={"speed": 18}, id="a-0", source="a", time=5.0, position=Position(0, 0))
NEAR = Viewer(Position(50, 0))


def subscription(
    node: str, filter: str, start: float = 0.0, end: float = float("inf"), region: str | None = None
) -> SubscriptionSpan:
    return SubscriptionSpan(node, f"{node}/1", filter, area_of(region), start, end)


def record(
    time: float, node: str, kind: str, peer: str = "", transmission: int = -1, detail: str = ""
) -> dict[str, Any]:
    names = ("time", "node", "kind", "peer", "transmission", "packet", "detail")
    return dict(zip(names, (time, node, kind, peer, transmission, "flood", detail), strict=True))


FLOOD = [
    record(5.0, "a", "publish"),
    record(5.0, "a", "send", transmission=1),
    record(5.1, "b", "receive", "a", 1),
    record(5.1, "b", "send", transmission=2),
    record(5.2, "a", "receive", "b", 2),
    record(5.2, "c", "receive", "b", 2),
    record(5.2, "c", "deliver"),
]


def test_a_delivery_is_reported_with_its_path() -> None:
    assert explain_receiver(EVENT, "c", [subscription("c", "Siren: speed > 10")], NEAR, FLOOD) == Explanation(
        event="a-0",
        node="c",
        expected=True,
        delivered=True,
        reasons=["c/1: " + Filter.where("speed > 10", type="Siren").explain(EVENT, NEAR)],
        path=[Hop(5.1, "a", "b", "flood"), Hop(5.2, "b", "c", "flood")],
        losses=[],
    )


def test_a_node_that_never_heard_it_is_shown_how_far_the_event_came() -> None:
    lost = [*FLOOD, record(5.2, "c", "drop", detail="hop-limit")]
    answer = explain_receiver(EVENT, "z", [subscription("z", "Siren: speed > 10")], NEAR, lost)
    assert (answer.expected, answer.delivered, answer.path) == (True, False, [])
    assert answer.losses == [
        "3 nodes had the event, 2 sent it on; none of them reached z",
        "other nodes lost copies of it: hop-limit (once)",
    ]


def test_a_node_that_dropped_it_says_why() -> None:
    dropped = [*FLOOD, record(5.2, "c", "drop", detail="expired")]
    without_delivery = [one for one in dropped if one["kind"] != "deliver"]
    answer = explain_receiver(EVENT, "c", [subscription("c", "Siren: true")], NEAR, without_delivery)
    assert answer.losses == ["c dropped it: expired"]


def test_each_reason_for_not_being_expected_is_in_words() -> None:
    far = Viewer(Position(900, 0))
    placed = Event(
        type="Siren",
        content={"speed": 18},
        id="a-1",
        source="a",
        time=5.0,
        position=Position(0, 0),
        area=Area(Circle(100)),
    )
    region = '{"shape":{"shape":"circle","radius_m":5.0},"at":[500.0,500.0]}'
    assert expectation(EVENT, "a", [subscription("a", "Siren: true")], NEAR) == (
        False,
        ["a published the event itself"],
    )
    assert expectation(EVENT, "b", [subscription("c", "Siren: true")], NEAR) == (False, ["b has no subscription"])
    assert expectation(EVENT, "b", [subscription("b", "Siren: true", 6.0)], NEAR) == (
        False,
        ["b/1: was not in force at 5.000 s (from 6 s until inf s)"],
    )
    assert expectation(placed, "b", [subscription("b", "Siren: true")], far) == (
        False,
        ["b/1: the node was outside the event's area circle:100m, 900 m from its naval"],
    )
    assert expectation(placed, "b", [subscription("b", "Siren: true")], None)[0] is False
    assert expectation(EVENT, "b", [subscription("b", "Siren: true", region=region)], NEAR) == (
        False,
        ["b/1: the event happened outside the region of interest, circle:5m at 500,500"],
    )
