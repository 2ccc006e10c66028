"""A campaign on a real cluster, one of whose workers dies on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cluster import QUICK, running_cluster
from pyspark.sql import SparkSession

from earshot.pipeline.campaigns.campaigns import Campaign, campaign
from earshot.pipeline.campaigns.flow import run_campaign
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.lake import Lake
from earshot.simulation.scenario.library import load_scenario

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1800)]

SEEDS = 3
PLUGINS = Path(__file__).parents[2] / "plugins"
"The driver finds the module of a plug-in here; the workers do not."


def wanted() -> Campaign:
    city = load_scenario("city").with_(duration_s=16, warm_up_s=4, cool_down_s=4)
    return campaign("cluster", [city], {"flooding": {}, "shout_protocol:Shout": {}}, range(SEEDS))


ON_THE_CLUSTER = """
import sys
master, lake, quick, *path = sys.argv[1:]
sys.path[:0] = path
from test_sweep_on_a_cluster import wanted
from earshot.pipeline.campaigns.flow import run_campaign
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.session import spark_session

settings = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": quick, "spark.driver.memory": "512m"}
outcomes = run_campaign(Lake(spark_session(master=master, settings=settings), lake), wanted())
import earshot.plugins
assert [one.name for one in earshot.plugins.shipment()] == ["shout_protocol:Shout"]
print(sorted({outcome.status for outcome in outcomes}), len(outcomes))
"""


def rows(lake: Lake, table: str, *without: str) -> list[str]:
    return sorted(repr(tuple(row)) for row in lake.read(table).drop(*without).collect())


@pytest.mark.slow
def test_a_campaign_on_a_cluster_that_loses_a_worker_gives_the_tables_of_local_mode(
    spark: SparkSession, tmp_path: Path, wait_for: Callable[[Callable[[], object]], None]
) -> None:
    here = Path(__file__).parent
    there = ArrowLake(tmp_path / "there")
    with running_cluster(tmp_path) as cluster:
        running = cluster.start(ON_THE_CLUSTER, tmp_path / "there", QUICK, here, here.parent / "spark", PLUGINS)
        wait_for(lambda: running.poll() is not None or len(there.keys("runs")) >= 2)
        assert running.poll() is None, running.communicate()
        cluster.kill_worker()
        stated, errors = running.communicate(timeout=600)
    assert (stated, errors, running.returncode) == (f"['done'] {2 * SEEDS}\n", "", 0)
    local, lake = Lake(spark, tmp_path / "here"), Lake(spark, tmp_path / "there")
    run_campaign(local, wanted())
    times = "took_s", "processor_s"
    assert rows(lake, "runs", *times) == rows(local, "runs", *times)
    for table in ("events", "subscriptions", "expected", "metrics"):
        assert rows(lake, table) == rows(local, table), table
    assert lake.read("log").count() == local.read("log").count() > 10_000
