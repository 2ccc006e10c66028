"""Recordings: a log's batches as the columns a replay needs, and as a world where there is only the log:
of live nodes, or of a run whose trace no longer exists."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from earshot.errors import EventError
from earshot.events import Event
from earshot.records import Kind
from earshot.records.sessions import SESSION_KINDS, Session, SessionReader
from earshot.view.runs import CODE, Records
from earshot.view.world import Array, TrajectoryColumns, World, node_names

LOG_COLUMNS = ["time", "node", "kind", "packet", "peer", "event", "subscription", "detail", "x_m", "y_m"]
_FOR_RUNS = (Kind.RECEIVE, Kind.SEND, Kind.DELIVER, Kind.DROP, Kind.JOIN, Kind.LEAVE, Kind.NOTE)
_OF_THE_WORLD = (Kind.PUBLISH, *SESSION_KINDS)


def records_of(batches: Iterable[pa.RecordBatch], world: World) -> Records:
    """What a replay needs of a log: of the receipts only the first of each event at each node."""
    details: dict[str, int] = {"": 0}
    packets: dict[str, int] = {"": 0}
    parts: list[tuple[Array, ...]] = []
    nodes, events = world.number_of_node, world.number_of_event
    for batch in batches:
        kind = _numbered(batch.column("kind"), {code.value: CODE[code] for code in _FOR_RUNS}).astype(np.int8)
        event = _numbered(batch.column("event"), events)
        rows = np.flatnonzero((kind >= 0) & ((kind != CODE[Kind.RECEIVE]) | (event >= 0)))
        if not len(rows):
            continue
        chosen = batch.take(pa.array(rows))
        kind, event = kind[rows], event[rows]
        node, peer = _numbered(chosen.column("node"), nodes), _numbered(chosen.column("peer"), nodes)
        time = chosen.column("time").to_numpy(zero_copy_only=False)
        detail = _numbered(chosen.column("detail"), details, grow=True)
        packet = _numbered(chosen.column("packet"), packets, grow=True)
        kept = _first_receipts(kind, event, node, time, len(nodes))
        parts.append(tuple(column[kept] for column in (time, kind, node, peer, event, detail, packet)))
    kinds = (np.float64, np.int8, np.int32, np.int32, np.int32, np.int32, np.int32)
    time, kind, node, peer, event, detail, packet = (
        np.concatenate([part[i] for part in parts]).astype(type_) if parts else np.zeros(0, dtype=type_)
        for i, type_ in enumerate(kinds)
    )
    kept = _first_receipts(kind, event, node, time, len(nodes))
    return Records(
        time=time[kept],
        kind=kind[kept],
        node=node[kept],
        peer=peer[kept],
        event=event[kept],
        details=list(details),
        detail=detail[kept],
        packets=list(packets),
        packet=packet[kept],
    )


def _first_receipts(kind: Array, event: Array, node: Array, time: Array, nodes: int) -> Array:
    """Which rows to keep: all but the receipts of what a node had received already."""
    rows = np.flatnonzero(kind == CODE[Kind.RECEIVE])
    rows = rows[np.argsort(time[rows], kind="stable")]
    pairs = event[rows].astype(np.int64) * (nodes + 1) + node[rows]
    firsts = rows[np.unique(pairs, return_index=True)[1]]
    kept: Array = kind != CODE[Kind.RECEIVE]
    kept[firsts] = True
    return kept


def _numbered(column: Any, numbers: dict[str, int], grow: bool = False) -> Array:
    """Texts as numbers; an unknown text is -1, or gets the next number with `grow`."""
    coded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    words = coded.dictionary.to_pylist()
    codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    if grow:
        used = np.unique(codes)
        table = np.zeros(max(1, len(words)), dtype=np.int32)
        table[used] = [numbers.setdefault(words[i] or "", len(numbers)) for i in used] if words else 0
    else:
        table = np.array([numbers.get(word, -1) for word in words] or [-1], dtype=np.int32)
    numbered: Array = table[codes]
    return numbered


@dataclass
class Recording:
    """What a log says of its own world, gathered batch by batch: sessions, publications and positions."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    "The records of sessions and publications."
    places: list[tuple[Array, Array, Array, Array]] = field(default_factory=list)
    "Node names, times, x and y."
    last: float = -math.inf

    def add(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the batches, and yield each of them again."""
        for batch in batches:
            kinds = _numbered(batch.column("kind"), {kind.value: i for i, kind in enumerate(_OF_THE_WORLD)})
            self.rows += batch.take(pa.array(np.flatnonzero(kinds >= 0))).to_pylist()
            x, y = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("x_m", "y_m"))
            rows = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
            time = batch.column("time").to_numpy(zero_copy_only=False)
            names = np.array(batch.column("node").take(pa.array(rows)).to_pylist(), dtype=object)
            self.places.append((names, time[rows], x[rows], y[rows]))
            if len(time):
                self.last = max(self.last, float(time.max()))
            yield batch

    def sessions(self) -> SessionReader:
        """The sessions by node, read from the records of all batches in order of time."""
        reader = SessionReader()
        for row in sorted(self.rows, key=lambda row: float(row["time"])):
            if row["kind"] != Kind.PUBLISH:
                reader.read(float(row["time"]), row["node"], row["kind"], row["subscription"], row["detail"] or "")
        return reader

    def world(self, key: str, name: str, since: float = -math.inf, range_m: float | None = None) -> World:
        """The world by this log alone, from that time on."""
        events: dict[str, Event] = {}
        for row in sorted(self.rows, key=lambda row: float(row["time"])):
            if row["kind"] == Kind.PUBLISH and (event := _event(row)) is not None and event.time >= since:
                events.setdefault(event.id, event)
        names = np.concatenate([part[0] for part in self.places] or [np.zeros(0, dtype=object)])
        time, x, y = (
            np.concatenate([part[i] for part in self.places] or [np.zeros(0)]).astype(np.float64) for i in (1, 2, 3)
        )
        kept = time >= since
        nodes = node_names(set(names[kept].tolist()), (row["node"] for row in self.rows if row["time"] >= since))
        number = {node: i for i, node in enumerate(nodes)}
        numbers = np.array([number[node] for node in names[kept]], dtype=np.int32)
        starts = [float(time[kept].min())] if kept.any() else []
        start = min([*starts, *(float(event.time) for event in events.values())], default=0.0)
        reader = self.sessions()
        if range_m is None:
            range_m = next((session.range_m for session in _by_start(reader) if session.range_m is not None), None)
        return World(
            key=key,
            name=name,
            seed=0,
            start=max(start, since),
            end=max(self.last, start + 1.0) if math.isfinite(self.last) else start + 1.0,
            counted_from=start,
            range_m=range_m,
            extent=None,
            nodes=nodes,
            trajectories=TrajectoryColumns.of(len(nodes), numbers, time[kept], x[kept], y[kept]),
            events=sorted(events.values(), key=lambda event: (event.time, event.id)),
            subscriptions=[span for span in reader.subscription_spans() if span.end > since],
            announcements=[span for span in reader.announcement_spans() if span.end > since],
        )

    def forget(self, before: float) -> None:
        """Drop the positions and publications from before that time; subscriptions and announcements from
        before may still be in force."""
        self.places = [
            tuple(column[part[1] >= before] for column in part)  # type: ignore[misc]
            for part in self.places
            if len(part[1]) and part[1].max() >= before
        ]
        self.rows = [row for row in self.rows if row["kind"] != Kind.PUBLISH or row["time"] >= before]

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The settings that nodes run with, by protocol; the latest count."""
        return {session.protocol: session.settings for session in reversed(_by_start(self.sessions()))}


def _by_start(sessions: Iterable[Session]) -> list[Session]:
    """The latest first."""
    return sorted(sessions, key=lambda session: -session.start)


def _event(row: Mapping[str, Any]) -> Event | None:
    """A published event as its record has it; None where it cannot be read."""
    try:
        event = Event.from_json(row["detail"])
    except EventError:
        return None
    return event if event.id else event.stamped(id=row["event"], source=row["node"], time=float(row["time"]))
