"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from earshot.words import amount, interval, listed, percent, seconds, share


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
