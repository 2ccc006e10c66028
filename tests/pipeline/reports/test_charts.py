"""The charts: what is drawn stands where its numbers say."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.reports.charts import (
    AreaCell,
    ChartLine,
    Measure,
    Spot,
    _bubble,
    _LabelPlace,
    _overlap,
    _tries,
    area_map,
    bar,
    bubble_key,
    dash_key,
    delivery_against_cost,
    ground_of,
    line_chart,
    stacked,
    track_map,
)
from earshot.pipeline.reports.svg import Axes, Mark, Scale, log_ticks, marks_of, ticks, width_of

MARK = Mark(0, 0)
SHARE, PART = Measure("delivery", "share"), Measure("airtime", "percent")


def parsed(drawing: str) -> ET.Element:
    return ET.fromstring(drawing)


def exact(mean: float) -> Figure:
    return Figure(mean, math.nan, math.nan, 1)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(2, 9))
def test_ticks_are_round_and_inside(low: float, wide: float, about: int) -> None:
    found = ticks(low, low + wide, about)
    slack = 1e-6 * max(abs(low), wide)
    assert all(low - slack <= tick <= low + wide + slack for tick in found)
    assert len(found) <= about + 2


@given(st.floats(1e-6, 1e3), st.floats(1.5, 1e9))
def test_logarithmic_ticks_are_few_and_inside(low: float, factor: float) -> None:
    found = log_ticks(low, low * factor)
    assert len(found) <= 8
    assert all(low * 0.99 <= tick <= low * factor * 1.01 for tick in found)


@given(st.floats(0.001, 1e6), st.floats(1.001, 1e6), st.booleans())
def test_a_scale_keeps_order_and_its_ends(low: float, factor: float, log: bool) -> None:
    scale = Scale(low, low * factor, 40.0, 500.0, log)
    assert (scale(low), scale(low * factor)) == (pytest.approx(40.0), pytest.approx(500.0))
    assert scale(low) < scale(low * math.sqrt(factor)) < scale(low * factor)


def spots(*points: tuple[str, float, float, bool]) -> list[Spot]:
    marks = marks_of(name for name, *_ in points)
    return [Spot(name, marks[name], exact(delivery), exact(cost), 0.1, front) for name, delivery, cost, front in points]


def centre(drawing: ET.Element, name: str) -> tuple[float, float]:
    circle = drawing.find(f".//*[@data-name='{name}']/circle")
    assert circle is not None
    return float(circle.attrib["cx"]), float(circle.attrib["cy"])


def test_more_delivered_is_higher_and_cheaper_is_further_left() -> None:
    drawn = parsed(
        delivery_against_cost(
            spots(("steam", 0.99, 0.1, True), ("codd", 0.9, 0.05, True), ("drip", 0.5, 0.4, False)),
            SHARE,
            PART,
            800,
            400,
        )
    )
    steam, codd, drip = (centre(drawn, name) for name in ("steam", "codd", "drip"))
    assert codd[0] < steam[0] < drip[0]
    assert steam[1] < codd[1] < drip[1]
    front = drawn.find(".//*[@class='front']")
    assert front is not None
    corners = {tuple(map(float, corner.split(","))) for corner in front.attrib["points"].split()}
    assert {steam, codd} <= corners
    assert drip not in corners


def test_no_two_labels_of_the_picture_overlap() -> None:
    names = [
        "codd",
        "content-odmrp",
        "drip",
        "drip-sf",
        "flooding",
        "georendezvous",
        "gossip",
        "odmrp",
        "siena",
        "steam",
    ]
    crowd = spots(*((name, 0.97 + number / 500, 0.1 + number / 200, False) for number, name in enumerate(names)))
    for width in (366, 1080):
        drawn = parsed(delivery_against_cost(crowd, SHARE, PART, width, 430))
        boxes = []
        for label in drawn.iter("text"):
            if label.attrib.get("class", "").startswith("label"):
                wide = len(label.text or "") * 6.5
                x, y = float(label.attrib["x"]), float(label.attrib["y"])
                left = x if label.attrib["text-anchor"] == "start" else x - wide
                assert left >= -1
                assert left + wide <= width + 1
                boxes.append((left, y - 9, left + wide, y))
        assert len(boxes) == len(names)
        for number, one in enumerate(boxes):
            for other in boxes[number + 1 :]:
                apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
                assert apart, (width, one, other)


def test_a_label_is_tried_at_many_places_on_both_sides_each_once_and_the_nearest_first() -> None:
    places = [place.anchor for place in _tries(100.0, 200.0, 40.0)]
    assert len(set(places)) == len(places) >= 20
    assert {(200.0 - x, y) for x, y in places} == set(places), "as many to the left as to the right"
    up, down = ({abs(y - 200.0) for _, y in places if (y > 200.0) is below} for below in (False, True))
    assert up - {0.0} <= down, "whatever is tried above is tried below"
    away = [abs(y - 200.0) for _, y in places[6:]]
    assert away == sorted(away)


def test_a_bar_is_as_long_as_its_share_with_its_interval_around() -> None:
    drawn = parsed(bar(Figure(0.5, 0.4, 0.7, 5), 2.0, MARK))
    rect, whisker = drawn.find("rect"), drawn.find("path")
    assert rect is not None
    assert whisker is not None
    assert rect.attrib["width"] == "250"
    assert re.findall(r"[MH]([\d.]+)", whisker.attrib["d"])[:2] == ["200", "350"]
    assert parsed(bar(exact(0.5), 2.0, MARK)).find("path") is None


def test_the_parts_of_a_stacked_bar_follow_each_other() -> None:
    drawn = parsed(stacked([("lost", "lost: 10 %", 0.1), ("carrying", "needed carrying: 30 %", 0.3)], 0.5, MARK))
    rects = [(float(one.attrib["x"]), float(one.attrib["width"])) for one in drawn.iter("rect")]
    assert rects == [(0.0, 200.0), (200.0, 600.0)]


def test_a_line_goes_through_its_points_and_shows_its_intervals() -> None:
    points = [(80.0, Figure(0.8, 0.7, 0.9, 5)), (150.0, Figure(0.9, 0.85, 0.95, 5)), (250.0, exact(1.0))]
    drawn = parsed(line_chart([ChartLine("gossip", MARK, points)], Measure("range", ""), SHARE, bounded=True))
    line = drawn.find(".//polyline")
    assert line is not None
    places = [tuple(map(float, place.split(","))) for place in line.attrib["points"].split()]
    assert [place[0] for place in places] == sorted(place[0] for place in places)
    assert [place[1] for place in places] == sorted((place[1] for place in places), reverse=True)
    assert len(drawn.findall(".//line[@class='whisker']")) == 2
    assert next(title.text for title in drawn.iter("title")) == "gossip, range 80: 0.80 (0.70 to 0.90)"


def test_a_chart_without_points_is_not_drawn() -> None:
    assert line_chart([], Measure("range", ""), SHARE) == ""
    assert track_map([], "nobody") == ""


def test_a_map_is_darkest_where_most_was_lost_and_north_is_up() -> None:
    cells = [AreaCell(0, 0, 10, 5), AreaCell(0, 100, 10, 1), AreaCell(100, 0, 10, 0)]
    ground = ground_of(cells, 100, [[(0, 0), (200, 200)]], "tracks-city")
    drawn = parsed(area_map(cells, 100, ground, MARK, "codd", 0.5, True))
    squares = [one.attrib for one in drawn.iter("rect") if one.attrib["class"] == "cell"]
    assert [one["fill-opacity"] for one in squares] == ["0.95", "0.31", "0.00"]
    assert float(squares[1]["y"]) < float(squares[0]["y"])
    assert float(squares[2]["x"]) > float(squares[0]["x"])
    assert drawn.find(".//*[@id='tracks-city']") is not None
    assert parsed(area_map(cells, 100, ground, MARK, "drip", 0.5, False)).find(".//use") is not None


def test_names_from_outside_cannot_break_the_drawing() -> None:
    name = "<script>alert('&')</script>\""
    drawn = parsed(
        line_chart(
            [ChartLine(name, MARK, [(1.0, exact(1.0)), (2.0, exact(2.0))])], Measure(name, ""), Measure(name, "")
        )
    )
    assert drawn.find(".//*[@class='series m0']") is not None
    spot = Spot(name, MARK, exact(1.0), exact(1.0), 0.1, True)
    assert parsed(delivery_against_cost([spot], SHARE, Measure(name, ""), 400, 300)).tag == "svg"


def test_the_words_of_a_dash_pattern_stand_outside_of_its_drawing_so_that_no_font_cuts_them_off() -> None:
    key = dash_key(5, "a < medium.range_m = 150")
    assert key.startswith('<span class="dashes"><svg viewBox="0 0 34 20"')
    assert key.endswith("</svg> a &lt; medium.range_m = 150</span>")
    assert 'class="line dash-1"' in key


# Where each part stands, counted by hand.


def numbers(element: ET.Element | None, *names: str) -> list[float]:
    assert element is not None
    return [float(element.attrib[name]) for name in names]


def points(element: ET.Element | None) -> list[tuple[float, ...]]:
    assert element is not None
    return [tuple(map(float, corner.split(","))) for corner in element.attrib["points"].split()]


@pytest.mark.parametrize(
    ("latency_s", "radius"),
    [(0.0, 7.0), (0.0001, 7.0), (0.001, 7.0), (0.01, 12.0), (1.0, 22.0), (1000.0, 37.0), (1e6, 37.0), (math.nan, 0.0)],
)
def test_a_bubble_grows_by_five_for_ten_times_the_latency_up_to_a_thousand_seconds(
    latency_s: float, radius: float
) -> None:
    assert _bubble(latency_s) == pytest.approx(radius)


def test_the_key_of_bubbles_has_three_side_by_side_each_with_its_latency() -> None:
    drawn = parsed(bubble_key())
    circles, words = list(drawn.iter("circle")), list(drawn.iter("text"))
    assert [word.text for word in words] == ["1 ms", "100 ms", "10 s"]
    left = 4.0
    for circle, word, radius in zip(circles, words, (7.0, 17.0, 27.0), strict=True):
        assert numbers(circle, "cx", "cy", "r") == pytest.approx([left + radius, 30.0, radius], abs=0.06)
        assert numbers(word, "x", "y") == pytest.approx([left + 2 * radius + 4.0, 34.0], abs=0.06)
        left += 2 * radius + width_of(word.text or "") + 16.0
    assert drawn.attrib["viewBox"] == f"0 0 {drawn.attrib['width']} 60"
    assert numbers(drawn, "width") == pytest.approx([left], abs=0.06)


def picture(*some: Spot) -> ET.Element:
    return parsed(delivery_against_cost(some, SHARE, PART, 500, 300))


def spot(name: str, delivery: Figure, cost: Figure, latency_s: float = 0.1, on_front: bool = False) -> Spot:
    return Spot(name, MARK, delivery, cost, latency_s, on_front)


def test_the_picture_has_a_little_air_around_its_values_and_costs_from_nothing() -> None:
    drawn = picture(
        spot("a", exact(1.0), exact(0.4), on_front=True), spot("b", Figure(0.5, 0.4, 0.6, 5), Figure(0.2, 0.1, 0.3, 5))
    )
    (left, right), (bottom, top) = (ends_of(drawn, "x1", "x2"), (258.0, 26.0))
    most = 0.4 * 1.08
    low = 0.4 - 0.08 * 0.6  # the least end of an interval, and a twelfth of what is between it and 1
    high = 1.0 + (1.0 - low) * 0.06

    def place(delivery: float, cost: float) -> tuple[float, float]:
        up = (delivery - low) / (high - low)
        return left + cost / most * (right - left), bottom + up * (top - bottom)

    assert centre(drawn, "a") == pytest.approx(place(1.0, 0.4), abs=0.1)
    assert centre(drawn, "b") == pytest.approx(place(0.5, 0.2), abs=0.1)
    whiskers = drawn.findall(".//*[@data-name='b']/line[@class='whisker']")
    x, y = place(0.5, 0.2)
    assert numbers(whiskers[0], "x1", "y1", "x2", "y2") == pytest.approx(
        [x, place(0.4, 0.2)[1], x, place(0.6, 0.2)[1]], abs=0.1
    )
    assert numbers(whiskers[1], "x1", "y1", "x2", "y2") == pytest.approx(
        [place(0.5, 0.1)[0], y, place(0.5, 0.3)[0], y], abs=0.1
    )
    assert drawn.findall(".//*[@data-name='a']/line[@class='whisker']") == []
    assert [word.text for word in drawn.iter("text")][:2] == ["0.40", "0.60"], "ticks of delivery"
    (corner_a, corner_b) = place(1.0, 0.4)
    assert points(drawn.find(".//*[@class='front']")) == [
        pytest.approx(corner, abs=0.1)
        for corner in ((corner_a, bottom), (corner_a, bottom), (corner_a, corner_b), (right, corner_b))
    ]


def ends_of(drawn: ET.Element, *names: str) -> tuple[float, float]:
    first, last = numbers(drawn.find(".//line[@class='grid']"), *names)
    return first, last


def test_an_interval_that_is_wider_than_all_differences_does_not_press_the_picture_flat() -> None:
    """Between 0.9 and 1 lies the tenth part; the axis begins at most as far below the least mean."""
    drawn = picture(spot("a", Figure(0.9, 0.1, 1.0, 2), exact(0.1)), spot("b", exact(1.0), exact(0.1)))
    low = 0.8 - 0.08 * 0.2
    assert centre(drawn, "b")[1] == pytest.approx(258 - 232 * (1.0 - low) / ((1.0 - low) * 1.06), abs=0.1)
    narrow = picture(spot("a", Figure(0.99, 0.1, 1.0, 2), exact(0.1)))
    low = 0.94 - 0.08 * 0.06
    assert centre(narrow, "a")[1] == pytest.approx(258 - 232 * (0.99 - low) / ((1.0 - low) * 1.06), abs=0.1)


@pytest.mark.parametrize(("dearest", "in_the_middle"), [(0.25, True), (0.249, False)])
def test_costs_are_drawn_by_their_powers_where_one_is_twenty_five_times_another(
    dearest: float, in_the_middle: bool
) -> None:
    middle = math.sqrt(0.01 * dearest)
    drawn = picture(
        *(spot(name, exact(0.9), exact(cost)) for name, cost in zip("abc", (0.01, middle, dearest), strict=True))
    )
    a, b, c = (centre(drawn, name)[0] for name in "abc")
    assert (abs(b - (a + c) / 2) < 0.2) is in_the_middle
    free = picture(spot("a", exact(0.9), exact(0.0)), spot("b", exact(0.9), exact(dearest)))
    assert centre(free, "a")[0] == ends_of(free, "x1", "x2")[0], "a cost of nothing stands at the beginning"


def test_a_spot_says_its_figures_and_its_latency_where_it_is_known() -> None:
    drawn = picture(
        spot("a", Figure(0.9, 0.8, 1.0, 5), exact(0.1), 0.02), spot("b", exact(0.5), Figure(0.2, 0.1, 0.3, 5), math.nan)
    )
    words = [drawn.findtext(f".//*[@data-name='{name}']/title") for name in "ab"]
    assert words == [
        "a: delivery 0.90 (0.80 to 1.00), airtime 10 %, latency p95 20 ms",
        "b: delivery 0.50, airtime 20 % (10 to 30 %)",
    ]
    groups = [one.attrib["data-name"] for one in drawn.iter("g") if "data-name" in one.attrib]
    assert groups == ["a", "b"], "larger bubbles lie below smaller ones"
    turned = picture(spot("a", exact(0.9), exact(0.1), 0.02), spot("b", exact(0.5), exact(0.2), 5.0))
    assert [one.attrib["data-name"] for one in turned.iter("g") if "data-name" in one.attrib] == ["b", "a"]


PAPER = Axes(Scale(0, 1, 50, 450), Scale(0, 1, 258, 26), "x", "y")


def test_a_label_that_stands_far_away_has_a_leader_and_its_mark() -> None:
    one = spot("abc", exact(0.9), exact(0.1), on_front=True)
    near, far = _LabelPlace(100, 200, 9, 11, "start", 40), _LabelPlace(100, 200, 14, -27, "end", 40)
    assert (near.anchor, near.box, near.is_far) == ((109, 211), (109, 203, 149, 217), False)
    assert (far.anchor, far.box, far.is_far) == ((86, 173), (34, 165, 86, 179), True)
    assert near.drawn(one) == '<text x="109" y="215" text-anchor="start" class="label on-front">abc</text>'
    other = spot("abc", exact(0.9), exact(0.1))
    drawn = parsed(f"<g>{far.drawn(other)}</g>")
    assert numbers(drawn.find("line"), "x1", "y1", "x2", "y2") == [100, 200, 86, 173]
    assert numbers(drawn.find("text"), "x", "y") == [74, 177]
    assert MARK.drawn(81, 173, 4) in far.drawn(other)
    assert MARK.drawn(119, 173, 4) in _LabelPlace(100, 200, 14, -27, "start", 40).drawn(other)


@pytest.mark.parametrize(
    ("place", "inside"),
    [
        ((41, 100, 9, 0, "start", 412), True),  # from 50 to 462: twelve beyond the axis are allowed
        ((41, 100, 9, 0, "start", 413), False),
        ((40, 100, 9, 0, "start", 40), False),
        ((99, 100, 9, 0, "end", 40), True),
        ((98, 100, 9, 0, "end", 40), False),
        ((100, 28, 9, 0, "start", 40), True),
        ((100, 27, 9, 0, "start", 40), False),
        ((100, 252, 9, 0, "start", 40), True),
        ((100, 253, 9, 0, "start", 40), False),
    ],
)
def test_a_label_stays_on_the_paper(place: tuple[float, float, float, float, str, float], inside: bool) -> None:
    assert _LabelPlace(*place).inside(PAPER) is inside


def test_a_lone_label_stands_above_to_the_right_and_one_at_the_edge_to_the_left() -> None:
    for cost, anchor in ((0.1, "start"), (0.9, "end")):
        drawn = picture(spot("flooding", exact(0.5), exact(cost)), spot("x", exact(1.0), exact(0.9)))
        label = drawn.find(".//*[@data-name='flooding']/text")
        x, y = centre(drawn, "flooding")
        assert label is not None
        assert label.attrib["text-anchor"] == anchor
        assert numbers(label, "x", "y") == pytest.approx([x + (9 if anchor == "start" else -9), y - 7], abs=0.11)


def test_a_bar_ends_at_the_most_and_has_a_line_at_the_ceiling() -> None:
    drawn = parsed(bar(Figure(0.5, 0.4, 0.7, 5), 0.6, MARK, ceiling=0.3))
    rect, whisker, ceiling = drawn
    assert numbers(rect, "x", "y", "width", "height") == pytest.approx([0, 4, 833.3, 16])
    assert whisker.attrib["d"] == "M666.7 12H1000M666.7 7V17M1000 7V17"
    assert ceiling.attrib["d"] == "M500 0V24"
    assert len(parsed(bar(Figure(0.5, 0.5, 0.5, 5), 1.0, MARK))) == 1, "an interval without width is not drawn"
    assert numbers(parsed(bar(exact(0.5), 0.0, MARK)).find("rect"), "width") == [0.0]
    assert numbers(parsed(stacked([("a", "b", 0.5)], 0.0, MARK)).find(".//rect"), "width") == [0.0]
    assert parsed(stacked([("a", "b", 0.5), ("a", "c", 0.1)], 1.0, MARK)).attrib["aria-label"] == "b; c"


def chart(*values: Figure, **more: Any) -> ET.Element:
    """A line over 0, 1, 2 and so on."""
    series = ChartLine("a", MARK, list(enumerate(values)))  # type: ignore[arg-type]
    return parsed(line_chart([series], Measure("time", ""), Measure("share", ""), width=500, height=300, **more))


def heights(drawn: ET.Element) -> list[float]:
    """How high the points of the line stand, as shares of the axis."""
    return [pytest.approx((258 - y) / 232, abs=0.002) for _, y in points(drawn.find(".//polyline"))]


@pytest.mark.parametrize(
    ("values", "bounded", "low", "high"),
    [
        ((1.0, 3.0), False, 0.0, 3.16),  # amounts begin at nothing
        ((-1.0, 3.0), False, -1.32, 3.32),
        ((0.9, 1.0), True, 0.892, 1.0),  # shares near 1 have the axis for themselves
        ((0.4, 1.0), True, 0.0, 1.0),
        ((0.6, 1.2), True, 0.552, 1.248),
        ((0.53, 0.9), True, 0.5004, 1.0),
        ((0.52, 0.9), True, 0.0, 1.0),
    ],
)
def test_a_chart_of_amounts_begins_at_nothing_and_one_of_shares_ends_at_one(
    values: tuple[float, ...], bounded: bool, low: float, high: float
) -> None:
    drawn = chart(*map(exact, values), bounded=bounded)
    assert heights(drawn) == [(value - low) / (high - low) for value in values]


def test_a_goal_is_drawn_across_and_is_part_of_what_the_axis_shows() -> None:
    drawn = chart(exact(0.5), exact(0.6), goal=0.95)
    goal = drawn.find(".//line[@class='goal']")
    high = 0.95 + 0.08 * 0.45
    y = 258 - 232 * 0.95 / high
    assert numbers(goal, "y1", "y2") == pytest.approx([y, y], abs=0.1)
    assert numbers(goal, "x1", "x2") == list(ends_of(drawn, "x1", "x2"))
    assert chart(exact(0.5), exact(0.6)).find(".//line[@class='goal']") is None


def test_lines_stand_a_little_aside_of_each_other_where_each_value_has_its_tick() -> None:
    def places(count: int, xs: int) -> list[float]:
        several = [ChartLine(f"l{n}", MARK, [(x, exact(1.0)) for x in range(xs)]) for n in range(count)]  # type: ignore[misc]
        drawn = parsed(line_chart(several, Measure("time", ""), Measure("share", "")))
        return [points(one)[0][0] for one in drawn.iter("polyline")]

    first, second, third = places(3, 8)
    assert (second - first, third - second) == (pytest.approx(3.0, abs=0.11), pytest.approx(3.0, abs=0.11))
    assert places(1, 8) == [second], "around the value"
    twelve = places(12, 2)
    assert twelve[1] - twelve[0] == pytest.approx(2.0, abs=0.11), "within 24 altogether"
    assert len({*places(3, 9)}) == 1, "among many values none stands aside"


def test_a_logarithmic_axis_needs_positive_values() -> None:
    def xs(*values: float) -> list[float]:
        series = ChartLine("a", MARK, [(value, exact(1.0)) for value in values])
        drawn = parsed(line_chart([series], Measure("load", ""), SHARE, log_x=True))
        left, right = ends_of(drawn, "x1", "x2")
        return [pytest.approx((x - left) / (right - left), abs=0.002) for x, _ in points(drawn.find(".//polyline"))]

    low, high = 1.0 / 1.445, 100.0 * 1.445  # a twelfth of the two powers of ten on either side
    wide = math.log10(high / low)
    assert xs(1.0, 10.0, 100.0) == [math.log10(value / low) / wide for value in (1.0, 10.0, 100.0)]
    assert xs(0.0, 10.0, 20.0) == [(value + 1.6) / 23.2 for value in (0.0, 10.0, 20.0)]
    assert xs(4.0) == [0.5], "a single value stands in the middle"


def test_a_line_has_its_dashes_and_note_and_figures_of_a_paper_are_marks_alone() -> None:
    series = [
        ChartLine("a", MARK, [(1.0, exact(0.5))], dashes=6, note="range_m = 50"),
        ChartLine("b", Mark(3, 3), [(1.0, exact(0.5)), (2.0, exact(math.nan))], connected=False),
    ]
    drawn = parsed(line_chart(series, Measure("load", ""), SHARE))
    assert [line.attrib["class"] for line in drawn.iter("polyline")] == ["line dash-2"]
    assert drawn.findtext(".//*[@data-name='a']//title") == "a (range_m = 50), load 1: 0.50"
    assert [one.attrib["class"] for one in drawn.iter("g") if "data-name" in one.attrib] == [
        "series m0",
        "series open m3",
    ]


def test_a_map_has_one_scale_for_both_directions() -> None:
    cells = [AreaCell(100, 50, 10, 5)]
    ground = ground_of(cells, 100, [[(0, 0), (400, 200)], [(7, 7)]], "tracks")
    assert (ground.left_m, ground.bottom_m, ground.wide_m, ground.high_m) == (0, 0, 400, 200)
    assert ground.scale == pytest.approx(238 / 400)
    assert (ground.place(0, 200), ground.place(400, 0)) == ((1, 1), (pytest.approx(239), pytest.approx(120)))
    drawn = parsed(area_map(cells, 100, ground, MARK, "codd", 0.25, True))
    assert drawn.attrib["viewBox"] == "0 0 240 121"
    whole, cell = drawn.iter("rect")
    assert numbers(whole, "x", "y", "width", "height") == [0.5, 0.5, 239, 120]
    assert numbers(cell, "x", "y", "width", "height") == pytest.approx([60.5, 30.8, 59.5, 59.5], abs=0.06)
    assert cell.attrib["fill-opacity"] == "0.95", "as dark as it gets"
    assert len(list(drawn.iter("polyline"))) == 1, "a track of one point is no line"
    assert drawn.findtext(".//title") == ("codd, 100 to 200 m east, 50 to 150 m north: lost 5 of 10 expected")
    nothing = parsed(area_map([AreaCell(0, 0, 0, 0), AreaCell(0, 0, 4, 1)], 100, ground, MARK, "codd", 0.0, False))
    assert [one.attrib["fill-opacity"] for one in nothing.iter("rect") if "fill-opacity" in one.attrib] == ["0.00"] * 2
    assert ground_of([AreaCell(0, 0, 1, 1)], 1.0, [], "still").scale == 238.0


@pytest.mark.parametrize(
    ("wide_m", "high_m", "height", "bar_m", "words"),
    [
        (1000.0, 500.0, 260.0, 200.0, "200 m"),
        (1000.0, 10.0, 160.0, 200.0, "200 m"),
        (1000.0, 9000.0, 620.0, 200.0, "200 m"),
        (1300.0, 600.0, 240.0, 500.0, "500 m"),
        (3000.0, 1500.0, 260.0, 1000.0, "1 km"),
        (12_600.0, 6300.0, 260.0, 5000.0, "5 km"),
        (290.0, 145.0, 260.0, 50.0, "50 m"),
    ],
)
def test_a_map_of_tracks_fits_its_frame_and_has_a_bar_of_a_round_length(
    wide_m: float, high_m: float, height: float, bar_m: float, words: str
) -> None:
    drawn = parsed(track_map([[(10.0, 20.0), (10.0 + wide_m, 20.0 + high_m)], [(10.0, 20.0)], []], "a town"))
    assert drawn.attrib["viewBox"] == f"0 0 520 {height:g}"
    scale = min(504.0 / wide_m, (height - 44.0) / high_m)
    assert points(drawn.find("polyline")) == [
        pytest.approx((8.0, height - 36.0), abs=0.06),
        pytest.approx((8.0 + wide_m * scale, height - 36.0 - high_m * scale), abs=0.06),
    ]
    assert numbers(drawn.find("circle"), "cx", "cy", "r") == pytest.approx([8.0, height - 36.0, 2.0])
    ruler, label = drawn.find("line"), drawn.find("text")
    assert numbers(ruler, "x1", "x2", "y1", "y2") == pytest.approx(
        [8.0, 8.0 + bar_m * scale, height - 14.0, height - 14.0], abs=0.06
    )
    assert label is not None
    assert (label.text, label.attrib["text-anchor"]) == (words, "start")
    assert numbers(label, "x", "y") == pytest.approx([14.0 + bar_m * scale, height - 10.0], abs=0.06)


@pytest.mark.parametrize(
    ("other", "overlaps"),
    [
        ((15, 115, 25, 125), True), ((5, 105, 15, 115), True), ((12, 112, 18, 118), True), ((0, 100, 30, 130), True),
        ((20, 110, 30, 120), False), ((0, 110, 10, 120), False), ((10, 120, 20, 130), False),
        ((10, 100, 20, 110), False), ((19, 119, 30, 130), True), ((21, 0, 300, 300), False),
        ((0, 121, 300, 300), False),
    ],
)  # fmt: skip
def test_two_boxes_overlap_where_they_share_more_than_a_border(
    other: tuple[float, float, float, float], overlaps: bool
) -> None:
    box = (10, 110, 20, 120)
    assert (_overlap(box, other), _overlap(other, box)) == (overlaps, overlaps)


def test_tracks_along_one_line_have_a_metre_of_height() -> None:
    flat = parsed(track_map([[(0.0, 5.0), (1000.0, 5.0)]], "a road"))
    assert points(flat.find("polyline")) == [(8.0, 124.0), (512.0, 124.0)]
    upright = parsed(track_map([[(5.0, 0.0), (5.0, 0.5)]], "a lift"))
    assert upright.attrib["viewBox"] == "0 0 520 520"
    scale = 476.0  # of the one metre that is shown
    assert points(upright.find("polyline")) == [(8.0, 484.0), (8.0, pytest.approx(484.0 - 0.5 * scale))]
