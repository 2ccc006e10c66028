"""The parts of a plan of windows by themselves: lengths, phases, rungs, and who sees which slot."""

import math

import pytest

from earshot.errors import TraceError
from earshot.pipeline.advice.windows import (
    QUICK,
    THOROUGH,
    Lengths,
    TraceSlot,
    _at,
    _dealt,
    _fitted,
    _rungs,
    _shortened,
    _with_phases,
    mean_between,
    plan_windows,
)


def test_the_two_sets_of_lengths() -> None:
    assert Lengths(
        brief_s=22.0, short_s=32.0, long_s=50.0, seen=3, unseen=2, warm_up_s=12.0, cool_down_s=3.0
    ) == QUICK  # fmt: skip
    assert Lengths(
        brief_s=30.0, short_s=40.0, long_s=75.0, seen=4, unseen=3, warm_up_s=15.0, cool_down_s=5.0
    ) == THOROUGH  # fmt: skip
    longer = QUICK.times(3.0)
    assert (longer.brief_s, longer.short_s, longer.long_s, longer.warm_up_s, longer.seen) == (
        66.0,
        96.0,
        150.0,
        12.0,
        3,
    )


@pytest.mark.parametrize(
    ("span_s", "expected"),
    [
        (10.0, (10.0, 10.0, 10.0)),
        (39.0, (22.0, 32.0, 39.0)),
        (40.0, (20.0, 20.0, 20.0)),
        (65.0, (22.0, 32.0, 32.5)),
        (66.0, (22.0, 22.0, 22.0)),
        (119.0, (22.0, 23.8, 23.8)),
        (132.0, (22.0, 22.0, 22.0)),
        (240.0, (22.0, 32.0, 40.0)),
        (300.0, (22.0, 32.0, 50.0)),
        (9000.0, (22.0, 32.0, 50.0)),
    ],
)
def test_short_traces_have_shorter_windows_so_that_there_are_up_to_six_slots(
    span_s: float, expected: tuple[float, float, float]
) -> None:
    found = _fitted(QUICK, span_s, 30.0, math.inf)
    assert (found.brief_s, found.short_s, found.long_s) == pytest.approx(expected)


def test_where_windows_are_long_a_short_trace_has_four_slots_if_they_last_half_a_minute() -> None:
    assert _fitted(QUICK, 120.0, 10.0, math.inf).long_s == 30.0
    assert _fitted(QUICK, 119.0, 10.0, math.inf).long_s == pytest.approx(59.5)


@pytest.mark.parametrize(
    ("present", "events_per_s", "times"),
    [
        (30.0, math.inf, 1.0),
        (300.0, math.inf, 1.0),
        (15.0, math.inf, 2.0),
        (1.0, math.inf, 20.0),
        (0.1, math.inf, 20.0),
        (30.0, 10.0 / 13.0, 1.0),
        (30.0, 5.0 / 13.0, 2.0),
        (15.0, 2.5 / 13.0, 4.0),
        (30.0, 0.0, 20.0),
    ],
)
def test_windows_last_longer_where_nodes_or_events_are_few_up_to_twenty_times(
    present: float, events_per_s: float, times: float
) -> None:
    """A brief window judges 13 s: without half of the warm-up, and without the cool-down."""
    found = _fitted(QUICK, 1e6, present, events_per_s)
    assert (found.brief_s, found.short_s, found.long_s) == pytest.approx((22.0 * times, 32.0 * times, 50.0 * times))


def test_a_window_is_written_with_its_times_phase_nodes_and_a_seed_that_is_not_the_first() -> None:
    slot = TraceSlot(10.04, 60.0, 1, 12.4, "dense")
    assert str(slot) == "10 to 60 s (dense, 12 nodes)"
    assert str(TraceSlot(1234567.25, 1234600.0, 2, 0.6, "rush")) == "1234567.2 to 1234600 s (rush, 1 node, seed 2)"
    assert (TraceSlot(0.0, 1.0).seed, TraceSlot(0.0, 1.0).present, TraceSlot(0.0, 1.0).change) == (0, 0.0, 0.0)


PRESENCE = [(0.0, 10.0), (10.0, 20.0), (20.0, 40.0), (30.0, 100.0), (40.0, 70.0)]
SPANS = [(0.0, 10.0), (10.0, 20.0), (20.0, 30.0), (30.0, 40.0), (35.0, 45.0)]


def test_slots_are_dense_and_sparse_by_thirds_and_a_rush_where_three_tenths_come_or_go() -> None:
    found = _with_phases(SPANS, PRESENCE, 50.0)
    assert [(one.present, one.phase, one.change, one.seed) for one in found] == [
        (10.0, "sparse", 0.0, 0),
        (20.0, "sparse", 0.0, 0),
        (40.0, "usual", 0.0, 0),
        (100.0, "dense", 0.0, 0),
        (85.0, "rush", 0.3, 0),
    ]
    assert [(one.start_s, one.end_s) for one in found] == SPANS
    calm = _with_phases([(35.0, 45.0)], [(0.0, 100.0), (40.0, 70.1)], 50.0)[0]
    assert (calm.phase, calm.change) == ("usual", pytest.approx(0.299))


def test_where_all_slots_are_alike_or_empty_all_are_usual() -> None:
    assert {one.phase for one in _with_phases(SPANS, [(0.0, 7.0)], 50.0)} == {"usual"}
    assert {(one.phase, one.change) for one in _with_phases(SPANS, [(0.0, 0.0)], 50.0)} == {("usual", 0.0)}


