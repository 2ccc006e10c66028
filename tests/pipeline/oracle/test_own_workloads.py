"""Workloads from files of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from earshot.errors import EventError, LakeError, ScenarioError
from earshot.pipeline.campaigns.flow import expected_counts, keep_own_workload
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.spark.failures import named_errors

pytestmark = pytest.mark.spark

EVENTS = """{"type": "Siren", "content": {"speed": 18}, "id": "e1", "node": "car-1", "time_s": 5}
{"type": "Siren", "content": {"speed": 4}, "source": "car-1", "time": 6}

{"xml": "<CD><price>18</price></CD>", "id": "e3"}
"""
WISHES = """# a filter a line
Siren: speed > 10
/CD[price < 20]
Fire: true
"""


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path / "lake")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "events.jsonl").write_text(EVENTS)
    (tmp_path / "wishes.txt").write_text(WISHES)
    (tmp_path / "cd.xml").write_text("<CD><price>12</price></CD>")
    return tmp_path


def test_the_oracle_reads_events_and_filters_from_files(lake: Lake, files: Path) -> None:
    events = [str(files / "events.jsonl"), str(files / "cd.xml")]
    assert keep_own_workload(lake, "mine", events, str(files / "wishes.txt")) == {"events": 4, "subscriptions": 3}
    assert expected_counts(lake, "mine") == {"pairs": 3, "events": 3, "nodes": 2}
    rows = lake.read("expected", workload="mine").select("event", "subscription").orderBy("event").collect()
    assert [tuple(row) for row in rows] == [("cd.xml", "line-3"), ("e1", "line-2"), ("e3", "line-3")]


def test_a_workload_round_trips_through_parquet(lake: Lake, files: Path) -> None:
    keep_own_workload(lake, "mine", [str(files / "events.jsonl")], str(files / "wishes.txt"))
    for table in ("events", "subscriptions"):
        lake.read(table, workload="mine").drop("workload").write.parquet(str(files / f"{table}.parquet"))
    keep_own_workload(lake, "again", [str(files / "events.parquet")], str(files / "subscriptions.parquet"))
    assert expected_counts(lake, "again") == expected_counts(lake, "mine")


def test_a_bad_line_is_named(lake: Lake, files: Path) -> None:
    (files / "bad.jsonl").write_text('{"type": "A"}\n{"typ": 1}\n')
    with pytest.raises(EventError, match=r"bad\.jsonl.*typ"), named_errors():
        keep_own_workload(lake, "bad", [str(files / "bad.jsonl")], str(files / "wishes.txt"))
    assert not lake.has("events", workload="bad")


@pytest.mark.parametrize(
    ("events", "subscriptions", "stated"),
    [
        ("nowhere.jsonl", "wishes.txt", "no such file"),
        ("wishes.txt", "wishes.txt", "its name does not say what it holds"),
    ],
)
def test_files_that_cannot_be_read_are_named(
    lake: Lake, files: Path, events: str, subscriptions: str, stated: str
) -> None:
    with pytest.raises(ScenarioError, match=stated):
        keep_own_workload(lake, "bad", [str(files / events)], str(files / subscriptions))


def test_a_bad_filter_is_named_with_its_line(lake: Lake, files: Path) -> None:
    (files / "bad.txt").write_text("Siren: speed > 10\nprice <\n")
    with pytest.raises(ScenarioError, match=r"bad\.txt: line 2"):
        keep_own_workload(lake, "bad", [str(files / "events.jsonl")], str(files / "bad.txt"))


def test_an_oracle_without_its_workload_says_what_to_run(lake: Lake) -> None:
    with pytest.raises(LakeError, match="earshot workload nothing"):
        expected_counts(lake, "nothing")
