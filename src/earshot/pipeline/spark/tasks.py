"""Work in Spark tasks: one task an item for campaigns and studies, and Arrow batches for stages.

`spark.range(n)` in n partitions, without a shuffle: one retry and one step of progress an item, every core
busy. A task may run more than once (after a lost worker), so the work must be idempotent: it keeps its
result under its own id and says so in the row that it returns.
"""

from __future__ import annotations

import gc
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from earshot.pipeline.spark.session import parallelism, spark_version
from earshot.plugins import install, shipment

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

Item = TypeVar("Item")
ROW = "item long, answer string"
POLL_S = 0.2
FEW_ROWS = 20_000
"Less than a second's work: not worth a second worker."
ROWS_A_TASK = 1_000_000
"Of positions: some 450 MB in a worker that holds them all."


def _freeze_survivors() -> None:
    """Spark collects a worker's garbage in full after every task: some 60 ms with our modules loaded, and
    more with what items keep for the next. What has outlived an item is left out of that."""
    gc.collect()
    gc.freeze()


class _Work(Generic[Item]):
    """Sent to the executors: items by number, what to do with one, and the code of plug-ins."""

    def __init__(self, items: Sequence[Item], work: Callable[[Item], str]) -> None:
        from pyspark import cloudpickle

        self.plugins = shipment()
        self.items = [cloudpickle.dumps(item) for item in items]  # type: ignore[no-untyped-call]
        self.work = work

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import cloudpickle

        install(self.plugins)
        schema = pa.schema([("item", pa.int64()), ("answer", pa.string())])
        for batch in batches:
            for number in batch.column(0).to_pylist():
                item = cloudpickle.loads(self.items[number])
                answer = self.work(item)
                _freeze_survivors()
                yield pa.RecordBatch.from_pylist([{"item": number, "answer": answer}], schema=schema)


def each_in_a_task(
    spark: SparkSession,
    items: Sequence[Item],
    work: Callable[[Item], str],
    progress: Callable[[], None] | None = None,
) -> list[str]:
    """The answers, in the order of the items. `progress` is called a few times a second meanwhile.

    Ctrl-C, or an error in `progress`, ends the tasks that run and is raised to the caller.
    """
    if not items:
        return []
    count = len(items)
    table = spark.range(0, count, 1, count).mapInArrow(_Work(items, work), ROW)
    outcome: dict[str, Any] = {}

    def collect() -> None:
        try:
            outcome["rows"] = table.collect()
        except BaseException as error:
            outcome["error"] = error

    job = threading.Thread(target=collect, daemon=True)
    job.start()
    try:
        while job.is_alive():
            job.join(POLL_S)
            if progress is not None:
                progress()
    except BaseException:
        _interrupt(spark)
        job.join(10.0)
        raise
    if "error" in outcome:
        raise outcome["error"]
    answers = {row["item"]: row["answer"] for row in outcome["rows"]}
    return [answers[number] for number in range(count)]


def rows_of_items(
    spark: SparkSession, items: Sequence[Item], read: Callable[[Item], Iterable[pa.RecordBatch]], ddl: str
) -> DataFrame:
    """The rows that `read` gives of the items, one task for each item."""
    tasks = max(1, len(items))
    return spark.range(0, tasks, 1, tasks).mapInArrow(partial(_read_items, list(items), read), ddl)


def _read_items(
    items: Sequence[Item], read: Callable[[Item], Iterable[pa.RecordBatch]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task: read the item with its number."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            if number < len(items):
                yield from read(items[number])


def _interrupt(spark: SparkSession) -> None:
    """End what runs, on a local session, a cluster or over Connect."""
    context = getattr(spark, "_sc", None)
    if context is not None:
        context.cancelAllJobs()
    else:
        spark.interruptAll()


def are_few(rows: int | None) -> bool:
    """Whether it is known that these are few rows."""
    return rows is not None and rows <= FEW_ROWS


def in_one_task(frame: DataFrame, rows: int | None) -> DataFrame:
    """The frame; if its rows are few, in one task, so that nothing that follows needs a shuffle."""
    return frame.coalesce(1) if are_few(rows) else frame


def tasks_for(session: SparkSession, rows: int | None) -> int:
    """How many tasks share about `rows` rows, so that each fits in a worker's memory: at least one a core, but one
    for a few rows. Four a core where nobody knows how many rows there are."""
    if are_few(rows):
        return 1
    cores = parallelism(session)
    return 4 * cores if rows is None else max(cores, math.ceil(rows / ROWS_A_TASK))


def dealt(frame: DataFrame, tasks: int, number: Column) -> DataFrame:
    """The rows in this number of tasks, each in the one with its number.

    Spark before 4.1 deals by the number's hash: rows of one number still meet, but some tasks have several numbers
    and others none. One task gets them without a shuffle.
    """
    if tasks == 1:
        return frame.coalesce(1)
    if spark_version(frame.sparkSession) >= (4, 1):
        return frame.repartitionById(tasks, number)
    return frame.repartition(tasks, number)


def whole_nodes(frame: DataFrame, rows: int | None) -> DataFrame:
    """About `rows` rows in `tasks_for` them, each node's in one task."""
    tasks = tasks_for(frame.sparkSession, rows)
    return frame.coalesce(1) if tasks == 1 else frame.repartition(tasks, "node")


def table_of(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    """All of a task's batches as one table; None where there are no rows."""
    import pyarrow as pa

    some = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(some) if some else None


def coded(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Texts as numbers in the texts' own order, and the texts. Nulls are the empty text."""
    import pyarrow.compute as pc

    encoded = pc.fill_null(column, "").combine_chunks().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    by_name = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), dtype=np.int64)
    rank[by_name] = np.arange(len(names))
    return rank[encoded.indices.to_numpy()], [names[i] for i in by_name]
