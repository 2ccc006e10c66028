"""The flow: workload -> oracle -> reachable -> sweep -> metrics, each stage for what the lake does not have yet."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from earshot.errors import ScenarioError
from earshot.pipeline.campaigns.campaigns import Campaign, Run, campaign
from earshot.pipeline.campaigns.leaderboard import WHOLE_AND_BY_TYPE, Leaderboard, board_of
from earshot.pipeline.campaigns.metrics import pairs
from earshot.pipeline.campaigns.outside_metrics import ABOUT, about_text, learn_columns, measured, named_metrics
from earshot.pipeline.campaigns.run_figures import Row, figures_of, figures_table
from earshot.pipeline.campaigns.run_pairs import READ, asked_rows, condensed, condensed_log
from earshot.pipeline.campaigns.sweeps import Outcome, Progress, outcomes_in, sweep
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.data_files import DataFile, DataFiles
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.oracle.oracle import expected_receivers, with_demands
from earshot.pipeline.oracle.own_workloads import own_events, own_subscriptions, placed_from
from earshot.pipeline.oracle.reachable import (
    Ceiling,
    ContactNetwork,
    ceiling_of,
    network_of,
    radio_range_m,
    reach_plans,
    reachable,
)
from earshot.pipeline.oracle.whole_workloads import ask_whole, expected_of, fits_one_task, reach_whole
from earshot.pipeline.oracle.workloads import reacting_tables, workload_tables
from earshot.pipeline.spark.tasks import each_in_a_task
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.settings_reader import Where, read
from earshot.traces.lake_tables import longest_gap, trace_about

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from earshot.pipeline.lake.lake import Lake

Say = Callable[[str], None]
"Called with the name of the stage that begins."
RUNS_A_COMMIT = 64
"The driver holds the metrics of at most this number of runs at once."


def run_campaign(
    lake: Lake,
    campaign: Campaign,
    say: Say | None = None,
    progress: Progress | None = None,
    most_s: float | None = None,
    own_metrics: Sequence[str] = (),
) -> list[Outcome]:
    """All stages from the campaign's scenarios to its metrics; what the lake has is not computed again. A run that
    takes more than `most_s` of processor time fails. `own_metrics` names plug-ins, besides those of the campaign."""
    names = list(dict.fromkeys((*campaign.metrics, *own_metrics)))
    named_metrics(names)  # a wrong name is found before anything runs
    report = say or _silent
    report("simulating")
    outcomes = sweep(lake, campaign.name, campaign.runs, progress, most_s)
    done = {outcome.run for outcome in outcomes if outcome.status == "done"}
    runs = [run for run in campaign.runs if run.id in done]
    report("drawing the workloads")
    draw_workloads(lake, runs)
    report("asking the oracle")
    ask_oracle(lake, [run.workload for run in runs])
    report("finding what is reachable")
    find_reachable(lake, runs)
    report("measuring")
    measure(lake, [run.id for run in runs], names=names)
    return outcomes


def compare(
    lake: Lake,
    scenario: Scenario,
    protocols: Iterable[str] | Mapping[str, Mapping[str, Any]],
    seeds: int = 5,
    say: Say | None = None,
    progress: Progress | None = None,
) -> Leaderboard:
    """The leaderboard of protocols (names, or names with their settings) on one scenario. What the lake has is not
    computed again. A run that failed is a row of `runs` with its error."""
    chosen = protocols if isinstance(protocols, Mapping) else {name: {} for name in protocols}
    wanted = campaign(f"compare-{scenario.name}", [scenario], chosen, range(seeds))
    outcomes = run_campaign(lake, wanted, say, progress)
    return lake_leaderboard(lake, [outcome.run for outcome in outcomes])


def _silent(stage: str) -> None:
    del stage


def draw_workloads(lake: Lake, runs: Iterable[Run]) -> None:
    """`scenarios`, `events`, `subscriptions`, `announcements` and `positions` of the runs' workloads."""
    wanted = {run.workload: run for run in runs}
    there = {partition["workload"] for partition in lake.partitions("events")}
    missing = [run for workload, run in wanted.items() if workload not in there]
    if not missing:
        return
    lake.check_shared()
    answers = [json.loads(answer) for answer in each_in_a_task(lake.session, missing, partial(_draw, lake.arrow.files))]
    lake.arrow.write_rows("scenarios", [answer["scenario"] for answer in answers])
    # Events last: a workload exists once it has events.
    for table in ("positions", "sessions", "subscriptions", "announcements", "events"):
        lake.arrow.commit([DataFile(**answer["files"][table]) for answer in answers])


