"""Starting Spark: in local mode by default, on a user's cluster with a master or a remote address.

Local mode needs nothing else to be installed (see `java`), prints nothing and starts fast. On a
cluster, this package is sent to the executors.

Stages use DataFrames only: a session by `--remote` has no SparkContext. Wrap what runs Spark jobs in
`named_errors()`: a failure is then one of our errors and not a Java stack trace.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import io
import json
import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from earshot.errors import SparkUnavailable, UsageError
from earshot.pipeline.spark.failures import cause_line, named_errors
from earshot.pipeline.spark.java import (
    ClassArchive,
    cache_folder,
    find_java,
    java_home,
    small_spark_home,
    write_atomically,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Notice = Callable[[str], None]

JVM_FLAGS = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000 -Xlog:disable"
)
"""For our own JVM in local mode. Its optimising compiler is for what runs long: commands are short, and
it would take a core from them. Its own log would go to standard output."""

_MOST_LOG_BYTES = 4 << 20

MUCH_FLAGS = "-XX:+UseParallelGC"
SMALL_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SMALL_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.constraintPropagation.enabled": "false",
}
"""Where there is little data: compiling, replanning, parallel garbage collection and filters that Spark derives from
others take longer than they save."""

_COMMON = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.parquet.compression.codec": "zstd",
    # Percentiles of some thousand groups fit into memory; above 128 Spark would sort all the rows.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "8192",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "earshot.pipeline.spark.worker_daemon",
    # Listing a partitioned table is a loop of stats here; Spark would start a job for it.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}


def start_session(
    master: str | None,
    remote: str | None,
    settings: Mapping[str, str],
    keep_archive: bool = True,
    notice: Notice | None = None,
    small: bool = False,
) -> SparkSession:
    """The session that runs in this process, else a new one: see `earshot.pipeline.session.spark_session`. Our data
    sources are not registered: that costs a second."""
    if master and remote:
        raise UsageError("give --master or --remote, not both")
    if running := running_session():
        return running
    remote = remote or (None if master else os.environ.get("SPARK_REMOTE"))
    _silence_query_logs()
    with named_errors(starting=remote or master or "the local machine"):
        if remote:
            return _connect(remote, dict(settings))
        return _classic(master, dict(settings), keep_archive, notice, small)


def running_session() -> SparkSession | None:
    """The session that runs in this process. Does not load Spark."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    first: SparkSession | None = SparkSession._instantiatedSession  # a stream's batches make others active
    return first or SparkSession.getActiveSession()


def is_connect(session: SparkSession) -> bool:
    """Whether the session speaks to a server (`--remote`) and so has no SparkContext and no JVM."""
    return not hasattr(session, "_jsparkSession")


def spark_version(session: SparkSession) -> tuple[int, int]:
    """The Spark that runs the jobs, as in (4, 3): over Connect the server's."""
    major, minor, *_ = session.version.split(".")
    return int(major), int(minor)


def parallelism(session: SparkSession) -> int:
    """How many tasks run at once. A server is asked once a session: it cuts a range into that many parts."""
    if not is_connect(session):
        return max(1, int(session.sparkContext.defaultParallelism))
    known: int | None = getattr(session, "_earshot_parallelism", None)
    if known is None:
        known = session.range(10_000).selectExpr("spark_partition_id() part").distinct().count()
        session._earshot_parallelism = known  # type: ignore[attr-defined]
    return max(1, known)


def _connect(remote: str, settings: dict[str, str]) -> SparkSession:
    if any(importlib.util.find_spec(name) is None for name in ("grpc", "grpc_status", "google.rpc", "zstandard")):
        raise SparkUnavailable("--remote needs Spark's Connect client; run: pip install 'pyspark[connect]'")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(remote)
    for name, value in ({"spark.sql.session.timeZone": "UTC"} | settings).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.addArtifacts(str(package_zip(cache_folder())), pyfile=True)
    check_executors(session)
    return session


def _classic(
    master: str | None, settings: dict[str, str], keep_archive: bool, notice: Notice | None, small: bool
) -> SparkSession:
    from pyspark.sql import SparkSession

    chosen = master or _master_of_the_environment()
    local = chosen is None or chosen.startswith("local")
    ours = dict(_COMMON)
    if chosen or not _under_spark_submit():
        ours["spark.master"] = chosen or "local[*]"
    if local:
        cores = _cores(ours.get("spark.master", "local[*]"))
        ours |= _LOCAL
        ours["spark.sql.shuffle.partitions"] = str(max(4, 2 * cores))
        ours |= SMALL_SETTINGS if small else {}
        ours["spark.driver.memory"] = os.environ.get("SPARK_DRIVER_MEMORY", _driver_memory())
    else:
        # Before the session: executors must find the package in their first task.
        ours["spark.submit.pyFiles"] = str(package_zip(cache_folder()))
    with _jvm_environment(local, ours, keep_archive, notice, small):
        wanted = {"spark.app.name": "earshot"} | ours | settings
        _launch_jvm(wanted)
        builder = SparkSession.builder
        for name, value in wanted.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    _watch_interrupts()
    if not local:
        check_executors(session)
    return session


