"""Workloads that one task holds: the oracle's answers and the ceiling, from a workload's Arrow tables.

Spark's joins (`oracle`, `reachable`) cost seconds of planning and shuffling, whatever they join. A workload of some
thousand events and nodes is answered whole in one task instead, by the same `Oracle` and the same steps of the ceiling.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from earshot.events import Event
from earshot.filters import Oracle, Viewer
from earshot.geometry import Area, Position, Velocity
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.data_files import DataFile
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.tables import EXPECTED
from earshot.pipeline.oracle.reachable import ContactNetwork, reach_in_one_task
from earshot.pipeline.oracle.workloads import events_of, span_of
from earshot.pipeline.spark.tasks import coded, each_in_a_task
from earshot.records.trajectories import legs_from

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake

Item = TypeVar("Item")
MOST_CANDIDATES = 4_000_000
"Events x subscriptions: some 100 MB in a task, and a few seconds."
MOST_POSITIONS = 200_000
"Rows: what one task searches for contacts in a few seconds."
_EXPECTED = pa.schema([(name, pa.string()) for name in EXPECTED.columns])
Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
BORDER_M = 1e-6
"The predicate is also asked about nodes that are too far by this much: it alone decides at the border."


def fits_one_task(lake: Lake, workload: str, trace: str | None = None) -> bool:
    """Whether one task can hold the workload, by the row counts of the lake's files."""
    count = lake.arrow.count_rows
    candidates = count("events", workload=workload) * count("subscriptions", workload=workload)
    return candidates <= MOST_CANDIDATES and count("positions", trace=trace or workload) <= MOST_POSITIONS


def ask_whole(lake: Lake, workloads: Sequence[str]) -> None:
    """`expected` of those workloads, one task each."""
    _in_tasks(lake, list(workloads), partial(_ask, lake.folder))


def reach_whole(
    lake: Lake, networks: Mapping[str, ContactNetwork], trace: str | None = None, has_sessions: bool = True
) -> None:
    """`reachable` of those workloads, one task each. With a trace, positions are those of the trace. Without sessions,
    nodes are there from their first position to their last."""
    _in_tasks(lake, list(networks.items()), partial(_reach, lake.folder, trace, has_sessions))


def _in_tasks(lake: Lake, items: Sequence[Item], work: Callable[[Item], str]) -> None:
    lake.check_shared()
    answers = each_in_a_task(lake.session, items, work)
    lake.arrow.commit([DataFile(**json.loads(answer)) for answer in answers])


def _ask(folder: Folder, workload: str) -> str:
    """In a task: ask the oracle about one workload."""
    lake = ArrowLake(folder)
    found = expected_of(
        lake.read("events", workload=workload),
        lake.read("subscriptions", workload=workload),
        lake.read("positions", trace=workload),
    )
    return json.dumps(asdict(lake.files.write_table("expected", found, workload=workload)))


def _reach(folder: Folder, trace: str | None, has_sessions: bool, item: tuple[str, ContactNetwork]) -> str:
    """In a task: find what is reachable of one workload."""
    workload, network = item
    lake = ArrowLake(folder)
    found = reach_in_one_task(
        workload,
        network,
        lake.read("events", workload=workload),
        lake.read("expected", workload=workload),
        lake.read("positions", trace=trace or workload),
        lake.read("sessions", workload=workload) if has_sessions else None,
    )
    file = lake.files.write_table("reachable", found, workload=workload, range_m=network.range_m)
    return json.dumps(asdict(file))


def expected_of(events: pa.Table, subscriptions: pa.Table, positions: pa.Table, only_placed: bool = False) -> pa.Table:
    """The rows of `expected` for the events, subscriptions and positions of one workload. With `only_placed`, a node
    receives nothing before its first position and after its last, whatever it asks for."""
    published = list(events_of(events))
    oracle = Oracle(map(span_of, subscriptions.to_pylist()))
    rows, spans = oracle.candidates(published, [event.time for event in published])
    has_area = np.array([event.area is not None for event in published], dtype=bool)
    placed = np.array([one.region is not None or one.filter.needs_viewer for one in oracle.subscriptions], dtype=bool)
    asks = has_area[rows] | placed[spans]
    agrees = ~asks
    agrees[asks] = _agree_in_place(oracle, published, rows[asks], spans[asks], positions)
    if only_placed:
        times = np.array([published[row].time for row in rows], dtype=np.float64)
        agrees &= _legs_at([oracle.spans[span].node for span in spans], times, positions)[0]
    rows, spans, asks = rows[agrees], spans[agrees], asks[agrees]
    chosen = {name: subscriptions.column(name).take(pa.array(spans)) for name in ("node", "subscription")}
    chosen |= {name: events.column(name).take(pa.array(rows)) for name in ("workload", "event")}
    chosen["why"] = pa.array(["content", "content and place"], pa.string()).take(pa.array(asks.astype(np.int64)))
    return pa.table([chosen[name] for name in _EXPECTED.names], schema=_EXPECTED)


