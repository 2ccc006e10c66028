"""Which rows of a node are kept, and ways read off at even steps; no Spark."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.errors import TraceError
from earshot.pipeline.traces import positions
from earshot.pipeline.traces.motion import legs_at_steps, resampled, rows_at_steps
from earshot.pipeline.traces.positions import REASONS, judged
from sizes import sized

KEPT = "kept"


def verdicts(rows: list[tuple[float, float]], max_speed: float = 10.0) -> list[str]:
    """Rows are (time, x)."""
    time, x = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return [(KEPT, *REASONS)[code] for code in judged(time, x, np.zeros(len(x)), max_speed)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(0, 0), (1, 10), (2, 20)], [KEPT, KEPT, KEPT]),
        ([(0, 0), (1, 5), (1, 5), (2, 9)], [KEPT, KEPT, "duplicate", KEPT]),
        ([(0, 0), (1, 5), (1, 6), (2, 9)], [KEPT, KEPT, "duplicate", KEPT]),
        ([(0, 0), (2, 5), (1, 3), (3, 9)], [KEPT, KEPT, "unordered", KEPT]),
        ([(0, 0), (1, 5), (2, 8), (0, 0), (1, 5), (3, 9)], [KEPT, KEPT, KEPT, "duplicate", "duplicate", KEPT]),
        ([(0, 0), (1, 500), (2, 9)], [KEPT, "impossible", KEPT]),
        ([(0, 900), (1, 0), (2, 9), (3, 12)], ["impossible", KEPT, KEPT, KEPT]),
        ([(0, 0), (1, 900), (2, 1800)], [KEPT, "impossible", "impossible"]),
        ([(5, 1)], [KEPT]),
        # One row of a wrong clock; two that came late; the last row of a wrong clock looks like a good one.
        ([(0, 0), (2999, 5), (1, 5), (2, 9)], [KEPT, "unordered", KEPT, KEPT]),
        ([(2999, 5), (1, 5), (2, 9), (3, 500)], ["unordered", KEPT, KEPT, "impossible"]),
        ([(0, 0), (3, 5), (4, 5), (1, 9), (2, 9), (5, 9)], [KEPT, KEPT, KEPT, "unordered", "unordered", KEPT]),
        ([(0, 0), (1, 5), (2999, 9), (2, 9)], [KEPT, KEPT, KEPT, "unordered"]),
    ],
)
def test_each_row_is_judged_by_the_last_one_kept(rows: list[tuple[float, float]], expected: list[str]) -> None:
    assert verdicts(rows) == expected


@given(
    rows=st.lists(st.tuples(st.integers(0, 12).map(float), st.integers(-50, 50).map(float)), min_size=1, max_size=25)
)
@settings(max_examples=sized(300, 3000))
def test_what_is_kept_is_in_order_and_possible(rows: list[tuple[float, float]]) -> None:
    kept = [row for row, verdict in zip(rows, verdicts(rows), strict=True) if verdict == KEPT]
    assert kept
    for (t0, x0), (t1, x1) in itertools.pairwise(kept):
        assert t0 < t1
        assert abs(x1 - x0) <= 10.0 * (t1 - t0) * (1 + 1e-9)


def verdicts_row_by_row(rows: list[tuple[float, float]], max_speed: float) -> list[str]:
    """What the module says of each reason, one row after the other."""
    wrong_clock = [
        i + 2 < len(rows) and (rows[i - 1][0] if i else -math.inf) < rows[i + 1][0] < rows[i + 2][0] < rows[i][0]
        for i in range(len(rows))
    ]
    rest = iter(verdicts_in_turn([row for row, wrong in zip(rows, wrong_clock, strict=True) if not wrong], max_speed))
    return ["unordered" if wrong else next(rest) for wrong in wrong_clock]


def verdicts_in_turn(rows: list[tuple[float, float]], max_speed: float) -> list[str]:

    def reachable(before: tuple[float, float], after: tuple[float, float]) -> bool:
        return abs(after[1] - before[1]) <= (after[0] - before[0]) * max_speed * (1 + 1e-9)

    found = [KEPT]
    kept = [rows[0]]
    if len(rows) > 2 and rows[0][0] < rows[1][0] < rows[2][0]:
        one, two, three = rows[:3]
        if not reachable(one, two) and not reachable(one, three) and reachable(two, three):
            found, kept = ["impossible", KEPT], [two]
    for row in rows[len(found) :]:
        if any(row[0] == time for time, _ in kept):
            found.append("duplicate")
        elif row[0] < kept[-1][0]:
            found.append("unordered")
        elif not reachable(kept[-1], row):
            found.append("impossible")
        else:
            found.append(KEPT)
            kept.append(row)
    return found


@given(
    rows=st.lists(st.tuples(st.integers(0, 12).map(float), st.integers(-50, 50).map(float)), min_size=1, max_size=25),
    max_speed=st.sampled_from([1.0, 10.0, 40.0, 100.0, math.inf]),
)
@settings(max_examples=sized(600, 6000))
def test_the_verdicts_are_those_of_one_row_after_the_other(rows: list[tuple[float, float]], max_speed: float) -> None:
    assert verdicts(rows, max_speed) == verdicts_row_by_row(rows, max_speed)


def test_copied_and_late_rows_are_found_without_a_walk_over_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(positions, "_judged_one_by_one")
    rows = [(float(t), t * 5.0) for t in (0, 1, 1, 3, 2, 1, 4, 4)]
    assert verdicts(rows) == [KEPT, KEPT, "duplicate", KEPT, "unordered", "duplicate", KEPT, "duplicate"]


ways = st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=8, unique=True).map(sorted), min_size=1, max_size=4)


@given(ways=ways, step=st.sampled_from([0.1, 0.5, 1.0, 3.0]), max_gap=st.sampled_from([math.inf, 4.0]))
@settings(max_examples=sized(200, 3000))
def test_ways_are_read_off_at_every_step_they_live_through(ways: list[list[int]], step: float, max_gap: float) -> None:
    way = np.repeat(np.arange(len(ways)), [len(times) for times in ways])
    time = np.array([t / 10 for times in ways for t in times])
    legs, at = legs_at_steps(way, time, step, max_gap)
    found = sorted((int(way[leg]), round(when / step)) for leg, when in zip(legs, at, strict=True))
    truth = set()
    for number, times in enumerate(ways):
        seconds = [t / 10 for t in times]
        for k in range(round(max(seconds) / step) + 1):
            when = k * step
            at_a_sample = any(abs(when - t) < 1e-6 for t in seconds)
            inside = any(a - 1e-6 < when < b + 1e-6 and b - a <= max_gap for a, b in itertools.pairwise(seconds))
            if at_a_sample or inside:
                truth.add((number, k))
    assert found == sorted(truth)
    assert len(found) <= rows_at_steps(len(time), len(ways), float(time.max() - time.min()), step, max_gap)


@pytest.mark.parametrize("wrong", [(0.0, 1.0), (math.nan, 1.0), (1.0, 0.0)])
def test_a_step_or_gap_that_cannot_be_is_refused(wrong: tuple[float, float]) -> None:
    with pytest.raises(TraceError, match="must be a positive number of seconds"):
        resampled(*wrong)
