"""What commands ask of Spark, asked once of a few rows: then Spark has loaded the classes that commands need.

A class-data archive holds the classes that its JVM has loaded: the first command alone would leave out those of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = "trace string, node string, time double"


def rehearse(session: SparkSession) -> int:
    """Read a Parquet file, join, group and sort its rows, and send them through a Python task; how many there were."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with TemporaryDirectory(prefix="earshot-") as folder:
        part = Path(folder) / "trace=walk" / "part.parquet"
        part.parent.mkdir()
        pq.write_table(pa.table({"node": ["a", "a", "b"], "time": [0.0, 1.0, 1.0]}), part)
        rows = session.read.schema(_COLUMNS).option("basePath", folder).parquet(str(part))
        return len(rows.transform(_questions).mapInArrow(_same, "node string").collect())


def _questions(rows: DataFrame) -> DataFrame:
    """One row for each node of each question."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    before = F.lag("time").over(Window.partitionBy("node").orderBy("time"))
    gaps = rows.coalesce(1).select("node", "time", (F.col("time") - before).alias("gap_s"))
    grouped = gaps.groupBy("node").agg(
        F.count_distinct("time").alias("moments"),
        F.min("time").alias("start"),
        F.max("time").alias("end"),
        F.percentile_approx("gap_s", 0.5).alias("about_s"),
        F.percentile("gap_s", F.array(F.lit(0.5), F.lit(0.9))).alias("shares"),
        F.bit_xor(F.xxhash64("node", "time")).alias("content"),
    )
    whole = gaps.agg(
        F.count("*").alias("rows"), F.avg("gap_s").alias("mean_s"), F.percentile("gap_s", 0.5).alias("p50")
    )
    exploded = rows.select(F.explode(F.array("node", F.concat("node", F.lit("'")))).alias("node"))
    joined = rows.join(F.broadcast(rows.select("node").distinct()), "node").join(exploded, "node")
    found = joined.where("trace = 'walk' and time >= 0").select("node").distinct()
    for other in (grouped, whole):
        found = found.unionByName(other, allowMissingColumns=True)
    return found.select(F.coalesce("node", F.lit("all")).alias("node")).sortWithinPartitions("node")


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
