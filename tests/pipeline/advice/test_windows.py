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
)
def test_no_unseen_window_overlaps_one_that_the_search_sees(span_s, counts, lengths):
    presence = [(span_s * n / len(counts), count) for n, count in enumerate(counts)]
    plan = plan_windows(presence, span_s, lengths)
    seen = {window for rung in plan.rungs for window in rung}
    assert plan.unseen
    for window in (*seen, *plan.unseen):
        assert -1e-6 <= window.start_s < window.end_s <= span_s + 1e-6
        assert window.duration_s >= plan.lengths.warm_up_s + plan.lengths.cool_down_s + 4.0
    if plan.whole:
        assert not any(overlap(one, other) for one in plan.unseen for other in seen)
    else:
        assert not {one.seed for one in plan.unseen} & {one.seed for one in seen}
    assert all(len(set(rung)) == len(rung) for rung in plan.rungs)


def test_both_sides_have_dense_and_sparse_windows():
    plan = plan_windows(BUSY, 900.0, THOROUGH)
    seen = {round(window.present) for window in plan.rungs[-1]}
    unseen = {round(window.present) for window in plan.unseen}
    assert max(seen) == 200
    assert max(unseen) >= 100
    assert min(seen) == 20
    assert min(unseen) <= 90
    assert {window.phase for window in (*plan.rungs[-1], *plan.unseen)} >= {"dense", "sparse"}


def test_rungs_grow_in_number_or_length():
    plan = plan_windows(BUSY, 900.0, THOROUGH)
    sizes = [(len(rung), rung[0].duration_s) for rung in plan.rungs]
    assert sizes == [(1, 40.0), (2, 40.0), (4, 75.0), (8, 75.0)]


def test_a_slot_in_which_nodes_arrive_is_a_rush():
    plan = plan_windows([(0.0, 10.0), (120.0, 300.0)], 200.0, QUICK)
    assert "rush" in {window.phase for window in (*plan.rungs[2], *plan.unseen)}


def test_a_short_trace_is_one_slot_with_other_seeds_and_a_shorter_one_is_refused():
    plan = plan_windows([(5.0, 8.0)], 30.0, THOROUGH)
    assert not plan.whole
    assert [(one.start_s, one.end_s, one.seed) for one in plan.unseen] == [(5.0, 30.0, n) for n in (101, 102, 103)]
    with pytest.raises(TraceError, match="lasts 9 s; advice needs at least 10 s"):
        plan_windows([(5.0, 8.0)], 14.0, THOROUGH)


def test_the_mean_of_a_span_weighs_by_time():
    assert mean_between([(0.0, 10.0), (30.0, 40.0)], 0.0, 40.0, 40.0) == 17.5
