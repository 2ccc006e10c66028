"""The overlay: unicast between any live nodes, with a latency."""

from itertools import combinations

import pytest
from small_networks import Bench, Word, failure_of, say, send_word, standing

from earshot.errors import MachineFailure, SettingsError
from earshot.geometry import Area, Circle, Position
from earshot.simulation.faults import Crash, FaultSettings, Partition
from earshot.simulation.media.links import LinkChange, LinkScript
from earshot.simulation.media.medium_settings import Overlay

APART = standing((0, 0), (3000, 4000), (9e6, 0))


def heard_at(medium: Overlay, sender: str, peer: str, seed: int = 0, times: int = 1, text: str = "hi") -> list[float]:
    bench = Bench(APART, medium, seed=seed)
    for k in range(times):
        bench.do(1.0 + k, sender, send_word(peer, text))
    bench.run()
    return [now - 1.0 - k for k, (_, _, now) in enumerate(bench.calls(peer, "hear"))]


def test_any_node_reaches_any_other_and_itself() -> None:
    assert heard_at(Overlay(latency_s=0.05), "a", "c") == [pytest.approx(0.05)]
    assert heard_at(Overlay(latency_s=0.05), "a", "a") == [pytest.approx(0.05)]


def test_latency_grows_with_distance_and_size() -> None:
    far = Overlay(latency_s=0.01, latency_s_per_km=0.005)
    assert heard_at(far, "a", "b") == [pytest.approx(0.01 + 5 * 0.005)]
    slow = Overlay(latency_s=0.01, bit_rate_bps=8000.0)
    assert heard_at(slow, "a", "b", text="x" * 100)[0] - heard_at(slow, "a", "b", text="")[0] == pytest.approx(0.101)


def test_pairs_differ_for_good_and_alike_in_both_directions() -> None:
    spread = Overlay(latency_s=0.01, spread_s=1.0)
    there = heard_at(spread, "a", "b", times=3)
    assert there == [pytest.approx(there[0])] * 3
    assert heard_at(spread, "b", "a", times=3) == pytest.approx(there)
    assert heard_at(spread, "a", "c") != pytest.approx(there[:1])
    assert heard_at(spread, "a", "b", seed=1) != pytest.approx(there[:1])


def test_messages_differ_by_the_jitter() -> None:
    found = heard_at(Overlay(latency_s=0.01, jitter_s=0.5), "a", "b", times=8)
    assert len({round(latency, 9) for latency in found}) == 8
    assert all(0.01 <= latency <= 0.51 for latency in found)


@pytest.mark.parametrize("peer", ["b", "nobody"])
def test_a_node_that_is_down_or_unknown_is_unreachable(peer: str) -> None:
    bench = Bench(APART, Overlay(latency_s=0.05), faults=FaultSettings(crashes=(Crash("b", 0.5),)))
    bench.do(1.0, "a", send_word(peer, "hi"))
    bench.run()
    assert bench.calls("a", "unreachable") == [(Word("hi"), peer, 1.05)]


def test_links_held_down_and_partitions_cut_pairs() -> None:
    cut = Overlay(latency_s=0.05, links=LinkScript(changes=(LinkChange(2.0, "a", "b", "down"),)))
    bench = Bench(APART, cut)
    for time in (1.0, 3.0):
        bench.do(time, "a", send_word("b", "hi"))
        bench.do(time, "a", send_word("c", "hi"))
    bench.run()
    assert (len(bench.calls("b", "hear")), len(bench.calls("c", "hear"))) == (1, 2)
    assert bench.calls("a", "unreachable") == [(Word("hi"), "b", 3.05)]

    partition = Partition(2.0, 9.0, area=Area(Circle(100.0), Position(0.0, 0.0)))
    bench = Bench(APART, Overlay(latency_s=0.05), faults=FaultSettings(partitions=(partition,)))
    for time in (1.0, 3.0):
        bench.do(time, "a", send_word("b", "hi"))
        bench.do(time, "c", send_word("b", "hi"))
    bench.run()
    assert [sender for _, sender, _ in bench.calls("b", "hear")] == ["a", "c", "c"]


def test_a_graph_leaves_its_own_pairs() -> None:
    bench = Bench(APART, Overlay(latency_s=0.05, links=LinkScript(graph=(("a", "b"),))))
    bench.do(1.0, "a", send_word("b", "hi"))
    bench.do(1.0, "a", send_word("c", "hi"))
    bench.run()
    assert (len(bench.calls("b", "hear")), bench.calls("c", "hear")) == (1, [])


def test_an_overlay_has_no_broadcast() -> None:
    bench = Bench(APART, Overlay())
    bench.do(1.0, "a", say("hello, everybody"))
    with pytest.raises(MachineFailure):
        bench.run()
    bench = Bench(APART, Overlay())
    bench.do(1.0, "a", say("hello, everybody"))
    assert failure_of(bench.run).startswith(
        "Probe on node 'a' raised ValueError: an overlay has no broadcast: "
        "a machine sends to the peers it knows\n  at 1.0 s, in its effects(Word(text='hello, everybody'))"
    )


def test_a_share_of_the_messages_is_lost_without_notice() -> None:
    bench = Bench(APART, Overlay(latency_s=0.05, loss=0.3))
    for number in range(200):
        bench.do(1.0 + number / 100, "a", send_word("b", "hi"))
    bench.run()
    heard = len(bench.calls("b", "hear"))
    assert 110 < heard < 170
    assert bench.calls("a", "unreachable") == []
    with pytest.raises(SettingsError, match=r"loss must be at least 0 and below 1, got 1.0"):
        Overlay(loss=1.0)


LATENCIES = ("latency_s", "spread_s", "jitter_s", "latency_s_per_km")


@pytest.mark.parametrize("given", [*combinations(LATENCIES, 1), *combinations(LATENCIES, 2)], ids=" and ".join)
def test_any_latency_will_do(given: tuple[str, ...]) -> None:
    chosen = {"latency_s": 0.0, **dict.fromkeys(given, 0.05)}
    medium = Overlay(**chosen)
    assert {name: getattr(medium, name) for name in LATENCIES if getattr(medium, name)} == dict.fromkeys(given, 0.05)


def test_an_overlay_without_any_latency_is_refused() -> None:
    with pytest.raises(SettingsError, match="an overlay needs a latency: set latency_s"):
        Overlay(latency_s=0.0)
