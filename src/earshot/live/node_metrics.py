"""The figures of a live node for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from earshot.live.node import Node

if TYPE_CHECKING:
    from prometheus_client.core import Metric

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
COUNTERS = {
    "send": ("packets_sent", "Packets sent."),
    "receive": ("packets_received", "Packets received."),
    "deliver": ("delivered", "Events delivered to subscriptions on this node."),
    "history": ("delivered_from_history", "Past events delivered to late subscriptions."),
    "late": ("delivered_late", "Events delivered after their type's deadline."),
}


class NodeMetrics:
    """A collector of prometheus_client: what the node has counted. It is read from another thread."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._latencies = [0] * (len(BUCKETS_S) + 1)
        self._latency_sum_s = 0.0
        node.host.on_deliver = self._delivered

    def _delivered(self, latency_s: float) -> None:
        self._latencies[bisect_left(BUCKETS_S, latency_s)] += 1
        self._latency_sum_s += max(latency_s, 0.0)

    def collect(self) -> Iterator[Metric]:
        """Called by prometheus_client at each request."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        host, name = self.node.host, [self.node.name]
        for key, (metric, about) in COUNTERS.items():
            yield _one(CounterMetricFamily(f"earshot_node_{metric}", about, labels=["node"]), name, host.counts[key])
        dropped = CounterMetricFamily("earshot_node_dropped", "What the node dropped.", labels=["node", "reason"])
        for reason, count in list(host.drops.items()):
            dropped.add_metric([*name, str(reason)], count)
        yield dropped
        about = "Other nodes heard recently."
        yield _one(GaugeMetricFamily("earshot_node_peers", about, labels=["node"]), name, len(self.node.peers()))
        about = "Subscriptions on this node."
        subscriptions = GaugeMetricFamily("earshot_node_subscriptions", about, labels=["node"])
        yield _one(subscriptions, name, host.subscriptions)
        about = "Bytes that wait for the socket."
        waiting = GaugeMetricFamily("earshot_node_backlog_bytes", about, labels=["node"])
        yield _one(waiting, name, host.transport.backlog_bytes)
        about = "From publication, by the publisher's clock, to delivery here."
        latency = HistogramMetricFamily("earshot_node_latency_seconds", about, labels=["node"])
        counts, total, buckets = list(self._latencies), 0, []
        for top, count in zip((*map(str, BUCKETS_S), "+Inf"), counts, strict=True):
            total += count
            buckets.append((top, float(total)))
        latency.add_metric(name, buckets, self._latency_sum_s)
        yield latency


def _one(family: Any, labels: list[str], value: float) -> Metric:
    family.add_metric(labels, value)
    found: Metric = family
    return found
