"""What Prometheus reads of a watch: every figure of a commit with its labels, from a commit that is made here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from earshot.pipeline.watch.exported_metrics import ExportedMetrics
from earshot.pipeline.watch.running_metrics import MetricSums, RunningMetrics

ALL = ("net", "steam", "all", "")


def exported(metrics: RunningMetrics | None, **counts: Any) -> dict[str, dict[tuple[str, ...], float]]:
    """By name of the sample, the values by the values of its labels."""
    known = {"nodes": 3, "open_events": 2, "records": 90, "late": 4, "rejects": 5, "committed_at": 20.0, "newest": 17.5}
    commit: Any = SimpleNamespace(metrics=metrics, counts={**known, **counts}, batch_s=1.5)
    collector = ExportedMetrics("w")
    assert list(collector.collect()) == [], "nothing before the first commit"
    collector.update(commit)
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in collector.collect():
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_counts_of_the_watch_itself() -> None:
    found = exported(RunningMetrics())
    names = ("nodes", "open_events", "records_total", "late_total", "rejects_total", "batch_seconds", "lag_seconds")
    assert {name: found[f"earshot_watch_{name}"] for name in names} == {
        name: {("w",): value} for name, value in zip(names, (3, 2, 90, 4, 5, 1.5, 2.5), strict=True)
    }


def test_a_watch_without_records_or_with_clocks_ahead_has_no_lag() -> None:
    assert exported(RunningMetrics(), newest=None)["earshot_watch_lag_seconds"] == {("w",): 0.0}
    assert exported(RunningMetrics(), newest=25.0)["earshot_watch_lag_seconds"] == {("w",): 0.0}
    assert exported(None) == {}


def test_figures_are_reported_by_group_but_not_by_minute_and_what_is_not_known_is_left_out() -> None:
    sums = MetricSums(7, 10, 8, 6, 30, 6, {0.1: 4, 2.0: 2})
    empty = MetricSums(1)
    minute = (*ALL[:2], "minute", "3")
    found = exported(RunningMetrics({ALL: sums, ("net", "cbf", "all", ""): empty, minute: sums}))
    group, other = ("w", *ALL), ("w", "net", "cbf", "all", "")
    assert found["earshot_delivery_ratio"] == {group: 0.6}
    assert found["earshot_precision"] == {group: 0.75}
    assert found["earshot_hops"] == {group: 5.0}
    totals = {name: found[f"earshot_{name}_total"] for name in ("events", "expected", "delivered", "met")}
    assert totals == {
        "events": {group: 7, other: 1}, "expected": {group: 10, other: 0}, "delivered": {group: 8, other: 0},
        "met": {group: 6, other: 0},
    }  # fmt: skip


def test_latencies_are_counted_up_to_the_end_of_each_bucket() -> None:
    found = exported(RunningMetrics({ALL: MetricSums(1, 9, 9, 9, latencies={0.1: 4, 0.11: 1, 2.0: 3, 60.0: 1})}))
    buckets = {labels[-1]: value for labels, value in found["earshot_latency_seconds_bucket"].items()}
    assert [buckets[end] for end in ("0.05", "0.1", "0.25", "1.0", "2.5", "30.0", "+Inf")] == [0, 4, 5, 5, 8, 8, 9]
    assert found["earshot_latency_seconds_count"] == {("w", *ALL): 9}
    (total,) = found["earshot_latency_seconds_sum"].values()
    assert round(total, 9) == 66.51


def test_losses_are_reported_by_type_area_and_reason() -> None:
    metrics = RunningMetrics()
    row = {"network": "net", "protocol": "steam", "type": "News", "area": "0,0", "minute": "1", "reason": "never heard"}
    counts = {"events": 0, "pairs": 4, "wanted": 1, "got": 0, "latency_s": None, "hops": 0, "hops_counted": 0}
    metrics.add([{**row, **counts}])
    assert exported(metrics)["earshot_lost_total"] == {("w", "net", "steam", "News", "0,0", "never heard"): 4}
