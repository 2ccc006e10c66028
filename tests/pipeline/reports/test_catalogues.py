"""Who should have received what, for worlds that are in no lake."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from earshot import Event
from earshot.geometry import Area, Circle, Position
from earshot.pipeline.reports.catalogues import expected_pairs
from earshot.records.sessions import Session, SubscriptionSpan
from earshot.records.trajectories import Trajectory


def test_a_node_without_a_place_stands_at_the_origin_and_is_expected_while_it_is_there() -> None:
    places = {1: Trajectory.standing("b", 100.0, 0.0)}
    nodes = ("a", "b", "c")
    here = Area(Circle(0.5), Position(0.0, 0.0))
    events = [
        Event("Siren", {}, id=f"e{time:g}", source="van", time=time, position=Position(0.0, 0.0), area=area)
        for time, area in ((1.0, here), (2.0, None), (9.0, None))
    ]
    world: Any = SimpleNamespace(
        nodes=nodes, number_of_node={name: number for number, name in enumerate(nodes)}, events=events,
        subscriptions=[SubscriptionSpan(name, f"{name}/s", "Siren: true") for name in (*nodes, "z")],
        trajectories=SimpleNamespace(trajectory=lambda number, _: places.get(number)),
    )  # fmt: skip
    found_events, found_nodes = expected_pairs(world, [Session("c", start=0.0, end=5.0)])
    pairs = list(zip(found_events.tolist(), found_nodes.tolist(), strict=True))
    assert pairs == [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]
