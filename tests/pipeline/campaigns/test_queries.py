"""The queries in docs/pipeline.md: three programs read one lake and say what `metrics` says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from earshot.pipeline.campaigns.campaigns import campaign
from earshot.pipeline.campaigns.flow import run_campaign
from earshot.pipeline.lake.lake import Lake
from earshot.simulation.scenario.library import load_scenario

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[3] / "docs" / "pipeline.md"


def test_duckdb_polars_and_spark_agree_with_the_metrics(spark: SparkSession, tmp_path: Path) -> None:
    city = load_scenario("city").with_(duration_s=25, warm_up_s=10, cool_down_s=5, **{"medium.range_m": 90})
    lake = Lake(spark, tmp_path / "lake")
    run_campaign(lake, campaign("small", [city], {"flooding": {}, "gossip": {}}, [0, 1]))
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (polars,) = (block for block in blocks if "with_polars" in block)
    (duckdb,) = (block for block in blocks if "with_duckdb" in block)
    (pyspark,) = (block for block in blocks if "with_spark" in block)
    names: dict[str, Any] = {}
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(io.StringIO()):
        for block in (polars, duckdb, pyspark):
            exec(compile(block, str(PAGE), "exec"), names)
        rows = names["with_polars"].rows()
        assert names["with_duckdb"].fetchall() == rows
        assert [tuple(row) for row in names["with_spark"].collect()] == rows
    sums = (
        lake.read("metrics").where("by = 'type' and metric in ('expected', 'lost')")
        .join(lake.read("runs").select("run", "variant"), "run")
        .groupBy("variant", "key").pivot("metric", ["expected", "lost"]).agg(F.sum("value"))
        .where("expected > 0").orderBy("variant", "key").collect()
    )  # fmt: skip
    assert rows == [(row["variant"], row["key"], pytest.approx(1 - row["lost"] / row["expected"])) for row in sums]
    assert any(0 < share < 1 for _, _, share in rows), "some was delivered, and some lost"
