"""Statements about types: the last one counts, old ones expire, and those who differ are refused."""

from typing import Any

import msgspec
import pytest

from earshot import Circle, EventType, Polygon, Position, Proximity
from earshot.errors import QualityError
from earshot.geometry import Velocity
from earshot.protocols.common.byte_budget import TableBudgets
from earshot.protocols.machine import Announcement
from earshot.protocols.services import announced_types
from earshot.protocols.services.announced_types import FORGET_S, Announced, AnnouncedTypes, Statement, statement_bytes
from earshot.quality import NAMES, Quality

ORIGIN, STILL = Position(0.0, 0.0), Velocity(0.0, 0.0)
STATED = Announced("p", 5.0, "Tick", {"n": "integer"}, {"history": "3"}, None, ORIGIN, STILL, 1.0, (), False, 1)
KEY = ("p", "Tick")


def stated(**changed: Any) -> Announced:
    return msgspec.structs.replace(STATED, **changed)


def types() -> AnnouncedTypes:
    return AnnouncedTypes("flooding", frozenset(NAMES))


def heard_by(known: AnnouncedTypes, *statements: Announced, now: float = 10.0) -> list[bool]:
    return [known.hear(one, now) is not None for one in statements]


def test_a_statement_is_new_only_if_it_is_later_and_copies_are_counted() -> None:
    known = types()
    assert heard_by(known, STATED, STATED, stated(hops=2), stated(time=4.0), stated(time=6.0)) == [
        True, False, False, False, True,
    ]  # fmt: skip
    assert (known.heard[KEY].stated.time, known.heard[KEY].copies) == (6.0, 0)
    assert heard_by(known, stated(time=6.0), stated(time=5.0)) == [False, False]
    assert known.heard[KEY].copies == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"time": float("nan")},
        {"time": float("inf")},
        {"at": Position(float("nan"), 0.0)},
        {"at": Position(0.0, float("inf"))},
        {"velocity": Velocity(float("inf"), 0.0)},
        {"velocity": Velocity(0.0, float("nan"))},
        {"past_since": float("nan")},
        {"proximity": Proximity(Circle(9.0), Position(float("nan"), 0.0))},
        {"proximity": Proximity(Circle(9.0), Position(0.0, float("inf")))},
        {"attributes": {"history": "-1"}},
        {"content": {"n": "no such type"}},
    ],
)
def test_an_impossible_statement_is_not_taken(changed: dict[str, Any]) -> None:
    known = types()
    assert (heard_by(known, stated(**changed)), known.heard) == ([False], {})


def test_an_announcement_that_ended_is_not_heard_again() -> None:
    known = types()
    ends = stated(time=7.0, ended=True)
    assert heard_by(known, STATED, ends, ends, stated(time=7.0), stated(time=6.0)) == [True, True, False, False, False]
    assert (known.heard, known.bytes, list(known.ended.items())) == ({}, 0, [(KEY, (7.0, 10.0))])
    assert heard_by(known, stated(time=7.5)) == [True]


def test_statements_and_ends_expire() -> None:
    known = types()
    heard_by(known, STATED, stated(source="other", time=7.0, ended=True))
    assert (known.forget(10.0 + FORGET_S), len(known.heard), len(known.ended)) == ([], 1, 1)
    assert (known.forget(10.1 + FORGET_S), known.heard, known.bytes, len(known.ended)) == ([KEY], {}, 0, 0)


def test_a_statement_that_is_renewed_counts_once_and_becomes_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    known = types()
    heard_by(known, stated(source="a"), stated(source="b"), stated(source="a", time=6.0))
    assert known.bytes == sum(one.bytes for one in known.heard.values())
    assert [source for source, _ in known.heard] == ["b", "a"]
    monkeypatch.setattr(announced_types, "MOST_STATEMENTS", 2)
    heard_by(known, stated(source="c", time=7.0))
    assert [source for source, _ in known.heard] == ["a", "c"], "what was not renewed for longest is forgotten first"


def test_statements_and_ends_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert announced_types.MOST_STATEMENTS == 4096
    monkeypatch.setattr(announced_types, "MOST_STATEMENTS", 2)
    known = types()
    for now, source in enumerate("abca"):
        known.hear(stated(source=source, time=5.0 + now), float(now))
    assert {source for source, _ in known.heard} == {"c", "a"}
    known.hear(stated(source="c", time=20.0), 20.0)
    assert {source for source, _ in known.heard} == {"c", "a"}
    for source in "def":
        known.hear(stated(source=source, ended=True), 21.0)
    assert {source for source, _ in known.ended} == {"e", "f"}


