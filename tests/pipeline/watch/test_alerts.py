"""Alerts and exported metrics of a watch: what they measure, when they change, where they go."""

from __future__ import annotations

import http.server
import json
import re
import socket
import threading
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from earshot.cli.options import serve_metrics
from earshot.errors import SettingsError, UsageError
from earshot.pipeline.watch.alerts import Alert, AlertNotice, Alerts, to_command, to_file, to_webhook
from earshot.pipeline.watch.exported_metrics import ExportedMetrics
from earshot.pipeline.watch.running_metrics import RunningMetrics
from earshot.pipeline.watch.watch_state import Commit, WatchSettings

ROOT = Path(__file__).parents[3]


class Stream:
    """Commits as a watch makes them: each adds pairs to the sums of all before it."""

    def __init__(self) -> None:
        self.metrics = RunningMetrics()
        self.batch = -1

    def commit(self, at: float, pairs: Iterable[dict[str, Any]] = (), **counts: float) -> Commit:
        for pair in pairs:
            row = {
                "network": "n",
                "protocol": "steam",
                "type": "Siren",
                "area": "0,0",
                "minute": "1",
                "hops": 0,
                "hops_counted": 0,
            }
            row |= {"events": 0, "pairs": 1, "wanted": True, "got": True, "latency_s": 0.02, "reason": None}
            self.metrics.add([row | {"events": 1, "pairs": 0}, row | pair])
        self.batch += 1
        counted = {"newest": at, "committed_at": at + 1.0, "nodes": 5, "rejects": 0, "late": 0} | counts
        counted |= {"open_events": 2, "records": 100}
        return Commit(self.batch, counted, [], [], (), self.metrics.copy(), 0.25)


MISSED = {"got": False, "latency_s": None, "reason": "never heard"}


def changes(alerts: Alerts, commit: Commit) -> list[tuple[str, str, float | None]]:
    return [(notice.state, notice.key, notice.value) for notice in alerts.update(commit)]


def test_an_alert_is_raised_once_and_cleared_when_the_window_has_recovered() -> None:
    alerts = Alerts([Alert.parse("delivery_ratio < 0.95 for 2m")], [])
    stream = Stream()
    assert changes(alerts, stream.commit(1000.0, [{}] * 100)) == []
    assert changes(alerts, stream.commit(1060.0, [{}] * 9 + [MISSED])) == []  # 109 of 110 in the window
    assert changes(alerts, stream.commit(1130.0, [{}] * 9 + [MISSED])) == [("raised", "", 18 / 20)]
    assert changes(alerts, stream.commit(1150.0, [MISSED])) == []  # it holds already
    assert changes(alerts, stream.commit(1300.0, [{}] * 10)) == [("cleared", "", 1.0)]


def test_a_window_without_events_clears_the_alert() -> None:
    alerts = Alerts([Alert.parse("delivery_ratio < 0.95 for 1m")], [])
    stream = Stream()
    assert changes(alerts, stream.commit(0.0, [MISSED])) == [("raised", "", 0.0)]
    assert changes(alerts, stream.commit(100.0)) == [("cleared", "", None)]


def test_types_and_areas_are_judged_apart() -> None:
    by_type = Alerts([Alert.parse("delivery_ratio < 0.5 for 1m by type")], [])
    one_area = Alerts([Alert.parse("lost > 1 for 1m where area = 1000,0")], [])
    commit = Stream().commit(
        0.0, [{}, {"type": "Jam"} | MISSED, {"area": "1000,0"} | MISSED, {"area": "1000,0"} | MISSED, {}, {}]
    )
    assert changes(by_type, commit) == [("raised", "Jam", 0.0)]
    assert changes(one_area, commit) == [("raised", "1000,0", 2.0)]


def test_networks_are_judged_apart() -> None:
    each = Alerts([Alert.parse("delivery_ratio < 0.5 for 1m")], [])
    one = Alerts([Alert.parse("lost > 0 for 1m where network = 239.0.0.2:4000#ab")], [])
    commit = Stream().commit(0.0, [{}, {}, {"network": "239.0.0.2:4000#ab"} | MISSED, {"network": "m"} | MISSED, {}])
    assert [(found.network, found.value) for found in each.update(commit)] == [("239.0.0.2:4000#ab", 0.0), ("m", 0.0)]
    assert [found.line() for found in one.update(commit)] == [
        "alert raised: lost > 0 for 1m where network = 239.0.0.2:4000#ab (239.0.0.2:4000#ab steam: 1)"
    ]


def test_latency_is_that_of_the_window() -> None:
    alerts = Alerts([Alert.parse("latency_p95_s > 1 for 1m")], [])
    stream = Stream()
    assert changes(alerts, stream.commit(0.0, [{"latency_s": 0.01}] * 1000)) == []
    assert changes(alerts, stream.commit(30.0, [{"latency_s": 3.0}] * 10)) == []
    assert changes(alerts, stream.commit(90.0, [{"latency_s": 3.0}] * 10)) == [("raised", "", 3.0)]


def test_counts_of_the_watch_itself() -> None:
    few = Alerts(
        [Alert.parse("nodes < 4 for 1m"), Alert.parse("lag_s > 30 for 1m"), Alert.parse("rejects > 5 for 1m")], []
    )
    stream = Stream()
    assert changes(few, stream.commit(0.0, nodes=5)) == []
    assert changes(few, stream.commit(20.0, nodes=3, committed_at=70.0)) == []  # not for a minute yet
    assert [one[0] for one in changes(few, stream.commit(50.0, nodes=3, committed_at=90.0))] == []
    found = few.update(stream.commit(100.0, nodes=2, committed_at=160.0, rejects=9))
    assert [(one.state, one.alert.split()[0], one.value) for one in found] == [
        ("raised", "nodes", 3.0),
        ("raised", "lag_s", 40.0),
        ("raised", "rejects", 9.0),
    ]


