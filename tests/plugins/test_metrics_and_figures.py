"""Metrics and report figures of the user's own: in tables, JSON and report, and measured again if they change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from earshot.cli import earshot
from earshot.errors import UsageError
from earshot.pipeline.campaigns.outside_metrics import named_metrics
from earshot.pipeline.reports.outside_figures import ReportFigure, drawn_figures, named_figures

SLOW = """
from pyspark.sql import functions as F

from earshot.pipeline import Metric, ReportFigure

LIMIT_S = 0.0

def lateness(latency_s):
    return max(latency_s - LIMIT_S, 0.0)

def slow(pairs):
    met = pairs.where("wanted and got")
    return met.groupBy("run").agg(F.avg(F.udf(lateness, "double")("latency_s")).alias("value"))

def dropped(log):
    by_reason = log.where("kind = 'drop'").groupBy("run", F.col("detail").alias("key"))
    return by_reason.agg(F.count("*").alias("value")).withColumn("by", F.lit("reason"))

SLOW = Metric("mean_lateness_s", slow, takes="pairs", title="mean lateness", unit="s", better=-1)
DROPPED = Metric("drops_by_reason", dropped)
WRONG = Metric("wrong", lambda log: log.select("run"))

def bars(runs):
    assert all("mean_lateness_s" in run["metrics"] and run["scenario"] == "base" for run in runs)
    return f"<svg viewBox='0 0 10 10'><text>{len(runs)} runs of mine</text></svg>"

BARS = ReportFigure("bars", bars, title="My bars")
"""


def ran(*arguments: str) -> Result:
    done = CliRunner().invoke(earshot, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_metric_and_a_figure_appear_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SLOW)
    short = ("--protocols", "flooding,gossip", "--seeds", "1", "--set", "duration_s=40", "--set", "nodes.node.count=20")
    own = ("--metric", "./mine.py:SLOW", "--metric", "./mine.py:DROPPED", "--figure", "./mine.py:BARS")
    table = ran("compare", "base", *short, *own, "--lake", "lake").output
    page = Path("lake/report.html").read_text()
    assert "mean lateness (s)" in table or "mean lateness" in page
    assert "mean lateness" in page
    assert "2 runs of mine" in page
    reported = json.loads(ran("report", "lake", "--json").output)
    figures = {row["protocol"]: row["metrics"] for row in reported["rankings"][0]["rows"]}
    for row in figures.values():
        # Without a limit the mean lateness is the mean latency; it lies between the percentiles' extremes.
        assert 0 < row["mean_lateness_s"]["mean"] < row["latency_p99_s"]["mean"] * 2
        assert {"age_of_information_s", "fairness"} <= set(row) or "fairness" in row
    # A changed metric is measured again, without a new run.
    Path("mine.py").write_text(SLOW.replace("LIMIT_S = 0.0", "LIMIT_S = 1e9"))
    reported = json.loads(ran("report", "lake", "--metric", "./mine.py:SLOW", "--json").output)
    again = {row["protocol"]: row["metrics"] for row in reported["rankings"][0]["rows"]}
    assert {name: row["mean_lateness_s"]["mean"] for name, row in again.items()} == {"flooding": 0.0, "gossip": 0.0}
    assert {name: row["delivery_ratio"] for name, row in again.items()} == {
        name: row["delivery_ratio"] for name, row in figures.items()
    }
    wrong = CliRunner().invoke(earshot, ["report", "lake", "--metric", "./mine.py:WRONG"])
    assert wrong.exit_code != 0
    assert "lack value" in (wrong.output + str(wrong.exception))


def test_what_is_not_a_metric_or_a_figure_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        "from earshot.pipeline import Metric\n"
        "PLAIN = lambda rows: rows\n"
        "TAKEN = Metric('delivery_ratio', PLAIN)\n"
        "ODD = Metric('odd', PLAIN, takes='everything')\n"
    )
    for name, words in (("PLAIN", "not a metric"), ("TAKEN", "another name"), ("ODD", "takes must be one of")):
        with pytest.raises(UsageError, match=words):
            named_metrics([f"{tmp_path}/odd.py:{name}"])
    with pytest.raises(UsageError, match="not a figure"):
        named_figures([f"{tmp_path}/odd.py:PLAIN"])
    with pytest.raises(UsageError, match="must return an SVG text"):
        drawn_figures({"x": ReportFigure("x", lambda _: "a picture")}, [])
    with pytest.raises(UsageError, match="could not be drawn: ZeroDivisionError"):
        drawn_figures({"x": ReportFigure("x", lambda _: str(1 / 0))}, [])
