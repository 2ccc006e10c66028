"""Who was where when: circles at moments, joined with positions on time and grid cell.

A question asks which nodes were in a circle at a moment. A leg is a node's straight piece from one row of
`positions` to the next. Both are entered under keys, and Spark joins them on equal keys, so that the cost
follows the pairs that are near each other in time and space.

- A leg has a *length class*: the power of four (seconds) that bounds how long it lasts, and the level that bounds
  how far it goes. It is entered once for each level of the questions: in the time bucket and cell it begins in.
- A question knows which length classes there are. For each it is entered in the buckets and cells in
  which a leg that reaches it can begin: two buckets, and at most 25 cells.
- A level's cells are 32 m times four to the power of the level wide; a question's level is that of its radius.
  What is larger than the largest cell is entered under one cell.

So a leg and a question meet at most once. `node_places` answers the other question, where a node was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SMALLEST_CELL_M = 32.0
LARGEST_LEVEL = 10
"At this level a cell is wider than any map."
SHORTEST, LONGEST = -4, 20
"Length classes: from 4 ms to 35,000 years. What lasts longer is in a class above them, which has one bucket."
_LEG = {name: f"leg_{name}" for name in ("time", "x_m", "y_m", "x_m_s", "y_m_s")}
LEG_COLUMNS = tuple(_LEG.values())
"What an answer says of the leg that its node was on."


def level_of(distance_m: Column) -> Column:
    """The level whose cells are at least that wide; at most one above LARGEST_LEVEL, which has one cell."""
    level = F.ceil(F.log(F.greatest(distance_m, F.lit(SMALLEST_CELL_M)) / SMALLEST_CELL_M) / F.log(F.lit(4.0)) - 1e-9)
    return F.least(level, F.lit(LARGEST_LEVEL + 1)).cast("int")


def radius_of(level: Column) -> Column:
    """The largest radius of a level."""
    return F.when(level > LARGEST_LEVEL, 1e300).otherwise(_cell_m(level))


def _cell_m(level: Column) -> Column:
    """How wide a level's cells are. Looked up: each leg asks for it, and a power costs as much as the rest."""
    widths = F.array(*(F.lit(SMALLEST_CELL_M * 4.0**one) for one in range(LARGEST_LEVEL + 2)))
    return F.get(widths, level)


def legs(positions: DataFrame) -> DataFrame:
    """One row for each row of `positions`: the leg that begins there, until the next row's time. A node's
    last row is a leg of one moment, with the velocity of the leg before. Rows that do not say so
    themselves (`until`, `x_m_s` and `y_m_s`) are sorted by node to find out."""
    columns = (F.col("trace").alias("workload"), "node", "time", "until", "x_m", "y_m", "x_m_s", "y_m_s")
    if "until" not in positions.columns:
        return _found_legs(positions).select(*columns)
    known = positions.where("until is not null").select(*columns)
    return known.unionByName(_found_legs(positions.where("until is null").drop("until")).select(*columns))


def _found_legs(positions: DataFrame) -> DataFrame:
    """Rows have no order but their times: of several at one time, the one furthest east counts, then furthest north."""
    by_node = Window.partitionBy("trace", "node").orderBy("time", "x_m", "y_m")
    after, before = F.lead("time").over(by_node), F.lag("time").over(by_node)

    def velocity(name: str) -> Column:
        return (
            F.when(after > F.col("time"), (F.lead(name).over(by_node) - F.col(name)) / (after - F.col("time")))
            .when(
                after.isNull() & (before < F.col("time")),
                (F.col(name) - F.lag(name).over(by_node)) / (F.col("time") - before),
            )
            .otherwise(0.0)
        )

    return (
        positions.select("trace", "node", "time", "x_m", "y_m")
        .withColumn("after", after)
        .where("after is null or after > time")
        .withColumns({"x_m_s": velocity("x_m"), "y_m_s": velocity("y_m")})
        .withColumn("until", F.coalesce("after", "time"))
    )


def places_in(circles: DataFrame, found: DataFrame, are_few: bool = False) -> DataFrame:
    """For each circle (workload, time, x_m, y_m, radius_m, level, and columns of the asker's own) the nodes
    that were in it, with the leg each was on (`LEG_COLUMNS`) and `distance_m` from the middle. Where the circles
    `are_few`, each task gets them all, and the legs stay where they are."""
    classed = _classed(found)
    lengths = _classes_of(classed)
    seconds = _seconds(F.col("length"))
    levels = circles.select("level").distinct()
    cell = _cell_m(F.greatest("level", "going"))
    there = (
        classed.crossJoin(F.broadcast(levels))
        .select(
            "workload",
            "node",
            "until",
            *(F.col(name).alias(leg) for name, leg in _LEG.items()),
            "length",
            "going",
            "level",
            F.floor(F.col("time") / seconds).alias("bucket"),
            *_cells(cell, "x_m", "y_m"),
        )
        .select("node", "until", *_LEG.values(), _number().alias("number"), F.struct(*_KEYS).alias("leg_keys"))
    )
    reach = F.col("radius_m") * (1.0 + 1e-9) + 1e-6 + radius_of(F.col("going"))
    first, last = F.floor(F.col("time") / seconds - 1.0), F.floor(F.col("time") / seconds)

    def cells(name: str) -> Column:
        ends = F.floor((F.col(name) - reach) / cell), F.floor((F.col(name) + reach) / cell)
        return F.when(F.greatest("level", "going") > LARGEST_LEVEL, F.array(F.lit(0).cast("bigint"))).otherwise(
            F.sequence(*ends)
        )

    asked = (
        circles.join(F.broadcast(lengths), "workload")
        .withColumn("bucket", F.explode(F.sequence(first, last)))
        .withColumn("cell_x", F.explode(cells("x_m")))
        .withColumn("cell_y", F.explode(cells("y_m")))
        .select(*circles.columns, _number().alias("number"), F.struct(*_KEYS).alias("keys"))
    )
    passed = F.col("time") - F.col("leg_time")
    here_x = F.col("leg_x_m") + F.col("leg_x_m_s") * passed
    here_y = F.col("leg_y_m") + F.col("leg_y_m_s") * passed
    return (
        there.join(F.broadcast(asked) if are_few else asked, "number")
        # Equal keys. Said as an equation of the two, Spark would join on all of them instead of the number.
        .where(F.greatest("keys", "leg_keys") == F.least("keys", "leg_keys"))
        .where(_in_time())
        .withColumn("distance_m", F.sqrt((here_x - F.col("x_m")) ** 2 + (here_y - F.col("y_m")) ** 2))
        .where(F.col("distance_m") <= F.col("radius_m") * (1.0 + 1e-9) + 1e-6)  # the predicate decides at the border
        .select(*circles.columns, "node", *LEG_COLUMNS, "distance_m")
    )


