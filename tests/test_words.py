"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from earshot.words import amount, counted, formatted, interval, listed, percent, rounded_percent, seconds, share


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0.00"), (1.0, "1.00"), (0.976, "0.98"), (0.5, "0.50"), (0.9968, "0.997"), (0.99957, "0.9996"),
     (0.0004, "0.0004"), (0.99999, "> 0.9999"), (0.00001, "< 0.0001"), (math.nan, "–")],
)  # fmt: skip
def test_a_share_is_never_rounded_to_all_or_nothing(value: float, shown: str) -> None:
    assert share(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0 %"), (1.0, "100 %"), (0.12, "12 %"), (0.0123, "1.2 %"), (0.0042, "0.42 %"), (0.0015, "0.15 %"),
     (0.00016, "0.016 %"), (0.000001, "< 0.001 %"),
     (0.9997, "99.97 %"), (0.964, "96.4 %"), (0.0996, "10 %"), (0.99999, "> 99.99 %"), (0.999, "99.9 %")],
)  # fmt: skip
def test_percent(value: float, shown: str) -> None:
    assert percent(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0 s"), (0.0021, "2.1 ms"), (0.035, "35 ms"), (0.25, "250 ms"), (1.44, "1.4 s"), (12.3, "12 s"),
     (100.2, "100 s"), (600.0, "10 min"), (0.9996, "1 s")],
)  # fmt: skip
def test_seconds(value: float, shown: str) -> None:
    assert seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(1434.0, "B", "1.4 kB"), (37.0, "", "37"), (2_100_000.0, "", "2.1 M"), (150.0, "", "150"), (0.25, "", "0.25"),
     (999.7, "B", "1 kB"), (12.34, "B", "12 B"), (0.0, "B", "0 B")],
)  # fmt: skip
def test_amount(value: float, unit: str, shown: str) -> None:
    assert amount(value, unit) == shown


def test_an_interval_names_its_unit_once_where_both_ends_have_it() -> None:
    assert interval(0.97, 0.99, "share") == "0.97 to 0.99"
    assert interval(1100.0, 1900.0, "B") == "1.1 to 1.9 kB"
    assert interval(863.0, 1900.0, "B") == "863 B to 1.9 kB"
    assert interval(0.5, 0.5, "share") == ""
    assert interval(math.nan, math.nan, "share") == ""


def test_names_are_listed_as_in_a_sentence() -> None:
    assert [listed([]), listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


BETWEEN = st.floats(0.0, 1.0, exclude_min=True, exclude_max=True)


def half_a_digit(shown: str) -> float:
    """By how much the number in a text may differ from the value that it stands for."""
    return 0.5000001 * 10.0 ** -len(shown.partition(".")[2])


@given(BETWEEN)
@example(0.00004)
@example(0.00006)
@example(0.99994)
@example(0.99996)
def test_a_share_that_is_shown_is_near_and_neither_all_nor_nothing(value: float) -> None:
    shown = share(value)
    if shown == "< 0.0001":
        assert value < 0.0001
    elif shown == "> 0.9999":
        assert value > 0.9999
    else:
        assert float(shown) == pytest.approx(value, abs=half_a_digit(shown))
        assert 0.0 < float(shown) < 1.0


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0051, "0.01"), (0.0049, "0.005"), (0.9949, "0.99"), (0.9951, "0.995"), (0.00051, "0.001"), (0.00049, "0.0005"),
     (0.9994, "0.999"), (0.9996, "0.9996"), (0.00006, "0.0001"), (0.00004, "< 0.0001"), (0.99994, "0.9999"),
     (0.99996, "> 0.9999"), (0.00005, "0.0001"), (0.99995, "> 0.9999"),
     (1.5, "1.50"), (-0.5, "-0.50"), (math.inf, "–"), (-math.inf, "–")],
)  # fmt: skip
def test_a_share_has_two_decimals_and_more_only_where_two_would_mislead(value: float, shown: str) -> None:
    assert share(value) == shown


