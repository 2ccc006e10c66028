"""The shared channel: timing, back-off, collisions, acknowledgements, queues, saturation."""

import importlib
import itertools
import math
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from small_networks import Bench, Word, say, send_word, standing

from earshot.records.trajectories import Trajectories
from earshot.simulation.faults import Churn, Crash, FaultSettings
from earshot.simulation.media.medium_settings import Contention
from earshot.wire import size

BASE = Contention(range_m=10.0)
TRIANGLE = standing((0, 0), (5, 0), (0, 5))
HIDDEN = standing((0, 0), (8, 0), (16, 0))
"a and c do not hear each other; b hears both."


def airtime_s(text: str, settings: Contention = BASE) -> float:
    return settings.preamble_s + (settings.header_bytes + size(Word(text))) * 8 / settings.bit_rate_bps


def heard(bench: Bench, node: str) -> list[str]:
    return [packet.text for packet, _, _ in bench.calls(node, "hear")]


def test_who_finds_the_channel_idle_sends_at_once_and_takes_its_airtime() -> None:
    bench = Bench(TRIANGLE, BASE)
    bench.do(1.0, "a", say("hello"))
    bench.run()
    assert bench.rows("time", "node", kind="send") == [(1.0, "a")]
    assert bench.calls("b", "hear") == [(Word("hello"), "a", pytest.approx(1.0 + airtime_s("hello")))]
    assert len(bench.calls("c", "hear")) == 1


def test_airtime_follows_the_bit_rate() -> None:
    slow, fast = Contention(range_m=10.0, bit_rate_bps=1e6), Contention(range_m=10.0, bit_rate_bps=11e6)
    for settings in (slow, fast):
        bench = Bench(TRIANGLE, settings)
        bench.do(1.0, "a", say("x" * 1000))
        ((_, _, now),) = bench.run().calls("b", "hear")
        assert now - 1.0 == pytest.approx(airtime_s("x" * 1000, settings))


def test_two_who_begin_at_once_collide_everywhere() -> None:
    bench = Bench(TRIANGLE, BASE)
    bench.do(1.0, "a", say("from a"))
    bench.do(1.0, "b", say("from b"))
    bench.run()
    assert [heard(bench, node) for node in "abc"] == [[], [], []]
    assert sorted(bench.rows("node", "peer", "detail", kind="drop")) == [
        ("a", "b", "collision"),
        ("b", "a", "collision"),
        ("c", "a", "collision"),
        ("c", "b", "collision"),
    ]
    assert bench.engine.counts.drops == {"collision": 4}


def test_half_a_slot_later_the_carrier_is_sensed_and_the_second_waits_its_turn() -> None:
    for seed in range(20):
        bench = Bench(TRIANGLE, BASE, seed=seed)
        bench.do(1.0, "a", say("from a"))
        bench.do(1.0 + 0.6 * BASE.slot_s, "b", say("from b"))
        bench.run()
        (_, first), (second, node) = bench.rows("time", "node", kind="send")
        idle = 1.0 + airtime_s("from a") + BASE.difs_s
        slots = (second - idle) / BASE.slot_s
        assert (first, node) == ("a", "b")
        assert slots == pytest.approx(round(slots), abs=1e-3)
        assert 0 <= round(slots) <= BASE.window_min
        assert (heard(bench, "c"), dict(bench.engine.counts.drops)) == (["from a", "from b"], {})


def test_back_off_is_frozen_while_others_send() -> None:
    """b and c draw; who draws more counts the rest down after the other's frame."""
    for seed in range(30):
        bench = Bench(TRIANGLE, BASE, seed=seed)
        bench.do(1.0, "a", say("from a"))
        bench.do(1.0001, "b", say("from b"))
        bench.do(1.0001, "c", say("from c"))
        bench.run()
        draws = Random(f"{seed}:medium")
        slots = {node: int(draws.random() * (BASE.window_min + 1)) for node in "bc"}
        sends = {node: time for time, node in bench.rows("time", "node", kind="send")}
        first, second = sorted("bc", key=slots.__getitem__)
        begin = 1.0 + airtime_s("from a") + BASE.difs_s
        assert sends[first] == pytest.approx(begin + slots[first] * BASE.slot_s)
        if slots[first] == slots[second]:
            assert sends[second] == pytest.approx(sends[first])
            assert bench.engine.counts.drops["collision"] == 4
        else:
            resumed = sends[first] + airtime_s("from b") + BASE.difs_s
            left = slots[second] - slots[first]
            assert sends[second] == pytest.approx(resumed + left * BASE.slot_s)
            assert heard(bench, "a") == [f"from {first}", f"from {second}"]


