"""Capture at its margin, from the first moment of a run, and what a node does after it has sent."""

from __future__ import annotations

import pytest
from small_networks import Bench, Word, say, standing

from earshot.simulation.media.medium_settings import Contention
from earshot.wire import size

NEAR_AND_FAR = standing((0, 0), (110, 0), (20, 0))
"c hears a from 20 m and b from 90 m, 13.06 dB weaker; a and b do not hear each other."


def radio(capture_db: float | None, **more: float) -> Contention:
    return Contention(range_m=100.0, capture_db=capture_db, **more)  # type: ignore[arg-type]


def read_by_c(capture_db: float, at: float, later_s: float = 0.0) -> list[str]:
    bench = Bench(NEAR_AND_FAR, radio(capture_db))
    bench.do(at, "a", say("x" * 300))
    bench.do(at + later_s, "b", say("y" * 300))
    return [packet.text[0] for packet, _, _ in bench.run().calls("c", "hear")]


@pytest.mark.parametrize(("capture_db", "read"), [(13.0, ["x"]), (13.1, [])])
def test_a_frame_is_read_that_is_stronger_by_the_margin(capture_db: float, read: list[str]) -> None:
    assert read_by_c(capture_db, 1.0) == read


@pytest.mark.parametrize("at", [0.0, 0.05, 0.5, 1.5])
def test_frames_are_captured_from_the_first_moment_on(at: float) -> None:
    assert read_by_c(10.0, at) == ["x"]
    assert read_by_c(10.0, at, later_s=0.0005) == ["x"]


@pytest.mark.parametrize("at", [0.0, 0.05, 0.5])
def test_a_frame_alone_is_read_from_the_first_moment_on(at: float) -> None:
    bench = Bench(NEAR_AND_FAR, radio(10.0))
    bench.do(at, "b", say("y"))
    assert len(bench.run().calls("c", "hear")) == 1


@pytest.mark.parametrize("capture_db", [None, 10.0])
def test_a_frame_that_begins_when_another_ends_is_read(capture_db: float | None) -> None:
    medium = radio(capture_db)
    frame_s = medium.preamble_s + (medium.header_bytes + size(Word("x" * 300))) * 8 / medium.bit_rate_bps
    bench = Bench(NEAR_AND_FAR, medium)
    bench.do(0.5, "a", say("x" * 300))
    bench.do(0.5 + frame_s, "b", say("y" * 300))
    assert [packet.text[0] for packet, _, _ in bench.run().calls("c", "hear")] == ["x", "y"]


@pytest.mark.parametrize("capture_db", [None, 10.0])
def test_a_node_waits_after_its_own_frame_before_the_next(capture_db: float | None) -> None:
    medium = radio(capture_db, window_min=0)
    bench = Bench(standing((0, 0), (20, 0)), medium)
    bench.do(0.5, "a", lambda probe: (say("one")(probe), say("two")(probe)))
    bench.run()
    frame_s = medium.preamble_s + (medium.header_bytes + size(Word("one"))) * 8 / medium.bit_rate_bps
    assert [time for (time,) in bench.rows("time", kind="send")] == [0.5, pytest.approx(0.5 + frame_s + medium.difs_s)]


@pytest.mark.parametrize("capture_db", [None, 10.0])
def test_a_node_reads_again_when_it_has_sent(capture_db: float | None) -> None:
    medium = radio(capture_db)
    bench = Bench(standing((0, 0), (20, 0)), medium)
    bench.do(0.5, "a", say("x" * 300))
    bench.do(0.6, "b", say("y" * 300))
    bench.run()
    assert [len(bench.calls(node, "hear")) for node in "ab"] == [1, 1]


@pytest.mark.parametrize("capture_db", [None, 10.0])
def test_a_node_out_of_range_senses_a_frame_and_does_not_read_it(capture_db: float | None) -> None:
    medium = Contention(range_m=100.0, carrier_range_m=200.0, capture_db=capture_db, window_min=0)
    bench = Bench(standing((0, 0), (150, 0), (230, 0)), medium)
    bench.do(0.5, "a", say("x" * 300))
    bench.do(0.5005, "b", say("y"))
    bench.run()
    frame_s = medium.preamble_s + (medium.header_bytes + size(Word("x" * 300))) * 8 / medium.bit_rate_bps
    assert bench.calls("b", "hear") == []
    assert bench.rows("time", "node", kind="send")[1] == (pytest.approx(0.5 + frame_s + medium.difs_s), "b")
    assert len(bench.calls("c", "hear")) == 1


@pytest.mark.parametrize("capture_db", [None, 10.0])
def test_between_two_frames_that_follow_each_other_at_once_the_channel_was_not_idle(capture_db: float | None) -> None:
    """Slots are longer than frames: c cannot sense the second frame yet, but the first has ended just now."""
    medium = radio(capture_db, window_min=0, slot_s=0.02)
    frame_s = medium.preamble_s + (medium.header_bytes + size(Word("x" * 300))) * 8 / medium.bit_rate_bps
    bench = Bench(NEAR_AND_FAR, medium)
    bench.do(0.5, "a", say("x" * 300))
    bench.do(0.5 + frame_s, "b", say("y" * 300))
    bench.do(0.5 + 1.5 * frame_s, "c", say("z"))
    bench.run()
    assert bench.rows("time", "node", kind="send")[2] == (pytest.approx(0.5 + 2 * frame_s + medium.difs_s), "c")