def test_what_is_remembered_does_not_grow_with_the_batches() -> None:
    alerts = Alerts([Alert.parse("delivery_ratio < 0.95 for 1h")], [])
    stream = Stream()
    for second in range(0, 20_000, 2):
        alerts.update(stream.commit(float(second)))
    assert len(alerts._past) <= 64


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("delivery < 0.9 for 2m", "no metric is named 'delivery'"),
        ("delivery_ratio < 0.9", "cannot read the alert"),
        ("delivery_ratio = 0.9 for 2m", "cannot read the alert"),
        ("delivery_ratio < 0.9 for 2y", "a time in s, m or h"),
        ("delivery_ratio < 0.9 for 2m by colour", "is known by network, protocol, type, area"),
        ("nodes < 3 for 2m by type", "is known by the whole watch only"),
        ("delivery_ratio < 0.9 for 0s", "must be positive"),
    ],
)
def test_an_alert_that_cannot_be_says_why(text: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(reason)):
        Alert.parse(text)


NOTICE = AlertNotice("raised", "delivery_ratio < 0.95 for 2m", "n", "steam", "type", "Siren", 0.5, 12.0)


def test_a_notice_goes_to_a_file_a_command_and_a_webhook(tmp_path: Path) -> None:
    to_file(tmp_path / "alerts.jsonl")(NOTICE)
    to_command(f"cat > {tmp_path / 'reported'}; echo done > {tmp_path / 'done'}")(NOTICE)
    posted: list[dict[str, Any]] = []

    class Office(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Office) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        to_webhook(f"http://127.0.0.1:{server.server_port}/alerts")(NOTICE)
        until = time.monotonic() + 20
        while not (posted and (tmp_path / "done").exists()) and time.monotonic() < until:
            time.sleep(0.02)
        server.shutdown()
    expected = json.loads(NOTICE.json())
    assert expected["key"] == "Siren"
    assert posted == [expected]
    assert json.loads((tmp_path / "reported").read_text()) == expected
    assert json.loads((tmp_path / "alerts.jsonl").read_text()) == expected


def test_a_place_that_cannot_be_reached_holds_nobody_up() -> None:
    began = time.monotonic()
    to_webhook("http://127.0.0.1:9/")(NOTICE)
    assert time.monotonic() - began < 5
    with pytest.raises(SettingsError, match="begins with http"):
        to_webhook("ftp://x")
    with pytest.raises(SettingsError, match="cannot be written to"):
        to_file(Path("/proc/none/alerts"))


LABELS = ("watch", "network", "protocol", "by", "key", "type", "area", "reason", "le")


def exported(metrics: ExportedMetrics) -> dict[str, dict[tuple[str, ...], float]]:
    """What a request finds, by name and by the labels' values."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    stop = serve_metrics(address, metrics)
    try:
        text = urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode()
    finally:
        stop()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[
                tuple(sample.labels[name] for name in LABELS if name in sample.labels)
            ] = sample.value
    return found


def test_prometheus_reads_the_figures_of_the_last_commit() -> None:
    metrics = ExportedMetrics("live")
    assert exported(metrics) == {}
    metrics.update(Stream().commit(10.0, [{}] * 3 + [MISSED], late=7))
    found = exported(metrics)
    whole = ("live", "n", "steam", "all", "")
    assert found["earshot_delivery_ratio"][whole] == 0.75
    assert found["earshot_expected_total"]["live", "n", "steam", "type", "Siren"] == 4
    assert found["earshot_lost_total"] == {("live", "n", "steam", "Siren", "0,0", "never heard"): 1}
    assert found["earshot_watch_nodes"] == {("live",): 5}
    assert found["earshot_watch_late_total"] == {("live",): 7}
    assert found["earshot_watch_lag_seconds"] == {("live",): 1.0}
    assert found["earshot_watch_batch_seconds"] == {("live",): 0.25}
    counted = found["earshot_latency_seconds_bucket"]
    buckets = {labels[-1]: count for labels, count in counted.items() if labels[:5] == whole}
    assert (buckets["0.01"], buckets["0.025"], buckets["+Inf"]) == (0, 3, 3)
    assert found["earshot_latency_seconds_sum"][whole] == pytest.approx(0.06)


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    metrics = ExportedMetrics("live")
    metrics.update(Stream().commit(10.0, [{}] * 3 + [MISSED]))
    names = set(exported(metrics))
    panels = json.loads((ROOT / "examples" / "grafana-watch.json").read_text())["panels"]
    asked = {name for panel in panels for one in panel["targets"] for name in re.findall(r"earshot_\w+", one["expr"])}
    assert len(asked) > 8
    assert asked <= names


@pytest.mark.parametrize("address", ["here", "127.0.0.1:x", "127.0.0.1:99999", "192.0.2.1:9464"])
def test_an_address_that_cannot_be_served_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="cannot serve metrics at"):
        serve_metrics(address, ExportedMetrics("live"))


def test_a_command_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for command in ("", "  ", "/no/such/program --loud"):
        with pytest.raises(SettingsError, match="no such program"):
            to_command(command)
    (there := tmp_path / "pager").touch()
    to_command(f"{there} --loud")
    to_command("cd / && true")


def test_rows_are_kept_for_a_day_at_least() -> None:
    with pytest.raises(SettingsError, match="--keep 30d"):
        WatchSettings(keep_s=30.0)
