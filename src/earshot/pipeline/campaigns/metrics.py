"""Metrics: what the records of a run amount to, against the oracle's expected receivers.

Long form: one row for each run, metric and group. `by` says how the group was made (`all`, `type`, `node`,
`minute`, `area`, `cause`, `reason`, `packet`), `key` which one it is. Only what is published and sent after
a scenario's warm-up counts.

A run's records are condensed where they are read (`run_pairs`), and its pairs of events and nodes are measured in one
task (`run_figures`): in a lake that task reads the run's own files, and `metrics` groups any log by run.

=======================  ====================================================================
delivery_ratio           expected (event, node) pairs that were delivered / all expected pairs
delivery_of_reachable    the same of the pairs that are reachable at all
ceiling                  expected pairs that are reachable at all / all expected pairs
ceiling_at_once          expected pairs that are reachable without carrying / all expected pairs
missed_impossible        expected pairs without delivery that are not reachable / all expected pairs
missed_needed_carrying   ... that are reachable only by carrying
missed_lost              ... that are reachable at once
lost                     expected pairs without delivery; by cause, by area, ...
precision                delivered pairs that were expected / all delivered pairs
cost                     transmissions that carry an event / events published
control_bytes            bytes of transmissions that carry none
data_bytes               bytes of transmissions that carry an event
bytes_per_delivery       all bytes / delivered pairs
airtime_mean             share of time in which the channel was busy, over all nodes
airtime_busiest          the largest such share of one node in one window (about 10 s)
overhead                 receptions by nodes to which nothing of that event was delivered / receptions
duplicates               receptions of an event by a node beyond its first / events published
latency_p50_s ...        publication to delivery, over expected pairs that were delivered
age_of_information_s     age of the newest event a receiver has of a publisher and type, averaged over the time from
                         its first delivery to its last (Kaul, Yates and Gruteser, INFOCOM 2012)
inter_reception_s        time between two such deliveries, mean; `inter_reception_p95_s` is its 95th percentile
fairness                 Jain's index of the receivers' delivery ratios: 1 where all are served equally, 1/n where
                         one of n gets everything (Jain, Chiu and Hawe, DEC TR-301, 1984)
hops                     transmissions from publisher to subscriber, mean over deliveries that count them
drops                    records of a drop, by reason
=======================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from earshot.pipeline.campaigns import run_pairs
from earshot.pipeline.campaigns.run_figures import AREA_M, figures_of, figures_table
from earshot.pipeline.campaigns.run_pairs import READ, RECORDS, condensed, pairs_of, pairs_table, records_of
from earshot.pipeline.lake.tables import METRICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TYPES = {pa.string(): "string", pa.float64(): "double", pa.int64(): "bigint"}
_DDL = ", ".join(f"{field.name} {_TYPES[field.type]}" for field in RECORDS)


def metrics(
    runs: DataFrame, expected: DataFrame, reachable: DataFrame | None = None, area_m: float = AREA_M
) -> Callable[[DataFrame], DataFrame]:
    """From the log of runs to their metrics: `log.transform(metrics(runs, expected, reachable))`."""

    def measured(key: tuple[pa.Scalar, ...], records: pa.Table) -> pa.Table:
        return figures_table(key[0].as_py(), list(figures_of(condensed([records.select(RECORDS.names)]), area_m)))

    def transform(log: DataFrame) -> DataFrame:
        rows = log.transform(_records(runs, expected, reachable))
        return rows.groupBy("run").applyInArrow(measured, METRICS.ddl)

    return transform


def pairs(runs: DataFrame, expected: DataFrame, reachable: DataFrame | None = None) -> Callable[[DataFrame], DataFrame]:
    """From the log of runs to one row for each (run, event, node) of a published event that the node was expected to
    get, got, heard or published, with what is known of both."""

    def found(key: tuple[pa.Scalar, ...], records: pa.Table) -> pa.Table:
        return pairs_table(key[0].as_py(), pairs_of(condensed([records.select(RECORDS.names)])))

    def transform(log: DataFrame) -> DataFrame:
        rows = log.transform(_records(runs, expected, reachable))
        return rows.groupBy("run").applyInArrow(found, run_pairs.PAIRS)

    return transform


def _records(runs: DataFrame, expected: DataFrame, reachable: DataFrame | None) -> Callable[[DataFrame], DataFrame]:
    """The condensed records of the runs that are done, and what was expected and reachable as records of its own."""

    def transform(log: DataFrame) -> DataFrame:
        finished = F.broadcast(runs.where("status = 'done'").select("run", "workload", "range_m", "warm_up_s"))
        ours = log.join(finished.select("run", "warm_up_s"), "run").select("run", "warm_up_s", *READ)
        rows = ours.mapInArrow(_condensed_by_run, f"run string, {_DDL}")
        wanted = expected.select("workload", "event", "node").join(finished, "workload")
        asked = [wanted.select("run", "event", "node", F.lit(run_pairs.EXPECTED).alias("kind"))]
        if reachable is not None:
            known = reachable.join(finished, ["workload", "range_m"])
            kind, reach = F.lit(run_pairs.REACHABLE).alias("kind"), F.col("reach").alias("detail")
            asked.append(known.select("run", "event", "node", kind, reach))
        for some in asked:
            rows = rows.unionByName(some, allowMissingColumns=True)
        return rows

    return transform


def _condensed_by_run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for run in pc.unique(table.column("run")).to_pylist():
            ours = table.filter(pc.equal(table.column("run"), run))
            found = condensed([records_of(ours, ours.column("warm_up_s")[0].as_py())])
            yield from found.add_column(0, "run", pa.repeat(run, found.num_rows)).to_batches()
