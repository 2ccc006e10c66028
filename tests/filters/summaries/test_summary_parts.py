"""The parts of a summary at their bounds: cells, sub-ranges, pieces, shapes, and what a budget costs."""

from __future__ import annotations

import math
from itertools import groupby
from math import inf, log

import pytest

from earshot import Event, Filter
from earshot.errors import MalformedPacket, UsageError
from earshot.filters.summaries.bloom import Bloom, BloomShape, fingerprint, name_key, type_key
from earshot.filters.summaries.clauses import Values
from earshot.filters.summaries.data_summary import FieldBitmaps
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.sections import TypeSection
from earshot.filters.summaries.structures import (
    AssociationList,
    NumberConstraint,
    Pieces,
    TextConstraint,
    needed,
)
from earshot.filters.summaries.summary import SMALLEST_BUDGET, Summary, _ladder
from earshot.filters.summaries.summary_bytes import BitReader
from earshot.filters.summaries.value_combinations import (
    EQUALS,
    HOLDS,
    NUMBER,
    PRESENT,
    UNBOUNDED,
    ValueCombinations,
    cells_of,
    combinations_shape,
    width_of,
    with_few_split,
)

SHAPE = BloomShape(1024, 3)


def summary(*texts: str, type: str | None = "T") -> Summary:
    return Summary.of([Filter.where(text, type) for text in texts])


def section(*texts: str) -> TypeSection:
    return summary(*texts).sections[type_key("T")]


def values(*texts: str, span: tuple[float, float] | None = None) -> Values:
    return Values(texts, span)


# Cells of numbers.


@pytest.mark.parametrize(
    ("span", "width"),
    [
        ((3.0, 6.0), 2),  # 3 is at most 4
        ((3.0, 7.0), 3),  # 4 is at most 8: a cell is wider than its range
        ((3.0, 6.999), 2),
        ((0.0, 0.0), 0),  # zero has no exponent of its own
        ((1.0, 1.0), -19),  # a millionth of the number
        ((math.nextafter(1.0, 0.0), 1.0), -19),  # and of the greater of two
        ((-1.0, math.nextafter(-1.0, 0.0)), -19),
        ((-1024.0, -1024.0), -9),
        ((0.0, 2.0**125), 126),
        ((-(2.0**126), 2.0**126), UNBOUNDED),
        ((-1e39, 20.0), UNBOUNDED),
        ((1e300, 1e300), UNBOUNDED),
        ((-math.inf, 3.0), UNBOUNDED),
        ((3.0, math.inf), UNBOUNDED),
        ((-1.7e308, 1.7e308), UNBOUNDED),
    ],
)
def test_a_cell_is_as_wide_as_its_range_or_up_to_twice(span: tuple[float, float], width: int) -> None:
    assert width_of(span) == width
    assert len(cells_of(span, width) or ()) in (1, 2)


@pytest.mark.parametrize(
    ("span", "width", "cells"),
    [
        ((3.0, 6.0), 2, [0, 1]),
        ((4.0, 7.9), 2, [1]),
        ((-0.1, 0.0), 2, [-1, 0]),
        ((0.0, 15.0), 2, [0, 1, 2, 3]),
        ((0.0, 16.0), 2, None),
        ((-math.inf, 0.0), 2, None),
        ((0.0, math.inf), 2, None),
        ((-math.inf, math.inf), UNBOUNDED, [0]),
    ],
)
def test_numbers_lie_in_the_cells_of_a_width_and_too_many_cells_are_unknown(
    span: tuple[float, float], width: int, cells: list[int] | None
) -> None:
    assert cells_of(span, width) == cells


def test_a_filter_on_numbers_wider_than_any_cell_is_summarised() -> None:
    for text in ("p >= -1e39 and p <= 20", "p >= -20 and p <= 1e300", "p = 1e300"):
        wanted = Filter.where(f'{text} and q = "x"', "T")
        for one in (Summary.of([wanted]), Summary.from_bytes(Summary.of([wanted]).to_bytes())):
            for event in (Event("T", {"p": p, "q": q}) for p in (-1e38, 0, 20, 1e300) for q in "xy"):
                assert one.may_match(event) == wanted.matches(event), text


