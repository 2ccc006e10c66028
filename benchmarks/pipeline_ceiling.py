"""The ceiling on Spark local[2] beside finding the contacts of the same positions.

Nodes walk about a square as in the part `contacts`. Events are published at random times by random nodes and
expected by 20 random others; a third live 10 s, a third 60 s, a third until the end. The ceiling starts from
positions, as contacts do: it finds its own contacts, exact ones. How long these alone take is measured with the
same events and nothing expected. All figures are processor time, Spark's and its Python workers' together: it says the
same on a busy machine.
"""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pipeline_contacts import RANGE_M, on_spark, walk
from pipeline_scale import processor_s
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from earshot.pipeline.oracle.reachable import ContactNetwork, reach_plans, reachable

RECEIVERS = 20


def publish(nodes: int, steps: int, count: int, folder: Path) -> tuple[Path, Path]:
    """Files of events and of expected pairs."""
    rng = np.random.default_rng(2)
    names = np.array([f"node-{number}" for number in range(nodes)])
    event = np.array([f"e{number}" for number in range(count)])
    lifespans = rng.choice([10.0, 60.0, math.nan], count)
    events = pa.table(
        {
            "workload": pa.repeat("w", count),
            "event": event,
            "source": names[rng.integers(0, nodes, count)],
            "time": rng.uniform(0, steps - 1, count),
            "lifespan_s": pa.array(lifespans, pa.float64(), from_pandas=True),
        }
    )
    expected = pa.table(
        {
            "workload": pa.repeat("w", count * RECEIVERS),
            "event": event.repeat(RECEIVERS),
            "node": names[rng.integers(0, nodes, count * RECEIVERS)],
        }
    )
    files = folder / f"events-{nodes}.parquet", folder / f"expected-{nodes}.parquet"
    pq.write_table(events, files[0])
    pq.write_table(expected, files[1])
    return files


def ceiling(spark: SparkSession, positions: Path, events: Path, expected: Path) -> tuple[int, float]:
    """How many pairs there are, and the share that is reachable; every row is made, nothing is written."""
    where = spark.read.parquet(str(positions)).withColumn("trace", F.lit("w"))
    published = spark.read.parquet(str(events))
    plans = reach_plans(published, where, {"w": ContactNetwork(RANGE_M)})
    found = published.transform(reachable(spark.read.parquet(str(expected)), where, plans))
    row: Any = found.agg(F.count("*"), F.count_if(F.col("reach") != "no"), F.max("event"), F.max("node")).first()
    return int(row[0]), row[1] / max(row[0], 1)


def measure(spark: SparkSession, quick: bool) -> None:
    print(f"\nthe ceiling at {RANGE_M:.0f} m (asked: once there are contacts, no longer than finding them took)")
    print(
        "                       events     pairs  reachable  contacts (s)  exact contacts (s)  with ceiling (s)  ratio"
    )
    with TemporaryDirectory() as folder:
        for nodes, steps, count in ((1000, 1000, 10_000),) if quick else ((1000, 1000, 10_000), (1000, 1000, 100_000)):
            positions = Path(folder) / f"{nodes}.parquet"
            walk(nodes, steps, positions)
            events, expected = publish(nodes, steps, count, Path(folder))
            on_spark(spark, positions)  # Workers start and load their libraries.
            ceiling(spark, positions, events, expected)
            nothing = Path(folder) / "nothing.parquet"
            pq.write_table(pq.read_table(expected).slice(0, 0), nothing)
            contacts, exact, ours = [], [], []
            for _ in range(3):
                before = processor_s()
                on_spark(spark, positions)
                contacts.append((after := processor_s()) - before)
                ceiling(spark, positions, events, nothing)
                exact.append((before := processor_s()) - after)
                pairs, share = ceiling(spark, positions, events, expected)
                ours.append(processor_s() - before)
            contacts_s, exact_s, ours_s = (statistics.median(some) for some in (contacts, exact, ours))
            print(
                f"{nodes:>6,} x {steps:,} steps {count:>8,} {pairs:>9,} {share:>10.3f} {contacts_s:>13.2f} "
                f"{exact_s:>19.2f} {ours_s:>17.2f} {(ours_s - exact_s) / contacts_s:>5.2f}x",
                flush=True,
            )
