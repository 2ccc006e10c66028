"""What surrounds Spark, without starting it: causes of failures, progress, the process's variables, sizes."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.errors import EarshotError, SparkFailure, SparkUnavailable, TraceError, UsageError
from earshot.pipeline import session as sources_session
from earshot.pipeline.session import LITTLE_BYTES, holds_little
from earshot.pipeline.spark import progress, session
from earshot.pipeline.spark.failures import _causes, _raised_again, cause_line, named_error
from earshot.pipeline.spark.java import Java
from earshot.pipeline.spark.progress import tasks_of_jobs, watch_jobs
from earshot.pipeline.spark.worker_daemon import without_archives

# Failures.


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("org.apache.spark.SparkException: Job aborted\n\tat org.x.Y.run(Y.java:1)", "SparkException: Job aborted"),
        ("a.b.Inner$Error: no\n  ... 12 more", "Inner$Error: no"),
        ("the path a.b.c: is gone", "the path a.b.c: is gone"),
        ("[TABLE_OR_VIEW_NOT_FOUND] There is no table. SQLSTATE: 42P01", "There is no table."),
        ("[A.B_2] first [OTHER] second", "first second"),
        ("\n  first  \nsecond\nCaused by: third", "first"),
        ('a warning\nException in thread "main" java.io.IOException: full', "IOException: full"),
        ("Traceback (most recent call last):\nKeyError: 'a'\nduring that\nValueError: b\nTail", "ValueError: b"),
        ("Traceback (most recent call last):\n  nothing of Python", "Traceback (most recent call last):"),
        ("KeyError: 'a'\nValueError: b", "KeyError: 'a'"),
        ("", "no reason given"),
        ("\n\tat org.x.Y.run(Y.java:1)", "no reason given"),
    ],
)
def test_the_line_that_says_most_is_the_cause(text: str, line: str) -> None:
    assert cause_line(text) == line


@pytest.mark.parametrize(
    ("text", "starting", "kind", "words"),
    [
        ("x earshot.errors.TraceError: a.csv is empty\n\tat org.x.Y.run(", None, TraceError, "a.csv is empty"),
        ("java.lang.OutOfMemoryError: heap", "yarn", SparkFailure, "Spark ran out of memory"),
        ("No FileSystem for scheme s3a", "yarn", SparkFailure, r"no file system for this address \(No FileSystem"),
        ("ClassNotFoundException: Class a.S3AFileSystem", None, SparkFailure, "give it the jar"),
        ("ClassNotFoundException: Class a.Other", None, SparkFailure, "a Spark job failed: ClassNotFound"),
        ("a stopped SparkContext", None, SparkFailure, "a Spark job failed: a stopped SparkContext"),
        ("a stopped SparkContext", "spark://a:1", SparkUnavailable, "at spark://a:1: the master does not answer"),
        ("boom", "yarn", SparkUnavailable, "^no Spark session at yarn: boom$"),
    ],
)
def test_what_spark_throws_is_named_by_its_text(text: str, starting: str | None, kind: type, words: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(EarshotError, match=words) as caught:
        raise named_error(PySparkException(text), starting) or AssertionError
    assert type(caught.value) is kind


def test_a_lost_connection_is_sparks_and_another_error_is_not() -> None:
    assert "Spark's own process has ended" in str(named_error(ConnectionResetError()))
    assert named_error(ValueError("OutOfMemoryError")) is None


def test_an_error_of_ours_is_raised_again_as_what_it_was_where_its_name_is_known() -> None:
    found = [_raised_again(name, "why") for name in ("TraceError", "UsageError", "NoSuchError")]
    assert [(type(one), str(one)) for one in found] == [
        (TraceError, "why"), (UsageError, "why"), (EarshotError, "why"),
    ]  # fmt: skip


class JavaError:
    """A Java exception as Py4J shows it, with so many causes."""

    def __init__(self, causes: int) -> None:
        self.causes = causes

    def toString(self) -> str:
        return f"error {self.causes}"

    def getCause(self) -> JavaError | None:
        return JavaError(self.causes - 1) if self.causes else None


def test_the_first_twenty_causes_of_an_exception_are_read() -> None:
    assert _causes(JavaError(1)) == "error 1\nerror 0"
    assert _causes(JavaError(40)).splitlines() == [f"error {number}" for number in range(40, 20, -1)]


# Progress.


class Tracker:
    """Spark's own: a job of two stages, one of which is not planned yet, and a job that has just ended."""

    def getActiveJobsIds(self) -> list[int]:
        return [1, 2, 3]

    def getJobInfo(self, job: int) -> Any:
        return {1: SimpleNamespace(stageIds=[10, 11]), 2: None, 3: SimpleNamespace(stageIds=[12])}[job]

    def getStageInfo(self, stage: int) -> Any:
        done_of = {10: (3, 5), 12: (1, 4)}.get(stage)
        return done_of and SimpleNamespace(numCompletedTasks=done_of[0], numTasks=done_of[1])


def local_session(tracker: Any) -> Any:
    return SimpleNamespace(_jsparkSession=None, sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def test_tasks_are_those_of_the_stages_that_are_planned() -> None:
    assert tasks_of_jobs(local_session(Tracker())) == (4, 9)


def test_jobs_are_looked_at_again_and_again_until_the_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress.POLL_S == 0.5
    monkeypatch.setattr(progress, "POLL_S", 0.001)
    seen: list[tuple[int, int]] = []
    often = threading.Event()
    watchers: set[threading.Thread] = set()

    def show(done: int, total: int) -> None:
        watchers.add(threading.current_thread())
        seen.append((done, total))
        if len(seen) == 3:
            often.set()

    with watch_jobs(local_session(Tracker()), show):
        assert often.wait(5.0)
    assert set(seen) == {(4, 9)}
    assert [one.is_alive() for one in watchers] == [False]


def test_nothing_is_shown_while_no_job_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "POLL_S", 0.001)
    asked = threading.Event()

    class Idle(Tracker):
        def getActiveJobsIds(self) -> list[int]:
            asked.set()
            return []

    seen: list[tuple[int, int]] = []
    with watch_jobs(local_session(Idle()), lambda done, total: seen.append((done, total))):
        assert asked.wait(5.0)
    assert seen == []


