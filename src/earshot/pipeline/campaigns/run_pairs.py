"""What the records of one run say of each (event, node): published, wanted, heard, delivered, lost.

`condensed` shrinks records to a few for each event and node. It may be applied to parts, and again to what it gave, so
that a log of any length is read piece by piece. `RunPairs` then holds one run's pairs as columns.

Besides the kinds of `earshot.records` there are two, so that all comes in one table: `expected` (the oracle wants the
node to get the event) and `reachable` (with the reach as its detail).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from earshot.records import Kind

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.object_]

EXPECTED, REACHABLE = "expected", "reachable"
RECORDS = pa.schema(
    [
        ("kind", pa.string()),
        ("event", pa.string()),
        ("node", pa.string()),
        ("time", pa.float64()),
        ("x_m", pa.float64()),
        ("y_m", pa.float64()),
        ("hops", pa.int64()),
        ("bytes", pa.int64()),
        ("packet", pa.string()),
        ("detail", pa.string()),
        ("records", pa.int64()),
    ]
)
"The columns of records that metrics need, and how many records a row stands for."
READ = tuple(name for name in RECORDS.names if name != "records")
_MERGED: dict[str, tuple[tuple[str, ...], tuple[tuple[str, str], ...]]] = {
    Kind.RECEIVE: (("event", "node"), (("records", "sum"),)),
    Kind.DELIVER: (("event", "node"), (("time", "min"), ("hops", "min"))),
    Kind.SEND: (("event", "packet"), (("records", "sum"), ("bytes", "sum"))),
    Kind.DROP: (("event", "node", "detail"), (("records", "sum"),)),
    EXPECTED: (("event", "node"), ()),
    REACHABLE: (("event", "node", "detail"), ()),
    Kind.PUBLISH: (("event", "node", "time", "x_m", "y_m", "detail"), ()),
    Kind.AIRTIME: (("node", "time", "detail"), (("records", "sum"),)),
}
"By kind: the columns that are a row's key, and how the other columns of rows with the same key are combined."


def records_of(batch: pa.RecordBatch | pa.Table, warm_up_s: float) -> pa.Table:
    """The rows of a log that metrics count: those after the warm-up, and of airtime those whose window is."""
    table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    time, kind = table.column("time"), table.column("kind")
    counts = pc.if_else(pc.equal(kind, Kind.AIRTIME), pc.greater(time, warm_up_s), pc.greater_equal(time, warm_up_s))
    table = table.filter(counts).select(READ)
    return table.append_column("records", pa.repeat(1, table.num_rows)).cast(RECORDS)


def condensed(parts: Iterable[pa.Table]) -> pa.Table:
    """Rows of `RECORDS` with those alike merged."""
    table = pa.concat_tables([RECORDS.empty_table(), *parts])
    found = [RECORDS.empty_table()]
    for kind, (keys, merged) in _MERGED.items():
        some = table.filter(pc.equal(table.column("kind"), kind))
        if kind == Kind.DELIVER:  # a delivery without a count of hops
            known = pc.greater_equal(some.column("hops"), 0)
            some = some.set_column(
                RECORDS.get_field_index("hops"), "hops", pc.if_else(known, some.column("hops"), None)
            )
        if not some.num_rows:
            continue
        groups = some.group_by(list(keys)).aggregate(list(merged))
        names = {f"{name}_{how}": name for name, how in merged}
        columns = {names.get(name, name): groups.column(name) for name in groups.column_names}
        columns["kind"] = pa.repeat(str(kind), groups.num_rows)
        blank = {name: pa.nulls(groups.num_rows, RECORDS.field(name).type) for name in RECORDS.names}
        found.append(pa.table({**blank, **columns}).select(RECORDS.names).cast(RECORDS))
    return pa.concat_tables(found)


def condensed_log(batches: Iterable[pa.RecordBatch], warm_up_s: float) -> pa.Table:
    """A run's log, read piece by piece, as `condensed` leaves it."""
    return condensed(condensed([records_of(batch, warm_up_s)]) for batch in batches)


