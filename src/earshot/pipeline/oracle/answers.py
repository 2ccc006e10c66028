"""Answers: the oracle's why and why-not for any event and node of a play, from its scene and its log."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from earshot.filters import Filter, Subscription, Viewer
from earshot.pipeline.oracle.oracle import Wish, viewer_at
from earshot.pipeline.oracle.why import Answer, EventLog, explain_receiver
from earshot.pipeline.oracle.workloads import area_json
from earshot.simulation.engine.oracle import Lives, Oracle
from earshot.simulation.engine.result import Wish as Held
from earshot.simulation.faults import FaultSettings, plan
from earshot.simulation.mobility import Interval, Trajectories, Trajectory
from earshot.view.runs import KINDS, Records, Why
from earshot.view.world import Ints, Scene


class Answers:
    """Asked for one pair at a time; what the log says of an event is read once for all nodes."""

    def __init__(self, scene: Scene, records: Records) -> None:
        self.scene = scene
        self.records = records
        self._wishes: dict[str, list[Wish]] = defaultdict(list)
        for wish in scene.wishes:
            region = area_json(wish.region)
            self._wishes[wish.node].append(Wish("", wish.id, wish.node, wish.filter, region, wish.start, wish.end))
        self._order = np.argsort(records.event, kind="stable")
        bounds = np.searchsorted(records.event[self._order], np.arange(len(scene.events) + 1))
        self._bounds: list[int] = bounds.tolist()
        self.log_of = lru_cache(maxsize=256)(self._log_of)

    def answer(self, event: str, node: str) -> Answer:
        """KeyError where the scene has no such event or node."""
        number = self.scene.number_of_event[event]
        published = self.scene.events[number]
        viewer = self._viewer(self.scene.number_of_node[node], published.time)
        return explain_receiver(published, node, self._wishes.get(node, ()), viewer, self.log_of(number))

    def _viewer(self, node: int, time: float) -> Viewer | None:
        ways = self.scene.ways
        knots = slice(ways.first[node], ways.first[node + 1])
        if knots.start == knots.stop:
            return None
        return viewer_at(Trajectory("", ways.time[knots], ways.x_m[knots], ways.y_m[knots]), time)

    def _log_of(self, event: int) -> EventLog:
        rows = self._order[self._bounds[event] : self._bounds[event + 1]].tolist()
        records, nodes = self.records, self.scene.nodes
        return EventLog(
            {
                "time": float(records.time[row]),
                "transmission": row,
                "kind": KINDS[records.kind[row]],
                "node": nodes[records.node[row]] if records.node[row] >= 0 else "",
                "peer": nodes[records.peer[row]] if records.peer[row] >= 0 else "",
                "packet": records.packets[records.packet[row]],
                "detail": records.detail[records.said[row]],
            }
            for row in rows
        )

    def for_pairs(self, pairs: Iterable[tuple[int, int]]) -> list[Why]:
        """The answers for those (event, node), by number."""
        found = []
        for event, node in pairs:
            answer = self.answer(self.scene.events[event].id, self.scene.nodes[node])
            found.append(Why(event, node, answer.reasons, answer.losses))
        return found


def expected_pairs(scene: Scene, lives: tuple[Ints, Any, Any]) -> tuple[Ints, Ints]:
    """Who should have received what, by the simulator's own oracle: for scenes that are in no lake."""
    trajectories = Trajectories([_path(scene, node, name) for node, name in enumerate(_up(scene, lives))])
    held = [
        Held(
            scene.number_of_node[wish.node],
            Subscription(wish.id, wish.node, Filter.parse(wish.filter), wish.region),
            wish.start,
            wish.end if math.isfinite(wish.end) else None,
        )
        for wish in scene.wishes
        if wish.node in scene.number_of_node
    ]
    nothing_fails = plan(FaultSettings(), trajectories.names, scene.end, 0)
    oracle = Oracle(held, trajectories, Lives(trajectories, nothing_fails))
    pairs = [(i, node) for i, event in enumerate(scene.events) for node in sorted(oracle.receivers(event, event.time))]
    table = np.array(pairs, dtype=np.int32).reshape(len(pairs), 2)
    return table[:, 0].copy(), table[:, 1].copy()


def _up(scene: Scene, lives: tuple[Ints, Any, Any]) -> list[tuple[Interval, ...]]:
    """For each node the intervals in which it was up, by its comings and goings; always where it has none."""
    found: dict[int, list[Interval]] = defaultdict(list)
    since: dict[int, float] = {}
    for node, time, up in zip(*(column.tolist() for column in lives), strict=True):
        if node not in found and node not in since and not up:
            since[node] = -math.inf
        if up:
            since.setdefault(node, time)
        elif node in since:
            found[node].append((since.pop(node), time))
    for node, time in since.items():
        found[node].append((time, math.inf))
    return [tuple(found.get(node, [(-math.inf, math.inf)])) for node in range(len(scene.nodes))]


def _path(scene: Scene, node: int, presence: tuple[Interval, ...]) -> Trajectory:
    knots = slice(scene.ways.first[node], scene.ways.first[node + 1])
    name = scene.nodes[node]
    if knots.start == knots.stop:
        return Trajectory.through(name, [(0.0, 0.0, 0.0)], presence)
    ways = scene.ways
    return Trajectory(name, ways.time[knots], ways.x_m[knots], ways.y_m[knots], presence)
