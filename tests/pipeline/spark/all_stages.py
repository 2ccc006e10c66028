"""Every stage once, from a trace's files to a report: the same answers wherever Spark runs and the lake lies.

As a program: `all_stages.py SESSION LAKE INPUTS`, where SESSION is the arguments of `spark_session` as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from earshot.pipeline.campaigns.campaigns import campaign
from earshot.pipeline.campaigns.flow import (
    expected_counts,
    keep_own_workload,
    lake_leaderboard,
    run_campaign,
    workload_ceiling,
)
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.reports.report import write_report
from earshot.pipeline.session import spark_session
from earshot.pipeline.spark.failures import named_errors
from earshot.pipeline.traces.contact_statistics import find_contacts
from earshot.pipeline.traces.ingest import ingest
from earshot.simulation.scenario.library import load_scenario

ANSWERS = {
    "kept": [40, {"unparsable": 1}],
    "contacts": [1, 0.65],
    "workload": {"events": 3, "subscriptions": 1},
    "expected": {"pairs": 2, "events": 2, "nodes": 1},
    "ceiling": [2, 2, 0],
    "runs": ["done", "done"],
    "page": True,
}
"Those that no protocol decides."


def run_stages(session: Mapping[str, Any], lake: str | Path, folder: str | Path, **environment: str) -> dict[str, Any]:
    """The answers of a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(session), str(lake), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check_writers_at_once(lake: ArrowLake) -> None:
    """Three writers commit three rows each at the same time: all nine are kept."""

    def commit(writer: int) -> None:
        for number in range(3):
            lake.write_rows("runs", [{"run": f"{writer}-{number}", "seed": number, "status": "done"}])

    with ThreadPoolExecutor(3) as writers:
        list(writers.map(commit, range(3)))
    assert {key for (key,) in lake.keys("runs")} == {f"{one}-{number}" for one in range(3) for number in range(3)}


def inputs() -> dict[str, str]:
    """Two files of a trace, and a workload: ann publishes on her way, bob wants to know within 50 m."""
    rows = {"ann": [(t, 5.0 * t, 0.0) for t in range(20)], "bob": [(t, 60.0, 0.0) for t in range(20)]}
    found = {
        f"traces/{node}.csv": "node,time,x_m,y_m\n" + "".join(f"{node},{t},{x},{y}\n" for t, x, y in places)
        for node, places in rows.items()
    }
    found["traces/bob.csv"] += "bob,oops,1,0\n"
    events = [
        {"type": "Siren", "content": {"speed": 18}, "id": f"e{t}", "node": "ann", "time_s": t, "lifespan_s": 20}
        | {"position": {"x_m": 5.0 * t, "y_m": 0.0}}
        for t in (1, 8, 12)
    ]
    found["sirens.jsonl"] = "".join(json.dumps(event) + "\n" for event in events)
    found["wanted.jsonl"] = '{"node": "bob", "filter": "Siren: speed > 10 and within 50 m"}\n'
    return found


def write_inputs(folder: Path) -> Path:
    """The inputs as files."""
    for name, text in inputs().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def answers(lake: Lake, trace: str, events: str, subscriptions: str) -> dict[str, Any]:
    """What all stages say."""
    read = ingest(lake, [trace], "street")
    met = find_contacts(lake, "street", 30.0)
    counts = keep_own_workload(lake, "rounds", [events], subscriptions)
    expected = expected_counts(lake, "rounds", "street")
    ceiling = workload_ceiling(lake, "rounds", "street", 30.0)
    city = load_scenario("city").with_({"duration_s": 10, "warm_up_s": 2, "cool_down_s": 2, "nodes.car.count": 30})
    outcomes = run_campaign(lake, campaign("all", [city], {"flooding": {}, "gossip": {}}, [0]))
    board = {row.protocol: row.figures["delivery_ratio"].mean for row in lake_leaderboard(lake).rows}
    with TemporaryDirectory() as folder:
        page = write_report(lake, Path(folder) / "page.html").read_text()
    return {
        "kept": [read.rows_kept, read.rejected],
        "contacts": [met.contacts, met.mean_degree],
        "workload": counts,
        "expected": expected,
        "ceiling": [ceiling.expected, ceiling.at_once, ceiling.by_carrying] if ceiling else None,
        "runs": sorted(one.status for one in outcomes),
        "delivery": board,
        "page": "flooding" in page,
    }


if __name__ == "__main__":
    session, root, folder = sys.argv[1:]
    with named_errors():
        lake = Lake(spark_session(**json.loads(session)), root)
        found = answers(lake, f"{folder}/traces/*.csv", f"{folder}/sirens.jsonl", f"{folder}/wanted.jsonl")
    print(json.dumps({"spark": lake.session.version, **found}))
