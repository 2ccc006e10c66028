"""What is probably wrong with a trace is said in words; `--units` settles it, `--strict` refuses."""

from __future__ import annotations

import gzip
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from earshot.cli import main
from earshot.cli.advise import check_choice
from earshot.cli.traces import TraceChoice
from earshot.errors import TraceError
from earshot.geometry import LocalPlane, Position
from earshot.pipeline.campaigns.flow import expected_counts, keep_own_workload
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.traces.ingest import IngestSettings, ingest
from earshot.pipeline.traces.plausibility import (
    FarRows,
    TraceFigures,
    TraceUnits,
    as_span,
    doubts_about,
    far_times,
    mostly_rejected,
    wrong_clocks,
)
from earshot.pipeline.traces.trace_scenario import scenario_doubts, scenario_from_trace
from earshot.traces import read_trace
from earshot.traces.xml_formats import header_of

HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<!-- generated on 2026-11-16 by Eclipse SUMO sumo 1.28.0
<sumoConfiguration xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
    <input><net-file value="net.net.xml"/></input>
    <output><fcd-output value="fcd.xml.gz"/><fcd-output.geo value="{geo}"/></output>
    <time><begin value="0"/><end value="900"/></time>
</sumoConfiguration>
-->
<fcd-export>
"""


def fcd(geo: bool = False, until: int = 900, every: int = 10, old: bool = False) -> str:
    """SUMO's floating car data in the shape of recent versions, or of old ones without a header."""
    plane = LocalPlane(44.5, 11.3)
    text = "<fcd-export>\n" if old else HEADER.format(geo="true" if geo else "false")
    for time in range(0, until, every):
        text += f'  <timestep time="{time:.2f}">\n'
        for number in range(3):
            x, y = 8.0 * time + 20 * number, 50.0 * number
            if geo:
                there = plane.lat_lon(Position(x, y))
                x, y = there[1], there[0]
            kind = f'id="car{number}" x="{x:.7f}" y="{y:.7f}" angle="90.00"'
            text += f'    <vehicle {kind} type="car" speed="8.00" pos="1.00" lane="a_0" slope="0.00"/>\n'
        text += '    <person id="ann" x="5" y="6" angle="0" speed="0" pos="1" edge="a" slope="0"/>\n' if not geo else ""
        text += "  </timestep>\n"
    return text + "</fcd-export>\n"


def test_a_sumo_file_says_in_its_header_whether_it_has_degrees(tmp_path: Path) -> None:
    for name, geo, old in (("plain", False, False), ("geo", True, False), ("old", False, True)):
        (tmp_path / f"{name}.xml").write_text(fcd(geo, until=30, old=old))
        trace = read_trace(tmp_path / f"{name}.xml")
        assert (trace.geo, trace.problems) == (geo, ())
        assert set(trace.node) >= {"car0", "car1", "car2"}
    assert header_of(str(tmp_path / "geo.xml"))["end"] == "900"
    assert header_of(str(tmp_path / "old.xml")) == {}


def test_units_that_contradict_each_other_are_refused() -> None:
    assert TraceUnits.of("ms,km").length_factor == 1000.0
    with pytest.raises(TraceError, match="there is no unit 'feet'; there are: s, ms, us, ns, m, km"):
        TraceUnits.of("feet")
    with pytest.raises(TraceError, match="contradict each other"):
        TraceUnits.of("m,degrees")


def test_a_trace_of_which_most_is_rejected_says_why() -> None:
    assert mostly_rejected({}, 10, 4, 1) == mostly_rejected({"duplicate": 10}, 10, 1, 1) == ""
    assert mostly_rejected({"duplicate": 39}, 1, 1, 1) == (
        "39 of 40 rows have the time of another row of the same node: no column says which node a row is about, so "
        "each file counts as one node; name it with --columns node=NAME"
    )
    assert mostly_rejected({"duplicate": 5, "impossible": 1200}, 100, 7, 1) == (
        "1,205 of 1,305 rows are rejected (duplicate 5, impossible 1,200): the table `rejects` says why, row by row"
    )


