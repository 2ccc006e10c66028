"""The structural overlap of two filters, by hand: guesses for terms that only one has, shares where both have them."""

from __future__ import annotations

import pytest

from earshot import Filter


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # A term that the other filter does not have.
        ("Car: speed < 10", "Car: true", 0.5),
        ("Car: speed in 3..9", "Car: true", 0.5),
        ("Car: speed = 10", "Car: true", 0.2),
        ("Car: color = 'red'", "Car: true", 0.2),
        ("Car: color", "Car: true", 0.8),
        ("Car: color != 'red'", "Car: true", 0.5),
        ("Car: color != 'red' and color != 'blue'", "Car: true", 0.25),
        ("Car: color != 'red' and color != 'blue' and color > 3", "Car: true", 0.125),
        ("Car: live = true", "Car: true", 0.5),
        ("Car: within 100 m", "Car: true", 0.5),
        ("Car: approaching", "Car: true", 0.2),
        ("Car: inside circle(0, 0, 10)", "Car: true", 0.5),
        ("Car: speed < 10 and color = 'red'", "Car: true", 0.1),
        ("Car: speed < 10", "speed < 10", 0.2),
        ("traffic/**: true", "traffic/jam: true", 0.1),
        ("/r[a = 1]", "/r", 0.2),
        ("/r/a", "/r", 0.8),
        ("/r/a/b", "/r", 0.8 * 0.8),
        ("/r/a/b", "/r/a", 0.8),
        ("/r", "r: true", 1.0),
        ("/r[. = 'x']", "/r", 0.2),
        ("/r[. = 'x']", "/r[. = 'y']", 0.0),
        ("/r[a = 1 and b < 2]", "/r", 0.1),
        ("/r/a[@k]", "/r/a", 0.8),
        ("//a", "//b", 0.64),
        ("/*/a", "/r/a", 0.8 * 0.8 * 0.8 * 0.2),
        # Ranges: the common part of both, relative to their union.
        ("Car: speed < 10", "Car: speed < 20", 2 / 3),
        ("Car: speed in 0..10", "Car: speed in 5..15", 1 / 3),
        ("Car: speed in 0..10", "Car: speed in 2..4", 0.2),
        ("Car: speed in 0..10", "Car: speed = 4", 0.2),
        ("Car: speed <= 10", "Car: speed >= 10", 0.2),
        ("Car: speed < 10", "Car: speed > 20", 0.0),
        ("Car: speed > 20", "Car: speed < 10", 0.0),
        ("Car: within 100 m", "Car: within 200 m", 0.5),
        ("Car: speed", "Car: speed < 10", 0.5),
        # Texts, and texts against ranges.
        ("Car: color = 'red'", "Car: color = 'blue'", 0.0),
        ("Car: speed = '10'", "Car: speed < 20", 0.2),
        ("Car: speed = '10'", "Car: speed >= 10", 0.2),
        ("Car: speed = '30'", "Car: speed < 20", 0.0),
        ("Car: speed = 'fast'", "Car: speed < 20", 0.0),
        ("Car: color", "Car: color = 'red'", 0.2),
        ("Car: color != 'red'", "Car: color = 'blue'", 0.2 / 2),
        ("Car: color != 'red'", "Car: color != 'blue'", 1 / 3),
        ("Car: color != 'red' and color != 'blue'", "Car: color != 'blue'", 2 / 3),
        # Areas.
        ("Car: inside rectangle(0, 0, 10, 10)", "Car: inside rectangle(5, 0, 10, 10)", 1 / 3),
        ("Car: inside rectangle(0, 0, 10, 10)", "Car: inside rectangle(0, 0, 20, 10)", 0.5),
        ("Car: inside rectangle(0, 0, 0.2, 0.2)", "Car: inside rectangle(0.1, 0, 0.2, 0.2)", 1 / 3),
        ("Car: inside rectangle(0, 0, 10, 10)", "Car: inside rectangle(50, 0, 10, 10)", 0.0),
        (
            "Car: inside rectangle(0, 0, 10, 10) and speed < 10",
            "Car: inside rectangle(0, 0, 20, 10) and speed < 20",
            1 / 3,
        ),
        # Alternatives: each with its nearest of the other, on average.
        ("Car: speed < 10 or color = 'red'", "Car: speed < 10", (1.0 + 0.1 + 1.0) / 3),
        ("Car: a = 1 or b = 1", "Car: a = 1 or c = 1", (1.0 + 0.04 + 1.0 + 0.04) / 4),
    ],
)
def test_the_overlap_of_two_filters(a: str, b: str, expected: float) -> None:
    one, other = Filter.parse(a), Filter.parse(b)
    assert one.overlap(other) == pytest.approx(expected)
    assert other.overlap(one) == pytest.approx(expected)