def test_the_seventh_range_in_two_cells_becomes_unbounded() -> None:
    spans = {key: [(3.0, 6.0)] for key in range(1, 9)}
    everything = [(-math.inf, math.inf)]
    assert with_few_split(spans) == {key: spans[key] if key <= 6 else everything for key in spans}
    assert with_few_split({1: [(4.0, 7.0)] * 9, 2: [(3.0, 6.0)]}) == {1: [(4.0, 7.0)] * 9, 2: [(3.0, 6.0)]}


@pytest.mark.parametrize(
    ("bits", "hashes", "shape"), [(64, 2, (512, 3)), (8192, 15, (65_536, 16)), (16_384, 16, (65_536, 16))]
)
def test_combinations_have_eight_times_the_bits_and_one_more_hash(
    bits: int, hashes: int, shape: tuple[int, int]
) -> None:
    assert combinations_shape(BloomShape(bits, hashes)) == BloomShape(*shape)


def test_merged_combinations_know_the_widths_of_both() -> None:
    ours = ValueCombinations.of(SHAPE, {1}, {1: [(3.0, 6.0)], 2: [(0.0, 1.0)]})
    theirs = ValueCombinations.of(SHAPE, {2}, {1: [(3.0, 60.0)], 3: [(0.0, 0.0)]})
    both = ours.merged(theirs)
    assert both.widths == {1: (2, 6), 2: (1,), 3: (0,)}
    assert [mark in both.marks for mark in (1, 2, 3)] == [True, True, False]
    assert both.trimmed({1, 3}).widths == {1: (2, 6), 3: (0,)}
    assert both.folded() == ValueCombinations(both.marks.folded(), both.widths)


def test_an_event_of_many_values_meets_a_row_without_asking_each_combination() -> None:
    wanted = section('p = "a" and q = "b"')
    (row,) = wanted.eal.rows or ()
    assert wanted.combinations is not None
    for counts, met in (((8, 8), False), ((5, 13), True)):
        many = {
            key >> 2: values(*(f"{key} {number}" for number in range(count)))
            for key, count in zip(row, counts, strict=True)
        }

        class Facts:
            type = type_key("T")

            def values(self, key: int, many: dict[int, Values] = many) -> Values | None:
                return many.get(key)

        assert wanted.combinations.hold(row, Facts()) is met, counts


# The four structures.


def test_only_shorter_rows_make_others_redundant_and_with_combinations_only_those_without_values() -> None:
    present, number, equals, holds = (1 << 2 | kind for kind in (PRESENT, NUMBER, EQUALS, HOLDS))
    other = 2 << 2 | PRESENT
    rows = [(one, other) for one in (present, number, equals, holds)]
    assert needed([(present,), *rows]) == {(present,), *rows[1:]}
    for asked in (number, equals):
        assert needed([(asked,), *rows]) == {(asked,), *rows} - {(asked, other)}
        assert needed([(asked,), *rows], with_combinations=True) == {(asked,), *rows}
    for asked in (present, holds):
        assert needed([(asked,), *rows], with_combinations=True) == {(asked,), *rows} - {(asked, other)}


def test_rows_are_met_by_the_columns_that_hold() -> None:
    eal = AssociationList.of(frozenset({(4, 8), (12,), (4, 12, 16)}))
    assert (eal.columns, eal.least) == ((4, 8, 12, 16), 1)
    assert [list(eal.met(holding)) for holding in (0b0001, 0b0011, 0b0100, 0b1101)] == [
        [],
        [(4, 8)],
        [(12,)],
        [(4, 12, 16), (12,)],
    ]
    without = AssociationList((4, 20), None, 2)
    assert eal.merged(without, with_combinations=False) == AssociationList((4, 8, 12, 16, 20), None, 1)
    assert without.merged(eal.without_rows(), with_combinations=True) == AssociationList((4, 8, 12, 16, 20), None, 1)