def test_a_row_is_far_in_time_by_the_span_of_the_others_and_by_a_day() -> None:
    assert far_times(0.0, 50.0, (10.0, 40.0)) is None
    assert far_times(0.0, 80_000.0, (10.0, 40.0)) is None, "a quiet night is no wrong clock"
    assert far_times(0.0, 90_000.0, (10.0, 40.0)) == (10.0 - 86_400.0, 40.0 + 86_400.0)
    week, year = 604_800.0, 31_536_000.0
    assert far_times(0.0, 10 * week, (0.0, week)) is None
    assert far_times(-year, week, (0.0, week)) == (-10 * week, 11 * week)


def test_a_few_rows_far_from_all_others_are_named_with_the_range_of_the_others() -> None:
    one = FarRows(1, "bus7", 32_472_144_000.0, "bad.csv", 12, 1463, 1_700_000_000.0, 1_700_003_600.0)
    assert wrong_clocks(one) == (
        "1 of 1,464 rows lies far from all others in time: node bus7 at 2999-01-01 00:00:00 (bad.csv, line 12); all "
        "others lie between 2023-11-14 22:13:20 and 2023-11-14 23:13:20; its clock may have been wrong: correct or "
        "remove it"
    )
    assert wrong_clocks(replace(one, count=3, time=5e6, start=0.0, end=600.0)) == (
        "3 of 1,466 rows lie far from all others in time: first node bus7 at 5000000 s (bad.csv, line 12); all others "
        "lie between 0 s and 600 s; their clock may have been wrong: correct or remove them"
    )
    assert wrong_clocks(replace(one, count=100)) == "", "these are a part of the trace"


def test_times_after_the_year_2200_are_doubted() -> None:
    figures = TraceFigures(False, 2, 0.0, 7.2e9, 1.0, (0.0, 0.0, 900.0, 900.0), 10.0)
    assert doubts_about(figures, TraceUnits()) == []
    late = replace(figures, end=32_472_144_000.0)
    assert doubts_about(late, TraceUnits()) == [
        "times reach until 2999-01-01 00:00:00, after the year 2200: their unit may be another, or they may not count "
        "since 1970; settle it with --units s, ms, us or ns"
    ]
    assert doubts_about(late, TraceUnits.of("s")) == []


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(spark, tmp_path_factory.mktemp("doubts") / "lake")


def csv(folder: Path, name: str, header: str, rows: list[tuple[object, ...]]) -> str:
    path = folder / f"{name}.csv"
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return str(path)


def drive(scale: float = 1.0, tick: float = 1.0) -> list[tuple[object, ...]]:
    """Four cars at 10 m/s for 50 s."""
    return [
        (f"car{car}", time * tick, 10.0 * time * scale, 100.0 * car * scale, 10)
        for car in range(4)
        for time in range(0, 51, 5)
    ]


def degrees(lat: float, lon: float, swapped: bool = False) -> list[tuple[object, ...]]:
    plane = LocalPlane(lat, lon)
    found: list[tuple[object, ...]] = []
    for node, time, x, y, speed in drive():
        there = plane.lat_lon(Position(float(str(x)), float(str(y))))
        found.append((node, time, *(there[::-1] if swapped else there), speed))
    return found


def with_wrong_clock() -> list[tuple[object, ...]]:
    """The last row of one car is of the year 2999; the rest of the drive is in 2023."""
    rows = [(node, 1_700_000_000 + time, *rest) for node, time, *rest in drive() if isinstance(time, float)]
    return [*rows[:10], (rows[10][0], 32_472_144_000, *rows[10][2:]), *rows[11:]]


