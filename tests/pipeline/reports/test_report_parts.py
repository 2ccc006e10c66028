"""What the report gathers from a lake, and the parts of its page: over time, drops, maps, runs and words."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spark_on_duckdb import Session

from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.campaigns.leaderboard import KeyedRow, ScenarioPoint
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.reports import capacity_page, lake_replays, report
from earshot.pipeline.reports.capacity_page import capacity_blocks
from earshot.pipeline.reports.charts import Measure
from earshot.pipeline.reports.outside_figures import ReportFigure, named_figures
from earshot.pipeline.reports.page import PageFigure, PageFold, PageLink, PageTable, PageWords
from earshot.pipeline.reports.profile_page import profile_blocks
from earshot.pipeline.reports.report import (
    ReportFacts,
    _drops,
    _maps,
    _over_time,
    _runs,
    _subtitle,
    _thinned,
    _tracks,
    facts_json,
    lake_page,
    report_facts,
    runs_table,
    write_page_of,
    write_report,
)
from earshot.pipeline.reports.svg import log_ticks, marks_of
from earshot.plugins import PluginError
from pipeline.reports.board import keyed, made_board, run_rows
from pipeline.reports.test_page_parts import carrying, compared
from pipeline.reports.test_profile_page import FOUND

MARKS = marks_of(["flooding", "steam"])
POINT = ScenarioPoint("p", "city", {}, "radio")


def exact(value: float) -> Figure:
    return Figure(value, value, value, 1)


def by_key(variant: str, key: str, point: ScenarioPoint = POINT, **values: float) -> KeyedRow:
    return KeyedRow(point, variant, variant, key, {name: exact(value) for name, value in values.items()})


# -- from the lake


def lake_of(session: Session, root: Path, runs: list[dict[str, Any]], figures: dict[str, float]) -> Lake:
    """A lake with those runs, each with the same metrics of the whole run."""
    lake = Lake(session, root / "lake")  # type: ignore[arg-type]
    for run in runs:
        lake.arrow.write_rows("runs", [{**run, "campaign": "c"}], run=run["run"])
        found = [{"metric": name, "by": "all", "key": "", "value": value} for name, value in figures.items()]
        found += [{"metric": "lost", "by": "cause", "key": "never heard", "value": 4.0}]
        found += [{"metric": "drops", "by": "reason", "key": "collision", "value": 2.0}]
        lake.arrow.write_rows("metrics", found, run=run["run"])
    return lake


def test_a_report_gathers_runs_metrics_by_key_tracks_and_figures_of_the_users_own(
    quick_spark: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = run_rows(("flooding", "steam"), seeds=2)
    lake = lake_of(quick_spark, tmp_path, runs, {"delivery_ratio": 0.5, "delivery_of_reachable": 0.75, "expected": 8.0})
    places = [{"node": "a", "time": time, "x_m": 10.0 * time, "y_m": 1.0} for time in (1.0, 0.0)]
    lake.arrow.write_rows("positions", places, trace="0-0")
    lake.arrow.write_rows("positions", [{**places[0], "node": "elsewhere"}], trace="0-1")
    seen: list[Any] = []
    figure = ReportFigure("mine", lambda rows: seen.extend(rows) or "<?xml?><svg/>")
    monkeypatch.setattr(report, "named_figures", lambda names: dict.fromkeys(names, figure))
    facts = report_facts(lake, figures=["mine"])
    assert [run["run"] for run in facts.runs] == [
        "flooding-0-0", "flooding-0-1", "steam-0-0", "steam-0-1",
    ]  # fmt: skip
    (ranking,) = facts.board.rankings
    assert facts.tracks == {ranking.point.id: [[(0.0, 1.0), (10.0, 1.0), (10.0, 1.0)]]}
    assert [(row.variant, row.key, row.figures["lost"].mean) for row in facts.causes] == [
        ("flooding", "never heard", 4.0), ("steam", "never heard", 4.0),
    ]  # fmt: skip
    assert [(row.variant, row.key, row.figures["drops"].mean) for row in facts.drops] == [
        ("flooding", "collision", 2.0), ("steam", "collision", 2.0),
    ]  # fmt: skip
    assert (facts.minutes, facts.areas, facts.profiles, facts.advice) == ([], [], [], None)
    assert facts.own_figures == [(figure, "<svg/>")]
    assert [(row["run"], row["metrics"]["expected"]) for row in seen] == [(run["run"], 8.0) for run in facts.runs]
    chosen = report_facts(lake, ["steam-0-1"])
    assert [run["run"] for run in chosen.runs] == ["steam-0-1"]
    assert (chosen.own_figures, list(chosen.tracks.values())) == ((), [[[(10.0, 1.0)]]])


def test_a_report_is_written_with_the_replays_of_finished_runs(
    quick_spark: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = run_rows(("steam",), seeds=2)
    runs[1] |= {"status": "failed", "error": "KeyError"}
    lake = lake_of(quick_spark, tmp_path, runs, {"delivery_of_reachable": 0.75})
    asked: list[Any] = []

    def replays(*given: Any) -> dict[str, str]:
        asked.append(given)
        return {"steam-0-0": "page-replays/city.html#run=steam-0-0"}

    monkeypatch.setattr(lake_replays, "write_replays", replays)
    to = tmp_path / "page.html"
    assert write_report(lake, to) == to
    assert asked == [(lake, to, ["steam-0-0"])]
    html = to.read_text()
    assert 'href="page-replays/city.html#run=steam-0-0"' in html
    assert "1 run failed, in no figure: steam seed 1 (KeyError)." in html
    write_page_of(ReportFacts(made_board([]), [runs[1]]), lake, to)
    assert len(asked) == 1


def test_where_nodes_went_is_thinned_and_drawn_once_for_points_of_one_workload(
    quick_spark: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    ddl = "trace string, node string, time double, x_m double, y_m double"
    rows = [(of, node, float(t), float(t), 9.0) for of in "wv" for node in "cab" for t in (2, 0, 1)]
    positions: Any = quick_spark.createDataFrame([*rows, ("other", "z", 0.0, 0.0, 0.0)], ddl)
    whole = [(0.0, 9.0), (1.0, 9.0), (2.0, 9.0), (2.0, 9.0)]
    found = _tracks(positions, {"p1": "w", "p2": "v", "p3": "w"})
    assert found == {"p1": [whole] * 3, "p2": [whole] * 3, "p3": [whole] * 3}
    assert found["p1"] is found["p3"]
    monkeypatch.setattr(report, "MOST_TRACKS", 2)
    assert _tracks(positions, {"p": "w"}) == {"p": [whole] * 2}
    monkeypatch.setattr(report, "MOST_POSITIONS", 4)
    assert _tracks(positions, {"p": "w"}) == {"p": [whole, whole[:1]]}
    assert _tracks(positions, {}) == {}


def test_a_track_keeps_some_sixty_places_and_its_last_and_one_of_a_node_that_stands() -> None:
    track = [(float(x), 0.0) for x in range(121)]
    assert _thinned(track) == [*track[::3], track[-1]]
    assert _thinned(track[:60]) == [*track[:60], track[59]]
    assert _thinned(track[:61]) == [*track[:61:2], track[60]]
    assert _thinned([(1.0, 2.0)] * 9) == [(1.0, 2.0)]


# -- parts of the page


def test_what_changes_by_minute_is_a_line_a_protocol_with_its_table() -> None:
    rows = [
        by_key(variant, str(minute), delivery_ratio=share + 0.1 * minute, **more)
        for variant, share in (("steam", 0.5), ("flooding", 0.25))
        for minute in range(3)
        for more in [{"latency_p95_s": 0.5} if minute < 2 else {}]
    ]
    (figure,) = _over_time(rows, MARKS)
    assert isinstance(figure, PageFigure)
    assert figure.title == "delivery ratio by minute"
    assert [(name, mark) for name, mark, _ in figure.keys] == [
        ("steam", MARKS["steam"]), ("flooding", MARKS["flooding"]),
    ]  # fmt: skip
    assert figure.table is not None
    assert figure.table.title == "minutes-delivery_ratio"
    assert list(figure.table.header) == ["protocol", "minute", "delivery ratio", "low", "high"]
    assert figure.table.rows[1] == ["steam", 1, 0.6, 0.6, 0.6]
    assert len(figure.table.rows) == 6
    assert "minute of publication" in figure.drawing
    assert _over_time(rows[:2], MARKS) == []


def test_lines_over_time_are_of_the_first_three_points_which_are_named_where_there_are_several() -> None:
    points = [ScenarioPoint(f"p{n}", "city", {"medium.range_m": 100.0 + n}, "radio") for n in range(4)]
    rows = [by_key("steam", str(m), point, delivery_ratio=0.5) for point in points for m in range(3)]
    titles = [figure.title for figure in _over_time(rows, MARKS) if isinstance(figure, PageFigure)]
    assert len(titles) == 3
    assert all(title.startswith("delivery ratio by minute: city") for title in titles)
    assert ["100" in titles[0], "102" in titles[2]] == [True, True]


def test_drops_stand_by_protocol_the_most_first() -> None:
    rows = [by_key("steam", "collision", drops=3.0), by_key("steam", "queue full", drops=9.0),
            by_key("flooding", "collision", drops=1.0)]  # fmt: skip
    (fold,) = _drops(rows, MARKS)
    assert isinstance(fold, PageFold)
    (table,) = fold.blocks
    assert isinstance(table, PageTable)
    assert list(table.header) == ["protocol", "reason", "meaning", "drops a run"]
    assert [(line[0].value, line[1], line[3].value) for line in table.rows] == [
        ("flooding", "collision", 1.0), ("steam", "queue full", 9.0), ("steam", "collision", 3.0),
    ]  # fmt: skip
    assert [line[0].mark for line in table.rows] == [MARKS["flooding"], MARKS["steam"], MARKS["steam"]]
    other = ScenarioPoint("q", "town", {}, "radio")
    (fold,) = _drops([*rows, by_key("steam", "collision", other, drops=3.0)], MARKS)
    assert isinstance(fold, PageFold)
    (table,) = fold.blocks
    assert isinstance(table, PageTable)
    assert table.header[-1] == "scenario"
    assert {line[4] for line in table.rows} == {"city", "town"}
    assert _drops([], MARKS) == []


def test_a_map_is_drawn_once_for_points_that_share_a_world() -> None:
    board = made_board(run_rows(("steam",), changed=({"a": 1}, {"a": 2}, {"a": 3})))
    first, second, third = (ranking.point for ranking in board.rankings)
    shared = [[(0.0, 0.0), (50.0, 0.0)]]
    tracks = {first.id: shared, second.id: shared, third.id: [[(0.0, 0.0)], [(9.0, 9.0)]]}
    titles = [figure.title for figure in _maps(ReportFacts(board, tracks=tracks)) if isinstance(figure, PageFigure)]
    assert [title.partition(":")[0] for title in titles] == ["Where 1 nodes went", "Where 2 nodes went"]
    assert ["a = 1" in titles[0] or "1" in titles[0], "3" in titles[1]] == [True, True]
    assert _maps(ReportFacts(board, tracks={first.id: []})) == []


def test_the_subtitle_counts_runs_seeds_failures_and_what_all_points_share() -> None:
    rows = run_rows(("steam",), seeds=2)
    facts = ReportFacts(made_board(rows), rows)
    assert _subtitle(facts, {}) == "2 runs, 2 seeds, 60 s simulated each"
    assert _subtitle(replace(facts, runs=rows[:1]), {}) == "1 runs, 1 seed, 60 s simulated each"
    failed = [*rows, {**rows[0], "status": "failed", "seed": 9, "duration_s": 9.0}]
    assert _subtitle(replace(facts, runs=failed), {}) == "2 runs, 2 seeds, 1 failed, 60 s simulated each"
    uneven = [rows[0], {**rows[1], "duration_s": 90.0}]
    assert _subtitle(replace(facts, runs=uneven), {"duration_s": 60.0, "medium.range_m": 160.0}) == (
        "2 runs, 2 seeds; medium.range_m = 160"
    )
    advised: Any = object()
    assert _subtitle(replace(facts, runs=rows, advice=advised), {}) == "2 runs, 2 windows, 60 s simulated each"


def test_of_many_failures_five_are_named() -> None:
    rows = run_rows(("steam",), seeds=7)
    broken = [{**row, "status": "failed", "error": "E"} for row in rows]
    for count, more in ((5, "."), (6, " and 1 more."), (7, " and 2 more.")):
        (section, *_) = lake_page(ReportFacts(made_board([]), broken[:count]), {}).sections
        (words,) = section.blocks
        assert isinstance(words, PageWords)
        assert words.words.startswith(f"{count} runs failed, in no figure: steam seed 0 (E); steam seed 1 (E)")
        assert words.words.endswith(f"steam seed 4 (E){more}")


@pytest.mark.parametrize(
    ("points", "titles"),
    [
        (1, ["The answer", "By event type", "Ranked", "All figures", "Lost deliveries", "Runs"]),
        (3, ["The answer", "city (a=0)", "city (a=1)", "city (a=2)", "Runs"]),
        (4, ["The answer", "Each point", "Runs"]),
    ],
)
def test_each_point_has_its_section_until_there_are_more_than_three(points: int, titles: list[str]) -> None:
    rows = run_rows(("flooding", "steam"), changed=[{"a": f"{n}"} for n in range(points)], seeds=3)
    board = replace(made_board(rows), charts=())
    page = lake_page(ReportFacts(board, rows, causes=keyed(board, {"never heard": {"lost": 3.0}})), {})
    found = [section.title for section in page.sections]
    assert [title.removesuffix(" over 802.11b-2M 160 m") for title in found] == titles
    assert page.title == "Earshot report: city"
    if points == 4:
        (each,) = (section for section in page.sections if section.title == "Each point")
        assert [len(fold.blocks) > 3 for fold in each.blocks if isinstance(fold, PageFold)] == [True] * 4


def test_figures_of_the_users_own_stand_under_their_title_or_name() -> None:
    rows = run_rows(("steam",))
    own = [
        (ReportFigure("mine", lambda _: "", note="of me"), "<svg/>"),
        (ReportFigure("b", lambda _: "", "B"), "<svg/>"),
    ]
    page = lake_page(ReportFacts(made_board(rows), rows, own_figures=own), {})
    found = {section.title: section.blocks for section in page.sections if section.title in ("mine", "B")}
    assert found == {
        "mine": [PageFigure("mine", "<svg/>", note="of me", wide=True)],
        "B": [PageFigure("B", "<svg/>", wide=True)],
    }


def test_the_table_of_runs_has_the_columns_that_say_something() -> None:
    rows = run_rows(("steam",), seeds=2)
    table = runs_table(rows, {})
    names = ["run", "scenario", "protocol", "network", "seed", "status", "took (s)"]
    assert (table.title, list(table.header), table.note, list(table.less)) == ("runs", names, "", [1, 3, 6])
    first = table.rows[0]
    assert (first[0].css, first[5].css, first[6].words, first[6].css) == ("short", "short", "1.00", "number")
    failed = {**rows[1], "status": "failed", "error": "KeyError"}
    table = runs_table([rows[0], failed], {"steam-0-0": "there.html"})
    assert list(table.header) == [*names, "replay", "error"]
    assert table.note == "Any run can be looked at: earshot view LAKE --run ID."
    assert [line[7] for line in table.rows] == [PageLink("replay", "there.html"), ""]
    assert [(line[5].css, line[8]) for line in table.rows] == [("short", ""), ("failed", "KeyError")]


def test_sixty_runs_are_listed_and_more_stand_behind_a_click() -> None:
    rows = run_rows(("steam",), seeds=61)
    assert [type(block) for block in _runs(rows[:60], {})] == [PageTable]
    assert [type(block) for block in _runs(rows, {})] == [PageFold]
    assert _runs([], {}) == []


def test_programs_get_failed_runs_losses_by_key_and_profiles() -> None:
    rows = run_rows(("steam",), seeds=2)
    failed = {**rows[0], "run": "x", "status": "failed", "error": "E"}
    facts = ReportFacts(
        made_board(rows), [*rows, failed], causes=[by_key("steam", "never heard", lost=3.0, expected=9.0)],
        areas=[by_key("steam", "0,0", lost=1.0)], profiles=[FOUND],
    )  # fmt: skip
    found = facts_json(facts)
    assert found["failed"] == [{"run": "x", "scenario": "city", "variant": "steam", "seed": 0, "error": "E"}]
    ((cause,), (area,)) = found["lost_by_cause"], found["lost_by_area"]
    assert (cause["variant"], cause["key"], cause["lost"]["mean"], cause["expected"]["mean"]) == (
        "steam", "never heard", 3.0, 9.0,
    )  # fmt: skip
    assert (area["key"], area["lost"]["mean"], "expected" in area) == ("0,0", 1.0, False)
    assert found["profiles"] == [FOUND.as_json()]
    assert "capacity" not in found
    assert "profiles" not in facts_json(replace(facts, profiles=()))


# -- other parts


def test_a_protocol_that_failed_or_never_carries_enough_has_a_note_and_loads_stand_by_their_powers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[tuple[str, ...]] = []
    asked: list[dict[str, Any]] = []

    def chart(_: Any, *measures: Measure, **given: Any) -> str:
        drawn.append(tuple(measure.title for measure in measures))
        asked.append(given)
        return "<svg/>"

    monkeypatch.setattr(capacity_page, "line_chart", chart)
    failed = carrying("siena", None, error="KeyError")
    never, well = carrying("gossip", None), carrying("steam", 64.0)
    found = compared(failed, never, well)
    marks = marks_of(["siena", "gossip", "steam"])
    _, bars, delivery, *_ = capacity_blocks(found, marks)
    assert isinstance(bars, PageFigure)
    assert bars.shown is not None
    notes = [line[0].note for line in bars.shown.rows]
    assert notes == ["KeyError", never.never_words(found.share), well.never_words(found.share)]
    assert notes[1] != ""
    assert isinstance(delivery, PageFigure)
    assert delivery.note.startswith("The dashed line is the wanted share, ")
    load = "multiple of the scenario's event rate"
    assert drawn == [(load, "delivery of the reachable"), (load, "airtime")]
    assert asked == [{"log_x": True, "bounded": True, "goal": found.share}, {"log_x": True}]


def test_the_share_of_the_largest_component_ends_at_one_and_the_number_of_components_does_not() -> None:
    many = replace(FOUND.ranges[0], over_time=tuple(replace(m, components=40) for m in FOUND.ranges[0].over_time))
    _, _, largest, components, *_ = profile_blocks(replace(FOUND, ranges=(many,)))
    assert isinstance(components, PageFigure)
    assert isinstance(largest, PageFigure)
    assert components.table is not None
    assert largest.table is not None
    assert (components.table.title, list(components.table.header)) == (
        "connected components", ["time_s", "range_m", "components"],
    )  # fmt: skip
    assert (largest.table.title, largest.table.header[2]) == ("largest component", "largest_share")
    ticks = [
        [float(text) for text in re.findall(r'"tick"[^>]*>([\d.]+)', one.drawing)] for one in (largest, components)
    ]
    assert (40.0 in ticks[0], 40.0 in ticks[1]) == (False, True)


@pytest.mark.parametrize(
    ("low", "high", "about", "expected"),
    [(9.999999999e-1, 10.0, 5, [1, 2, 5, 10]), (0.5, 2.0, 5, [0.5, 1, 2]), (900.0, 1100.0, 5, [1000])],
)
def test_ticks_stay_between_the_ends_of_a_logarithmic_scale(
    low: float, high: float, about: int, expected: list[float]
) -> None:
    assert log_ticks(low, high, about) == pytest.approx(expected)


def test_figures_are_loaded_by_their_names_and_must_be_figures(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from earshot.pipeline import ReportFigure\nMINE = ReportFigure('mine', lambda rows: '')\nOTHER = 3\n"
    )
    name = f"{tmp_path}/mine.py"
    found = named_figures([f"{name}:MINE"])
    assert [(key, figure.name) for key, figure in found.items()] == [(f"{name}:MINE", "mine")]
    with pytest.raises(PluginError, match="is not a figure: make a ReportFigure of it"):
        named_figures([f"{name}:OTHER"])