def _launch_jvm(wanted: Mapping[str, str]) -> None:
    """Start Spark's own process with its output going to a file: the terminal belongs to the command."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    conf = SparkConf().setAll(list(wanted.items()))
    log = cache_folder() / "spark-process.log"
    with log.open("ab") as file:
        if file.tell() > _MOST_LOG_BYTES:
            file.truncate(0)
        before = file.tell()
        try:
            gateway = launch_gateway(conf, {"stdout": file, "stderr": file})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError:
            text = log.read_bytes()[before:].decode("utf-8", "replace")
            where = wanted.get("spark.master", "this master")
            raise SparkUnavailable(f"no Spark session at {where}: {cause_line(text)} (more in {log})") from None
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _under_spark_submit() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _master_of_the_environment() -> str | None:
    """The master that Spark's own variables name; None where they name none."""
    if master := os.environ.get("MASTER"):
        return master
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    for word, following in pairwise([*words, ""]):
        if word == "--master":
            return following
        if word.startswith("--master="):
            return word.partition("=")[2]
    folder = os.environ.get("SPARK_CONF_DIR")
    if folder and (defaults := Path(folder) / "spark-defaults.conf").is_file():
        for line in defaults.read_text().splitlines():
            name, _, value = line.replace("=", " ").strip().partition(" ")
            if name == "spark.master":
                return value.strip()
    return None


def _cores(master: str) -> int:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    inside = master.partition("[")[2].rstrip("]").partition(",")[0]
    return int(inside) if inside.isdigit() else available if inside == "*" else 1


def _driver_memory() -> str:
    """A quarter of the machine's memory, from 1 to 8 GiB: Python workers need the rest."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        total = 4 << 30
    return f"{min(8192, max(1024, (total >> 20) // 4))}m"


@contextmanager
def _jvm_environment(
    local: bool, ours: dict[str, str], keep_archive: bool, notice: Notice | None, small: bool
) -> Iterator[None]:
    """The variables under which Spark's JVM starts; the process's own are put back afterwards."""
    import pyspark

    cache = cache_folder()
    java = find_java()
    own_home = Path(pyspark.__file__).parent
    if small:
        own_home = small_spark_home(own_home, cache)
    flags = JVM_FLAGS if local else "-Xlog:disable"
    log = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"
    by_size = SMALL_FLAGS if small else MUCH_FLAGS
    options = f"{flags} {by_size if local else ''} {log} -Dearshot.log={log_file()}"
    end = _JvmEnd()
    if local:
        archive = ClassArchive.of(java, own_home, cache, flags)
        if found := archive.find():
            options += f" -XX:SharedArchiveFile={found}"
        elif keep_archive:
            draft = archive.draft()
            options += f" -XX:ArchiveClassesAtExit={draft}"
            end = _JvmEnd(archive, draft, notice)
    ours["spark.driver.defaultJavaOptions"] = options
    ours["spark.sql.warehouse.dir"] = str(cache / "warehouse")
    wanted = {
        "JAVA_HOME": str(java_home(java, cache)),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # The launcher is another JVM, which ends after a moment.
        "SPARK_LAUNCHER_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    if local:
        wanted |= {"SPARK_HOME": str(own_home), "SPARK_LOCAL_IP": "127.0.0.1"}
    elif chosen := os.environ.get("PYSPARK_PYTHON"):
        wanted["PYSPARK_PYTHON"] = chosen
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    end.register()


def log_file() -> Path:
    """Where Spark's own errors are kept."""
    return cache_folder() / "spark.log"


class _JvmEnd:
    """Ends our JVM with the process: no Spark process runs longer than the command."""

    def __init__(
        self, archive: ClassArchive | None = None, draft: Path | None = None, notice: Notice | None = None
    ) -> None:
        self.archive = archive
        self.draft = draft
        self.notice = notice
        self.process: subprocess.Popen[bytes] | None = None

    def register(self) -> None:
        from pyspark import SparkContext

        self.process = getattr(SparkContext._gateway, "proc", None)
        if self.process is not None:
            atexit.register(self)

    def __call__(self) -> None:
        from pyspark import SparkContext

        assert self.process is not None
        try:
            if self.archive and not _interrupted.is_set():
                if self.notice:
                    self.notice("keeping Spark's classes for quicker starts (once, some ten seconds)")
                with suppress(Exception):
                    if session := running_session():
                        rehearse(session)
            with suppress(Exception):
                if context := SparkContext._active_spark_context:
                    context.stop()
            with suppress(Exception):
                SparkContext._gateway.shutdown()  # type: ignore[union-attr]
            if self.archive and _interrupted.is_set():
                self.process.kill()
            with suppress(OSError):
                self.process.stdin.close()  # type: ignore[union-attr]
            ended = self.process.wait(timeout=120)
            if self.archive and self.draft and ended == 0:
                self.archive.keep(self.draft)
        except (subprocess.TimeoutExpired, KeyboardInterrupt, OSError):
            self.process.kill()
            self.process.wait()
        finally:
            if self.draft:
                self.draft.unlink(missing_ok=True)


