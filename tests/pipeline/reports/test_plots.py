"""Plots from the tables of a lake: their points, their files, and what cannot be drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from earshot.errors import UnknownName, UsageError
from earshot.pipeline.campaigns.intervals import SHARE, Figure, figure_of
from earshot.pipeline.reports.plots import (
    COLOURS,
    MARKERS,
    Plot,
    PlotPoint,
    _with_unit,
    draw_plot,
    read_plot,
    run_columns,
)


def run_row(protocol: str, range_m: int, seed: int, **settings: float) -> dict[str, Any]:
    """A row of `runs`; 150 m is the scenario's own range, so that it is not among the changed keys."""
    changed, base = ({}, {}) if range_m == 150 else ({"medium.range_m": range_m}, {"medium.range_m": 150})
    return {
        "run": f"{protocol}-{range_m}-{seed}-{settings}", "scenario": "city", "changed": json.dumps(changed),
        "base": json.dumps(base), "settings": json.dumps(settings), "protocol": protocol, "seed": seed,
        "variant": " ".join([protocol, *(f"{name}={value}" for name, value in settings.items())]),
        "status": "done", "error": None, "traceback": None,
    }  # fmt: skip


class Tables:
    """A lake's tables in memory."""

    def __init__(self, runs: list[dict[str, Any]]) -> None:
        self.runs = runs

    def read(self, table: str) -> pa.Table:
        if table == "runs":
            return pa.Table.from_pylist(self.runs)
        rows = [
            {"run": row["run"], "metric": "delivery_ratio", "by": by, "key": "", "value": value_of(row)}
            for row in self.runs
            for by in ("all", "type")
        ]
        return pa.Table.from_pylist(rows)


def value_of(row: dict[str, Any]) -> float:
    range_m = json.loads(row["changed"]).get("medium.range_m", 150)
    return float(range_m) / 250 + 0.01 * row["seed"] + (0.1 if row["protocol"] == "cbf" else 0.0)


ROWS = [run_row(name, range_m, seed) for name in ("cbf", "gossip") for range_m in (100, 150, 200) for seed in range(5)]


def test_a_point_is_the_mean_over_the_seeds_with_its_interval() -> None:
    plot = read_plot(Tables(ROWS), "medium.range_m", "delivery_ratio", "protocol")  # type: ignore[arg-type]
    assert [(point.line, point.x) for point in plot.points] == [
        (name, range_m) for name in ("cbf", "gossip") for range_m in (100, 150, 200)
    ]
    for point in plot.points:
        of = [row for row in ROWS if (row["protocol"], row["run"].split("-")[1]) == (point.line, str(point.x))]
        assert point.figure == figure_of({row["seed"]: value_of(row) for row in of}, SHARE)
    lines = plot.csv().splitlines()
    assert lines[0] == "protocol,medium.range_m,delivery_ratio,low,high,seeds"
    assert (len(lines), lines[4].split(",")[:3]) == (7, ["gossip", "100", "0.42"])


def test_the_interval_of_a_share_ends_at_one_and_that_of_an_amount_does_not() -> None:
    """Two seeds, of which one is 0.2 above the other: the interval is wide."""

    class Of(Tables):
        def read(self, table: str) -> pa.Table:
            if table == "runs":
                return super().read(table)
            names = ("delivery_ratio", "mine")
            values = [(row["run"], name, 0.8 + 0.2 * row["seed"]) for row in self.runs for name in names]
            return pa.Table.from_pylist(
                [{"run": run, "metric": name, "by": "all", "key": "", "value": value} for run, name, value in values]
            )

    rows: Any = Of([run_row("cbf", 100, seed) for seed in range(2)])
    (share,), (amount,) = (
        read_plot(rows, "medium.range_m", name, "protocol").points for name in ("delivery_ratio", "mine")
    )
    assert (share.figure.mean, share.figure.low, share.figure.high) == (0.9, 0.0, 1.0)
    assert (amount.figure.low, amount.figure.high > 1.5) == (0.0, True)


def test_swept_keys_and_settings_are_columns_of_runs() -> None:
    found = run_columns([*ROWS, run_row("gossip", 100, 0, probability=0.6)])
    assert {row["medium.range_m"] for row in found} == {100, 150, 200}
    assert found[-1]["settings.probability"] == 0.6


