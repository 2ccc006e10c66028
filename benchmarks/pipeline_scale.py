"""Whether the pipeline's cost follows the data: the stages at 10 and at 100 million positions, generated in place.

Each stage's processor time (Spark's and its Python workers'), by the row, the peak memory of one worker, and what
Spark spilled to the disk.
Nodes walk in circles at a mean degree of 10. The oracle's case is 1,000 events, each of interest within 150 m,
and 10,000 subscriptions; its candidates are what the Python predicate is asked. A trace of Parquet files is ingested.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from earshot import Area, Circle, Event, Filter, Position, Velocity
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.lake.tables import EVENTS, SUBSCRIPTIONS
from earshot.pipeline.oracle.oracle import expected_receivers, place_candidates, with_demands
from earshot.pipeline.oracle.workloads import event_row
from earshot.pipeline.traces.contacts import contacts_within
from earshot.pipeline.traces.ingest import ingest
from earshot.pipeline.traces.trace_profile import RANGES_M, profile_trace

RANGE_M = 100.0
DEGREE = 10
NODES = 5_000
CIRCLE_M, SPEED_M_S = 200.0, 10.0
SIDE_M = math.sqrt(NODES * math.pi * RANGE_M**2 / DEGREE)
TYPES = ("Siren", "Jam", "Ice", "Parking", "News")


def centre(node: int) -> tuple[float, float, float]:
    """The centre of a node's circle, and its phase."""
    random = Random(node)
    return random.uniform(0, SIDE_M), random.uniform(0, SIDE_M), random.uniform(0, 2 * math.pi)


