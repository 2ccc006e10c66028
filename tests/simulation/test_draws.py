"""Random draws: what is drawn, and how often."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from earshot.errors import ScenarioError
from earshot.simulation.draws import Span, by_weight, zipf_rank


def test_a_span_is_drawn_evenly_and_its_mean_lies_in_the_middle() -> None:
    span, random = Span(2, 6), Random(1)
    drawn = [span.draw(random) for _ in range(2000)]
    assert 2.0 <= min(drawn) < 2.1
    assert 5.9 < max(drawn) <= 6.0
    assert (span.mean, sum(drawn) / 2000) == (4.0, pytest.approx(4.0, abs=0.1))
    assert (Span(-3, -1).mean, Span(5, 5).mean) == (-2.0, 5.0)


def test_a_span_of_one_number_asks_chance_for_nothing() -> None:
    random = Random(1)
    before = random.getstate()
    assert Span(3, 3).draw(random) == 3.0
    assert random.getstate() == before


@pytest.mark.parametrize(("low", "high"), [(2.0, 1.0), (float("nan"), 1.0), (0.0, float("inf"))])
def test_a_span_without_order_or_end_is_refused(low: float, high: float) -> None:
    with pytest.raises(ScenarioError, match="a span"):
        Span(low, high)


class Fixed(Random):
    """Chance with one answer."""

    def __init__(self, answer: float) -> None:
        super().__init__(1)
        self.answer = answer

    def random(self) -> float:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "place"), [(0.0, 0), (0.2499, 0), (0.25, 2), (0.7499, 2), (0.75, 3), (0.9999, 3), (1.0, 3)]
)
def test_an_index_is_drawn_in_proportion_to_its_weight(answer: float, place: int) -> None:
    """Weights 1, 0, 2 and 1: the second is never drawn."""
    assert by_weight(Fixed(answer), [1.0, 1.0, 3.0, 4.0]) == place


def test_ranks_follow_zipfs_law_and_without_an_exponent_are_even() -> None:
    random = Random(1)
    drawn = Counter(zipf_rank(random, 3, 1.0) for _ in range(11_000))
    assert [drawn[rank] / 11_000 for rank in range(3)] == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.02)
    even = Counter(zipf_rank(random, 4, 0.0) for _ in range(8000))
    assert [even[rank] / 8000 for rank in range(4)] == pytest.approx([0.25] * 4, abs=0.02)
