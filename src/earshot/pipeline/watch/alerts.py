"""Alerts of a watch: a condition over the last minutes, for a network, an event type or an area.

`delivery_ratio < 0.95 for 2m` is measured over what was counted in the last two minutes, at every batch. An alert is
raised when its condition begins to hold and cleared when it ends; both are sent to where the user wants them.
"""

from __future__ import annotations

import json
import logging
import operator
import re
import subprocess
import sys
import threading
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from earshot.errors import SettingsError
from earshot.pipeline.campaigns.run_figures import LATENCIES
from earshot.pipeline.watch.running_metrics import Group, MetricSums
from earshot.pipeline.watch.watch_state import Commit

logger = logging.getLogger("earshot.watch")

SHARES = ("delivery_ratio", "precision")
COUNTS = ("events", "expected", "delivered", "met", "lost")
OF_WATCH = ("nodes", "lag_s", "rejects", "late")
METRICS = (*SHARES, *LATENCIES, "hops", *COUNTS, *OF_WATCH)
BY = ("network", "protocol", "type", "area")
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
FORM = "'delivery_ratio < 0.95 for 2m', or '... for 2m by type', or '... for 2m where area = 2000,-1000'"
SNAPSHOTS = 60
"Moments of a window that are remembered: a window is exact to a sixtieth."
SEND_WITHIN_S = 10.0
MOST_SENDING = 32
"Commands and webhooks at a time; a place that does not answer loses further alerts, which are counted."

_TEXT = re.compile(
    r"\s*(?P<metric>\w+)\s*(?P<operator><=|>=|<|>)\s*(?P<value>[-+.\deE]+)\s+for\s+(?P<number>[.\d]+)\s*(?P<unit>\w+)"
    r"(?:\s+by\s+(?P<by>\w+)|\s+where\s+(?P<key>\w+)\s*=\s*(?P<of>.+?))?\s*"
)


@dataclass(frozen=True, slots=True)
class Alert:
    """A condition that should not hold."""

    text: str
    metric: str
    operator: str
    value: float
    window_s: float
    by: str = "network"
    "What is judged apart: each `network` with each `protocol` as a whole, each `type` in it, or each `area`."
    of: str | None = None
    "Only this network, protocol, type or area; None: each."

    @classmethod
    def parse(cls, text: str) -> Alert:
        """Read `METRIC < VALUE for TIME`, with `by type` or `where type = Siren` behind it if wanted."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise SettingsError(f"cannot read the alert {text!r}; write {FORM}")
        metric, by = found["metric"], found["by"] or found["key"] or "network"
        if metric not in METRICS:
            raise SettingsError(f"the alert {text!r}: no metric is named {metric!r}; there are: {', '.join(METRICS)}")
        if by not in BY or (metric in OF_WATCH and (found["by"] or found["key"])):
            known = "the whole watch only" if metric in OF_WATCH else ", ".join(BY)
            raise SettingsError(f"the alert {text!r}: {metric} is known by {known}")
        try:
            value, window_s = float(found["value"]), float(found["number"]) * SECONDS[found["unit"]]
        except (ValueError, KeyError):
            raise SettingsError(f"the alert {text!r}: write a number, and a time in s, m or h") from None
        if not 0 < window_s < 7 * 24 * 3600:
            raise SettingsError(f"the alert {text!r}: the time must be positive and below a week")
        return cls(text, metric, found["operator"], value, window_s, by, found["of"])

    def holds(self, measured: float) -> bool:
        """Whether the condition holds for this figure."""
        return OPERATORS[self.operator](measured, self.value)


@dataclass(frozen=True, slots=True)
class AlertNotice:
    """An alert was raised or cleared."""

    state: str
    "`raised` or `cleared`."
    alert: str
    network: str
    protocol: str
    by: str
    key: str
    value: float | None
    "What was measured; None where there is nothing left to measure."
    time: float
    "Of the newest record, in seconds since the epoch."

    def line(self) -> str:
        """For people."""
        about = " ".join(filter(None, (self.network, self.protocol)))
        if self.key:
            about += f", {self.by} {self.key}"
        value = "nothing to measure" if self.value is None else f"{self.value:.4g}"
        return f"alert {self.state}: {self.alert} ({about or 'the watch'}: {value})"

    def json(self) -> str:
        """For programs."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})


