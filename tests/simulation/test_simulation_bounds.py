"""Small promises of the simulation: reports of missing routes, what is announced when, and that SUMO is ended."""

from __future__ import annotations

import msgspec
import pytest
from small_networks import Bench, say, send_word, standing

from earshot.errors import ScenarioError
from earshot.geometry import Area, Position, Rectangle
from earshot.simulation.draws import Span
from earshot.simulation.extent import Extent, box_of
from earshot.simulation.media.medium_settings import Contention, UnitDisk
from earshot.simulation.media.open_medium import Network
from earshot.simulation.mobility.sumo_process import SumoProcess
from earshot.simulation.workload.interests import XPaths
from earshot.simulation.workload.traffic import PublishEntry


@pytest.mark.parametrize("peer", ["nobody", "c"])
def test_a_node_learns_after_a_hundredth_of_a_second_that_there_is_no_route(peer: str) -> None:
    bench = Bench(standing((0, 0), (5, 0), (900, 0)), Network(UnitDisk(range_m=10.0), routed=True))
    bench.do(1.0, "a", send_word(peer, "hello"))
    assert [call[-1] for call in bench.run().calls("a", "unreachable")] == [pytest.approx(1.01)]


def test_a_frame_that_was_never_sent_has_no_number() -> None:
    bench = Bench(standing((0, 0), (5, 0)), Contention(range_m=10.0, queue_frames=1))
    bench.do(1.0, "a", lambda probe: (say("one")(probe), say("two")(probe)))
    bench.run()
    assert bench.rows("transmission", "detail", kind="drop") == [(-1, "queue-full")]


def test_queries_have_the_papers_steps_and_publishers_announce_in_the_first_second() -> None:
    assert (XPaths(of="news").p_star, XPaths(of="news").p_child, XPaths(of="news").p_descendant) == (0.2, 0.3, 0.2)
    assert XPaths(of="news").steps == Span(3.0, 8.0)
    fields = {field.name: field.default for field in msgspec.structs.fields(PublishEntry)}
    assert fields["announce_s"] == Span(0.0, 1.0)


def test_sumo_is_ended_with_its_block() -> None:
    ended: list[str] = []

    class Process(SumoProcess):
        def __init__(self) -> None:
            pass

        def close(self) -> None:
            ended.append("closed")

    with pytest.raises(KeyError), Process():
        raise KeyError
    assert ended == ["closed"]


EXTENT = Extent(width_m=100.0, height_m=50.0, west_m=10.0, south_m=-20.0)


def test_an_extent_lies_east_and_north_of_its_corner() -> None:
    assert EXTENT.box == (10.0, -20.0, 110.0, 30.0)
    assert EXTENT.area == Area(Rectangle(100.0, 50.0), Position(60.0, 5.0))
    assert box_of(None, EXTENT) == EXTENT.box


@pytest.mark.parametrize(
    ("box", "inside"),
    [
        ((10.0, -20.0, 110.0, 30.0), True),
        ((50.0, 0.0, 50.1, 0.1), True),
        ((50.0, 0.0, 50.0, 0.1), False),
        ((50.0, 0.0, 50.1, 0.0), False),
        ((9.9, -20.0, 110.0, 30.0), False),
        ((10.0, -20.1, 110.0, 30.0), False),
        ((10.0, -20.0, 110.1, 30.0), False),
        ((10.0, -20.0, 110.0, 30.1), False),
    ],
)
def test_a_box_lies_inside_the_extent_and_is_not_empty(box: tuple[float, float, float, float], inside: bool) -> None:
    if inside:
        assert box_of(box, EXTENT) == box
        return
    with pytest.raises(ScenarioError, match=r"inside the area of 100 x 50 m from \[10, -20\] on"):
        box_of(box, EXTENT)