def test_sub_ranges_that_touch_become_one() -> None:
    beyond = math.nextafter(2.0, math.inf)
    assert NumberConstraint.of([(1.0, 2.0), (beyond, 3.0)]).spans == ((1.0, 3.0),)
    further = math.nextafter(beyond, math.inf)
    assert NumberConstraint.of([(1.0, 2.0), (further, 3.0)]).spans == ((1.0, 2.0), (further, 3.0))
    assert NumberConstraint.of([(1.0, 9.0), (2.0, 3.0)]).spans == ((1.0, 9.0),)


@pytest.mark.parametrize(
    ("span", "holds"),
    [
        ((20.0, 20.0), True),
        ((10.0, 10.0), True),
        ((9.9, 9.9), False),
        ((20.1, 29.9), False),
        ((5.0, 10.0), True),
        ((20.0, 25.0), True),
        ((5.0, 50.0), True),
        ((30.0, 30.0), True),
        (None, False),
    ],
)
def test_numbers_hold_that_reach_into_a_sub_range(span: tuple[float, float] | None, holds: bool) -> None:
    assert NumberConstraint(((10.0, 20.0), (30.0, 30.0))).holds(values(span=span)) is holds


def test_sub_ranges_are_joined_over_their_narrowest_gaps() -> None:
    numbers = NumberConstraint(((0.0, 1.0), (5.0, 6.0), (8.0, 9.0), (11.0, 12.0)))
    assert [numbers.bridged(most).spans for most in (4, 3, 2, 1)] == [
        numbers.spans,
        ((0.0, 1.0), (5.0, 9.0), (11.0, 12.0)),
        ((0.0, 1.0), (5.0, 12.0)),
        ((0.0, 12.0),),
    ]


def test_pieces_are_as_long_as_the_texts_that_were_asked_for() -> None:
    pieces = Pieces.of({"j", "ja", "az", "jazzband"}, SHAPE)
    assert pieces.sizes() == [1, 2, 8]
    assert pieces.merged(Pieces.of({"abc"}, SHAPE)).sizes() == [1, 2, 3, 8]
    assert pieces.folded() == Pieces(pieces.vector.folded(), pieces.lengths)


@pytest.mark.parametrize(
    ("text", "begins", "contains"),
    [("jazz", True, True), ("ja", True, True), ("j", False, False), ("a jazz", False, True), ("xxja", False, True)],
)
def test_a_text_begins_with_or_contains_a_piece(text: str, begins: bool, contains: bool) -> None:
    assert TextConstraint.of(None, {"ja"}, None, SHAPE).holds(values(text)) is begins
    assert TextConstraint.of(None, None, {"ja"}, SHAPE).holds(values(text)) is contains


def test_a_text_too_long_to_search_counts_as_containing_any_piece_but_not_as_beginning_with_it() -> None:
    longest = "x" * 4096
    contains, begins = TextConstraint.of(None, None, {"ja"}, SHAPE), TextConstraint.of(None, {"ja"}, None, SHAPE)
    assert [contains.holds(values(text)) for text in (longest, longest + "x")] == [False, True]
    assert [begins.holds(values(text)) for text in (longest, longest + "x")] == [False, False]
    assert not TextConstraint.of({"ja"}, None, None, SHAPE).holds(values(longest + "x"))


def test_constraints_of_texts_are_merged_and_folded_one_by_one() -> None:
    equal, pieces = TextConstraint.of({"a"}, None, None, SHAPE), TextConstraint.of(None, {"b"}, {"c"}, SHAPE)
    both = TextConstraint.of({"a"}, {"b"}, {"c"}, SHAPE)
    assert equal.merged(pieces) == pieces.merged(equal) == both
    assert both.merged(TextConstraint.of({"d"}, {"e"}, {"f"}, SHAPE)) == TextConstraint.of(
        {"a", "d"}, {"b", "e"}, {"c", "f"}, SHAPE
    )
    half = BloomShape(512, 3)
    assert both.folded() == TextConstraint.of({"a"}, {"b"}, {"c"}, half)
    assert equal.folded() == TextConstraint.of({"a"}, None, None, half)
    assert pieces.folded() == TextConstraint.of(None, {"b"}, {"c"}, half)


