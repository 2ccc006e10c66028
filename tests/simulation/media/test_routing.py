"""Unicasts over several hops: shortest paths, what is billed and logged, partitions, route discovery."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock, call

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import Bench, Word, say, send_word, standing

from earshot.events import Event
from earshot.protocols.flooding import Flood
from earshot.records import DropReason
from earshot.records.trajectories import Trajectories, Trajectory
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.faults import Crash, FaultSettings
from earshot.simulation.media import open_medium
from earshot.simulation.media.collision_free import OverlayNetwork
from earshot.simulation.media.links import LinkChange, LinkScript
from earshot.simulation.media.medium_settings import Contention, Lossy, Overlay, Routing, UnitDisk
from earshot.simulation.media.neighbours import neighbours_within
from earshot.simulation.media.open_medium import Network
from earshot.simulation.media.reactive_routing import ReactiveRouting
from earshot.simulation.media.routing import BesideInfrastructure, IdealRouting, RoutedHop
from earshot.simulation.media.transmission import PacketCount, Transmission
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.wire import size

CHAIN = standing(*((8.0 * k, 0.0) for k in range(5)))
"a to e, each in range of its neighbours only."
ROUTINGS: tuple[Routing, ...] = ("ideal", "reactive")
RADIOS = (UnitDisk, Contention, Lossy)


def routed(routing: Routing = "ideal", radio: Any = UnitDisk, **more: Any) -> Network:
    if radio is Lossy:
        more["certain_m"] = 10.0
    return Network(radio(range_m=10.0, routing=routing, **more), routed=True)


def words(bench: Bench, kind: str) -> list[tuple[Any, ...]]:
    return bench.rows("node", "peer", "detail", kind=kind, packet="word of the tests")


@pytest.mark.parametrize("radio", RADIOS)
@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_packet_goes_hop_by_hop_and_only_its_peer_hears_it(routing: Routing, radio: Any) -> None:
    bench = Bench(CHAIN, routed(routing, radio))
    bench.do(1.0, "a", send_word("e", "hello"))
    bench.run()
    assert words(bench, "send") == [("a", "b", ""), ("b", "c", ""), ("c", "d", ""), ("d", "e", "")]
    assert words(bench, "receive") == [
        ("b", "a", "relayed"), ("c", "b", "relayed"), ("d", "c", "relayed"), ("e", "d", ""),
    ]  # fmt: skip
    assert [(word, sender) for word, sender, _ in bench.calls("e", "hear")] == [(Word("hello"), "a")]
    assert [bench.calls(node, "hear") for node in "abcd"] == [[], [], [], []]
    count = bench.engine.counts.packets["word of the tests"]
    assert (count.sends, count.bytes_sent) == (4, 4 * size(Word("hello")))


@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_partition_makes_a_peer_unreachable(routing: Routing) -> None:
    cut = LinkScript(changes=(LinkChange(0.0, "c", "d", "down"),))
    bench = Bench(CHAIN, routed(routing, links=cut), duration_s=60.0)
    bench.do(1.0, "a", send_word("e", "hello"))
    bench.run()
    assert words(bench, "send") == []
    ((word, peer, at),) = bench.calls("a", "unreachable")
    assert (word, peer) == (Word("hello"), "e")
    assert at > 1.0
    assert words(bench, "drop") == [("a", "e", "unreachable")]
    assert bench.calls("e", "hear") == []


@pytest.mark.parametrize("routing", ROUTINGS)
def test_names_that_no_node_has_and_the_node_itself(routing: Routing) -> None:
    bench = Bench(CHAIN, routed(routing))
    bench.do(1.0, "a", send_word("nobody", "hello"))
    bench.do(2.0, "a", send_word("a", "note"))
    bench.run()
    assert [call[:2] for call in bench.calls("a", "unreachable")] == [(Word("hello"), "nobody")]
    assert bench.calls("a", "hear") == [(Word("note"), "a", 2.0)]
    assert bench.engine.counts.sends == 0


def test_without_routing_a_distant_peer_is_unreachable() -> None:
    bench = Bench(CHAIN, UnitDisk(range_m=10.0))
    bench.do(1.0, "a", send_word("e", "hello"))
    assert len(bench.run().calls("a", "unreachable")) == 1


@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_broadcast_goes_one_hop(routing: Routing) -> None:
    bench = Bench(CHAIN, routed(routing))
    bench.do(1.0, "c", say("hello"))
    bench.run()
    assert [node for node in "abcde" if bench.calls(node, "hear")] == ["b", "d"]
    assert bench.engine.counts.sends == 1


def test_a_relay_that_crashes_ends_an_ideal_path_and_another_is_taken() -> None:
    square = standing((0, 0), (7, 7), (7, -7), (14, 0))
    faults = FaultSettings(crashes=(Crash(node="b", time_s=5.0),))
    bench = Bench(square, routed(), faults=faults)
    bench.do(1.0, "a", send_word("d", "early"))
    bench.do(6.0, "a", send_word("d", "late"))
    bench.run()
    assert words(bench, "send") == [("a", "b", ""), ("b", "d", ""), ("a", "c", ""), ("c", "d", "")]


def test_a_silent_node_relays_no_events_of_others() -> None:
    bench = Bench(CHAIN, routed(), faults=FaultSettings(silent_nodes=("c",)))
    bench.do(1.0, "a", send_word("e", "no event"))
    for node, id in (("a", "of another"), ("c", "its own")):
        flood = Flood(Event("N", {}, id=id, source=node), 1)
        bench.do(2.0, node, lambda probe, flood=flood: probe.send("e", flood))  # type: ignore[misc]
    bench.run()
    heard = [packet for packet, _, _ in bench.calls("e", "hear")]
    assert [getattr(packet, "text", None) or packet.event.id for packet in heard] == ["no event", "its own"]
    assert bench.rows("node", "event", "detail", kind="drop") == [("c", "of another", "silent-node")]


class Radio:
    """A radio that keeps what it is given, and gives up what a test says."""

    def __init__(self) -> None:
        self.hops: list[RoutedHop] = []

    def airtime_s(self, packet_bytes: int) -> float:
        return 0.0

    def unicast(self, hop: RoutedHop) -> None:
        self.hops.append(hop)


def ideal_routing(*points: tuple[float, float]) -> tuple[IdealRouting, Radio, Mock]:
    """Ideal routing over a radio that sends nothing, and its host."""
    still = standing(*points)
    host = Mock(up=[True] * len(points), presence=0)
    host.queue.now = 1.0
    routing, radio = IdealRouting(still.names, neighbours_within(still, 10.0), host), Radio()
    routing.over(radio)  # type: ignore[arg-type]
    return routing, radio, host


def request(sender: int, peer: int) -> Transmission:
    kind = PacketCount("word of the tests", carries_event=False, counts_hops=False)
    return Transmission(sender, Word("hi"), kind, 9, "", 0, None, peer, "abcdefgh"[peer], 0, 3)


def test_a_hop_that_the_radio_gives_up_is_sent_again_three_times_then_its_machine_learns() -> None:
    routing, radio, host = ideal_routing((0, 0), (8, 0), (16, 0))
    asked = request(0, 2)
    routing.unicast(asked)
    for attempt in range(4):
        hop = radio.hops[-1]
        assert (hop.sender, hop.peer, hop.peer_name, hop.taken, hop.path) == (0, 1, "b", 1, [2])
        assert (hop.attempt, hop.bytes, hop.priority) == (attempt, 9, 3)
        assert (host.dropped.mock_calls, host.failed.mock_calls) == ([], [])
        routing.unreachable(hop)
    assert len(radio.hops) == 4
    assert host.dropped.mock_calls == [call(radio.hops[-1], DropReason.UNREACHABLE)]
    assert host.failed.mock_calls == [call(asked)]


def test_a_hop_that_found_a_full_queue_is_not_sent_again() -> None:
    routing, radio, host = ideal_routing((0, 0), (8, 0), (16, 0))
    asked = request(0, 2)
    routing.unicast(asked)
    routing.unreachable(radio.hops[0], DropReason.QUEUE_FULL)
    assert len(radio.hops) == 1
    assert (host.dropped.mock_calls, host.failed.mock_calls) == (
        [call(radio.hops[0], DropReason.QUEUE_FULL)], [call(asked)],
    )  # fmt: skip


def test_a_relay_without_a_path_drops_the_packet_and_the_machine_learns() -> None:
    routing, radio, host = ideal_routing((0, 0), (8, 0), (16, 0))
    host.relayed.return_value, host.withholds.return_value = [1], False
    asked = request(0, 2)
    routing.unicast(asked)
    host.up[2] = False
    host.presence = 1
    routing.received(radio.hops[0])
    assert host.withholds.mock_calls == [call(1, radio.hops[0])]
    (dropped, reason), _ = host.dropped.call_args
    assert (dropped.sender, dropped.peer, dropped.taken, reason) == (1, 2, 1, DropReason.UNREACHABLE)
    assert host.failed.mock_calls == [call(asked)]


def test_a_packet_that_has_taken_the_most_hops_is_dropped_at_the_relay() -> None:
    for taken, goes_on in ((63, True), (64, False)):
        routing, radio, host = ideal_routing((0, 0), (8, 0), (16, 0))
        host.relayed.return_value, host.withholds.return_value = [1], False
        routing.unicast(request(0, 2))
        radio.hops[0].taken = taken
        routing.received(radio.hops[0])
        assert [hop.taken for hop in radio.hops[1:]] == ([taken + 1] if goes_on else [])
        assert [dropped.args[1] for dropped in host.dropped.mock_calls] == ([] if goes_on else [DropReason.HOP_LIMIT])


def test_routing_hands_the_radios_reports_to_the_engine() -> None:
    routing, _, host = ideal_routing((0, 0), (8, 0))
    plain = request(0, 1)
    routing.sent(plain)
    routing.lost(plain, [1], DropReason.COLLISION)
    routing.refuse(plain, "no broadcast here")
    routing.dropped(plain, DropReason.QUEUE_FULL)
    routing.unreachable(plain, DropReason.RETRY_LIMIT)
    routing.received(plain)
    assert host.mock_calls == [
        call.sent(plain),
        call.lost(plain, [1], DropReason.COLLISION),
        call.refuse(plain, "no broadcast here"),
        call.dropped(plain, DropReason.QUEUE_FULL),
        call.dropped(plain, DropReason.RETRY_LIMIT),
        call.received(plain),
    ]


def test_a_hop_outlives_neither_its_sender_nor_a_restart() -> None:
    routing, radio, host = ideal_routing((0, 0), (8, 0), (16, 0))
    radio.node_down = Mock()  # type: ignore[attr-defined]
    routing.unicast(request(0, 2))
    (hop,) = radio.hops
    assert not routing.orphaned(hop)
    host.up[0] = False
    assert routing.orphaned(hop)
    routing.node_down(0, graceful=False)
    host.up[0] = True
    assert routing.orphaned(hop), "the node has come back, what it held has not"
    assert radio.node_down.mock_calls == [call(0, False)]  # type: ignore[attr-defined]
    routing.unicast(request(0, 2))
    assert not routing.orphaned(radio.hops[-1])


def test_beside_infrastructure_a_radio_has_the_broadcasts_and_both_learn_who_goes() -> None:
    radio, carrier = Mock(), Mock()
    both = BesideInfrastructure(radio, carrier)
    both.broadcast(request(0, 1))
    both.unicast(asked := request(0, 1))
    both.node_down(3, graceful=False)
    assert both.airtime_s is radio.airtime_s
    assert [one[0] for one in radio.mock_calls] == ["broadcast", "node_down"]
    assert carrier.mock_calls == [call.unicast(asked), call.node_down(3, False)]
    assert radio.mock_calls[-1] == call.node_down(3, False)


# Shortest paths, held against networkx.


@given(st.integers(2, 30), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_an_ideal_path_is_as_short_as_can_be(nodes: int, seed: int) -> None:
    chance = Random(seed)
    places = [(chance.uniform(0, 40), chance.uniform(0, 40)) for _ in range(nodes)]
    names = [f"n{i}" for i in range(nodes)]
    still = Trajectories([Trajectory.standing(name, x, y) for name, (x, y) in zip(names, places, strict=True)])
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    for i, (x, y) in enumerate(places):
        near = [j for j in range(i) if (x - places[j][0]) ** 2 + (y - places[j][1]) ** 2 <= 100.0]
        graph.add_edges_from((i, j) for j in near)
    bench = Bench(still, routed())
    pairs = [(chance.randrange(nodes), chance.randrange(nodes)) for _ in range(10)]
    for k, (a, b) in enumerate(pairs):
        bench.do(1.0 + k / 10, names[a], send_word(names[b], f"{k}"))
    bench.run()
    lengths = [nx.shortest_path_length(graph, a, b) if nx.has_path(graph, a, b) else None for a, b in pairs]
    assert bench.engine.counts.sends == sum(length or 0 for length in lengths)
    assert sum(len(bench.calls(name, "unreachable")) for name in names) == lengths.count(None)
    assert sum(len(bench.calls(name, "hear")) for name in names) == len(pairs) - lengths.count(None)


# CoDD and Siena over a radio, against the overlay's log with every message counted by its shortest path.


def still_town(**changes: Any) -> Scenario:
    """Thirty nodes that stand still, a source of documents, a radio of 300 m."""
    few = {"nodes.node.count": 30, "publish.documents.nodes": "node-00", "subscribe.documents.each": 2}
    times = {"duration_s": 25.0, "warm_up_s": 5.0, "cool_down_s": 2.0, "subscribe.documents.at_s": [0.0, 3.0]}
    radio = {"medium": {"kind": "unit-disk", "range_m": 300.0}, "infrastructure": False}
    return load_scenario("overlay").with_({**few, **times, **radio}).with_(changes)


@pytest.mark.parametrize("protocol", ["codd", "siena"])
def test_transmissions_are_those_of_shortest_paths_under_an_overlay_log(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An overlay's message takes as long here as its way over the radio, so that both runs send the same messages.
    Each message in the overlay's log then stands for as many transmissions as its shortest path has hops."""
    town = still_town()
    points = town.trajectories(1).positions(0.0)
    apart = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    graph = nx.from_numpy_array((apart <= 300.0**2).astype(int))
    assert nx.is_connected(graph)
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    assert max(max(far.values()) for far in hops.values()) >= 5
    over_radio, over_overlay = Log(), Log()
    run(town, protocol, {}, 1, over_radio)
    monkeypatch.setattr(OverlayNetwork, "latency_s", lambda _, message: 0.001 * hops[message.sender][message.peer])
    run(town.with_({"medium": {"kind": "overlay"}}), protocol, {}, 1, over_overlay)
    number = {name: i for i, name in enumerate(town.names())}
    counted, transmissions = Counter[str](), Counter[str]()
    for row in over_overlay.rows():
        if row["kind"] == "send":
            counted[row["packet"]] += hops[number[row["node"]]][number[row["peer"]]]
    for row in over_radio.rows():
        if row["kind"] == "send":
            transmissions[row["packet"]] += 1
    assert transmissions == counted
    assert sum(counted.values()) > 1000


