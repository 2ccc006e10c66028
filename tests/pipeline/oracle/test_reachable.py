"""The ceiling on Spark: against an ideal flood of the simulator, and against the kernel in one process."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from earshot.cli import earshot
from earshot.pipeline.campaigns.campaigns import Run, campaign
from earshot.pipeline.campaigns.flow import lake_ceiling, run_campaign
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.lake.tables import EVENTS
from earshot.pipeline.oracle import reachable as stage
from earshot.pipeline.oracle.reachable import (
    ContactNetwork,
    network_of,
    radio_range_m,
    reach_in_one_task,
    reach_plans,
    reachable,
)
from earshot.pipeline.oracle.spreading import REACHES, PublishedColumns, reach_of_pairs
from earshot.pipeline.oracle.why import ask_why
from earshot.pipeline.traces.exact_contacts import contacts_of_legs, legs_of
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario

pytestmark = pytest.mark.spark

SPARSE = {
    "duration_s": 80.0,
    "warm_up_s": 0.0,
    "cool_down_s": 10.0,
    "medium": {"kind": "unit-disk", "range_m": 130.0},
    "nodes.node.count": 40,
    "nodes.node.mobility": {"kind": "random-waypoint", "speed_m_s": [5.0, 20.0]},
    "faults": {
        "churn": {"mean_presence_s": 60.0, "mean_absence_s": 10.0},
        "silent_share": 0.1,
        "partitions": [{"start_s": 20.0, "end_s": 50.0, "line": [[500, 0], [500, 1000]]}],
    },
}


@pytest.fixture(scope="module")
def sparse() -> Scenario:
    return load_scenario("base").with_(SPARSE)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, sparse: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with one run of an ideal flood."""
    lake = Lake(spark, tmp_path_factory.mktemp("reachable") / "lake")
    run_campaign(lake, campaign("sparse", [sparse], {"flooding": {}}, [0]))
    return lake


def reach_by_pair(rows: DataFrame) -> dict[tuple[str, str], str]:
    return {(row["event"], row["node"]): row["reach"] for row in rows.collect()}


def test_every_expected_pair_has_one_answer(lake: Lake, sparse: Scenario) -> None:
    workload = Run(sparse, "flooding").workload
    rows = lake.read("reachable", workload=workload)
    wanted = {(row[0], row[1]) for row in lake.read("expected", workload=workload).select("event", "node").collect()}
    assert reach_by_pair(rows).keys() == wanted
    assert rows.count() == len(wanted)
    assert {row["range_m"] for row in rows.select("range_m").distinct().collect()} == {130.0}
    ceiling = lake_ceiling(lake, [workload])
    assert 0 < ceiling.at_once < ceiling.by_carrying < ceiling.expected - ceiling.at_once
    assert str(ceiling) == (
        f"reachable at all: {100 * (ceiling.at_once + ceiling.by_carrying) / ceiling.expected:.1f} % "
        f"(at once {100 * ceiling.at_once / ceiling.expected:.1f} %)"
    )


def test_a_flood_delivers_nothing_that_the_ceiling_calls_impossible(lake: Lake, sparse: Scenario) -> None:
    run = Run(sparse, "flooding")
    reach = reach_by_pair(lake.read("reachable", workload=run.workload))
    log = lake.read("log", run=run.id).where("kind = 'deliver'").select("event", "node").distinct()
    got = {(row[0], row[1]) for row in log.collect()}
    assert len(got) > 50
    assert "no" not in {reach[pair] for pair in got}
    at_once = {pair for pair, one in reach.items() if one == "at once"}
    assert len(got ^ at_once) <= 0.02 * len(got), "an ideal flood misses only who leaves while it goes on"