def test_only_what_some_row_asks_for_is_kept() -> None:
    kept = section('p = "a"', 'p = "a" and q < 3 and r starts with "x"').without_combinations()
    assert (kept.aec, list(kept.sec)) == ({}, [name_key("p")])
    equal = section('p = "a"', 'q and p contains "b"').without_combinations()
    assert equal.sec[name_key("p")] == TextConstraint.of({"a"}, set(), {"b"}, summary("p").shape)
    for text, widths in (("p < 3", {name_key("p"): (UNBOUNDED,)}), ('p = "a"', {})):
        found = section(text).combinations
        assert found is not None
        assert found.widths == widths
    assert section("p", 'q contains "x"').combinations is None


# Shapes.


@pytest.mark.parametrize(
    ("items", "rate", "shape"),
    [
        (1, 0.5, (8, 1)),
        (10, 0.01, (1024, 1)),
        (64, 0.05, (512, 2)),
        (500, 0.01, (65_536, 1)),
        (1000, 0.05, (8192, 2)),
    ],
)
def test_the_shape_for_a_rate_sends_the_fewest_bytes(items: int, rate: float, shape: tuple[int, int]) -> None:
    chosen = BloomShape.for_rate(items, rate)
    assert chosen == BloomShape(*shape)
    others = [BloomShape(1 << power, hashes) for power in range(3, 17) for hashes in range(1, 17)]
    fitting = [one for one in others if one.expected_rate(items) <= rate]
    assert chosen.expected_bytes(items) == min(one.expected_bytes(items) for one in fitting)


def test_a_shape_that_keeps_the_rate_exactly_is_good_enough() -> None:
    shape = BloomShape(1024, 1)
    assert BloomShape.for_rate(10, shape.expected_rate(10)) == shape


@pytest.mark.parametrize(
    ("shape", "items", "size"),
    [((1024, 1), 0, 128.0), ((8, 16), 100_000, 1.0), ((1024, 1), 710, 128.0), ((1024, 1), 10, 10.1), ((64, 2), 8, 6.1)],
)
def test_a_vector_takes_what_its_bits_tell(shape: tuple[int, int], items: int, size: float) -> None:
    """A share f of set bits tells -f log f - (1 - f) log (1 - f) a bit; an empty vector is not compressed."""
    assert BloomShape(*shape).expected_bytes(items) == pytest.approx(size, rel=0.01)


def test_the_smallest_vector_is_not_folded_and_a_vector_knows_its_fill_and_rate() -> None:
    smallest = Bloom(BloomShape(8, 2), b"\x0f")
    assert smallest.folded() is smallest
    assert (smallest.fill, smallest.rate) == (0.5, 0.25)
    assert Bloom(BloomShape(16, 2), b"\x01\x82").folded() == Bloom(BloomShape(8, 2), b"\x83")


# What a budget costs.


def detail(one: Summary) -> tuple[int, int | None, int | None, bool]:
    """The most sub-ranges of a name, the bits of its texts, the bits of its combinations, whether it has rows."""
    (section,) = one.sections.values()
    texts = [constraint.equal.shape.bits for constraint in section.sec.values() if constraint.equal is not None]
    return (
        max((len(numbers.spans) for numbers in section.aec.values()), default=0),
        max(texts, default=None),
        section.combinations.marks.shape.bits if section.combinations is not None else None,
        section.eal.rows is not None,
    )


def test_a_budget_costs_ranges_first_then_texts_then_combinations_and_rows_at_last() -> None:
    whole = summary(*(f'p in {3 * n}..{3 * n + 1} and q = "{n}" and r contains "x{n}"' for n in range(60)))
    budget = len(whole.to_bytes())
    steps: list[tuple[int, int | None, int | None, bool]] = []
    while budget >= SMALLEST_BUDGET:
        coarser = whole.within(budget)
        assert len(coarser.to_bytes()) <= budget
        steps.append(detail(coarser))
        budget = len(coarser.to_bytes()) - 1
    assert steps == [
        *((ranges, 8192, 65_536, True) for ranges in (60, 16, 8, 4, 2, 1)),
        *((1, 8192 >> folds, 65_536, True) for folds in range(1, 7)),
        *((1, 128, 65_536 >> folds, True) for folds in range(1, 7)),
        (4, 512, None, True),
        (4, 512, None, False),
        *((1, 512 >> folds, None, False) for folds in range(7)),
        (0, None, None, True),
    ]


