"""The shared channel at half a slot, its growing windows, its first second; latencies and names of media."""

from __future__ import annotations

from random import Random

import pytest
from small_networks import Bench, Word, say, send_word, standing

from earshot.errors import SettingsError
from earshot.simulation.faults import Crash, FaultSettings
from earshot.simulation.media.channel_use import RecentUse
from earshot.simulation.media.medium_settings import Contention, Overlay, UnitDisk
from earshot.simulation.media.reception import LossyReception
from earshot.wire import size

BASE = Contention(range_m=10.0)
TRIANGLE = standing((0, 0), (5, 0), (0, 5))


def airtime_s(text: str) -> float:
    return BASE.preamble_s + (BASE.header_bytes + size(Word(text))) * 8 / BASE.bit_rate_bps


@pytest.mark.parametrize(("earlier_slots", "collide"), [(0.4, True), (0.6, False)])
def test_a_frame_of_the_last_half_slot_cannot_be_sensed(earlier_slots: float, collide: bool) -> None:
    """b counts its slots down; c, whose channel is idle, begins shortly before b would."""
    for seed in range(12):
        slots = int(Random(f"{seed}:medium").random() * (BASE.window_min + 1))
        if slots < 2:
            continue
        bench = Bench(TRIANGLE, BASE, seed=seed)
        bench.do(1.0, "a", say("from a"))
        bench.do(1.0001, "b", say("from b"))
        b_at = 1.0 + airtime_s("from a") + BASE.difs_s + slots * BASE.slot_s
        c_at = b_at - earlier_slots * BASE.slot_s
        bench.do(c_at, "c", say("from c"))
        bench.run()
        sends = bench.rows("time", "node", kind="send")[1:]
        assert sends[0] == (pytest.approx(c_at), "c")
        if collide:
            assert sends[1] == (pytest.approx(b_at), "b")
        else:
            resumed = c_at + airtime_s("from c") + BASE.difs_s
            assert sends[1] == (pytest.approx(resumed + BASE.slot_s), "b"), "its last slot had begun"


def test_the_window_doubles_with_each_attempt_up_to_its_largest() -> None:
    medium = Contention(range_m=10.0, window_min=3, window_max=20, retry_limit=6)
    ack_s = medium.preamble_s + medium.ack_bytes * 8 / medium.bit_rate_bps
    bench = Bench(standing((0, 0), (500, 0)), medium, seed=5)
    bench.do(1.0, "a", send_word("b", "nobody hears it"))
    bench.run()
    draws = Random("5:medium")
    expected, window = [1.0], 3
    for _ in range(5):
        window = min(2 * window + 1, 20)
        ended = expected[-1] + airtime_s("nobody hears it")
        idle = max(ended + medium.difs_s, ended + medium.sifs_s + ack_s)
        expected.append(idle + int(draws.random() * (window + 1)) * medium.slot_s)
    assert [time for (time,) in bench.rows("time", kind="send")] == pytest.approx(expected)


@pytest.mark.parametrize("capture_db", [None, 0.0])
def test_nodes_that_send_at_once_hear_nothing_of_three_frames(capture_db: float | None) -> None:
    medium = Contention(range_m=10.0, capture_db=capture_db)
    bench = Bench(TRIANGLE, medium)
    for number, node in enumerate("abc"):
        bench.do(1.0 + number * 0.2 * medium.slot_s, node, say(f"from {node}"))
    bench.run()
    assert [bench.calls(node, "hear") for node in "abc"] == [[], [], []]


def test_the_first_second_counts_as_a_second() -> None:
    recent = RecentUse(2)
    recent.add((0.25, 0.5, 0, (0, 1)))
    assert recent.share(1, 0.9) == 0.0, "no second is whole yet"
    assert recent.share(1, 1.0) == pytest.approx(0.25)
    recent.add((1.5, 2.5, 0, (0,)))
    assert [recent.share(node, 2.0) for node in (0, 1)] == pytest.approx([(0.25 + 0.5) / 2, 0.25 / 2])
    assert recent.share(0, 3.0) == pytest.approx((0.25 + 0.5 + 0.5) / 3)


def test_a_node_that_crashes_while_it_waits_for_the_channel_sends_nothing_more() -> None:
    """b waits for a's frame when it crashes: c, which waits too, has the channel for itself."""
    faults = FaultSettings(crashes=(Crash("b", 1.0003, down_s=1.0),))
    bench = Bench(TRIANGLE, BASE, faults=faults)
    bench.do(1.0, "a", say("from a " + "x" * 300))
    bench.do(1.0002, "b", say("from b"))
    bench.do(1.0002, "c", say("from c"))
    bench.do(5.0, "b", say("from b, again"))
    bench.run()
    assert bench.rows("node", kind="send") == [("a",), ("c",), ("b",)]
    assert [packet.text for packet, _, _ in bench.calls("c", "hear")][1:] == ["from b, again"]


def test_a_node_that_crashes_while_it_counts_down_sends_nothing_more() -> None:
    medium = Contention(range_m=10.0, window_min=1000)
    seed = next(seed for seed in range(99) if Random(f"{seed}:medium").random() > 0.5)
    idle_at = 1.0 + airtime_s("from a") + medium.difs_s
    bench = Bench(TRIANGLE, medium, seed=seed, faults=FaultSettings(crashes=(Crash("b", idle_at + 0.001),)))
    bench.do(1.0, "a", say("from a"))
    bench.do(1.0002, "b", say("from b"))
    bench.do(5.0, "c", say("from c"))
    bench.run()
    assert bench.rows("node", kind="send") == [("a",), ("c",)]


