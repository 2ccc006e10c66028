"""What the judge makes of a run's metrics."""

from dataclasses import replace

from earshot.pipeline.advice.judge import _measured
from earshot.pipeline.advice.search import Measured
from earshot.pipeline.advice.windows import TraceSlot

COST = {"airtime_mean": 0.02, "latency_p95_s": 0.3}


def test_delivery_of_the_reachable_counts_and_a_run_in_which_nothing_is_reachable_says_nothing():
    assert _measured({**COST, "delivery_of_reachable": 0.9, "ceiling": 0.5, "delivery_ratio": 0.45}, 2.0) == Measured(
        0.9, 0.02, 0.3, 2.0
    )
    assert _measured({**COST, "ceiling": 0.0, "delivery_ratio": 0.0}, 2.0) is None
    assert _measured({**COST, "delivery_ratio": 0.45}, 2.0) == Measured(0.45, 0.02, 0.3, 2.0)
    assert _measured(COST, 2.0) is None


def test_windows_of_a_trace_with_dates_are_reported_as_dates():
    window = TraceSlot(1769443021.96, 1769443522.0, present=5.0, phase="dense")
    assert str(window) == "2026-01-26 15:57:02 to 16:05:22 UTC (dense, 5 nodes)"
    over_midnight = replace(window, end_s=1769443522.0 + 43_200)
    assert str(over_midnight) == "2026-01-26 15:57:02 to 2026-01-27 04:05:22 UTC (dense, 5 nodes)"
    assert str(replace(window, present=1.2)).endswith("(dense, 1 node)")
