"""What becomes of a machine's effects: records of services, sizes of packets, airtime, sources of chance."""

from __future__ import annotations

import gc
from random import Random
from typing import Any

import pytest
from small_networks import Bench, Probe, Word, say, standing

from earshot.events import Event
from earshot.protocols.flooding import Flood
from earshot.protocols.services.fences import Crossed
from earshot.protocols.services.history import DeliverPast
from earshot.protocols.services.served import Late, Warn
from earshot.records.details import read_airtime
from earshot.simulation.engine.engine import ALLOCATED, Engine, rare_collections
from earshot.simulation.engine.log import Log
from earshot.simulation.faults import Crash, FaultSettings
from earshot.simulation.media.medium_settings import Contention, UnitDisk
from earshot.simulation.mobility import Trajectories, Trajectory
from earshot.simulation.workload.actions import Workload
from earshot.wire import MAX_PACKET_BYTES, size

TWO = standing((3, 4), (5, 4))


def test_what_services_report_is_recorded_with_its_node_and_place() -> None:
    event = Event("Siren", {}, id="x-7", source="x")
    effects = [
        DeliverPast(event, "s"), Late(event, "s", 1.25), Crossed("f", "enter", "b", "Siren"),
        Crossed("near", "leave", "gone"), Warn("two structures of Siren"),
    ]  # fmt: skip
    bench = Bench(TWO)
    bench.do(2.0, "a", lambda _: bench.engine._carry_out(0, effects))  # type: ignore[arg-type]
    bench.run()
    rows = bench.rows("time", "kind", "node", "event", "subscription", "peer", "detail", "x_m", "y_m")
    at: tuple[Any, ...] = (3.0, 4.0)
    assert [row for row in rows if row[0] == 2.0] == [
        (2.0, "history", "a", "x-7", "s", "", "", *at),
        (2.0, "late", "a", "x-7", "s", "", "1.250000", *at),
        (2.0, "fence", "a", "", "f", "b", "enter Siren", *at),
        (2.0, "fence", "a", "", "near", "", "leave", *at),
        (2.0, "note", "a", "", "", "", "two structures of Siren", *at),
    ]


def test_every_packet_is_logged_with_its_own_size_whichever_was_measured_before() -> None:
    first, second = (Event("N", {"text": "x" * length}, id=f"e{length}", source="a") for length in (3, 90))
    order = ((first, 1), (first, 300), (first, 1), (second, 1), (second, 300), (first, 300), (first, 1))
    packets = [Flood(event, hops) for event, hops in order]
    bench = Bench(TWO)
    for number, packet in enumerate([*packets, Word("abc"), Word("abcdef")]):
        bench.do(1.0 + number, "a", lambda probe, packet=packet: probe.broadcast(packet))  # type: ignore[misc]
    bench.run()
    assert [row[0] for row in bench.rows("bytes", kind="send")] == [
        *map(size, packets), size(Word("abc")), size(Word("abcdef")),
    ]  # fmt: skip
    assert size(packets[0]) < size(packets[1]), "a larger number of hops has more bytes"


@pytest.mark.parametrize(("beyond", "heard"), [(0, 1), (1, 0)])
def test_the_largest_packet_is_sent_and_no_larger_one(beyond: int, heard: int) -> None:
    around = size(Word("x" * 70_000)) - 70_000
    word = Word("x" * (MAX_PACKET_BYTES - around + beyond))
    assert size(word) == MAX_PACKET_BYTES + beyond
    bench = Bench(TWO)
    bench.do(1.0, "a", lambda probe: probe.broadcast(word))
    assert len(bench.run().calls("b", "hear")) == heard


def test_each_session_of_a_node_has_a_source_of_chance_of_its_own() -> None:
    drawn: list[float] = []
    bench = Bench(
        TWO,
        seed=5,
        faults=FaultSettings(crashes=(Crash("a", 2.0, 1.0), Crash("a", 4.0, 1.0))),
        on={"start": lambda probe, _: drawn.append(probe.random.random())},
    )
    bench.run()
    seeds = ("5:a", "5:b", "5:a:1", "5:a:2")
    assert drawn == [Random(seed).random() for seed in seeds]


