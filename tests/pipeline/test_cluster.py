"""The same stages on a real cluster, one worker of which is lost half-way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cluster import QUICK, Cluster, running_cluster
from pyspark.sql import SparkSession
from test_contacts import wandering

from earshot.pipeline.contacts import contacts_within
from earshot.pipeline.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(600)]

CONTACTS = """
import sys
from earshot.pipeline.contacts import contacts_within
from earshot.pipeline.lake import Lake
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


def test_contacts_on_a_cluster_that_loses_a_worker_are_those_of_local_mode(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, wait_for: Callable[[Callable[[], object]], None]
) -> None:
    lake, gate = Lake(spark, tmp_path / "lake"), tmp_path / "gate"
    gate.mkdir()
    rows = [(*row, None, None) for row in wandering(nodes=25, steps=80, side_m=200, seed=9)]
    schema = "node string, time double, x_m double, y_m double, speed_m_s double, heading_deg double"
    lake.write(spark.createDataFrame(rows, schema), "positions", trace="walk")
    running = cluster.start(CONTACTS, lake.name, gate, QUICK)
    wait_for(lambda: running.poll() is not None or len(list(gate.iterdir())) == 2)
    assert running.poll() is None, running.communicate()
    shipped = {path.read_text() for path in gate.iterdir()}
    assert all(".zip" in path for path in shipped), f"the package was not shipped: {shipped}"
    cluster.kill_worker()
    (gate / "go").touch()
    said, errors = running.communicate(timeout=280)
    assert (said, errors, running.returncode) == ("done\n", "", 0)
    local = lake.read("positions", trace="walk").drop("trace").transform(contacts_within(30.0, interval_s=1.0))
    ours = sorted(tuple(row) for row in lake.read("contacts", trace="walk").select("a", "b", "start", "end").collect())
    assert ours == sorted(tuple(row) for row in local.collect())
    assert len(ours) > 100
