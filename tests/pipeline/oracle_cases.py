"""Small random workloads, and who should receive each event: every event, every subscription, one at a time."""

from __future__ import annotations

import math
from functools import cached_property
from random import Random
from typing import Any

import numpy as np

from earshot import Area, Circle, Event, Filter, Position, Rectangle, Velocity, Viewer
from earshot.pipeline.oracle.workloads import area_json, area_of, event_row
from earshot.records.trajectories import legs_from

FILTERS = [
    "Siren: speed > 10",
    "Siren: speed in 5..15 and within 60 m",
    "approaching",
    "not receding and speed < 12",
    "Fire: contains(street, 'a')",
    "/Siren[speed > 8]",
    "/Fire/street",
    "within 40 m or speed > 18",
    "inside circle(50, 50, 30)",
]
TIMES = (0.0, 4.0, 10.0)
DURATION_S = 10.0


class Case:
    """A small random network: nodes on straight lines, events here and there, wishes that come and go."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.workload = f"case-{seed}"
        self.ways = {
            f"n{i}": [(random.uniform(0, 100), random.uniform(0, 100)) for _ in TIMES]
            for i in range(random.randint(2, 5))
        }
        self.events = [self._event(random, k) for k in range(random.randint(1, 8))]
        self.wishes = [self._wish(random, k) for k in range(random.randint(1, 8))]

    def _event(self, random: Random, k: int) -> Event:
        kind = random.choice(["Siren", "Fire"])
        content: dict[str, Any] = (
            {"speed": random.randrange(20)} if kind == "Siren" else {"street": random.choice("abc")}
        )
        return Event(
            type=kind,
            content=content,
            id=f"e{k}",
            source=random.choice(sorted(self.ways)),
            time=random.choice([*TIMES, *(random.uniform(0, DURATION_S) for _ in range(6))]),
            position=Position(random.uniform(0, 100), random.uniform(0, 100)),
            velocity=Velocity(random.uniform(-5, 5), random.uniform(-5, 5)) if random.random() < 0.7 else None,
            area=random.choice(
                [None, Area(Circle(40), Position(50, 50)), Area(Rectangle(30, 90, 20), Position(40, 60))]
            ),
        )

    def _wish(self, random: Random, k: int) -> dict[str, Any]:
        region = random.choice([None, None, Area(Circle(45), Position(30, 50))])
        return {
            "workload": self.workload,
            "subscription": f"s{k}",
            "node": random.choice(sorted(self.ways)),
            "filter": str(Filter.parse(random.choice(FILTERS))),
            "region": area_json(region),
            "start": random.choice([0.0, 3.0]),
            "end": random.choice([None, 7.0]),
        }

    def viewer(self, node: str, time: float) -> Viewer:
        xs, ys = zip(*self.ways[node], strict=True)
        leg = 0 if time < TIMES[1] else 1
        lasting = TIMES[leg + 1] - TIMES[leg]
        velocity = Velocity((xs[leg + 1] - xs[leg]) / lasting, (ys[leg + 1] - ys[leg]) / lasting)
        return Viewer(Position(float(np.interp(time, TIMES, xs)), float(np.interp(time, TIMES, ys))), velocity)

    @cached_property
    def brute_force(self) -> set[tuple[str, str, str, str]]:
        found = set()
        for event in self.events:
            for wish in self.wishes:
                viewer = self.viewer(wish["node"], event.time)
                region = area_of(wish["region"])
                stands = wish["start"] <= event.time < (math.inf if wish["end"] is None else wish["end"])
                in_area = event.area is None or event.area.contains(viewer.position)
                in_region = region is None or (event.position is not None and region.contains(event.position))
                wanted = Filter.parse(wish["filter"]).matches(event, viewer)
                if wish["node"] != event.source and stands and in_area and in_region and wanted:
                    found.add((self.workload, event.id, wish["node"], wish["subscription"]))
        return found

    def rows(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
        positions = [
            {
                "trace": self.workload,
                "node": node,
                "time": time,
                "x_m": x,
                "y_m": y,
                "speed_m_s": None,
                "heading_deg": None,
            }
            for node, way in self.ways.items()
            for time, (x, y) in zip(TIMES, way, strict=True)
        ]
        return [event_row(self.workload, event) for event in self.events], self.wishes, positions


def with_legs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of one node, with the legs that begin there."""
    time, x, y = (np.array([row[name] for row in rows]) for name in ("time", "x_m", "y_m"))
    legs = zip(*legs_from(np.zeros(len(rows), dtype=np.int64), time, x, y), strict=True)
    names = ("until", "x_m_s", "y_m_s")
    return [{**row, **dict(zip(names, map(float, leg), strict=True))} for row, leg in zip(rows, legs, strict=True)]