def test_a_frame_that_begins_during_difs_costs_no_slot() -> None:
    """b has drawn its slots and waits for DIFS to pass after a's frame, when c, whom a does not reach, begins."""
    for seed in range(20):
        bench = Bench(HIDDEN, BASE, seed=seed)
        bench.do(1.0, "a", say("from a"))
        bench.do(1.0001, "b", say("from b"))
        second = 1.0 + airtime_s("from a") + 0.5 * BASE.difs_s
        bench.do(second, "c", say("from c"))
        bench.run()
        slots = int(Random(f"{seed}:medium").random() * (BASE.window_min + 1))
        assert bench.rows("time", "node", kind="send")[1:] == [
            (pytest.approx(second), "c"),
            (pytest.approx(second + airtime_s("from c") + BASE.difs_s + slots * BASE.slot_s), "b"),
        ]


@pytest.mark.parametrize(("later_s", "waits_s"), [(0.0003, 2e-3), (0.0001, 0.0001 + BASE.difs_s)])
def test_a_node_waits_longer_after_a_frame_whose_preamble_alone_it_could_read(later_s: float, waits_s: float) -> None:
    """b reads a's frame until c's begins. Within the preamble it does not yet know that there is a frame."""
    bench = Bench(HIDDEN, Contention(range_m=10.0, window_min=0, eifs_s=2e-3))
    bench.do(1.0, "a", say("from a"))
    bench.do(1.0 + later_s, "c", say("from c"))
    bench.do(1.0004, "b", say("from b"))
    bench.run()
    assert bench.rows("time", "node", kind="send")[2:] == [(pytest.approx(1.0 + airtime_s("from a") + waits_s), "b")]


def test_by_default_the_longer_wait_is_for_an_acknowledgement() -> None:
    acknowledgement_s = BASE.preamble_s + BASE.ack_bytes * 8 / BASE.bit_rate_bps
    assert BASE.eifs() == pytest.approx(BASE.sifs_s + acknowledgement_s + BASE.difs_s)


def test_a_hidden_terminal_spoils_the_frame_between() -> None:
    bench = Bench(HIDDEN, BASE)
    bench.do(1.0, "a", say("from a"))
    bench.do(1.0002, "c", say("from c"))
    bench.run()
    assert (heard(bench, "b"), bench.engine.counts.drops) == ([], {"collision": 2})


@pytest.mark.parametrize("seed", range(5))
def test_a_frame_that_begins_at_the_very_end_of_another_spoils_nothing(seed: int) -> None:
    """c waits for f, whom only c hears, and its slots are over at the very moment at which a's frame ends at b. The
    far nodes x and y collide meanwhile, so that the channel must look at each node at the end of a's frame."""
    quick = msgspec.structs.replace(BASE, bit_rate_bps=11e6, preamble_s=2e-5, window_min=255)
    nodes = standing((0, 0), (8, 0), (16, 0), (24, 0), (100, 0), (108, 0), names="abcfxy")

    def bench() -> Bench:
        bench = Bench(nodes, quick, seed=seed)
        bench.do(1.0, "f", say("from f"))
        bench.do(1.00004, "c", say("from c"))
        return bench

    ((begins_at,),) = bench().run().rows("time", kind="send", node="c")
    airtime = airtime_s("from a", quick)
    at = begins_at - airtime
    while at + airtime != begins_at:
        at = math.nextafter(at, math.inf if at + airtime < begins_at else -math.inf)
    both = bench()
    both.do(at, "a", say("from a"))
    for far in "xy":
        both.do(at + airtime / 2, far, say("from afar"))
    both.run()
    assert both.rows("time", kind="send", node="c") == [(begins_at,)]
    assert (heard(both, "b"), both.engine.counts.drops) == (["from a", "from c"], {"collision": 2})


def test_a_wider_carrier_range_uncovers_it() -> None:
    bench = Bench(HIDDEN, Contention(range_m=10.0, carrier_range_m=20.0))
    bench.do(1.0, "a", say("from a"))
    bench.do(1.0002, "c", say("from c"))
    bench.run()
    assert (heard(bench, "b"), bench.engine.counts.drops) == (["from a", "from c"], {})


def test_a_frame_is_sensed_and_spoils_others_beyond_the_range_it_is_understood_in() -> None:
    """c is out of a's range but within its carrier range: c hears nothing of a, yet cannot hear d meanwhile."""
    nodes = standing((0, 0), (99, 99), (15, 0), (24, 0))
    bench = Bench(nodes, Contention(range_m=10.0, carrier_range_m=16.0))
    bench.do(1.0, "a", say("from a"))
    bench.do(1.0002, "d", say("from d"))
    bench.run()
    assert bench.rows("node", "peer", "detail", kind="drop") == [("c", "d", "collision")]


