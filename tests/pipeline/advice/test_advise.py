"""Advice on a small trace whose answer is known, on Spark, and what becomes of it: words, JSON and a file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from earshot.cli import earshot
from earshot.cli.options import read_settings_file
from earshot.cli.spark import ProgressBar
from earshot.errors import TraceError
from earshot.pipeline.advice.advise import Question, Scenarios, losses_by_cause
from earshot.pipeline.advice.windows import QUICK, TraceSlot
from earshot.pipeline.campaigns.flow import LakeRows
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.traces.ingest import ingest
from earshot.pipeline.traces.trace_scenario import TraceAdditions

PROTOCOLS = "cbf,flooding"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen nodes on a circle of 40 m for 80 s: all hear each other, and each copy after the first is waste."""
    file = tmp_path_factory.mktemp("traces") / "crowd.csv"
    rows = ["node,time,x_m,y_m"]
    for step in range(41):
        for node in range(16):
            angle = math.tau * (node / 16.0 + step / 200.0)
            rows.append(f"n{node:02},{2 * step},{500 + 40 * math.cos(angle):.2f},{500 + 40 * math.sin(angle):.2f}")
    file.write_text("\n".join(rows) + "\n")
    return file


def finished(lake: Lake) -> dict[str, float]:
    """How long each run took that is done."""
    return {row["run"]: row["took_s"] for row in lake.read("runs").where("status = 'done'").collect()}


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_where_all_hear_each_other_the_protocol_that_repeats_least_is_advised(
    crowd: Path, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = str(tmp_path / "lake")
    asked = ["advise", str(crowd), "--quick", "--protocols", PROTOCOLS, "--budget", "30min", "--range", "200m"]

    def interrupted(bar: ProgressBar, done: int, left: int, failed: int, slow: str) -> None:
        del bar, left, failed, slow
        if done >= 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ProgressBar, "runs", interrupted)
        stopped = CliRunner().invoke(earshot, [*asked, "--workload", "news", "--lake", lake])
    assert isinstance(stopped.exception, SystemExit), "Ctrl-C"
    kept = finished(Lake(spark, lake))
    assert len(kept) >= 2

    first = CliRunner().invoke(earshot, [*asked, "--workload", "news", "--lake", lake, "--json"])
    assert first.exit_code == 0, first.output
    found = json.loads(first.stdout)
    assert found["protocol"] == "cbf"
    assert found["figures"]["delivery_of_reachable"]["mean"] == 1.0
    flooding = next(one for one in found["judged"] if one["protocol"] == "flooding")
    chosen = next(one for one in found["judged"] if one["settings"] == found["settings"])
    assert chosen["cost"] < flooding["cost"] / 3.0
    assert found["regret"]["delivery"] == 0.0
    assert found["regret"]["cost"] < 0.1
    assert "did not see" in " ".join(found["words"])
    assert Path(found["report"]).read_text().count("What to use")
    advised = read_settings_file(found["file"])
    assert (advised.protocol, dict(advised.settings)) == ("cbf", found["settings"])
    assert advised.network == {"range_m": 200.0}
    assert kept.items() <= finished(Lake(spark, lake)).items(), "what was finished before Ctrl-C is not run again"

    simulated = CliRunner().invoke(
        earshot,
        ["simulate", "--trace", "crowd", "--lake", lake, "--settings", found["file"], "--workload", "news", "--json"],
    )
    assert simulated.exit_code == 0, simulated.output
    assert json.loads(simulated.stdout)["protocol"] == "cbf"


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_workload_that_nobody_can_receive_is_said_to_be_one(crowd: Path, tmp_path: Path) -> None:
    events, wanted = tmp_path / "events.jsonl", tmp_path / "wanted.jsonl"
    events.write_text('{"time_s": 30, "node": "n00", "type": "Siren", "content": {"speed": 3}}\n')
    wanted.write_text('{"node": "n01", "filter": "Other: speed > 1"}\n')
    answer = CliRunner().invoke(
        earshot,
        ["advise", str(crowd), "--quick", "--protocols", "flooding", "--lake", str(tmp_path / "lake"), "--events",
         str(events), "--subscriptions", str(wanted)],
    )  # fmt: skip
    assert answer.exit_code != 0
    assert "no event had an expected receiver" in str(answer.exception)


@pytest.mark.spark
def test_a_window_in_a_break_of_the_trace_has_no_nodes(tmp_path: Path, spark: SparkSession) -> None:
    lake, file = Lake(spark, tmp_path / "lake"), tmp_path / "shifts.csv"
    times = [*range(0, 41, 2), *range(200, 241, 2)]
    rows = [f"{node},{time},{time},{place}" for place, node in enumerate(("ann", "bob")) for time in times]
    file.write_text("\n".join(["node,time,x_m,y_m", *rows]) + "\n")
    ingest(lake, [str(file)])
    windows = Scenarios(lake.name, Question("shifts", additions=TraceAdditions(workload="news")), QUICK)
    assert [windows.has_nodes(TraceSlot(start, start + 20.0)) for start in (0.0, 100.0, 210.0)] == [True, False, True]
    assert [made.node_count for made in windows.made] == [2, 2]
    with pytest.raises(TraceError, match="trace shifts has no node between 100 and 120 s"):
        windows(TraceSlot(100.0, 120.0))


def test_losses_are_means_of_the_windows_as_the_ceiling_is() -> None:
    counts = [("a", 40.0), ("b", 10.0), ("empty", 0.0), ("one", 1.0), ("other", 10.0)]
    whole = [{"run": run, "metric": "expected", "value": value} for run, value in counts]
    causes = [
        {"run": "a", "key": "impossible", "value": 4.0},
        {"run": "b", "key": "impossible", "value": 5.0},
        {"run": "b", "key": "expired", "value": 2.0},
        {"run": "one", "key": "never heard", "value": 1.0},
        {"run": "other", "key": "expired", "value": 9.0},
    ]
    rows = LakeRows([], {"all": whole, "cause": causes})
    lost = losses_by_cause(rows, {"a", "b", "one", "empty"})
    assert list(lost.items()) == [
        ("never heard", pytest.approx(1.0 / 3)),
        ("impossible", pytest.approx((0.1 + 0.5) / 3)),
        ("expired", pytest.approx(0.2 / 3)),
    ]