Send = Callable[[AlertNotice], None]


@dataclass(slots=True)
class Alerts:
    """Judges the alerts at every commit, and sends what changes."""

    alerts: Sequence[Alert]
    sends: Sequence[Send]
    raised: dict[tuple[str, str, str, str], AlertNotice] = field(default_factory=dict)
    "By alert, network, protocol and key."
    _past: deque[tuple[float, Mapping[Group, MetricSums]]] = field(default_factory=deque)
    _of_watch: deque[tuple[float, Mapping[str, float]]] = field(default_factory=deque)

    def update(self, commit: Commit) -> list[AlertNotice]:
        """The notices of a commit, after they were sent."""
        now = commit.counts["newest"]
        if now is None or commit.metrics is None:
            return []
        lag_s = max(0.0, commit.counts["committed_at"] - now)
        counts = {name: commit.counts[name] for name in OF_WATCH if name != "lag_s"} | {"lag_s": lag_s}
        longest_s = max((alert.window_s for alert in self.alerts), default=0.0)
        _remember(self._past, now, commit.metrics.groups, longest_s)
        _remember(self._of_watch, now, counts, longest_s)
        notices = [notice for alert in self.alerts for notice in self._judge(alert, now)]
        for notice in notices:
            for send in self.sends:
                send(notice)
        return notices

    def rows(self) -> list[dict[str, Any]]:
        """Rows of `watched_alerts`: those that hold now."""
        names = ("alert", "network", "protocol", "by", "key", "value", "time")
        return [{name: getattr(notice, name) for name in names} for notice in self.raised.values()]

    def _judge(self, alert: Alert, now: float) -> list[AlertNotice]:
        measured = self._watch_measured(alert, now) if alert.metric in OF_WATCH else self._measured(alert, now)
        notices = []
        for (network, protocol, key), value in measured.items():
            known = (alert.text, network, protocol, key)
            if alert.holds(value) == (known in self.raised):
                continue
            state = "cleared" if known in self.raised else "raised"
            notice = AlertNotice(state, alert.text, network, protocol, alert.by, key, value, now)
            notices.append(notice)
            if state == "raised":
                self.raised[known] = notice
            else:
                del self.raised[known]
        for known, before in list(self.raised.items()):
            if known[0] == alert.text and known[1:] not in measured:
                notices.append(replace(before, state="cleared", value=None, time=now))
                del self.raised[known]
        return notices

    def _measured(self, alert: Alert, now: float) -> dict[tuple[str, str, str], float]:
        """The metric over the alert's window, for each group it is about."""
        by = "all" if alert.by in ("network", "protocol") else alert.by
        then = _at(self._past, now - alert.window_s)
        found = {}
        for group, sums in self._past[-1][1].items():
            network, protocol, kind, key = group
            about = {"network": network, "protocol": protocol}.get(alert.by, key)
            if kind != by or (alert.of is not None and alert.of != about):
                continue
            recent = _difference(sums, then.get(group))
            figures = dict(recent.figures()) if recent.events or recent.expected or recent.delivered else {}
            if alert.metric in figures:
                found[network, protocol, key] = figures[alert.metric]
        return found

    def _watch_measured(self, alert: Alert, now: float) -> dict[tuple[str, str, str], float]:
        """Counts of the whole watch: those that only grow, by how much; the others, by their worst for the alert."""
        recent = [values[alert.metric] for time, values in self._of_watch if time >= now - alert.window_s]
        if alert.metric in ("rejects", "late"):
            return {("", "", ""): recent[-1] - _at(self._of_watch, now - alert.window_s).get(alert.metric, 0.0)}
        calm = max if alert.operator.startswith("<") else min
        return {("", "", ""): calm(recent)}


