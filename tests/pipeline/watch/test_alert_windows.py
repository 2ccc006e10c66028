"""Alerts at the edges: what a text means, where a window begins, and what is sent when it cannot be sent."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from earshot.errors import SettingsError
from earshot.pipeline.watch import alerts as alerts_module
from earshot.pipeline.watch.alerts import (
    Alert,
    AlertNotice,
    Alerts,
    _at,
    _beside,
    _difference,
    _remember,
    to_command,
    to_file,
    to_stderr,
)
from earshot.pipeline.watch.running_metrics import MetricSums, RunningMetrics
from earshot.pipeline.watch.watch_state import Commit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("delivery_ratio < 0.95 for 2m", ("delivery_ratio", "<", 0.95, 120.0, "network", None)),
        ("lost >= 3 for 90 s by type", ("lost", ">=", 3.0, 90.0, "type", None)),
        ("hops > -1e1 for 1.5h where protocol = drip", ("hops", ">", -10.0, 5400.0, "protocol", "drip")),
        ("events <= 4 for 3min by network", ("events", "<=", 4.0, 180.0, "network", None)),
        (" late > 0 for 167h ", ("late", ">", 0.0, 601_200.0, "network", None)),
        ("met < 1 for 1s where area = 2000,-1000 ", ("met", "<", 1.0, 1.0, "area", "2000,-1000")),
    ],
)
def test_a_text_says_what_is_measured_against_what_for_how_long(text: str, expected: tuple[object, ...]) -> None:
    found = Alert.parse(text)
    assert found == Alert(text, *expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["lost > 1 for 168h", "lost > 1 for 0.0s", "nodes < 1 for 1m where network = n"])
def test_a_time_is_below_a_week_and_the_watch_is_judged_whole(text: str) -> None:
    with pytest.raises(SettingsError):
        Alert.parse(text)


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("<", (True, False, False)),
        ("<=", (True, True, False)),
        (">", (False, False, True)),
        (">=", (False, True, True)),
    ],
)
def test_a_condition_holds_below_at_or_above_its_value(operator: str, expected: tuple[bool, ...]) -> None:
    alert = Alert.parse(f"lost {operator} 2 for 1m")
    assert tuple(alert.holds(value) for value in (1.0, 2.0, 3.0)) == expected


def commit(at: float, metrics: RunningMetrics | None = None, **counts: Any) -> Commit:
    counted = {"newest": at, "committed_at": at, "nodes": 5, "rejects": 0, "late": 0} | counts
    return Commit(0, counted, [], [], (), RunningMetrics() if metrics is None else metrics, 0.1)


def values(alerts: Alerts, *commits: Commit) -> list[list[tuple[str, float | None]]]:
    return [[(notice.state, notice.value) for notice in alerts.update(one)] for one in commits]


def test_nodes_count_by_the_calmest_moment_of_the_window() -> None:
    assert values(
        Alerts([Alert.parse("nodes > 4 for 60s")], []),
        commit(0.0, nodes=4), commit(60.0, nodes=6), commit(60.5, nodes=7), commit(130.0, nodes=9),
    ) == [[], [], [("raised", 6)], []]  # fmt: skip


def test_late_records_count_from_the_begin_of_the_window() -> None:
    assert values(
        Alerts([Alert.parse("late >= 3 for 60s")], []),
        commit(0.0, late=2), commit(60.0, late=5), commit(90.0, late=5), commit(121.0, late=5),
    ) == [[], [("raised", 3)], [], [("cleared", 0)]]  # fmt: skip


def test_the_lag_is_how_long_after_the_newest_record_a_batch_was_committed() -> None:
    alert = Alerts([Alert.parse("lag_s <= 0 for 60s")], [])
    assert values(alert, commit(10.0, committed_at=7.0), commit(11.0, committed_at=13.0)) == [
        [("raised", 0.0)], [("cleared", 2.0)],
    ]  # fmt: skip


def test_nothing_is_judged_before_the_first_record() -> None:
    alert = Alerts([Alert.parse("nodes < 9 for 60s")], [])
    assert alert.update(commit(0.0, newest=None)) == []
    assert alert.update(replace(commit(0.0), metrics=None)) == []


def test_each_notice_is_sent_everywhere_and_what_holds_is_a_row() -> None:
    sent: list[tuple[str, AlertNotice]] = []
    places = [lambda notice, name=name: sent.append((name, notice)) for name in "xy"]
    held = Alerts([Alert.parse("nodes < 9 for 60s"), Alert.parse("nodes < 3 for 60s")], places)
    (notice,) = held.update(commit(5.0))
    assert sent == [("x", notice), ("y", notice)]
    row = {
        "alert": "nodes < 9 for 60s",
        "network": "",
        "protocol": "",
        "by": "network",
        "key": "",
        "value": 5,
        "time": 5.0,
    }
    assert held.rows() == [row]
    held.update(commit(6.0, nodes=10))
    assert held.rows() == []


def test_a_window_begins_with_what_was_known_at_its_first_moment() -> None:
    past = [(1.0, {"n": 1}), (2.0, {"n": 2}), (3.0, {"n": 3})]
    assert [_at(past, time) for time in (0.9, 1.0, 2.0, 2.9, 9.0)] == [{}, {"n": 1}, {"n": 2}, {"n": 2}, {"n": 3}]


def test_moments_closer_than_a_sixtieth_of_the_window_are_one_and_old_ones_go() -> None:
    two: deque[tuple[float, Any]] = deque()
    for now in (0.0, 0.5, 0.9):
        _remember(two, now, now, 60.0)
    assert [moment for moment, _ in two] == [0.0, 0.9]
    past: deque[tuple[float, Any]] = deque()
    for now in (0.0, 0.5, 0.9, 1.0, 2.0, 59.0, 61.0, 62.0):
        _remember(past, now, now, 60.0)
    assert [moment for moment, _ in past] == [2.0, 59.0, 61.0, 62.0]
    assert all(moment == value for moment, value in past)
    _remember(past, 61.9, "newer", 60.0)
    assert past[-1] == (61.9, "newer")


def test_a_difference_counts_what_came_since_and_never_less_than_nothing() -> None:
    now = MetricSums(events=5, expected=4, delivered=3, met=3, hops=9, hops_counted=3, latencies={10: 2, 20: 1, 30: 4})
    then = MetricSums(events=2, expected=5, delivered=3, met=1, hops=4, hops_counted=1, latencies={10: 2, 30: 1})
    expected = MetricSums(events=3, expected=0, delivered=0, met=2, hops=5, hops_counted=2, latencies={20: 1, 30: 3})
    assert (_difference(now, then), _difference(now, None)) == (expected, now)


NOTICE = AlertNotice("raised", "lost > 1 for 1m", "n", "steam", "type", "Siren", 0.123456, 12.0)


@pytest.mark.parametrize(
    ("notice", "about"),
    [
        (NOTICE, "n steam, type Siren: 0.1235"),
        (replace(NOTICE, key=""), "n steam: 0.1235"),
        (replace(NOTICE, key="", protocol="", network="", value=None), "the watch: nothing to measure"),
    ],
)
def test_a_line_says_what_it_is_about(notice: AlertNotice, about: str, capsys: pytest.CaptureFixture[str]) -> None:
    to_stderr(notice)
    assert capsys.readouterr().err == f"earshot: alert raised: lost > 1 for 1m ({about})\n"


def test_an_alert_that_cannot_be_written_or_sent_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda one: (threads.append(one), start(one)))
    (folder := tmp_path / "here").mkdir()
    write = to_file(folder / "alerts")
    (folder / "alerts").unlink()
    folder.rmdir()

    def away(_: AlertNotice) -> None:
        raise OSError("away")

    with caplog.at_level(logging.WARNING):
        write(NOTICE)
        to_command("cat > /dev/null; exit 3")(NOTICE)
        to_command("cat > /dev/null")(NOTICE)
        _beside(away)(NOTICE)
        for one in threads:
            one.join()
    assert sorted(record.getMessage() for record in caplog.records) == [
        f"{folder / 'alerts'}: an alert could not be written: No such file or directory",
        "an alert could not be sent: away",
        "the alert's command ended with 3: cat > /dev/null; exit 3",
    ]


def test_at_most_so_many_alerts_wait_for_an_answer(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts_module, "MOST_SENDING", 2)
    answered, called = threading.Event(), threading.Semaphore(0)

    def call(_: AlertNotice) -> None:
        called.release()
        answered.wait()
        called.release()

    send = _beside(call)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            send(NOTICE)
    assert [record.getMessage() for record in caplog.records] == [
        "an alert was not sent: 2 others still wait for an answer"
    ]
    answered.set()
    for _ in range(4):
        called.acquire()
