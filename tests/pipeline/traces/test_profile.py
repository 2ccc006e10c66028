"""A trace's profile, held against networkx and against traces whose figures are known."""

from __future__ import annotations

import json
import math
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from earshot.cli import main
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.reports.profile_page import profile_page
from earshot.pipeline.traces.ingest import ingest
from earshot.pipeline.traces.profile_text import profile_words
from earshot.pipeline.traces.snapshots import FoundRow, Stretch, lifetimes, measured, quantiles
from earshot.pipeline.traces.trace_profile import _reachable_within, profile_of_json, profile_trace
from earshot.records.trajectories import Legs
from sizes import sized

RANGES_M = (60.0, 120.0)


def walk(nodes: int, seconds: int, seed: int, side_m: float = 400.0) -> dict[str, list[tuple[float, float, float]]]:
    """Nodes that walk at random, seen every second; some come later and leave earlier."""
    random = np.random.default_rng(seed)
    found = {}
    for number in range(nodes):
        first = 0 if number % 3 else int(random.integers(0, seconds // 2))
        last = seconds if number % 4 else int(random.integers(first + 1, seconds + 1))
        place = random.uniform(0, side_m, 2)
        rows = []
        for time in range(first, last + 1):
            rows.append((float(time), float(place[0]), float(place[1])))
            place = place + random.normal(0, 6.0, 2)
        found[f"n{number:02}"] = rows
    return found


def legs_of(paths: dict[str, list[tuple[float, float, float]]]) -> Legs:
    columns: list[tuple[float, ...]] = []
    for number, rows in enumerate(paths.values()):
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            time, x, y = row
            until, to_x, to_y = following or (time, x, y)
            lasts = until - time or 1.0
            columns.append((number, time, until, x, y, (to_x - x) / lasts, (to_y - y) / lasts))
    node, *rest = (np.array(column) for column in zip(*columns, strict=True))
    return Legs(node.astype(np.int64), *rest)


def graph_at(paths: dict[str, list[tuple[float, float, float]]], time: float, range_m: float) -> nx.Graph:
    """Who is in range of whom; a node is there from its first row until before its last, and at its last."""
    places = {name: {t: (x, y) for t, x, y in rows}.get(time) for name, rows in paths.items()}
    graph: nx.Graph = nx.Graph()
    graph.add_nodes_from(name for name, place in places.items() if place)
    for a in graph:
        for b in graph:
            if a < b and math.dist(places[a] or (), places[b] or ()) <= range_m:
                graph.add_edge(a, b)
    return graph


@given(st.integers(2, 25), st.integers(0, 10_000))
def test_the_figures_of_a_moment_are_networkxs(nodes: int, seed: int) -> None:
    paths = walk(nodes, 6, seed)
    found = list(measured(legs_of(paths), Stretch(3.0, 1, 1.0), RANGES_M, 5.0))
    for range_m in RANGES_M:
        graph = graph_at(paths, 3.0, range_m)
        if not graph:
            continue
        own = {row.name: row.value for row in found if row.range_m == range_m and row.name != "neighbours"}
        parts = [len(part) for part in nx.connected_components(graph)]
        assert own["components"] == len(parts)
        assert own["largest"] == pytest.approx(max(parts) / len(graph))
        if len(graph) > 1:
            pairs = sum(size * (size - 1) for size in parts) / (len(graph) * (len(graph) - 1))
            assert own["at once"] == pytest.approx(pairs)
        degrees = [
            row.value
            for row in found
            if row.name == "neighbours" and row.range_m == range_m
            for _ in range(int(row.weight))
        ]
        assert sorted(degrees) == sorted(degree for _, degree in graph.degree())


@given(st.integers(2, 18), st.integers(0, 10_000))
@settings(max_examples=sized(40, 100))
def test_what_is_carried_reaches_whom_networkx_says(nodes: int, seed: int) -> None:
    """A path over the graphs of the moments in their order: components merge what their nodes have."""
    paths = walk(nodes, 70, seed, side_m=900.0)
    found = list(measured(legs_of(paths), Stretch(0.0, 71, 1.0, spreads=True), RANGES_M, 5.0))
    for range_m in RANGES_M:
        there = sorted(graph_at(paths, 0.0, range_m))
        if len(there) < 2:
            continue
        has = {name: {name} for name in paths}
        truth = {}
        for time in range(61):
            for part in nx.connected_components(graph_at(paths, float(time), range_m)):
                together = set().union(*(has[name] for name in part))
                for name in part:
                    has[name] = together
            if time in (0, 10, 60):
                pairs = sum(a in has[b] for a in there for b in there if a != b)
                truth[time] = pairs / (len(there) * (len(there) - 1))
        own = {row.name: row for row in found if row.range_m == range_m and row.time == 0.0}
        everybody = len(there) * (len(there) - 1)
        for before, horizon in ((0, 10), (10, 60)):
            row = own[f"carried {horizon}"]
            assert row.weight == pytest.approx((1 - truth[before]) * everybody)
            assert row.value * row.weight == pytest.approx((truth[horizon] - truth[before]) * everybody)


def test_carrying_reaches_no_fewer_pairs_than_are_connected_at_once() -> None:
    """Of the pairs that are not connected (0.4), the stretches see 0.25 and then 0.5 of the rest; the stretches
    themselves were better connected than the trace, or worse: that does not matter."""
    for out_of_reach in (10.0, 90.0):
        rows = [
            FoundRow("carried 10", 60.0, 0.0, 0.5, out_of_reach),
            FoundRow("carried 10", 60.0, 60.0, 0.0, out_of_reach),
            FoundRow("carried 60", 60.0, 0.0, 0.5, out_of_reach),
        ]
        assert _reachable_within(0.6, rows) == {"10": pytest.approx(0.7), "60": pytest.approx(0.85)}
    assert _reachable_within(1.0, [FoundRow("carried 10", 60.0, 0.0, 0.0, 0.0)]) == {"10": 1.0}


def test_contacts_that_outlast_the_watching_count_as_long() -> None:
    """Lifetimes by Kaplan and Meier: of four contacts two ended, after 2 and 6 s; the others were cut at 4 and 10."""
    mean, (median,) = lifetimes(np.array([2.0, 4.0, 6.0, 10.0]), np.array([True, False, True, False]), [0.5])
    assert median == 6.0
    assert mean == pytest.approx(2.0 + 0.75 * 4.0 + 0.375 * 4.0)
    assert quantiles(np.array([3.0, 1.0]), np.array([1.0, 9.0]), [0.5, 0.95]) == [1.0, 3.0]


def test_a_meeting_is_timed() -> None:
    """One drives past the other at 10 m/s: within 60 m for 12 s, away for 38 s, and again."""
    drive = [(float(t), 10.0 * t - 100.0 if t < 25 else 10.0 * (50 - t) - 100.0, 0.0) for t in range(51)]
    paths = {"stands": [(float(t), 0.0, 0.0) for t in range(51)], "drives": drive}
    found = list(measured(legs_of(paths), Stretch(0.0, 51, 1.0, spreads=True), [60.0], 5.0))
    contacts = [(row.value, row.weight) for row in found if row.name == "contact"]
    assert contacts == [(13.0, 1.0), (13.0, 1.0)]
    assert [row.value for row in found if row.name == "between"] == [17.0]


@pytest.mark.spark
def test_a_profile_of_a_trace_in_the_lake(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two groups of four, 500 m apart, that a courier visits: partitioned at once, connected by carrying."""
    lines = ["node,time,x_m,y_m"]
    for time in range(201):
        for number in range(4):
            lines += [f"a{number},{time},{30 * number},0", f"b{number},{time},{500 + 30 * number},0"]
        if time >= 20:
            across = 45 + 455 * abs((time - 20) % 60 - 30) / 30
            lines.append(f"courier,{time},{across:.2f},10")
    (tmp_path / "groups.csv").write_text("\n".join(lines) + "\n")
    lake = Lake(spark, tmp_path / "lake")
    ingest(lake, [str(tmp_path / "groups.csv")])
    found = profile_trace(lake, "groups", RANGES_M)
    assert (found.nodes, found.rows, found.span_s, found.most_present) == (9, 8 * 201 + 181, 200.0, 9)
    assert found.mean_present == pytest.approx(8.9, abs=0.01)
    assert (found.arrivals_per_min, found.departures_per_min) == (pytest.approx(60 / 200), 0.0)
    assert found.box == (0.0, 0.0, 590.0, 10.0)
    near = found.at(60.0)
    assert near.range_m == 60.0
    assert 2 <= near.components <= 3
    assert near.partitioned
    assert near.reachable_at_once < near.reachable_within["10"] < 0.7 < near.reachable_within["60"]
    assert "600" not in near.reachable_within
    assert "Partitioned up to 120 m" in profile_words(found)
    assert sum(cell.nodes for cell in found.density) == pytest.approx(found.mean_present, abs=0.1)
    assert profile_of_json(json.dumps(found.as_json())) == found
    assert 'class="cell"' in profile_page(found).html()
    # Kept: not computed again, until the trace is another.
    assert profile_trace(lake, "groups", [60.0]) is not found
    assert profile_trace(lake, "groups", [60.0]) == found
    with pytest.raises(SystemExit) as ended:
        main(["profile", "groups", "--lake", lake.name, "--range", "60m", "--json"])
    assert ended.value.code == 0
    assert {one["range_m"] for one in json.loads(capfd.readouterr().out)["ranges"]} == {50, 60, 100, 150, 200, 300}
