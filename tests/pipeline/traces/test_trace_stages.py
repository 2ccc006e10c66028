"""Stages on traces without Spark: contacts, their statistics, and who comes, stays and goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from meetings import Row, contacts_by_brute_force
from spark_on_duckdb import Frame, Session

from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.traces import trace_profile
from earshot.pipeline.traces.contact_statistics import ContactStatistics, Spread, find_contacts
from earshot.pipeline.traces.contacts import contacts_within
from earshot.pipeline.traces.ingest import IngestSettings, ingest
from earshot.pipeline.traces.snapshots import Stretch
from earshot.pipeline.traces.trace_profile import DensityCell, NetworkMoment, _found, _stays, profile_trace
from earshot.traces.lake_tables import TraceAbout

PLACES = "node string, time double, x_m double, y_m double"


def walks(nodes: int, moments: int, step_s: float, seed: int = 3) -> list[Row]:
    """Nodes that walk at random and are not always seen, in no order."""
    chance = Random(seed)
    rows: list[Row] = []
    for number in range(nodes):
        x, y = chance.uniform(0, 60), chance.uniform(0, 60)
        for moment in range(moments):
            x, y = x + chance.gauss(0, 5), y + chance.gauss(0, 5)
            if chance.random() < 0.95:
                rows.append((f"n{number}", moment * step_s, x, y))
    chance.shuffle(rows)
    return rows


def contacts(session: Session, places: Sequence[Any], ddl: str = PLACES, **given: Any) -> list[tuple[Any, ...]]:
    positions: Any = session.createDataFrame(places, ddl)
    return sorted(tuple(row) for row in positions.transform(contacts_within(20.0, **given)).collect())


@pytest.mark.parametrize(
    "given",
    [
        {"interval_s": 0.5},  # of eight tasks, in stretches of 16 s
        {"interval_s": 0.5, "nodes": 250_000},  # in stretches of two moments
        {"interval_s": 0.5, "nodes": 9_000_000},  # of one
        {"interval_s": 0.5, "rows": 400},  # in one task
        {"rows": 400},
        {},
    ],
)
def test_contacts_are_those_of_brute_force_however_they_are_dealt(given: dict[str, Any], quick_spark: Session) -> None:
    rows = walks(8, 90, 0.5)
    assert contacts(quick_spark, rows, **given) == contacts_by_brute_force(rows, 20.0, 0.5)


def test_contacts_of_several_traces_are_found_in_each_by_itself(quick_spark: Session) -> None:
    """One trace is sampled every 2 s, the other every 3: the median of the time between two samples is 2 s."""
    of = {"slow": walks(5, 30, 3.0, 4), "fast": walks(5, 40, 2.0, 5)}
    rows = [(trace, *row) for trace, some in of.items() for row in some]
    expected = sorted((trace, *one) for trace, some in of.items() for one in contacts_by_brute_force(some, 20.0, 2.0))
    assert contacts(quick_spark, rows, f"trace string, {PLACES}") == expected
    assert expected


def test_where_no_node_has_two_samples_they_are_a_second_apart(quick_spark: Session) -> None:
    rows = [("a", 0.0, 0.0, 0.0), ("b", 0.0, 5.0, 0.0), ("c", 1.0, 0.0, 0.0)]
    assert contacts(quick_spark, rows) == [("a", "b", 0.0, 0.0)]
    assert contacts(quick_spark, []) == []


def test_positions_are_compared_at_steps_if_asked(quick_spark: Session) -> None:
    """Sampled at moments of their own, both nodes stand; b is not seen from 4.5 to 9.5 s."""
    rows = [("a", t, 0.0, 0.0) for t in (0.0, 5.0, 10.0)] + [("b", t, 9.0, 0.0) for t in (0.5, 4.5, 9.5, 10.5)]
    assert contacts(quick_spark, rows, interval_s=1.0) == []
    assert contacts(quick_spark, rows, step_s=1.0) == [("a", "b", 1.0, 10.0)]
    assert contacts(quick_spark, rows, step_s=1.0, max_gap_s=5.0, interval_s=99.0) == [("a", "b", 1.0, 10.0)]
    assert contacts(quick_spark, rows, step_s=1.0, max_gap_s=4.9) == [("a", "b", 10.0, 10.0)]


# -- statistics of contacts


@pytest.fixture
def lake(quick_spark: Session, tmp_path: Path) -> Lake:
    return Lake(quick_spark, tmp_path / "lake")  # type: ignore[arg-type]


def ingested(lake: Lake, folder: Path, rows: Sequence[Row], name: str = "town") -> None:
    (folder / f"{name}.csv").write_text("node,time,x,y\n" + "".join(f"{n},{t},{x},{y}\n" for n, t, x, y in rows))
    ingest(lake, [str(folder / f"{name}.csv")], name, IngestSettings(max_speed_m_s=1e9))


MEETINGS: list[Row] = [
    *(("a", float(t), 0.0, 0.0) for t in range(10)),
    *(("b", float(t), 10.0 if t in (0, 1, 2, 3, 6, 7, 8) else 1000.0, 0.0) for t in range(10)),
    *(("c", float(t), 0.0, 40.0) for t in range(5, 10)),
    *(("d", float(t), 5000.0, 0.0) for t in range(10)),
]
"In range of 50 m: a and b from 0 to 3 and from 6 to 8 s, a and c from 5 to 9 s, b and c from 6 to 8 s; d meets nobody."


def test_statistics_of_contacts_count_pairs_peers_and_the_time_between(lake: Lake, tmp_path: Path) -> None:
    """They last 3, 2, 4 and 2 s, and one second more each as a share of the 35 s that nodes are there."""
    ingested(lake, tmp_path, MEETINGS)
    found = find_contacts(lake, "town", 50.0)
    assert found == ContactStatistics(
        trace="town", range_m=50.0, interval_s=1.0, step_s=None, contacts=4, pairs=3, nodes=4, nodes_met=3,
        mean_degree=pytest.approx(2 * 15 / 35),
        contact_s=Spread(2.75, 2.5, pytest.approx(3.7), pytest.approx(3.85), pytest.approx(3.97), 4.0),
        inter_contact_s=Spread(3.0, 3.0, 3.0, 3.0, 3.0, 3.0),
        peers=Spread(2.0, 2.0, 2.0, 2.0, 2.0, 2.0),
    )  # fmt: skip
    assert sorted((row["a"], row["b"], row["start"], row["end"]) for row in lake.arrow.rows(
        "contacts", {}, trace="town", range_m=50.0
    )) == [("a", "b", 0.0, 3.0), ("a", "b", 6.0, 8.0), ("a", "c", 5.0, 9.0), ("b", "c", 6.0, 8.0)]  # fmt: skip


def test_a_trace_without_contacts_has_no_lengths_of_them(lake: Lake, tmp_path: Path) -> None:
    ingested(lake, tmp_path, MEETINGS)
    found = find_contacts(lake, "town", 5.0)
    assert (found.contacts, found.pairs, found.nodes_met, found.mean_degree) == (0, 0, 0, 0.0)
    assert (found.contact_s, found.inter_contact_s, found.peers) == (None, None, None)


def test_positions_are_interpolated_where_nodes_have_no_common_times(lake: Lake, tmp_path: Path) -> None:
    """Two nodes stand 9 m apart: 2 s from sample to sample, b a second later than a."""
    rows = [("a", 2.0 * t, 0.0, 0.0) for t in range(6)] + [("b", 2.0 * t + 1.0, 9.0, 0.0) for t in range(6)]
    ingested(lake, tmp_path, rows)
    found = find_contacts(lake, "town", 10.0)
    assert (found.interval_s, found.step_s, found.contacts) == (2.0, 2.0, 1)
    assert found.contact_s is not None
    assert found.contact_s.most == 8.0  # at 2, 4, 6, 8 and 10 s
    assert found.mean_degree == pytest.approx(2 * 10 / (12 + 12))
    finer = find_contacts(lake, "town", 10.0, step_s=1.0)
    assert (finer.step_s, finer.contact_s and finer.contact_s.most) == (1.0, 9.0)
    assert find_contacts(lake, "town", 10.0, step_s=1.0, max_gap_s=1.5).contacts == 0


def test_waypoints_are_compared_every_second(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "walk.movements"
    path.write_text("0 0 0 100 0 0\n0 50 0 100 -50 0\n")
    ingest(lake, [str(path)], "walk", IngestSettings(format="bonnmotion"))
    found = find_contacts(lake, "walk", 10.5)
    assert (found.step_s, found.interval_s, found.contacts) == (1.0, 100.0, 1)
    assert found.contact_s is not None
    assert found.contact_s.most == 20.0  # from x = 10 to x = -10


# -- the profile

LEGS = "node string, time double, until double, x_m double, y_m double, x_m_s double, y_m_s double"


def legs(session: Session, *rows: tuple[str, float, float | None]) -> Frame:
    return session.createDataFrame(
        [(node, time, until, 10.0 * place, -float(place), 0.0, 0.0) for place, (node, time, until) in enumerate(rows)],
        LEGS,
    )


def test_nodes_come_stay_and_go_also_at_gaps_but_not_at_the_ends_of_the_trace(quick_spark: Session) -> None:
    """a stays for 100 s, b for 10 s twice, c from 30 to 90 s; a gap is longer than 39 s."""
    frame: Any = legs(
        quick_spark, ("a", 0, 39), ("a", 39, 70), ("a", 70, 100), ("a", 100, 100), ("b", 10, 20), ("b", 20, 60),
        ("b", 60, 70), ("b", 70, 70), ("c", 30, 60), ("c", 60, 90), ("c", 90, 90),
    )  # fmt: skip
    about = TraceAbout("samples", 0.0, 100.0, 10.0, None, "digest")
    assert _stays(frame, about, 39.0) == {
        "nodes": 3, "rows": 11, "present_s": 100.0 + 20.0 + 60.0, "arrivals": 2, "departures": 2,
        "mean": pytest.approx((100.0 + 10.0 + 60.0) / 3), "shares": [60.0, 100.0, 100.0, 100.0], "most": 100.0,
        "west": 0.0, "south": -10.0, "east": 100.0, "north": 0.0,
    }  # fmt: skip


def test_each_stretch_gets_the_legs_that_overlap_it(quick_spark: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leg between two stretches goes to the later one; the only stretch gets all but those that end before it."""

    def measure(stretches: Any, ranges_m: Any, max_gap_s: float, cell: Any, table: pa.Table) -> pa.Table:
        """A row a leg: its stretch and its number."""
        assert (ranges_m, max_gap_s, cell) == ([50.0], 7.0, None)
        start = stretches[table.column("key")[0].as_py()].start
        assert len(set(table.column("node").to_pylist())) > 1
        found = [("leg", 0.0, start, x / 10.0, 1.0) for x in table.column("x_m").to_pylist()]
        names = ("name", "range_m", "time", "value", "weight")
        return pa.table(dict(zip(names, map(list, zip(*found, strict=True)), strict=True)))

    monkeypatch.setattr(trace_profile, "_measure", measure)
    chance = Random(1)
    given: list[tuple[str, float, float | None]] = [("x", 20.0, None)]
    for number in range(300):
        time = chance.choice([chance.uniform(-20, 130), float(chance.randrange(-20, 130, 5))])
        given.append((f"n{number % 7}", time, time + chance.choice([0.0, 5.0, 10.0, chance.uniform(0, 60)])))
    for stretches in (
        [Stretch(10.0 + 25.0 * k, 11, 1.0) for k in range(4)],
        [Stretch(10.0 + 5.0 * k, 11, 1.0) for k in range(4)],
        [Stretch(10.0, 6, 2.0)],
    ):
        frame: Any = legs(quick_spark, *given)
        found = {(row.time, int(row.value)) for row in _found(frame, stretches, [50.0], 7.0)}
        lasts_s = (stretches[0].steps - 1) * stretches[0].step_s
        expected = set()
        for number, (_, time, until) in enumerate(given):
            after = [one.start for one in stretches if one.start + lasts_s >= time or len(stretches) == 1]
            if until is not None and until >= stretches[0].start:
                expected |= {(start, number) for start in after if start <= until or start == after[0]}
        assert found == expected