def test_a_server_tells_its_progress_until_the_block_ends() -> None:
    handlers: list[Any] = []
    remote: Any = SimpleNamespace(registerProgressHandler=handlers.append, removeProgressHandler=handlers.remove)
    seen: list[tuple[int, int]] = []
    with watch_jobs(remote, lambda done, total: seen.append((done, total))):
        stages = [SimpleNamespace(num_completed_tasks=done, num_tasks=5) for done in (5, 2)]
        handlers[0](stages=stages, inflight_tasks=1, operation_id="x", done=False)
        handlers[0](stages=None)
    assert seen == [(7, 10), (0, 0)]
    assert handlers == []


# The process in which Spark starts.


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Neither Java nor an archive is looked for."""
    monkeypatch.setattr(session, "find_java", lambda: Java(Path("/java/bin/java"), "21"))
    monkeypatch.setattr(session, "java_home", lambda *_: Path("/java"))
    monkeypatch.setattr(session, "cache_folder", lambda: tmp_path)
    archive = SimpleNamespace(find=lambda: "kept.jsa")
    monkeypatch.setattr(session, "ClassArchive", SimpleNamespace(of=lambda *_: archive))
    monkeypatch.setattr(session._JvmEnd, "register", lambda _: None)
    return tmp_path


@pytest.mark.parametrize("local", [True, False])
def test_sparks_process_has_its_variables_and_ours_come_back(
    no_java: Path, monkeypatch: pytest.MonkeyPatch, local: bool
) -> None:
    for name in ("JAVA_HOME", "SPARK_HOME", "SPARK_LOCAL_IP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "/their/python")
    before = dict(os.environ)
    ours: dict[str, str] = {}
    with session._jvm_environment(local, ours, True, None, False):
        inside = dict(os.environ)
    assert dict(os.environ) == before
    assert (inside["JAVA_HOME"], inside["PYSPARK_DRIVER_PYTHON"]) == ("/java", sys.executable)
    assert inside["PYSPARK_PYTHON"] == (sys.executable if local else "/their/python")
    assert inside.get("SPARK_LOCAL_IP") == ("127.0.0.1" if local else None)
    assert ("SPARK_HOME" in inside) is local
    options = ours["spark.driver.defaultJavaOptions"]
    assert options.startswith(session.JVM_FLAGS if local else "-Xlog:disable ")
    assert [part in options for part in (session.MUCH_FLAGS, "-XX:SharedArchiveFile=kept.jsa")] == [local, local]
    assert session.SMALL_FLAGS not in options
    assert ours["spark.sql.warehouse.dir"] == str(no_java / "warehouse")


@pytest.mark.usefixtures("no_java")
def test_variables_come_back_when_spark_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/theirs")
    with pytest.raises(SparkFailure), session._jvm_environment(False, {}, True, None, False):
        raise SparkFailure("no")
    assert os.environ["JAVA_HOME"] == "/theirs"


@pytest.mark.parametrize(
    ("gib", "memory"), [(1, "1024m"), (4, "1024m"), (16, "4096m"), (32, "8192m"), (64, "8192m"), (None, "1024m")]
)
def test_spark_gets_a_quarter_of_the_memory_from_1_to_8_gib(
    monkeypatch: pytest.MonkeyPatch, gib: int | None, memory: str
) -> None:
    def reported(name: str) -> int:
        if gib is None:
            raise ValueError(name)
        return {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gib << 18}[name]

    monkeypatch.setattr(os, "sysconf", reported)
    assert session._driver_memory() == memory


# How much there is to do.


def test_what_holds_little_is_reported_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LITTLE_BYTES == 8 * 1024 * 1024
    monkeypatch.setattr(sources_session, "LITTLE_BYTES", 10)
    lake = tmp_path / "lake"
    (lake / "_delta_log").mkdir(parents=True)
    for name in ("_delta_log/0.json", "page.html"):
        (lake / name).write_bytes(bytes(11))
    (lake / "part.parquet").write_bytes(bytes(6))
    (lake / "_delta_log" / "checkpoint.parquet").write_bytes(bytes(4))
    assert holds_little([str(lake), str(tmp_path / "absent")])
    assert holds_little([f"file://{lake}"])
    assert not holds_little(["s3a://bucket/lake"])
    (tmp_path / "walk-1.csv").write_text("x")
    assert not holds_little([str(lake), f"{tmp_path}/walk-*.csv"])
    assert not holds_little([f"{tmp_path}/walk-*.csv", str(lake)])
    assert holds_little([str(tmp_path / "walk-1.csv")])


def test_archives_of_pyspark_whose_code_is_installed_are_not_imported_from(tmp_path: Path) -> None:
    lib = tmp_path / "site" / "pyspark" / "python" / "lib"
    paths = [str(lib / "pyspark.zip"), str(tmp_path / "site"), str(tmp_path / "own.zip"), "", str(tmp_path / "more")]
    assert without_archives(paths) == paths[1:]
    assert without_archives(paths[:1]) == paths[:1], "nothing else has its code"