def node_places(asked: DataFrame, found: DataFrame, workloads: DataFrame | None = None) -> DataFrame:
    """For each row (workload, node, time, and columns of the asker's own) the leg that the node was on then. Only legs
    of `workloads` are looked at; None: those of the rows."""
    among = asked.select("workload").distinct() if workloads is None else workloads
    seconds = _seconds(F.col("length"))
    classed = _classed(found)
    lengths = _classes_of(classed)
    bucket = F.floor(F.col("time") / seconds)
    there = classed.join(F.broadcast(among), "workload", "left_semi").select(
        "workload",
        "node",
        "until",
        *(F.col(name).alias(leg) for name, leg in _LEG.items()),
        "length",
        "going",
        bucket.alias("bucket"),
    )
    when = asked.join(F.broadcast(lengths), "workload").withColumn("bucket", F.explode(F.sequence(bucket - 1, bucket)))
    return (
        there.join(when, ["workload", "node", "length", "going", "bucket"])
        .where(_in_time())
        .select(*asked.columns, *LEG_COLUMNS)
    )


_KEYS = ("workload", "length", "going", "level", "bucket", "cell_x", "cell_y")


def _number() -> Column:
    """A number that is the same for equal keys: Spark looks one up several times as fast as seven columns. Different
    keys seldom have the same number."""
    classes = F.shiftleft(F.col("length") - SHORTEST, 8).bitwiseXOR(F.shiftleft("going", 4)).bitwiseXOR(F.col("level"))
    parts = {"bucket": 42, "cell_x": 21, "cell_y": 0}
    number = F.shiftleft(classes.cast("bigint"), 50)
    for name, bits in parts.items():
        kept = F.col(name) if name == "bucket" else F.col(name).bitwiseAND(F.lit((1 << 21) - 1).cast("bigint"))
        number = number.bitwiseXOR(F.shiftleft(kept, bits))
    # Never null: Spark would compute it once more for each leg, to see whether it is.
    return F.coalesce(number, F.lit(0).cast("bigint"))


def _in_time() -> Column:
    """The moment lies on the leg. A node's last row is a leg of one moment."""
    return (F.col("leg_time") <= F.col("time")) & (
        (F.col("time") < F.col("until")) | ((F.col("time") == F.col("until")) & (F.col("leg_time") == F.col("until")))
    )


def _classed(found: DataFrame) -> DataFrame:
    """Legs with the class of how long they last (`length`) and of how far they go (`going`). Comparisons decide: a
    logarithm of each leg costs more than reading it."""
    lasting = F.col("until") - F.col("time")
    far = lasting * F.sqrt(F.col("x_m_s") * F.col("x_m_s") + F.col("y_m_s") * F.col("y_m_s"))
    length = _first_bound(lasting, {one: 4.0**one for one in range(SHORTEST, LONGEST + 1)})
    going = _first_bound(far, {one: SMALLEST_CELL_M * 4.0**one for one in range(LARGEST_LEVEL + 1)})
    return found.withColumns({"length": length, "going": going})


def _first_bound(value: Column, bounds: dict[int, float]) -> Column:
    """The first class whose bound is not below the value; the one after the last for what is above them all."""
    found = None
    for one, bound in bounds.items():
        found = F.when(value <= bound, one) if found is None else found.when(value <= bound, one)
    assert found is not None
    return found.otherwise(max(bounds) + 1)


def _classes_of(classed: DataFrame) -> DataFrame:
    """Which classes there are. Both questions ask for it in the same words, so Spark finds it out once."""
    return classed.groupBy("workload", "length", "going").agg(F.lit(1).alias("one")).drop("one")


def _seconds(length: Column) -> Column:
    """How long a class's legs last at most, which is the width of its buckets."""
    widths = F.array(*(F.lit(4.0**one) for one in range(SHORTEST, LONGEST + 1)), F.lit(1e300))
    return F.get(widths, length - SHORTEST)


def _cells(cell_m: Column, x: str, y: str) -> list[Column]:
    wide = F.greatest("level", "going") > LARGEST_LEVEL
    return [
        F.when(wide, F.lit(0).cast("bigint")).otherwise(F.floor(F.col(name) / cell_m)).alias(cell)
        for name, cell in ((x, "cell_x"), (y, "cell_y"))
    ]
