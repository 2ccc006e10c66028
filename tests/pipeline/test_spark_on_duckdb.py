"""DuckDB, where it stands in for Spark, gives the rows that Spark gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F
from spark_on_duckdb import Session

INF, NAN = math.inf, math.nan
ROWS = [
    ("a", 7, 2, 1.5, "x"), ("a", -7, 2, -1.5, None), ("b", 7, -2, 2.5, "x"), ("b", -7, -2, -0.0, "y"),
    ("b", None, 3, INF, "y"), (None, 5, 3, None, ""), ("c", 0, 3, -INF, None), ("c", 6, 4, 1e300, "z"),
]  # fmt: skip
OTHER = [("a", 1.0), ("a", 2.0), ("b", None), (None, 4.0), ("d", 5.0)]


def select(*columns: Callable[[], Any]) -> Callable[[Any, Any], Any]:
    """Columns are made when the query is: for Spark, or for DuckDB."""
    return lambda rows, _: rows.select("name", "n", "m", *(one().alias(f"c{at}") for at, one in enumerate(columns)))


def by_name(*order: Any) -> Any:
    return Window.partitionBy("name").orderBy(*order)


QUERIES: dict[str, Callable[[Any, Any], Any]] = {
    "filter": lambda rows, _: rows.where("n > 0 or text is null").where(F.col("name") != "c"),
    "filter with lists": lambda rows, _: rows.where(F.col("n").isin([7, 0]) | F.col("text").like("%y")),
    "filter with no list": lambda rows, _: rows.where(F.col("n").isin([])),
    "sameness of nulls": select(lambda: F.col("text").eqNullSafe(F.lit(None)), lambda: F.col("text") == "x"),
    "join": lambda rows, other: rows.join(other, "name"),
    "left join": lambda rows, other: rows.join(other, ["name"], "left"),
    "outer join": lambda rows, other: rows.join(other, "name", "outer"),
    "semi join": lambda rows, other: rows.join(other, "name", "left_semi"),
    "anti join": lambda rows, other: rows.join(other, "name", "left_anti"),
    "cross join": lambda rows, other: rows.select("n", "m").crossJoin(other),
    "join by aliases": lambda rows, other: (
        rows.alias("a").join(other.alias("b"), ["name"]).where("a.n > 0").where("b.w < 2 or b.w is null")
        .select("name", F.col("a.n"), F.col("b.w"))
    ),
    "union by name": lambda rows, other: rows.unionByName(other.select("w", "name"), allowMissingColumns=True),
    "group": lambda rows, _: rows.groupBy("name").agg(
        F.count("*").alias("rows"), F.count("n").alias("known"), F.sum("n").alias("sum"), F.avg("n").alias("mean"),
        F.min("x").alias("least"), F.max("x").alias("most"), F.count_distinct("text", "m").alias("kinds"),
        F.size(F.collect_list("text")).alias("texts"), F.count_if(F.col("n") > 0).alias("positive"),
    ),
    "groups of two columns": lambda rows, _: rows.groupBy("name", F.col("text").alias("t")).count(),
    "no group": lambda rows, _: rows.agg(F.sum("n").alias("sum"), F.median("n").alias("median")),
    "percentiles": lambda rows, _: rows.agg(
        F.percentile("n", 0.3).alias("p"), F.percentile("n", F.array(F.lit(0.5), F.lit(0.9))).alias("some"),
        F.percentile_approx("n", 0.5).alias("about"),
    ),
    "distinct": lambda rows, _: rows.select("name", "text").distinct(),
    "window": select(
        lambda: F.lag("n").over(by_name("x", "m")), lambda: F.lead("n").over(by_name(F.desc("x"))),
        lambda: F.sum("n").over(by_name("x")), lambda: F.max("m").over(Window.partitionBy("text")),
    ),
    "window over nulls": select(
        lambda: F.row_number().over(Window.orderBy("text", "m", "n")),
        lambda: F.row_number().over(Window.orderBy(F.desc("n"), "m", "x")),
    ),
    "explode": lambda rows, _: rows.select("n", F.explode(F.array("m", F.lit(9))).alias("one")),
    "explode sequences": lambda rows, _: rows.where("n is not null").withColumn(
        "one", F.explode(F.sequence(F.lit(1), F.col("n").cast("int")))
    ),
    "explode structs": lambda rows, _: (
        rows.select(F.array(F.struct("n", "m"), F.struct(F.col("m").alias("n"), F.lit(1).alias("m"))).alias("ps"))
        .select(F.explode("ps").alias("p"))
        .select("p.n", F.col("p.m"))
    ),
    "division": select(
        lambda: F.col("n") / F.col("m"), lambda: F.col("n") % F.col("m"), lambda: F.pmod("n", F.lit(4)),
        lambda: F.floor(F.col("n") / F.col("m")), lambda: F.ceil(F.col("n") / F.col("m")),
        lambda: (F.col("n") / F.col("m")).cast("int"), lambda: F.floor(F.when(F.abs("x") < 1e9, F.col("x"))),
    ),
    "bits": select(
        lambda: F.shiftleft(F.col("n").cast("bigint"), 62), lambda: F.col("n").bitwiseAND(F.lit(5)),
        lambda: F.col("n").bitwiseXOR(F.col("m")), lambda: F.shiftleft(F.col("n"), 3),
    ),
    "powers and logarithms": select(
        lambda: F.log(F.lit(8.0)), lambda: F.col("m") ** 2, lambda: F.hypot("m", F.lit(3.0)), lambda: F.sqrt(F.lit(2.0))
    ),
    "casts": select(
        lambda: F.col("n").cast("string"), lambda: F.col("n").cast("double"), lambda: F.lit("12").cast("int"),
        lambda: F.lit(-2.5).cast("long"), lambda: F.lit("Infinity").cast("double"), lambda: F.lit(True).cast("int"),
        lambda: (F.col("n") > 0).cast("string"), lambda: F.lit(1.5).cast("string"), lambda: F.lit(None).cast("bigint"),
    ),
    "nulls": select(
        lambda: F.coalesce("n", "m"), lambda: F.greatest("n", "m"), lambda: F.least("n", "m"),
        lambda: F.when(F.col("n") > 0, "more").when(F.col("n").isNull(), "none"),
        lambda: F.when(F.col("n") > 0, 1).otherwise(0), lambda: ~(F.col("n") > 0), lambda: F.concat("text", "name"),
    ),
    "parts": select(
        lambda: F.get(F.array(F.lit(1), F.lit(2)), F.col("m")), lambda: F.get(F.array("m"), F.lit(-2)),
        lambda: F.create_map(F.lit("a"), F.lit(1), F.lit("b"), F.lit(2))[F.col("name")],
        lambda: F.struct("n", F.lit(1).alias("one"))["one"], lambda: F.size(F.array("n", "m")),
    ),
    "structs without nulls compared": lambda rows, _: rows.where("n is not null").where(
        F.greatest(F.struct("n", "m"), F.struct(F.col("m").alias("n"), F.lit(2).alias("m"))) == F.struct("n", "m")
    ),
    "numbers that are none": lambda rows, _: rows.select(
        (F.col("x") - F.col("x")).alias("y")
    ).agg(
        F.max("y").alias("most"), F.count_if(F.isnan("y")).alias("none"),
        F.count_if(F.col("y") == F.col("y")).alias("same"),
    ),
}  # fmt: skip

ORDERS: dict[str, Callable[[], list[Any]]] = {
    "upwards": lambda: ["text", "m", "n"],
    "downwards": lambda: [F.desc("text"), F.col("n").desc(), "m"],
    "nulls last": lambda: [F.col("n").asc_nulls_last(), "m"],
    "nulls first": lambda: [F.col("n").desc_nulls_first(), "m"],
}


def comparable(value: Any) -> Any:
    """NaN is equal to itself here, and -0.0 is not 0.0."""
    if isinstance(value, list | tuple):
        return [comparable(one) for one in value]
    return repr(value)


def rows_of(session: Any, query: Callable[[Any, Any], Any]) -> tuple[list[str], list[Any]]:
    rows = session.createDataFrame(ROWS, "name string, n int, m int, x double, text string")
    found = query(rows, session.createDataFrame(OTHER, "name string, w double"))
    return found.columns, [comparable(row) for row in found.collect()]


@pytest.fixture
def spark_rows(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """What Spark itself gives."""

    def found(query: Callable[[Any, Any], Any]) -> tuple[list[str], list[Any]]:
        with monkeypatch.context() as patch:
            patch.delenv("SPARK_CONNECT_MODE_ENABLED", raising=False)
            return rows_of(spark, query)

    return found


@pytest.mark.spark
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_gives_the_rows_that_spark_gives(
    name: str, spark_rows: Callable[..., Any], quick_spark: Session
) -> None:
    columns, rows = rows_of(quick_spark, QUERIES[name])
    expected_columns, expected = spark_rows(QUERIES[name])
    assert (columns, sorted(rows)) == (expected_columns, sorted(expected))


@pytest.mark.spark
@pytest.mark.parametrize("name", ORDERS)
def test_rows_come_in_the_order_that_spark_gives(
    name: str, spark_rows: Callable[..., Any], quick_spark: Session
) -> None:
    def query(rows: Any, _: Any) -> Any:
        return rows.orderBy(*ORDERS[name]())

    assert rows_of(quick_spark, query) == spark_rows(query)
