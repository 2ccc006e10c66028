"""The parts of a drawing by themselves: coordinates, texts, scales, ticks and axes."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from earshot.pipeline.reports.svg import (
    COLOURS,
    SHAPES,
    Axes,
    Mark,
    Scale,
    axes,
    line,
    log_range,
    log_ticks,
    marks_of,
    n,
    polyline,
    rounded_range,
    svg,
    text,
    ticks,
    titled,
    width_of,
)


@pytest.mark.parametrize(
    ("value", "shown"), [(3.0, "3"), (3.04, "3"), (3.05001, "3.1"), (-0.04, "0"), (-0.06, "-0.1"), (120.0, "120")]
)
def test_a_coordinate_has_at_most_one_digit_after_the_point(value: float, shown: str) -> None:
    assert n(value) == shown


def test_texts_and_lines_are_written_as_svg_with_what_is_special_escaped() -> None:
    assert text(1, 2, "a < b", "end", "tick") == '<text x="1" y="2" text-anchor="end" class="tick">a &lt; b</text>'
    assert text(1, 2, "a") == '<text x="1" y="2" text-anchor="middle">a</text>'
    assert line(1, 2, 3, 4.26, "grid") == '<line class="grid" x1="1" y1="2" x2="3" y2="4.3"/>'
    assert polyline([(1, 2), (3.5, 4)], "way") == '<polyline class="way" points="1,2 3.5,4"/>'
    assert titled('"a"', "<b/>", "c", ' id="d"') == '<g class="c" id="d"><title>&quot;a&quot;</title><b/></g>'
    drawn = ET.fromstring(svg(100, 50.5, "a & b", ["<g/>", "<g/>"], "wide"))
    assert drawn.attrib == {
        "class": "chart wide", "role": "img", "aria-label": "a & b", "viewBox": "0 0 100 50.5",
        "style": "max-width:100px",
    }  # fmt: skip
    assert len(drawn) == 2


def test_a_text_is_as_wide_as_its_letters_and_grows_with_its_size() -> None:
    assert width_of("abcd") == pytest.approx(4 * width_of("a"))
    assert width_of("a", 24.0) == pytest.approx(2 * width_of("a", 12.0)) == pytest.approx(2 * width_of("a"))


def test_values_outside_of_a_scale_stand_a_twentieth_beyond_its_ends() -> None:
    scale = Scale(0.0, 10.0, 100.0, 200.0)
    assert [scale(value) for value in (0.0, 5.0, 10.0, -99.0, 99.0)] == [100.0, 150.0, 200.0, 95.0, 205.0]
    down = Scale(0.0, 10.0, 200.0, 100.0)
    assert [down(value) for value in (0.0, 2.5, 10.0, 99.0)] == [200.0, 175.0, 100.0, 95.0]
    assert Scale(3.0, 3.0, 100.0, 200.0)(3.0) == 150.0, "a scale without a range has its value in the middle"
    log = Scale(1.0, 100.0, 0.0, 100.0, log=True)
    assert [log(value) for value in (1.0, 10.0, 100.0, 0.0)] == pytest.approx([0.0, 50.0, 100.0, -5.0])


@pytest.mark.parametrize(
    ("low", "high", "about", "expected"),
    [
        (0.0, 10.0, 5, [0, 2, 4, 6, 8, 10]),
        (0.0, 1.0, 5, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.0, 5.0, 5, [0, 1, 2, 3, 4, 5]),
        (0.0, 6.0, 5, [0, 2, 4, 6]),
        (0.0, 20.0, 5, [0, 5, 10, 15, 20]),
        (0.0, 40.0, 5, [0, 10, 20, 30, 40]),
        (-3.0, 3.0, 6, [-3, -2, -1, 0, 1, 2, 3]),
        (0.13, 0.61, 5, [0.2, 0.3, 0.4, 0.5, 0.6]),
        (7.0, 7.0, 5, [7]),
        (0.0, 10.0, 0, [0, 10]),
    ],
)
def test_ticks_are_multiples_of_one_two_or_five(low: float, high: float, about: int, expected: list[float]) -> None:
    assert ticks(low, high, about) == pytest.approx(expected)
    assert Scale(low, high, 0.0, 1.0).ticks(about) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("low", "high", "about", "expected"),
    [
        (1.0, 10.0, 5, [1, 2, 5, 10]),
        (1.0, 100.0, 5, [1, 2, 5, 10, 20, 50, 100]),
        (1.0, 1000.0, 5, [1, 3, 10, 30, 100, 300, 1000]),
        (1.0, 1e4, 5, [1, 10, 100, 1000, 1e4]),
        (1.0, 1e8, 5, [1, 100, 1e4, 1e6, 1e8]),
        (1.5, 30.0, 5, [2, 5, 10, 20]),
        (0.02, 0.6, 5, [0.02, 0.05, 0.1, 0.2, 0.5]),
    ],
)
def test_logarithmic_ticks_are_powers_of_ten_with_steps_between_where_there_is_room(
    low: float, high: float, about: int, expected: list[float]
) -> None:
    assert log_ticks(low, high, about) == pytest.approx(expected)
    assert Scale(low, high, 0.0, 1.0, log=True).ticks(about) == pytest.approx(expected)


def test_ranges_have_air_around_their_values() -> None:
    assert rounded_range([0.0, 100.0, 50.0]) == pytest.approx((-8.0, 108.0))
    assert rounded_range([0.0, 100.0], floor=0.0) == pytest.approx((0.0, 108.0))
    assert rounded_range([50.0]) == pytest.approx((45.0, 55.0))
    assert rounded_range([-50.0, -50.0]) == pytest.approx((-55.0, -45.0))
    assert rounded_range([0.0]) == (-1.0, 1.0)
    assert log_range([1.0, 10.0]) == pytest.approx((0.8, 12.5)), "a quarter at least"
    wide = 1e10**0.08
    assert log_range([1.0, 1e10, 5.0]) == pytest.approx((1.0 / wide, 1e10 * wide))


def parts_of(paper: Axes) -> list[ET.Element]:
    return list(ET.fromstring(f"<g>{''.join(paper.drawn())}</g>"))


def test_axes_have_a_line_a_value_and_a_title_where_their_scales_say() -> None:
    paper = Axes(Scale(0, 10, 50, 450), Scale(0, 1, 300, 20), "time", "share", lambda value: f"{value:g} s", str)
    drawn = parts_of(paper)
    grid = [part for part in drawn if part.get("class") == "grid"]
    assert [(part.get("x1"), part.get("x2"), part.get("y1")) for part in grid] == [
        ("50", "450", y) for y in ("300", "244", "188", "132", "76", "20")
    ]
    words = {part.text: (part.get("x"), part.get("y"), part.get("text-anchor")) for part in drawn if part.tag == "text"}
    assert (words["0.2"], words["4 s"]) == (("44", "248", "end"), ("210", "317", "middle"))
    assert (words["time"], words["share"]) == (("250", "335", "middle"), ("0", "10", "start"))
    below = [part for part in drawn if part.get("class") == "axis"]
    assert [(part.get("x1"), part.get("y1"), part.get("y2")) for part in below] == [
        *((str(x), "300", "304") for x in (50, 130, 210, 290, 370, 450)), ("50", "300", "300"),
    ]  # fmt: skip


def test_values_of_an_axis_that_would_overlap_are_left_out() -> None:
    paper = Axes(Scale(0, 10, 0, 100), Scale(0, 1, 300, 20), "x", "y", lambda _: "a long label", x_values=[0, 1, 9, 10])
    drawn = parts_of(paper)
    assert len([part for part in drawn if part.get("y2") == "304"]) == 4
    shown = [part.get("x") for part in drawn if part.text == "a long label"]
    assert shown == ["0", "90"]


def test_a_value_is_shown_where_four_pixels_are_left_to_the_one_before() -> None:
    wide = width_of("abcd")

    def shown(*values: float) -> list[str | None]:
        paper = Axes(Scale(0, 500, 0, 500), Scale(0, 1, 300, 20), "x", "y", lambda _: "abcd", x_values=values)
        return [part.get("x") for part in parts_of(paper) if part.text == "abcd"]

    assert len(shown(100.0, 100.0 + wide + 3.9)) == 1
    assert len(shown(100.0, 100.0 + wide + 4.1)) == 2
    assert len(shown(100.0, 100.0 + wide, 100.0 + wide + 4.1)) == 2, "one that is left out takes no room"


def test_axes_leave_room_for_the_widest_value() -> None:
    paper = axes(500, 300, (0, 10), (0, 1000), ("x", "y"), labels=(str, lambda value: "w" * len(f"{value:g}")))
    assert (paper.x.start, paper.x.end) == (pytest.approx(width_of("wwww") + 12), 486)
    assert (paper.y.start, paper.y.end, paper.x.log, paper.y.log) == (258, 26, False, False)
    both = axes(500, 300, (1, 10), (1, 1000), ("x", "y"), log=(True, False), x_values=[1, 2])
    assert (both.x.log, both.y.log, both.x_values) == (True, False, [1, 2])


def test_a_mark_is_a_closed_shape_around_its_point() -> None:
    square = Mark(3, 1)
    assert square.drawn(10.0, 20.0, 10.0) == '<path class="mark" d="M1.5 11.5L18.5 11.5L18.5 28.5L1.5 28.5Z"/>'
    assert square.drawn() == '<path class="mark" d="M-5.1 -5.1L5.1 -5.1L5.1 5.1L-5.1 5.1Z"/>'
    assert 'class="key m3"' in square.key()
    assert square.drawn() in square.key()


def test_crosses_and_stars_are_the_same_from_all_sides() -> None:
    def turned(shape: int, angle: float) -> list[tuple[float, float]]:
        sine, cosine = math.sin(angle), math.cos(angle)
        return [(x * cosine - y * sine, x * sine + y * cosine) for x, y in SHAPES[shape]]

    def points(several: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return sorted((round(x, 6) + 0.0, round(y, 6) + 0.0) for x, y in several)

    plus, cross, star, hexagon = 5, 6, 7, 8
    for shape, angle in ((plus, math.pi / 2), (cross, math.pi / 2), (star, math.tau / 5), (hexagon, math.tau / 6)):
        assert points(turned(shape, angle)) == points(turned(shape, 0.0))
    assert points(turned(plus, math.pi / 4)) == points(turned(cross, 0.0))
    reaches = sorted({round(math.hypot(x, y), 6) for x, y in SHAPES[star]})
    assert reaches == [0.45, 1.0]
    assert min(SHAPES[star], key=lambda point: point[1]) == (0.0, -1.0), "it points up"


def test_more_names_than_marks_share_them() -> None:
    names = [f"other {number:03}" for number in range(200)]
    found = marks_of(names)
    assert sorted(found) == names
    assert len(set(found.values())) == len(COLOURS) * len(SHAPES)
    assert len({found[name].colour for name in names[: len(COLOURS)]}) == len(COLOURS)


def test_shapes_are_as_large_as_they_should_be_and_the_same_on_both_sides() -> None:
    """The area by the corners in order: a corner out of place, or out of order, changes it."""

    def area(shape: tuple[tuple[float, float], ...]) -> float:
        return sum(x * v - u * y for (x, y), (u, v) in zip(shape, (*shape[1:], shape[0]), strict=True)) / 2

    plus = 2 * 2.1 * 0.72 - 0.72**2
    expected = {
        "circle": 12 * math.sin(math.tau / 24), "square": 1.7**2, "diamond": 2 * 1.2, "up": 2.2 * 1.95 / 2,
        "down": -2.2 * 1.95 / 2, "plus": plus, "cross": plus, "star": 5 * 0.45 * math.sin(math.pi / 5),
        "hexagon": 1.5 * math.sqrt(3), "wide": 2.4, "tall": 2.4, "hourglass": 2.0,
    }  # fmt: skip
    assert dict(zip(expected, map(area, SHAPES), strict=True)) == pytest.approx(expected)
    for shape in SHAPES:
        corners = sorted((round(x, 6) + 0.0, round(y, 6) + 0.0) for x, y in shape)
        assert corners == sorted((round(-x, 6) + 0.0, round(y, 6) + 0.0) for x, y in shape)
    lowest = [round(max(y for _, y in shape), 3) for shape in SHAPES]
    assert lowest == [1.0, 0.85, 1.2, 0.85, 1.1, 1.05, 0.997, 0.809, 1.0, 0.5, 1.2, 1.0]
