"""The figures of a watch for Prometheus, at an address of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from earshot.pipeline.watch.running_metrics import GROUPED_BY
from earshot.pipeline.watch.watch_state import Commit

if TYPE_CHECKING:
    from prometheus_client.core import Metric

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
GAUGES = {
    "delivery_ratio": "Delivered of expected (event, node) pairs.",
    "precision": "Expected of delivered (event, node) pairs.",
    "hops": "Mean hops of a delivery.",
}
TOTALS = {
    "events": "Events published.",
    "expected": "(event, node) pairs that the oracle expects.",
    "delivered": "(event, node) pairs delivered.",
    "met": "(event, node) pairs expected and delivered.",
}
OF_WATCH = {
    "nodes": "Nodes that have not left.",
    "open_events": "Events whose deliveries are still awaited.",
}
GROWING = {
    "records": "Records read.",
    "late": "Records and deliveries that came too late to count.",
    "rejects": "Lines that are no records.",
}


class ExportedMetrics:
    """A collector of prometheus_client: the figures of the last commit."""

    def __init__(self, watch: str) -> None:
        self.watch = watch
        self.commit: Commit | None = None

    def update(self, commit: Commit) -> None:
        """Show this commit from now on."""
        self.commit = commit

    def collect(self) -> Iterator[Metric]:
        """Called by prometheus_client at each request."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        commit = self.commit
        if commit is None or commit.metrics is None:
            return
        counts, watch = commit.counts, [self.watch]
        for name, about in OF_WATCH.items():
            yield _one(GaugeMetricFamily(f"earshot_watch_{name}", about, labels=["watch"]), watch, counts[name])
        for name, about in GROWING.items():
            yield _one(CounterMetricFamily(f"earshot_watch_{name}", about, labels=["watch"]), watch, counts[name])
        lag_s = max(0.0, counts["committed_at"] - counts["newest"]) if counts["newest"] is not None else 0.0
        about = "From the newest record to its batch's commit."
        yield _one(GaugeMetricFamily("earshot_watch_lag_seconds", about, labels=["watch"]), watch, lag_s)
        about = "How long the last batch took."
        yield _one(GaugeMetricFamily("earshot_watch_batch_seconds", about, labels=["watch"]), watch, commit.batch_s)
        labels = ["watch", *GROUPED_BY]
        groups = [(key, sums) for key, sums in commit.metrics.groups.items() if key[2] != "minute"]
        for name, about in GAUGES.items():
            gauge = GaugeMetricFamily(f"earshot_{name}", about, labels=labels)
            for group, sums in groups:
                if (value := dict(sums.figures()).get(name)) is not None:
                    gauge.add_metric([self.watch, *group], value)
            yield gauge
        for name, about in TOTALS.items():
            counter = CounterMetricFamily(f"earshot_{name}", about, labels=labels)
            for group, sums in groups:
                counter.add_metric([self.watch, *group], getattr(sums, name))
            yield counter
        yield self._latencies(groups, labels)
        yield self._losses(commit)

    def _latencies(self, groups: Iterable[Any], labels: list[str]) -> Metric:
        from prometheus_client.core import HistogramMetricFamily

        about = "From publication to delivery of expected pairs."
        found = HistogramMetricFamily("earshot_latency_seconds", about, labels=labels)
        for group, sums in groups:
            counts = sums.latencies
            buckets = [(str(top), float(sum(n for value, n in counts.items() if value <= top))) for top in BUCKETS_S]
            total = float(sum(counts.values()))
            found.add_metric(
                [self.watch, *group], [*buckets, ("+Inf", total)], sum(value * n for value, n in counts.items())
            )
        return found

    def _losses(self, commit: Commit) -> Metric:
        from prometheus_client.core import CounterMetricFamily

        lost = CounterMetricFamily(
            "earshot_lost",
            "Expected pairs that were not delivered.",
            labels=["watch", "network", "protocol", "type", "area", "reason"],
        )
        assert commit.metrics is not None
        for loss, count in commit.metrics.losses.items():
            lost.add_metric([self.watch, *loss], count)
        return lost


def _one(family: Any, labels: list[str], value: float) -> Metric:
    family.add_metric(labels, value)
    found: Metric = family
    return found
