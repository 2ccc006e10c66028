"""Lakes and traces in an object store: a real S3 server, reached over HTTP by driver and workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from all_stages import ANSWERS, answers, check_writers_at_once, inputs, run_stages, write_inputs
from object_store import BUCKET, running_store
from pyspark.sql import SparkSession

from earshot.errors import SparkFailure, TraceError
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.oracle.own_workloads import own_events, own_subscriptions
from earshot.pipeline.spark.failures import named_errors
from earshot.traces.files import expanded, size_of

ROOT = f"s3a://{BUCKET}"


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, str]]:
    """One server for all tests: each writes into a lake of its own."""
    with running_store({**inputs(), "traces/deep/x.csv": "", "traces/_hidden.csv": ""}) as variables:
        yield variables


@pytest.fixture
def store(running: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in running.items():
        monkeypatch.setenv(name, value)
    return running


@pytest.fixture
def spark_at_store(spark: SparkSession, store: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """The session; its workers find the store."""
    for name, value in store.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    return spark


@pytest.mark.usefixtures("store")
def test_addresses_are_patterns_folders_and_files() -> None:
    both = [f"{ROOT}/traces/ann.csv", f"{ROOT}/traces/bob.csv"]
    assert expanded([f"{ROOT}/traces/*.csv"]) == expanded([f"{ROOT}/traces"]) == expanded([f"{ROOT}/traces/"]) == both
    assert expanded([f"{ROOT}/tr*/a??.csv"]) == expanded([both[0]]) == both[:1]
    assert size_of(both[0]) == len(inputs()["traces/ann.csv"])
    with pytest.raises(TraceError, match="there is no trace file s3a://earshot-test/traces/no"):
        expanded([f"{ROOT}/traces/no*.csv"])


@pytest.mark.usefixtures("store")
def test_concurrent_commits_to_an_object_store_are_all_kept() -> None:
    lake = ArrowLake(f"{ROOT}/lake-of-writers")
    check_writers_at_once(lake)
    (table,) = lake.tables()
    assert (table["rows"], table["partitions"]) == (9, 9)
    for log in lake.logs():
        log.compact()
        log.vacuum(0.0)
    assert lake.read("runs").num_rows == 9


@pytest.mark.slow
@pytest.mark.spark
def test_a_session_without_the_jar_reads_and_writes_a_lake_in_an_object_store(
    spark_at_store: SparkSession, tmp_path: Path
) -> None:
    """Files of a trace and the lake are in the store; events, which Spark itself reads, are not."""
    local = write_inputs(tmp_path)
    events, wanted = str(local / "sirens.jsonl"), str(local / "wanted.jsonl")
    done = answers(Lake(spark_at_store, f"{ROOT}/lake"), f"{ROOT}/traces/*.csv", events, wanted)
    assert {name: done[name] for name in ANSWERS} == ANSWERS
    subscriptions = own_subscriptions(spark_at_store, "w", f"{ROOT}/wanted.jsonl").collect()
    assert [row["node"] for row in subscriptions] == ["bob"]
    with pytest.raises(SparkFailure, match=r"Spark has no file system for this address .*:hadoop-aws"), named_errors():
        own_events(spark_at_store, "w", [f"{ROOT}/sirens.jsonl"]).collect()


JARS = os.environ.get("EARSHOT_S3A_JARS", "")


@pytest.mark.spark
@pytest.mark.skipif(not JARS, reason="no S3A jars; name their folder in EARSHOT_S3A_JARS (docs: clusters)")
def test_with_the_jars_spark_reads_everything_from_the_store(store: dict[str, str], tmp_path: Path) -> None:
    numbers = {
        "threads.keepalivetime": "60",
        "connection.establish.timeout": "30000",
        "connection.timeout": "200000",
        "multipart.purge.age": "86400",
    }  # the jars of an older Hadoop do not know "60s"
    s3a = {
        "endpoint": store["AWS_ENDPOINT_URL"],
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "access.key": "a",
        "secret.key": "b",
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        **numbers,
    }
    settings = {"spark.driver.extraClassPath": f"{JARS}/*"} | {f"spark.hadoop.fs.s3a.{k}": v for k, v in s3a.items()}
    session = {"master": "local[2]", "settings": settings, "keep_archive": False}
    done = run_stages(session, f"{ROOT}/lake-by-jars", ROOT, XDG_CACHE_HOME=str(tmp_path))
    assert {name: done[name] for name in ANSWERS} == ANSWERS