def delivered(scenario: Scenario, protocol: str) -> float | None:
    return summarise(scenario, run(scenario, protocol, {}, 2)).delivery_ratio


@pytest.mark.parametrize("protocol", ["codd", "siena"])
@pytest.mark.parametrize("radio", ["ideal", "802.11p-6M"])
def test_routed_protocols_deliver_over_a_radio(protocol: str, radio: str) -> None:
    town = still_town(**{"medium.radio": radio})
    assert delivered(town, protocol) == pytest.approx(1.0, abs=0.01)


def test_route_discovery_is_billed_as_its_own_frames() -> None:
    town = still_town(**{"medium.routing": "reactive"})
    result = run(town, "codd", {}, 2)
    frames = {tag: count for tag, count in result.counts.packets.items() if tag.startswith("route-")}
    assert set(frames) == {"route-request", "route-reply", "route-error"}
    assert frames["route-request"].bytes_sent == 24 * frames["route-request"].sends > 0
    assert frames["route-reply"].bytes_sent == 20 * frames["route-reply"].sends > 0
    assert summarise(town, result).delivery_ratio == pytest.approx(1.0, abs=0.02)


def test_beside_a_radio_infrastructure_carries_unicasts_and_each_has_chances_of_its_own() -> None:
    beside = Network(Lossy(range_m=10.0, certain_m=0.0), True, Overlay(latency_s=0.5, jitter_s=0.25))
    bench = Bench(standing((0, 0), (6, 0), (900, 0)), beside, seed=3)
    bench.do(1.0, "a", send_word("c", "far"))
    for k in range(40):
        bench.do(2.0 + k / 10, "a", say(str(k)))
    bench.run()
    assert bench.calls("c", "hear") == [(Word("far"), "a", 1.5 + 0.25 * Random("3:medium").random())]
    radio = Random("3:radio")
    assert [int(word.text) for word, _, _ in bench.calls("b", "hear")] == [
        k for k in range(40) if radio.random() < 0.64
    ]


