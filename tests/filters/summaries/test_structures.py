"""The four structures of section III.C, one by one."""

from __future__ import annotations

from earshot import Filter
from earshot.filters.summaries.bloom import fingerprint, name_key, type_key
from earshot.filters.summaries.structures import AssociationList, NumberConstraint, needed
from earshot.filters.summaries.summary import Summary
from earshot.filters.summaries.value_combinations import EQUALS, NUMBER

FIGURE_3 = (
    '/CD[category="jazz"] [composer="Evans"]',
    '/CD[category="jazz"] [composer="Davis"]',
    '/CD[category="pop"]',
    '/CD[category="classic"] [composer="Bach"]',
    '/CD[category="classic" and price<"20"]',
)


def test_figure_3_in_the_papers_four_structures() -> None:
    summary = Summary.of(map(Filter.xpath, FIGURE_3)).without_combinations()
    assert list(summary.sections) == [type_key("CD")]  # ETN
    section = summary.sections[type_key("CD")]
    category = name_key("category") << 2 | EQUALS
    assert section.eal == AssociationList(
        (category,), frozenset({(category,)}), 1
    )  # the shortest row makes others redundant
    assert section.aec == {}
    assert list(section.sec) == [name_key("category")]
    equal = section.sec[name_key("category")].equal
    assert equal is not None
    assert [fingerprint(text) in equal for text in ("jazz", "pop", "classic", "rock")] == [True, True, True, False]


def test_without_the_short_row_every_pair_of_columns_stays() -> None:
    section = Summary.of(map(Filter.xpath, (FIGURE_3[0], FIGURE_3[4]))).without_combinations().sections[type_key("CD")]
    category, composer = (name_key(name) << 2 | EQUALS for name in ("category", "composer"))
    price = name_key("price") << 2 | NUMBER
    assert section.eal.rows == {tuple(sorted((category, composer))), tuple(sorted((category, price)))}
    (numbers,) = section.aec.values()
    ((low, high),) = numbers.spans
    assert low < high


def test_an_equality_outside_the_sub_ranges_is_a_sub_range_with_two_equal_ends() -> None:
    numbers = NumberConstraint.of([(5.0, 9.0), (1.0, 6.0), (12.0, 12.0), (7.0, 7.0)])
    assert numbers.spans == ((1.0, 9.0), (12.0, 12.0))


def test_redundant_rows_are_eliminated() -> None:
    assert needed([(1, 2), (1,), (2, 3), (2, 3)]) == {(1,), (2, 3)}
