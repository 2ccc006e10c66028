"""A filter's own answers: which overlap it gives, and what it merges to."""

from __future__ import annotations

import pickle

import pytest

from earshot import Event, Filter, FilterIndex, Position, Viewer
from earshot.errors import FilterSyntaxError, UsageError


class Seen:
    """Statistics with one answer for every pair."""

    def __init__(self, answer: float | None) -> None:
        self.answer = answer
        self.asked: list[tuple[Filter, Filter]] = []

    def overlap(self, one: Filter, other: Filter) -> float | None:
        self.asked.append((one, other))
        return self.answer


SLOW, FAST = Filter.parse("Car: speed < 10"), Filter.parse("Car: speed > 20")


@pytest.mark.parametrize(("answer", "expected"), [(0.25, 0.25), (0.0, 0.0), (None, SLOW.overlap(SLOW))])
def test_what_was_seen_comes_before_what_the_structure_says(answer: float | None, expected: float) -> None:
    seen = Seen(answer)
    assert SLOW.overlap(SLOW, seen) == expected  # type: ignore[arg-type]
    assert seen.asked == [(SLOW, SLOW)]
    assert SLOW.overlap(SLOW) == 1.0


def test_a_filter_that_covers_the_other_is_what_they_merge_to_and_the_order_does_not_matter() -> None:
    slower = Filter.parse("Car: speed < 5")
    assert SLOW.merge(slower) is SLOW
    assert slower.merge(SLOW) is SLOW
    assert SLOW.merge(FAST) == FAST.merge(SLOW) == Filter.parse("Car: speed < 10 or speed > 20")


def test_without_the_terms_about_the_consumer_a_filter_keeps_the_others() -> None:
    assert Filter.parse("Car: speed < 10 and within 100 m").without_viewer_terms() == SLOW
    assert Filter.parse("within 100 m or approaching").without_viewer_terms() == Filter.parse("true")
    assert SLOW.without_viewer_terms() is SLOW
    assert [Filter.parse(text).needs_viewer for text in ("within 1 m", "speed < 10", "not receding")] == [
        True,
        False,
        True,
    ]


def test_a_filter_is_shown_by_what_it_asks_and_not_by_what_was_prepared_for_it() -> None:
    filter = Filter.parse("Car: speed < 10")
    before = repr(filter)
    index = FilterIndex()
    index.add("slow", filter)
    assert index.match(Event("Car", {"speed": 5})) == {"slow"}
    assert (repr(filter), filter) == (before, SLOW)


def test_an_xpath_filter_takes_only_prefixes_that_are_declared() -> None:
    known = {"lib": "http://example.org/lib"}
    assert Filter.xpath("/lib:CD[price]", known) == Filter.xpath("/CD[price]")
    assert Filter.xpath("/any:CD") == Filter.xpath("/CD")
    with pytest.raises(FilterSyntaxError, match="the prefix any: is not declared; the declared ones are: lib"):
        Filter.xpath("/any:CD", known)


def test_a_filter_of_a_type_takes_a_text_that_is_not_empty() -> None:
    assert (str(Filter.of_type("Car")), Filter.of_type("Car").type) == ("Car: true", "Car")
    assert Filter.of_type("traffic/*").matches(Event("traffic/jam"))
    for wrong in ("", None, 3):
        with pytest.raises(UsageError, match=f"an event type is a text that is not empty, got {wrong!r}"):
            Filter.of_type(wrong)  # type: ignore[arg-type]


def test_a_filter_can_be_made_in_three_ways() -> None:
    assert Filter.where("speed < 10", "Car") == SLOW
    assert (SLOW.type, str(SLOW), str(Filter.where("speed < 10"))) == ("Car", "Car: speed < 10", "speed < 10")
    assert (Filter.parse("/Car[speed < 10]").type, Filter.parse("Car").type) == (None, None)


def test_a_filter_is_asked_from_where_the_consumer_is() -> None:
    filter = Filter.parse("Car: speed < 10 and within 100 m")
    car = Event("Car", {"speed": 5}, position=Position(0.0, 0.0))
    near, far = Viewer(Position(100.0, 0.0)), Viewer(Position(101.0, 0.0))
    assert [filter.matches(car, viewer) for viewer in (near, far, None)] == [True, False, False]
    assert (filter.reach_m, SLOW.reach_m) == (100.0, None)
    assert filter.explain(car, far) == (
        "it does not match: its type is Car; within 100 m failed (the distance is 101 m); speed < 10 held (speed is 5)"
    )
    copy = pickle.loads(pickle.dumps(filter))
    assert (copy, copy.type, copy.matches(car, near)) == (filter, "Car", True)


def test_the_wider_of_two_filters_covers_the_other() -> None:
    slower = Filter.parse("Car: speed < 5")
    assert (SLOW.covers(slower), slower.covers(SLOW), SLOW.covers(SLOW), SLOW.covers(FAST)) == (
        True,
        False,
        True,
        False,
    )
