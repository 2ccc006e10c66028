"""A filter's own answers: which overlap it gives, and what it merges to."""

from __future__ import annotations

import pytest

from earshot import Event, Filter, FilterIndex


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
