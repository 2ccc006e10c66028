"""Spools of live nodes into a lake, held to the run they were written from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from spool_cases import recorded, small_city, write_spools

from earshot.cli import earshot, pipeline
from earshot.errors import UsageError
from earshot.pipeline.campaigns.campaigns import campaign
from earshot.pipeline.campaigns.flow import run_campaign
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.oracle.why import ask_why
from earshot.pipeline.watch.spool_segments import check_folders, is_spool
from earshot.pipeline.watch.spools import keep_spools
from earshot.records import Record

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A simulated run under its own id, and the spools of the same run as `reported-gossip`."""
    folder = tmp_path_factory.mktemp("spools")
    lake = Lake(spark, folder / "lake")
    run_campaign(lake, campaign("truth", [small_city()], {"gossip": {}}, [0]))
    kept = keep_spools(lake, [str(write_spools(folder / "spools", recorded("gossip", folder)))], "reported")
    assert (kept.runs, kept.rejected, kept.nodes) == (["reported-gossip"], 0, 26)
    return lake


CEILINGS = (
    "ceiling",
    "ceiling_at_once",
    "delivery_of_reachable",
    "missed_impossible",
    "missed_needed_carrying",
    "missed_lost",
)


def figures(lake: Lake, campaign_name: str) -> dict[tuple[str, str, str], float]:
    run = lake.read("runs").where(f"campaign = '{campaign_name}'").first()
    assert run is not None
    rows = lake.read("metrics", run=run["run"]).collect()
    return {(row["metric"], row["by"], row["key"]): row["value"] for row in rows}


def test_spools_are_measured_as_the_simulated_run_they_were_written_from(lake: Lake) -> None:
    truth, spooled = figures(lake, "truth"), figures(lake, "reported")
    assert truth["expected", "all", ""] > 50
    assert 0.5 < truth["delivery_ratio", "all", ""] < 1.0
    # Spools do not say how far the radio reached, so what was reachable is not known of them.
    only_simulated = {key for key in truth if key[0] in CEILINGS or key[1] == "cause"}
    assert ("ceiling", "all", "") in only_simulated
    measured = {key: value for key, value in spooled.items() if key[1] != "cause"}
    assert measured == {key: value for key, value in truth.items() if key not in only_simulated}


def test_why_answers_for_a_live_run(lake: Lake) -> None:
    pair = lake.read("expected", workload="reported-gossip").orderBy("event", "node").first()
    assert pair is not None
    answer = ask_why(lake.arrow, "reported-gossip", pair["event"], pair["node"])
    assert answer.expected


def test_lines_that_are_no_records_are_rejects_on_the_command_line(lake: Lake, tmp_path: Path) -> None:
    spools = write_spools(tmp_path / "monday", recorded("flooding", tmp_path)[:400])
    first, second, *_ = sorted(spools.glob("**/*.jsonl"))
    good = first.read_text()
    bad = ["nonsense\n", '{"time":1.0,"node":"a","kind":"dance"}\n', '{"time":9e99,"node":"a","kind":"note"}\n',
           '{"time":1.0,"node":"a","kind":"subscribe","subscription":"s","detail":"speed >"}\n']  # fmt: skip
    first.write_text(good + "".join(bad))
    with second.open("a") as file:
        file.write('{"time":2.0,"no')
    asked = ["ingest", str(spools), "--format", "spool", "--lake", lake.name, "--json"]
    done = CliRunner().invoke(earshot, asked, catch_exceptions=False, standalone_mode=False)
    reported = json.loads(done.stdout)
    assert (reported["name"], reported["runs"], reported["records"], reported["rejected"]) == (
        "monday",
        ["monday-flooding"],
        400,
        4,
    )
    rows = lake.read("rejects", trace="monday").orderBy("detail").collect()
    assert [row["detail"].split(": ", 1)[1][:24] for row in rows] == [
        "not a record: JSON is ma",
        "no kind of record: 'danc",
        "a time in the future: 9e",
        "subscribe: expected a qu",
    ]
    assert {row["file"] for row in rows} == {str(first)}


def test_a_spool_is_recognised_by_its_first_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [Record(time=0.0, node="a", kind="join"), Record(time=1.0, node="a", kind="leave")]
    spools = str(write_spools(tmp_path / "spools" / "car", records).parent)
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "sirens.jsonl").write_text('{"type": "Siren", "node": "a", "time_s": 1}\n')
    asked: list[Any] = []
    monkeypatch.setattr(pipeline, "_ingest_spools", lambda folders, *_: asked.append(folders))
    CliRunner().invoke(earshot, ["ingest", spools], catch_exceptions=False, standalone_mode=False)
    assert asked == [(spools,)]
    assert [is_spool(str(path)) for path in (tmp_path / "events", tmp_path / "absent", __file__)] == [False] * 3


def test_folders_that_are_no_spools_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name, stated in (("absent", "no such folder"), ("file", "is a file"), ("empty", "no spool in")):
        with pytest.raises(UsageError, match=stated):
            check_folders([str(tmp_path / name)], may_be_empty=False)
    assert check_folders([str(tmp_path), str(tmp_path)], may_be_empty=True) == [str(tmp_path)]
