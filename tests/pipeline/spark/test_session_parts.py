"""How a session is started and ended, without Spark: settings, variables, the package for workers, the archive."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyspark.sql
import pytest
from pyspark.errors import PySparkRuntimeError
from spark_on_duckdb import Session

from earshot.errors import SparkUnavailable, UsageError
from earshot.pipeline.spark import session
from earshot.pipeline.spark.session import (
    NEEDED,
    _JvmEnd,
    _probe,
    _questions,
    check_executors,
    is_connect,
    package_zip,
    parallelism,
    rehearse,
    running_session,
    spark_version,
    start_session,
)

SPARKS = ("MASTER", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT",
          "SPARK_DRIVER_MEMORY")  # fmt: skip


class Started(list[Any]):
    """Notes what a start does, in order."""

    made = SimpleNamespace(addArtifacts=None)

    def noting(self, name: str, answer: Any = None) -> Any:
        def step(*given: Any, **named: Any) -> Any:
            self.append((name, *given, *sorted(named.items())))
            return answer

        return step

    @property
    def settings(self) -> dict[str, str]:
        return dict(one[1:] for one in self if one[0] == "config")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    """Sessions that are not started."""
    for name in SPARKS:
        monkeypatch.delenv(name, raising=False)
    done = Started()

    class Builder:
        def remote(self, address: str) -> Builder:
            done.append(("remote", address))
            return self

        def config(self, name: str, value: str) -> Builder:
            done.append(("config", name, value))
            return self

        def getOrCreate(self) -> Any:
            done.append(("made",))
            return SimpleNamespace(addArtifacts=done.noting("addArtifacts"))

    class Fake:
        builder = Builder()
        _instantiatedSession: Any = None

        @staticmethod
        def getActiveSession() -> Any:
            return None

    @contextmanager
    def environment(local: bool, _: Any, keep: bool, notice: Any, small: bool) -> Iterator[None]:
        done.append(("environment", local, keep, notice, small))
        yield
        done.append(("end of environment",))

    monkeypatch.setattr(pyspark.sql, "SparkSession", Fake)
    monkeypatch.setattr(session, "_jvm_environment", environment)
    monkeypatch.setattr(session, "_launch_jvm", done.noting("launch"))
    monkeypatch.setattr(session, "_watch_interrupts", done.noting("watch"))
    monkeypatch.setattr(session, "_silence_query_logs", done.noting("silence"))
    monkeypatch.setattr(session, "check_executors", done.noting("check"))
    monkeypatch.setattr(session, "package_zip", lambda folder: folder / "us.zip")
    monkeypatch.setattr(session, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(session, "_driver_memory", lambda: "5g")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    return done


def steps(done: Started) -> list[str]:
    return [one[0] for one in done if one[0] not in ("config", "silence")]


@pytest.mark.parametrize(("master", "wanted"), [(None, "local[*]"), ("local[3]", "local[3]")])
def test_a_local_session_has_our_settings_for_its_cores(started: Started, master: str | None, wanted: str) -> None:
    def notice(text: str) -> None:
        del text

    start_session(master, None, {"spark.ui.enabled": "true", "spark.x": "y"}, False, notice)
    assert steps(started) == ["environment", "launch", "made", "end of environment", "watch"]
    assert ("environment", True, False, notice, False) in started
    found = started.settings
    assert found == started[steps_at(started, "launch")][1]
    assert {name: found[name] for name in ("spark.master", "spark.app.name", "spark.ui.enabled", "spark.x")} == {
        "spark.master": wanted, "spark.app.name": "earshot", "spark.ui.enabled": "true", "spark.x": "y",
    }  # fmt: skip
    assert (found["spark.sql.shuffle.partitions"], found["spark.driver.memory"]) == (
        "12" if master is None else "6",
        "5g",
    )
    assert (found["spark.sql.adaptive.enabled"], found["spark.driver.host"]) == ("true", "127.0.0.1")
    assert "spark.submit.pyFiles" not in found


def steps_at(done: Started, name: str) -> int:
    return [one[0] for one in done].index(name)


def test_little_data_and_few_cores_need_little(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    start_session("local", None, {})
    assert ("environment", True, True, None, False) in started
    assert started.settings["spark.sql.shuffle.partitions"] == "4"
    started.clear()
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "9g")
    start_session("local[8]", None, {}, small=True)
    assert ("environment", True, True, None, True) in started
    found = started.settings
    assert (found["spark.sql.shuffle.partitions"], found["spark.sql.adaptive.enabled"]) == ("1", "false")
    assert found["spark.driver.memory"] == "9g"


def test_a_cluster_gets_the_package_and_is_checked(started: Started) -> None:
    start_session("spark://a:7077", None, {}, small=True)
    assert steps(started) == ["environment", "launch", "made", "end of environment", "watch", "check"]
    assert ("environment", False, True, None, True) in started
    found = started.settings
    assert (found["spark.master"], Path(found["spark.submit.pyFiles"]).name) == ("spark://a:7077", "us.zip")
    local = {"spark.driver.host", "spark.driver.memory", "spark.sql.shuffle.partitions"}
    assert not local & found.keys()


def test_spark_submit_names_the_master_itself(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    start_session(None, None, {})
    assert "spark.master" not in started.settings
    started.clear()
    start_session("yarn", None, {})
    assert started.settings["spark.master"] == "yarn"


def test_a_server_gets_the_package_and_is_checked(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    start_session(None, "sc://a", {"spark.x": "y"})
    assert started[1:] == [
        ("remote", "sc://a"), ("config", "spark.sql.session.timeZone", "UTC"), ("config", "spark.x", "y"), ("made",),
        ("addArtifacts", str(session.cache_folder() / "us.zip"), ("pyfile", True)), started[-1],
    ]  # fmt: skip
    assert started[-1][0] == "check"
    monkeypatch.setenv("SPARK_REMOTE", "sc://b")
    started.clear()
    start_session(None, None, {})
    assert ("remote", "sc://b") in started
    started.clear()
    start_session("local", None, {})
    assert started.settings["spark.master"] == "local"


def test_a_server_needs_sparks_client(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> Any:
        return None if name == "zstandard" else object()

    monkeypatch.setattr(session.importlib.util, "find_spec", find)
    with pytest.raises(SparkUnavailable, match="--remote needs Spark's Connect client"):
        start_session(None, "sc://a", {})
    assert steps(started) == []


def test_the_session_that_runs_is_taken(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="give --master or --remote, not both"):
        start_session("local", "sc://a", {})
    of_a_stream, first = object(), object()
    fake: Any = pyspark.sql.SparkSession
    monkeypatch.setattr(fake, "getActiveSession", lambda: of_a_stream)
    assert running_session() is of_a_stream is start_session("local", None, {})
    fake._instantiatedSession = first
    assert running_session() is first
    assert list(started) == []
    monkeypatch.delitem(sys.modules, "pyspark.sql")
    assert running_session() is None


@pytest.mark.parametrize(
    ("given", "defaults", "master"),
    [
        ({"MASTER": "spark://a:1", "PYSPARK_SUBMIT_ARGS": "--master yarn x"}, "", "spark://a:1"),
        ({"PYSPARK_SUBMIT_ARGS": "--name 'a --master b' --master yarn x"}, "spark.master c", "yarn"),
        ({"PYSPARK_SUBMIT_ARGS": "--name x --master=spark://b:1"}, "", "spark://b:1"),
        ({"PYSPARK_SUBMIT_ARGS": "--name x"}, "# spark.master a\nspark.masters b\n  spark.master = spark://c:1 \n",
         "spark://c:1"),
        ({}, "spark.master\tx\nspark.master=local[2]\n", "local[2]"),
        ({}, "spark.executor.cores 2\n", None),
    ],
)  # fmt: skip
def test_the_master_is_named_by_variables_before_arguments_before_files(
    given: dict[str, str], defaults: str, master: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SPARKS:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    for name, value in {"SPARK_CONF_DIR": str(tmp_path), **given}.items():
        monkeypatch.setenv(name, value)
    assert session._master_of_the_environment() == master
    if not given:
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "absent"))
        assert session._master_of_the_environment() is None


@pytest.mark.parametrize(
    ("master", "cores"), [("local", 1), ("local[3]", 3), ("local[4,2]", 4), ("local[*]", 6), ("local[*,3]", 6)]
)
def test_a_local_master_says_how_many_cores(master: str, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert session._cores(master) == cores


def test_what_runs_at_once_is_asked_for_once() -> None:
    asked: list[Any] = []
    distinct = SimpleNamespace(distinct=lambda: SimpleNamespace(count=lambda: asked.append("count") or 7))
    server: Any = SimpleNamespace(
        range=lambda rows: asked.append(rows) or SimpleNamespace(selectExpr=lambda _: distinct), version="4.2.1"
    )
    assert [parallelism(server), parallelism(server)] == [7, 7]
    assert asked == [10_000, "count"]
    local: Any = SimpleNamespace(_jsparkSession=None, sparkContext=SimpleNamespace(defaultParallelism=0))
    assert (parallelism(local), is_connect(local), is_connect(server)) == (1, False, True)
    local.sparkContext.defaultParallelism = 5
    assert parallelism(local) == 5
    assert spark_version(server) == (4, 2)


# -- Spark's own process


class Process:
    """Ends with a code, or is killed."""

    def __init__(self, code: int | None) -> None:
        self.code = code
        self.done: list[str] = []
        self.stdin = SimpleNamespace(close=lambda: self.done.append("close"))

    def wait(self, timeout: float | None = None) -> int:
        self.done.append("wait" if timeout is None else f"wait {timeout}")
        if self.code is None and timeout is not None:
            raise subprocess.TimeoutExpired("java", timeout)
        return self.code or 0

    def kill(self) -> None:
        self.done.append("kill")


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to Spark's context."""
    done: list[str] = []
    active = SimpleNamespace(stop=lambda: done.append("stop"))
    gateway = SimpleNamespace(shutdown=lambda: done.append("shutdown"), proc=None)
    monkeypatch.setattr(pyspark, "SparkContext", SimpleNamespace(_active_spark_context=active, _gateway=gateway))
    monkeypatch.setattr(session, "_interrupted", threading.Event())
    monkeypatch.setattr(session, "running_session", lambda: "session")
    monkeypatch.setattr(session, "rehearse", lambda one: done.append(f"rehearse {one}"))
    return done


