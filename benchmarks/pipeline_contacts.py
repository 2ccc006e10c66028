"""Contacts on Spark local[2] against scipy's tree in one process.

Nodes walk about a square at a mean degree of 10. Both sides read the same Parquet file and give the same
contacts. The peer takes a tree for each moment and joins its pairs into contacts with numpy, as one
would write it; the tree alone, with no contacts made of its pairs, stands beside it. Wall times compare Spark's two
cores with the peer's one and need a quiet machine; processor times, Spark's and its Python workers' together, do not.
"""

from __future__ import annotations

import math
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pipeline_scale import processor_s
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from scipy.spatial import cKDTree

from earshot.pipeline.traces.contacts import contacts_within

RANGE_M = 100.0
DEGREE = 10


def walk(nodes: int, steps: int, file: Path) -> None:
    """Positions of a random walk, in order of time, as a trace comes."""
    rng = np.random.default_rng(1)
    side = math.sqrt(nodes * math.pi * RANGE_M**2 / DEGREE)
    places, heading = rng.uniform(0, side, (nodes, 2)), rng.uniform(0, 2 * math.pi, nodes)
    names = pa.array([f"node-{number}" for number in range(nodes)])
    numbers = pa.array(np.arange(nodes, dtype=np.int32))
    schema = pa.schema({"node": pa.string(), "time": pa.float64(), "x_m": pa.float64(), "y_m": pa.float64()})
    with pq.ParquetWriter(file, schema) as writer:
        for first in range(0, steps, 100):
            tables = []
            for step in range(first, min(first + 100, steps)):
                heading += rng.normal(0, 0.3, nodes)
                places = np.abs(places + 10.0 * np.stack([np.cos(heading), np.sin(heading)], axis=1))
                places = side - np.abs(side - places)
                tables.append(
                    pa.table(
                        {
                            "node": pa.DictionaryArray.from_arrays(numbers, names).cast(pa.string()),
                            "time": np.full(nodes, float(step)),
                            "x_m": places[:, 0],
                            "y_m": places[:, 1],
                        }
                    )
                )
            writer.write_table(pa.concat_tables(tables))


def by_trees(file: Path) -> tuple[int, float]:
    """The contacts, and the processor time of the trees alone."""
    table = pq.read_table(file)
    moments = table.column("time").to_numpy()
    points = np.stack([table.column("x_m").to_numpy(), table.column("y_m").to_numpy()], axis=1)
    node = table.column("node").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    ends = [*(np.flatnonzero(np.diff(moments)) + 1), len(moments)]
    begin, trees_s, keys = 0, 0.0, []
    bits = int(node.max()).bit_length()
    for step, end in enumerate(ends):
        started = time.process_time()
        pairs = cKDTree(points[begin:end]).query_pairs(RANGE_M, output_type="ndarray")
        trees_s += time.process_time() - started
        a, b = node[begin + pairs[:, 0]], node[begin + pairs[:, 1]]
        keys.append((((np.minimum(a, b) << bits) | np.maximum(a, b)) << 20) | step)
        begin = end
    met = np.concatenate(keys)
    met.sort()
    return int(np.count_nonzero(np.diff(met) != 1)) + 1, trees_s


def on_spark(spark: SparkSession, file: Path) -> int:
    """Every column of every contact is made; nothing is written."""
    found = spark.read.parquet(str(file)).transform(contacts_within(RANGE_M, interval_s=1.0))
    row: Any = found.agg(F.count("*"), F.max("a"), F.max("b"), F.max("start"), F.max("end")).first()
    return int(row[0])


def measure(spark: SparkSession, quick: bool) -> None:
    print(f"\ncontacts within {RANGE_M:.0f} m at mean degree {DEGREE} (asked: at most 4 x the trees, then no slower)")
    print("                                  processor time (s)                         wall (s)")
    print("                        contacts  trees  with contacts  local[2]  ours/peer  peer  local[2]  ours/peer")
    with TemporaryDirectory() as folder:
        for nodes, steps in ((1000, 1000),) if quick else ((1000, 1000), (10_000, 1000)):
            file = Path(folder) / f"{nodes}.parquet"
            walk(nodes, steps, file)
            on_spark(spark, file)  # Workers start and load their libraries.
            costs = []
            for _ in range(3):
                wall, spent = time.perf_counter(), time.process_time()
                found, trees_s = by_trees(file)
                peer = time.process_time() - spent, time.perf_counter() - wall
                wall, spent = time.perf_counter(), processor_s()
                same = on_spark(spark, file)
                costs.append((trees_s, *peer, processor_s() - spent, time.perf_counter() - wall))
                assert same == found, (same, found)
            trees_s, peer_s, peer_wall_s, ours_s, wall_s = map(statistics.median, zip(*costs, strict=True))
            print(
                f"{nodes:>6,} x {steps:,} steps {found:>11,} {trees_s:>6.1f} {peer_s:>14.1f} {ours_s:>9.1f} "
                f"{ours_s / peer_s:>9.2f}x {peer_wall_s:>5.1f} {wall_s:>9.1f} {wall_s / peer_wall_s:>9.2f}x",
                flush=True,
            )