PLANE, GLOBE = "node,time,x,y,speed", "node,time,lat,lon,speed"
NO_SPEED = [row[:4] for row in drive(tick=1000.0)]
CASES = {
    "metres": (PLANE, drive(), "", None),
    "globe": (GLOBE, degrees(60.0, 11.3), "", None),
    "few": (
        PLANE,
        drive(0.02),
        "km",
        "all positions of 4 nodes lie within 10 x 6 m: they may be kilometres or degrees",
    ),
    "angles": (
        "node,time,x,y,speed",
        [(n, t, lon, lat, s) for n, t, lat, lon, s in degrees(44.5, 11.3)],
        "degrees",
        "x and y look like degrees: all positions lie within .* read them with --units degrees",
    ),
    "yard": (
        PLANE,
        drive(1e-3),
        "km",
        r"x and y look like kilometres: all positions lie within 0.5 x 0.3 m, and from row to row nodes would move at "
        r"10.0 m/s \(as degrees at 1,113 m/s\); read them with --units km",
    ),
    "huge": (PLANE, drive(2e5), "mm", "the positions extend over 100,000 km, more than the earth's circumference"),
    "ms": (
        PLANE,
        drive(tick=1000.0),
        "ms",
        r"times look like milliseconds: the trace's own speeds \(10.0 m/s\) are about 1000 times those from row to row",
    ),
    "clock": (
        PLANE,
        with_wrong_clock(),
        "",
        r"1 of 44 rows lies far from all others in time: node car0 at 2999-01-01 00:00:00 \(.*clock.csv, line 12\); "
        "all others lie between 2023-11-14 22:13:20 and 2023-11-14 22:14:10",
    ),
    "slowms": (
        "node,time,x,y",
        NO_SPEED,
        "ms",
        "times look like milliseconds: rows are 5000 s apart, and a node that moves takes 100 s for a metre",
    ),
    "swapped": (
        GLOBE,
        degrees(60.0, 11.3, swapped=True),
        "lonlat",
        "latitude and longitude look swapped: from row to row nodes move at .* the trace's own speeds say 10.0 m/s",
    ),
}


@pytest.mark.spark
@pytest.mark.parametrize("name", CASES)
def test_a_doubt_is_said_recorded_settled_or_refused(lake: Lake, tmp_path: Path, name: str) -> None:
    header, rows, units, doubt = CASES[name]
    file = csv(tmp_path, name, header, rows)
    free = IngestSettings(max_speed_m_s=math.inf)
    summary = ingest(lake, [file], None, free)
    if doubt is None:
        assert summary.doubts == []
        return
    (stated,) = summary.doubts
    assert re.search(doubt, stated), stated
    assert lake.arrow.read("traces", trace=name).to_pylist()[0]["doubts"] == [stated]
    with pytest.raises(TraceError, match=doubt):
        ingest(lake, [file], "strict", IngestSettings(max_speed_m_s=math.inf, strict=True))
    assert not lake.has("traces", trace="strict")
    if not units:
        return
    settled = ingest(lake, [file], f"{name}-settled", IngestSettings(max_speed_m_s=math.inf, units=units))
    assert settled.doubts == []
    if name not in ("huge", "few"):
        assert settled.box[2] - settled.box[0] == pytest.approx(500.0, rel=0.01)
        assert settled.end - settled.start == 50.0