def asked_rows(expected: pa.Table, reachable: pa.Table | None = None) -> pa.Table:
    """The expected pairs (event, node), and how far pairs are reachable (event, node, reach), as rows of `RECORDS`."""
    found = []
    for kind, table, details in (
        (EXPECTED, expected, None),
        (REACHABLE, reachable, "reach"),
    ):
        if table is not None:
            rows = table.num_rows
            columns: dict[str, Any] = {name: pa.nulls(rows, RECORDS.field(name).type) for name in RECORDS.names}
            columns |= {"kind": pa.repeat(kind, rows), "event": table.column("event"), "node": table.column("node")}
            columns |= {"detail": table.column(details)} if details else {}
            found.append(pa.table(columns).cast(RECORDS))
    return condensed(found)


class _Published(msgspec.Struct):
    """What metrics read of a publication's detail."""

    type: str | None = None


_published = msgspec.json.Decoder(_Published)


@dataclass(frozen=True, slots=True)
class RunPairs:
    """One row for each (event, node) of a published event that the node was expected to get, got, heard or published.
    Events and nodes are numbers; what is said of an event is said once."""

    events: list[str]
    nodes: list[str]
    published_at: Floats
    type: list[str | None]
    source: list[str]
    x_m: Floats
    y_m: Floats
    sent: Flags

    event: Numbers
    node: Numbers
    publishes: Flags
    wanted: Flags
    receptions: Numbers
    delivered_at: Floats
    "Not a number where it was not delivered."
    hops: Floats
    "Not a number where nothing counts them."
    dropped: Texts
    reach: Texts

    @property
    def got(self) -> Flags:
        """Whether it was delivered."""
        return ~np.isnan(self.delivered_at)

    @property
    def met(self) -> Flags:
        """Whether it was expected and delivered."""
        return self.wanted & self.got

    @property
    def latency_s(self) -> Floats:
        """From publication to delivery."""
        return self.delivered_at - self.published_at[self.event]

    @property
    def minute(self) -> list[str]:
        """Of each event, the minute of its publication."""
        return [str(math.floor(time / 60.0)) for time in self.published_at.tolist()]

    @property
    def cause(self) -> Texts:
        """Why an expected pair was not delivered; None where it was."""
        found = np.full(len(self.event), None, dtype=object)
        for at in np.flatnonzero(self.wanted & ~self.got).tolist():
            reach, dropped = self.reach[at], self.dropped[at]
            if reach == "no":
                found[at] = "impossible"
            elif reach == "by carrying":
                found[at] = "needed carrying"
            else:
                found[at] = loss_cause(dropped, bool(self.receptions[at]), bool(self.sent[self.event[at]]))
        return found


def loss_cause(dropped: str | None, was_heard: bool, was_sent: bool) -> str:
    """Why a reachable pair was not delivered: what its node dropped it for, or how far the event came."""
    if dropped is not None:
        return f"dropped: {dropped}"
    if was_heard:
        return "heard, not delivered"
    return "never heard" if was_sent else "never sent"


