"""Expected receivers in Spark: the oracle over the events, subscriptions and positions of a lake.

A subscription is asked in one of three ways; each event meets each subscription in one of them:

- *By content alone*, where neither the event nor the subscription asks for a place. Events and subscriptions
  are brought together in groups of bounded size, and each group has a `FilterIndex` (`content_join`).
- *Near the event*, where the event has an area or the filter a largest distance. Which nodes were there then
  is a join on time and grid cell (`place_join`); their subscriptions are joined by node and type.
- *By content, then place*, where a place is asked for but not a near one (`approaching`, a region of
  interest). The content's matches are joined with the node's own positions.

What is left of the last two goes through the one predicate, `accepts`, batch by batch. A recorded node has
no place before its first position and after its last. Nothing is computed before the result is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from earshot.errors import LakeError
from earshot.events import Event
from earshot.filters import Subscription, Viewer, accepts, parsed
from earshot.geometry import Position, Velocity
from earshot.pipeline.lake.tables import EVENTS, EXPECTED, SUBSCRIPTIONS
from earshot.pipeline.oracle.content_join import candidates_by_content, fit_one_group
from earshot.pipeline.oracle.place_join import LEG_COLUMNS, legs, level_of, node_places, places_in, radius_of
from earshot.pipeline.oracle.workloads import area_of, event_of
from earshot.protocols.common.local_subscriptions import event_types_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEXT = pa.string()
_EXPECTED_ARROW = pa.schema([(name, _TEXT) for name in EXPECTED.columns])
_EVENT_COLUMNS = tuple(name for name in EVENTS.columns if name != "workload")
region_of = lru_cache(maxsize=10_000)(area_of)


FEW_EVENTS = 5_000
"At most this number of events is sent to every task, each with the cells around it: about 25 MB."


def expected_receivers(
    subscriptions: DataFrame,
    positions: DataFrame | None = None,
    count: int | None = None,
    subscription_count: int | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """`events.transform(expected_receivers(subscriptions, positions))` gives `expected`.

    The plan reads the subscriptions several times: where they are many, pass `with_demands` of them, persisted.
    `count` and `subscription_count`: about how many events and subscriptions there are, where that is known. Few events
    are sent to where the positions are, instead of sending positions to where the events are; few of both are not
    counted first.
    """

    def transform(events: DataFrame) -> DataFrame:
        one_group = fit_one_group(count, subscription_count)
        asked = subscriptions if "asks_for_place" in subscriptions.columns else subscriptions.transform(with_demands)
        by_content = (
            events.where("area is null")
            .transform(candidates_by_content(asked.where("not asks_for_place"), one_group, pairs_only=True))
            .withColumn("why", F.lit("content"))
            .select(*EXPECTED.columns)
        )
        if positions is None:
            asking = [events.where("area is not null").select("workload")]
            asking.append(asked.where("asks_for_place").select("workload"))
            return by_content.unionByName(asking[0].unionByName(asking[1]).mapInArrow(_refuse, EXPECTED.ddl))
        in_place = events.transform(place_candidates(asked, positions, count, subscription_count))
        return by_content.unionByName(in_place.mapInArrow(_accepted, EXPECTED.ddl))

    return transform


def place_candidates(
    asked: DataFrame, positions: DataFrame, count: int | None = None, subscription_count: int | None = None
) -> Callable[[DataFrame], DataFrame]:
    """Events, about `count` of them, to candidates for which a place is asked: event, subscription, and the leg that
    its node was on."""
    one_group = fit_one_group(count, subscription_count)

    def transform(events: DataFrame) -> DataFrame:
        placed = asked.where("asks_for_place")
        near, anywhere = placed.where("reach_level is not null"), placed.where("reach_level is null")
        somewhere = events.where("area is not null").mapInArrow(_circles, _CIRCLE)
        everywhere = events.where("area is null")
        reaches = F.broadcast(near.select("workload", "reach_level").distinct())
        level, radius = F.col("reach_level"), F.col("radius_m")
        about = ("workload", "event", "time", "x_m", "y_m")
        circles = somewhere.select(
            *about, radius, level_of(radius).alias("level"), F.lit(None).cast("int").alias("reach_level")
        ).unionByName(
            everywhere.where("x_m is not null and y_m is not null")
            .join(reaches, "workload")
            .select(*about, radius_of(level).alias("radius_m"), level.alias("level"), "reach_level")
        )
        found = legs(positions)
        inside = (
            places_in(circles, found, count is not None and count <= FEW_EVENTS)
            .alias("a")
            .join(asked.alias("s"), ["workload", "node"])
            .where("s.start <= a.time and (s.end is null or a.time < s.end)")
            .where("a.reach_level is null or (a.reach_level = s.reach_level and a.distance_m <= s.reach_m + 1e-6)")
            .select("workload", "node", "a.event", "s.types", *_asked("s"), *LEG_COLUMNS)
        )
        by_content = everywhere.transform(candidates_by_content(anywhere, one_group))
        # Those in which there may be candidates. Whether there are any would be found out by matching twice.
        workloads = anywhere.select("workload").distinct().join(everywhere.select("workload"), "workload", "left_semi")
        elsewhere = node_places(by_content, found, workloads).select(
            "workload", "node", "event", F.lit(None).cast("array<string>").alias("types"), *_asked(), *LEG_COLUMNS
        )
        return (
            inside.unionByName(elsewhere)
            .alias("a")
            .join(events.alias("e"), ["workload", "event"])
            .where("e.source != node and (types is null or array_contains(types, e.type))")
            .select(
                "workload",
                "node",
                *_asked("a"),
                *LEG_COLUMNS,
                *("event" if name == "event" else F.col(f"e.{name}") for name in _EVENT_COLUMNS),
            )
        )

    return transform


def _asked(alias: str = "") -> list[str]:
    """The columns of a subscription that the predicate needs."""
    return [f"{alias}.{name}" if alias else name for name in ("subscription", "filter", "region")]


_CIRCLE = "workload string, event string, time double, x_m double, y_m double, radius_m double"


def _circles(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events with an area, with a circle around it."""
    for batch in batches:
        areas = [area for text in batch.column("area").to_pylist() if (area := region_of(text)) is not None]
        columns = {name: batch.column(name) for name in ("workload", "event", "time")}
        columns["x_m"] = pa.array([area.at.x_m for area in areas], pa.float64())
        columns["y_m"] = pa.array([area.at.y_m for area in areas], pa.float64())
        columns["radius_m"] = pa.array([area.shape.reach_m for area in areas], pa.float64())
        yield pa.RecordBatch.from_pydict(columns)