def test_who_sends_does_not_hear() -> None:
    """b begins just before c's frame reaches it: half duplex."""
    bench = Bench(standing((0, 0), (8, 0)), BASE)
    bench.do(1.0, "a", say("a long word from a " * 10))
    bench.do(1.0 + 0.4 * BASE.slot_s, "b", say("from b"))
    bench.run()
    assert (heard(bench, "a"), heard(bench, "b")) == ([], [])


def test_a_unicast_is_acknowledged_and_the_next_may_follow() -> None:
    bench = Bench(standing((0, 0), (5, 0)), BASE)
    bench.do(1.0, "a", send_word("b", "one"))
    bench.do(1.0, "a", send_word("b", "two"))
    bench.run()
    (first,), (second,) = bench.rows("time", kind="send")
    acknowledged = 1.0 + airtime_s("one") + BASE.sifs_s + BASE.preamble_s + BASE.ack_bytes * 8 / BASE.bit_rate_bps
    assert first == 1.0
    assert second - acknowledged - BASE.difs_s == pytest.approx(
        round((second - acknowledged - BASE.difs_s) / BASE.slot_s) * BASE.slot_s
    )
    assert (heard(bench, "b"), bench.calls("a", "unreachable")) == (["one", "two"], [])


def test_an_unanswered_unicast_is_sent_again_with_growing_pauses_and_then_given_up() -> None:
    gaps: Counter[int] = Counter()
    for seed in range(40):
        bench = Bench(standing((0, 0), (99, 0)), Contention(range_m=10.0, retry_limit=5), seed=seed)
        bench.do(1.0, "a", send_word("b", "psst"))
        bench.run()
        times = [time for (time,) in bench.rows("time", kind="send")]
        assert len(times) == 5
        for k, (one, next_) in enumerate(itertools.pairwise(times)):
            gaps[k] += next_ - one  # type: ignore[assignment]
        assert bench.rows("node", "peer", "detail", kind="drop") == [("a", "b", "retry-limit")]
        assert [(packet.text, peer) for packet, peer, _ in bench.calls("a", "unreachable")] == [("psst", "b")]
    pauses = [gaps[k] / 40 for k in range(4)]
    assert pauses == sorted(pauses)
    assert pauses[3] > 3 * pauses[0]


def test_retries_overcome_a_hidden_terminal_and_deliver_exactly_once() -> None:
    settings = Contention(range_m=10.0, queue_frames=500)
    for seed in range(5):
        bench = Bench(HIDDEN, settings, seed=seed, duration_s=30.0)
        for k in range(100):
            bench.do(1.0 + 0.003 * k, "a", send_word("b", f"a{k} " + "x" * 100))
            bench.do(1.0 + 0.003 * k, "c", send_word("b", f"c{k} " + "x" * 100))
        bench.run()
        got = Counter(word.split()[0] for word in heard(bench, "b"))
        lost = {packet.text.split()[0] for node in "ac" for packet, _, _ in bench.calls(node, "unreachable")}
        assert set(got.values()) == {1}
        assert set(got) | lost == {f"{node}{k}" for node in "ac" for k in range(100)}
        assert bench.engine.counts.drops["collision"] > 50
        assert len(got) > 150


def test_a_frame_whose_acknowledgement_is_lost_is_sent_again_and_heard_once() -> None:
    """c hears a but not b. d spoils a's frame at c, which therefore speaks into b's acknowledgement."""
    tries = []
    for seed in range(20):
        settings = Contention(range_m=10.0, window_min=7)
        bench = Bench(standing((0, 0), (8, 0), (-8, 0), (-16, 0)), settings, seed=seed)
        bench.do(1.0, "a", send_word("b", "psst"))
        bench.do(1.0001, "d", say("x"))
        bench.do(1.0003, "c", say("x" * 300))
        bench.run()
        assert (heard(bench, "b"), bench.calls("a", "unreachable")) == (["psst"], [])
        tries.append(len(bench.rows("time", node="a", kind="send")))
    assert {1, 2} <= set(tries)