@pytest.mark.parametrize("ending", ["svg", "pdf", "png", "html"])
def test_a_plot_is_drawn_alike_each_time(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("matplotlib")
    plot = read_plot(Tables(ROWS), "medium.range_m", "delivery_ratio", "protocol")  # type: ignore[arg-type]
    for name in ("one", "two"):
        draw_plot(plot, tmp_path / f"{name}.{ending}", "text", "Delivery")
    first = (tmp_path / f"one.{ending}").read_bytes()
    assert first == (tmp_path / f"two.{ending}").read_bytes()
    start = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG", "html": b"<!doctype html>"}[ending]
    assert first.startswith(start)
    assert len(first) > 5000


def test_a_plot_has_its_title_axes_and_legend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = pytest.importorskip("matplotlib.axes").Axes
    stated: list[tuple[str, Any]] = []
    for name in ("set_xlabel", "set_ylabel", "set_title", "legend"):
        monkeypatch.setattr(axes, name, lambda _, *texts, _name=name, **__: stated.append((_name, *texts)))
    plot = read_plot(Tables(ROWS), "medium.range_m", "delivery_ratio", "protocol")  # type: ignore[arg-type]
    draw_plot(plot, tmp_path / "one.svg", "column", "Delivery")
    assert stated == [
        ("set_xlabel", "range (metres)"), ("set_ylabel", "delivery ratio"), ("set_title", "Delivery"), ("legend",),
    ]  # fmt: skip


def test_each_line_has_its_intervals_colour_mark_and_dashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = pytest.importorskip("matplotlib.axes").Axes
    drawn: list[Any] = []
    ticks: list[Any] = []
    monkeypatch.setattr(axes, "legend", lambda *_, **__: None)
    monkeypatch.setattr(axes, "errorbar", lambda _, *given, **named: drawn.append((*given, named)))
    monkeypatch.setattr(axes, "set_xticks", lambda _, *given, **__: ticks.append(given))
    nan = float("nan")
    points = (
        PlotPoint("a", 10.0, Figure(0.5, 0.25, 1.0, 3)), PlotPoint("a", 20.0, Figure(0.5, nan, nan, 1)),
        *(PlotPoint(f"b{number}", 10.0, Figure(0.5, 0.5, 0.5, 3)) for number in range(len(COLOURS))),
    )  # fmt: skip
    draw_plot(Plot("range_m", "cost", "protocol", points), tmp_path / "one.svg")
    at, means, (below, above), named = drawn[0]
    assert (at, means, below, above) == ([10.0, 20.0], [0.5, 0.5], [0.25, 0.0], [0.5, 0.0])
    assert (named["label"], named["linestyle"], drawn[-1][3]["linestyle"]) == ("a", "-", "--")
    assert [one[3]["color"] for one in drawn] == [*COLOURS, COLOURS[0]]
    assert len({one[3]["marker"] for one in drawn}) == min(len(drawn), len(MARKERS))
    assert ticks == []
    named_points = tuple(PlotPoint("a", name, Figure(0.5, 0.5, 0.5, 3)) for name in ("far", "near"))
    draw_plot(Plot("kind", "cost", "protocol", named_points), tmp_path / "one.svg")
    assert (drawn[-1][0], ticks) == ([0, 1], [([0, 1], ["far", "near"])])


def test_what_cannot_be_drawn_says_why(tmp_path: Path) -> None:
    lake: Any = Tables([*ROWS, run_row("gossip", 100, 0, probability=0.6)])
    with pytest.raises(UnknownName, match=r"did you mean 'medium.range_m'"):
        read_plot(lake, "medium.rang_m", "delivery_ratio", "protocol")
    with pytest.raises(UnknownName, match="did you mean 'delivery_ratio'"):
        read_plot(lake, "medium.range_m", "delivery_rato", "protocol")
    with pytest.raises(UsageError, match=r"several runs have protocol = gossip, .* --by variant"):
        read_plot(lake, "medium.range_m", "delivery_ratio", "protocol")
    assert len(read_plot(lake, "medium.range_m", "delivery_ratio", "variant").points) == 7
    chosen = read_plot(lake, "medium.range_m", "delivery_ratio", "protocol", {"protocol": "cbf"})
    assert {point.line for point in chosen.points} == {"cbf"}
    with pytest.raises(UsageError, match="no run that is done has protocol = nobody"):
        read_plot(lake, "medium.range_m", "delivery_ratio", "protocol", {"protocol": "nobody"})
    with pytest.raises(UsageError, match=r"the name ends in .svg, .pdf"):
        draw_plot(chosen, tmp_path / "figure.jpeg")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nodes.car.mobility.speed_m_s", "speed (metres a second)"), ("medium.range_m", "range (metres)"),
        ("faults.interval_s", "interval (seconds)"), ("publish.events_per_s", "events (a second)"),
        ("size_bytes", "size (bytes)"), ("bit_rate_bps", "bit rate (bits a second)"), ("nodes.car.count", "count"),
        ("settings.hop_limit", "hop limit"),
    ],
)  # fmt: skip
def test_an_axis_names_its_unit_once(name: str, words: str) -> None:
    assert _with_unit(name) == words
