"""Contacts on Spark, against brute force."""

from __future__ import annotations

import gzip
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meetings import Contact, Row, contacts_by_brute_force
from pyspark.sql import DataFrame, SparkSession
from scipy.spatial import cKDTree

from earshot.errors import TraceError
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.spark import tasks
from earshot.pipeline.traces import contacts as contacts_module
from earshot.pipeline.traces.contact_statistics import Spread, find_contacts
from earshot.pipeline.traces.contacts import contacts_within
from earshot.pipeline.traces.ingest import IngestSettings, ingest
from sizes import sized

POSITIONS = "node string, time double, x_m double, y_m double"


def positions(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(rows, POSITIONS)


def found(frame: DataFrame) -> list[Contact]:
    return sorted(tuple(row) for row in frame.select("a", "b", "start", "end").collect())


def wandering(nodes: int, steps: int, side_m: float, seed: int) -> list[Row]:
    random = np.random.default_rng(seed)
    place = random.uniform(0, side_m, (nodes, 2))
    rows: list[Row] = []
    for step in range(steps):
        place += random.normal(0, 4, place.shape)
        there = random.uniform(size=nodes) > 0.02  # now and then a sample is missing
        rows += [(f"n{i}", float(step), *map(float, place[i])) for i in range(nodes) if there[i]]
    return rows


@pytest.mark.spark
def test_contacts_agree_with_brute_force_over_many_stretches_of_time(spark: SparkSession) -> None:
    rows = wandering(nodes=40, steps=150, side_m=300, seed=4)
    contacts = positions(spark, rows).repartition(5).transform(contacts_within(30.0, interval_s=1.0))
    truth = contacts_by_brute_force(rows, 30.0, 1.0)
    longest = max(end - start for _, _, start, end in truth)
    assert longest > contacts_module.SLICES_A_STRETCH, "no contact spans two stretches: the test tests nothing"
    assert found(contacts) == truth
    crowded = positions(spark, rows).transform(contacts_within(30.0, interval_s=1.0, nodes=200_000))  # 2 s a stretch
    assert found(crowded) == truth


@pytest.mark.spark
def test_fifty_samples_a_second_since_1970_have_the_contacts_of_small_times(spark: SparkSession) -> None:
    """Stretches number more than 32 bits hold, and times are rounded to a quarter of a microsecond."""
    rows = wandering(nodes=12, steps=100, side_m=120, seed=5)
    truth = contacts_by_brute_force(rows, 30.0, 1.0)
    assert any(end - start > contacts_module.SLICES_A_STRETCH for _, _, start, end in truth)

    def since_1970(sample: float) -> float:
        return 1.7e9 + sample / 50

    late = positions(spark, [(node, since_1970(t), x, y) for node, t, x, y in rows])
    contacts = found(late.transform(contacts_within(30.0, interval_s=0.02)))
    assert contacts == [(a, b, since_1970(start), since_1970(end)) for a, b, start, end in truth]


@pytest.mark.spark
def test_each_trace_is_searched_for_itself(spark: SparkSession) -> None:
    rows = [("a", 0.0, 0.0, 0.0), ("b", 0.0, 1.0, 0.0), ("c", 0.0, 2.0, 0.0)]
    one = positions(spark, rows[:2]).selectExpr("'one' as trace", "*")
    two = positions(spark, rows[1:]).selectExpr("'two' as trace", "*")
    contacts = one.union(two).transform(contacts_within(5.0, interval_s=1.0))
    assert sorted(tuple(row) for row in contacts.collect()) == [
        ("one", "a", "b", 0.0, 0.0),
        ("two", "b", "c", 0.0, 0.0),
    ]


@pytest.mark.spark
def test_the_interval_is_measured_where_it_is_not_given(spark: SparkSession) -> None:
    rows = [(node, t * 2.5, 0.0, 0.0) for node in "ab" for t in range(4)] + [
        ("a", 40.0, 0.0, 0.0),
        ("b", 40.0, 0.0, 0.0),
    ]
    frame = positions(spark, rows)
    assert found(frame.transform(contacts_within(1.0))) == [("a", "b", 0.0, 7.5), ("a", "b", 40.0, 40.0)]


@pytest.mark.spark
def test_nodes_sampled_at_moments_of_their_own_meet_on_common_steps(spark: SparkSession) -> None:
    # b stands; a comes by at 2 m/s and is seen at odd times only: within 3 m from x = -3 to x = 3.
    rows = [("b", 0.0, 0.0, 0.0), ("b", 20.0, 0.0, 0.0)] + [
        ("a", t + 0.5, -10.0 + 2.0 * (t + 0.5), 0.0) for t in range(10)
    ]
    frame = positions(spark, rows)
    assert found(frame.transform(contacts_within(3.0, interval_s=1.0))) == []
    assert found(frame.transform(contacts_within(3.0, step_s=1.0))) == [("a", "b", 4.0, 6.0)]
    assert found(frame.transform(contacts_within(3.0, step_s=1.0, max_gap_s=5.0))) == []


@pytest.mark.spark
def test_nodes_that_were_seen_once_meet_at_that_moment(spark: SparkSession) -> None:
    frame = positions(spark, [("a", 7.0, 0.0, 0.0), ("b", 7.0, 3.0, 0.0), ("c", 9.0, 0.0, 0.0)])
    assert found(frame.transform(contacts_within(5.0))) == [("a", "b", 7.0, 7.0)]


@pytest.mark.spark
def test_no_positions_have_no_contacts(spark: SparkSession) -> None:
    assert found(positions(spark, []).transform(contacts_within(10.0, interval_s=1.0))) == []


@pytest.mark.parametrize("wrong", [{"range_m": 0.0}, {"range_m": math.nan}, {"range_m": 1.0, "step_s": -1.0}])
def test_a_range_or_step_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(TraceError, match="must be a positive number"):
        contacts_within(**wrong)


samples = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 40), st.integers(0, 3), st.integers(0, 3)),
    max_size=80,
    unique_by=lambda row: row[:2],
)