def test_who_reads_a_unicast_keeps_silent_until_it_is_acknowledged() -> None:
    """c hears a but not b: it knows of the acknowledgement only from a's frame."""
    bench = Bench(standing((0, 0), (8, 0), (-8, 0)), Contention(range_m=10.0, window_min=0))
    bench.do(1.0, "a", send_word("b", "psst"))
    bench.do(1.0003, "c", say("from c"))
    bench.run()
    acknowledged = 1.0 + airtime_s("psst") + BASE.sifs_s + BASE.preamble_s + BASE.ack_bytes * 8 / BASE.bit_rate_bps
    assert bench.rows("time", "node", kind="send") == [(1.0, "a"), (pytest.approx(acknowledged + BASE.difs_s), "c")]


def test_a_node_that_is_down_does_not_answer() -> None:
    bench = Bench(TRIANGLE, BASE, faults=FaultSettings(crashes=(Crash("b", 0.5),)))
    bench.do(1.0, "a", send_word("b", "psst"))
    bench.run()
    assert bench.rows("node", "peer", "detail", kind="drop") == [("a", "b", "retry-limit")]
    assert len(bench.calls("a", "unreachable")) == 1


def test_a_full_queue_refuses_and_says_so() -> None:
    bench = Bench(standing((0, 0), (5, 0)), Contention(range_m=10.0, queue_frames=3))
    for k in range(5):
        bench.do(1.0, "a", say(str(k)))
    bench.do(1.0, "a", send_word("b", "psst"))
    bench.run()
    assert heard(bench, "b") == ["0", "1", "2"]
    assert bench.rows("time", "node", "peer", "detail", kind="drop") == [
        (1.0, "a", "", "queue-full"),
        (1.0, "a", "", "queue-full"),
        (pytest.approx(1.0 + airtime_s("psst")), "a", "b", "queue-full"),
    ]
    assert bench.calls("a", "unreachable") == [(Word("psst"), "b", pytest.approx(1.0 + airtime_s("psst")))]


def test_a_crash_takes_the_frame_on_air_and_all_that_wait() -> None:
    faults = FaultSettings(crashes=(Crash("a", 1.0001, down_s=1.0),))
    bench = Bench(TRIANGLE, BASE, faults=faults)
    bench.do(1.0, "a", say("cut off"))
    bench.do(1.0, "a", say("never sent"))
    bench.do(1.0002, "b", say("from b"))
    bench.do(3.0, "a", say("from the second life"))
    bench.run()
    assert (heard(bench, "b"), heard(bench, "c")) == (["from the second life"], ["from b", "from the second life"])
    assert heard(bench, "a") == []


def test_a_unicast_in_a_crash_is_forgotten() -> None:
    faults = FaultSettings(crashes=(Crash("a", 1.0009, down_s=1.0),))
    bench = Bench(standing((0, 0), (99, 0)), BASE, faults=faults)
    bench.do(1.0, "a", send_word("b", "psst"))
    bench.run()
    assert (len(bench.rows("time", kind="send")) < 7, bench.calls("a", "unreachable")) == (True, [])


def test_who_leaves_in_good_order_says_goodbye() -> None:
    faults = FaultSettings(churn=Churn(mean_presence_s=2.0, mean_absence_s=1000.0))
    bench = Bench(
        standing((0, 0), (5, 0)),
        BASE,
        faults=faults,
        on={"stop": lambda probe, _: probe.broadcast(Word(f"{probe.node} goes"))},
        seed=4,
    )
    bench.run()
    first = bench.rows("node", kind="leave")[0][0]
    other = "ab".replace(first, "")
    assert heard(bench, other) == [f"{first} goes"]


def test_a_group_hears_and_the_channel_is_busy_for_all() -> None:
    bench = Bench(TRIANGLE, BASE)
    bench.do(0.5, "b", lambda probe: probe.join_group(9))
    bench.do(1.0, "a", lambda probe: probe.broadcast(Word("members only"), group=9))
    bench.do(1.0002, "c", say("from c"))
    bench.run()
    assert (heard(bench, "b"), heard(bench, "c")) == (["members only", "from c"], [])
    assert bench.rows("time", kind="send")[1][0] > 1.0 + airtime_s("members only")


# Congestion.