def test_an_archive_is_kept_when_spark_has_ended_well(context: list[str], tmp_path: Path) -> None:
    (tmp_path / "draft").write_text("classes")
    kept: list[Path] = []
    archive: Any = SimpleNamespace(keep=kept.append)
    end = _JvmEnd(archive, tmp_path / "draft", context.append)
    process: Any = Process(0)
    end.process = process
    end()
    assert context == [
        "keeping Spark's classes for quicker starts (once, some ten seconds)", "rehearse session", "stop", "shutdown",
    ]  # fmt: skip
    assert (process.done, kept) == (["close", "wait 120"], [tmp_path / "draft"])
    assert not (tmp_path / "draft").exists()


@pytest.mark.parametrize("code", [1, None])
def test_no_archive_is_kept_of_a_process_that_failed_or_did_not_end(
    code: int | None, context: list[str], tmp_path: Path
) -> None:
    (tmp_path / "draft").write_text("classes")
    kept: list[Path] = []
    archive: Any = SimpleNamespace(keep=kept.append)
    end = _JvmEnd(archive, tmp_path / "draft")
    process: Any = Process(code)
    end.process = process
    end()
    assert context == ["rehearse session", "stop", "shutdown"]
    assert process.done == ["close", "wait 120", *(["kill", "wait"] if code is None else [])]
    assert (kept, (tmp_path / "draft").exists()) == ([], False)


