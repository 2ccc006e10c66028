"""What commands print of their results, and which options they refuse, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from earshot.cli import earshot, watch
from earshot.cli.campaigns import print_capacity
from earshot.cli.pipeline import _print_statistics, _print_summary
from earshot.cli.spark import LakeOptions
from earshot.cli.traces import TimesSinceStart, TraceChoice, report_doubt, scenario_or_trace
from earshot.cli.watch import MOST_TYPES, Screen, _alerts, as_json, status_line, table_lines
from earshot.errors import TraceError, UsageError
from earshot.pipeline.campaigns.capacity import CapacityComparison, LoadPoint, ProtocolCapacity
from earshot.pipeline.traces.contact_statistics import ContactStatistics, Spread
from earshot.pipeline.watch.watch_state import Commit

# Traces.


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("600s-720s", (600.0, 720.0)), ("10min-12min", (600.0, 720.0)), ("10-12min", (600.0, 720.0)),
        ("0-90", (0.0, 90.0)), ("90s-2min", (90.0, 120.0)), ("0.5-1.5h", (1800.0, 5400.0)),
    ],
)  # fmt: skip
def test_a_window_is_two_times_and_the_first_has_the_seconds_unit(text: str, window: tuple[float, float]) -> None:
    assert TimesSinceStart().convert(text, None, None) == window
    assert TimesSinceStart().convert(window, None, None) == window


@pytest.mark.parametrize(
    ("text", "reason"),
    [("600s", "is not a window: write two times"), ("12min-10min", "ends before it begins"), ("5s-5s", "ends before"),
     ("a-b", "is not a duration"), ("-5s-9s", "is not a duration")],
)  # fmt: skip
def test_a_window_that_cannot_be_says_why(text: str, reason: str) -> None:
    with pytest.raises(click.BadParameter, match=reason):
        TimesSinceStart().convert(text, None, None)


def test_a_window_beyond_the_traces_end_is_cut_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    about: Any = SimpleNamespace(start=100.0, end=400.0)
    for window in (None, (0.0, 300.0), (10.0, 20.0)):
        TraceChoice(window=window).check_window("town", about)
    assert capsys.readouterr().err == ""
    beyond = TraceChoice(window=(0.0, 300.1))
    beyond.check_window("town", about)
    assert capsys.readouterr().err == (
        "warning: the window ends at 300.1 s, but trace town lasts 300 s: the window is cut\n"
    )
    with pytest.raises(TraceError, match="the window is cut"):
        replace(beyond, strict=True).check_window("town", about)
    with pytest.raises(TraceError, match=r"^odd$"):
        report_doubt("odd", strict=True)


def test_a_scenario_or_a_trace_is_named_and_what_belongs_to_a_trace_needs_one() -> None:
    lake = LakeOptions("lake")
    assert scenario_or_trace("base", TraceChoice(strict=True), lake).name == "base"
    for scenario, choice, reason in (
        ("base", TraceChoice("town"), "name a scenario or --trace, not both"),
        ("base", TraceChoice(window=(0.0, 1.0)), "--window, --radio, .* need --trace"),
        ("base", TraceChoice(units="km"), "need --trace"),
        (None, TraceChoice(), "name a scenario"),
    ):
        with pytest.raises(UsageError, match=reason):
            scenario_or_trace(scenario, choice, lake)


def summary(**changed: Any) -> Any:
    given = {
        "trace": "town", "nodes": 1, "files": ["a.csv"], "format": "csv", "doubts": ["odd"], "rows_read": 1200,
        "rows_kept": 1100, "rejected": {"duplicate": 100}, "positions": 1100, "start": 10.0, "end": 1310.0,
        "interval_s": None, "motion": "samples", "origin": None,
    }  # fmt: skip
    return SimpleNamespace(**{**given, **changed})


def test_what_was_read_is_reported_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    _print_summary(summary())
    reported = capsys.readouterr()
    assert reported.out.splitlines() == [
        "town: 1 node from a.csv (csv)",
        "  rows read             1,200",
        "  rows kept             1,100",
        "  duplicate               100  rejected",
        "  duration            1,300.0  s",
    ]
    assert reported.err == "warning: odd\n"
    more = summary(nodes=3, files=["a", "b"], positions=7, interval_s=2.5, origin=(53.4, -2.95), doubts=[])
    _print_summary(more)
    assert capsys.readouterr().out.splitlines()[::4] == [
        "town: 3 nodes from 2 files (csv)", "  positions                 7",
    ]  # fmt: skip
    _print_summary(more)
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "  interval               2.50  s between samples (median)",
        "  origin            53.400000, -2.950000",
    ]
    _print_summary(summary(interval_s=2.5, motion="waypoints"))
    assert capsys.readouterr().out.splitlines()[-1].endswith("s between turns (median)")


def test_contacts_are_reported_with_their_spreads(capsys: pytest.CaptureFixture[str]) -> None:
    found = ContactStatistics(
        "town", 100.0, 5.0, None, 1234, 56, 7, 6, 2.345, Spread(1.0, 2.0, 3.0, 4.0, 5.0, 6000.0), None, None
    )
    _print_statistics(found)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "town: contacts within 100 m, sampled every 5 s"
    assert lines[1:5] == [
        "  contacts                   1,234",
        "  pairs that met                56",
        "  nodes                          7  of which 6 met another",
        "  neighbours at once          2.35  (mean over nodes and time)",
    ]
    assert lines[7] == "  length of a contact, s             1.0       2.0       3.0       4.0       5.0   6,000.0"
    assert lines[8] == "  time between contacts, s             -"
    _print_statistics(replace(found, step_s=2.0))
    assert capsys.readouterr().out.startswith("town: contacts within 100 m, compared every 2 s\n")


# Capacities.


def test_capacities_are_a_table_and_the_curves_another(capsys: pytest.CaptureFixture[str]) -> None:
    point, low = LoadPoint(2.0, 6.0, 0.96, 0.9, 0.25, None, 2), LoadPoint(1.0, 3.0, 0.4, 0.3, None, None, 2)
    rows = (
        ProtocolCapacity("steam", 2.0, True, (point,)),
        ProtocolCapacity("siena", None, False, (low,)),
        ProtocolCapacity("codd", None, False, (), "it broke"),
    )
    print_capacity(CapacityComparison("town", 0.95, 2, 64.0, rows))
    reported = capsys.readouterr()
    assert reported.out.splitlines() == [
        "",
        "town: the highest multiple of the event rate at which 95 % of the reachable deliveries arrive, "
        "mean of 2 seeds",
        "protocol  capacity    events a second  delivered  airtime  airtime, busiest",
        "--------  ----------  ---------------  ---------  -------  ----------------",
        "steam     2x or more                6      0.960   25.0 %                 -",
        "siena     none                      -          -        -                 -",
        "codd      -                         -          -        -                 -",
        "",
        "delivery against load",
        "protocol  load  events a second  delivered  airtime  airtime, busiest",
        "--------  ----  ---------------  ---------  -------  ----------------",
        "steam       2x                6      0.960   25.0 %                 -",
        "siena       1x                3      0.400        -                 -",
        "siena never reaches 95 %: at the base rate 40.0 % of the reachable arrives",
    ]
    assert reported.err == "failed: codd: it broke\n"
    print_capacity(CapacityComparison("town", 0.5, 1, 64.0, rows[:1]))
    assert "50 % of the reachable deliveries arrive, one seed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["compare", "base", "--most", "8"], "--most is the highest multiple that --capacity tries"),
        (["compare", "base", "--protocols", "cbf", "--setting", "gossip.probability=1"], "with one of: cbf"),
        (["workload", "mine", "--events", "a.jsonl"], "needs both --events and --subscriptions"),
        (["compare"], "name a scenario"),
    ],
)  # fmt: skip
def test_options_that_contradict_each_other_are_refused_before_spark_starts(
    arguments: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(earshot, arguments)
    assert isinstance(answer.exception, UsageError)
    assert reason in str(answer.exception)


def test_metrics_are_listed_with_what_is_better() -> None:
    reported = json.loads(CliRunner().invoke(earshot, ["metrics", "--json"]).output)
    better = {row["metric"]: row["better"] for row in reported}
    assert (better["delivery_ratio"], better["airtime_mean"], better["ceiling"]) == ("more", "less", "")
    lines = CliRunner().invoke(earshot, ["metrics"]).output.splitlines()
    assert lines[0].split() == ["metric", "title", "unit", "better"]
    assert len(lines) == len(reported) + 2


# The watch.


COUNTS = {
    "batch": 7, "nodes": 1, "records": 1200, "events": 2, "open_events": 1, "late": 0, "rejects": 0, "subscriptions": 0,
    "matches": 0, "spools": '["a"]',
}  # fmt: skip


def figures(by: str, key: str, **values: float) -> list[dict[str, Any]]:
    return [
        {"batch": 7, "network": "n", "protocol": "steam", "by": by, "key": key, "metric": metric, "value": value}
        for metric, value in values.items()
    ]


def commit(some: list[dict[str, Any]], *losses: tuple[str, int], **counts: Any) -> Commit:
    return Commit(7, {**COUNTS, **counts}, some, [{"batch": 7, "reason": why, "lost": count} for why, count in losses])


def test_a_line_says_how_far_the_watch_is() -> None:
    assert status_line(COUNTS) == "batch 7, 1 node, 1,200 records, 2 events (1 open)"
    more = {**COUNTS, "late": 3, "rejects": 2000, "subscriptions": 2, "matches": 1}
    assert status_line(more).endswith(", 3 late, 2,000 rejects, 1 match of 2 subscriptions")
    assert status_line({**more, "matches": 5}).endswith("5 matches of 2 subscriptions")


def test_the_table_has_types_by_what_they_expect_and_six_reasons() -> None:
    every = figures("all", "", events=9.0, expected=20.0, met=18.0, delivery_ratio=0.9, latency_p95_s=0.25, lost=2.0)
    types = [row for n in range(14) for row in figures("type", f"T{n:02}", expected=float(n % 13))]
    reasons = [(f"why {n}", n + 1) for n in range(8)]
    lines = table_lines(commit([*every, *types], *reasons, ("why 0", 2000)))
    assert lines[0] == status_line(COUNTS)
    assert lines[1].split() == ["events", "expected", "got", "ratio", "p50", "ms", "p95", "ms", "p99", "ms", "lost"]
    assert lines[2].split()[-8:] == ["9", "20", "18", "0.900", "-", "250.0", "-", "2"]
    shown = [line.split()[0] for line in lines[3:-2]]
    assert (len(shown), shown[0], shown[-1]) == (MOST_TYPES, "T12", "T01")
    assert lines[-2].strip() == "and 2 more types"
    assert lines[-1] == "lost: why 0 2,001, why 7 8, why 6 7, why 5 6, why 4 5, why 3 4"
    assert not any(line.startswith("lost") for line in table_lines(commit(every)))
    assert not any("more types" in line for line in table_lines(commit([*every, *types[:12]])))


def test_a_commit_for_programs_has_no_batch_in_its_rows() -> None:
    reported = as_json(commit(figures("all", "", events=1.0), ("why", 3)))
    assert (reported["spools"], reported["losses"]) == (["a"], [{"reason": "why", "lost": 3}])
    assert reported["figures"] == [
        {"network": "n", "protocol": "steam", "by": "all", "key": "", "metric": "events", "value": 1.0}
    ]


def test_batches_are_lines_json_or_a_table_in_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = commit([])
    plain = Screen(as_json=False, once=False)
    plain.show(replace(found, wrong=["line 3: odd"]))
    reported = capsys.readouterr()
    assert (reported.out, reported.err) == (f"{status_line(COUNTS)}\n", "earshot: line 3: odd\n")
    plain.end(found)
    assert capsys.readouterr().out.splitlines() == table_lines(found)
    once = Screen(as_json=False, once=True)
    once.show(found)
    assert capsys.readouterr().out == ""
    once.end(None)
    assert capsys.readouterr().err == "nothing was recorded yet\n"
    programs = Screen(as_json=True, once=True)
    programs.end(found)
    assert json.loads(capsys.readouterr().out)["batch"] == 7
    programs.show(found)
    assert json.loads(capsys.readouterr().out) == as_json(found)
    programs.end(found)
    assert capsys.readouterr().out == "", "it was shown"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(watch.sys.stdout, "isatty", lambda: True)
    terminal = Screen(as_json=False, once=False)
    table = "\n".join(table_lines(found)) + "\n"
    terminal.show(found)
    assert capsys.readouterr().out == table
    terminal.show(found)
    assert capsys.readouterr().out == f"\x1b[{len(table_lines(found))}F\x1b[J{table}"
    terminal.show(replace(found, wrong=["odd"]))
    assert capsys.readouterr().out == table, "what is wrong stays on the screen"
    terminal.end(found)
    assert capsys.readouterr().out == ""
    assert not Screen(as_json=True, once=False).in_place


def test_alerts_go_to_the_screen_and_wherever_else_they_are_wanted(tmp_path: Path) -> None:
    assert _alerts([], None, None, None) is None
    for wanted in ((tmp_path / "f", None, None), (None, "cat", None), (None, None, "http://office/alerts")):
        with pytest.raises(UsageError, match="say what to warn of"):
            _alerts([], *wanted)
    found = _alerts(["lost > 0 for 1m"], tmp_path / "f", "cat", "http://office/alerts")
    assert found is not None
    assert ([alert.metric for alert in found.alerts], len(found.sends)) == (["lost"], 4)
    fewer = _alerts(["lost > 0 for 1m"], None, None, None)
    assert fewer is not None
    assert len(fewer.sends) == 1


def test_a_watch_bounds_its_memory_where_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)
    local = LakeOptions("lake", conf=("spark.x=1",))
    bounded, own = watch._with_memory(local).conf
    assert (bounded.startswith("spark.driver.memory="), own) == (True, "spark.x=1"), (
        "what is given comes last, and counts"
    )
    remote = replace(local, remote="sc://there")
    assert watch._with_memory(remote) is remote
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "2g")
    assert watch._with_memory(local) is local
