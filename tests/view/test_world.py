"""Worlds: simplified trajectories keep to their bound, names are sorted as people count."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot import Area, Circle, Event, Position, Proximity
from earshot.records.sessions import AnnouncementSpan, SubscriptionSpan
from earshot.view.world import TrajectoryColumns, World, content_text, corners, node_names, unpack


@given(st.integers(0, 2**32), st.integers(0, 200), st.floats(0.1, 10))
def test_a_simplified_trajectory_stays_within_its_bound_and_keeps_its_ends(
    seed: int, knots: int, within_m: float
) -> None:
    """Trajectories that bend a little at every knot."""
    random = np.random.default_rng(seed)
    steps = random.normal(0, 1, (3, knots, 2)) * random.uniform(0, 2, (3, 1, 1))
    places = steps.cumsum(axis=1).reshape(3 * knots, 2)
    node, time = np.repeat(np.arange(3), knots), np.tile(np.arange(knots, dtype=np.float64), 3)
    columns = TrajectoryColumns.of(3, node, time, places[:, 0], places[:, 1])
    few = columns.simplified(within_m)
    assert len(few.time) <= len(columns.time)
    x, y = few.at(columns.node, columns.time)
    assert np.all(np.hypot(x - columns.x_m, y - columns.y_m) <= within_m * (1 + 1e-9) + 1e-9)
    for node in range(3):
        old, new = (one.time[one.first[node] : one.first[node + 1]] for one in (columns, few))
        assert (list(old[:1]), list(old[-1:])) == (list(new[:1]), list(new[-1:]))


def test_a_straight_even_trajectory_needs_two_knots_and_a_jump_stays() -> None:
    time = np.array([0.0, 1, 2, 3, 4, math.nextafter(5, 0), 5, 6])
    x = np.array([0.0, 1, 2, 3, 4, 5, 100, 101])
    few = TrajectoryColumns.of(1, np.zeros(8, dtype=np.int32), time, x, np.zeros(8)).simplified(0.01)
    assert few.x_m.tolist()[0] == 0.0
    assert few.x_m.tolist()[-3:] == [5.0, 100.0, 101.0]
    assert len(few.time) <= 5


def test_rows_without_a_place_are_no_knots() -> None:
    columns = TrajectoryColumns.of(2, np.array([1, 0, -1]), np.arange(3.0), np.array([1.0, math.nan, 3.0]), np.zeros(3))
    assert (columns.first.tolist(), columns.x_m.tolist()) == ([0, 0, 1], [1.0])


def test_names_are_in_the_order_people_count() -> None:
    assert node_names(["car-10", "car-2", "bus"], ["car-2", "", "car-02", "9" * 5000]) == [
        "9" * 5000,
        "bus",
        "car-02",
        "car-2",
        "car-10",
    ]


def test_content_is_for_people_to_read() -> None:
    assert content_text(Event("CD", {"price": 18.0, "new": True})) == "price = 18, new = true"
    assert content_text(Event.from_xml("<CD><price>18</price></CD>")).endswith("<CD><price>18</price></CD>")


def test_a_world_is_packed_with_times_from_its_start_and_nodes_by_number() -> None:
    area = Area(Circle(50), Position(10, 0))
    world = World(
        key="k",
        name="walk",
        seed=3,
        start=100.0,
        end=160.0,
        counted_from=110.0,
        range_m=None,
        extent=None,
        nodes=["ann", "bob"],
        trajectories=TrajectoryColumns.of(
            2, np.array([0, 1]), np.array([100.0, 101.0]), np.array([0.0, 90.0]), np.array([0.0, 50.0])
        ),
        events=[
            Event("Siren", {"speed": 18}, id="ann-0", source="ann", time=112.0, position=Position(1, 2), area=area)
        ],
        subscriptions=[
            SubscriptionSpan("bob", "bob/0", "Siren: true", None, 100.0, math.inf),
            SubscriptionSpan("eve", "e", "", None, 0.0, 1.0),
        ],
        announcements=[
            AnnouncementSpan("ann", "Siren", Proximity(Circle(50), Position(7, 7), mobile=True), 100.0, 130.0)
        ],
        expected=(np.array([0]), np.array([1])),
    )
    meta, arrays = unpack(world.packed())
    assert (meta["end"], meta["counted_from"], meta["bounds"]) == (60.0, 10.0, [0.0, 0.0, 90.0, 50.0])
    assert meta["events"][0][:5] == ["ann-0", 0, 0, 12.0, [1.0, 2.0]]
    assert meta["events"][0][5]["text"] == "circle:50m"
    assert meta["subscriptions"] == [[1, "bob/0", "Siren: true", None, 0.0, None]]
    assert [meta["announcements"][0][k] for k in (0, 1, 3, 4)] == [0, 0, 0.0, 30.0]
    around = meta["announcements"][0][2]["rings"][0]
    assert (max(around[::2]), min(around[::2])) == (50.0, -50.0)
    assert (arrays["time"].tolist(), arrays["first"].tolist()) == ([0.0, 1.0], [0, 1, 2])


def standing(places: list[tuple[float, float]], ground: tuple[float, float] | None = None) -> World:
    """Nodes that never move."""
    x, y = np.array(places, dtype=np.float64).reshape(len(places), 2).T
    count = len(places)
    columns = TrajectoryColumns.of(count, np.arange(count), np.zeros(count), x, y)
    nodes = [f"node-{i}" for i in range(count)]
    return World("k", "still", 0, 0.0, 1.0, 0.0, None, ground, nodes, columns, [], [], [])


@pytest.mark.parametrize(
    ("places", "ground", "bounds"),
    [
        ([(7.0, 3.0)] * 3, None, (-3.0, -7.0, 17.0, 13.0)),
        ([(0.0, 3.0), (1000.0, 3.0)], None, (0.0, -7.0, 1000.0, 13.0)),
        ([(0.0, 0.0), (30.0, 40.0)], None, (0.0, 0.0, 30.0, 40.0)),
        ([], None, (-10.0, -10.0, 10.0, 10.0)),
        ([(2.0, 1.0)] * 3, (5.0, 4.0), (0.0, 0.0, 5.0, 4.0)),
        ([(-2.0, 1.0), (3.0, 9.0)], (5.0, 4.0), (-2.0, 0.0, 5.0, 9.0)),
        ([], (5.0, 4.0), (0.0, 0.0, 5.0, 4.0)),
    ],
)
def test_the_map_shows_all_nodes_on_some_ground_even_where_they_stand_at_one_place(
    places: list[tuple[float, float]], ground: tuple[float, float] | None, bounds: tuple[float, ...]
) -> None:
    assert standing(places, ground).bounds == bounds


def test_pairs_are_numbered_once_in_order_and_those_of_others_left_out() -> None:
    world = replace(standing([(0.0, 0.0), (1.0, 0.0)]), events=[Event("Siren", {}, id=name) for name in "ab"])
    pairs = [("b", "node-0"), ("a", "node-1"), ("b", "node-0"), ("c", "node-0"), ("a", "node-9")]
    assert [column.tolist() for column in world.numbered(pairs)] == [[0, 1], [1, 0]]
    assert [column.tolist() for column in world.numbered([])] == [[], []]


def test_nodes_are_found_between_their_knots_and_stand_before_and_after_them() -> None:
    node, time = np.array([1, 0, 1, 0]), np.array([10.0, 0.0, 0.0, 4.0])
    columns = TrajectoryColumns.of(3, node, time, np.array([100.0, 5.0, 0.0, 9.0]), np.array([50.0, 1.0, 0.0, 1.0]))
    x, y = columns.at(np.array([1, 0, 1, 2, 1]), np.array([5.0, 1.0, -3.0, 5.0, 99.0]))
    assert x.tolist() == pytest.approx([50.0, 6.0, 0.0, np.nan, 100.0], nan_ok=True)
    assert y.tolist() == pytest.approx([25.0, 1.0, 0.0, np.nan, 50.0], nan_ok=True)
    assert columns.node.tolist() == [0, 0, 1, 1]
    assert columns.trajectory(2) is None
    own = columns.trajectory(1, "car")
    assert own is not None
    assert (own.name, own.xs.tolist()) == ("car", [0.0, 100.0])


def test_a_proximity_that_stays_is_drawn_where_it_lies_and_long_content_is_cut() -> None:
    assert corners(Circle(10.0), Position(1.0, 2.0))[0][:2] == [11.0, 2.0]
    assert corners(Circle(10.0), Position(1.06, 2.04))[0][:2] == [11.1, 2.0], "to a tenth of a metre"
    fixed = Proximity(Circle(50.0), Position(700.0, 7.0), mobile=False)
    still = replace(
        standing([(0.0, 0.0), (40.0, 10.0)]),
        announcements=[
            AnnouncementSpan("node-1", "Siren", fixed, 0.0, math.inf),
            AnnouncementSpan("x", "y", None, 0.0, 1.0),
        ],
        events=[Event("News", {"text": "x" * 3000}, id="e", source="gone", time=0.5)],
        notes=["a guess"],
    )
    meta, _ = unpack(still.packed())
    ((node, kind, around, start, end),) = meta["announcements"]
    assert (node, meta["types"][kind], around["mobile"], start, end) == (1, "Siren", False, 0.0, None)
    assert (max(around["rings"][0][::2]), min(around["rings"][0][::2])) == (750.0, 650.0)
    assert meta["events"][0][:6] == ["e", 0, -1, 0.5, None, None]
    assert len(meta["events"][0][6]) == 2000
    assert (meta["notes"], meta["range_m"], meta["extent"], meta["types"]) == (
        ["a guess"],
        None,
        None,
        ["News", "Siren", "y"],
    )


def test_a_world_is_simplified_to_a_fourthousandth_of_its_longer_side() -> None:
    """On a map 4,000 m high, half a metre beside the straight way is not drawn; three metres are."""
    for aside_m, knots in ((0.4, 3), (3.0, 4)):
        node = np.array([0, 0, 0, 1])
        x, y = np.array([0.0, aside_m, 0.0, 7.0]), np.array([0.0, 2000.0, 4000.0, 0.0])
        columns = TrajectoryColumns.of(2, node, np.array([0.0, 1.0, 2.0, 0.0]), x, y)
        world = World("k", "n", 0, 0.0, 2.0, 0.0, None, None, ["a", "b"], columns, [], [], [])
        assert len(unpack(world.packed())[1]["time"]) == knots