def _draw(files: DataFiles, run: Run) -> str:
    """In a task: draw one workload and write its tables."""
    if run.scenario.reacts:
        drawn = reacting_tables(run.workload, run.scenario, run.seed, run.protocol, run.settings)
    else:
        drawn = workload_tables(run.workload, run.scenario, run.seed)
    written = [files.write_rows("positions", drawn.positions, trace=run.workload)]
    tables = ("sessions", "subscriptions", "announcements", "events")
    written += [files.write_rows(table, getattr(drawn, table), workload=run.workload) for table in tables]
    by_table = {file.table: asdict(file) for file in written}
    return json.dumps({"scenario": {**drawn.scenario, "workload": run.workload}, "files": by_table})


def draw_scenario(lake: Lake, scenario: Scenario, seed: int) -> tuple[str, dict[str, int]]:
    """Write a scenario's workload into the lake; returns its id and the number of rows by table."""
    if scenario.reacts:
        raise ScenarioError(
            f"{scenario.name}: drivers react to events, so that each protocol has a workload of its own: "
            "use earshot sweep or compare"
        )
    run = Run(scenario, "", {}, seed)
    draw_workloads(lake, [run])
    return run.workload, _workload_counts(lake, run.workload)


def keep_own_workload(lake: Lake, name: str, events: Sequence[str], subscriptions: str) -> dict[str, int]:
    """Write a workload from the user's own files into the lake; returns the number of rows by table."""
    wanted = own_subscriptions(lake.session, name, subscriptions)
    published = own_events(lake.session, name, events)
    lake.write(wanted, "subscriptions", workload=name)
    lake.write(published, "events", workload=name)
    lake.drop("expected", workload=name)
    lake.drop("reachable", workload=name)
    return _workload_counts(lake, name)


def _workload_counts(lake: Lake, workload: str) -> dict[str, int]:
    return {table: lake.read(table, workload=workload).count() for table in ("events", "subscriptions")}


def expected_counts(lake: Lake, workload: str, trace: str | None = None) -> dict[str, int]:
    """Compute `expected` of one workload again; with a trace, positions come from it, those of events too where the
    workload does not say where they were published."""
    events = lake.read("events", workload=workload)
    wanted = lake.read("subscriptions", workload=workload)
    positions = lake.read("positions", trace=trace) if trace else lake.read_or_empty("positions", trace=workload)
    if trace:
        (about,) = lake.arrow.read("traces", trace=trace).to_pylist() or [{}]  # recorded runs have no such row
        max_gap_s = longest_gap(about.get("motion") or "samples", about.get("interval_s"))
        events = events.transform(placed_from(positions, max_gap_s))
    if fits_one_task(lake, workload, trace):
        known = lake.arrow.read("positions", trace=trace or workload)
        asked = lake.arrow.read("subscriptions", workload=workload)
        given = events.toArrow() if trace else lake.arrow.read("events", workload=workload)
        found = expected_of(given, asked, known, only_placed=bool(trace))
        lake.write_table(found, "expected", workload=workload)
        return {
            "pairs": found.group_by(["event", "node"]).aggregate([]).num_rows,
            "events": pc.count_distinct(found.column("event")).as_py(),
            "nodes": pc.count_distinct(found.column("node")).as_py(),
        }
    _write_expected(lake, workload, events, wanted, positions.withColumn("trace", F.lit(workload)), bool(trace))
    counts = lake.read("expected", workload=workload).agg(
        F.count_distinct("event", "node").alias("pairs"),
        F.count_distinct("event").alias("events"),
        F.count_distinct("node").alias("nodes"),
    )
    return {name: int(value) for name, value in counts.collect()[0].asDict().items()}