def _silence_query_logs() -> None:
    """PySpark logs every failed query to standard error, Java's stack trace included."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


_interrupted = threading.Event()


def _watch_interrupts() -> None:
    """Remember a Ctrl-C, so that the JVM is ended at once and no archive is waited for."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGINT)

    def remember(number: int, frame: Any) -> None:
        _interrupted.set()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, remember)


# -- our package on a cluster's executors

NEEDED = ("click", "deltalake", "lxml", "msgspec", "numpy", "pandas", "pyarrow", "pyproj", "scipy", "shapely")
"What our code imports inside tasks; binary packages, so they cannot travel in the zip."


def package_zip(folder: Path) -> Path:
    """The installed package as a zip in the folder; the same bytes for the same files."""
    import earshot

    root = Path(earshot.__file__).parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                name = f"earshot/{path.relative_to(root).as_posix()}"
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), path.read_bytes())
    content = buffer.getvalue()
    target = folder / f"earshot-{hashlib.sha256(content).hexdigest()[:12]}.zip"
    if not target.is_file():
        write_atomically(target, content)
    return target


def check_executors(session: SparkSession) -> None:
    """Refuse, by name, a cluster whose workers cannot run our code."""
    probes = session.range(0, 4, 1, 4).mapInArrow(_probe, "found string")
    version = ".".join(map(str, sys.version_info[:2]))
    for row in probes.collect():
        found = json.loads(row.found)
        if found["python"] != version:
            raise SparkUnavailable(
                f"the cluster's workers run Python {found['python']}, this is {version}; "
                "set PYSPARK_PYTHON to a matching interpreter on the workers"
            )
        if found["missing"]:
            raise SparkUnavailable(
                f"the cluster's workers lack {', '.join(found['missing'])}; "
                "install earshot[pipeline] there, or set PYSPARK_PYTHON to an interpreter that has it"
            )


def _probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import importlib.util

    import pyarrow as pa

    for _ in batches:
        missing = [name for name in (*NEEDED, "earshot") if importlib.util.find_spec(name) is None]
        found = {"python": ".".join(map(str, sys.version_info[:2])), "missing": missing}
        yield pa.RecordBatch.from_pydict({"found": [json.dumps(found, sort_keys=True)]})


def rehearse(session: SparkSession) -> int:
    """Ask once of a few rows what commands ask of Spark: read a Parquet file, join, group and sort its rows, and send
    them through a Python task; how many there were. A class-data archive holds the classes that its JVM has loaded:
    the first command alone would leave out those of others."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with TemporaryDirectory(prefix="earshot-") as folder:
        part = Path(folder) / "trace=walk" / "part.parquet"
        part.parent.mkdir()
        pq.write_table(pa.table({"node": ["a", "a", "b"], "time": [0.0, 1.0, 1.0]}), part)
        reader = session.read.schema("trace string, node string, time double").option("basePath", folder)
        rows = reader.parquet(str(part))
        return len(rows.transform(_questions).mapInArrow(_same, "node string").collect())


def _questions(rows: DataFrame) -> DataFrame:
    """One row for each node of each question."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    before = F.lag("time").over(Window.partitionBy("node").orderBy("time"))
    gaps = rows.coalesce(1).select("node", "time", (F.col("time") - before).alias("gap_s"))
    grouped = gaps.groupBy("node").agg(
        F.count_distinct("time").alias("moments"),
        F.min("time").alias("start"),
        F.max("time").alias("end"),
        F.percentile_approx("gap_s", 0.5).alias("about_s"),
        F.percentile("gap_s", F.array(F.lit(0.5), F.lit(0.9))).alias("shares"),
        F.bit_xor(F.xxhash64("node", "time")).alias("content"),
    )
    whole = gaps.agg(
        F.count("*").alias("rows"), F.avg("gap_s").alias("mean_s"), F.percentile("gap_s", 0.5).alias("p50")
    )
    exploded = rows.select(F.explode(F.array("node", F.concat("node", F.lit("'")))).alias("node"))
    joined = rows.join(F.broadcast(rows.select("node").distinct()), "node").join(exploded, "node")
    found = joined.where("trace = 'walk' and time >= 0").select("node").distinct()
    for other in (grouped, whole):
        found = found.unionByName(other, allowMissingColumns=True)
    return found.select(F.coalesce("node", F.lit("all")).alias("node")).sortWithinPartitions("node")


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