def test_statements_are_bounded_by_what_they_say() -> None:
    known = AnnouncedTypes("flooding", frozenset(NAMES), budgets := TableBudgets())
    budgets.limit(0.125)
    long = tuple(f"{number:02}" + "\N{GRINNING FACE}" * 200 for number in range(32))
    ring = tuple((float(number), float(number * number)) for number in range(50))
    large = [
        stated(content=dict.fromkeys(long, "integer")),
        stated(recent=long),
        stated(proximity=Proximity(Polygon(ring), ORIGIN)),
    ]
    plain = 1024 + 64 * 5 + len("pTicknhistory3")
    texts = 32 * (64 + 4 * 202)
    assert [statement_bytes(one) for one in (STATED, *large)] == [
        plain, plain - 65 + texts, plain + texts, plain + 50 * 200,
    ]  # fmt: skip
    for number in range(300):
        known.hear(msgspec.structs.replace(large[number % 3], source=f"s{number}"), 10.0)
    assert 400_000 < known.bytes <= 500_000
    assert known.bytes == sum(one.bytes for one in known.heard.values())
    assert ("s299", "Tick") in known.heard
    assert known.forget(10.1 + FORGET_S)
    assert (known.heard, known.bytes) == ({}, 0)


def test_a_statement_that_is_not_renewed_for_16_seconds_expires() -> None:
    known = types()
    known.hear(STATED, 10.0)
    assert (known.forget(26.0), known.forget(26.001), known.heard) == ([], [KEY], {})


def test_a_source_whose_attributes_differ_is_refused_and_says_why() -> None:
    known = types()
    known.own["Tick"] = Announcement(EventType("Tick", {}, {"history": 2}))
    known.declared["s"] = EventType("Tick", {}, {"history": 2})
    known.declared["other"] = EventType("Tock")
    statement = known.hear(STATED, 10.0)
    assert statement is not None
    assert statement.refused == (
        "Tick: p has history = 3, this node history = 2; all nodes must use one list of attributes for a type"
    )
    assert [known.refuses("p", "Tick", id) for id in ("s", "unknown")] == [True, False]
    assert not known.refuses("q", "Tick", "s")


def test_a_declared_type_is_compared_where_nothing_is_announced() -> None:
    known = types()
    known.declared["s"] = EventType("Tick", {}, {"history": 3})
    agreed = known.hear(STATED, 10.0)
    differing = known.hear(stated(source="q", attributes={}), 10.0)
    assert agreed is not None
    assert differing is not None
    assert (agreed.refused, bool(differing.refused)) == ("", True)
    assert [known.refuses(source, "Tick", "s") for source in "pq"] == [False, True]


def test_the_quality_is_what_the_source_states_and_else_what_is_declared() -> None:
    known = types()
    assert known.quality("p", "Tick") is None
    known.declared["s"] = EventType("Tick", {}, {"history": 7})
    known.hear(STATED, 10.0)
    assert [known.quality(*key) for key in (KEY, ("q", "Tick"), ("q", "Tock"))] == [
        Quality(history=3), Quality(history=7), None,
    ]  # fmt: skip


@pytest.mark.parametrize("side", ["heard", "own", "declared"])
def test_a_type_used_with_other_attributes_is_refused(side: str) -> None:
    known = types()
    if side == "heard":
        known.hear(STATED, 10.0)
    elif side == "own":
        known.own["Tick"] = Announcement(EventType("Tick", {}, {"history": 3}))
    else:
        known.declared["s"] = EventType("Tick", {}, {"history": 3})
    known.check(EventType("Tick", {}, {"history": 3}))
    known.check(EventType("Tock", {}, {"history": 4}))
    who = {"heard": "p", "own": "the announcement here", "declared": "s here"}[side]
    with pytest.raises(QualityError, match=f"Tick: {who} has history = 3, this node history = 4"):
        known.check(EventType("Tick", {}, {"history": 4}))


def test_only_reliable_statements_are_reliable() -> None:
    found = [Statement(STATED, EventType("Tick", {}, {"reliability": one}), 0.0).is_reliable for one in
             ("reliable", "best_effort")]  # fmt: skip
    assert found == [True, False]


def statement(at_x_m: float, mobile: bool = False) -> Statement:
    near = Proximity(Circle(100.0), Position(0.0, 0.0), mobile)
    says = stated(proximity=near, at=Position(at_x_m, 0.0), velocity=Velocity(10.0, -2.0))
    return Statement(says, EventType("Tick"), 10.0)


@pytest.mark.parametrize(
    ("source_x_m", "here_x_m", "passed_on"),
    [(0.0, 50.0, True), (0.0, 150.0, False), (150.0, 150.0, True), (150.0, 50.0, True)],
)
def test_a_statement_is_passed_on_inside_its_area_and_on_the_way_to_it(
    source_x_m: float, here_x_m: float, passed_on: bool
) -> None:
    assert statement(source_x_m).passed_on_from(Position(here_x_m, 0.0)) == passed_on


def test_a_statement_without_a_proximity_is_passed_on_everywhere() -> None:
    one = Statement(STATED, EventType("Tick"), 10.0)
    assert (one.area(12.0), one.passed_on_from(Position(1e6, 0.0))) == (None, True)


def test_an_area_moves_as_its_source_said() -> None:
    moved = statement(5.0, mobile=True).area(13.0)
    fixed = statement(5.0).area(13.0)
    assert moved is not None
    assert fixed is not None
    assert (moved.centre, fixed.centre) == (Position(35.0, -6.0), Position(0.0, 0.0))