# Route discovery, step by step.


def test_a_search_widens_its_rings_and_a_route_is_used_again() -> None:
    bench = Bench(CHAIN, routed("reactive"))
    bench.do(1.0, "a", send_word("e", "one"))
    bench.do(2.5, "a", send_word("e", "two"))
    bench.do(2.6, "e", send_word("a", "three"))
    bench.run()
    starts = bench.rows("time", node="a", kind="send", packet="route-request")
    assert [time for (time,) in starts] == pytest.approx([1.0, 1.24, 1.64])
    assert bench.rows("node", "peer", kind="send", packet="route-reply") == [
        ("e", "d"),
        ("d", "c"),
        ("c", "b"),
        ("b", "a"),
    ]
    assert len(bench.calls("e", "hear")) == 2
    assert len(bench.calls("a", "hear")) == 1


def test_a_broken_link_is_reported_and_another_route_found() -> None:
    square = standing((0, 0), (7, 7), (7, -7), (14, 0), (22, 0))
    cut = LinkScript(
        changes=(
            LinkChange(2.0, "b", "d", "down"),
            LinkChange(0.0, "c", "d", "down"),
            LinkChange(2.0, "c", "d", "free"),
        )
    )
    bench = Bench(square, routed("reactive", links=cut))
    bench.do(1.0, "a", send_word("e", "one"))
    bench.do(3.0, "a", send_word("e", "two"))
    bench.run()
    assert [word.text for word, _, _ in bench.calls("e", "hear")] == ["one", "two"]
    assert bench.rows("node", "peer", kind="send", packet="route-error") == [("b", "a")]
    assert ("c", "d", "") in words(bench, "send")
    assert bench.calls("a", "unreachable") == []