def test_a_node_knows_its_velocity_by_its_own_clock() -> None:
    nodes = Trajectories([
        Trajectory.through("a", [(0.0, 0.0, 0.0), (5.0, 10.0, 0.0), (9.0, 10.0, 12.0)]), Trajectory.standing("b", 0, 0),
    ])  # fmt: skip
    bench = Bench(nodes, faults=FaultSettings(clock_skew_s=3.0))
    offset_s, location = bench.engine.clock_offsets_s[0], bench.engine._locations[0]
    found = [location.velocity(offset_s + time) for time in (0.5, 4.9, 5.1, 8.9)]
    assert [(one.x_m_s, one.y_m_s) for one in found] == [(2.0, 0.0), (2.0, 0.0), (0.0, 3.0), (0.0, 3.0)]
    assert abs(offset_s) > 0.2, "otherwise the true time would give the same"


def test_a_join_says_why_and_in_which_session() -> None:
    bench = Bench(TWO, faults=FaultSettings(crashes=(Crash("a", 2.0, 1.0),))).run()
    details = [detail for (detail,) in bench.rows("detail", kind="join", node="a")]
    assert ['"life":0' in details[0], '"life":1' in details[1]] == [True, True]
    assert ["on the scene" in details[0], "after crash" in details[1]] == [True, True]
    assert bench.rows("time", "detail", "x_m", "y_m", kind="leave") == [(2.0, "crash", 3.0, 4.0)]


# How busy the channel is.


def airtimes(bench: Bench, node: str) -> list[tuple[float, float, float]]:
    rows = bench.rows("time", "detail", kind="airtime", node=node)
    found = [(time, read_airtime(detail)) for time, detail in rows]
    return [(time, one.span_s, one.sent_s) for time, one in found if one is not None]


def test_airtime_is_recorded_each_ten_seconds_when_a_node_leaves_and_at_the_end() -> None:
    faults = FaultSettings(crashes=(Crash("b", 4.0, down_s=3.0), Crash("b", 20.0)))
    bench = Bench(TWO, Contention(range_m=10.0), duration_s=25.0, faults=faults)
    bench.do(1.0, "b", say("hello"))
    bench.run()
    on_air_s = bench.probe("a").channel.airtime_s(size(Word("hello")))
    assert airtimes(bench, "b") == [
        (4.0, 4.0, pytest.approx(on_air_s, abs=1e-6)), (10.0, 3.0, 0.0), (20.0, 10.0, 0.0),
    ]  # fmt: skip
    assert airtimes(bench, "a") == [(10.0, 10.0, 0.0), (20.0, 10.0, 0.0), (25.0, 5.0, 0.0)]


def test_a_log_without_transmissions_has_no_airtime() -> None:
    class Quiet(Log):
        keeps_transmissions = False

    bench = Bench(TWO, Contention(range_m=10.0))
    quiet = Quiet()
    engine = Engine(bench._make, TWO, Contention(range_m=10.0), Workload([]), duration_s=12.0, log=quiet)
    engine.run()
    assert {row["kind"] for row in quiet.rows()} == {"join"}


# Garbage collection.


@pytest.mark.parametrize(("before", "during"), [(700, ALLOCATED), (90_000, 90_000)])
def test_collections_are_rare_during_a_run_and_as_before_after_it(before: int, during: int) -> None:
    thresholds = gc.get_threshold()
    try:
        gc.set_threshold(before, 11, 12)
        with rare_collections():
            assert gc.get_threshold() == (during, 11, 12)
        assert gc.get_threshold() == (before, 11, 12)
    finally:
        gc.set_threshold(*thresholds)


def test_a_group_is_left_by_a_node_that_goes() -> None:
    faults = FaultSettings(crashes=(Crash("b", 2.0, down_s=1.0),))
    bench = Bench(TWO, UnitDisk(range_m=10.0), faults=faults)

    def join(probe: Probe) -> None:
        probe.join_group(7)

    bench.do(1.0, "b", join)
    for time in (1.5, 4.0):
        bench.do(time, "a", lambda probe: probe.broadcast(Word("members"), group=7))
    bench.run()
    assert [time for _, _, time in bench.calls("b", "hear")] == [1.501], "its new machine is no member"
