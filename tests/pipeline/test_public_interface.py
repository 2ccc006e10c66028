"""What `earshot.pipeline` exports, and that importing it does not load Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from earshot import pipeline


def test_the_exports_are_there_and_documented() -> None:
    assert pipeline.__all__ == [
        "ContactNetwork",
        "Lake",
        "Metric",
        "ReportFigure",
        "ask_why",
        "compare",
        "contacts_within",
        "expected_receivers",
        "find_contacts",
        "ingest",
        "metrics",
        "profile_trace",
        "reach_plans",
        "reachable",
        "read_trace",
        "register_sources",
        "resampled",
        "scenario_from_trace",
        "show_progress",
        "spark_session",
        "swept_runs",
        "write_report",
    ]
    assert all(getattr(pipeline, name).__doc__ for name in pipeline.__all__)
    with pytest.raises(AttributeError, match="no attribute 'lakes'"):
        pipeline.lakes  # noqa: B018


def test_importing_it_does_not_load_spark() -> None:
    code = "import sys, earshot.pipeline; print([m for m in ('pyspark', 'pandas', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.spark
def test_from_a_trace_to_contacts_in_two_transforms(spark: SparkSession, tmp_path: Path) -> None:
    walk = tmp_path / "walk.csv"
    walk.write_text("node,time,x_m,y_m\nann,0,0,0\nann,10,50,0\nbob,0,60,0\nbob,10,60,0\nbob,oops,1,1\n")
    positions = pipeline.read_trace(spark, str(walk))
    assert sorted(positions.select("node", "time", "x_m", "line").collect()) == [
        ("ann", 0.0, 0.0, 2),
        ("ann", 10.0, 50.0, 3),
        ("bob", 0.0, 60.0, 4),
        ("bob", 10.0, 60.0, 5),
    ]
    contacts = positions.transform(pipeline.contacts_within(range_m=20))
    assert [tuple(row) for row in contacts.collect()] == [("ann", "bob", 10.0, 10.0)]