def _write_expected(
    lake: Lake, workload: str, events: DataFrame, wanted: DataFrame, positions: DataFrame, only_placed: bool
) -> None:
    asked = wanted.transform(with_demands).persist()
    counts = [lake.arrow.count_rows(table, workload=workload) for table in ("events", "subscriptions")]
    expected = events.transform(expected_receivers(asked, positions, *counts))
    if only_placed:
        expected = expected.transform(_of_those_there(events, positions))
    try:
        lake.write(expected, "expected", workload=workload)
    finally:
        asked.unpersist()


def _of_those_there(events: DataFrame, positions: DataFrame) -> Callable[[DataFrame], DataFrame]:
    """Of the expected receivers, those whose first position is not after the event and whose last is not before it: a
    subscription that asks for no place is that of a node all the same."""

    def transform(expected: DataFrame) -> DataFrame:
        spans = positions.groupBy("node").agg(F.min("time").alias("first"), F.max("time").alias("last"))
        there = F.col("published").between(F.col("first"), F.col("last"))
        when = events.select("event", F.col("time").alias("published"))
        return expected.join(when, "event").join(spans, "node").where(there).select(*expected.columns)

    return transform


def ask_oracle(lake: Lake, workloads: Sequence[str], again: bool = False) -> None:
    """`expected` of those workloads."""
    there = {partition["workload"] for partition in lake.partitions("expected")}
    missing = sorted({one for one in workloads if again or one not in there})
    if not missing:
        return
    for workload in missing:
        if not lake.has("events", workload=workload):
            lake.read("events", workload=workload)  # raises an error that says what to do
    whole = [workload for workload in missing if fits_one_task(lake, workload)]
    ask_whole(lake, whole)
    missing = sorted({*missing} - {*whole})
    if not missing:
        return
    events = lake.read("events").where(F.col("workload").isin(missing))
    asked = lake.read("subscriptions").where(F.col("workload").isin(missing)).transform(with_demands).persist()
    positions = lake.read_or_empty("positions").where(F.col("trace").isin(missing))
    try:
        counts = [
            sum(lake.arrow.count_rows(table, workload=workload) for workload in missing)
            for table in ("events", "subscriptions")
        ]
        written = lake.write(events.transform(expected_receivers(asked, positions, *counts)), "expected")
    finally:
        asked.unpersist()
    nothing = lake.session.createDataFrame([], "event string, node string, subscription string, why string")
    for workload in {*missing} - {partition["workload"] for partition in written}:
        lake.write(nothing, "expected", workload=workload)


def find_reachable(lake: Lake, runs: Sequence[Run]) -> None:
    """`reachable` of the workloads of those runs, at the ranges of their radios."""
    there = {(one["workload"], float(one["range_m"])) for one in lake.partitions("reachable")}
    by_range: dict[float, dict[str, Run]] = {}
    for run in runs:
        if (run.workload, run.range_m) not in there:
            by_range.setdefault(run.range_m, {})[run.workload] = run
    for range_m, asked in by_range.items():
        networks = {name: network_of(run.scenario, run.seed, range_m) for name, run in asked.items()}
        whole = {name: one for name, one in networks.items() if fits_one_task(lake, name)}
        reach_whole(lake, whole)
        missing = {name: one for name, one in networks.items() if name not in whole}
        if not missing:
            continue
        _write_reachable(
            lake,
            missing,
            lake.read("positions").where(F.col("trace").isin(list(missing))),
            lake.read("sessions").where(F.col("workload").isin(list(missing))),
        )


def _write_reachable(
    lake: Lake, networks: Mapping[str, ContactNetwork], positions: DataFrame, sessions: DataFrame | None
) -> None:
    ours = F.col("workload").isin(list(networks))
    expected, events = lake.read("expected").where(ours), lake.read("events").where(ours)
    plans = reach_plans(events, positions, networks)
    written = lake.write(events.transform(reachable(expected, positions, plans, sessions)), "reachable")
    nothing = lake.session.createDataFrame([], "event string, node string, reach string")
    for name in networks.keys() - {partition["workload"] for partition in written}:
        lake.write(nothing, "reachable", workload=name, range_m=networks[name].range_m)


