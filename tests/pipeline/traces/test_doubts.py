"""Doubts about a trace at the figures where they begin and end, without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from earshot.errors import TraceError
from earshot.pipeline.traces.plausibility import (
    FarRows,
    TraceFigures,
    TraceUnits,
    as_date,
    as_span,
    breaks_off,
    doubts_about,
    far_times,
    mostly_rejected,
    outside_globe,
    wrong_clocks,
)

TOWN = TraceFigures(False, 4, 0.0, 600.0, 1.0, (0.0, 0.0, 900.0, 400.0), 10.0)
"Metres and seconds, as they should be."
ANYTHING = TraceUnits()


def doubts(units: str = "", **changed: object) -> list[str]:
    """The first words of each doubt about the town with other figures."""
    found = doubts_about(replace(TOWN, **changed), TraceUnits.of(units))  # type: ignore[arg-type]
    return [one.partition(":")[0] for one in found]


KM, DEGREES = "x and y look like kilometres", "x and y look like degrees"
EARTH = "the positions extend over 40,075 km, more than the earth's circumference"


def few(nodes: int, shape: str) -> list[str]:
    return [f"all positions of {nodes} nodes lie within {shape} m"]


def test_a_town_in_metres_is_not_doubted() -> None:
    assert doubts() == []


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        # A box of less than five metres, in which nodes move slowly: but as degrees they would be as fast as sound.
        ({"box": (0.0, 0.0, 4.9, 0.3), "speed_m_s": 0.01}, [KM]),
        ({"box": (0.0, 0.0, 0.3, 4.9), "speed_m_s": 0.01}, [KM]),
        ({"box": (0.0, 0.0, 5.0, 0.3), "speed_m_s": 0.01}, few(4, "5 x 0.3")),
        ({"box": (0.0, 0.0, 4.9, 0.3), "speed_m_s": 0.0031}, [KM]),
        ({"box": (0.0, 0.0, 4.9, 0.3), "speed_m_s": 0.003}, [DEGREES]),
        ({"box": (0.0, 0.0, 4.9, 0.3), "speed_m_s": 0.0499}, [KM]),
        ({"box": (0.0, 0.0, 4.9, 0.3), "speed_m_s": 0.05}, [DEGREES]),
        ({"box": (0.0, 0.0, 4.9, 0.3), "speed_m_s": 0.05, "nodes": 2}, few(2, "4.9 x 0.3")),
        ({"box": (0.0, 0.0, 4.9, 0.3), "speed_m_s": 0.001, "nodes": 2}, [DEGREES]),
        ({"box": (0.0, 0.0, 4.9, 0.3), "speed_m_s": 0.0, "nodes": 2}, few(2, "4.9 x 0.3")),
        ({"box": (0.0, 0.0, 4.9, 0.3), "speed_m_s": None, "nodes": 2}, few(2, "4.9 x 0.3")),
        ({"box": (0.0, 0.0, 4.9, 0.3), "speed_m_s": None, "nodes": 3}, [DEGREES]),
        ({"box": (0.0, 0.0, 4.9, 0.3), "speed_m_s": None, "nodes": 1}, []),
        ({"box": (0.0, 0.0, 0.0, 0.0), "speed_m_s": None}, few(4, "0 x 0")),
        # What cannot be degrees.
        ({"box": (176.0, 86.0, 180.0, 90.0), "speed_m_s": None}, [DEGREES]),
        ({"box": (-180.0, -90.0, -176.0, -86.0), "speed_m_s": None}, [DEGREES]),
        ({"box": (176.1, 86.0, 180.1, 90.0), "speed_m_s": None}, few(4, "4 x 4")),
        ({"box": (176.0, 86.1, 180.0, 90.1), "speed_m_s": None}, few(4, "4 x 4")),
        ({"box": (-180.1, -90.0, -176.1, -86.0), "speed_m_s": None}, few(4, "4 x 4")),
        ({"box": (-180.0, -90.1, -176.0, -86.1), "speed_m_s": None}, few(4, "4 x 4")),
        # Few metres, also of a trace in degrees.
        ({"box": (0.0, 0.0, 19.9, 3.0)}, few(4, "19.9 x 3")),
        ({"box": (0.0, 0.0, 20.0, 3.0)}, []),
        ({"box": (0.0, 0.0, 19.9, 3.0), "nodes": 1}, []),
        ({"box": (0.0, 0.0, 3.0, 3.0), "geo": True, "speed_m_s": 0.01}, few(4, "3 x 3")),
        # More than the earth.
        ({"box": (0.0, 0.0, 40_075_000.0, 1.0)}, []),
        ({"box": (0.0, 0.0, 1.0, 40_075_001.0)}, [EARTH]),
        ({"box": (0.0, 0.0, 1.0, 40_075_001.0), "geo": True}, []),
    ],
)
def test_a_unit_of_places_is_doubted_by_extent_and_speeds(changed: dict[str, object], found: list[str]) -> None:
    assert doubts(**changed) == found
    for units in ("m", "km", "degrees"):
        assert doubts(units, **changed) == []


def test_kilometres_are_reported_with_both_speeds() -> None:
    found = replace(TOWN, box=(1.0, 2.0, 1.5, 2.3), speed_m_s=0.01)
    assert doubts_about(found, ANYTHING) == [
        "x and y look like kilometres: all positions lie within 0.5 x 0.3 m, and from row to row nodes would move at "
        "10.0 m/s (as degrees at 1,113 m/s); read them with --units km, or settle it with --units m or --units degrees"
    ]


MS = "times look like milliseconds"


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"given_speed_m_s": 10.0, "speed_m_s": 0.01}, [MS]),
        ({"given_speed_m_s": 10.0, "speed_m_s": 10.0 / 300}, []),
        ({"given_speed_m_s": 10.0, "speed_m_s": 10.0 / 301}, [MS]),
        ({"given_speed_m_s": 10.0, "speed_m_s": 10.0 / 2999}, [MS]),
        ({"given_speed_m_s": 10.0, "speed_m_s": 10.0 / 3001}, []),
        ({"given_speed_m_s": 0.0, "speed_m_s": 0.01}, []),
        ({"given_speed_m_s": 10.0, "speed_m_s": None}, []),
        ({"interval_s": 100.0, "speed_m_s": 0.0499}, [MS]),
        ({"interval_s": 99.9, "speed_m_s": 0.0499}, []),
        ({"interval_s": 100.0, "speed_m_s": 0.05}, []),
        ({"interval_s": 100.0, "speed_m_s": 0.0}, []),
        ({"interval_s": None, "speed_m_s": 0.0499}, []),
    ],
)
def test_milliseconds_are_suspected_by_speeds_and_by_gaps(changed: dict[str, object], found: list[str]) -> None:
    assert doubts(**changed) == found
    assert doubts("s", **changed) == doubts("ms", **changed) == []


def test_milliseconds_are_reported_with_what_was_found() -> None:
    found = replace(TOWN, given_speed_m_s=10.0, speed_m_s=0.01)
    assert doubts_about(found, ANYTHING) == [
        "times look like milliseconds: the trace's own speeds (10.0 m/s) are about 1000 times those from row to row "
        "(0.01 m/s); read them with --units ms, or settle it with --units s"
    ]
    found = replace(TOWN, interval_s=5000.0, speed_m_s=0.002)
    assert doubts_about(found, ANYTHING) == [
        "times look like milliseconds: rows are 5000 s apart, and a node that moves takes 500 s for a metre; read them "
        "with --units ms, or settle it with --units s"
    ]


def test_where_kilometres_explain_slow_nodes_milliseconds_are_not_suspected() -> None:
    slow = {"box": (0.0, 0.0, 0.5, 0.3), "speed_m_s": 0.01, "interval_s": 100.0}
    assert doubts(**slow) == [KM]
    assert doubts("km", **slow) == [MS]


def test_times_from_the_year_2200_on_are_doubted() -> None:
    assert [doubts(end=end) for end in (7_258_118_399.0, 7_258_118_400.0)] == [
        [],
        ["times reach until 2200-01-01 00"],
    ]


@pytest.mark.parametrize(
    ("speed", "swapped", "found"),
    [
        (20.0, 10.0, ["latitude and longitude look swapped"]),
        (5.0, 10.0, ["latitude and longitude look swapped"]),
        (11.0, 10.0, []),  # a tenth is not much
        (11.1, 10.0, ["latitude and longitude look swapped"]),
        (20.0, 12.5, ["latitude and longitude look swapped"]),  # off by 0.22 and not by 0.69
        (20.0, 12.7, []),
        (20.0, 8.0, ["latitude and longitude look swapped"]),
        (20.0, 7.8, []),
        (0.0, 10.0, []),
        (20.0, None, []),
    ],
)
def test_latitude_and_longitude_are_swapped_if_that_explains_the_speeds(
    speed: float, swapped: float | None, found: list[str]
) -> None:
    given = {"given_speed_m_s": 10.0, "speed_m_s": speed, "swapped_speed_m_s": swapped}
    assert doubts(geo=True, **given) == found
    assert doubts(geo=False, **given) == doubts("lonlat", geo=True, **given) == []
    assert doubts(geo=True, **{**given, "given_speed_m_s": None}) == []


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("", TraceUnits()),
        (" ms , km ", TraceUnits(0.001, 1000.0, settled=frozenset({"time", "place"}))),
        ("us", TraceUnits(0.000001, settled=frozenset({"time"}))),
        ("ns,", TraceUnits(1e-9, settled=frozenset({"time"}))),
        ("cm", TraceUnits(1.0, 0.01, settled=frozenset({"place"}))),
        ("mm", TraceUnits(1.0, 0.001, settled=frozenset({"place"}))),
        ("s,m", TraceUnits(settled=frozenset({"time", "place"}))),
        ("degrees", TraceUnits(degrees=True, settled=frozenset({"place"}))),
        ("degrees,lonlat", TraceUnits(degrees=True, swapped=True, settled=frozenset({"place", "order"}))),
        ("lonlat", TraceUnits(swapped=True, settled=frozenset({"order"}))),
    ],
)
def test_units_say_how_times_and_places_are_read_and_what_they_settle(text: str, units: TraceUnits) -> None:
    assert TraceUnits.of(text) == units


@pytest.mark.parametrize("text", ["s,ms", "m,km", "m,degrees", "s,ms,km"])
def test_two_units_of_one_kind_contradict_each_other(text: str) -> None:
    with pytest.raises(TraceError, match="contradict each other: name one for times and one for places"):
        TraceUnits.of(text)


@pytest.mark.parametrize(
    ("time_s", "words"),
    [
        (0.0, "0 s"),
        (99_999_999.0, "99999999 s"),
        (1e8, "1973-03-03 09:46:40"),
        (253_402_300_799.0, "9999-12-31 23:59:59"),
        (253_402_300_800.0, "253402300800 s"),
        (-5.5, "-5.5 s"),
    ],
)
def test_times_since_the_epoch_are_reported_as_dates(time_s: float, words: str) -> None:
    assert as_date(time_s) == words


def test_rows_are_far_only_beyond_the_bounds() -> None:
    day = 86_400.0
    assert far_times(10.0 - day, 40.0 + day, (10.0, 40.0)) is None
    assert far_times(9.0 - day, 40.0, (10.0, 40.0)) == far_times(10.0, 41.0 + day, (10.0, 40.0))
    assert far_times(9.0 - day, 40.0, (10.0, 40.0)) == (10.0 - day, 40.0 + day)
    assert far_times(-10 * day, 11 * day, (0.0, day)) is None
    assert far_times(-11 * day, day, (0.0, day)) == (-10 * day, 11 * day)


def test_rows_with_a_wrong_clock_are_one_or_up_to_a_twentieth() -> None:
    far = FarRows(1, "bus7", 0.0, "bad.csv", 12, 1, 0.0, 600.0)
    assert wrong_clocks(far).startswith("1 of 2 rows lies far")
    assert wrong_clocks(replace(far, count=2, others=2)) == ""
    assert wrong_clocks(replace(far, count=5, others=95)).startswith("5 of 100 rows lie far")
    assert wrong_clocks(replace(far, count=5, others=94)) == ""


def test_a_trace_of_duplicates_has_no_column_for_nodes_only_if_there_is_a_node_a_file() -> None:
    words = "have the time of another row of the same node"
    assert words in mostly_rejected({"duplicate": 20, "impossible": 19}, 1, 2, 2)
    assert words not in mostly_rejected({"duplicate": 20, "impossible": 20}, 1, 2, 2)
    assert words not in mostly_rejected({"duplicate": 39}, 1, 3, 2)
    assert mostly_rejected({"duplicate": 20}, 20, 1, 1) == ""
    assert mostly_rejected({"impossible": 21}, 20, 1, 1).startswith("21 of 41 rows are rejected (impossible 21)")
    assert mostly_rejected({"impossible": 1}, 0, 1, 1).startswith("1 of 1 rows are rejected (impossible 1)")


def test_latitudes_beyond_the_poles_hint_at_swapped_columns_if_nothing_else_is_wrong() -> None:
    beyond, other = "latitude 151.2 is outside -90..90", "time is missing"
    assert outside_globe([beyond, beyond]) == "; latitude and longitude may be swapped: --units lonlat"
    assert [outside_globe(some) for some in ([], [beyond, other], [other])] == ["", "", ""]


def test_a_file_that_breaks_off_says_what_its_header_promised(tmp_path: Path) -> None:
    file = tmp_path / "cut.xml"
    file.write_text('<!-- <sumoConfiguration><time><end value="900"/></time></sumoConfiguration> -->\n<fcd-export>\n')
    assert breaks_off(str(file), 100.0, 700.0) == (
        f"{file} breaks off: it should last until 900 s and ends at 700 s, so 200 s (25% of the span) are missing"
    )
    assert breaks_off(str(file), 0.0, 900.0) == f"{file} breaks off at 900 s; how much is missing is not known"
    nowhere = str(tmp_path / "gone.xml")
    assert breaks_off(nowhere, 0.0, 5.0) == f"{nowhere} breaks off at 5 s; how much is missing is not known"


def test_rows_of_a_day_are_far_ten_days_before_or_after_it() -> None:
    day = 86_400.0
    assert far_times(80 * day, 101 * day, (100 * day, 101 * day)) == (90 * day, 111 * day)
    assert far_times(90 * day, 111 * day, (100 * day, 101 * day)) is None


@pytest.mark.parametrize(
    ("start_s", "end_s", "words"),
    [
        (1_700_000_000.0, 1_700_000_000.0, "2023-11-14 22:13:20 to 22:13:20 UTC"),
        (1_700_000_000.0, 1_700_000_060.4, "2023-11-14 22:13:20 to 22:14:20 UTC"),
        (1_700_000_000.0, 1_700_086_400.0, "2023-11-14 22:13:20 to 2023-11-15 22:13:20 UTC"),
        (1e8, 1e8 + 1.0, "1973-03-03 09:46:40 to 09:46:41 UTC"),
        (1e8 - 1.0, 1e8, "99999999 to 100000000 s"),
        (0.0, 1_700_000_000.0, "0 to 1700000000 s"),
        (1.26, 60.0, "1.3 to 60 s"),
    ],
)
def test_a_part_of_a_trace_is_reported_in_dates_where_both_ends_are_dates(
    start_s: float, end_s: float, words: str
) -> None:
    assert as_span(start_s, end_s) == words