def pairs_of(records: pa.Table) -> RunPairs:
    """The pairs of one run, from its condensed records."""

    def of_kind(kind: str) -> pa.Table:
        return records.filter(pc.equal(records.column("kind"), kind))

    published = of_kind(Kind.PUBLISH).filter(pc.not_equal(of_kind(Kind.PUBLISH).column("event"), ""))
    about: dict[str, tuple[float, str | None, str, float, float]] = {}
    for row in published.to_pylist():
        known = about.get(row["event"])
        given = row["time"], _published.decode(row["detail"]).type, row["node"], row["x_m"], row["y_m"]
        about[row["event"]] = given if known is None else _together(known, given)
    events = sorted(about)
    kinds = {kind: of_kind(kind) for kind in (Kind.RECEIVE, Kind.DELIVER, Kind.DROP, EXPECTED, REACHABLE)}
    kinds = {Kind.PUBLISH: published, **kinds}
    names = pa.chunked_array([chunk for some in kinds.values() for chunk in some.column("node").chunks], pa.string())
    nodes = sorted(pc.unique(names).to_pylist())
    of_event, of_node = pa.array(events, pa.string()), pa.array(nodes, pa.string())
    rows, keys = {}, {}
    for kind, some in kinds.items():
        ours = some.filter(pc.is_in(some.column("event"), of_event))
        event, node = (
            pc.index_in(ours.column(name), values).to_numpy().astype(np.int64)
            for name, values in (("event", of_event), ("node", of_node))
        )
        rows[kind], keys[kind] = ours, event * len(nodes) + node
    every = np.unique(np.concatenate([keys[kind] for kind in (Kind.PUBLISH, Kind.RECEIVE, Kind.DELIVER, EXPECTED)]))

    def column(kind: str, name: str, default: float) -> Floats:
        values = np.full(len(every), default)
        given = rows[kind].column(name).cast(pa.float64()).to_numpy(zero_copy_only=False)
        values[np.searchsorted(every, keys[kind])] = given
        return values

    columns = list(zip(*(about[event] for event in events), strict=True)) or [()] * 5
    sends = of_kind(Kind.SEND).column("event")
    return RunPairs(
        events=events,
        nodes=nodes,
        published_at=np.array(columns[0], dtype=np.float64),
        type=list(columns[1]),
        source=list(columns[2]),
        x_m=np.array(columns[3], dtype=np.float64),
        y_m=np.array(columns[4], dtype=np.float64),
        sent=pc.is_in(of_event, pc.unique(sends)).to_numpy(zero_copy_only=False).astype(bool),
        event=every // max(1, len(nodes)),
        node=every % max(1, len(nodes)),
        publishes=np.isin(every, keys[Kind.PUBLISH]),
        wanted=np.isin(every, keys[EXPECTED]),
        receptions=column(Kind.RECEIVE, "records", 0.0).astype(np.int64),
        delivered_at=column(Kind.DELIVER, "time", math.nan),
        hops=column(Kind.DELIVER, "hops", math.nan),
        dropped=_largest_texts(every, keys[Kind.DROP], rows[Kind.DROP].column("detail")),
        reach=_largest_texts(every, keys[REACHABLE], rows[REACHABLE].column("detail")),
    )


def _together(
    one: tuple[float, str | None, str, float, float], other: tuple[float, str | None, str, float, float]
) -> tuple[float, str | None, str, float, float]:
    """Two publications of one event id: the first time, the last of the rest."""
    return (
        min(one[0], other[0]),
        max(one[1], other[1], key=lambda text: (text is not None, text or "")),
        max(one[2], other[2]),
        float(np.maximum(one[3], other[3])),
        float(np.maximum(one[4], other[4])),
    )


def _largest_texts(every: Numbers, keys: Numbers, texts: pa.ChunkedArray) -> Texts:
    """For each key of `every` its last text in alphabetical order; None where it has none."""
    found = np.full(len(every), None, dtype=object)
    at = np.searchsorted(every, keys)
    for place, key, text in zip(at.tolist(), keys.tolist(), texts.to_pylist(), strict=True):
        if place < len(every) and every[place] == key and (found[place] is None or text > found[place]):
            found[place] = text
    return found


PAIRS = (
    "run string, event string, node string, published_at double, type string, source string, x_m double, y_m double, "
    "receptions bigint, delivered_at double, hops int, dropped string, wanted boolean, reach string, "
    "publishes boolean, sent boolean, got boolean, minute string, latency_s double, cause string"
)
"The columns of `pairs_table`, for Spark."


def pairs_table(run: str, pairs: RunPairs) -> pa.Table:
    """The pairs as a table."""
    event = pairs.event

    def of_event(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind).take(pa.array(event))

    def number(values: Floats, kind: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, pa.float64(), from_pandas=True).cast(kind or pa.float64())

    text = pa.string()
    return pa.table(
        {
            "run": pa.repeat(pa.scalar(run, text), len(event)),
            "event": of_event(pairs.events, text),
            "node": pa.array(pairs.nodes, text).take(pa.array(pairs.node)),
            "published_at": pairs.published_at[event],
            "type": of_event(pairs.type, text),
            "source": of_event(pairs.source, text),
            "x_m": pairs.x_m[event],
            "y_m": pairs.y_m[event],
            "receptions": pairs.receptions,
            "delivered_at": number(pairs.delivered_at),
            "hops": number(pairs.hops, pa.int32()),
            "dropped": pa.array(pairs.dropped, text),
            "wanted": pairs.wanted,
            "reach": pa.array(pairs.reach, text),
            "publishes": pairs.publishes,
            "sent": pairs.sent[event],
            "got": pairs.got,
            "minute": of_event(pairs.minute, text),
            "latency_s": number(pairs.latency_s),
            "cause": pa.array(pairs.cause, text),
        }
    )