def _remember(past: deque[tuple[float, Any]], now: float, values: Any, longest_s: float) -> None:
    """Keep what the longest window needs, at most some `SNAPSHOTS` moments of it."""
    if len(past) > 1 and now - past[-2][0] < longest_s / SNAPSHOTS:
        past.pop()
    past.append((now, values))
    while len(past) > 2 and past[1][0] <= now - longest_s:
        past.popleft()


def _at(past: Sequence[tuple[float, Mapping[Any, Any]]], time: float) -> Mapping[Any, Any]:
    """What was known at that time; nothing before the first."""
    known: Mapping[Any, Any] = {}
    for moment, values in past:
        if moment > time:
            break
        known = values
    return known


def _difference(now: MetricSums, then: MetricSums | None) -> MetricSums:
    """What was counted since. (The figures of open events may still change: a count never falls below 0.)"""
    if then is None:
        return now
    names = ("events", "expected", "delivered", "met", "hops", "hops_counted")
    counts = {name: max(0, getattr(now, name) - getattr(then, name)) for name in names}
    latencies = {value: count - then.latencies.get(value, 0) for value, count in now.latencies.items()}
    return MetricSums(**counts, latencies={value: count for value, count in latencies.items() if count > 0})


# Where notices go.


def to_stderr(notice: AlertNotice) -> None:
    """A line on standard error."""
    print(f"earshot: {notice.line()}", file=sys.stderr, flush=True)


def to_file(path: Path) -> Send:
    """A line of JSON at the end of a file."""
    try:
        with path.open("a"):
            pass
    except OSError as error:
        raise SettingsError(
            f"alerts cannot be written to {path}: {error.strerror}; name a file in a folder that is there and writable"
        ) from None

    def send(notice: AlertNotice) -> None:
        try:
            with path.open("a") as file:
                file.write(notice.json() + "\n")
        except OSError as error:
            logger.warning("%s: an alert could not be written: %s", path, error.strerror)

    return send


def to_command(command: str) -> Send:
    """A command of the shell, with the notice as JSON on its standard input."""
    program = command.split(maxsplit=1)[0] if command.strip() else ""
    if not program or (re.fullmatch(r"[\w./~-]*/[\w./-]*", program) and not Path(program).expanduser().exists()):
        raise SettingsError(
            f"no such program for alerts: {program!r}; write a command of the shell, as in 'mail -s alert ops'"
        )

    def call(notice: AlertNotice) -> None:
        ended = subprocess.run(command, shell=True, input=notice.json(), text=True, timeout=SEND_WITHIN_S, check=False)
        if ended.returncode:
            logger.warning("the alert's command ended with %d: %s", ended.returncode, command)

    return _beside(call)


def to_webhook(url: str) -> Send:
    """A POST with the notice as JSON."""
    if not re.match(r"https?://[^/]", url):
        raise SettingsError(f"cannot send alerts to {url!r}; write an address that begins with http:// or https://")

    def call(notice: AlertNotice) -> None:
        body, kind = notice.json().encode(), {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, body, kind), timeout=SEND_WITHIN_S):
            pass

    return _beside(call)


def _beside(call: Send) -> Send:
    """In a thread of its own: a place that does not answer holds nobody up. Failures are reported."""
    free = threading.Semaphore(MOST_SENDING)

    def send(notice: AlertNotice) -> None:
        if not free.acquire(blocking=False):
            logger.warning("an alert was not sent: %d others still wait for an answer", MOST_SENDING)
            return

        def work() -> None:
            try:
                call(notice)
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                logger.warning("an alert could not be sent: %s", error)
            finally:
                free.release()

        threading.Thread(target=work, daemon=True).start()

    return send