@pytest.mark.parametrize("with_archive", [True, False])
def test_ctrl_c_ends_spark_without_a_rehearsal(with_archive: bool, context: list[str], tmp_path: Path) -> None:
    session._interrupted.set()
    kept: list[Path] = []
    archive: Any = SimpleNamespace(keep=kept.append) if with_archive else None
    end = _JvmEnd(archive, tmp_path / "draft", context.append)
    process: Any = Process(-9)
    end.process = process
    end()
    assert context == ["stop", "shutdown"]
    assert process.done == [*(["kill"] if with_archive else []), "close", "wait 120"]
    assert kept == []


def test_a_process_of_ours_is_ended_with_this_one(context: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[Any] = []
    monkeypatch.setattr(session.atexit, "register", registered.append)
    end = _JvmEnd()
    end.register()
    assert (registered, end.process, context) == ([], None, [])
    process: Any = Process(0)
    pyspark.SparkContext._gateway.proc = process
    end.register()
    assert (registered, end.process) == ([end], process)


def test_ctrl_c_is_remembered_and_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers: list[Any] = []
    passed: list[Any] = []
    monkeypatch.setattr(session, "_interrupted", threading.Event())
    monkeypatch.setattr(session.signal, "getsignal", lambda _: lambda *given: passed.append(given))
    monkeypatch.setattr(session.signal, "signal", lambda number, handler: handlers.append((number, handler)))
    elsewhere = threading.Thread(target=session._watch_interrupts)
    elsewhere.start()
    elsewhere.join()
    assert handlers == []
    session._watch_interrupts()
    ((number, handler),) = handlers
    assert number == session.signal.SIGINT
    assert not session._interrupted.is_set()
    handler(2, "frame")
    assert (session._interrupted.is_set(), passed) == (True, [(2, "frame")])
    monkeypatch.setattr(session.signal, "getsignal", lambda _: session.signal.SIG_IGN)
    session._watch_interrupts()
    handlers[-1][1](2, "frame")
    assert len(passed) == 1


# -- workers


def test_the_package_is_a_zip_whose_bytes_depend_on_its_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "earshot"
    (package / "inner" / "__pycache__").mkdir(parents=True)
    for name in ("__init__.py", "inner/b.py", "inner/__pycache__/b.pyc"):
        (package / name).write_text(name)
    monkeypatch.setattr("earshot.__file__", str(package / "__init__.py"))
    first = package_zip(tmp_path)
    with zipfile.ZipFile(io.BytesIO(first.read_bytes())) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == {
            "earshot/__init__.py": "__init__.py", "earshot/inner/b.py": "inner/b.py",
        }  # fmt: skip
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    first.write_bytes(b"kept")
    os.utime(package / "__init__.py", (1.0, 1.0))
    assert package_zip(tmp_path) == first
    assert first.read_bytes() == b"kept"
    assert (first.name.startswith("earshot-"), len(first.stem)) == (True, 20)
    (package / "inner" / "b.py").write_text("changed")
    assert package_zip(tmp_path) != first


def workers(*found: dict[str, Any]) -> Any:
    rows = [SimpleNamespace(found=json.dumps(one)) for one in found]
    asked = SimpleNamespace(mapInArrow=lambda *_: SimpleNamespace(collect=lambda: rows))
    return SimpleNamespace(range=lambda *of: asked if of == (0, 4, 1, 4) else None)


def test_a_worker_of_another_python_or_without_packages_is_refused() -> None:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    good = {"python": version, "missing": []}
    check_executors(workers(good, good))
    with pytest.raises(SparkUnavailable, match=f"the cluster's workers run Python 2.7, this is {version};"):
        check_executors(workers(good, {"python": "2.7", "missing": ["numpy"]}))
    with pytest.raises(SparkUnavailable, match="the cluster's workers lack numpy, scipy;"):
        check_executors(workers(good, {"python": version, "missing": ["numpy", "scipy"]}))


def test_a_worker_says_its_python_and_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "NEEDED", (*NEEDED, "no_such_package"))
    batches = iter([pa.RecordBatch.from_pydict({"id": [1]})] * 2)
    found = [json.loads(row["found"]) for batch in _probe(batches) for row in batch.to_pylist()]
    version = ".".join(map(str, sys.version_info[:2]))
    assert found == [{"python": version, "missing": ["no_such_package"]}] * 2


