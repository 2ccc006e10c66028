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


def test_windows_of_a_trace_with_dates_are_told_apart():
    window = TraceSlot(1769443022.04, 1769443522.0, present=5.0, phase="dense")
    assert str(window) == "1769443022 to 1769443522 s (dense, 5 nodes)"
    assert str(replace(window, present=1.2)).endswith("(dense, 1 node)")
