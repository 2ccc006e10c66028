"""Which subscriptions agree with which events by type and content: a join through `FilterIndex`es.

Events and subscriptions of one workload are dealt into slices and parts of bounded size. Every slice of
events meets every part of subscriptions in one group, in one task. A worker keeps the indexes it has
built by what is in them, so that a part is not indexed again for the next slice.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from earshot.filters import Oracle
from earshot.filters.subscription import inside_region
from earshot.pipeline.oracle.workloads import area_of, events_of
from earshot.records.sessions import SubscriptionSpan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVENTS_A_SLICE = 10_000
SUBSCRIPTIONS_A_PART = 50_000
_SPAN = ("node", "subscription", "filter", "region", "start", "end")
_FOUND = "workload string, event string, time double, node string, subscription string, filter string, region string"
_FOUND_ARROW = pa.schema(
    [(name, pa.float64() if name == "time" else pa.string()) for name in ("workload", "event", "time", *_SPAN[:4])]
)
_INDEXES_KEPT = 4


def fit_one_group(events: int | None, subscriptions: int | None) -> bool:
    """Whether this number of events is one slice and this number of subscriptions one part; None: nobody knows."""
    if events is None or subscriptions is None:
        return False
    return events <= EVENTS_A_SLICE and subscriptions <= SUBSCRIPTIONS_A_PART


def candidates_by_content(subscriptions: DataFrame, one_group: bool = False) -> Callable[[DataFrame], DataFrame]:
    """Events to candidates: (workload, event, time, node, subscription, filter, region) for each subscription
    that was in force, is not the publisher's own, agrees with type and content, and whose region holds the
    event. With `one_group`, each workload is a group: Spark counts nothing first."""

    def transform(events: DataFrame) -> DataFrame:
        if one_group:
            dealt = events.groupBy("workload"), subscriptions.select("workload", *_SPAN).groupBy("workload")
            return dealt[0].cogroup(dealt[1]).applyInArrow(_matched, _FOUND)
        slices = _dealt(events, EVENTS_A_SLICE, "slices")
        parts = _dealt(subscriptions, SUBSCRIPTIONS_A_PART, "parts")
        every_slice = F.explode(F.sequence(F.lit(0), F.col("slices") - 1)).alias("slice")
        every_part = F.explode(F.sequence(F.lit(0), F.col("parts") - 1)).alias("part")
        dealt_events = (
            events.join(F.broadcast(slices), "workload")
            .join(F.broadcast(parts), "workload")
            .select(*events.columns, F.pmod(F.hash("event"), "slices").alias("slice"), every_part)
        )
        dealt_subscriptions = (
            subscriptions.join(F.broadcast(parts), "workload")
            .join(F.broadcast(slices), "workload")
            .select("workload", *_SPAN, F.pmod(F.hash("subscription", "node"), "parts").alias("part"), every_slice)
        )
        keys = ("workload", "slice", "part")
        return dealt_events.groupBy(*keys).cogroup(dealt_subscriptions.groupBy(*keys)).applyInArrow(_matched, _FOUND)

    return transform


def _dealt(table: DataFrame, size: int, name: str) -> DataFrame:
    """How many shares of at most about that size each workload's rows are dealt into."""
    return table.groupBy("workload").agg(F.ceil(F.count("*") / size).cast("int").alias(name))


def _matched(events: pa.Table, subscriptions: pa.Table) -> pa.Table:
    """One group: a slice of events and a part of the subscriptions."""
    if not events.num_rows or not subscriptions.num_rows:
        return _FOUND_ARROW.empty_table()
    known = subscriptions.select(_SPAN).sort_by([(name, "ascending") for name in ("subscription", "node", "start")])
    oracle = _oracle_of(known)
    published = list(events_of(events))
    rows, spans = oracle.candidates(published, [event.time for event in published])
    inside = np.array(
        [
            inside_region(published[row], oracle.spans[span].region)
            for row, span in zip(rows.tolist(), spans.tolist(), strict=True)
        ],
        dtype=bool,
    )
    rows, spans = rows[inside], spans[inside]
    chosen = events.select(["workload", "event", "time"]).take(pa.array(rows))
    for name in _SPAN[:4]:
        chosen = chosen.append_column(name, known.column(name).take(pa.array(spans)))
    return chosen.cast(_FOUND_ARROW)


_oracles: dict[bytes, Oracle] = {}


def _oracle_of(rows: pa.Table) -> Oracle:
    """The oracle over these rows; a worker keeps the last few."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    key = hashlib.sha256(sink.getvalue()).digest()
    if key not in _oracles:
        while len(_oracles) >= _INDEXES_KEPT:
            del _oracles[next(iter(_oracles))]
        _oracles[key] = Oracle(
            SubscriptionSpan(node, subscription, filter, area_of(region), start, math.inf if end is None else end)
            for node, subscription, filter, region, start, end in zip(
                *(rows.column(name).to_pylist() for name in _SPAN), strict=True
            )
        )
    return _oracles[key]