def test_a_profile_of_nodes_that_stand(lake: Lake, tmp_path: Path) -> None:
    """a and b stand 30 m apart for two minutes; c stands 400 m away from a and leaves after one."""
    rows: list[Row] = [(n, float(t), x, 0.0) for t in range(121) for n, x in (("a", 0.0), ("b", 30.0), ("c", 400.0))]
    ingested(lake, tmp_path, [row for row in rows if row[0] != "c" or row[1] <= 60])
    stated: list[str] = []
    found = profile_trace(lake, "town", [50.0, 1000.0], stated.append)
    assert stated == ["who comes and goes", "neighbours and components", "contacts and what is carried"]
    assert (found.trace, found.rows, found.nodes, found.start, found.end) == ("town", 303, 3, 0.0, 120.0)
    assert (found.interval_s, found.motion, found.box, found.cell_m) == (1.0, "samples", (0.0, 0.0, 400.0, 0.0), 10.0)
    assert (found.mean_present, found.most_present, found.arrivals_per_min) == (2.5, 3, 0.0)
    assert (found.departures_per_min, found.step_s) == (0.5, 1.0)
    assert found.stay_s == Spread(100.0, 120.0, 120.0, 120.0, 120.0, 120.0)
    assert found.speed_m_s == Spread(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert found.present_over_time == tuple((1.0 + 2.0 * k, 3 if k < 30 else 2) for k in range(60))
    assert found.density == (DensityCell(0.0, 0.0, 1.0), DensityCell(30.0, 0.0, 1.0), DensityCell(400.0, 0.0, 0.5))
    near, far = found.ranges
    assert near.over_time == tuple(
        NetworkMoment(1.0 + 2.0 * k, *((3, 2, pytest.approx(2 / 3)) if k < 30 else (2, 1, 1.0))) for k in range(60)
    )
    assert (near.mean_neighbours, near.isolated_share, near.components) == (
        pytest.approx(2 * 60 / 150), pytest.approx(30 / 150), 1.5,
    )  # fmt: skip
    assert far.mean_neighbours == pytest.approx((30 * 6 + 30 * 2) / 150)
    assert (far.components, far.largest_share, far.reachable_at_once) == (1.0, 1.0, 1.0)
    assert near.reachable_at_once == pytest.approx((30 * 2 + 30 * 2) / (30 * 6 + 30 * 2))
    assert math.isclose(near.largest_share, (2 / 3 + 1) / 2)
