"""The lake: partitions replaced as a whole or not at all, whoever else uses it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from earshot.errors import LakeError, UnknownName
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.lake.leases import Leases
from earshot.pipeline.lake.storage import ArrowStorage, HadoopStorage, LocalStorage, Storage
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


def files(lake: Lake) -> set[str]:
    """Folders of versions in the lake, whatever state they are in."""
    assert isinstance(lake.storage, LocalStorage)
    return {str(path.relative_to(lake.storage.root)) for path in lake.storage.root.rglob("version=*")}


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
    assert len(files(lake)) == 2, "what was replaced is removed"


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


def test_a_partition_of_another_schema_is_not_misread(spark: SparkSession, lake: Lake) -> None:
    lake.write(contacts(spark, "ab"), "contacts", trace="city", range_m=1)
    assert isinstance(lake.storage, LocalStorage)
    (mark,) = lake.storage.root.rglob("_COMMITTED-*")
    mark.rename(mark.with_name("_COMMITTED-00000000"))
    with pytest.raises(LakeError, match=r"written with other columns .*; run: earshot contacts city --range 1.0"):
        lake.read("contacts")


def test_a_version_without_its_mark_is_not_seen_and_goes_with_the_next_write(spark: SparkSession, lake: Lake) -> None:
    lake.write(contacts(spark, "ab"), "contacts", trace="city", range_m=1)
    assert isinstance(lake.storage, LocalStorage)
    (version,) = lake.storage.root.rglob("version=*")
    newer = version.with_name("version=99999999999999999999-dead")
    newer.mkdir()
    for part in version.glob("*.parquet"):
        (newer / part.name).write_bytes(part.read_bytes())
    (lake.storage.root / "_staging" / "dead-1").mkdir(parents=True)
    assert content(lake.read("contacts")) == [("city", 1.0, "a", "b", 0.0, 1.0)]
    lake.write(contacts(spark, "cd"), "contacts", trace="city", range_m=1)
    assert content(lake.read("contacts")) == [("city", 1.0, "c", "d", 0.0, 1.0)]
    assert not newer.exists()
    assert not list((lake.storage.root / "_staging").iterdir())


def test_what_is_being_read_is_not_removed_under_the_reader(spark: SparkSession, lake: Lake) -> None:
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
    assert isinstance(lake.storage, LocalStorage)
    assert not list((lake.storage.root / "_staging").iterdir())


def test_dropping_removes_a_partition_alone(spark: SparkSession, lake: Lake) -> None:
    for trace in ("one", "two"):
        lake.write(contacts(spark, "ab"), "contacts", trace=trace, range_m=1)
    lake.drop("contacts", trace="one")
    lake.drop("contacts", trace="three")
    assert lake.partitions("contacts") == [{"trace": "two", "range_m": "1.0"}]
    assert len(files(lake)) == 1


HOLDER = """
import sys
from collections.abc import Callable
from pathlib import Path
from earshot.pipeline.lake.leases import Leases
leases = Leases(Path(sys.argv[1]))
leases.take("contacts/version=1", "_staging/x")
leases.release("_staging/x")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lease_lasts_as_long_as_its_process_however_it_ends(tmp_path: Path) -> None:
    ours = Leases(tmp_path)
    ours.take("positions/version=2")
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    assert ours.in_use() == {"positions/version=2", "contacts/version=1"}
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert ours.in_use() == {"positions/version=2"}
    assert [path.name for path in tmp_path.iterdir()] == [ours.name]
    ours.close()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(params=["local", "hadoop", "arrow"])
def storage(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Storage:
    root = tmp_path / "root"
    match request.param:
        case "local":
            return LocalStorage(root)
        case "hadoop":
            return HadoopStorage(f"file:{root}", spark)
        case _:
            return ArrowStorage(f"file://{root}")


def test_every_storage_does_the_same(storage: Storage) -> None:
    assert not storage.exists()
    assert (list(storage.files("t")), storage.folders("t")) == ([], [])
    storage.touch("t/a=1/v1/x")
    storage.touch("t/a=1/v1/y")
    storage.rename("t/a=1/v1", "t/b=2 z/v2")
    assert storage.exists()
    assert sorted(file for file in storage.files("t") if not file.endswith(".crc")) == ["t/b=2 z/v2/x", "t/b=2 z/v2/y"]
    assert storage.folders("t") == ["a=1", "b=2 z"]
    assert 0.0 <= storage.age_s("t/b=2 z") < 3600.0
    storage.delete("t/b=2 z/v2/x")
    storage.delete("t/nothing")
    storage.delete("t/a=1")
    assert sorted(file for file in storage.files("t") if not file.endswith(".crc")) == ["t/b=2 z/v2/y"]


def test_a_lake_at_a_hadoop_address_keeps_one_version_for_readers(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    lake.storage = HadoopStorage(f"file:{tmp_path}/lake", spark)
    lake._leases = None
    for pair in ("ab", "cd", "ef"):
        lake.write(contacts(spark, pair), "contacts", trace="city", range_m=1)
    assert content(lake.read("contacts", trace="city")) == [("city", 1.0, "e", "f", 0.0, 1.0)]
    assert len(list((tmp_path / "lake").rglob("_COMMITTED-*"))) == 2


def test_schemas_name_their_partition_columns_first_and_the_log_follows_the_records() -> None:
    from earshot.records import COLUMNS

    assert tuple(CONTACTS.columns)[:2] == CONTACTS.partition_by == ("trace", "range_m")
    assert tuple(TABLES["log"].columns) == ("run", *COLUMNS)
    assert len({table.digest for table in TABLES.values()}) == len(TABLES)


KILLED = textwrap.dedent(
    """
    import sys
    from earshot.pipeline.lake.lake import Lake
    from earshot.pipeline.session import spark_session

    lake = Lake(spark_session("local[2]", keep_archive=False), sys.argv[1])
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
    assert isinstance(lake.storage, LocalStorage)
    writer = subprocess.Popen([sys.executable, "-c", KILLED, str(lake.storage.root), str(started)])
    wait_for(lambda: len(list(started.iterdir())) == 2 and list((lake.storage.root / "_staging").iterdir()))
    workers = [int(path.name) for path in started.iterdir()]
    writer.kill()
    writer.wait()
    assert content(lake.read("contacts")) == [("city", 1.0, "a", "b", 0.0, 1.0)]
    wait_for(lambda: not any(_alive(worker) for worker in workers))
    lake.write(contacts(spark, "cd"), "contacts", trace="city", range_m=1)
    assert content(lake.read("contacts")) == [("city", 1.0, "c", "d", 0.0, 1.0)]
    assert list((lake.storage.root / "_staging").iterdir()) == []


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
