"""Capture at its margin, from the first moment of a run, and what a node does after it has sent."""

from __future__ import annotations

import pytest
from small_networks import Bench, Word, say, standing

from earshot.simulation.media.links import LinkScript
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


# Which of several frames is read: senders a, b, d, e on all sides of the receiver r, which alone hears them.

PREAMBLE_S = 2.0**-12
"Times that are sums of powers of two are exact."


def read_by_r(capture_db: float, *frames: tuple[float, float], r_sends_at: float | None = None) -> list[int]:
    """The frames that r reads, by their place in the list. Each begins this many preambles after the first second and
    arrives with this power, in units of the least that can be read; from a quarter of that on r senses it."""
    places = [(direction * 100.0 / power**0.5, 0.0) for (_, power), direction in zip(frames, (1, -1) * 3, strict=False)]
    senders = "abdefg"[: len(frames)]
    medium = Contention(
        range_m=100.0,
        carrier_range_m=200.0,
        capture_db=capture_db,
        preamble_s=PREAMBLE_S,
        links=LinkScript(graph=tuple((sender, "r") for sender in senders)),
    )
    bench = Bench(standing(*places, (0, 0), names=f"{senders}r"), medium)
    for number, (sender, (preambles, _)) in enumerate(zip(senders, frames, strict=True)):
        bench.do(1.0 + preambles * PREAMBLE_S, sender, say(f"{number}" + "x" * 600))
    if r_sends_at is not None:
        bench.do(1.0 + r_sends_at * PREAMBLE_S, "r", say("r"))
    return [int(packet.text[0]) for packet, _, _ in bench.run().calls("r", "hear")]


@pytest.mark.parametrize(("power", "read"), [(8.0, [1]), (4.0, [])])
def test_a_frame_is_read_at_any_time_beside_one_that_cannot_be_read_and_is_weaker_by_the_margin(
    power: float, read: list[int]
) -> None:
    assert read_by_r(10.0, (0.0, 0.5), (2.0, power)) == read


def test_of_two_frames_alike_the_first_is_read_if_capture_needs_no_margin() -> None:
    assert read_by_r(0.0, (0.0, 4.0), (0.5, 4.0)) == [0]
    assert read_by_r(0.0, (0.0, 4.0), (2.0, 4.0)) == [0]


def test_a_node_that_was_sending_when_a_frame_began_reads_a_later_one_that_is_as_strong() -> None:
    """The frame that began while it sent, too early to be stopped by it, is only noise."""
    assert read_by_r(0.0, (0.01, 4.0), (3.0, 4.0), r_sends_at=0.0) == [1]
    assert read_by_r(0.0, (0.01, 4.0), (3.0, 3.9), r_sends_at=0.0) == []
    assert read_by_r(0.0, (0.01, 4.0), (0.02, 8.0), r_sends_at=0.0) == [], "it still sends"


def test_the_preamble_ends_with_its_last_moment() -> None:
    assert read_by_r(10.0, (0.0, 1.0), (0.9375, 64.0)) == [1]
    assert read_by_r(10.0, (0.0, 1.0), (1.0, 64.0)) == []


def test_a_frame_that_is_read_instead_has_a_preamble_of_its_own() -> None:
    assert read_by_r(10.0, (0.0, 1.0), (0.75, 16.0), (1.5, 256.0)) == [2]
    assert read_by_r(10.0, (0.0, 1.0), (0.75, 16.0), (1.75, 256.0)) == []


def test_two_frames_that_spoiled_each_other_are_noise_for_a_third() -> None:
    assert read_by_r(10.0, (0.0, 4.0), (2.0, 4.0), (3.0, 81.0)) == [2]
    assert read_by_r(10.0, (0.0, 4.0), (2.0, 4.0), (3.0, 79.0)) == []


def test_a_frame_outlasts_as_many_weak_ones_as_stay_below_the_margin_together() -> None:
    assert read_by_r(10.0, (0.0, 40.0), (0.25, 1.9), (2.0, 1.9)) == [0]
    assert read_by_r(10.0, (0.0, 40.0), (0.25, 1.9), (2.0, 1.9), (3.0, 1.0)) == []


def test_a_frame_that_is_too_weak_to_be_read_still_spoils_another() -> None:
    assert read_by_r(10.0, (0.0, 4.0), (0.5, 0.5)) == []
    assert read_by_r(10.0, (0.0, 4.0), (2.0, 0.5)) == []
    assert read_by_r(10.0, (0.0, 4.0), (2.0, 0.25)) == [0]
