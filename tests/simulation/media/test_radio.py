"""Unit-disk and lossy radios; floods against breadth-first search."""

from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import Bench, Word, everybody_wants, flooding, ping, say, send_word, standing

from earshot.errors import SettingsError
from earshot.simulation.engine.engine import Engine
from earshot.simulation.engine.log import Log
from earshot.simulation.faults import Crash, FaultSettings
from earshot.simulation.media.collision_free import reception_probability
from earshot.simulation.media.links import LinkScript
from earshot.simulation.media.medium_settings import Contention, Lossy, Overlay, UnitDisk
from earshot.simulation.mobility import Trajectories, Trajectory
from earshot.simulation.workload.actions import Workload
from sizes import LONG

LATENCY_S = 0.001


@settings(max_examples=1000 if LONG else 100)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=40),
    st.integers(5, 25),
    st.data(),
)
def test_a_flood_reaches_its_component_at_breadth_first_hops(
    points: list[tuple[int, int]], range_m: int, data: st.DataObject
) -> None:
    source = data.draw(st.integers(0, len(points) - 1))
    graph = nx.Graph()
    graph.add_nodes_from(range(len(points)))
    for i, (x, y) in enumerate(points):
        for j, (u, v) in enumerate(points[:i]):
            if (x - u) ** 2 + (y - v) ** 2 <= range_m**2:
                graph.add_edge(i, j)
    names = [f"n{i}" for i in range(len(points))]
    nodes = Trajectories([Trajectory.standing(name, x, y) for name, (x, y) in zip(names, points, strict=True)])
    log = Log()
    actions = [*everybody_wants(len(points)), ping(1.0, source)]
    engine = Engine(flooding(), nodes, UnitDisk(float(range_m)), Workload(actions), duration_s=9.0, log=log)
    engine.run()

    hops = nx.single_source_shortest_path_length(graph, source)
    delivered = list(zip(engine.deliveries.node, engine.deliveries.hops, strict=True))
    assert sorted(delivered) == sorted((node, far) for node, far in hops.items() if node != source)
    for time, far in zip(engine.deliveries.time, engine.deliveries.hops, strict=True):
        assert time == pytest.approx(1.0 + far * LATENCY_S)
    rows = list(log.rows())
    assert sorted(row["node"] for row in rows if row["kind"] == "send") == sorted(names[node] for node in hops)
    receipts = sum(graph.degree[node] for node in hops)
    assert sum(row["kind"] == "receive" for row in rows) == receipts == engine.counts.receives


def test_who_is_in_range_when_it_is_sent_has_it() -> None:
    """b leaves the range while the packet is under way, c enters it."""
    nodes = Trajectories(
        [
            Trajectory.standing("a", 0, 0),
            Trajectory.through("b", [(0, 0, 0), (1.0, 9.999, 0), (1.001, 10.1, 0)]),
            Trajectory.through("c", [(0, 20, 0), (1.0, 10.1, 0), (1.001, 9.9, 0)]),
        ]
    )
    bench = Bench(nodes)
    bench.do(1.0, "a", say("hello"))
    bench.run()
    assert (len(bench.calls("b", "hear")), len(bench.calls("c", "hear"))) == (1, 0)


def test_a_node_that_goes_down_in_between_does_not_have_it() -> None:
    bench = Bench(standing((0, 0), (1, 0), (2, 0)), faults=FaultSettings(crashes=(Crash("b", 1.0005),)))
    bench.do(1.0, "a", say("hello"))
    bench.run()
    assert (bench.calls("b", "hear"), len(bench.calls("c", "hear"))) == ([], 1)


def test_scripted_links_lie_over_any_radio() -> None:
    for medium in (UnitDisk(range_m=1.0), Contention(range_m=1.0)):
        graph = (("a", "c"), ("c", "b"))
        bench = Bench(standing((0, 0), (50, 0), (99, 0)), type(medium)(range_m=1.0, links=LinkScript(graph=graph)))
        bench.do(1.0, "a", say("hello"))
        bench.do(2.0, "b", send_word("c", "psst"))
        bench.run()
        heard = [packet for packet, _, _ in bench.calls("c", "hear")]
        assert (heard, bench.calls("b", "hear")) == ([Word("hello"), Word("psst")], [])


# Lossy.


def test_the_reception_probability_falls_with_distance() -> None:
    lossy = Lossy(range_m=100.0, certain_m=50.0, exponent=2.0)
    found = [reception_probability(distance, lossy) for distance in (0.0, 50.0, 60.0, 75.0, 90.0, 100.0, 120.0)]
    assert found == pytest.approx([1.0, 1.0, 0.96, 0.75, 0.36, 0.0, 0.0])


def received_share(distance_m: float, seed: int, exponent: float = 2.0) -> float:
    bench = Bench(standing((0, 0), (distance_m, 0)), Lossy(100.0, 50.0, exponent=exponent), duration_s=50.0, seed=seed)
    for k in range(2000):
        bench.do(1.0 + k * 0.02, "a", say(str(k)))
    bench.run()
    assert bench.engine.counts.drops["faded"] + bench.engine.counts.receives == 2000
    return bench.engine.counts.receives / 2000


