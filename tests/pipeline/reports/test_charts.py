"""The charts: what is drawn stands where its numbers say."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.reports.charts import (
    AreaCell,
    ChartLine,
    Measure,
    Spot,
    _tries,
    area_map,
    bar,
    dash_key,
    delivery_against_cost,
    ground_of,
    line_chart,
    stacked,
    track_map,
)
from earshot.pipeline.reports.svg import Mark, Scale, log_ticks, marks_of, ticks

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
