"""How busy the channel is: against a sum over fine steps of time, in records, and as the channel service."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_networks import Bench, Probe, Word, say, send_word, standing

from earshot.protocols.machine import QUIET_CHANNEL
from earshot.records.details import read_airtime
from earshot.simulation.faults import Crash, FaultSettings
from earshot.simulation.media.channel_use import BusyTime, Frame, RecentUse, busy_and_sent
from earshot.simulation.media.medium_settings import Contention, Lossy, MediumSettings, UnitDisk
from earshot.simulation.media.radios import RADIOS
from earshot.wire import size

NODES = 4
STEP_S = 1 / 64
"Frames begin and end on steps, so that counting steps is exact."

frames_in_order = st.lists(
    st.tuples(
        st.integers(0, 640), st.integers(1, 200), st.integers(0, NODES - 1), st.sets(st.integers(0, NODES - 1))
    ).map(lambda one: (one[0] * STEP_S, (one[0] + one[1]) * STEP_S, one[2], sorted(one[3]))),
    max_size=12,
).map(lambda frames: sorted(frames, key=lambda frame: frame[0]))


def counted(frames: list[Frame], start: float, end: float, node: int, *, sent: bool) -> float:
    """The time in which the node senses or sends a frame, step by step. Overlapping frames of one sender count
    each, as nothing says that they cannot be."""
    steps = np.arange(start, end, STEP_S)
    if sent:
        return sum(
            STEP_S * float(((frame[0] <= steps) & (steps < frame[1])).sum()) for frame in frames if frame[2] == node
        )
    busy = np.zeros(len(steps), dtype=bool)
    for begins, ends, sender, sensed_by in frames:
        if node == sender or node in sensed_by:
            busy |= (begins <= steps) & (steps < ends)
    return float(busy.sum()) * STEP_S


@given(frames_in_order, st.integers(0, 300), st.integers(1, 600))
def test_busy_time_is_the_union_of_what_a_node_senses(frames: list[Frame], start: int, steps: int) -> None:
    span = start * STEP_S, (start + steps) * STEP_S
    busy_s, sent_s = busy_and_sent(frames, *span, NODES)
    assert busy_s == pytest.approx([counted(frames, *span, node, sent=False) for node in range(NODES)])
    assert sent_s == pytest.approx([counted(frames, *span, node, sent=True) for node in range(NODES)])


@given(frames_in_order, st.lists(st.integers(1, 200), max_size=5))
def test_what_is_taken_piece_by_piece_is_the_whole(frames: list[Frame], cuts: list[int]) -> None:
    meter = BusyTime(NODES)
    times = [*np.cumsum(cuts).astype(float) * STEP_S, 20.0]
    waiting, taken = list(frames), []
    for time in times:
        while waiting and waiting[0][0] < time:
            meter.add(waiting.pop(0))
        taken.append(meter.take(1, time))
    assert sum(span_s for span_s, _, _ in taken) == pytest.approx(20.0)
    assert sum(busy_s for _, busy_s, _ in taken) == pytest.approx(counted(frames, 0.0, 20.0, 1, sent=False))


@given(frames_in_order, st.integers(0, 12), st.booleans())
def test_the_recent_share_is_of_the_last_five_whole_seconds(frames: list[Frame], second: int, asks_often: bool) -> None:
    recent = RecentUse(NODES)
    for frame in (frame for frame in frames if frame[0] < second + 0.5):
        recent.add(frame)
        if asks_often:
            recent.share(0, frame[0])
    first = max(second - 5, 0)
    busy_s = counted(frames, first, second, 2, sent=False)
    assert recent.share(2, second + 0.5) == pytest.approx(busy_s / (second - first) if second else 0.0)


def test_a_second_that_has_not_ended_does_not_count() -> None:
    """A frame of the next second is reported before somebody asks in this one: its half second is still open."""
    recent = RecentUse(2)
    recent.add((1.0, 1.5, 0, (1,)))
    recent.add((2.5, 2.75, 0, (1,)))
    recent.add((3.0, 3.25, 0, (1,)))
    assert recent.share(1, 2.9) == pytest.approx(0.5 / 2)


# In a run.


def airtimes(bench: Bench, node: str) -> list[tuple[float, float, float, float]]:
    rows = bench.rows("time", "detail", kind="airtime", node=node)
    details = [(time, read_airtime(detail)) for time, detail in rows]
    return [(time, one.span_s, one.busy_s, one.sent_s) for time, one in details if one is not None]


def near(*values: float) -> Any:
    return pytest.approx(values, abs=1e-6)


def test_every_present_node_records_its_airtime_each_ten_seconds_and_at_the_end() -> None:
    medium = Contention(range_m=10.0, carrier_range_m=10.0)
    bench = Bench(standing((0, 0), (8, 0), (16, 0)), medium, duration_s=25.0)
    bench.do(1.0, "a", say("hello"))
    bench.do(12.0, "a", send_word("b", "hello"))
    bench.run()
    on_air_s = RADIOS["802.11b-2M"].airtime_s(size(Word("hello")))
    ack_s = medium.preamble_s + medium.ack_bytes * 8 / medium.bit_rate_bps
    assert airtimes(bench, "a") == [
        near(10.0, 10.0, on_air_s, on_air_s),
        near(20.0, 10.0, on_air_s + ack_s, on_air_s),
        near(25.0, 5.0, 0.0, 0.0),
    ]
    assert airtimes(bench, "b")[1] == near(20.0, 10.0, on_air_s + ack_s, ack_s)
    assert airtimes(bench, "c")[:2] == [near(10.0, 10.0, 0.0, 0.0), near(20.0, 10.0, ack_s, 0.0)]


def test_a_node_that_was_away_measures_from_its_return() -> None:
    faults = FaultSettings(crashes=(Crash(node="b", time_s=4.0, down_s=3.0),))
    bench = Bench(standing((0, 0), (8, 0)), Contention(range_m=10.0), duration_s=10.0, faults=faults)
    for time in (1.0, 5.0, 8.0):
        bench.do(time, "a", say("hello"))
    bench.run()
    on_air_s = RADIOS["802.11b-2M"].airtime_s(size(Word("hello")))
    assert airtimes(bench, "b") == [near(4.0, 4.0, on_air_s, 0.0), near(10.0, 3.0, on_air_s, 0.0)]
    assert airtimes(bench, "a") == [near(10.0, 10.0, 3 * on_air_s, 3 * on_air_s)]


@pytest.mark.parametrize(
    "medium", [UnitDisk(range_m=10.0, radio="lora-sf7"), Lossy(range_m=10.0, certain_m=10.0, radio="lora-sf7")]
)
def test_a_radio_without_collisions_has_the_airtime_of_its_preset(medium: MediumSettings) -> None:
    bench = Bench(standing((0, 0), (8, 0)), medium, duration_s=10.0)
    bench.do(1.0, "a", say("hello"))
    bench.do(5.0, "a", send_word("b", "hello"))
    bench.run()
    on_air_s = RADIOS["lora-sf7"].airtime_s(size(Word("hello")))
    assert airtimes(bench, "a") == [near(10.0, 10.0, 2 * on_air_s, 2 * on_air_s)]
    assert airtimes(bench, "b") == [near(10.0, 10.0, 2 * on_air_s, 0.0)]


def test_an_ideal_radio_has_no_airtime() -> None:
    bench = Bench(standing((0, 0), (8, 0)), UnitDisk(range_m=10.0)).run()
    assert bench.rows("node", kind="airtime") == []


def test_machines_learn_how_busy_the_channel_is() -> None:
    shares: dict[float, tuple[float, float]] = {}
    bench = Bench(standing((0, 0), (8, 0), (99, 0)), Contention(range_m=10.0, radio="lora-sf7"))
    bench.do(1.0, "a", say("x" * 100))
    for time in (0.2, 2.5, 7.5):
        bench.do(time, "b", lambda probe: shares.update({bench.engine.queue.now: asked(probe, bench)}))
    bench.do(2.5, "c", lambda probe: shares.update({-1.0: asked(probe, bench)}))
    bench.run()
    radio = RADIOS["lora-sf7"]
    on_air_s = radio.airtime_s(size(Word("x" * 100)))
    expected = {0.2: 0.0, 2.5: on_air_s / 2, 7.5: 0.0, -1.0: 0.0}
    assert {time: pytest.approx(share) for time, share in expected.items()} == {
        round(time, 6): share for time, (share, _) in shares.items()
    }
    assert {airtime_s for _, airtime_s in shares.values()} == {radio.airtime_s(100)}


def asked(probe: Probe, bench: Bench) -> tuple[float, float]:
    return probe.channel.busy_share(bench.engine.queue.now), probe.channel.airtime_s(100)


def test_a_channel_that_nobody_measures_is_quiet() -> None:
    assert (QUIET_CHANNEL.busy_share(3.0), QUIET_CHANNEL.airtime_s(1000)) == (0.0, 0.0)
