"""The oracle: expected receivers on Spark local[2] against one process with a FilterIndex.

200,000 events x 10,000 content subscriptions (2-3 predicates over 20 attributes). Both sides read the
same rows, build the same events and give the same pairs; session start is not counted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from earshot import Event, Filter, FilterIndex
from earshot.pipeline.lake.tables import EVENTS, SUBSCRIPTIONS
from earshot.pipeline.oracle.oracle import expected_receivers
from earshot.pipeline.oracle.workloads import event_of, event_row

NAMES = [f"a{i}" for i in range(20)]
WORDS = [f"w{i}" for i in range(50)]


def subscriptions(count: int, random: Random) -> list[dict[str, Any]]:
    rows = []
    for number in range(count):
        terms = []
        for name in random.sample(range(20), random.choice([2, 3])):
            if name < 10:
                terms.append(f'{NAMES[name]} = "{random.choice(WORDS)}"')
            else:
                low = random.uniform(0, 900)
                terms.append(f"{NAMES[name]} in {low:.1f}..{low + random.uniform(20, 300):.1f}")
        rows.append(
            {
                "workload": "w",
                "subscription": f"s{number}",
                "node": f"n{number % 500}",
                "filter": str(Filter.where(" and ".join(terms))),
                "region": None,
                "start": 0.0,
                "end": None,
            }
        )
    return rows


def events(count: int, random: Random) -> list[dict[str, Any]]:
    return [
        event_row(
            "w",
            Event(
                type="Reading",
                content={
                    name: random.choice(WORDS) if i < 10 else random.uniform(0, 1000) for i, name in enumerate(NAMES)
                },
                id=f"e{number}",
                source=f"n{number % 500}",
                time=number / 100,
            ),
        )
        for number in range(count)
    ]


def one_process(event_rows: list[dict[str, Any]], wishes: list[dict[str, Any]]) -> int:
    index = FilterIndex()
    for number, wish in enumerate(wishes):
        index.add(number, Filter.parse(wish["filter"]))
    pairs = []
    for row in event_rows:
        event = event_of(row)
        for number in index.match(event):
            wish = wishes[number]
            if wish["node"] != event.source:
                pairs.append((event.id, wish["node"], wish["subscription"]))
    return len(pairs)


def on_spark(table: DataFrame, wanted: DataFrame) -> None:
    """Every column of every row is made; nothing is kept, as nothing is kept of the plain list."""
    table.transform(expected_receivers(wanted)).write.format("noop").mode("overwrite").save()


def timed(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    took, answer = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        answer = work()
        took.append(time.perf_counter() - start)
    return statistics.median(took), answer


def measure(spark: SparkSession, quick: bool) -> None:
    random = Random(1)
    wishes = subscriptions(10_000, random)
    print("\nthe oracle (asked: 1.6 x one process at 200,000 events)")
    print("events   subscriptions      pairs   one process (s)   local[2] (s)   ratio")
    for count in (20_000,) if quick else (20_000, 200_000):
        rows = events(count, random)
        table = spark.createDataFrame(rows, EVENTS.ddl).repartition(8).cache()
        wanted = spark.createDataFrame(wishes, SUBSCRIPTIONS.ddl).cache()
        assert (table.count(), wanted.count()) == (count, len(wishes))
        plain, found = timed(partial(one_process, rows, wishes), 3)
        same = table.transform(expected_receivers(wanted)).count()
        assert same == found, (same, found)
        ours, _ = timed(partial(on_spark, table, wanted), 3)
        print(
            f"{count:>7,}  {len(wishes):>13,}  {found:>9,}  {plain:>15.2f}  {ours:>13.2f}  {plain / ours:>5.2f}x",
            flush=True,
        )
        table.unpersist()