def test_a_rehearsal_asks_every_question_once(quick_spark: Session) -> None:
    """Nodes that are joined, nodes that are grouped, and all."""
    spark: Any = quick_spark
    assert rehearse(spark) == 2 + 2 + 1
    rows: Any = quick_spark.createDataFrame(
        [("walk", "a", 1.0), ("bus", "b", 1.0)], "trace string, node string, time double"
    )
    assert [row["node"] for row in _questions(rows).collect()] == ["a", "a", "all", "b"]


# -- starting Spark's process


class Gateway:
    """Starts instead of Spark's process: writes to its log, and may fail."""

    def __init__(self, says: bytes, fails: bool) -> None:
        self.says, self.fails = says, fails
        self.given: list[Any] = []

    def __call__(self, conf: Any, popen: dict[str, Any]) -> str:
        self.given.append((dict(conf), popen["stdout"] is popen["stderr"]))
        popen["stdout"].write(self.says)
        popen["stdout"].flush()
        if self.fails:
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        return "gateway"


class Conf(dict[str, str]):
    def setAll(self, pairs: list[tuple[str, str]]) -> Conf:
        self.update(pairs)
        return self


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """What the context is made with."""
    done: list[Any] = []
    fake = SimpleNamespace(_gateway=None, _ensure_initialized=lambda **given: done.append(given["gateway"]))
    monkeypatch.setattr(pyspark, "SparkContext", fake)
    monkeypatch.setattr(pyspark, "SparkConf", Conf)
    monkeypatch.setattr(session, "cache_folder", lambda: tmp_path)
    return done


