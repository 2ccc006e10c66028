"""Small parts of a run: what is counted since the warm-up, the protocol's name, and what a silent node withholds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from small_networks import Bench, say, standing

from earshot.protocols.flooding import Flooding
from earshot.simulation import load_scenario, run
from earshot.simulation.engine.result import Counts, PacketCount


def test_counts_since_the_warm_up_have_every_tag() -> None:
    def counted(tag: str, *numbers: int) -> PacketCount:
        return PacketCount(tag, True, False, *numbers)

    before = Counts({"a": counted("a", 1, 10, 2)}, Counter({"lost": 1}))
    kept = before.snapshot()
    after = Counts({"a": counted("a", 4, 50, 9), "b": counted("b", 2, 20, 3)}, Counter({"lost": 3, "full": 1}))
    found = after.since(before)
    assert found.packets == {"a": counted("a", 3, 40, 7), "b": counted("b", 2, 20, 3)}
    assert found.drops == {"lost": 2, "full": 1}
    assert (after.sends, after.receives, after.bytes_sent) == (6, 12, 70)
    before.packets["a"].sends = 99
    assert kept.packets["a"].sends == 1


def test_a_warm_up_may_be_shorter_than_a_second() -> None:
    bench = Bench(standing((0, 0), (5, 0)), warm_up_s=0.5)
    bench.do(0.25, "a", say("early"))
    bench.do(0.75, "a", say("late"))
    bench.run()
    assert (bench.engine.warm_up.sends, bench.engine.counts.sends) == (1, 2)


def test_a_run_is_named_after_its_protocol_however_that_was_given_and_shown_without_trajectories() -> None:
    small = load_scenario("base").with_({"nodes.node.count": 20, "duration_s": 30.0})
    by_name, by_class = run(small, "flooding", {}, 1), run(small, Flooding, {}, 1)
    assert (by_name.protocol, by_class.protocol) == ("flooding", "flooding")
    assert by_name.queue_calls == by_class.queue_calls > 0
    assert "trajectories" not in repr(by_name)
    assert by_name.trajectories is not by_class.trajectories
    assert by_name == replace(by_name, trajectories=by_class.trajectories), "only what happened is compared"
