"""Age of information, time between receptions and fairness, against plain loops over the same deliveries."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from earshot.pipeline.campaigns.receivers import RECEIVERS, gap_sums, receiver_figures, with_gaps

pytestmark = pytest.mark.spark

SCHEMA = (
    "run string, event string, node string, source string, type string, published_at double, delivered_at double, "
    "wanted boolean, got boolean"
)


def drawn(seed: int) -> list[tuple[Any, ...]]:
    """Pairs of several streams, some lost, some overtaking each other, some unexpected."""
    chance = random.Random(seed)
    rows = []
    for k in range(60):
        source, kind, at = chance.choice("pq"), chance.choice(("Siren", "Fire")), chance.uniform(0.0, 100.0)
        for node in "abcd":
            wanted, got = chance.random() < 0.8, chance.random() < {"a": 1.0, "b": 0.7, "c": 0.3, "d": 0.0}[node]
            delivered = at + chance.expovariate(0.2) if got else None
            rows.append((f"r{seed}", f"e{k}", node, source, kind, at, delivered, wanted, got))
    return rows


def by_hand(rows: list[tuple[Any, ...]]) -> dict[str, float]:
    streams: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for _, _, node, source, kind, published, delivered, wanted, got in rows:
        if wanted:
            counts[node][0] += 1
            counts[node][1] += got
            if got:
                streams[node, source, kind].append((delivered, published))
    area, length, gaps = 0.0, 0.0, []
    for stream in streams.values():
        stream.sort()
        for (at, _), (until, _) in pairwise(stream):
            times = np.linspace(at, until, 2001)
            newest = max(published for delivered, published in stream if delivered <= at)
            area += float(np.trapezoid(times - newest, times))
            length += until - at
            gaps.append(until - at)
    shares = [met / expected for expected, met in counts.values()]
    return {
        "age_of_information_s": area / length,
        "inter_reception_s": float(np.mean(gaps)),
        "inter_reception_p95_s": sorted(gaps)[int(np.ceil(0.95 * len(gaps))) - 1],
        "fairness": sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares)),
    }


def figures(spark: SparkSession, rows: list[tuple[Any, ...]]) -> dict[str, dict[str, float]]:
    pairs = with_gaps(spark.createDataFrame(rows, SCHEMA))
    counts = {"expected": F.count_if("wanted"), "met": F.count_if(F.col("wanted") & F.col("got")), **gap_sums()}
    of_all = F.struct(F.lit("all").alias("by"), F.lit("").alias("key"))
    of_node = F.struct(F.lit("node").alias("by"), F.col("node").alias("key"))
    groups = F.explode(F.array(of_all, of_node))
    grouped = pairs.select("*", groups.alias("group")).groupBy("run", "group.by", "group.key")
    wide = grouped.agg(*(column.alias(name) for name, column in counts.items())).withColumns(receiver_figures())
    found = wide.where("by = 'all'").select("run", *RECEIVERS).collect()
    return {row["run"]: {name: row[name] for name in RECEIVERS if row[name] is not None} for row in found}


def test_the_figures_are_those_of_a_plain_loop(spark: SparkSession) -> None:
    rows = {f"r{seed}": drawn(seed) for seed in range(4)}
    found = figures(spark, [row for some in rows.values() for row in some])
    for run, some in rows.items():
        assert found[run] == pytest.approx(by_hand(some), rel=1e-6)


def test_what_cannot_be_measured_has_no_value(spark: SparkSession) -> None:
    lost, unexpected = ("e1", "a", "p", "Fire", 1.0, None, True, False), ("e1", "b", "p", "Fire", 1.0, 2.0, False, True)
    alone = ("e1", "a", "p", "Fire", 1.0, 2.0, True, True)
    found = figures(spark, [("none", *lost), ("none", *unexpected), ("one", *alone)])
    assert found == {"none": {}, "one": {"fairness": 1.0}}