def test_sparks_process_writes_to_a_log_of_its_own(
    launched: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gateway = Gateway(b"a warning\n", fails=False)
    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", gateway)
    monkeypatch.setattr(session, "_MOST_LOG_BYTES", 20)
    log = tmp_path / "spark-process.log"
    for size in (10, 20, 30):
        session._launch_jvm({"spark.x": "y"})
        assert log.stat().st_size == size
    session._launch_jvm({"spark.x": "y"})
    assert log.read_bytes() == b"a warning\n", "it begins anew where it is too long"
    assert gateway.given == [({"spark.x": "y"}, True)] * 4
    assert launched == ["gateway"] * 4
    pyspark.SparkContext._gateway = object()  # type: ignore[assignment]
    session._launch_jvm({})
    assert len(gateway.given) == 4


def test_a_process_that_does_not_start_says_why_by_its_log(
    launched: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "spark-process.log").write_bytes(b"SparkException: of yesterday\n")
    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", Gateway(b"org.x.SparkException: no\n", fails=True))
    for wanted, where in (({"spark.master": "yarn"}, "yarn"), ({}, "this master")):
        with pytest.raises(SparkUnavailable) as caught:
            session._launch_jvm(wanted)
        log = tmp_path / "spark-process.log"
        assert str(caught.value) == f"no Spark session at {where}: SparkException: no (more in {log})"
    assert launched == []


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("small", [True, False])
def test_a_process_without_an_archive_writes_one_at_its_end_if_it_may(
    keep: bool, small: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    archive: Any = SimpleNamespace(find=lambda: None, draft=lambda: tmp_path / "draft.jsa")
    asked: list[Any] = []
    ends: list[Any] = []
    monkeypatch.setattr(session, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(session, "find_java", lambda: "java")
    monkeypatch.setattr(session, "java_home", lambda java, cache: f"{java} in {cache}")
    monkeypatch.setattr(session, "small_spark_home", lambda _, cache: cache / "small")
    monkeypatch.setattr(session, "ClassArchive", SimpleNamespace(of=lambda *given: asked.append(given) or archive))
    monkeypatch.setattr(_JvmEnd, "register", lambda end: ends.append(end))
    ours: dict[str, str] = {}
    with session._jvm_environment(True, ours, keep, print, small):
        home = tmp_path / "small" if small else Path(pyspark.__file__).parent
        assert (os.environ["SPARK_HOME"], os.environ["JAVA_HOME"]) == (str(home), f"java in {tmp_path}")
        assert ends == []
    assert asked == [("java", home, tmp_path, session.JVM_FLAGS)]
    options = ours["spark.driver.defaultJavaOptions"]
    assert (f"-XX:ArchiveClassesAtExit={tmp_path}/draft.jsa" in options) is keep
    assert ((session.SMALL_FLAGS in options), (session.MUCH_FLAGS in options)) == (small, not small)
    assert f"-Dearshot.log={tmp_path}/spark.log" in options
    (end,) = ends
    given = (archive, tmp_path / "draft.jsa", print) if keep else (None, None, None)
    assert (end.archive, end.draft, end.notice) == given


def test_failed_queries_are_not_logged_to_the_terminal() -> None:
    names = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
    before = [logging.getLogger(name).level for name in names]
    try:
        session._silence_query_logs()
        assert [logging.getLogger(name).isEnabledFor(logging.CRITICAL) for name in names] == [False, False]
    finally:
        for name, level in zip(names, before, strict=True):
            logging.getLogger(name).setLevel(level)