def _agree_in_place(
    oracle: Oracle, events: Sequence[Event], rows: Numbers, spans: Numbers, positions: pa.Table
) -> npt.NDArray[np.bool_]:
    """Whether each candidate accepts the event from where its node was."""
    agrees = np.zeros(len(rows), dtype=bool)
    if not len(rows):
        return agrees
    time = np.array([event.time for event in events], dtype=np.float64)
    is_there, x_m, y_m, x_m_s, y_m_s = _legs_at([oracle.spans[span].node for span in spans], time[rows], positions)
    areas = [(_NOWHERE if event.area is None else _circle_of(event.area)) for event in events]
    places = [(math.nan, math.nan) if (at := event.position) is None else (at.x_m, at.y_m) for event in events]
    reaches = [math.nan if (most := one.filter.reach_m) is None else most for one in oracle.subscriptions]
    in_area, near = np.array(areas)[rows], np.array(places)[rows]
    for middle_x, middle_y, radius_m in (in_area.T, (*near.T, np.array(reaches)[spans])):
        # Where there is no circle, nothing is greater than it.
        is_there &= ~(np.hypot(x_m - middle_x, y_m - middle_y) > radius_m * (1.0 + 1e-9) + BORDER_M)
    for number in np.flatnonzero(is_there).tolist():
        here = Position(float(x_m[number]), float(y_m[number]))
        viewer = Viewer(here, Velocity(float(x_m_s[number]), float(y_m_s[number])))
        agrees[number] = oracle.agrees_in_place(events[rows[number]], int(spans[number]), viewer)
    return agrees


_NOWHERE = (math.nan, math.nan, math.nan)


def _circle_of(area: Area) -> tuple[float, float, float]:
    """A circle around the area."""
    return area.at.x_m, area.at.y_m, area.shape.reach_m


def _legs_at(
    nodes: Sequence[str], time: Floats, positions: pa.Table
) -> tuple[npt.NDArray[np.bool_], Floats, Floats, Floats, Floats]:
    """For each (node, time): whether the node is there, and its place and velocity."""
    code, names = coded(positions.column("node"))
    at, x, y, until, x_m_s, y_m_s = (
        positions.column(name).to_numpy() for name in ("time", "x_m", "y_m", "until", "x_m_s", "y_m_s")
    )
    # Of several rows at one time the one furthest east counts, then furthest north, as in `place_join.legs`.
    order = np.lexsort((y, x, at, code))
    is_last = np.append((np.diff(code[order]) != 0) | (np.diff(at[order]) != 0), np.ones(min(1, len(order)), bool))
    order = order[is_last]
    code, at, x, y = code[order], at[order], x[order], y[order]
    if pc.all(pc.is_valid(positions.column("until"))).as_py():
        until, x_m_s, y_m_s = until[order], x_m_s[order], y_m_s[order]
    else:
        until, x_m_s, y_m_s = legs_from(code, at, x, y)
    first = np.searchsorted(code, np.arange(len(names) + 1))
    number = {name: i for i, name in enumerate(names)}
    asked = np.array([number.get(node, -1) for node in nodes], dtype=np.int64)
    leg = np.full(len(time), -1, dtype=np.int64)
    for node in np.unique(asked[asked >= 0]).tolist():
        ours = np.flatnonzero(asked == node)
        own = slice(int(first[node]), int(first[node + 1]))
        before = np.searchsorted(at[own], time[ours], side="right") - 1
        leg[ours] = np.where(before >= 0, before + own.start, -1)
    is_known = leg >= 0
    passed = np.where(is_known, time - at[leg], 0.0) if len(at) else np.zeros(len(time))
    if not len(at):
        return is_known, passed, passed, passed, passed
    is_there = is_known & ((time < until[leg]) | ((time == until[leg]) & (at[leg] == until[leg])))
    return is_there, x[leg] + x_m_s[leg] * passed, y[leg] + y_m_s[leg] * passed, x_m_s[leg], y_m_s[leg]