@given(
    samples=samples,
    tasks=st.integers(1, 5),
    stretch=st.integers(1, 8),
    batch_rows=st.integers(1, 30),
    rows_held=st.integers(1, 30),
)
@settings(max_examples=sized(200, 4000))
def test_however_time_is_cut_and_spread_the_contacts_are_the_same(
    samples: list[tuple[int, int, int, int]], tasks: int, stretch: int, batch_rows: int, rows_held: int
) -> None:
    """The two stages by hand, without Spark between them."""
    rows = [(f"n{node}", t / 10, float(x), float(y)) for node, t, x, y in samples]
    gap = 0.1 * (1 + 1e-6)
    search = contacts_module._Search(1.5, gap, stretch / 10, tasks)
    by_task: dict[int, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: math.floor(row[1] / (stretch / 10))):
        by_task[math.floor(row[1] / (stretch / 10)) % tasks].append(row)
    moved: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    for some in by_task.values():
        columns = dict(zip(("node", "time", "x_m", "y_m"), zip(*some, strict=True), strict=True))
        batches = pa.table({name: list(values) for name, values in columns.items()}).to_batches(batch_rows)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(contacts_module, "ROWS_HELD", rows_held)
            for packed in search.runs(batches):
                moved[packed.column(0)[0].as_py()].append(packed)
    stitch = contacts_module._Stitch(with_trace=False)
    contacts = [row for batches in moved.values() for batch in stitch(batches) for row in batch.to_pylist()]
    assert sorted(tuple(row.values()) for row in contacts) == contacts_by_brute_force(rows, 1.5, gap)


