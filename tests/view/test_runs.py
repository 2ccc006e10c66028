"""Plays: what a log says of one run, and the protocol's picture."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from earshot import Event
from earshot.protocols.content_odmrp.odmrp import OdmrpSettings
from earshot.protocols.georendezvous.settings import GeoRendezvousSettings
from earshot.records import Kind
from earshot.view.overlays import _tree_and_parent, overlays_of
from earshot.view.runs import (
    BINS,
    CODE,
    Hops,
    Records,
    Why,
    air_of,
    deliveries_of,
    hops_of,
    notes_of,
    presence_changes,
    replayed_run,
    sessions_of,
    thinned,
)
from earshot.view.world import TrajectoryColumns, World, unpack

Row = tuple[float, Kind, str, str, str, str]


def world(nodes: str = "abcde", events: tuple[tuple[str, str, float], ...] = (("a-0", "a", 1.0),)) -> World:
    return World(
        key="k",
        name="n",
        seed=0,
        start=0.0,
        end=100.0,
        counted_from=0.0,
        range_m=100.0,
        extent=(1000.0, 500.0),
        nodes=list(nodes),
        trajectories=TrajectoryColumns.of(0, *(np.zeros(0),) * 4),
        events=[Event("T", {}, id=id, source=source, time=time) for id, source, time in events],
        subscriptions=[],
        announcements=[],
    )


def records(on: World, *rows: Row) -> Records:
    """(time, kind, node, peer, event, detail)"""
    details = sorted({row[5] for row in rows})
    return Records(
        time=np.array([row[0] for row in rows], dtype=np.float64),
        kind=np.array([CODE[row[1]] for row in rows], dtype=np.int8),
        node=np.array([on.number_of_node.get(row[2], -1) for row in rows], dtype=np.int32),
        peer=np.array([on.number_of_node.get(row[3], -1) for row in rows], dtype=np.int32),
        event=np.array([on.number_of_event.get(row[4], -1) for row in rows], dtype=np.int32),
        details=details,
        detail=np.array([details.index(row[5]) for row in rows], dtype=np.int32),
        packets=[""],
        packet=np.zeros(len(rows), dtype=np.int32),
    )


def heard(time: float, node: str, peer: str, event: str = "a-0") -> Row:
    return (time, Kind.RECEIVE, node, peer, event, "")


LINE = (heard(1.3, "d", "c"), heard(1.1, "b", "a"), heard(1.15, "a", "b"), heard(1.2, "c", "b"), heard(1.25, "b", "c"))


def test_hops_are_first_receipts_in_order_with_their_depth() -> None:
    on = world()
    hops = hops_of(on, records(on, *LINE))
    assert [on.nodes[i] for i in hops.node] == ["b", "c", "d"]
    assert [on.nodes[i] for i in hops.sender] == ["a", "b", "c"]
    assert hops.depth.tolist() == [1, 2, 3]
    assert hops.parent.tolist() == [-1, 0, 1]


def test_hops_that_run_in_circles_end() -> None:
    on = world()
    hops = hops_of(on, records(on, heard(1.1, "b", "c"), heard(1.1, "c", "b")))
    assert len(hops) == 2


def test_nothing_heard_is_no_hop() -> None:
    on = world()
    assert len(hops_of(on, records(on))) == 0
    assert len(hops_of(world(events=()), records(on))) == 0


def test_deliveries_are_the_first_ones() -> None:
    on = world()
    reported = records(
        on,
        (3.0, Kind.DELIVER, "c", "", "a-0", ""),
        (2.0, Kind.DELIVER, "b", "", "a-0", ""),
        (2.5, Kind.DELIVER, "c", "", "a-0", ""),
        (2.6, Kind.DELIVER, "c", "", "unknown", ""),
    )
    event, node, time = deliveries_of(on, reported)
    assert (event.tolist(), node.tolist(), time.tolist()) == ([0, 0], [1, 2], [2.0, 2.5])


def test_deliveries_of_several_events_are_kept_apart() -> None:
    on = world(events=tuple((f"a-{number}", "a", 1.0) for number in range(6)))
    reported = records(
        on,
        *((2.0 + number, Kind.DELIVER, node, "", f"a-{number}", "") for number in range(6) for node in "abcde"),
    )
    event, node, _ = deliveries_of(on, reported)
    assert list(zip(event.tolist(), node.tolist(), strict=True)) == [(a, b) for a in range(6) for b in range(5)]


def test_comings_goings_and_the_air() -> None:
    on = world()
    reported = records(
        on,
        (5.0, Kind.LEAVE, "b", "", "", "crash"),
        (0.0, Kind.JOIN, "b", "", "", ""),
        (50.0, Kind.SEND, "a", "", "a-0", ""),
        (50.0, Kind.SEND, "a", "", "", ""),
        (100.0, Kind.SEND, "a", "", "", ""),
    )
    changes = presence_changes(sessions_of(on, reported), on.number_of_node)
    assert changes.tolist() == [[0.0, 1, 1], [5.0, 1, 0]]
    data, control = air_of(on, reported)
    assert (data[BINS // 2], control[BINS // 2], control[-1], data.sum(), control.sum()) == (1, 1, 1, 1, 2)


def test_hops_are_thinned_by_whole_events() -> None:
    event = np.repeat(np.arange(10, dtype=np.int32), 5)
    parent = np.tile(np.array([-1, 0, 1, 2, 3], dtype=np.int32), 10) + np.repeat(np.arange(10, dtype=np.int32) * 5, 5)
    parent[::5] = -1
    hops = Hops(event, event, event, event.astype(np.float64), event, parent)
    few, kept = thinned(hops, 10, 20)
    assert kept == [0, 3, 6, 9]
    assert few.event.tolist() == [event for event in (0, 3, 6, 9) for _ in range(5)]
    assert few.parent.tolist() == [k - 1 if k % 5 else -1 for k in range(20)]
    assert thinned(hops, 10, 50) == (hops, None)


def pictured(
    protocol: str, settings: object, on: World, reported: Records
) -> tuple[dict[str, object], list[tuple[float, ...]]]:
    found = overlays_of(protocol, settings, on, hops_of(on, reported), deliveries_of(on, reported), notes_of(reported))
    names = ("link_a", "link_b", "link_group", "link_start", "link_end")
    columns = [found.arrays[name].tolist() for name in names]
    return found.meta, sorted(zip(*columns, strict=True))


def test_a_mesh_is_the_ways_that_led_to_deliveries() -> None:
    on = world()
    side = heard(1.2, "e", "b")
    reported = records(on, *LINE, side, (1.2, Kind.DELIVER, "c", "", "a-0", ""))
    meta, links = pictured("odmrp", OdmrpSettings(forwarding_timeout_s=25.0), on, reported)
    assert meta == {"links": "mesh", "lasting_s": 25.0}
    assert links == [(0, 1, 0, 1.1, 26.1), (1, 2, 0, 1.2, 26.2)]


def test_an_edge_of_a_mesh_lasts_while_it_is_used() -> None:
    on = world(events=(("a-0", "a", 1.0), ("a-1", "a", 10.0), ("a-2", "a", 60.0)))
    reported = [heard(time, "b", "a", f"a-{k}") for k, time in enumerate((1.5, 10.5, 60.5))]
    got = [(time, Kind.DELIVER, "b", "", f"a-{k}", "") for k, time in enumerate((1.5, 10.5, 60.5))]
    meta, links = pictured("flooding", None, on, records(on, *reported, *got))
    assert meta == {"links": "routes", "lasting_s": 10.0}
    assert links == [(0, 1, 0, 1.5, 20.5), (0, 1, 0, 60.5, 70.5)]


def test_trees_are_what_nodes_note_of_their_parents() -> None:
    on = world()

    def note(time: float, node: str, text: str) -> Row:
        return (time, Kind.NOTE, node, "", "", text)

    reported = records(
        on,
        note(1.0, "b", "parent: a#1 a 1"),
        note(2.0, "c", "parent: a#1 b 2"),
        note(3.0, "c", "parent: e#9 e 1"),
        note(4.0, "c", "parent: a#1 a 1"),
        note(5.0, "b", "orphan: a#1"),
        note(6.0, "d", "moved: a#1"),
    )
    meta, links = pictured("codd", None, on, reported)
    assert meta == {"links": "tree", "trees": ["a#1", "e#9"]}
    assert links == [
        (1, 0, 0, 1.0, 5.0),
        (2, 0, 0, 4.0, 100.0),
        (2, 1, 0, 2.0, 4.0),
        (2, 4, 1, 3.0, 100.0),
    ]


def test_brokers_and_those_they_serve_are_what_nodes_note() -> None:
    on = world()
    reported = records(
        on,
        (1.0, Kind.NOTE, "a", "", "", "broker: a"),
        (1.0, Kind.NOTE, "a", "", "", "attached: a"),
        (2.0, Kind.NOTE, "b", "", "", "attached: a"),
        (8.0, Kind.NOTE, "a", "", "", "broker: "),
        (9.0, Kind.NOTE, "b", "", "", "attached: "),
    )
    found = overlays_of("drip", None, on, hops_of(on, reported), deliveries_of(on, reported), notes_of(reported))
    assert found.meta == {"links": "brokers"}
    assert found.arrays["link_a"].tolist() == [1, 0]
    assert found.arrays["link_group"].tolist() == [0, 0]
    both = records(on, (1.0, Kind.NOTE, "a", "", "", "attached: d"), (1.0, Kind.NOTE, "b", "", "", "attached: e"))
    other = overlays_of("drip", None, on, hops_of(on, both), deliveries_of(on, both), notes_of(both))
    assert other.arrays["link_group"].tolist() == other.arrays["link_b"].tolist() == [3, 4], "under its broker"
    assert (found.arrays["link_start"].tolist(), found.arrays["link_end"].tolist()) == ([2.0, 1.0], [9.0, 100.0])
    assert [found.arrays[f"broker_{name}"].tolist() for name in ("node", "start", "end")] == [[0], [1.0], [8.0]]


def test_cells_and_rendezvous_points_follow_from_the_settings() -> None:
    on = world()
    settings = GeoRendezvousSettings(range_m=100.0, rendezvous=3, nearest=2, width_m=1000.0, height_m=500.0)
    cells = overlays_of("georendezvous", settings, on, *nothing(on)).meta["cells"]
    assert math.isclose(cells["side_m"], 100.0 / (2 * math.sqrt(2)))
    points = [round(value, 1) for at in settings.points("T") for value in (at.x_m, at.y_m)]
    assert cells["topics"] == [[0, points]]


def test_a_grid_has_its_own_side_and_origin_and_the_busiest_topics_first() -> None:
    busy = [Event(f"T{n:02}", {}, id=f"e{n}-{k}", source="a", time=1.0) for n in range(30) for k in range(n)]
    on = replace(world(), events=busy)
    settings = GeoRendezvousSettings(
        range_m=100.0, rendezvous=3, nearest=2, width_m=1000.0, height_m=500.0, cell_side_m=20.0, origin_x_m=5.0,
        origin_y_m=7.0,
    )  # fmt: skip
    cells = overlays_of("georendezvous", settings, on, *nothing(on)).meta["cells"]
    assert (cells["side_m"], cells["origin"]) == (20.0, [5.0, 7.0])
    assert [on.types[number] for number, _ in cells["topics"]] == [f"T{n:02}" for n in range(29, 5, -1)]


def test_a_parent_is_the_longest_end_of_a_note_that_is_a_nodes_name() -> None:
    number = {"car 7": 0, "7": 1, "b": 2}
    assert _tree_and_parent("tree of b car 7", number) == ("tree of b", 0)
    assert _tree_and_parent("car 7", number) == ("car", 1)
    assert _tree_and_parent("b 9 b", number) == ("b 9", 2)
    assert _tree_and_parent(" car 7", number) == ("", 0)
    assert _tree_and_parent("a#1 gone", number) == ("a#1", -1)
    assert _tree_and_parent("a#1 gone for ever", number) == ("a#1 gone for", -1)


def test_a_tree_whose_parent_nobody_knows_has_no_link() -> None:
    on = world()
    reported = records(
        on,
        (1.0, Kind.NOTE, "b", "", "", "parent: a#1 a 1"),
        (3.0, Kind.NOTE, "b", "", "", "parent: a#1 stranger 1"),
        (4.0, Kind.NOTE, "nobody", "", "", "parent: a#1 a 1"),
        (5.0, Kind.NOTE, "c", "", "", "parent without a colon"),
    )
    assert pictured("codd", None, on, reported)[1] == [(1, 0, 0, 1.0, 3.0)]


def test_edges_of_a_mesh_are_kept_apart_and_each_is_one_way_however_it_was_used() -> None:
    on = world(events=(("a-0", "a", 1.0), ("e-0", "e", 2.0)))
    reported = records(
        on,
        heard(3.0, "b", "a"), heard(4.0, "c", "b"), heard(5.0, "d", "c"), heard(6.0, "e", "d"),
        heard(7.0, "d", "e", "e-0"), heard(16.0, "c", "d", "e-0"), heard(27.0, "b", "c", "e-0"),
        *[(9.0, Kind.DELIVER, node, "", "a-0", "") for node in "bcde"],
        *[(28.0, Kind.DELIVER, node, "", "e-0", "") for node in "bcd"],
    )  # fmt: skip
    meta, links = pictured("odmrp", OdmrpSettings(forwarding_timeout_s=11.0), on, reported)
    assert meta["links"] == "mesh"
    assert links == [
        (0, 1, 0, 3.0, 14.0),
        (1, 2, 0, 4.0, 15.0),
        (1, 2, 0, 27.0, 38.0),  # used again after more than the time it lasts
        (2, 3, 0, 5.0, 27.0),  # used again exactly when it would have ended
        (3, 4, 0, 6.0, 18.0),
    ]
    assert overlays_of("content-odmrp", None, on, *nothing(on)).meta == {"links": "mesh", "lasting_s": 10.0}


def test_clocks_that_differ_do_not_deepen_a_circle_for_ever() -> None:
    on = world()
    assert hops_of(on, records(on, heard(1.1, "b", "c"), heard(1.1, "c", "b"))).depth.tolist() == [201, 201]


def test_receptions_from_strangers_or_of_unknown_events_are_no_hops() -> None:
    on = world()
    reported = records(
        on,
        heard(1.0, "b", "stranger"),
        heard(1.0, "stranger", "a"),
        heard(1.0, "c", "a", "unknown"),
        heard(2.0, "d", "b"),
    )
    hops = hops_of(on, reported)
    assert [on.nodes[i] for i in hops.node] == ["d"]
    assert (hops.parent.tolist(), hops.depth.tolist(), hops.time.tolist()) == ([-1], [1], [2.0])


def test_transmissions_outside_of_the_worlds_time_stand_at_its_ends() -> None:
    on = replace(world(), start=20.0, end=80.0)
    sent = [(time, Kind.SEND, "a", "", "", "") for time in (10.0, 20.0, 20.24, 20.26, 79.9, 80.0, 95.0)]
    data, control = air_of(on, records(on, *sent))
    assert (data.sum(), control.sum(), len(data), len(control)) == (0, 7, 240, 240)
    assert (control[0], control[1], control[-1]) == (3, 1, 3), "a quarter of a second each"
    still = replace(on, end=20.0)
    assert air_of(still, records(on, *sent))[1].sum() == 7


def test_a_run_is_packed_with_times_from_the_worlds_start_and_texts_once() -> None:
    on = replace(world(), start=1.0)
    reported = records(
        on,
        *LINE,
        (0.5, Kind.JOIN, "b", "", "", ""),
        (5.0, Kind.LEAVE, "b", "", "", ""),
        (2.0, Kind.DELIVER, "c", "", "a-0", ""),
        (3.0, Kind.SEND, "a", "", "a-0", ""),
    )
    run = replayed_run(on, reported, "r1", "a title", "flooding", None, {"hops": 3, "until_s": None})
    assert (run.radio, run.answers, run.why) == (True, False, ())
    assert replayed_run(on, reported, "r1", "a title", "siena", None, {}).radio is False
    why = (Why(0, 2, ("wants it", "is near"), ()), Why(0, 3, ("wants it",), ("was dropped",)))
    meta, arrays = unpack(replace(run, why=why).packed(on))
    assert meta == {
        "key": "r1", "world": "k", "title": "a title", "protocol": "flooding", "radio": True,
        "settings": {"hops": "3", "until_s": "not set"}, "answers": False, "events_with_hops": None,
        "why": [[0, 2, [0, 1], []], [0, 3, [0], [2]]], "texts": ["wants it", "is near", "was dropped"],
        "overlays": {"links": "routes", "lasting_s": 10.0},
    }  # fmt: skip
    small_arrays = {
        name: np.round(array.astype(np.float64), 3).tolist() for name, array in arrays.items() if len(array) < 9
    }
    assert small_arrays == {
        "hop_event": [0, 0, 0], "hop_node": [1, 2, 3], "hop_sender": [0, 1, 2], "hop_time": [0.1, 0.2, 0.3],
        "hop_depth": [1, 2, 3], "got_event": [0], "got_node": [2], "got_time": [1.0],
        "session_node": [1, 1], "session_time": [-0.5, 4.0], "session_up": [1, 0],
        "overlay_link_a": [0, 1], "overlay_link_b": [1, 2], "overlay_link_group": [0, 0],
        "overlay_link_start": [0.1, 0.2], "overlay_link_end": [10.1, 10.2],
    }  # fmt: skip
    assert (arrays["air_data"].sum(), arrays["air_control"].sum(), arrays["hop_node"].dtype) == (1, 0, np.uint16)
    deep = replace(run, hops=replace(run.hops, depth=np.array([254, 255, 300], dtype=np.int32)))
    assert unpack(deep.packed(on))[1]["hop_depth"].tolist() == [254, 255, 255]
    few_meta, few = unpack(run.packed(on, most_hops=2))
    assert (few_meta["events_with_hops"], len(few["hop_node"])) == ([0], 3), "a whole event"


def test_nodes_that_two_bytes_cannot_number_are_packed_in_four() -> None:
    for count, kind in ((0xFFFE, np.uint16), (0xFFFF, np.int32)):
        on = replace(world(), nodes=[str(n) for n in range(count)])
        run = replayed_run(on, records(on), "r1", "", "flooding", None, {})
        assert unpack(run.packed(on))[1]["hop_node"].dtype == kind


def nothing(on: World) -> tuple[Hops, tuple[np.ndarray, ...], list[object]]:
    reported = records(on)
    return hops_of(on, reported), deliveries_of(on, reported), []