def lake_ceiling(lake: Lake, workloads: Sequence[str], range_m: float | None = None) -> Ceiling:
    """What of the workloads' expected deliveries is reachable; at one range, where a workload has several."""
    rows = lake.read("reachable").where(F.col("workload").isin(list(workloads)))
    return ceiling_of(rows if range_m is None else rows.where(F.col("range_m") == range_m))


def workload_ceiling(lake: Lake, workload: str, trace: str | None, range_m: float | None) -> Ceiling | None:
    """Compute `reachable` of one workload again, at the range of its scenario or at the given one; None where
    neither is known."""
    if range_m is None:
        if not lake.has("scenarios", workload=workload):
            return None
        row = lake.read("scenarios", workload=workload).collect()[0]
        scenario = read(Scenario, json.loads(row["described"]), Where(row["scenario"]))
        network = network_of(scenario, row["seed"], radio_range_m(scenario))
        sessions = lake.read("sessions", workload=workload)
    else:
        gap_s = trace_about(lake.folder.root, trace).longest_gap_s if trace else math.inf
        network, sessions = ContactNetwork(range_m, gap_s), None
    positions = lake.read("positions", trace=trace or workload).withColumn("trace", F.lit(workload))
    if fits_one_task(lake, workload, trace):
        reach_whole(lake, {workload: network}, trace, sessions is not None)
    else:
        _write_reachable(lake, {workload: network}, positions, sessions)
    return lake_ceiling(lake, [workload], network.range_m)


def measure(lake: Lake, runs: Sequence[str], again: bool = False, names: Sequence[str] = ()) -> None:
    """`metrics` of those runs, and those of the plug-ins with these names."""
    there = {partition["run"] for partition in lake.partitions("metrics")}
    missing = sorted({run for run in runs if again or run not in there})
    if missing:
        _measure_runs(lake, missing)
    own = named_metrics(names)
    if not own:
        return
    abouts = {about_text(name, metric) for name, metric in own.items()}
    known_rows = lake.read("metrics").where((F.col("by") == ABOUT) & F.col("run").isin(list(runs))).collect()
    known: dict[str, set[str]] = {}
    for row in known_rows:
        known.setdefault(row["run"], set()).add(row["key"])
    wanting = sorted(run for run in runs if not abouts <= known.get(run, set()))
    if not wanting:
        return
    log, chosen, expected, reach = _measured(lake, wanting)
    finished = chosen.where("status = 'done'").select("run", "workload", "range_m", "warm_up_s")
    after = log.join(F.broadcast(finished.select("run", "warm_up_s")), "run").where("time >= warm_up_s")
    rows = measured(own, after, lambda: log.transform(pairs(chosen, expected, reach)))
    kept = lake.read("metrics").where(F.col("run").isin(wanting))
    kept = kept.where(~F.col("metric").isin([metric.name for metric in own.values()]))
    if rows is not None:
        lake.write(kept.unionByName(rows), "metrics")


def _figures(folder: Folder, one: Outcome) -> str:
    """In a task: the figures of one run, as JSON."""
    lake = ArrowLake(folder)
    log = condensed_log(lake.batches("log", READ, run=one.run), one.warm_up_s)
    if not log.num_rows:
        return "[]"
    expected = lake.read("expected", workload=one.workload)
    reachable = None
    if one.range_m is not None:
        reachable = lake.read("reachable", workload=one.workload, range_m=one.range_m)
    records = condensed([log, asked_rows(expected, reachable)])
    return msgspec.json.encode(list(figures_of(records))).decode()


def _measure_runs(lake: Lake, runs: Sequence[str]) -> None:
    """`metrics` of those runs that are done, in place of what the lake has of them."""
    wanted = {*runs}
    done = [one for one in outcomes_in(lake, "done") if one.run in wanted]
    for workload in dict.fromkeys(one.workload for one in done):
        if not lake.has("expected", workload=workload):
            lake.read("expected", workload=workload)  # raises an error that says what to do
    lake.check_shared()
    for first in range(0, len(done), RUNS_A_COMMIT):
        some = done[first : first + RUNS_A_COMMIT]
        answers = each_in_a_task(lake.session, some, partial(_figures, lake.folder))
        tables = [
            figures_table(one.run, msgspec.json.decode(answer, type=list[Row]))
            for one, answer in zip(some, answers, strict=True)
        ]
        lake.arrow.write_table(pa.concat_tables(tables), "metrics")


