"""The same stages on a real cluster, one worker of which is lost half-way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest
from all_stages import ANSWERS, run_stages, write_inputs
from cluster import QUICK, Cluster, running_cluster, running_server
from pyspark.sql import SparkSession
from test_contacts import wandering

from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.lake.tables import POSITIONS
from earshot.pipeline.traces.contacts import contacts_within

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1800)]

CONTACTS = """
import sys
from earshot.pipeline.traces.contacts import contacts_within
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.session import spark_session

master, root, gate, quick = sys.argv[1:]
settings = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": quick, "spark.driver.memory": "512m"}
spark = spark_session(master=master, settings=settings)
lake = Lake(spark, root)

def gated(batches):
    # The first two tasks pass; the others say that they run and wait for the test.
    import os, time
    from pyspark import TaskContext
    import earshot
    number = TaskContext.get().partitionId()
    if number >= 2:
        with open(f"{gate}/waiting-{number}", "w") as file:
            file.write(earshot.__file__)
        while not os.path.exists(f"{gate}/go"):
            time.sleep(0.05)
    yield from batches

positions = lake.read("positions", trace="walk").drop("trace").repartition(6)
passed = positions.mapInArrow(gated, positions.schema)
lake.write(passed.transform(contacts_within(30.0, interval_s=1.0)), "contacts", trace="walk", range_m=30.0)
print("done")
"""


@pytest.fixture
def cluster(tmp_path: Path) -> object:
    with running_cluster(tmp_path) as running:
        yield running


@pytest.mark.slow
def test_contacts_on_a_cluster_that_loses_a_worker_are_those_of_local_mode(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, wait_for: Callable[[Callable[[], object]], None]
) -> None:
    lake, gate = Lake(spark, tmp_path / "lake"), tmp_path / "gate"
    gate.mkdir()
    columns = POSITIONS.data_columns
    known = [dict(zip(columns, row, strict=False)) for row in wandering(nodes=25, steps=80, side_m=200, seed=9)]
    rows = [tuple(row.get(name) for name in columns) for row in known]
    schema = ", ".join(f"`{name}` {POSITIONS.columns[name]}" for name in columns)
    lake.write(spark.createDataFrame(rows, schema), "positions", trace="walk")
    running = cluster.start(CONTACTS, lake.name, gate, QUICK)
    wait_for(lambda: running.poll() is not None or len(list(gate.iterdir())) == 2)
    assert running.poll() is None, running.communicate()
    shipped = {path.read_text() for path in gate.iterdir()}
    assert all(".zip" in path for path in shipped), f"the package was not shipped: {shipped}"
    cluster.kill_worker()
    (gate / "go").touch()
    stated, errors = running.communicate(timeout=600)
    assert (stated, errors, running.returncode) == ("done\n", "", 0)
    local = lake.read("positions", trace="walk").drop("trace").transform(contacts_within(30.0, interval_s=1.0))
    ours = sorted(tuple(row) for row in lake.read("contacts", trace="walk").select("a", "b", "start", "end").collect())
    assert ours == sorted(tuple(row) for row in local.collect())
    assert len(ours) > 100


FAILING = """
import sys
from earshot.pipeline.session import spark_session
from earshot.pipeline.spark.failures import named_errors
from earshot.pipeline.spark.progress import watch_jobs
from earshot.pipeline.spark.session import is_connect, parallelism

spark = spark_session(remote=sys.argv[1])
print(is_connect(spark), parallelism(spark))
seen = []
with watch_jobs(spark, lambda done, total: seen.append(done <= total)):
    spark.range(0, 100, 1, 4).selectExpr("id % 3 k").groupBy("k").count().collect()
print(bool(seen) and all(seen))

def failing(batches):
    from earshot.errors import TraceError
    for batch in batches:
        raise TraceError("no such trace")
    yield batch

try:
    with named_errors():
        spark.range(3).mapInArrow(failing, "id long").collect()
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow
def test_a_connect_server_runs_every_stage(tmp_path: Path) -> None:
    folder = write_inputs(tmp_path / "inputs")
    with running_server(tmp_path) as address:
        done = run_stages({"remote": address}, tmp_path / "lake", folder)
        failed = subprocess.run([sys.executable, "-c", FAILING, address], capture_output=True, text=True, check=False)
    assert {name: done[name] for name in ANSWERS} == ANSWERS
    assert (failed.stderr, failed.stdout) == ("", "True 2\nTrue\nTraceError no such trace\n")


OTHER_SPARK = os.environ.get("EARSHOT_OTHER_SPARK", "")


@pytest.mark.skipif(not OTHER_SPARK, reason="no second Spark; pip install --target DIR it, EARSHOT_OTHER_SPARK=DIR")
def test_another_version_of_spark_runs_every_stage(tmp_path: Path) -> None:
    folder = write_inputs(tmp_path / "inputs")
    done = run_stages({"master": "local[2]"}, tmp_path / "lake", folder, PYTHONPATH=OTHER_SPARK)
    assert {name: done[name] for name in ANSWERS} == ANSWERS
    assert done["spark"] != pyspark.__version__
