"""STEAM: no node that was outside the proximity when an event was raised delivers it, whatever moves."""

from __future__ import annotations

import os
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from steam_table import Course, SteamTable

from earshot import Circle, Ellipse, Filter, Position, Proximity, Rectangle
from earshot.protocols.machine import Deliver
from earshot.protocols.steam.packets import SteamSettings

MANY = 2000 if os.environ.get("EARSHOT_TEST_SIZE") == "long" else 60
UNTIL_S = 12.0

coordinates = st.floats(-400.0, 400.0)
places = st.builds(Position, coordinates, coordinates)


@st.composite
def courses(draw: st.DrawFn) -> Course:
    """Legs of two seconds each, at up to a few hundred metres a second, then standing still."""
    stops = draw(st.lists(places, min_size=1, max_size=5))

    def course(now: float) -> Position:
        leg, share = int(now // 2), (now % 2) / 2
        if leg + 1 >= len(stops):
            return stops[-1]
        a, b = stops[leg], stops[leg + 1]
        return a.moved((b.x_m - a.x_m) * share, (b.y_m - a.y_m) * share)

    return course


sizes = st.floats(20.0, 500.0)
shapes = st.one_of(
    st.builds(Circle, sizes),
    st.builds(Circle, sizes, st.builds(Position, st.floats(-100, 100), st.floats(-100, 100))),
    st.builds(Rectangle, sizes, sizes, st.floats(0, 180)),
    st.builds(Ellipse, sizes, sizes, st.floats(0, 180)),
)


class Witnessed(SteamTable):
    """Records which node delivered which event."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.deliveries: list[tuple[str, str]] = []
        carry_out = self.table._carry_out

        def watch(node: str, effect: object) -> None:
            if isinstance(effect, Deliver):
                self.deliveries.append((node, effect.event.id))
            carry_out(node, effect)

        self.table._carry_out = watch  # type: ignore[method-assign]


@settings(max_examples=MANY, deadline=None)
@given(
    st.lists(courses(), min_size=2, max_size=7),
    st.lists(st.tuples(shapes, places, st.booleans()), min_size=1, max_size=2),
    st.lists(st.tuples(st.floats(0.0, UNTIL_S), st.integers(0, 1)), min_size=1, max_size=8),
    st.sampled_from(["flood", "gossip"]),
)
def test_no_node_that_was_outside_the_proximity_delivers_an_event(
    paths: list[Course],
    proximities: list[tuple[Circle | Rectangle | Ellipse, Position, bool]],
    publications: list[tuple[float, int]],
    forwarding: str,
) -> None:
    table = Witnessed(
        {f"n{k}": course for k, course in enumerate(paths)},
        replace(SteamSettings(), forwarding=forwarding),  # type: ignore[arg-type]
    )
    announced = {}
    for k, (shape, naval, mobile) in enumerate(proximities):
        announced[f"T{k}"] = Proximity(shape, table.where(f"n{k}") if mobile else naval, mobile)
        table.announce(f"n{k}", f"T{k}", announced[f"T{k}"])
    table.subscribe(table.courses, Filter.where("true"))
    for time, which in sorted(publications):
        table.run(time)
        table.publish(f"n{which % len(proximities)}", f"T{which % len(proximities)}")
    table.run(UNTIL_S + 5.0)
    for node, event_id in table.deliveries:
        event = table.events[event_id]
        here = table.courses[node](event.time)
        assert event.area is not None
        assert event.area.contains(here)
        proximity = announced[event.type]
        if not proximity.mobile:
            assert proximity.contains(here)