def positions(spark: SparkSession, seconds: int) -> DataFrame:
    """Every node once a second, in order of time, as `ingest` writes it."""
    centres = [(f"node-{node}", *centre(node)) for node in range(NODES)]
    nodes = spark.createDataFrame(centres, "node string, x double, y double, phase double")
    moments = spark.range(0, seconds, 1, max(8, seconds // 250)).select(F.col("id").cast("double").alias("time"))
    angle = F.col("phase") + F.col("time") * (SPEED_M_S / CIRCLE_M)
    return moments.crossJoin(F.broadcast(nodes)).select(
        F.lit("walk").alias("trace"),
        "node",
        "time",
        (F.col("x") + CIRCLE_M * F.cos(angle)).alias("x_m"),
        (F.col("y") + CIRCLE_M * F.sin(angle)).alias("y_m"),
        *_leg_columns(angle, seconds),
    )


def _leg_columns(angle: Column, seconds: int) -> list[Column]:
    """As `ingest` writes them: until when the leg to the next row lasts, and its velocity."""
    last = F.col("time") == seconds - 1
    since = F.when(last, angle - SPEED_M_S / CIRCLE_M).otherwise(angle)
    until = since + SPEED_M_S / CIRCLE_M
    return [
        F.when(last, F.col("time")).otherwise(F.col("time") + 1.0).alias("until"),
        (CIRCLE_M * (F.cos(until) - F.cos(since))).alias("x_m_s"),
        (CIRCLE_M * (F.sin(until) - F.sin(since))).alias("y_m_s"),
    ]


def events(count: int, seconds: int, random: Random) -> list[dict[str, Any]]:
    found = []
    for number in range(count):
        node, at = random.randrange(NODES), random.uniform(0, seconds - 1)
        x, y, phase = centre(node)
        angle = phase + at * SPEED_M_S / CIRCLE_M
        here = Position(x + CIRCLE_M * math.cos(angle), y + CIRCLE_M * math.sin(angle))
        event = Event(
            type=random.choice(TYPES),
            content={"severity": random.randint(1, 10)},
            id=f"e{number}",
            source=f"node-{node}",
            time=at,
            position=here,
            velocity=Velocity(0.0, 0.0),
            area=Area(Circle(150.0), here),
        )
        found.append(event_row("walk", event))
    return found


def subscriptions(count: int, random: Random) -> list[dict[str, Any]]:
    def text() -> str:
        content = f"severity >= {random.randint(1, 6)}"
        return f"{random.choice(TYPES)}: {content}{' and within 100 m' if random.random() < 0.3 else ''}"

    return [
        {
            "workload": "walk",
            "subscription": f"s{number}",
            "node": f"node-{number % NODES}",
            "filter": str(Filter.parse(text())),
            "region": None,
            "start": 0.0,
            "end": None,
        }
        for number in range(count)
    ]


@dataclass
class Cost:
    """What a stage took."""

    processor_s: float
    wall_s: float
    worker_mb: float
    spilled_mb: float
    rows: int


def cost(spark: SparkSession, stage: Callable[[], int]) -> Cost:
    """Run a stage; processor time of this process's whole tree, and the largest worker's memory meanwhile."""
    peak, done = 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.1):
            peak = max([peak, *(_memory_mb(pid) for pid in _tree() if _is_worker(pid))])

    watcher = threading.Thread(target=watch, daemon=True)
    spilled, before, started = _spilled_mb(spark), processor_s(), time.perf_counter()
    watcher.start()
    rows = stage()
    took, spent = time.perf_counter() - started, processor_s() - before
    done.set()
    watcher.join()
    return Cost(spent, took, peak, _spilled_mb(spark) - spilled, rows)


def _spilled_mb(spark: SparkSession) -> float:
    """What all stages so far wrote to the disk for want of memory."""
    context: Any = spark.sparkContext
    none = context._gateway.new_array(context._jvm.double, 0)
    stages = context._jsc.sc().statusStore().stageList(None, False, False, none, context._jvm.java.util.ArrayList())
    return sum(stages.apply(i).diskBytesSpilled() for i in range(stages.size())) / 1e6


def _tree() -> list[int]:
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, wave = [os.getpid()], [os.getpid()]
    while wave:
        wave = [pid for pid, parent in parents.items() if parent in wave]
        found += wave
    return found


def processor_s() -> float:
    """Of the whole tree, with the children that have ended and were waited for."""
    ticks = 0
    for pid in _tree():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _is_worker(pid: int) -> bool:
    """Whether it is a Python worker. Spark's own process has the name of their module among its settings."""
    try:
        program, _, arguments = Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")
    except OSError:
        return False
    return b"java" not in program and (b"worker_daemon" in arguments or b"pyspark.daemon" in arguments)


def _memory_mb(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")), 0.0)


def _ingested(lake: Lake, file: Path) -> int:
    """Rows kept of the trace."""
    return ingest(lake, [str(file)], "walk").rows_kept


def _profiled(lake: Lake) -> int:
    """Moments of all ranges at which the network was looked at."""
    found = profile_trace(lake, "walk", RANGES_M, again=True)
    return sum(len(found.at(range_m).over_time) for range_m in RANGES_M)


def measure(
    spark: SparkSession, quick: bool, millions: Sequence[float] | None = None, only: Sequence[str] | None = None
) -> None:
    print("\nscale: processor time by the row must grow by less than 1.3 x, worker memory stay under 1 GB")
    print("rows          stage       processor (s)  us/row   wall (s)   worker (MB)   spill (MB)   result rows")
    for seconds in [round(one * 1e6 / NODES) for one in millions or ((0.5, 2) if quick else (10, 100))]:
        rows = NODES * seconds
        with TemporaryDirectory() as folder:
            for name, stage in _stages(spark, Path(folder), seconds, set(only or STAGES)):
                found = cost(spark, stage)
                print(
                    f"{rows:>11,}   {name:<10}  {found.processor_s:>13.1f}  {found.processor_s / rows * 1e6:>6.2f}  "
                    f"{found.wall_s:>9.1f}  {found.worker_mb:>12.0f}  {found.spilled_mb:>11.0f}  {found.rows:>12,}",
                    flush=True,
                )


STAGES = ("contacts", "oracle", "candidates", "ingest", "profile")


def _stages(spark: SparkSession, folder: Path, seconds: int, only: set[str]) -> Iterator[tuple[str, Callable[[], int]]]:
    """The stages by their names. What one of them reads is made before it is given."""
    if only & {"contacts", "oracle", "candidates"}:
        file, random = folder / "positions.parquet", Random(1)
        positions(spark, seconds).write.parquet(str(file))
        table = spark.read.parquet(str(file))
        wanted = spark.createDataFrame(subscriptions(10_000, random), SUBSCRIPTIONS.ddl).cache()
        published = spark.createDataFrame(events(1_000, seconds, random), EVENTS.ddl).cache()
        assert (wanted.count(), published.count()) == (10_000, 1_000)
        asked = wanted.transform(with_demands).persist()
        found = contacts_within(RANGE_M, interval_s=1.0, rows=NODES * seconds, nodes=NODES)
        stages = {
            "contacts": table.transform(found),
            "oracle": published.transform(expected_receivers(asked, table, 1_000, 10_000)),
            "candidates": published.transform(place_candidates(asked, table, 1_000, 10_000)),
        }
        yield from ((name, frame.count) for name, frame in stages.items() if name in only)
        for cached in (wanted, published, asked):
            cached.unpersist()
    lake, trace = Lake(spark, folder / "lake"), folder / "trace.parquet"
    if only & {"ingest", "profile"}:
        positions(spark, seconds).select("node", "time", "x_m", "y_m").write.parquet(str(trace))
        yield "ingest", partial(_ingested, lake, trace)
    if "profile" in only:
        yield "profile", partial(_profiled, lake)