@pytest.mark.spark
def test_a_file_that_breaks_off_says_how_much_is_missing(lake: Lake, tmp_path: Path) -> None:
    whole = gzip.compress(fcd(every=1).encode(), mtime=0)
    file = tmp_path / "cut.xml.gz"
    file.write_bytes(whole[: len(whole) // 2])
    summary = ingest(lake, [str(file)])
    (stated,) = summary.doubts
    missing = 900 - summary.end
    assert f"cut.xml.gz breaks off: it should last until 900 s and ends at {summary.end:g} s" in stated
    assert f"so {missing:,.0f} s ({missing / 900:.0%} of the span) are missing" in stated
    # A trace of the same name is replaced.
    file.write_bytes(whole)
    (stated,) = ingest(lake, [str(file)]).doubts
    assert stated.startswith("this replaces the trace cut of 4 nodes, which was read from")
    assert ingest(lake, [str(file)]).doubts == []


@pytest.mark.spark
def test_swapped_degrees_beyond_the_poles_are_explained(lake: Lake, tmp_path: Path) -> None:
    file = csv(tmp_path, "sydney", GLOBE, degrees(-33.8, 151.2, swapped=True))
    with pytest.raises(TraceError, match=r"latitude 151\S+ is outside -90..90; latitude and longitude may be swapped"):
        ingest(lake, [file])
    assert ingest(lake, [file], None, IngestSettings(units="lonlat")).doubts == []


@pytest.mark.spark
def test_windows_areas_and_publishers_are_doubted(
    lake: Lake, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [*drive(), *(("late", time, 0, 0, 0) for time in range(30, 51, 5))]
    ingest(lake, [csv(tmp_path, "street", PLANE, rows)])
    events, wanted = tmp_path / "events.jsonl", tmp_path / "wanted.jsonl"
    lines = [
        {"node": node, "time_s": time, "type": "Siren"} for node, time in (("late", 10), ("late", 40), ("car1", 20))
    ]
    events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    wanted.write_text('{"node": "car0", "filter": "Siren: within 250 m"}\n')
    scenario = scenario_from_trace(lake.name, "street", events=events, subscriptions=wanted)
    assert scenario_doubts(scenario) == [
        "1 of 3 events are left out: their publishers are not there at that time, as late at 10 s"
    ]
    small = scenario.with_({"area.width_m": 100.0, "own.events": None, "own.subscriptions": None})
    (stated,) = scenario_doubts(small)
    assert stated.startswith("the area is smaller than the trace: ")
    assert "lie outside of 100 x 300 m from (0, 0); set area.width_m" in stated
    (stated,) = scenario_doubts(scenario_from_trace(lake.name, "street").with_({"duration_s": 70.0}))
    assert stated == (
        "the window 0 to 70 s reaches beyond trace street, which lasts from 0 to 50 s: for 20 s nobody moves"
    )
    for strict in ((), ("--strict",)):
        with pytest.raises(SystemExit) as ended:
            main(
                ["simulate", "--trace", "street", "--window", "20s-90s", "-p", "flooding", "--lake", lake.name, *strict]
            )
        assert ended.value.code == (2 if strict else 0)
        assert "the window ends at 90 s, but trace street lasts 50 s" in capfd.readouterr().err
    # Advice doubts the same.
    own = TraceChoice(events=str(events), subscriptions=str(wanted))
    check_choice("street", own, lake.name)
    check_choice("street", replace(own, events=None, subscriptions=None, window=(0.0, 60.0)), lake.name)
    check_choice("street", TraceChoice(window=(20.0, 50.0), strict=True), lake.name)
    stated = capfd.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in stated] == ["warning"] * 2
    assert "1 of 3 events are left out: their publishers are not there at that time, as late at 10 s" in stated[0]
    assert "the window ends at 60 s, but trace street lasts 50 s: the window is cut" in stated[1]
    for strictly, words in (
        (replace(own, strict=True), "1 of 3 events are left out"),
        (TraceChoice(window=(20.0, 60.0), strict=True), "the window ends at 60 s, but trace street lasts 50 s"),
    ):
        with pytest.raises(TraceError, match=words):
            check_choice("street", strictly, lake.name)
    # Events without a position are published where the trace has their publishers.
    keep_own_workload(lake, "sirens", [str(events)], str(wanted))
    assert expected_counts(lake, "sirens", "street") == {"pairs": 1, "events": 1, "nodes": 1}
    # Who is not there yet expects nothing, whether or not it asks for a place: late comes after car1's event.
    wanted.write_text("".join(json.dumps({"node": node, "filter": "Siren: true"}) + "\n" for node in ("car0", "late")))
    keep_own_workload(lake, "everywhere", [str(events)], str(wanted))
    assert expected_counts(lake, "everywhere", "street") == {"pairs": 3, "events": 3, "nodes": 1}


@pytest.mark.parametrize(
    ("start_s", "end_s", "expected"),
    [
        (0.0, 50.04, "0 to 50 s"),
        (1769443021.96, 1769443522.0, "2026-01-26 15:57:02 to 16:05:22 UTC"),
        (1769443022.0, 1769486722.0, "2026-01-26 15:57:02 to 2026-01-27 04:05:22 UTC"),
        (1769443022.0, 1e14, "1769443022 to 1e+14 s"),
    ],
)
def test_a_part_of_a_trace_with_dates_is_reported_as_dates(start_s: float, end_s: float, expected: str) -> None:
    assert as_span(start_s, end_s) == expected