def test_packets_are_lost_at_that_rate_and_the_log_says_so() -> None:
    shares = [received_share(distance_m, seed=5) for distance_m in (40.0, 60.0, 75.0, 90.0)]
    assert shares == pytest.approx([1.0, 0.96, 0.75, 0.36], abs=0.03)
    assert received_share(75.0, seed=5) == received_share(75.0, seed=5) != received_share(75.0, seed=6)


def test_what_a_lossy_radio_brings_through_arrives_after_its_latency() -> None:
    bench = Bench(standing((0, 0), (40, 0)), Lossy(100.0, 50.0, latency_s=0.25))
    bench.do(1.0, "a", say("to all"))
    bench.do(2.0, "a", send_word("b", "to b"))
    bench.run()
    assert bench.calls("b", "hear") == [(Word("to all"), "a", 1.25), (Word("to b"), "a", 2.25)]


def test_a_lossy_unicast_is_tried_on_towards_a_peer_that_is_down_or_out_of_range_where_nothing_fades() -> None:
    bench = Bench(
        standing((0, 0), (40, 0), (140, 0)),
        Lossy(100.0, 50.0, latency_s=0.25, retries=1),
        faults=FaultSettings(crashes=(Crash("b", 0.5),)),
    )
    bench.do(1.0, "a", send_word("b", "psst"))
    bench.do(2.0, "a", send_word("c", "psst"))
    bench.run()
    assert bench.rows("time", "peer", kind="send") == [(1.0, "b"), (1.25, "b"), (2.0, "c"), (2.25, "c")]
    assert bench.rows("time", "node", "detail", kind="drop") == [
        (1.5, "a", "unreachable"), (2.5, "a", "unreachable"),
    ]  # fmt: skip


def test_a_lost_unicast_is_sent_again_and_then_given_up() -> None:
    """At 99.9 m a packet is all but sure to be lost."""
    bench = Bench(standing((0, 0), (99.9999, 0)), Lossy(100.0, 50.0, retries=2))
    bench.do(1.0, "a", send_word("b", "psst"))
    bench.run()
    assert bench.rows("time", kind="send") == [(1.0,), (1.001,), (pytest.approx(1.002),)]
    assert bench.rows("node", "detail", kind="drop") == [("b", "faded")] * 3 + [("a", "unreachable")]
    assert bench.calls("a", "unreachable") == [(Word("psst"), "b", pytest.approx(1.003))]


def test_retries_bring_most_unicasts_through() -> None:
    bench = Bench(standing((0, 0), (75.0, 0)), Lossy(100.0, 50.0, retries=3), duration_s=50.0)
    for k in range(1000):
        bench.do(1.0 + k * 0.02, "a", send_word("b", str(k)))
    bench.run()
    assert len(bench.calls("b", "hear")) == pytest.approx(1000 * (1 - 0.25**4), abs=6)
    assert len(bench.calls("b", "hear")) + len(bench.calls("a", "unreachable")) == 1000
    assert bench.engine.counts.sends == pytest.approx(1000 / 0.75, rel=0.05)


def test_retries_end_with_the_sender() -> None:
    bench = Bench(
        standing((0, 0), (99.9999, 0)), Lossy(100.0, 50.0), faults=FaultSettings(crashes=(Crash("a", 1.0015),))
    )
    bench.do(1.0, "a", send_word("b", "psst"))
    bench.run()
    assert bench.rows("time", kind="send") == [(1.0,), (1.001,)]


WRONG: list[tuple[Any, str]] = [
    (lambda: UnitDisk(range_m=-1.0), "range_m must be a positive number of metres, got -1.0"),
    (lambda: UnitDisk(latency_s=0.0), "latency_s must be a positive number of seconds, got 0.0"),
    (lambda: Lossy(range_m=10.0, certain_m=20.0), "certain_m must not exceed range_m, got 20.0 of 10.0"),
    (lambda: Lossy(exponent=0.0), "exponent must be positive, got 0.0"),
    (lambda: Lossy(retries=-1), "retries must not be negative, got -1"),
    (lambda: Contention(carrier_range_m=5.0), "carrier_range_m must be at least range_m, got 5.0 under 100.0"),
    (lambda: Contention(bit_rate_bps=0), "bit_rate_bps must be a positive number of bits a second, got 0"),
    (lambda: Contention(sifs_s=1.0), "difs_s must be longer than sifs_s, got 5e-05 and 1.0"),
    (lambda: Contention(window_min=2000), "window_min must lie between 0 and window_max, got 2000 and 1023"),
    (lambda: Contention(queue_frames=0), "queue_frames must be at least 1, got 0"),
    (lambda: Contention(slot_s=0.0), "slot_s must be a positive number of seconds, got 0.0"),
    (lambda: Contention(ack_bytes=-1), "ack_bytes must not be negative, got -1"),
    (lambda: Overlay(latency_s=0.0), "an overlay needs a latency: set latency_s"),
    (lambda: Overlay(jitter_s=-0.1), "jitter_s must not be negative, got -0.1"),
    (lambda: Overlay(bit_rate_bps=-1.0), "bit_rate_bps must be a positive number of bits a second, got -1.0"),
]


@pytest.mark.parametrize(("build", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_medium_settings_are_refused_with_the_reason(build: Any, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build()
    assert str(caught.value) == message