def test_a_task_holds_a_few_stretches_and_not_all_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts_module, "ROWS_HELD", 5)
    taken = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for number in range(1000):  # three rows a stretch, in batches of seven
            taken += 7
            yield pa.record_batch({"time": [float((number * 7 + i) // 3) for i in range(7)]})

    seen: list[float] = []
    for table in contacts_module.whole_stretches(batches(), 1.0):
        assert taken - len(seen) <= 5 + 3 + 7
        times = table.column("time").to_pylist()
        assert not seen or seen[-1] < times[0], "a stretch is cut"
        seen += times
    assert seen == [float(row // 3) for row in range(7000)]


def test_packed_runs_carry_the_names_of_their_own_nodes_only() -> None:
    pairs = [(f"{side}{number:03}", 0.0, number * 100.0, 0.0) for number in range(200) for side in "ab"]
    columns = dict(zip(("node", "time", "x_m", "y_m"), map(list, zip(*pairs, strict=True)), strict=True))
    search = contacts_module._Search(1.0, 1.0, 32.0, tasks=50)
    met: list[tuple[str, str]] = []
    for row in search.runs([pa.record_batch(columns)]):
        runs = pa.ipc.open_stream(row.column("runs")[0].as_buffer()).read_all()
        a, b = (runs.column(name).chunk(0) for name in ("a", "b"))
        here = list(zip(a.to_pylist(), b.to_pylist(), strict=True))
        assert sorted(a.dictionary.to_pylist()) == sorted(b.dictionary.to_pylist()) == sorted(sum(here, ()))
        met += here
    assert sorted(met) == [(f"a{number:03}", f"b{number:03}") for number in range(200)]


@pytest.mark.spark
@pytest.mark.parametrize("few_rows", [tasks.FEW_ROWS, 0])
def test_statistics_count_contacts_pairs_gaps_and_peers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_rows: int
) -> None:
    monkeypatch.setattr(tasks, "FEW_ROWS", few_rows)
    trace = tmp_path / "trio.csv"
    # a and b meet at 0-2 and again at 5-6; c meets nobody.
    near = {0, 1, 2, 5, 6}
    lines = [
        f"{node},{t},{0 if node == 'a' or (node == 'b' and t in near) else 900},0" for t in range(8) for node in "ab"
    ]
    lines += [f"c,{t},5000,0" for t in range(8)]
    trace.write_text("node,time,x,y\n" + "\n".join(lines) + "\n")
    lake = Lake(spark, tmp_path / "lake")
    ingest(lake, [str(trace)], settings=IngestSettings(max_speed_m_s=math.inf))
    statistics = find_contacts(lake, "trio", range_m=10.0)
    assert found(lake.read("contacts", trace="trio", range_m=10.0)) == [("a", "b", 0.0, 2.0), ("a", "b", 5.0, 6.0)]
    assert (statistics.contacts, statistics.pairs, statistics.nodes, statistics.nodes_met) == (2, 1, 3, 2)
    assert statistics.contact_s == Spread(1.5, 1.5, 1.9, 1.95, 1.99, 2.0)
    assert statistics.inter_contact_s == Spread(3.0, 3.0, 3.0, 3.0, 3.0, 3.0)
    assert statistics.peers == Spread(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    assert statistics.mean_degree == pytest.approx(2 * 5 / 24)  # two nodes together in 5 samples, of 3 x 8
    trace.write_text("node,time,x,y\na,0,0,0\na,1,0,0\n")
    ingest(lake, [str(trace)], "alone")
    alone = find_contacts(lake, "alone", range_m=10.0)
    assert (alone.contacts, alone.pairs, alone.nodes, alone.nodes_met, alone.mean_degree) == (0, 0, 1, 0, 0.0)
    assert (alone.contact_s, alone.inter_contact_s, alone.peers) == (None, None, None)


BOLOGNA = Path("sumo-bologna", "acosta_1800_2100.fcd.csv.gz")


@pytest.mark.spark
def test_a_minute_of_bologna_has_the_contacts_a_tree_for_each_second_finds(
    spark: SparkSession, shared_data: Path, tmp_path: Path
) -> None:
    with gzip.open(shared_data / BOLOGNA, "rt") as whole:
        header, *rows = whole
    minute = [row for row in rows if float(row.partition(";")[0]) < 1860.0]
    assert len(minute) > tasks.FEW_ROWS
    (file := tmp_path / "minute.fcd.csv").write_text("".join([header, *minute]))
    lake = Lake(spark, tmp_path / "lake")
    summary = ingest(lake, [str(file)], "minute")
    assert (summary.rows_read, summary.rows_kept, summary.rejected) == (len(minute), len(minute), {})
    assert (summary.start, summary.end, summary.interval_s, summary.common_times) == (1800.0, 1859.0, 1.0, True)
    statistics = find_contacts(lake, "minute", range_m=100.0)
    assert statistics.contacts == agreeing_with_trees(lake, "minute") > 10_000


@pytest.mark.slow
@pytest.mark.spark
def test_bologna_has_the_contacts_a_tree_for_each_second_finds(
    spark: SparkSession, shared_data: Path, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path / "lake")
    summary = ingest(lake, [str(shared_data / BOLOGNA)], "bologna")
    assert (summary.rows_read, summary.rows_kept, summary.nodes, summary.rejected) == (187_057, 187_057, 1_305, {})
    assert (summary.start, summary.end, summary.interval_s, summary.common_times) == (1800.0, 2099.0, 1.0, True)
    statistics = find_contacts(lake, "bologna", range_m=100.0)
    assert statistics.contacts == agreeing_with_trees(lake, "bologna") == 112_340


def agreeing_with_trees(lake: Lake, trace: str) -> int:
    """How many contacts of 100 m there are; together they last as long as a tree of each second says."""
    table = lake.arrow.read("positions", trace=trace)
    time, x, y = (table.column(name).to_numpy() for name in ("time", "x_m", "y_m"))
    moments = sum(len(cKDTree(np.column_stack((x, y))[time == t]).query_pairs(100.0)) for t in np.unique(time))
    ours = lake.arrow.read("contacts", trace=trace, range_m=100.0)
    assert pc.sum(pc.add(pc.subtract(ours.column("end"), ours.column("start")), 1.0)).as_py() == moments
    return ours.num_rows