def circle_of(nodes: int) -> Trajectories:
    """All in one another's range."""
    return standing(*((k % 5, k // 5) for k in range(nodes)))


def throughput(load: float, seed: int = 1) -> tuple[float, dict[str, int]]:
    """Offered and carried load as shares of the bit rate, and the drops: 10 nodes, 500-byte words."""
    settings = Contention(range_m=10.0, bit_rate_bps=1e6, queue_frames=20)
    word = "x" * 500
    bits = size(Word(word)) * 8
    rate = load * settings.bit_rate_bps / bits
    bench = Bench(circle_of(10), settings, duration_s=6.0, seed=seed)
    chance = Random(f"load {load} {seed}")
    time = 1.0
    while time < 5.0:
        time += chance.expovariate(rate)
        bench.do(time, "abcdefghij"[chance.randrange(10)], say(word))
    bench.run()
    clean = Counter(
        row["transmission"] for row in bench.log.rows() if row["kind"] == "receive" and 1 <= row["time"] <= 5
    )
    carried = sum(1 for receipts in clean.values() if receipts == 9) * bits / 4.0
    return carried / settings.bit_rate_bps, dict(bench.engine.counts.drops)


def test_throughput_levels_off_and_drops_have_reasons() -> None:
    carried = {load: throughput(load) for load in (0.1, 0.3, 2.0, 5.0, 10.0)}
    assert carried[0.1][0] == pytest.approx(0.1, rel=0.15)
    assert carried[0.3][0] == pytest.approx(0.3, rel=0.15)
    saturated = [carried[load][0] for load in (2.0, 5.0, 10.0)]
    assert all(0.4 < share < 0.95 for share in saturated)
    assert max(saturated) - min(saturated) < 0.1
    assert set(carried[10.0][1]) == {"collision", "queue-full"}
    assert carried[10.0][1]["queue-full"] > carried[5.0][1]["queue-full"] > carried[2.0][1]["queue-full"] > 0


def test_under_light_load_nothing_is_lost() -> None:
    settings = Contention(range_m=10.0)
    bench = Bench(circle_of(10), settings, duration_s=60.0)
    for k in range(500):
        bench.do(1.0 + 0.1 * k, "abcdefghij"[k % 10], say(f"{k} " + "x" * 200))
        bench.do(1.05 + 0.1 * k, "abcdefghij"[k % 10], send_word("abcdefghij"[(k + 3) % 10], f"to you {k}"))
    bench.run()
    counts = bench.engine.counts
    assert (dict(counts.drops), counts.sends, counts.receives) == ({}, 1000, 500 * 9 + 500)


@pytest.mark.parametrize("seed", range(3))
def test_the_channel_is_idle_again_when_all_is_sent(seed: int) -> None:
    """After a storm every count is back at nought: the same word goes through at once."""
    chance = Random(seed)
    nodes = standing(*((chance.uniform(0, 30), chance.uniform(0, 30)) for _ in range(20)))
    bench = Bench(nodes, Contention(range_m=10.0, carrier_range_m=18.0), duration_s=20.0, seed=seed)
    for k in range(600):
        node = "abcdefghijklmnopqrst"[chance.randrange(20)]
        act: Any = (
            say(f"{k} " + "x" * 300) if k % 3 else send_word("abcdefghijklmnopqrst"[chance.randrange(20)], str(k))
        )
        bench.do(1.0 + chance.uniform(0, 0.5), node, act)
    bench.do(15.0, "a", say("silence"))
    bench.run()
    assert bench.rows("time", node="a", kind="send")[-1] == (15.0,)
    radio: Any = bench.engine._medium
    assert max(radio._busy_until) < 16.0
    assert [station.frames for station in radio._stations if station.frames] == []
    assert radio._waiting == {}


# Against ns-3: benchmarks/radio.py.


def radio_benchmark() -> Any:
    """The module benchmarks/radio.py, which is a script and not in the package."""
    folder = Path(__file__).parents[3] / "benchmarks"
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("radio")
    finally:
        sys.path.remove(str(folder))


def test_the_benchmark_of_the_radio_runs_and_counts_every_reception() -> None:
    radio = radio_benchmark()
    rows = list(radio.rows(list(radio.PARTS), True, 1, None))
    assert [(row.part, row.degree, row.load) for row in rows] == [
        (part, 10, load) for part in radio.PARTS for load in (0.05, 0.4)
    ]
    for row in rows:
        assert 0.5 < row.ours.delivered <= 1.0
        assert 0 < row.ours.p50 <= row.ours.p95
        assert len(row.ours.latencies_s) <= row.ours.received


@pytest.mark.long
def test_the_radio_receives_as_many_frames_as_that_of_ns3(tmp_path: Path) -> None:
    radio = radio_benchmark()
    program = radio.compiled_ns3(tmp_path, "radio_ns3.cc")
    if program is None:
        pytest.skip("no g++ or no ns-3 libraries here (Debian: apt-get install g++ libns3-dev)")
    for row in radio.rows(["floods-p", "floods-b"], True, 5, program):
        assert row.ours.sent == pytest.approx(row.ns3.sent, rel=0.05)
        assert row.ours.received == pytest.approx(row.ns3.received, rel=0.05)
