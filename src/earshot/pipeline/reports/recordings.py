"""Recordings: a log's batches as the columns a replay needs, and as a scene where there is nothing but
the log: of live nodes, or of a run whose trace is no longer at hand."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from earshot.errors import EventError, GeometryError
from earshot.events import Event
from earshot.geometry import Position, Proximity, parse_shape
from earshot.records import Kind
from earshot.view.packing import Array
from earshot.view.runs import CODE, Records
from earshot.view.world import Announced, Scene, Ways, Wished, node_names

LOG_COLUMNS = ["time", "node", "kind", "packet", "peer", "event", "subscription", "detail", "x_m", "y_m"]
_FOR_PLAYS = (Kind.RECEIVE, Kind.SEND, Kind.DELIVER, Kind.DROP, Kind.JOIN, Kind.LEAVE, Kind.NOTE)
_TELLING = (Kind.PUBLISH, Kind.SUBSCRIBE, Kind.UNSUBSCRIBE, Kind.ANNOUNCE, Kind.UNANNOUNCE, Kind.JOIN, Kind.LEAVE)


def records_of(batches: Iterable[pa.RecordBatch], scene: Scene) -> Records:
    """What a play needs of a log: of the receipts, the first of each event at each node."""
    details: dict[str, int] = {"": 0}
    packets: dict[str, int] = {"": 0}
    parts: list[tuple[Array, ...]] = []
    nodes, events = scene.number_of_node, scene.number_of_event
    for batch in batches:
        kind = _numbered(batch.column("kind"), {code.value: CODE[code] for code in _FOR_PLAYS}).astype(np.int8)
        event = _numbered(batch.column("event"), events)
        rows = np.flatnonzero((kind >= 0) & ((kind != CODE[Kind.RECEIVE]) | (event >= 0)))
        if not len(rows):
            continue
        chosen = batch.take(pa.array(rows))
        kind, event = kind[rows], event[rows]
        node, peer = _numbered(chosen.column("node"), nodes), _numbered(chosen.column("peer"), nodes)
        time = chosen.column("time").to_numpy(zero_copy_only=False)
        said = _numbered(chosen.column("detail"), details, grow=True)
        packet = _numbered(chosen.column("packet"), packets, grow=True)
        kept = _first_receipts(kind, event, node, time, len(nodes))
        parts.append(tuple(column[kept] for column in (time, kind, node, peer, event, said, packet)))
    kinds = (np.float64, np.int8, np.int32, np.int32, np.int32, np.int32, np.int32)
    time, kind, node, peer, event, said, packet = (
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
        detail=list(details),
        said=said[kept],
        packets=list(packets),
        packet=packet[kept],
    )


def _first_receipts(kind: Array, event: Array, node: Array, time: Array, nodes: int) -> Array:
    """The rows without receipts of what a node had received already."""
    rows = np.flatnonzero(kind == CODE[Kind.RECEIVE])
    rows = rows[np.argsort(time[rows], kind="stable")]
    pairs = event[rows].astype(np.int64) * (nodes + 1) + node[rows]
    firsts = rows[np.unique(pairs, return_index=True)[1]]
    kept: Array = kind != CODE[Kind.RECEIVE]
    kept[firsts] = True
    return kept


def _numbered(column: Any, numbers: dict[str, int], grow: bool = False) -> Array:
    """Texts as numbers; -1 for those that have none, unless they are to get one."""
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
    """What a log says of itself, gathered batch by batch: who was where, what was published and wanted."""

    told: list[dict[str, Any]] = field(default_factory=list)
    places: list[tuple[Array, Array, Array, Array]] = field(default_factory=list)
    "Node names, times, x and y."
    last: float = -math.inf

    def add(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the batches in, and hand them on."""
        for batch in batches:
            kinds = _numbered(batch.column("kind"), {kind.value: i for i, kind in enumerate(_TELLING)})
            self.told += batch.take(pa.array(np.flatnonzero(kinds >= 0))).to_pylist()
            x, y = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("x_m", "y_m"))
            rows = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
            time = batch.column("time").to_numpy(zero_copy_only=False)
            names = np.array(batch.column("node").take(pa.array(rows)).to_pylist(), dtype=object)
            self.places.append((names, time[rows], x[rows], y[rows]))
            if len(time):
                self.last = max(self.last, float(time.max()))
            yield batch

    def scene(self, key: str, name: str, since: float = -math.inf, range_m: float | None = None) -> Scene:
        """The scene as this log alone tells it, from that time on."""
        self.told.sort(key=lambda row: float(row["time"]))
        life = _Lives()
        events: dict[str, Event] = {}
        for row in self.told:
            life.happens(row)
            if row["kind"] == Kind.PUBLISH and (event := _event(row)) is not None and event.time >= since:
                events.setdefault(event.id, event)
        names = np.concatenate([part[0] for part in self.places] or [np.zeros(0, dtype=object)])
        time, x, y = (
            np.concatenate([part[i] for part in self.places] or [np.zeros(0)]).astype(np.float64) for i in (1, 2, 3)
        )
        kept = time >= since
        nodes = node_names(set(names[kept].tolist()), (row["node"] for row in self.told if row["time"] >= since))
        number = {node: i for i, node in enumerate(nodes)}
        numbers = np.array([number[one] for one in names[kept]], dtype=np.int32)
        ways = Ways.of(len(nodes), numbers, time[kept], x[kept], y[kept])
        starts = [float(time[kept].min())] if kept.any() else []
        start = min([*starts, *(float(event.time) for event in events.values())], default=0.0)
        wishes, announced = life.end()
        ordered = sorted(events.values(), key=lambda event: (event.time, event.id))
        return Scene(
            key=key,
            name=name,
            seed=0,
            start=max(start, since),
            end=max(self.last, start + 1.0) if math.isfinite(self.last) else start + 1.0,
            counted_from=start,
            range_m=range_m if range_m is not None else life.range_m,
            ground=None,
            nodes=nodes,
            ways=ways,
            events=ordered,
            wishes=[wish for wish in wishes if wish.end > since],
            announced=[one for one in announced if one.end > since],
        )

    def forget(self, before: float) -> None:
        """Let go where nodes were before that time, and what was published then; what was said of
        subscriptions and announcements may still stand."""
        self.places = [
            tuple(column[part[1] >= before] for column in part)  # type: ignore[misc]
            for part in self.places
            if len(part[1]) and part[1].max() >= before
        ]
        self.told = [row for row in self.told if row["kind"] != Kind.PUBLISH or row["time"] >= before]

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The settings that live nodes said they run with, by protocol."""
        return _Lives.over(self.told).settings


def _event(row: Mapping[str, Any]) -> Event | None:
    """A published event as its record has it; None where nobody could read it."""
    try:
        event = Event.from_json(row["detail"])
    except EventError:
        return None
    return event if event.id else event.stamped(id=row["event"], source=row["node"], time=float(row["time"]))


class _Lives:
    """Subscriptions and announcements while they stand."""

    def __init__(self) -> None:
        self.range_m: float | None = None
        self.protocols: dict[str, str] = {}
        self.settings: dict[str, dict[str, Any]] = {}
        self._wishes: dict[tuple[str, str], Wished] = {}
        self._announced: dict[tuple[str, str], Announced] = {}
        self._ended: list[Wished] = []
        self._fallen: list[Announced] = []

    @classmethod
    def over(cls, told: Sequence[Mapping[str, Any]]) -> _Lives:
        life = cls()
        for row in told:
            life.happens(row)
        return life

    def happens(self, row: Mapping[str, Any]) -> None:
        node, time, detail = row["node"], float(row["time"]), row["detail"] or ""
        match row["kind"]:
            case Kind.SUBSCRIBE:
                self._stop(node, row["subscription"], time)
                wish = Wished(node, row["subscription"], detail, None, time, math.inf)
                self._wishes[node, row["subscription"]] = wish
            case Kind.UNSUBSCRIBE:
                self._stop(node, row["subscription"], time)
            case Kind.ANNOUNCE:
                subject, proximity = _announcement(detail)
                self._fall(node, subject, time)
                self._announced[node, subject] = Announced(node, subject, proximity, time, math.inf)
            case Kind.UNANNOUNCE:
                self._fall(node, detail, time)
            case Kind.JOIN if detail.startswith("{"):
                self._begin(node, detail, time)
            case Kind.LEAVE if detail == "stopped":
                self._forget(node, time)

    def _begin(self, node: str, detail: str, time: float) -> None:
        """A live node starts: what an earlier one of that name wanted went with it."""
        self._forget(node, time)
        told = _table(detail)
        self.protocols[node] = str(told.get("protocol", ""))
        settings = told.get("settings")
        self.settings[self.protocols[node]] = settings if isinstance(settings, dict) else {}
        if isinstance(range_m := told.get("emulate_range_m"), int | float):
            self.range_m = float(range_m)

    def _forget(self, node: str, time: float) -> None:
        for owner, id in [key for key in self._wishes if key[0] == node]:
            self._stop(owner, id, time)
        for owner, subject in [key for key in self._announced if key[0] == node]:
            self._fall(owner, subject, time)

    def _stop(self, node: str, id: str, time: float) -> None:
        if (wish := self._wishes.pop((node, id), None)) is not None:
            self._ended.append(Wished(node, id, wish.filter, wish.region, wish.start, time))

    def _fall(self, node: str, subject: str, time: float) -> None:
        if (said := self._announced.pop((node, subject), None)) is not None:
            self._fallen.append(Announced(node, subject, said.proximity, said.start, time))

    def end(self) -> tuple[list[Wished], list[Announced]]:
        """All of them, those that still stand too."""
        return [*self._ended, *self._wishes.values()], [*self._fallen, *self._announced.values()]


def _table(text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _announcement(detail: str) -> tuple[str, Proximity | None]:
    """A live node's announcement is JSON; the simulator's begins with the subject."""
    told = _table(detail)
    if not told:
        return detail.partition(" within ")[0], None
    try:
        at = Position(float(told["x_m"]), float(told["y_m"]))
        return str(told["subject"]), Proximity(parse_shape(told["shape"]), at, bool(told["mobile"]))
    except (KeyError, TypeError, ValueError, GeometryError):
        return str(told.get("subject", "")), None