def test_the_smallest_budget_is_enough_for_a_summary_of_one_type_and_more_types_become_everything() -> None:
    wanted = [Filter.where('p = "a" and q < 3', f"T{number}") for number in range(2)]
    assert Summary.of(wanted[:1]).within(SMALLEST_BUDGET).to_bytes()[7:] == b"\x01"
    assert list(Summary.of(wanted).within(SMALLEST_BUDGET).sections) == sorted(map(type_key, ("T0", "T1")))
    three = [*wanted, Filter.where("p", "T2")]
    assert Summary.of(three).within(SMALLEST_BUDGET) == Summary.of_everything()


def test_a_part_of_a_summary_concerns_some_types_and_filters_without_a_type() -> None:
    a, b = (Summary.of([Filter.of_type(type)]) for type in "AB")
    anything = Summary.of([Filter.where("p")])
    assert a.merged(b).about([type_key("A")]) == a
    assert a.merged(b).merged(anything).about([type_key("B")]) == b.merged(anything)
    some = Summary.of([Filter.where("p", "A"), Filter.where("p", "B")])
    assert some.wanting_all([type_key("A"), type_key("C")]) == a.merged(Summary.of([Filter.where("p", "B")]))
    assert fingerprint("A") != fingerprint("B")


def test_nested_values_are_known_by_their_names_and_as_xpath_sees_them() -> None:
    event = Event("T", {"place": {"street": "Elm", "number": 7}, "tags": ["jazz", "pop"], "speed": 3})
    for text, wanted in (
        ("T: place.number = 7", True),
        ("T: place.street = 'Elm'", True),
        ("T: speed < 4", True),
        ("T: speed < 3", False),
        ("/T[tags = 'jazz']", True),
        ("/T/place[street = 'Elm']", True),
        ("/T/place[street = 'Oak']", False),
        ("/T[tags = 'rock']", False),
    ):
        filter = Filter.parse(text)
        assert filter.matches(event) is wanted, text
        assert Summary.of([filter]).may_match(event) is wanted, text
        assert Summary.of([filter]).may_match_digest(Digest.of(event)) >= wanted, text


def test_a_denied_alternative_asks_for_both_of_what_was_denied_twice() -> None:
    wanted = Filter.where('not (not p = "x" or not q = "y")', "T")
    events = [Event("T", {"p": p, "q": q}) for p, q in ("xy", "xz", "zy")]
    assert [wanted.matches(event) for event in events] == [True, False, False]
    assert [Summary.of([wanted]).may_match(event) for event in events] == [True, False, False]


# Steps of coarsening, and the sizes of what is summarised.


def hundred_ranges() -> Summary:
    return Summary.of([Filter.where(f"p in {10 * number}..{10 * number + 1}", type="T") for number in range(100)])


def ranges_of(summary: Summary) -> int:
    (section,) = summary.sections.values()
    return len(section.aec[name_key("p")].spans) if section.aec else 0


def test_a_summary_keeps_fewer_ranges_at_each_step_and_begins_anew_without_combinations() -> None:
    steps = [ranges_of(one) for one in _ladder(hundred_ranges())]
    changes = [count for count, _ in groupby(steps)]
    assert changes == [100, 16, 8, 4, 2, 1, 100, 64, 32, 16, 8, 4, 1, 0]


def test_a_summary_has_the_first_step_that_fits() -> None:
    summary = hundred_ranges()
    sizes = [len(one.to_bytes()) for one in _ladder(summary)]
    for budget in (sizes[0], sizes[0] - 1, sizes[1], sizes[1] - 1, sizes[3], 100, 60, 16):
        first = next(one for one, size in zip(_ladder(summary), sizes, strict=True) if size <= budget)
        assert summary.within(budget) == first
    assert summary.within(sizes[0]) == summary
    with pytest.raises(UsageError, match="at least 16 bytes, got 15"):
        summary.within(15)


