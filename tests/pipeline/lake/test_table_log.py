"""Commits without Spark: whole or not at all, from several processes, and what other programs read."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from killed_writers import broken_parts
from pyspark.sql import SparkSession

from earshot.errors import LakeError
from earshot.pipeline.lake import table_log, tables
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.lake.table_log import MOST_FILES, TableLog
from earshot.pipeline.lake.tables import POSITIONS, RUNS, TABLES
from sizes import sized

ODD_NAMES = ["plain", "o'er/the=sea", "a b", "ü 100%", "x%20y", "line\nbreak", "back\\slash [1]", '{a}*?#:"^']


@pytest.fixture
def lake(tmp_path: Path) -> ArrowLake:
    return ArrowLake(tmp_path / "lake")


def nodes(lake: ArrowLake, **partition: str) -> list[tuple[str, str]]:
    rows = lake.read("positions", **partition)
    return sorted(zip(rows["trace"].to_pylist(), rows["node"].to_pylist(), strict=True))


def positions(lake: ArrowLake, trace: str, *names: str) -> None:
    lake.write_rows("positions", [{"node": name, "time": 0.0, "x_m": 1.5} for name in names], trace=trace)


def test_what_is_not_there_is_said_with_the_command_that_makes_it(lake: ArrowLake) -> None:
    def stated(**partition: str) -> str:
        return str(lake.absent(POSITIONS, partition)).replace(lake.name, "HERE")

    command = "run: earshot ingest FILE --trace"
    assert stated(trace="x") == f"there is no lake at HERE; {command} x --lake HERE"
    lake.write_rows("runs", [{"run": "r"}])
    assert stated(trace="x") == f"the lake HERE has no positions; {command} x --lake HERE"
    positions(lake, "y", "a")
    positions(lake, "z", "a")
    assert stated(trace="x").startswith("the lake HERE has no positions of")
    assert stated(trace="x").endswith(f"; {command} x --lake HERE")
    assert all(trace in stated(trace="x") for trace in "xyz")
    assert stated() == f"the lake HERE has no positions; {command} TRACE --lake HERE"


def test_partitions_of_any_name_are_replaced_and_dropped(lake: ArrowLake) -> None:
    for round_ in "12":
        for trace in ODD_NAMES:
            positions(lake, trace, f"a{round_}", "b")
    assert nodes(lake) == sorted((trace, node) for trace in ODD_NAMES for node in ("a2", "b"))
    assert nodes(lake, trace="a b") == [("a b", "a2"), ("a b", "b")]
    for trace in ODD_NAMES[1:]:
        lake.drop("positions", trace=trace)
    assert lake.partitions("positions") == [{"trace": "plain"}]
    (log,) = lake.logs()
    assert len(log.vacuum(0.0)) == 2 * len(ODD_NAMES) - 1
    assert nodes(lake) == [("plain", "a2"), ("plain", "b")]
    with pytest.raises(LakeError, match="trace must not be empty"):
        positions(lake, "", "a")


@given(st.lists(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=4, unique=True), max_size=14))
@settings(max_examples=sized(25, 100))
def test_a_clustered_table_is_what_a_dictionary_would_be(
    tmp_path_factory: pytest.TempPathFactory, writes: list[list[str]]
) -> None:
    lake = ArrowLake(tmp_path_factory.mktemp("lake"))
    truth: dict[str, int] = {}
    for number, runs in enumerate(writes):
        lake.write_rows("runs", [{"run": run, "seed": number} for run in runs])
        truth |= dict.fromkeys(runs, number)
    rows = lake.read("runs").to_pylist()
    assert len(rows) == len(truth)
    assert {row["run"]: row["seed"] for row in rows} == truth
    snapshot = lake.snapshot(RUNS)
    assert len(snapshot.files if snapshot else []) <= MOST_FILES + 1


def test_a_thousand_small_runs_are_a_few_files(lake: ArrowLake) -> None:
    for first in range(0, 1000, 25):
        lake.write_rows("runs", [{"run": f"r{number}", "seed": number} for number in range(first, first + 25)])
    (row,) = lake.tables()
    assert (row["partitions"], row["rows"]) == (1000, 1000)
    assert row["files"] <= MOST_FILES + 1
    (log,) = lake.logs()
    log.compact()
    assert lake.tables()[0]["files"] == 1
    assert len(lake.keys("runs")) == 1000


def test_a_file_that_this_machine_does_not_see_as_it_was_counted_is_not_committed(lake: ArrowLake) -> None:
    positions(lake, "city", "old")
    file = lake.files.write_rows("positions", [{"node": "new"}], trace="city")
    at = Path(lake.folder.root) / "positions" / file.path
    whole = at.read_bytes()
    at.write_bytes(whole[:-1])
    with pytest.raises(
        LakeError, match=r"nothing was written to positions .* \(1 rows, \d+ bytes\), but .* sees \d+ byt"
    ):
        lake.commit([file])
    at.unlink()
    with pytest.raises(LakeError, match="sees no such file; put the lake on a disk that every machine"):
        lake.commit([file])
    assert nodes(lake) == [("city", "old")]
    at.write_bytes(whole)
    lake.commit([file])
    assert nodes(lake) == [("city", "new")]


def test_writers_at_once_lose_nothing(lake: ArrowLake) -> None:
    """Four threads, each with its own partitions, one that all replace, and rows of one clustered table."""
    errors: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            for number in range(5):
                positions(lake, f"{writer}-{number}", "a", "b")
                positions(lake, "shared", *(f"{writer}" for _ in range(7)))
                lake.write_rows("runs", [{"run": f"{writer}-{number}"}, {"run": "shared", "seed": writer}])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    found = nodes(lake)
    assert len(found) == 4 * 5 * 2 + 7
    assert len({node for trace, node in found if trace == "shared"}) == 1, "one writer won, whole"
    assert len(lake.keys("runs")) == lake.read("runs").num_rows == 21


def test_a_commit_that_others_keep_overtaking_says_so(lake: ArrowLake, monkeypatch: pytest.MonkeyPatch) -> None:
    positions(lake, "city", "old")
    file = lake.files.write_rows("positions", [{"node": "new"}], trace="city")
    snapshot = TableLog._snapshot
    overtaken = 0

    def overtake(self: TableLog, table: deltalake.DeltaTable) -> Any:
        nonlocal overtaken
        found = snapshot(self, table)
        if overtaken < 3:
            overtaken += 1
            with monkeypatch.context() as inner:
                inner.setattr(TableLog, "_snapshot", snapshot)
                positions(lake, f"other-{overtaken}", "x")
        return found

    monkeypatch.setattr(TableLog, "_snapshot", overtake)
    log = TableLog(lake.folder, TABLES["positions"])
    log.replace([file])
    assert nodes(lake) == [("city", "new"), ("other-1", "x"), ("other-2", "x"), ("other-3", "x")]
    overtaken = 2
    monkeypatch.setattr(table_log, "PATIENCE_S", -1.0)
    with pytest.raises(LakeError, match="keeps being changed by other commands"):
        log.replace([], [("city",)])
    assert nodes(lake, trace="city") == [("city", "new")]


def test_a_column_that_is_new_is_null_in_what_was_written_before(
    lake: ArrowLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions(lake, "old", "a")
    lake.write_rows("runs", [{"run": "old"}])
    for name in ("positions", "runs"):
        kind = TABLES[name]
        monkeypatch.setitem(TABLES, name, replace(kind, columns={**kind.columns, "height_m": "double"}))
    assert lake.read("positions")["height_m"].to_pylist() == [None]
    lake.write_rows("positions", [{"node": "b", "height_m": 2.0}], trace="new")
    lake.write_rows("runs", [{"run": "new", "height_m": 2.0}])
    for table in ("positions", "runs"):
        assert sorted(map(str, lake.read(table)["height_m"].to_pylist())) == ["2.0", "None"]
        read = pl.read_delta(f"{lake.folder.root}/{table}")
        assert sorted(map(str, read["height_m"].to_list())) == ["2.0", "None"]
    monkeypatch.setitem(
        TABLES, "positions", replace(tables.POSITIONS, columns={**tables.POSITIONS.columns, "x_m": "string"})
    )
    with pytest.raises(LakeError, match=r"positions in .* was written with other types of x_m .*earshot ingest FILE"):
        lake.read("positions")


@pytest.mark.spark
def test_spark_duckdb_polars_and_pandas_read_the_same_rows(spark: SparkSession, lake: ArrowLake) -> None:
    import duckdb
    from duckdb_extensions import import_extension

    for trace in (*ODD_NAMES, "plain"):
        positions(lake, trace, f"a of {trace}", "b")
    positions(lake, "empty")
    for number in range(12):
        lake.write_rows("runs", [{"run": f"r{number % 9}", "seed": number, "status": "done"}])
    lake.drop("runs", run="r3")
    import_extension("delta")
    duck = duckdb.connect()
    duck.execute("load delta")
    through_spark = Lake(spark, lake.folder.root)
    for table, columns in (("positions", ["trace", "node", "x_m"]), ("runs", ["run", "seed", "error"])):
        at = f"{lake.folder.root}/{table}"
        ours = _rows(lake.read(table).select(columns).to_pylist())
        assert len(ours) == (2 * len(ODD_NAMES) if table == "positions" else 8)
        assert _rows(row.asDict() for row in through_spark.read(table).select(*columns).collect()) == ours
        assert _rows(pl.read_delta(at).select(columns).to_dicts()) == ours
        assert _rows(deltalake.DeltaTable(at).to_pyarrow_table(columns=columns).to_pylist()) == ours
        pandas = deltalake.DeltaTable(at).to_pandas(columns=columns)
        assert _rows(pandas.astype(object).where(pandas.notna(), None).to_dict("records")) == ours
        found = duck.execute(f"select {', '.join(columns)} from delta_scan('{at}')").fetchall()
        assert _rows(dict(zip(columns, row, strict=True)) for row in found) == ours


def _rows(rows: Any) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kills", "seed"), [(50, 1), pytest.param(500, 2, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)
def test_readers_see_whole_versions_while_writers_are_killed(tmp_path: Path, kills: int, seed: int) -> None:
    root = tmp_path / "lake"
    script = Path(__file__).with_name("killed_writers.py")
    lake = ArrowLake(root)
    looks, seen, generations = 0, set[str](), set[str]()
    with subprocess.Popen([sys.executable, script, root, str(kills), str(seed)], stdout=subprocess.PIPE) as killing:
        while _runs(killing):
            events, runs = lake.read("events"), lake.read("runs")
            assert broken_parts(events, runs, seen) == []
            generations.update(events["event"].to_pylist())
            looks += 1
        assert killing.stdout is not None
        assert len(killing.stdout.read().splitlines()) == kills
        assert killing.returncode == 0
    assert looks > 10
    assert len(generations) > 10, "the readers saw the table change"
    assert (
        broken_parts(pl.read_delta(f"{root}/events").to_arrow(), pl.read_delta(f"{root}/runs").to_arrow(), seen) == []
    )
    # What the killed left is in no log, and a vacuum finds it.
    named = {Path(file.path).name for log in lake.logs() for file in _live(log)}
    for log in lake.logs():
        log.vacuum(0.0)
    assert {path.name for path in root.rglob("part-*.parquet")} == named
    assert broken_parts(lake.read("events"), lake.read("runs"), seen) == []


def _runs(process: subprocess.Popen[bytes]) -> bool:
    """Whether it still runs, a moment later."""
    try:
        process.wait(0.05)
    except subprocess.TimeoutExpired:
        return True
    return False


def _live(log: TableLog) -> Iterator[Any]:
    snapshot = log.snapshot()
    assert snapshot is not None
    yield from snapshot.files


def test_a_damaged_log_is_named(lake: ArrowLake) -> None:
    positions(lake, "city", "a")
    commit = max((Path(lake.folder.root) / "positions" / "_delta_log").glob("*.json"))
    commit.write_text("{nonsense")
    with pytest.raises(LakeError, match="cannot use positions in the lake"):
        lake.read("positions")


def test_a_file_without_a_column_reads_as_null_and_batches_keep_the_order_of_columns(lake: ArrowLake) -> None:
    positions(lake, "city", "a", "b")
    (batch,) = lake.batches("positions", ["node", "trace", "speed_m_s"], trace="city")
    assert batch.to_pydict() == {"node": ["a", "b"], "trace": ["city", "city"], "speed_m_s": [None, None]}
    (file,) = (Path(lake.folder.root) / "positions").rglob("*.parquet")
    assert pq.read_schema(file).names == [name for name in tables.POSITIONS.columns if name != "trace"]
    assert pa.types.is_floating(lake.read("positions").schema.field("time").type)
