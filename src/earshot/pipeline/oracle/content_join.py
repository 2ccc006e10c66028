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
_PAIR = "workload string, event string, node string, subscription string"
_PAIR_ARROW = pa.schema([(name, pa.string()) for name in ("workload", "event", *_SPAN[:2])])
_INDEXES_KEPT = 4


def fit_one_group(events: int | None, subscriptions: int | None) -> bool:
    """Whether this number of events is one slice and this number of subscriptions one part; None: nobody knows."""
    if events is None or subscriptions is None:
        return False
    return events <= EVENTS_A_SLICE and subscriptions <= SUBSCRIPTIONS_A_PART


def candidates_by_content(
    subscriptions: DataFrame, one_group: bool = False, pairs_only: bool = False
) -> Callable[[DataFrame], DataFrame]:
    """Events to candidates: (workload, event, time, node, subscription, filter, region) for each subscription
    that was in force, is not the publisher's own, agrees with type and content, and whose region holds the
    event. With `one_group`, each workload is a group: Spark counts nothing first. With `pairs_only`, the columns that
    a test of places needs are left out: time, filter and region."""

    def transform(events: DataFrame) -> DataFrame:
        matched, columns = (_matched_pairs, _PAIR) if pairs_only else (_matched, _FOUND)
        if one_group:
            dealt = events.groupBy("workload"), subscriptions.select("workload", *_SPAN).groupBy("workload")
            return dealt[0].cogroup(dealt[1]).applyInArrow(matched, columns)
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
        return dealt_events.groupBy(*keys).cogroup(dealt_subscriptions.groupBy(*keys)).applyInArrow(matched, columns)

    return transform


def _dealt(table: DataFrame, size: int, name: str) -> DataFrame:
    """How many shares of at most about that size each workload's rows are dealt into."""
    return table.groupBy("workload").agg(F.ceil(F.count("*") / size).cast("int").alias(name))


def _matched(events: pa.Table, subscriptions: pa.Table) -> pa.Table:
    """One group: a slice of events and a part of the subscriptions."""
    return _join(events, subscriptions, _FOUND_ARROW)


def _matched_pairs(events: pa.Table, subscriptions: pa.Table) -> pa.Table:
    """The same, without the columns that a test of places needs."""
    return _join(events, subscriptions, _PAIR_ARROW)


def _join(events: pa.Table, subscriptions: pa.Table, schema: pa.Schema) -> pa.Table:
    if not events.num_rows or not subscriptions.num_rows:
        return schema.empty_table()
    known = subscriptions.select(_SPAN).sort_by([(name, "ascending") for name in ("subscription", "node", "start")])
    oracle = _oracle_of(known)
    published = list(events_of(events))
    rows, spans = oracle.candidates(published, [event.time for event in published])
    has_region = np.array([span.region is not None for span in oracle.spans], dtype=bool)
    asked = np.flatnonzero(has_region[spans])
    outside = [
        place
        for place, row, span in zip(asked.tolist(), rows[asked].tolist(), spans[asked].tolist(), strict=True)
        if not inside_region(published[row], oracle.spans[span].region)
    ]
    rows, spans = np.delete(rows, outside), np.delete(spans, outside)
    matched, among = pa.array(rows), pa.array(spans)
    return pa.Table.from_arrays(
        [
            known.column(name).take(among) if name in _SPAN else events.column(name).take(matched)
            for name in schema.names
        ],
        schema.names,
    ).cast(schema)


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
