"""A real Spark cluster on this machine: a master and workers, each a process of its own.

They come from the installed pyspark, on the Java that sessions use. Code runs against it in a new
process (`cluster.start(code, ...)`): a process has one session, and the tests' own is local.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pyspark

from earshot.pipeline.spark.java import cache_folder, find_java, java_home

SPARK_HOME = Path(pyspark.__file__).parent
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


@dataclass
class Cluster:
    """A running cluster."""

    folder: Path
    master: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    "The master first, then the workers."
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, code: str, *arguments: object) -> subprocess.Popen[str]:
        """Run Python code that finds the master's address in sys.argv[1] and the arguments after it."""
        running = subprocess.Popen(
            [sys.executable, "-c", code, self.master, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"XDG_CACHE_HOME": str(self.folder)},
        )
        self.started.append(running)
        return running

    def run(self, code: str, *arguments: object) -> str:
        """Run the code to its end; what it printed."""
        running = self.start(code, *arguments)
        stated, errors = running.communicate(timeout=600)
        assert (running.returncode, errors) == (0, "")
        return stated

    def kill_worker(self) -> None:
        """End the last worker as a power cut would, its executor with it."""
        worker = self.processes.pop()
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def stop(self) -> None:
        """End everything that was started."""
        for running in self.started:
            running.kill()
            running.wait()
        for process in reversed(self.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _launch(self, name: str, *arguments: str, ready: str, prefix: Sequence[str] = ()) -> str:
        """Start a Spark daemon and wait for the line of its log that says it is ready."""
        log = self.folder / f"{name}.log"
        environment = os.environ | {
            "JAVA_HOME": str(java_home(find_java(), cache_folder())),
            "SPARK_HOME": str(SPARK_HOME),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": "768m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK,
            "SPARK_WORKER_DIR": str(self.folder / name),
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
        }
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*prefix, str(SPARK_HOME / "bin" / "spark-class"), *arguments],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        self.processes.append(process)
        until = time.monotonic() + 600
        while not (found := re.search(ready, log.read_text(errors="replace"))):
            assert process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < until, f"{name} is not ready: {log.read_text(errors='replace')}"
            Event().wait(0.1)
        return found[0]


@contextmanager
def running_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server of two cores; its address."""
    server = Cluster(folder)
    try:
        stated = server._launch(
            "server",
            *("org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "--driver-java-options", QUICK),
            *("--conf", "spark.connect.grpc.binding.port=0", "--conf", "spark.ui.enabled=false"),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
            ready=r"Spark Connect server started at: [^\n]*:\d+",
        )
        yield f"sc://127.0.0.1:{stated.rpartition(':')[2]}"
    finally:
        server.stop()


@contextmanager
def running_cluster(folder: Path, workers: int = 2, worker_prefix: Sequence[str] = ()) -> Iterator[Cluster]:
    """A master and workers of one core each; all of them gone afterwards. The prefix is a command that starts a worker
    in surroundings of its own."""
    folder.mkdir(exist_ok=True)
    cluster = Cluster(folder)
    try:
        cluster.master = cluster._launch(
            "master",
            *("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
            ready=r"spark://127\.0\.0\.1:\d+",
        )
        for number in range(workers):
            cluster._launch(
                f"worker-{number}",
                *("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0"),
                *("--cores", "1", "--memory", "1g", cluster.master),
                ready="Successfully registered with master",
                prefix=worker_prefix,
            )
        yield cluster
    finally:
        cluster.stop()