def test_presence_at_a_time_and_on_average() -> None:
    assert [_at(PRESENCE, time) for time in (-5.0, 0.0, 9.9, 10.0, 99.0)] == [10.0, 10.0, 10.0, 20.0, 70.0]
    assert mean_between(PRESENCE, 5.0, 25.0, 50.0) == pytest.approx((50.0 + 200.0 + 200.0) / 20.0)
    assert mean_between(PRESENCE, 60.0, 70.0, 50.0) == 0.0


def test_a_shorter_window_is_the_middle_of_its_slot() -> None:
    slot = TraceSlot(100.0, 150.0, 3, 9.0, "dense", 0.1)
    assert _shortened(slot, 20.0) == TraceSlot(115.0, 135.0, 3, 9.0, "dense", 0.1)
    assert _shortened(slot, 60.0) == slot


def test_rungs_of_one_two_and_three_slots() -> None:
    one, two, three = (TraceSlot(100.0 * n, 100.0 * n + 50.0, present=9.0 - n) for n in range(3))

    def seeds(*seen: TraceSlot) -> list[list[tuple[float, float, int]]]:
        return [[(slot.start_s, slot.duration_s, slot.seed) for slot in rung] for rung in _rungs(seen, QUICK)]

    assert seeds(one) == [
        [(14.0, 22.0, 0), (14.0, 22.0, 1)],
        [(9.0, 32.0, 0), (9.0, 32.0, 1)],
        [(0.0, 50.0, 0), (0.0, 50.0, 1)],
        [(0.0, 50.0, 0), (0.0, 50.0, 1), (0.0, 50.0, 2), (0.0, 50.0, 3)],
    ]
    assert seeds(one, two)[2:] == [
        [(0.0, 50.0, 0), (100.0, 50.0, 0)],
        [(0.0, 50.0, 0), (100.0, 50.0, 0), (0.0, 50.0, 2), (100.0, 50.0, 2)],
    ]
    assert seeds(one, two, three)[3] == [
        (0.0, 50.0, 0), (100.0, 50.0, 0), (200.0, 50.0, 0), (0.0, 50.0, 2), (200.0, 50.0, 2),
    ], "the densest and the sparsest once more"  # fmt: skip
    assert seeds(one, two, three)[0] == [(14.0, 22.0, 0), (214.0, 22.0, 0)]
    assert [len(rung) for rung in seeds(one, two, three)] == [2, 3, 3, 5]


@pytest.mark.parametrize(
    ("count", "expected"),
    [(2, (1, 1, 0)), (3, (2, 1, 0)), (4, (2, 1, 1)), (5, (2, 2, 1)), (6, (2, 2, 2)), (7, (3, 2, 2))],
)
def test_how_many_slots_are_seen_judge_and_are_kept_back(count: int, expected: tuple[int, int, int]) -> None:
    slots = [TraceSlot(50.0 * n, 50.0 * n + 50.0, present=100.0 - n) for n in range(count)]
    groups = _dealt(slots, QUICK)
    assert tuple(map(len, groups)) == expected
    used = [slot for group in groups for slot in group]
    assert len(used) == len(set(used))
    assert all(group == sorted(group, key=lambda slot: -slot.present) for group in groups)


def test_the_slot_where_most_nodes_come_or_go_is_seen_if_nobody_else_has_it() -> None:
    def seen(change: float, phase: str, where: int) -> bool:
        slots = [TraceSlot(50.0 * n, 50.0 * n + 50.0, present=100.0 - n, phase="usual") for n in range(20)]
        slots[where] = TraceSlot(50.0 * where, 50.0 * where + 50.0, 0, 100.0 - where, phase, change)
        groups = _dealt(slots, QUICK)
        return slots[where] in groups[0] and groups[0].index(slots[where]) == 1 and len(groups[0]) == 3

    free = [where for where in range(20) if seen(0.5, "rush", where)]
    assert len(free) >= 12
    assert len([where for where in range(20) if seen(0.1, "usual", where)]) <= 1


def test_a_trace_without_positions_is_refused_and_ten_seconds_are_enough() -> None:
    with pytest.raises(TraceError, match="lasts 0 s; advice needs at least 10 s"):
        plan_windows([], 100.0, QUICK)
    assert plan_windows([(5.0, 8.0)], 15.0, QUICK).rungs[0][0].duration_s == 10.0


def test_slots_are_spread_evenly_over_the_whole_trace() -> None:
    plan = plan_windows([(100.0, 50.0), (160.0, 60.0)], 455.0, QUICK)
    used = sorted({(one.start_s, one.end_s) for group in (plan.rungs[2], *plan.unseen) for one in group})
    assert plan.whole
    assert len(used) == 7
    assert used == [pytest.approx((100.0 + n * 305.0 / 6.0, 150.0 + n * 305.0 / 6.0)) for n in range(7)]


def test_the_unseen_windows_stand_in_order_with_seed_1_and_4_where_none_are_kept_back() -> None:
    plan = plan_windows([(0.0, 60.0)], 60.0, QUICK)
    assert [[(one.start_s, one.seed) for one in group] for group in plan.unseen] == [[(30.0, 1)], [(30.0, 4)]]
    long = plan_windows([(0.0, 10.0), (300.0, 60.0), (500.0, 30.0)], 900.0, QUICK)
    for group in long.unseen:
        assert [one.start_s for one in group] == sorted(one.start_s for one in group)
        assert {one.seed for one in group} == {1}
