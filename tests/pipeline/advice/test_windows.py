"""Windows: seen and unseen parts of a trace never overlap, and both cover its phases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import TraceError
from earshot.pipeline.advice.windows import QUICK, THOROUGH, TraceSlot, mean_between, plan_windows

BUSY = [(float(10 * n), 20.0 if n < 30 else 200.0 if n < 60 else 90.0) for n in range(90)]


def overlap(one: TraceSlot, other: TraceSlot) -> bool:
    return one.start_s < other.end_s - 1e-6 and other.start_s < one.end_s - 1e-6


@given(
    st.floats(10.0, 20_000.0),
    st.lists(st.floats(0.0, 500.0), min_size=1, max_size=40),
    st.sampled_from([QUICK, THOROUGH]),
    st.floats(0.0, 100.0),
)
def test_no_unseen_window_overlaps_one_that_the_search_sees(span_s, counts, lengths, events_per_s):
    presence = [(span_s * n / len(counts), count) for n, count in enumerate(counts)]
    plan = plan_windows(presence, span_s, lengths, events_per_s)
    seen = {window for rung in plan.rungs for window in rung}
    first, second = plan.unseen
    assert first
    assert second
    for window in (*seen, *first, *second):
        assert -1e-6 <= window.start_s < window.end_s <= span_s + 1e-6
        used = plan.lengths.warm_up_of(window) + plan.lengths.cool_down_of(window)
        assert window.duration_s >= used + 4.0
    if plan.whole:
        assert not any(overlap(one, other) for one in (*first, *second) for other in seen)
    else:
        assert not {one.seed for one in (*first, *second)} & {one.seed for one in seen}
    assert not any(one.seed == other.seed and overlap(one, other) for one in first for other in second)
    assert all(len(set(rung)) == len(rung) >= 2 for rung in plan.rungs)


def test_both_sides_have_dense_and_sparse_windows():
    plan = plan_windows(BUSY, 900.0, THOROUGH)
    seen = {round(window.present) for window in plan.rungs[-1]}
    unseen = {round(window.present) for window in plan.unseen[0]}
    assert max(seen) == 200
    assert max(unseen) >= 100
    assert min(seen) == 20
    assert min(unseen) <= 90
    assert {window.phase for window in (*plan.rungs[-1], *plan.unseen[0])} >= {"dense", "sparse"}


@pytest.mark.parametrize("lengths", [QUICK, THOROUGH])
def test_every_rung_has_the_densest_and_the_sparsest_phase(lengths):
    for rung in plan_windows(BUSY, 900.0, lengths).rungs:
        assert (max(window.present for window in rung), min(window.present for window in rung)) == (200.0, 20.0)


def test_rungs_grow_in_number_or_length():
    plan = plan_windows(BUSY, 900.0, THOROUGH)
    sizes = [(len(rung), rung[0].duration_s) for rung in plan.rungs]
    assert sizes == [(2, 30.0), (3, 40.0), (4, 75.0), (6, 75.0)]


def test_where_few_nodes_are_present_windows_last_longer():
    few, many = (plan_windows([(0.0, count)], 9000.0, QUICK).lengths for count in (3.0, 300.0))
    assert (many.brief_s, many.long_s) == (22.0, 50.0)
    assert (few.brief_s, few.long_s, few.warm_up_s) == (220.0, 500.0, 12.0)


def test_where_few_events_are_published_windows_last_longer():
    lengths = plan_windows([(0.0, 300.0)], 9000.0, QUICK, events_per_s=0.25).lengths
    assert lengths.brief_s == pytest.approx(22.0 * 40.0 / 13.0)


def test_a_trace_of_five_minutes_has_two_slots_to_see_two_to_judge_and_two_that_are_kept_back():
    plan = plan_windows([(0.0, 600.0)], 300.0, THOROUGH)
    assert [len(rung) for rung in plan.rungs] == [2, 2, 2, 4]
    assert [[one.duration_s for one in group] for group in plan.unseen] == [[50.0, 50.0], [50.0, 50.0]]


def test_a_slot_in_which_nodes_arrive_is_a_rush():
    plan = plan_windows([(0.0, 10.0), (320.0, 300.0)], 600.0, QUICK)
    assert "rush" in {window.phase for window in plan.rungs[2]}


def test_a_short_trace_is_one_slot_with_other_seeds_and_a_shorter_one_is_refused():
    plan = plan_windows([(5.0, 8.0)], 30.0, THOROUGH)
    assert not plan.whole
    for group, seeds in zip(plan.unseen, [(101, 102, 103), (201, 202, 203)], strict=True):
        assert [(one.start_s, one.end_s, one.seed) for one in group] == [(5.0, 30.0, seed) for seed in seeds]
    with pytest.raises(TraceError, match="lasts 9 s; advice needs at least 10 s"):
        plan_windows([(5.0, 8.0)], 14.0, THOROUGH)


def test_the_mean_of_a_span_weighs_by_time():
    assert mean_between([(0.0, 10.0), (30.0, 40.0)], 0.0, 40.0, 40.0) == 17.5


def test_windows_without_nodes_are_left_out_and_those_kept_back_take_the_place_of_the_first():
    plan = plan_windows([(10.0 * n, 60.0) for n in range(90)], 900.0, QUICK)
    first, second = plan.unseen
    assert plan.where(lambda _: True) == plan
    gap = first[0]
    assert plan.where(lambda window: window != gap).unseen == (first[1:], second)
    found = plan.where(lambda window: window not in first)
    assert (found.rungs, found.unseen) == (plan.rungs, (second, ()))
    seen = plan.rungs[0]
    assert plan.where(lambda window: window not in seen).rungs == plan.rungs[1:]
    for nobody in (plan.unseen, plan.rungs):
        empty = {window for group in nobody for window in group}
        with pytest.raises(TraceError, match="has no nodes for most of its time: choose a part of it with --window"):
            plan.where(lambda window, empty=empty: window not in empty)
