"""The lake through Spark: partitions replaced as a whole or not at all, whoever else uses it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from earshot.errors import LakeError, UnknownName
from earshot.pipeline.lake import lake as lake_module
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.lake.tables import CONTACTS, TABLES

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path / "a lake [1]")


def contacts(spark: SparkSession, *pairs: str) -> DataFrame:
    rows = [(pair[0], pair[1], 0.0, 1.0) for pair in pairs]
    return spark.createDataFrame(rows, "a string, b string, start double, end double")


def content(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_a_partition_is_replaced_and_the_others_stay(spark: SparkSession, lake: Lake) -> None:
    lake.write(contacts(spark, "ab", "bc"), "contacts", trace="city", range_m=100)
    lake.write(contacts(spark, "xy"), "contacts", trace="o'er/the=sea", range_m=100)
    lake.write(contacts(spark, "ad"), "contacts", trace="city", range_m=100.0)
    assert content(lake.read("contacts", trace="city")) == [("city", 100.0, "a", "d", 0.0, 1.0)]
    assert content(lake.read("contacts", trace="o'er/the=sea")) == [("o'er/the=sea", 100.0, "x", "y", 0.0, 1.0)]
    assert lake.partitions("contacts") == [
        {"trace": "city", "range_m": "100.0"},
        {"trace": "o'er/the=sea", "range_m": "100.0"},
    ]


def test_an_empty_partition_is_a_partition(spark: SparkSession, lake: Lake) -> None:
    lake.write(contacts(spark), "contacts", trace="lonely", range_m=1)
    assert content(lake.read("contacts", trace="lonely", range_m=1)) == []
    assert lake.has("contacts", trace="lonely")
    assert not lake.has("contacts", trace="lonely", range_m=2)


def test_partitions_may_come_from_the_rows(spark: SparkSession, lake: Lake) -> None:
    rows = spark.range(6).selectExpr("concat('r', id % 3) run", "'m' metric", "'run' by", "'' key", "1.0 value")
    assert lake.write(rows, "metrics") == [{"run": "r0"}, {"run": "r1"}, {"run": "r2"}]
    lake.write(rows.where("run = 'r1'").limit(1), "metrics")
    counts = {row["run"]: row["count"] for row in lake.read("metrics").groupBy("run").count().collect()}
    assert counts == {"r0": 2, "r1": 1, "r2": 2}
    assert lake.read("metrics", run="r0").count() == 2
    pairs = spark.range(40).selectExpr("concat('w', id % 4) workload", "'e' event", "'n' node", "'s' subscription")
    lake.write(pairs.selectExpr("*", "'' why"), "expected")
    assert lake.partitions("expected") == [{"workload": f"w{number}"} for number in range(4)]
    assert lake.read("expected", workload="w3").count() == 10
    with pytest.raises(LakeError, match="a row for expected has no value in workload"):
        lake.write(
            pairs.selectExpr("nullif(workload, 'w1') workload", "event", "node", "subscription", "'' why"), "expected"
        )
    assert lake.read("expected").count() == 40


def test_more_files_than_paths_are_picked_from_their_folder(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_module, "MOST_PATHS", 1)
    for pair in ("ab", "cd"):
        lake.write(contacts(spark, pair).repartition(2), "contacts", trace="o'er/the=sea", range_m=1)
        lake.write(contacts(spark, pair, "ef").repartition(2), "contacts", trace="city", range_m=1)
    assert [row[2:4] for row in content(lake.read("contacts"))] == [("c", "d"), ("e", "f"), ("c", "d")]
    assert [row[2:4] for row in content(lake.read("contacts", trace="city"))] == [("c", "d"), ("e", "f")]


def test_an_earlier_version_stays_readable(spark: SparkSession, lake: Lake) -> None:
    for pair in ("ab", "cd"):
        lake.write(contacts(spark, pair), "contacts", trace="city", range_m=1)
    (log,) = lake.arrow.logs("contacts")
    assert [(one["version"], one["change"], one.get("rows")) for one in log.history()] == [
        (2, "replace", 1),
        (1, "replace", 1),
        (0, "create table", None),
    ]
    assert content(lake.read_version("contacts", 1)) == [("city", 1.0, "a", "b", 0.0, 1.0)]
    assert content(lake.read("contacts")) == [("city", 1.0, "c", "d", 0.0, 1.0)]
    with pytest.raises(LakeError, match="cannot use contacts in the lake"):
        lake.read_version("contacts", 9)


def test_reading_what_is_not_there_names_the_command_that_makes_it(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(LakeError, match=r"there is no lake at .*; run: earshot ingest FILE --trace city --lake"):
        lake.read("positions", trace="city")
    lake.write(contacts(spark, "ab"), "contacts", trace="city", range_m=1)
    with pytest.raises(LakeError, match="has no positions; run: earshot ingest FILE --trace city --lake"):
        lake.read("positions", trace="city")
    with pytest.raises(
        LakeError, match=r"has no contacts of trace sea, only of trace city, range_m 1\.0; run: earshot"
    ):
        lake.read("contacts", trace="sea")
    with pytest.raises(UnknownName, match="did you mean 'contacts'"):
        lake.read("contact")
    assert content(lake.read_or_empty("positions")) == []


def test_rows_that_lack_a_column_are_refused(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(LakeError, match="rows for contacts lack start, end"):
        lake.write(contacts(spark, "ab").drop("start", "end"), "contacts", trace="city", range_m=1)
    with pytest.raises(LakeError, match="is partitioned by trace, range_m"):
        lake.write(contacts(spark, "ab"), "contacts", range_m=1)


def test_what_is_being_read_stays_what_it_was(spark: SparkSession, lake: Lake) -> None:
    lake.write(contacts(spark, "ab"), "contacts", trace="city", range_m=1)
    reading = lake.read("contacts", trace="city")
    lake.write(contacts(spark, "cd"), "contacts", trace="city", range_m=1)
    assert content(reading) == [("city", 1.0, "a", "b", 0.0, 1.0)]
    assert content(lake.read("contacts")) == [("city", 1.0, "c", "d", 0.0, 1.0)]


def test_a_write_that_fails_leaves_what_was_there(spark: SparkSession, lake: Lake) -> None:
    lake.write(contacts(spark, "ab"), "contacts", trace="city", range_m=1)
    failing = contacts(spark, "cd").selectExpr("a", "b", "start", "cast(raise_error('boom') as double) end")
    with pytest.raises(Exception, match="boom"):
        lake.write(failing, "contacts", trace="city", range_m=1)
    assert content(lake.read("contacts")) == [("city", 1.0, "a", "b", 0.0, 1.0)]
    assert len([path for path in lake.folder.files("contacts") if path.endswith(".parquet")]) == 1, "it left a file"


def test_dropping_removes_a_partition_alone(spark: SparkSession, lake: Lake) -> None:
    for trace in ("one", "two"):
        lake.write(contacts(spark, "ab"), "contacts", trace=trace, range_m=1)
    lake.drop("contacts", trace="one")
    lake.drop("contacts", trace="three")
    assert lake.partitions("contacts") == [{"trace": "two", "range_m": "1.0"}]


def test_schemas_name_their_partition_columns_first_and_the_log_follows_the_records() -> None:
    from earshot.records import COLUMNS

    assert tuple(CONTACTS.columns)[:2] == CONTACTS.partition_by == ("trace", "range_m")
    assert tuple(TABLES["log"].columns) == ("run", *COLUMNS)


KILLED = textwrap.dedent(
    """
    import sys
    from earshot.pipeline.lake.lake import Lake
    from earshot.pipeline.session import spark_session

    lake = Lake(spark_session("local[2]", small=True, keep_archive=False), sys.argv[1])
    started = sys.argv[2]

    def slow(batches):
        import os, signal
        for batch in batches:
            open(f"{started}/{os.getpid()}", "w").close()
            yield batch
            signal.pause()

    rows = lake.session.range(0, 1000, 1, 2).selectExpr("'x' a", "'y' b", "1.0 start", "2.0 end")
    slowly = rows.mapInArrow(slow, "a string, b string, start double, end double")
    lake.write(slowly, "contacts", trace="city", range_m=1)
    """
)


def test_a_stage_killed_half_way_leaves_nothing_to_be_seen(
    spark: SparkSession, lake: Lake, tmp_path: Path, wait_for: Callable[[Callable[[], object]], None]
) -> None:
    lake.write(contacts(spark, "ab"), "contacts", trace="city", range_m=1)
    started = tmp_path / "started"
    started.mkdir()
    writer = subprocess.Popen([sys.executable, "-c", KILLED, lake.folder.root, str(started)])
    wait_for(lambda: len(list(started.iterdir())) == 2)
    workers = [int(path.name) for path in started.iterdir()]
    writer.kill()
    writer.wait()
    assert content(lake.read("contacts")) == [("city", 1.0, "a", "b", 0.0, 1.0)]
    wait_for(lambda: not any(_alive(worker) for worker in workers))
    lake.write(contacts(spark, "cd"), "contacts", trace="city", range_m=1)
    assert content(lake.read("contacts")) == [("city", 1.0, "c", "d", 0.0, 1.0)]


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