def test_the_size_of_a_summary_of_fields_counts_the_fields_and_their_values() -> None:
    fields = FieldBitmaps()
    sizes = []
    for bit, content in enumerate(({"a": 1, "b": ["x", "y"]}, {"a": 1}, {"a": 2, "c": True}, {"a": 1.0})):
        fields.add(Event("T", content), 1 << bit)
        sizes.append(fields.size)
    assert sizes == [2 + 3, 5, 5 + 1 + 2, 9], "1, 1.0 and true are three values"
    fields.retain(0b0110, 1)
    assert (sorted(fields.by_name), fields.size) == (["a", "c"], 2 + 3)


def test_a_count_has_at_most_five_bytes() -> None:
    assert BitReader(b"\x81\x80\x80\x80\x00", "set").count(9) == 1
    with pytest.raises(MalformedPacket, match="more than 9"):
        BitReader(b"\x81\x80\x80\x80\x80\x00", "set").count(9)


@pytest.mark.parametrize(
    ("span", "width"),
    [
        ((0.0, 0.9), 0),
        ((0.0, 1.0), 1),
        ((5.0, 8.0), 2),
        ((-1.0, 1.0), 2),
        # A number has twenty significant bits: 1000 is known to about a thousandth.
        ((1000.0, 1000.0), -10),
        ((-1000.0, -1000.0), -10),
        ((0.0, 1e-9), -20),
        ((0.0, inf), 127),
        ((-inf, 0.0), 127),
        ((-1.7e308, 1.7e308), 127),
        ((0.0, 2.0**125), 126),
        ((0.0, 2.0**126), 127),
    ],
)
def test_a_range_lies_in_cells_of_the_next_power_of_two(span: tuple[float, float], width: int) -> None:
    assert width_of(span) == width


@pytest.mark.parametrize(
    ("span", "width", "cells"),
    [
        ((0.0, 0.9), 0, [0]),
        ((0.5, 1.4), 0, [0, 1]),
        ((-0.5, 0.4), 0, [-1, 0]),
        ((4.0, 7.9), 2, [1]),
        ((0.0, 3.0), 0, [0, 1, 2, 3]),
        ((0.0, 4.0), 0, None),
        ((3.0, 5.0), 127, [0]),
        ((0.0, inf), 0, None),
    ],
)
def test_a_range_lies_in_at_most_four_cells(span: tuple[float, float], width: int, cells: list[int] | None) -> None:
    assert cells_of(span, width) == cells


@pytest.mark.parametrize(("fill", "share"), [(0.5, 1.0), (0.25, 0.8112781), (0.01, 0.0807931), (0.75, 0.8112781)])
def test_a_vector_is_sent_in_about_as_many_bits_as_its_entropy(fill: float, share: float) -> None:
    """n items at k hashes set a share of 1 - e^(-kn/m) of m bits."""
    bits = 65_536
    items = round(-log(1.0 - fill) * bits / 2)
    assert BloomShape(bits, 2).expected_bytes(items) == pytest.approx(bits * share / 8, rel=1e-3)


def test_a_shape_for_a_rate_is_the_one_that_is_sent_in_the_fewest_bytes() -> None:
    for items, rate in ((1, 0.5), (10, 0.01), (64, 0.01), (300, 0.2)):
        chosen = BloomShape.for_rate(items, rate)
        every = [BloomShape(1 << power, hashes) for power in range(3, 17) for hashes in range(1, 17)]
        fitting = [shape for shape in every if shape.expected_rate(items) <= rate]
        fewest = min(shape.expected_bytes(items) for shape in fitting)
        assert chosen in fitting
        assert chosen.expected_bytes(items) == fewest
        assert chosen.bits == min(shape.bits for shape in fitting if shape.expected_bytes(items) == fewest)
    with pytest.raises(UsageError, match="at a rate between 0 and 1, got 5 at 0"):
        BloomShape.for_rate(5, 0.0)
