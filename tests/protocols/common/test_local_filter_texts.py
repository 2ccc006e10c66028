"""A node's own subscriptions by text: answered by what is known of an event, unless somebody asks for a place."""

from random import Random

import pytest

from earshot import Circle, Event, Filter, Position, Proximity, Viewer
from earshot.filters import Subscription
from earshot.protocols.common.filter_answers import Answers
from earshot.protocols.common.local_filter_texts import OwnTexts
from earshot.protocols.machine import Deliver, Effects, FixedLocation, Machine

HERE, AWAY = Viewer(Position(0, 0)), Viewer(Position(900, 0))
AREA = Proximity(Circle(300), naval=Position(0, 0)).area(Position(0, 0))
FAST = Event("Siren", {"speed": 18.0}, position=Position(0, 0))


def own(**filters: str) -> OwnTexts:
    found = OwnTexts()
    for id, text in filters.items():
        found.add(Subscription(id, "me", Filter.where(text, type="Siren")))
    return found


def receiving(own: OwnTexts, event: Event, viewer: Viewer, known: Answers | None = None) -> Effects:
    machine = Machine("me", None, FixedLocation(viewer.position), Random(0))
    own.tell_known(machine, event, known or Answers(frozenset(), set()), 2, now=0.0)
    return machine.effects()


def deliveries(event: Event, *subscriptions: str) -> Effects:
    return [Deliver(event, id, 2) for id in subscriptions]


def test_an_answer_that_is_known_is_not_looked_for_again() -> None:
    held = own(b="speed > 30", a="speed > 10")
    assert receiving(held, FAST, AWAY) == deliveries(FAST, "a")
    texts = held.texts.values()
    assert receiving(held, FAST, AWAY, Answers(frozenset(texts), set(texts))) == deliveries(FAST, "a", "b")
    assert receiving(held, FAST, AWAY, Answers(frozenset(texts), set())) == []


@pytest.mark.parametrize(("viewer", "expected"), [(HERE, ["a"]), (AWAY, [])])
def test_an_event_with_an_area_is_for_those_in_it(viewer: Viewer, expected: list[str]) -> None:
    event = Event("Siren", {"speed": 18.0}, position=Position(0, 0), area=AREA)
    assert receiving(own(a="speed > 10"), event, viewer) == deliveries(event, *expected)


@pytest.mark.parametrize(("viewer", "expected"), [(HERE, ["a", "b"]), (AWAY, ["a"])])
def test_where_one_asks_for_a_place_all_are_asked_exactly(viewer: Viewer, expected: list[str]) -> None:
    assert receiving(own(a="speed > 10", b="within 200 m"), FAST, viewer) == deliveries(FAST, *expected)


def test_a_region_of_interest_is_a_place_too() -> None:
    held = own()
    held.add(Subscription("a", "me", Filter.where("speed > 10", type="Siren"), region=AREA))
    far = Event("Siren", {"speed": 18.0}, position=Position(900, 0))
    assert (receiving(held, FAST, AWAY), receiving(held, far, HERE)) == (deliveries(FAST, "a"), [])


def test_what_is_removed_or_replaced_is_asked_no_more() -> None:
    held = own(a="speed > 10", b="within 200 m")
    held.remove("b")
    held.add(Subscription("a", "me", Filter.where("speed > 30", type="Siren")))
    assert (len(held.texts), receiving(held, FAST, HERE)) == (1, [])