@given(BETWEEN)
def test_a_percentage_that_is_shown_is_near_and_neither_all_nor_nothing(value: float) -> None:
    shown = percent(value)
    number = shown.removesuffix(" %")
    if shown == "< 0.001 %":
        assert value < 0.00001
    elif shown == "> 99.99 %":
        assert value > 0.9999
    else:
        assert float(number) == pytest.approx(100 * value, abs=half_a_digit(number), rel=0.05)
        assert 0.0 < float(number) < 100.0


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.000011, "0.0011 %"), (0.000009, "< 0.001 %"), (0.0099, "0.99 %"), (0.00996, "1.0 %"), (0.0994, "9.9 %"),
     (0.0996, "10 %"), (0.9, "90 %"), (0.901, "90.1 %"), (0.99904, "99.9 %"), (0.99912, "99.91 %"),
     (0.99989, "99.99 %"), (0.999901, "> 99.99 %"), (1.5, "150.0 %"), (-0.05, "-5.0 %"), (math.inf, "–"),
     (math.nan, "–")],
)  # fmt: skip
def test_a_percentage_has_more_digits_near_all_and_near_nothing(value: float, shown: str) -> None:
    assert percent(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.9994, "999 ms"), (119.4, "119 s"), (119.6, "2 min"), (-0.035, "-35 ms"), (-12.3, "-12 s"), (-600.0, "-10 min"),
     (0.00000123, "0.001 ms"), (0.0000123, "0.012 ms"), (math.nan, "–"), (math.inf, "–")],
)  # fmt: skip
def test_seconds_at_the_ends_of_each_unit(value: float, shown: str) -> None:
    assert seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(999.4, "", "999"), (999.6, "", "1 k"), (999.0, "B", "999 B"), (1000.0, "B", "1 kB"), (999_400.0, "", "999 k"),
     (999_600.0, "", "1 M"), (999_600_000.0, "B", "1 GB"), (3.2e10, "", "32 G"), (-1434.0, "B", "-1.4 kB"),
     (99.4, "", "99"), (99.5, "", "100"), (99.6, "", "100"), (0.0123, "", "0.012"), (0.0096, "", "0.01"),
     (0.00523, "", "0.005"), (math.nan, "B", "–"), (math.inf, "", "–")],
)  # fmt: skip
def test_an_amount_at_the_ends_of_each_unit(value: float, unit: str, shown: str) -> None:
    assert amount(value, unit) == shown


def test_a_number_is_shown_in_its_unit() -> None:
    shown = [formatted(0.5, unit) for unit in ("share", "percent", "s", "x", "B", "")]
    assert shown == ["0.50", "50 %", "500 ms", "0.5 ×", "0.5 B", "0.5"]


def test_an_interval_keeps_what_its_ends_do_not_share() -> None:
    assert interval(0.000001, 0.5, "percent") == "< 0.001 % to 50 %"
    assert interval(0.02, 0.5, "percent") == "2.0 to 50 %"
    assert interval(0.5, 1.5, "s") == "500 ms to 1.5 s"
    assert [interval(math.nan, 1.0, "s"), interval(1.0, math.nan, "s")] == ["", ""]
    assert interval(12.1, 12.2, "s") == "", "both ends read alike"


def test_a_percentage_in_a_sentence_has_one_decimal_and_a_small_one_two_digits() -> None:
    values = (0.0, 0.00123, 0.0099, 0.01, 0.5, 1.0, -0.005)
    assert [rounded_percent(value) for value in values] == [
        "0.0 %", "0.12 %", "0.99 %", "1.0 %", "50.0 %", "100.0 %", "-0.5 %",
    ]  # fmt: skip


def test_one_thing_is_counted_in_the_singular() -> None:
    assert [counted(count, "node") for count in (0, 1, 2, 2000)] == ["0 nodes", "1 node", "2 nodes", "2,000 nodes"]


def test_at_the_very_end_of_a_unit_the_next_begins() -> None:
    assert (amount(999.5), amount(999_500.0, "B"), seconds(119.5), seconds(0.9995)) == ("1 k", "1 MB", "2 min", "1 s")
    assert (percent(1.005), percent(1.0001)) == ("100.5 %", "100.01 %")