@pytest.mark.parametrize(("asked_at", "share"), [(0.5, 0.0), (1.5, 0.5), (2.5, 0.25), (6.5, 0.0), (1000.5, 0.0)])
def test_the_first_question_may_come_at_any_time(asked_at: float, share: float) -> None:
    recent = RecentUse(2)
    recent.add((0.25, 0.75, 0, (0, 1)))
    assert [recent.share(node, asked_at) for node in (0, 1)] == pytest.approx([share, share])


def test_frames_after_a_long_silence_count_in_their_own_seconds() -> None:
    recent = RecentUse(2)
    recent.add((0.0, 0.5, 0, (1,)))
    recent.add((100.5, 101.25, 0, (1,)))
    recent.add((103.0, 103.5, 1, ()))
    assert [recent.share(1, time) for time in (101.0, 104.0, 105.0, 106.0, 107.0, 108.0, 109.0)] == pytest.approx(
        [0.5 / 5, 1.25 / 5, 1.25 / 5, 0.75 / 5, 0.5 / 5, 0.5 / 5, 0.0]
    )


# Infrastructure.


def test_infrastructure_takes_no_airtime() -> None:
    bench = Bench(TRIANGLE, Overlay())
    assert bench.run().probe("a").channel.airtime_s(1000) == 0.0


@pytest.mark.parametrize(
    ("sender", "peer", "latency_s"),
    [("a", "b", 0.05 + 0.3), ("b", "a", 0.05 + 0.3), ("a", "nobody", 0.05)],
    ids=["a peer 3 km away", "the way back", "an unknown peer"],
)
def test_a_message_takes_longer_over_the_distance_to_a_peer_that_exists(
    sender: str, peer: str, latency_s: float
) -> None:
    bench = Bench(standing((1000, 500), (2800, 2900)), Overlay(latency_s_per_km=0.1))
    bench.do(1.0, sender, send_word(peer, "hello"))
    bench.run()
    calls = bench.calls(sender, "unreachable") if peer == "nobody" else bench.calls(peer, "hear")
    assert [call[-1] for call in calls] == [pytest.approx(1.0 + latency_s)]


def test_the_spread_of_pairs_is_even_from_none_to_all_of_it() -> None:
    """A share is the pair's own, the same in both directions, and another with another seed."""
    overlay = Bench(TRIANGLE, Overlay(spread_s=1.0), seed=3).engine._medium
    shares = [overlay._share(i, j) for i in range(40) for j in range(i)]  # type: ignore[attr-defined]
    assert (min(shares) >= 0.0, max(shares) < 1.0, len(set(shares))) == (True, True, len(shares))
    assert sum(shares) / len(shares) == pytest.approx(0.5, abs=0.05)
    assert sum(share < 0.1 for share in shares) / len(shares) == pytest.approx(0.1, abs=0.04)
    assert overlay._share(2, 7) == overlay._share(7, 2)  # type: ignore[attr-defined]
    other = Bench(TRIANGLE, Overlay(spread_s=1.0), seed=4).engine._medium
    assert other._share(2, 7) != overlay._share(2, 7)  # type: ignore[attr-defined]


# Fading.


def test_a_unicast_that_fades_is_a_drop_at_its_peer_each_time() -> None:
    """At the very range of the medium every frame of this model is lost."""
    medium = Contention(range_m=100.0, reception=LossyReception(certain_m=0.0), retry_limit=3)
    bench = Bench(standing((0, 0), (100, 0), (0, 101)), medium)
    bench.do(1.0, "a", send_word("b", "fades"))
    bench.do(3.0, "a", send_word("c", "too far"))
    bench.run()
    assert bench.rows("node", "peer", "detail", kind="drop") == [
        ("b", "a", "faded"), ("b", "a", "faded"), ("b", "a", "faded"), ("a", "b", "retry-limit"),
        ("a", "c", "retry-limit"),
    ]  # fmt: skip
    assert bench.engine.counts.drops == {"faded": 3, "retry-limit": 2}


def test_a_broadcast_that_fades_is_a_drop_at_every_node_in_range() -> None:
    medium = Contention(range_m=100.0, reception=LossyReception(certain_m=50.0))
    bench = Bench(standing((0, 0), (100, 0), (0, 50), (-100, 0)), medium)
    bench.do(1.0, "a", say("hello"))
    bench.run()
    assert bench.rows("node", "peer", "detail", kind="drop") == [("b", "a", "faded"), ("d", "a", "faded")]
    assert [len(bench.calls(node, "hear")) for node in "bcd"] == [0, 1, 0]


# Names.


def test_a_disk_is_named_by_its_radio_and_range() -> None:
    assert UnitDisk(range_m=50.0).label == "ideal 50 m"
    assert UnitDisk(range_m=50.0, radio="802.11b-2M").label == "802.11b-2M unit-disk 50 m"


def test_an_ideal_radio_has_no_contention() -> None:
    with pytest.raises(SettingsError, match="an ideal radio has no contention"):
        Contention(radio="ideal", range_m=50.0)
