"""A trace's profile on the page, from figures that are made here."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from earshot.pipeline.reports.page import PageFigure, PageTable
from earshot.pipeline.reports.profile_page import density_map, profile_blocks, profile_page
from earshot.pipeline.traces.contact_statistics import Spread
from earshot.pipeline.traces.profile_text import RANGE_HEADER, carried_words, facts_rows, profile_words, range_rows
from earshot.pipeline.traces.trace_profile import DensityCell, NetworkMoment, Profile, RangeProfile, profile_of_json

SPREAD = Spread(3.0, 2.0, 5.0, 6.0, 7.0, 9.0)


def at_range(range_m: float, largest_share: float) -> RangeProfile:
    over_time = tuple(NetworkMoment(100.0 + 10.0 * n, 4, 3 - n, largest_share - 0.1 * n) for n in range(2))
    return RangeProfile(range_m, 2.5, 2.0, 0.25, 2.5, largest_share, SPREAD, None, 0.3, {"10": 0.5}, over_time)


FOUND = Profile(
    trace="town", content="c", rows=80, nodes=1234, start=100.0, end=140.0, interval_s=1.0, motion="linear",
    box=(1000.0, 2000.0, 1400.0, 2200.0), mean_present=4.0, most_present=5,
    present_over_time=((100.0, 3), (120.0, 5)), arrivals_per_min=1.0, departures_per_min=2.0, stay_s=SPREAD,
    speed_m_s=SPREAD, step_s=1.0, cell_m=100.0,
    density=(DensityCell(1000.0, 2000.0, 4.0), DensityCell(1350.0, 2150.0, 1.0)),
    ranges=(at_range(50.0, 0.6), at_range(200.0, 0.95)),
)  # fmt: skip


def test_a_profile_knows_its_size_and_the_nearest_range() -> None:
    assert (FOUND.span_s, FOUND.width_m, FOUND.height_m) == (40.0, 400.0, 200.0)
    assert [FOUND.at(range_m).range_m for range_m in (0.0, 124.0, 126.0, 999.0)] == [50.0, 50.0, 200.0, 200.0]
    assert [one.partitioned for one in FOUND.ranges] == [True, False]
    assert not replace(FOUND.ranges[0], largest_share=0.9).partitioned


def test_a_profile_is_what_it_was_written_as() -> None:
    assert profile_of_json(json.dumps(FOUND.as_json())) == FOUND


def test_the_page_is_about_one_trace_and_counts_its_nodes() -> None:
    page = profile_page(FOUND)
    assert (page.title, page.subtitle) == ("Earshot profile: town", "1,234 nodes")
    assert [section.title for section in page.sections] == ["The trace town"]


def test_lines_over_time_begin_at_the_traces_start_with_one_for_each_range() -> None:
    _, _, largest, components, present, where = profile_blocks(FOUND)
    assert isinstance(largest, PageFigure)
    assert isinstance(components, PageFigure)
    assert isinstance(present, PageFigure)
    assert isinstance(where, PageFigure)
    tables = [figure.table for figure in (largest, components, present, where)]
    assert all(isinstance(table, PageTable) for table in tables)
    assert [list(table.rows) for table in tables if table is not None] == [
        [["0.0", "50", 0.6], ["10.0", "50", 0.5], ["0.0", "200", 0.95], ["10.0", "200", pytest.approx(0.85)]],
        [["0.0", "50", 3], ["10.0", "50", 2], ["0.0", "200", 3], ["10.0", "200", 2]],
        [["0.0", 3], ["20.0", 5]],
        [[1000.0, 2000.0, "4.0000"], [1350.0, 2150.0, "1.0000"]],
    ]
    assert [name for name, *_ in largest.keys] == ["50 m", "200 m"]
    assert "square of 100 m" in where.note


def test_the_map_is_as_wide_as_the_trace_and_its_squares_are_darker_where_more_nodes_are() -> None:
    drawn = ET.fromstring(density_map(FOUND))
    assert drawn.get("viewBox") == "0 0 520 261"
    ground, *cells = drawn.iter("rect")
    assert (ground.get("width"), ground.get("height")) == ("519", "260")
    scale = 518.0 / 400.0
    south, north = cells
    assert (float(south.get("x", "")), float(south.get("y", ""))) == pytest.approx((1.0, 1 + 100 * scale), abs=0.06)
    assert (float(south.get("width", "")), float(south.get("height", ""))) == pytest.approx((129.5, 129.5), abs=0.06)
    # The second square reaches beyond the ground to the east and to the north: it is cut there.
    assert (float(north.get("x", "")), float(north.get("y", ""))) == pytest.approx((1 + 350 * scale, 1.0), abs=0.06)
    assert (float(north.get("width", "")), float(north.get("height", ""))) == pytest.approx((64.75, 64.75), abs=0.06)
    assert [cell.get("fill-opacity") for cell in cells] == ["0.95", f"{0.08 + 0.87 * math.sqrt(1 / 4):.2f}"]
    words = [title.text for title in drawn.iter("title")]
    assert words[0] == "1000 to 1100 m east, 2000 m north: 4.00 nodes"


def test_a_high_map_is_no_higher_than_a_wide_one_is_wide_and_nodes_in_one_place_have_a_square() -> None:
    high = replace(FOUND, box=(0.0, 0.0, 100.0, 400.0), density=(DensityCell(0.0, 0.0, 1.0),))
    assert ET.fromstring(density_map(high)).get("viewBox") == "0 0 131.5 520"
    point = replace(FOUND, box=(5.0, 5.0, 5.0, 5.0), density=(DensityCell(5.0, 5.0, 1.0),))
    assert ET.fromstring(density_map(point)).get("viewBox") == "0 0 520 520"
    assert density_map(replace(FOUND, density=())) == ""


def test_the_words_tell_up_to_where_the_network_is_torn_and_from_where_it_is_one() -> None:
    assert profile_words(FOUND) == (
        "Partitioned up to 50 m: there are 2.5 components then, the largest has 60% of the nodes, and 30% of all pairs "
        "are connected at once (50% within 10 s by carrying); one network from 200 m on: the largest component has 95% "
        "of the nodes, and 30% of all pairs are connected at once."
    )
    torn, whole = (replace(FOUND, ranges=(one,)) for one in FOUND.ranges)
    assert "one network" not in profile_words(torn)
    assert profile_words(whole).startswith("One network from 200 m on")
    carried = replace(FOUND.ranges[0], reachable_within={"119": 0.1, "120": 0.5, "600": 0.75})
    assert carried_words(carried) == " (10% within 119 s, 50% within 2 min, 75% within 10 min by carrying)"
    assert carried_words(replace(carried, reachable_within={})) == ""


def test_the_facts_and_the_figures_of_each_range_as_rows() -> None:
    assert dict(facts_rows(FOUND)) == {
        "area": "400 x 200 m, from (1,000, 2,000)",
        "span": "40 s, from 100 to 140 s",
        "rows": "80, 1 s apart (median)",
        "nodes": "1,234; at once 4.0 on average, 5 at most",
        "speed": "3.0 m/s on average, median 2.0, 95 % below 6.0",
        "arrivals": "1.0 a minute",
        "departures": "2.0 a minute",
        "stay": "3 s on average, median 2",
    }
    assert dict(facts_rows(replace(FOUND, interval_s=None)))["rows"] == "80, - apart (median)"
    near, _ = range_rows(FOUND)
    assert dict(zip(RANGE_HEADER, near, strict=True)) == {
        "range": "50 m", "neighbours": "2.5", "median": "2", "alone": "25%", "components": "2.5", "largest": "60%",
        "contact": "2", "between": "-", "at once": "30%", "10 s": "50%",
        **dict.fromkeys([name for name in RANGE_HEADER[9:] if name != "10 s"], "-"),
    }  # fmt: skip