def test_a_search_that_finds_nobody_ends_after_the_last_repeat() -> None:
    bench = Bench(standing((0, 0), (8, 0), (99, 0)), routed("reactive"), duration_s=60.0)
    bench.do(1.0, "a", send_word("c", "hello"))
    bench.run()
    requests = bench.rows("time", node="a", kind="send", packet="route-request")
    assert len(requests) == 7
    ((_, _, at),) = bench.calls("a", "unreachable")
    assert at == pytest.approx(1.0 + 0.24 + 0.4 + 0.56 + 0.72 + 2.8 + 5.6 + 11.2)


@given(st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_a_reactive_packet_arrives_or_its_sender_learns_that_it_did_not(seed: int) -> None:
    """Nodes walk, routes break: no packet goes in circles, none is lost without a word, none arrives twice."""
    chance = Random(seed)
    walks = [
        Trajectory.through(f"n{i}", [(10.0 * k, chance.uniform(0, 60), chance.uniform(0, 60)) for k in range(10)])
        for i in range(25)
    ]
    medium = UnitDisk(range_m=20.0, routing="reactive")
    bench = Bench(Trajectories(walks), Network(medium, routed=True), duration_s=90.0)
    for k in range(40):
        bench.do(1.0 + k / 2, f"n{chance.randrange(25)}", send_word(f"n{chance.randrange(25)}", str(k)))
    bench.run()
    calls = [
        (kind, call[0].text)
        for kind in ("hear", "unreachable")
        for i in range(25)
        for call in bench.calls(f"n{i}", kind)
    ]
    assert sorted(text for _, text in calls) == sorted(str(k) for k in range(40))
    assert "hop-limit" not in bench.engine.counts.drops


class WatchedRouting(ReactiveRouting):
    """Follows the routes to a destination whenever one of them changes."""

    learnt = 0

    def _learn(self, node: int, destination: int, *route: Any) -> None:
        super()._learn(node, destination, *route)
        type(self).learnt += 1
        passed: list[int] = []
        at: int | None = node
        while at is not None and at != destination:
            assert at not in passed, f"packets for {destination} go in circles: {[*passed, at]}"
            passed.append(at)
            found = self._tables[at].get(destination)
            at = found.next_hop if found is not None and found.valid and found.expires_at > self.queue.now else None


@given(st.integers(0, 1000), st.sampled_from([0.0, 0.3]))
@settings(max_examples=12, deadline=None)
def test_no_routes_form_a_loop(seed: int, crashing: float) -> None:
    """Independent of the packets that are sent: at every moment the next hops to a node lead to it, or end."""
    chance = Random(seed)
    walks = [
        Trajectory.through(f"n{i}", [(6.0 * k, chance.uniform(0, 50), chance.uniform(0, 50)) for k in range(10)])
        for i in range(20)
    ]
    down = [f"n{i}" for i in range(20) if chance.random() < crashing]
    crashes = tuple(Crash(node=name, time_s=chance.uniform(5, 30), down_s=chance.uniform(1, 10)) for name in down)
    medium = UnitDisk(range_m=18.0, routing="reactive")
    WatchedRouting.learnt = 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(open_medium, "ReactiveRouting", WatchedRouting)
        bench = Bench(
            Trajectories(walks), Network(medium, routed=True), duration_s=54.0, faults=FaultSettings(crashes=crashes)
        )
        for k in range(120):
            bench.do(1.0 + k / 3, f"n{chance.randrange(20)}", send_word(f"n{chance.randrange(4)}", str(k)))
        bench.run()
    assert WatchedRouting.learnt > 1000


# The same bytes for the same seed.


def digest(protocol: str, routing: str) -> str:
    moving = {"nodes.node.mobility": {"kind": "random-waypoint", "speed_m_s": [5.0, 15.0]}}
    town = still_town(**{"medium.radio": "802.11b-2M", "medium.routing": routing, **moving})
    log = Log()
    run(town, protocol, {}, 5, log)
    return hashlib.sha256("\n".join(repr(row) for row in log.rows()).encode()).hexdigest()[:16]


@pytest.mark.parametrize("routing", ROUTINGS)
def test_another_process_writes_the_same_log(routing: str) -> None:
    script = f"import test_routing; print(test_routing.digest('codd', {routing!r}))"
    folders = os.pathsep.join(str(folder) for folder in (Path(__file__).parent, Path(__file__).parents[1]))
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": folders}
    other = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == digest("codd", routing)
