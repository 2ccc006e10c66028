"""A log's batches as columns and as a world: a log of two nodes and one that only comes up in others' records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from earshot.events import Event
from earshot.pipeline.reports.lake_replays import _times
from earshot.pipeline.reports.recordings import LOG_COLUMNS, Recording, records_of
from earshot.records import Kind
from earshot.records.details import JoinDetail, write_detail
from earshot.view.runs import KINDS
from earshot.view.world import World

EMPTY = {"packet": "", "peer": "", "event": "", "subscription": "", "detail": "", "x_m": None, "y_m": None}


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    """Records; what is not named is empty."""
    types = dict.fromkeys(("time", "x_m", "y_m"), pa.float64())
    schema = pa.schema([(name, types.get(name, pa.string())) for name in LOG_COLUMNS])
    return pa.RecordBatch.from_pylist([{**EMPTY, **row} for row in rows], schema=schema)


def row(time: float, node: str, kind: Kind, **more: Any) -> dict[str, Any]:
    return {"time": time, "node": node, "kind": kind.value, **more}


def published(time: float, node: str, id: str) -> dict[str, Any]:
    event = Event("Siren", {"speed": 9.0}).stamped(id=id, source=node, time=time)
    return row(time, node, Kind.PUBLISH, event=id, detail=event.to_json())


def joined(time: float, node: str, protocol: str, range_m: float) -> dict[str, Any]:
    detail = write_detail(JoinDetail(protocol, {"hop_limit": int(time)}, emulate_range_m=range_m, life=1))
    return row(time, node, Kind.JOIN, detail=detail)


FIRST = batch(
    joined(10.0, "car2", "steam", 150.0),
    joined(11.0, "car10", "steam", 99.0),
    row(12.0, "car10", Kind.SUBSCRIBE, subscription="s", detail="Siren: true"),
    published(13.0, "car2", "e1"),
    row(13.0, "car2", Kind.SEND, event="e1", packet="steam-event", x_m=1.0, y_m=2.0),
)
SECOND = batch(
    row(14.0, "car10", Kind.RECEIVE, event="e1", peer="car2", packet="steam-event", x_m=5.0, y_m=6.0),
    row(14.5, "car10", Kind.RECEIVE, event="e1", peer="bus", packet="steam-event"),
    row(14.5, "car10", Kind.RECEIVE, event="unknown", peer="bus", packet="steam-event"),
    row(14.6, "car10", Kind.DELIVER, event="e1", subscription="s"),
    row(14.7, "car10", Kind.DROP, event="", detail="queue full"),
    published(12.5, "car10", "e0"),
    row(15.0, "car2", Kind.POSITION, x_m=3.0, y_m=2.0),
    {"time": 15.5, "node": "car2", "kind": Kind.PUBLISH.value, "event": "e9", "detail": "no event"},
)


def recording() -> Recording:
    found = Recording()
    assert [len(one) for one in found.add([FIRST, SECOND])] == [5, 8]
    return found


def test_the_world_of_a_log_is_what_its_records_say() -> None:
    world = recording().world("w", "network n")
    assert (world.key, world.name, world.seed, world.extent) == ("w", "network n", 0, None)
    assert world.nodes == ["car2", "car10"]
    assert [(event.id, event.time, event.source) for event in world.events] == [
        ("e0", 12.5, "car10"), ("e1", 13.0, "car2"),
    ]  # fmt: skip
    assert (world.start, world.counted_from, world.end, world.range_m) == (12.5, 12.5, 15.5, 99.0)
    assert [(span.node, span.subscription, span.filter, span.start) for span in world.subscriptions] == [
        ("car10", "s", "Siren: true", 12.0)
    ]
    knots = world.trajectories
    assert (knots.node.tolist(), knots.time.tolist()) == ([0, 0, 1], [13.0, 15.0, 14.0])
    assert (knots.x_m.tolist(), knots.y_m.tolist()) == ([1.0, 3.0, 5.0], [2.0, 2.0, 6.0])


def test_a_world_may_begin_later_and_be_given_a_range() -> None:
    world = recording().world("w", "n", since=14.0, range_m=7.0)
    assert (world.nodes, world.events, world.range_m) == (["car2", "car10"], [], 7.0)
    assert (world.start, world.end, len(world.trajectories.time)) == (14.0, 15.5, 2)
    assert [event.id for event in recording().world("w", "n", since=13.0).events] == ["e1"]


def test_an_empty_log_has_an_empty_world_of_a_second() -> None:
    world = Recording().world("w", "n")
    assert (world.nodes, world.events, world.start, world.end, world.range_m) == ([], [], 0.0, 1.0, None)
    assert Recording().last == -math.inf
    nothing = records_of([], world)
    assert (len(nothing.time), nothing.details, nothing.packets) == (0, [""], [""])


def test_the_latest_settings_of_a_protocol_count() -> None:
    assert recording().settings == {"steam": {"hop_limit": 11}}


def test_what_is_forgotten_are_positions_and_publications_from_before() -> None:
    found = recording()
    found.forget(13.0)
    assert sum(len(part[1]) for part in found.places) == 3
    assert [row["event"] for row in found.rows if row["kind"] == Kind.PUBLISH] == ["e1", "e9"]
    found.forget(13.5)
    assert [part[1].tolist() for part in found.places] == [[14.0, 15.0]]
    assert [row["event"] for row in found.rows if row["kind"] == Kind.PUBLISH] == ["e9"]
    assert [span.subscription for span in found.sessions().subscription_spans()] == ["s"], "it is still in force"
    found.forget(15.0)
    assert [part[1].tolist() for part in found.places] == [[15.0]]


def shown(world: World, batches: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    found = records_of(batches, world)
    columns = zip(
        found.time.tolist(), found.kind.tolist(), found.node.tolist(), found.peer.tolist(), found.event.tolist(),
        found.detail.tolist(), found.packet.tolist(), strict=True,
    )  # fmt: skip
    return [
        (time, KINDS[kind], node, peer, event, found.details[detail], found.packets[packet])
        for time, kind, node, peer, event, detail, packet in columns
    ]


def test_a_replay_needs_the_first_receipt_of_each_event_at_each_node() -> None:
    world = recording().world("w", "n")
    rows = shown(world, [FIRST, SECOND])
    assert [one for one in rows if one[1] is not Kind.JOIN] == [
        (13.0, Kind.SEND, 0, -1, 1, "", "steam-event"),
        (14.0, Kind.RECEIVE, 1, 0, 1, "", "steam-event"),
        (14.6, Kind.DELIVER, 1, -1, 1, "", ""),
        (14.7, Kind.DROP, 1, -1, -1, "queue full", ""),
    ]
    assert [one[:3] for one in rows if one[1] is Kind.JOIN] == [(10.0, Kind.JOIN, 0), (11.0, Kind.JOIN, 1)]


def test_the_first_receipt_counts_whichever_batch_it_is_in() -> None:
    world = recording().world("w", "n")
    again = batch(row(13.5, "car10", Kind.RECEIVE, event="e1", peer="car2", packet="late"))
    received = [one for one in shown(world, [FIRST, SECOND, again]) if one[1] is Kind.RECEIVE]
    assert received == [(13.5, Kind.RECEIVE, 1, 0, 1, "", "late")]
    both = batch(
        row(14.0, "car10", Kind.RECEIVE, event="e1", peer="car2"),
        row(14.0, "car2", Kind.RECEIVE, event="e1", peer="car10"),
        row(14.0, "car10", Kind.RECEIVE, event="e0", peer="car2"),
    )
    assert len(shown(world, [both])) == 3
    assert records_of([batch()], world).time.dtype == np.float64


def test_a_run_starts_where_its_positions_do_and_counts_after_its_warm_up() -> None:
    positions = pa.table({"time": [100.0, 130.0]})
    plain = {"duration_s": None, "warm_up_s": None}
    assert _times(plain, positions, simulated=True) == (0.0, 0.0, 0.0)
    assert _times(plain, positions, simulated=False) == (100.0, 130.0, 100.0)
    long = {"duration_s": 60.0, "warm_up_s": 5.0}
    assert _times(long, positions, simulated=False) == (100.0, 160.0, 105.0)
    assert _times(long, positions.slice(0, 0), simulated=False) == (0.0, 60.0, 5.0)
