"""`earshot watch`: whether the events of a live network arrive, as its nodes record them."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.options import DURATION, LENGTH, default_option, json_option
from earshot.cli.spark import LakeOptions, cluster_options, open_lake
from earshot.cli.tables import aligned
from earshot.errors import UsageError
from earshot.records.details import label_of
from earshot.words import counted

if TYPE_CHECKING:
    from earshot.pipeline.watch.alerts import Alerts
    from earshot.pipeline.watch.watch_state import Commit

POLL_S = 0.2
MOST_TYPES = 12
SHOWN = (
    ("events", "events", "{:.0f}"),
    ("expected", "expected", "{:.0f}"),
    ("met", "got", "{:.0f}"),
    ("delivery_ratio", "ratio", "{:.3f}"),
    ("latency_p50_s", "p50 ms", "{:.1f}"),
    ("latency_p95_s", "p95 ms", "{:.1f}"),
    ("latency_p99_s", "p99 ms", "{:.1f}"),
    ("lost", "lost", "{:.0f}"),
)
"Metric, heading and form of a column of the table; seconds are shown as milliseconds."


@click.command()
@click.argument("spools", nargs=-1, required=True, metavar="SPOOL_DIR...")
@default_option("--out", default="lake", envvar="EARSHOT_LAKE", metavar="LAKE", help="The lake to write to.")
@default_option("--name", default="live", help="The watch's name in the lake.")
@click.option(
    "--subscriptions",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A file of filters, one per line, read again when it changes: a table gets the events that match.",
)
@click.option("--once", is_flag=True, help="Read all records that are there, then exit.")
@default_option("--every", type=DURATION, default="2s", help="How often to look for new records.")
@default_option("--watermark", type=DURATION, default="10s", help="How late a node's records may arrive.")
@default_option("--patience", type=DURATION, default="30s", help="How long after an event a delivery counts.")
@default_option("--cell", type=LENGTH, default="1km", help="The side of the squares in the counts by area.")
@default_option("--forget", type=DURATION, default="1h", help="Forget a node that was silent for this long.")
@click.option(
    "--keep", type=DURATION, metavar="TIME", help="Remove rows older than this, as in 30d. [default: keep all]"
)
@click.option(
    "--alert",
    "alerts",
    multiple=True,
    metavar="CONDITION",
    help="Warn while this holds: 'delivery_ratio < 0.95 for 2m by type'.",
)
@click.option(
    "--alert-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also append each alert to this file, as JSON.",
)
@click.option(
    "--alert-command", metavar="COMMAND", help="Also run this for each alert, with JSON on its standard input."
)
@click.option("--alert-webhook", metavar="URL", help="Also post each alert to this address, as JSON.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus, for example at 127.0.0.1:9464.")
@json_option("Print one JSON object per batch, each on a line.")
@cluster_options
def watch(
    spools: Sequence[str],
    out: str,
    name: str,
    subscriptions: Path | None,
    once: bool,
    every: float,
    watermark: float,
    patience: float,
    cell: float,
    forget: float,
    keep: float | None,
    alerts: Sequence[str],
    alert_file: Path | None,
    alert_command: str | None,
    alert_webhook: str | None,
    metrics: str | None,
    as_json: bool,
    lake: LakeOptions,
) -> None:
    """Follow the spools of live nodes, and say whether their events arrive.

    SPOOL_DIR is a folder that nodes record into (`earshot node --spool`), or one that holds such folders.
    The oracle says which nodes should have received which events, as for simulated runs. Stop it with
    Ctrl-C, or by any other means, and start it again: it continues where it was.

    \b
    Examples:
      earshot watch spools
      earshot watch spools --out lake --subscriptions wanted.txt
      earshot watch spools --once --json
      earshot watch spools --alert 'delivery_ratio < 0.95 for 2m by type' --alert-webhook http://office/alerts
      earshot watch spools --metrics 127.0.0.1:9464
    """
    from earshot.pipeline.watch.spool_segments import check_folders

    # Wrong arguments are reported before Spark starts.
    check_folders(spools, may_be_empty=not once)
    from earshot.cli.options import serve_metrics
    from earshot.pipeline.watch.exported_metrics import ExportedMetrics
    from earshot.pipeline.watch.standing_subscriptions import StandingFile
    from earshot.pipeline.watch.stream import Watch
    from earshot.pipeline.watch.watch_state import WatchSettings

    settings = WatchSettings(
        name=name,
        delay_s=watermark,
        patience_s=patience,
        cell_m=cell,
        every_s=every,
        forget_s=forget,
        keep_s=keep,
    )
    if subscriptions is not None:
        StandingFile(subscriptions)
    screen = Screen(as_json, once)
    reports: list[Callable[[Commit], object]] = [screen.show]
    judged = _alerts(alerts, alert_file, alert_command, alert_webhook)
    with ExitStack() as until_end:
        if metrics is not None:
            exported = ExportedMetrics(name)
            until_end.callback(serve_metrics(metrics, exported))
            reports.append(exported.update)
        opened = until_end.enter_context(open_lake(_with_memory(lake.at(out))))

        held: list[Any] = opened.arrow.read("watched_alerts", watch=name).to_pylist()

        def judge(commit: Commit) -> None:
            """Alerts that hold are a table, for the page. Those of an earlier run are judged again."""
            if (judged and judged.update(commit)) or held:
                held.clear()
                opened.arrow.write_rows("watched_alerts", judged.rows() if judged else [], watch=name)

        reports.append(judge)

        def report(commit: Commit) -> None:
            for each in reports:
                each(commit)

        watching = Watch(opened, spools, settings, subscriptions, report)
        pause = threading.Event()
        with watching.running(once) as query:
            while query.isActive:
                pause.wait(POLL_S)
            if failure := query.exception():
                raise failure
        screen.end(watching.last())


def _with_memory(lake: LakeOptions) -> LakeOptions:
    """Java takes the memory that it may take before it looks for what is free, and a watch runs for weeks."""
    from earshot.pipeline.watch.stream import DRIVER_MEMORY

    if lake.remote or "SPARK_DRIVER_MEMORY" in os.environ:
        return lake
    return replace(lake, conf=(f"spark.driver.memory={DRIVER_MEMORY}", *lake.conf))


def _alerts(texts: Sequence[str], file: Path | None, command: str | None, webhook: str | None) -> Alerts | None:
    """The alerts that the options ask for, and where they go."""
    from earshot.pipeline.watch import alerts

    if not texts:
        if file or command or webhook:
            raise UsageError("say what to warn of: --alert 'delivery_ratio < 0.95 for 2m'")
        return None
    sends: list[alerts.Send] = [alerts.to_stderr]
    if file is not None:
        sends.append(alerts.to_file(file))
    if command is not None:
        sends.append(alerts.to_command(command))
    if webhook is not None:
        sends.append(alerts.to_webhook(webhook))
    return alerts.Alerts([alerts.Alert.parse(text) for text in texts], sends)


class Screen:
    """What is shown of the commits: a table in place on a terminal, else a line each."""

    def __init__(self, as_json: bool, once: bool) -> None:
        self.as_json = as_json
        self.once = once
        self.in_place = not as_json and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self.height = 0
        self.shown = -1

    def show(self, commit: Commit) -> None:
        """One more batch."""
        for line in commit.wrong:
            click.echo(f"earshot: {line}", err=True)
            self.height = 0
        self.shown = commit.batch
        if self.as_json:
            click.echo(json.dumps(as_json(commit)))
        elif self.in_place:
            lines = table_lines(commit)
            click.echo(f"\x1b[{self.height}F\x1b[J" if self.height else "", nl=False)
            click.echo("\n".join(lines))
            self.height = len(lines)
        elif not self.once:
            click.echo(status_line(commit.counts))

    def end(self, last: Commit | None) -> None:
        """Everything has been read: show the table where none was shown, and for --once."""
        if last is None:
            click.echo("nothing was recorded yet", err=True)
        elif self.as_json and self.shown < 0:
            click.echo(json.dumps(as_json(last)))
        elif not self.as_json and not (self.in_place and self.shown >= 0):
            click.echo("\n".join(table_lines(last)))


def as_json(commit: Commit) -> dict[str, Any]:
    """A commit for programs."""
    counts = {**commit.counts, "spools": json.loads(commit.counts["spools"])}
    rows = {"figures": commit.figures, "losses": commit.losses}
    return counts | {
        name: [{key: value for key, value in row.items() if key != "batch"} for row in some]
        for name, some in rows.items()
    }


def status_line(counts: Mapping[str, Any]) -> str:
    """One line on how far the watch is."""
    parts = [
        f"batch {counts['batch']}",
        counted(counts["nodes"], "node"),
        counted(counts["records"], "record"),
        f"{counted(counts['events'], 'event')} ({counts['open_events']:,} open)",
    ]
    parts += [f"{counts[name]:,} {name}" for name in ("late", "rejects") if counts[name]]
    if counts["subscriptions"]:
        matches = "1 match" if counts["matches"] == 1 else f"{counts['matches']:,} matches"
        parts.append(f"{matches} of {counted(counts['subscriptions'], 'subscription')}")
    return ", ".join(parts)


def table_lines(commit: Commit) -> list[str]:
    """The table: each network and protocol, its event types with most to deliver, and why events were lost."""
    figures: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in commit.figures:
        label = label_of(row["network"], row["protocol"])
        figures.setdefault((label, row["by"], row["key"]), {})[row["metric"]] = row["value"]
    rows = [["", *(heading for _, heading, _ in SHOWN)]]
    for label in sorted({group[0] for group in figures}):
        rows.append([label, *_cells(figures.get((label, "all", ""), {}))])
        types = [(key, found) for (of, by, key), found in figures.items() if (of, by) == (label, "type")]
        types.sort(key=lambda row: (-row[1]["expected"], row[0]))
        rows += [[f"  {key}", *_cells(found)] for key, found in types[:MOST_TYPES]]
        if len(types) > MOST_TYPES:
            rows.append([f"  and {len(types) - MOST_TYPES} more types", *[""] * len(SHOWN)])
    lines = [status_line(commit.counts), *aligned(rows, [False, *[True] * len(SHOWN)])]
    reasons = Counter[str]()
    for row in commit.losses:
        reasons[row["reason"]] += row["lost"]
    if reasons:
        counted = ", ".join(f"{reason} {count:,}" for reason, count in reasons.most_common(6))
        lines.append(f"lost: {counted}")
    return lines


def _cells(found: Mapping[str, float]) -> list[str]:
    return [
        form.format(found[metric] * (1000.0 if metric.endswith("_s") else 1.0)) if metric in found else "-"
        for metric, _, form in SHOWN
    ]
