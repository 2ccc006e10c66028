"""A world of a thousand nodes and an hour, with an event every five seconds that reaches everybody."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from earshot import Event, Position
from earshot.records.sessions import SubscriptionSpan
from earshot.view.overlays import Overlays
from earshot.view.runs import BINS, Hops, ReplayedRun
from earshot.view.world import Ints, TrajectoryColumns, World

NODES, LASTING_S, EVENTS, STEP_S, SIDE_M = 1000, 3600.0, 720, 10.0, 3000.0


def large_world(random: np.random.Generator) -> World:
    """Everybody wanders, and turns every ten seconds."""
    knots = int(LASTING_S / STEP_S) + 1
    turns = random.normal(0, 15, (NODES, knots, 2)).cumsum(axis=1)
    places = np.abs((turns + random.uniform(0, SIDE_M, (NODES, 1, 2))) % (2 * SIDE_M) - SIDE_M)
    node = np.repeat(np.arange(NODES, dtype=np.int32), knots)
    time = np.tile(np.arange(knots) * STEP_S, NODES)
    names = [f"node-{i:04}" for i in range(NODES)]
    sources = random.integers(0, NODES, EVENTS)
    return World(
        key="large",
        name="large",
        seed=1,
        start=0.0,
        end=LASTING_S,
        counted_from=0.0,
        range_m=250.0,
        extent=(SIDE_M, SIDE_M),
        nodes=names,
        trajectories=TrajectoryColumns.of(NODES, node, time, places[:, :, 0].ravel(), places[:, :, 1].ravel()),
        events=[
            Event("News", {"n": i}, id=f"e{i}", source=names[sources[i]], time=5.0 * i, position=Position(0, 0))
            for i in range(EVENTS)
        ],
        subscriptions=[SubscriptionSpan(name, f"{name}/0", "News: true", None, 0.0, np.inf) for name in names[:50]],
        announcements=[],
        expected=(
            np.repeat(np.arange(EVENTS, dtype=np.int32), 50),
            np.tile(np.arange(50, dtype=np.int32), EVENTS),
        ),
    )


def large_run(world: World, random: np.random.Generator) -> ReplayedRun:
    """Each event goes to whoever is in range of one who has it: a flood over the places of its time."""
    floods = [_flood(world, 50.0 * k, int(random.integers(0, NODES))) for k in range(EVENTS // 10)]
    parts = []
    for i in range(EVENTS):
        node, sender, depth = floods[i // 10]
        parts.append((np.full(len(node), i, dtype=np.int32), node, sender, depth))
    event, node, sender, depth = (np.concatenate(column) for column in zip(*parts, strict=True))
    time = 5.0 * event + 0.002 * depth
    got = node < 45
    return ReplayedRun(
        key="flood",
        title="flood",
        protocol="flooding",
        settings={},
        hops=Hops(event, node, sender, time, depth, np.full(len(node), -1, dtype=np.int32)),
        deliveries=(event[got], node[got], time[got]),
        sessions=[],
        air=(np.zeros(BINS, dtype=np.int32), np.zeros(BINS, dtype=np.int32)),
        overlays=Overlays({"links": "ways"}),
    )


def _flood(world: World, time: float, source: int) -> tuple[Ints, Ints, Ints]:
    """Receivers in the order they hear it, from whom, and after how many hops."""
    places = np.column_stack(world.trajectories.at(np.arange(NODES), np.full(NODES, time)))
    near = cKDTree(places).query_ball_point(places, world.range_m)
    depth = {source: 0}
    found: list[tuple[int, int, int]] = []
    front = [source]
    while front:
        here = front.pop(0)
        for other in near[here]:
            if other not in depth:
                depth[other] = depth[here] + 1
                found.append((other, here, depth[other]))
                front.append(other)
    table = np.array(found, dtype=np.int32).reshape(len(found), 3)
    return table[:, 0], table[:, 1], table[:, 2]