_DEMANDS = ", types array<string>, asks_for_place boolean, reach_m double"


def with_demands(subscriptions: DataFrame) -> DataFrame:
    """Subscriptions with what their filters and regions ask for: types (null: any), a place, and how near."""
    columns = [name for name in SUBSCRIPTIONS.columns if name in subscriptions.columns]
    schema = ", ".join(f"`{name}` {SUBSCRIPTIONS.columns[name]}" for name in columns)
    found = subscriptions.select(*columns).mapInArrow(_demands, schema + _DEMANDS)
    return found.withColumn("reach_level", F.when(F.col("reach_m").isNotNull(), level_of(F.col("reach_m"))))


def _demands(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        filters = [parsed(text) for text in batch.column("filter").to_pylist()]
        types = [event_types_of(filter) for filter in filters]
        needs = pa.array([filter.needs_viewer for filter in filters], pa.bool_())
        demands = {
            "types": pa.array([None if some is None else sorted(some) for some in types], pa.list_(_TEXT)),
            "asks_for_place": pc.or_(needs, pc.is_valid(batch.column("region"))),
            "reach_m": pa.array([filter.reach_m for filter in filters], pa.float64()),
        }
        yield pa.RecordBatch.from_pydict({**dict(zip(batch.schema.names, batch.columns, strict=True)), **demands})


def _accepted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of the candidates, those that accept the event where their node was."""
    for batch in batches:
        events: dict[tuple[str, str], Event] = {}
        kept = []
        for number, row in enumerate(batch.to_pylist()):
            key = row["workload"], row["event"]
            event = events.get(key) or events.setdefault(key, event_of(row))
            passed, velocity = row["time"] - row["leg_time"], Velocity(row["leg_x_m_s"], row["leg_y_m_s"])
            here = Position(row["leg_x_m"] + velocity.x_m_s * passed, row["leg_y_m"] + velocity.y_m_s * passed)
            wanted = Subscription(row["subscription"], row["node"], parsed(row["filter"]), region_of(row["region"]))
            if accepts(event, wanted, Viewer(here, velocity)):
                kept.append(number)
        chosen = batch.take(pa.array(kept, pa.int64()))
        why = pa.repeat(pa.scalar("content and place", _TEXT), len(kept))
        columns = {name: chosen.column(name) for name in EXPECTED.columns if name != "why"}
        yield pa.RecordBatch.from_pydict({**columns, "why": why}, schema=_EXPECTED_ARROW)


def _refuse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """There are events or subscriptions that ask for places, and no positions."""
    for batch in batches:
        if batch.num_rows:
            raise LakeError("these events or subscriptions ask for places: the oracle needs the positions table")
        yield _EXPECTED_ARROW.empty_table().to_batches()[0]