def test_stretches_and_chunks_do_not_change_the_answers(
    lake: Lake, sparse: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(sparse, "flooding")
    network = network_of(sparse, 0, 130.0)
    monkeypatch.setattr(stage, "ROWS_A_STRETCH", 40)
    monkeypatch.setattr(stage, "EVENTS_AT_ONCE", 9)
    tables = {name: lake.read(name, workload=run.workload) for name in ("events", "expected", "sessions")}
    positions = lake.read("positions", trace=run.workload)
    # Events with and without a lifespan.
    events = tables["events"].selectExpr("*", "case when time < 40 then 8.0D end as lived").drop("lifespan_s")
    events = events.withColumnRenamed("lived", "lifespan_s")

    def found() -> dict[tuple[str, str], str]:
        plans = reach_plans(events, positions, {run.workload: network})
        return reach_by_pair(events.transform(reachable(tables["expected"], positions, plans, tables["sessions"])))

    cut = found()
    whole = reach_in_one_task(
        run.workload,
        network,
        *(frame.toArrow() for frame in (events, tables["expected"], positions, tables["sessions"])),
    )
    assert cut == {(row["event"], row["node"]): row["reach"] for row in whole.to_pylist()}
    monkeypatch.undo()
    assert cut == found()
    assert set(cut.values()) == set(REACHES)


def test_a_workload_on_infrastructure_or_an_overlay_is_reachable_at_once(lake: Lake, sparse: Scenario) -> None:
    overlay = sparse.with_({"medium.kind": "overlay"})
    assert radio_range_m(overlay) == math.inf
    run = Run(sparse, "flooding")
    tables = {name: lake.read(name, workload=run.workload) for name in ("events", "expected")}
    nothing = lake.read("positions").limit(0)
    plans = reach_plans(tables["events"], nothing, {run.workload: ContactNetwork(math.inf)})
    found = tables["events"].transform(reachable(tables["expected"], nothing, plans))
    assert set(reach_by_pair(found).values()) == {"at once"}
    plans = reach_plans(tables["events"], nothing, {run.workload: ContactNetwork(130.0, infrastructure=True)})
    beside = reachable(tables["expected"], nothing, plans)
    rows = tables["events"].transform(beside).select("range_m", "reach").distinct().collect()
    assert [tuple(row) for row in rows] == [(130.0, "at once")]
    lake.write(found, "reachable")
    lake.write(found.limit(0), "reachable", workload="nobody", range_m=math.inf)
    assert lake.has("reachable", workload="nobody", range_m=math.inf)
    assert lake_ceiling(lake, [run.workload], math.inf).share_at_once == 1.0
    assert lake_ceiling(lake, [run.workload], 130.0).share_at_once < 1.0
    for name in (run.workload, "nobody"):
        lake.drop("reachable", workload=name, range_m=math.inf)


def test_a_workload_without_positions_is_out_of_reach(lake: Lake, sparse: Scenario) -> None:
    run = Run(sparse, "flooding")
    tables = {name: lake.read(name, workload=run.workload) for name in ("events", "expected")}
    nothing = lake.read("positions").limit(0)
    plans = reach_plans(tables["events"], nothing, {run.workload: ContactNetwork(100.0)})
    found = tables["events"].transform(reachable(tables["expected"], nothing, plans))
    assert set(reach_by_pair(found).values()) == {"no"}


def test_why_says_whether_a_miss_was_impossible_needed_carrying_or_was_lost(lake: Lake, sparse: Scenario) -> None:
    run = Run(sparse, "flooding")
    reach = reach_by_pair(lake.read("reachable", workload=run.workload))
    for wanted, words in (("no", "impossible: "), ("by carrying", "needed carrying: ")):
        pair = min(pair for pair, one in reach.items() if one == wanted)
        answer = ask_why(lake.arrow, run.id, *pair)
        assert (answer.expected, answer.reach) == (True, wanted)
        assert answer.delivered or answer.losses[0].startswith(words)
    pair = min(pair for pair, one in reach.items() if one == "at once")
    assert ask_why(lake.arrow, run.id, *pair).as_json()["reach"] == "at once"


def call(*arguments: str) -> str:
    done = CliRunner().invoke(earshot, list(arguments), catch_exceptions=False, standalone_mode=False)
    return done.stdout


def test_the_oracle_command_computes_the_ceiling_of_a_scenario_and_of_a_trace(
    lake: Lake, sparse: Scenario, tmp_path: Path
) -> None:
    workload = Run(sparse, "flooding").workload
    before = reach_by_pair(lake.read("reachable", workload=workload))
    assert str(lake_ceiling(lake, [workload])) in call("oracle", workload, "--lake", lake.name)
    assert reach_by_pair(lake.read("reachable", workload=workload)) == before
    # ann walks from cat to bob: cat's event of 0 s must be carried.
    walk = tmp_path / "walk.csv"
    rows = [f"ann,{t},{5 * t},0" for t in range(0, 21, 2)] + [
        f"{name},{t},{x},0" for name, x in (("bob", 100), ("cat", 0), ("dan", 500)) for t in (0, 10, 20)
    ]
    walk.write_text("node,time,x_m,y_m\n" + "\n".join(rows))
    events, wanted = tmp_path / "sirens.jsonl", tmp_path / "wanted.jsonl"
    lines = [{"type": "Siren", "content": {"speed": 9}, "id": id, "node": "cat", "time_s": 0, **more}
             for id, more in (("long", {}), ("short", {"lifespan_s": 15.9}))]  # fmt: skip
    events.write_text("\n".join(map(json.dumps, lines)))
    wanted.write_text(
        "\n".join(json.dumps({"node": name, "filter": "Siren: speed > 5"}) for name in ("ann", "bob", "dan"))
    )
    call("ingest", str(walk), "--format", "csv", "--trace", "walk", "--lake", lake.name)
    call("workload", "rounds", "--events", str(events), "--subscriptions", str(wanted), "--lake", lake.name)
    stated = call("oracle", "rounds", "--trace", "walk", "--range", "20m", "--lake", lake.name)
    assert "reachable at all: 50.0 % (at once 33.3 %)" in stated
    assert reach_by_pair(lake.read("reachable", workload="rounds", range_m=20.0)) == {
        ("long", "ann"): "at once", ("short", "ann"): "at once",
        ("long", "bob"): "by carrying", ("short", "bob"): "no",
        ("long", "dan"): "no", ("short", "dan"): "no",
    }  # fmt: skip
    shares = json.loads(call("oracle", "rounds", "--trace", "walk", "--range", "600m", "--json", "--lake", lake.name))
    assert (shares["ceiling"], shares["ceiling_at_once"]) == (1.0, 1.0)
    assert len(lake.partitions("reachable", workload="rounds")) == 2


def test_the_stage_agrees_with_the_kernel_in_one_process(spark: SparkSession) -> None:
    rng = np.random.default_rng(2)
    nodes, steps, count = 30, 60, 120
    names = [f"n{i}" for i in range(nodes)]
    places = np.cumsum(rng.normal(0, 12, (steps, nodes, 2)), axis=0) + rng.uniform(0, 500, (nodes, 2))
    rows = [("w", names[i], float(t), *map(float, places[t, i])) for i in range(nodes) for t in range(steps)]
    node, time, x, y = (np.array(column) for column in zip(*((names.index(r[1]), *r[2:]) for r in rows), strict=True))
    contacts = contacts_of_legs(legs_of(node.astype(np.int64), time, x, y, math.inf), 80.0)
    source, published = rng.integers(0, nodes, count), np.round(rng.uniform(0, steps, count), 1)
    pairs = [(e, n) for e in range(count) for n in range(nodes) if n != source[e]]
    pair_event, pair_node = (np.array(column) for column in zip(*pairs, strict=True))
    columns = PublishedColumns(source, published, published + 20.0)
    truth = reach_of_pairs(nodes, contacts, columns, pair_event, pair_node)
    values = {"workload": "w", "type": "T", "lifespan_s": 20.0, "priority": 0, "format": "json", "content": "{}"}
    events = [
        {**dict.fromkeys(EVENTS.columns), **values, "event": f"e{e}", "source": names[source[e]], "time": float(t)}
        for e, t in enumerate(published)
    ]
    frames = (
        spark.createDataFrame(
            [("w", f"e{e}", names[n]) for e, n in pairs], "workload string, event string, node string"
        ),
        spark.createDataFrame(rows, "trace string, node string, time double, x_m double, y_m double"),
    )
    published = spark.createDataFrame(events, EVENTS.ddl)
    plans = reach_plans(published, frames[1], {"w": ContactNetwork(80.0)})
    found = published.transform(reachable(*frames, plans))
    assert reach_by_pair(found) == {(f"e{e}", names[n]): REACHES[one] for (e, n), one in zip(pairs, truth, strict=True)}
    assert set(truth) == {0, 1, 2}