def measure_all(lake: Lake, names: Sequence[str]) -> None:
    """The metrics of the plug-ins with these names, of every run that is done: no run is repeated for them."""
    done = lake.read("runs").where("status = 'done'").select("run").collect()
    measure(lake, sorted(row["run"] for row in done), names=names)


def _measured(lake: Lake, runs: Sequence[str]) -> tuple[DataFrame, DataFrame, DataFrame, DataFrame]:
    """The tables that metrics of those runs come from: log, runs, expected, reachable."""
    chosen = lake.read("runs").where(F.col("run").isin(list(runs)))
    workloads = [row["workload"] for row in chosen.select("workload").distinct().collect()]
    expected = lake.read("expected").where(F.col("workload").isin(workloads))
    log = lake.read("log").where(F.col("run").isin(list(runs)))
    reach = lake.read_or_empty("reachable").where(F.col("workload").isin(workloads))
    return log, chosen, expected, reach


def whole_run_figures(lake: Lake, runs: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """By run, these metrics of the whole run, as far as the lake has them."""
    wanted = {name: pa.array(some, pa.string()) for name, some in (("run", runs), ("metric", names), ("by", ["all"]))}
    found: dict[str, dict[str, float]] = {}
    for batch in lake.arrow.batches("metrics", ["run", "metric", "by", "value"]):
        rows = pa.Table.from_batches([batch])
        for name, some in wanted.items():
            rows = rows.filter(pc.is_in(rows.column(name), some))
        for row in rows.to_pylist():
            found.setdefault(row["run"], {})[row["metric"]] = row["value"]
    return found


@dataclass(frozen=True, slots=True)
class LakeRows:
    """Rows of `runs`, and those of `metrics` by grouping, as plain values."""

    runs: Sequence[Mapping[str, Any]]
    "Failed ones included."
    metrics: Mapping[str, Sequence[Mapping[str, Any]]]

    @property
    def finished(self) -> list[Mapping[str, Any]]:
        """The runs that are done."""
        return [row for row in self.runs if row["status"] == "done"]

    @property
    def leaderboard(self) -> Leaderboard:
        """Of the finished runs."""
        return board_of(self.finished, self.metrics["all"], self.metrics["type"])


def lake_rows(
    lake: Lake, runs: Sequence[str] | None = None, groupings: Mapping[str, Sequence[str]] = WHOLE_AND_BY_TYPE
) -> LakeRows:
    """What the lake has of those runs, or of all; of each grouping the metrics that are named, or all. Two Spark jobs
    collect it."""
    tables = lake.read("runs"), lake.read("metrics")
    if runs is not None:
        chosen = F.col("run").isin(list(runs))
        tables = tables[0].where(chosen), tables[1].where(chosen)
    figures = _metric_rows(tables[1], {**groupings, ABOUT: ()})
    learn_columns(figures.pop(ABOUT))
    rows = [row.asDict() for row in tables[0].collect()]
    return LakeRows(sorted(rows, key=lambda row: (row["scenario"], row["variant"], row["seed"], row["run"])), figures)


def _metric_rows(metrics: DataFrame, groupings: Mapping[str, Sequence[str]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of `metrics` by grouping, of the metrics that are named for it, or of all. One Spark job collects them."""
    wanted = F.lit(False)
    for by, names in groupings.items():
        wanted |= (F.col("by") == by) & (F.col("metric").isin(*names) if names else F.lit(True))
    found: dict[str, list[dict[str, Any]]] = {by: [] for by in groupings}
    for row in metrics.where(wanted).select("run", "metric", "by", "key", "value").collect():
        found[row["by"]].append(row.asDict())
    return found


def lake_leaderboard(lake: Lake, runs: Sequence[str] | None = None) -> Leaderboard:
    """The leaderboard of those runs, or of all in the lake."""
    return lake_rows(lake, runs).leaderboard
