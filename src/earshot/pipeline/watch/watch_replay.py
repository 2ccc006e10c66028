"""A catalogue that follows `earshot watch`: the last half hour of a live network, batch after batch.

Each update reads the batches that were committed since the last one. Positions and records older than
the window are dropped; subscriptions and announcements are kept while they are in force. The expected
receivers are the watch's own answer (`watched_pairs`, `watched_open`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from earshot.errors import LakeError
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.batch_files import BatchFiles
from earshot.pipeline.lake.table_log import TableLog
from earshot.pipeline.lake.tables import table_named
from earshot.pipeline.reports.catalogues import AnswerableCatalogue, AnswerableRun, answerable_run
from earshot.pipeline.reports.recordings import LOG_COLUMNS, Recording, records_of
from earshot.pipeline.reports.replays import settings_of, with_range
from earshot.pipeline.watch.watch_state import day_of
from earshot.records.details import label_of
from earshot.records.sessions import SESSION_KINDS
from earshot.view.runs import RunEntry, WorldEntry
from earshot.view.world import World

WINDOW_S = 1800.0
"How much of a live network the page shows."
MINUTES = 30
"Of which it shows what was expected and delivered in each."
_FIGURES = (
    ("delivery_ratio", "delivered", 100, "{:.1f} %"),
    ("latency_p50_s", "median delay", 1000, "{:.0f} ms"),
    ("latency_p95_s", "95 % within", 1000, "{:.0f} ms"),
    ("lost", "lost", 1, "{:.0f}"),
)
"Metric, its name in words, the factor for display, and the format."


@dataclass
class _Watch:
    """What has been read of one watch."""

    name: str
    batch: int = -1
    recording: Recording = field(default_factory=Recording)
    log: list[pa.RecordBatch] = field(default_factory=list)
    wanted: dict[tuple[str, str], float] = field(default_factory=dict)
    "Expected (event, node) pairs of settled events, and when they were published."
    row: Mapping[str, Any] = field(default_factory=dict)

    @property
    def since(self) -> float:
        newest = self.row.get("newest")
        return -math.inf if newest is None else float(newest) - WINDOW_S


class WatchCatalogue(AnswerableCatalogue):
    """The watches in a lake, each a world that grows; its networks and protocols are shown side by side."""

    def __init__(self, tables: ArrowLake) -> None:
        self._tables = tables
        names = [partition["watch"] for partition in tables.partitions("watches")]
        if not names:
            raise LakeError(f"the lake {tables.name} has no watch; run: earshot watch SPOOL_DIR --out {tables.name}")
        self._watches = {name: _Watch(name) for name in names}
        self._look()
        self._world = lru_cache(maxsize=4)(self._read_world)
        self._answerable = lru_cache(maxsize=8)(self._read_run)

    def worlds(self) -> list[WorldEntry]:
        found = []
        for name, watch in self._watches.items():
            runs = [RunEntry(label, label) for label in self._labels(watch)]
            found.append(WorldEntry(name, f"{name} (live)", runs or [RunEntry("", "nothing yet")]))
        return found

    def world(self, key: str) -> World:
        return self._world(key, self._watches[key].batch)

    def answerable(self, world: str, key: str) -> AnswerableRun:
        watch = self._watches[world]
        if key not in self._labels(watch) and key:
            raise KeyError(key)
        return self._answerable(world, key, watch.batch)

    def updates(self) -> Mapping[str, Any]:
        self._look()
        alerts = {name: self._tables.read("watched_alerts", watch=name).to_pylist() for name in self._watches}
        return {
            "batch": sum(watch.batch for watch in self._watches.values()),
            "figures": [
                {"name": "nodes", "value": f"{sum(watch.row.get('nodes') or 0 for watch in self._watches.values()):,}"}
            ],
            "networks": [
                network for watch in self._watches.values() for network in self._networks(watch, alerts[watch.name])
            ],
            "alerts": [_alert(row) for rows in alerts.values() for row in rows],
        }

    # Reading.

    def _look(self) -> None:
        for watch in self._watches.values():
            rows = self._tables.read("watches", watch=watch.name).to_pylist()
            if rows and int(rows[0]["batch"]) > watch.batch:
                watch.row = rows[0]
                self._catch_up(watch, int(rows[0]["batch"]))

    def _catch_up(self, watch: _Watch, batch: int) -> None:
        columns = [*LOG_COLUMNS, "network", "protocol", "batch"]
        log = (_recent(some, "time", watch.since) for some in self._new(watch, "watched_log", columns, batch))
        watch.log += watch.recording.add(log)
        for some in self._new(watch, "watched_pairs", ["batch", "wanted", "event", "node", "published_at"], batch):
            _want(watch.wanted, pa.Table.from_batches([_recent(some, "published_at", watch.since)]))
        watch.batch = batch
        watch.recording.forget(watch.since)
        watch.log = [
            records for records in watch.log if len(records) and float(np.max(records.column("time"))) >= watch.since
        ]
        watch.wanted = {pair: time for pair, time in watch.wanted.items() if time >= watch.since}

    def _new(self, watch: _Watch, table: str, columns: list[str], until: int) -> Iterator[pa.RecordBatch]:
        """What batches that were committed since the last look added to a table; at first, what the window may have."""
        for file in BatchFiles(self._tables, table, watch.name).files(watch.batch + 1, until):
            if watch.batch < 0 and file.partition["day"] < day_of(watch.since):
                continue
            for rows in TableLog(self._tables.folder, table_named(table)).batches_of(file, columns):
                number = rows.column("batch")
                yield rows.filter(pc.and_(pc.greater(number, watch.batch), pc.less_equal(number, until)))

    def _labels(self, watch: _Watch) -> dict[str, tuple[str, str]]:
        """The networks and protocols that are shown, by their label."""
        found: set[tuple[str, str]] = set()
        for records in watch.log:
            rows = pa.Table.from_batches([records.select(["network", "protocol"])]).group_by(["network", "protocol"])
            found.update((row["network"], row["protocol"]) for row in rows.aggregate([]).to_pylist())
        return {label_of(*community): community for community in sorted(found) if community[1]}

    def _networks(self, watch: _Watch, alerts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Each network and protocol: its figures, and what was expected and delivered in each of the last minutes."""
        found: dict[tuple[str, str], dict[tuple[str, str], dict[str, float]]] = {}
        for row in self._tables.read("watched_figures", watch=watch.name).to_pylist():
            groups = found.setdefault((row["network"], row["protocol"]), {})
            groups.setdefault((row["by"], row["key"]), {})[row["metric"]] = row["value"]
        now = math.floor((watch.row.get("newest") or 0.0) / 60.0)
        networks = []
        for community, groups in sorted(found.items()):
            whole = groups.get(("all", ""), {})
            by_minute = [
                (minute, groups.get(("minute", str(minute)), {})) for minute in range(now - MINUTES + 1, now + 1)
            ]
            networks.append(
                {
                    "name": label_of(*community),
                    "figures": [
                        {"name": words, "value": form.format(times * whole[metric])}
                        for metric, words, times, form in _FIGURES
                        if metric in whole
                    ],
                    "minutes": [
                        {
                            "minute": minute,
                            "expected": int(figures.get("expected", 0)),
                            "met": int(figures.get("met", 0)),
                        }
                        for minute, figures in by_minute
                    ],
                    "has_alert": any((alert["network"], alert["protocol"]) == community for alert in alerts),
                }
            )
        return networks

    # Showing.

    def _read_world(self, key: str, batch: int) -> World:
        del batch  # only makes a new world differ from an old one in the cache
        watch = self._watches[key]
        world = watch.recording.world(key, f"{key} (live)", since=watch.since)
        protocol = next((protocol for _, protocol in self._labels(watch).values()), "")
        world = with_range(world, records_of(watch.log, world), protocol)
        wanted = dict(watch.wanted)
        _want(wanted, self._tables.read("watched_open", watch=key))
        return replace(world, expected=world.numbered(wanted))

    def _read_run(self, world_key: str, key: str, batch: int) -> AnswerableRun:
        watch, world = self._watches[world_key], self._world(world_key, batch)
        network, protocol = self._labels(watch).get(key, ("", ""))
        own = [
            records.filter(pc.and_(_is(records, "network", network), _is(records, "protocol", protocol)))
            for records in watch.log
        ]
        given = watch.recording.settings.get(protocol, {})
        return answerable_run(
            world,
            records_of(own, world),
            key,
            key or "nothing yet",
            protocol,
            settings_of(protocol, None, given),
            given,
        )


def _alert(row: Mapping[str, Any]) -> dict[str, Any]:
    about = label_of(row["network"], row["protocol"]) if row["protocol"] else "the watch"
    about += f", {row['by']} {row['key']}" if row["key"] else ""
    return {"text": row["alert"], "about": about, "value": f"{row['value']:.4g}", "since": row["time"]}


def _is(batch: pa.RecordBatch, column: str, value: str) -> pa.Array:
    return pc.equal(batch.column(column), value)


def _recent(rows: pa.RecordBatch, column: str, since: float) -> pa.RecordBatch:
    """The rows of the window, and records of sessions of any time: a file may hold a whole day."""
    kept = pc.greater_equal(rows.column(column), since)
    if "kind" in rows.schema.names:
        kept = pc.or_(kept, pc.is_in(rows.column("kind"), pa.array(SESSION_KINDS, pa.string())))
    return rows.filter(kept)


def _want(wanted: dict[tuple[str, str], float], pairs: pa.Table) -> None:
    for row in pairs.filter(pairs.column("wanted")).select(["event", "node", "published_at"]).to_pylist():
        wanted[row["event"], row["node"]] = row["published_at"]
