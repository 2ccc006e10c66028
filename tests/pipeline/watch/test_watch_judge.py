"""What a task of a watch says of the events in its records, without Spark."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from earshot import Event
from earshot.geometry import Area, Circle, Position
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.oracle.matcher import Matcher
from earshot.pipeline.watch.watch_oracle import READ, Judge, _Records, trajectories_of, workload_of
from earshot.records.sessions import SubscriptionSpan
from earshot.records.trajectories import Trajectory

COMMUNITY = ("city", "cbf")
NAN = float("nan")


def row(
    kind: str, time: float, node: str, event: str, *, batch: int = 2, late: bool = False, hops: int = -1,
    detail: str = "", at: tuple[float, float] = (NAN, NAN),
) -> dict[str, Any]:  # fmt: skip
    return dict(zip(READ, (*COMMUNITY, batch, late, time, node, kind, event, hops, detail, *at), strict=True))


def published(id: str, time: float, *, type: str = "Siren", area: Area | None = None, late: bool = False) -> Any:
    event = Event(type, {"n": 1}, id=id, source="a", time=time, position=Position(0.0, 0.0), area=area)
    return row("publish", time, "a", id, late=late, detail=event.to_json(), at=(150.0, -50.0))


def table_of(*rows: dict[str, Any]) -> pa.Table:
    kinds = {"batch": pa.int64(), "late": pa.bool_(), "time": pa.float64(), "hops": pa.int64(), "x_m": pa.float64(),
             "y_m": pa.float64()}  # fmt: skip
    return pa.Table.from_pylist(list(rows), pa.schema([(name, kinds.get(name, pa.string())) for name in READ]))


def records(*rows: dict[str, Any]) -> _Records:
    return _Records(table_of(*rows))


PLACES = {
    (*COMMUNITY, "b"): Trajectory.through("b", [(0.0, 10.0, 0.0), (99.0, 10.0, 0.0)]),
    (*COMMUNITY, "c"): Trajectory.through("c", [(0.0, 500.0, 0.0), (99.0, 500.0, 0.0)]),
}
SPANS = [SubscriptionSpan(node, f"{node}/s", "Siren: true", None, 0.0, math.inf) for node in "bc"]
JUDGE = Judge(
    Matcher({workload_of(*COMMUNITY): SPANS}), SimpleNamespace(trajectories=lambda: PLACES),  # type: ignore[arg-type]
    "live", "2026-01-01", 2, settled_before=10.0, settled=20.0, patience_s=5.0, cell_m=100.0,
)  # fmt: skip


def test_a_pair_is_wanted_or_got_or_both_and_says_why_it_was_lost() -> None:
    pairs, counted, late = JUDGE.verdict(
        records(
            published("e", 15.0), row("send", 15.0, "a", "e"),
            row("receive", 15.1, "b", "e"), row("receive", 15.2, "b", "e"),
            row("deliver", 15.25, "b", "e", hops=3), row("deliver", 15.5, "b", "e", hops=2),
            row("deliver", 15.5, "d", "e"), row("receive", 15.3, "c", "e"), row("drop", 15.4, "c", "e", detail="full"),
            row("drop", 15.4, "c", "e", detail="expired"),
        )
    )  # fmt: skip
    about = {"network": "city", "protocol": "cbf", "event": "e", "batch": 2, "type": "Siren", "area": "100,-100",
             "source": "a", "published_at": 15.0, "minute": "0", "is_settled": True}  # fmt: skip
    assert pairs == [
        {**about, "node": "b", "wanted": True, "got": True, "delivered_at": 15.25, "latency_s": 0.25, "hops": 2,
         "receptions": 2, "reason": None},
        {**about, "node": "c", "wanted": True, "got": False, "delivered_at": None, "latency_s": None, "hops": None,
         "receptions": 1, "reason": "dropped: expired, full"},
        {**about, "node": "d", "wanted": False, "got": True, "delivered_at": 15.5, "latency_s": 0.5, "hops": None,
         "receptions": 0, "reason": None},
    ]  # fmt: skip
    found = [
        (one["wanted"], one["got"], one["reason"], one["latency_s"], one["events"], one["pairs"], one["hops"],
         one["hops_counted"])
        for one in counted
    ]  # fmt: skip
    assert found == [
        (None, None, None, None, 1, 0, 0, 0),
        (True, True, None, 0.25, 0, 1, 2, 1),
        (True, False, "dropped: expired, full", None, 0, 1, 0, 0),
        (False, True, None, None, 0, 1, 0, 0),
    ]
    assert late == []


@pytest.mark.parametrize(
    ("more", "reason"),
    [((), "never sent"), ((row("send", 15.0, "a", "e"),), "never heard"),
     ((row("receive", 15.0, "b", "e"),), "heard, not delivered"),
     ((row("receive", 15.0, "b", "e", late=True), row("send", 15.0, "a", "e", late=True)), "never sent")],
)  # fmt: skip
def test_a_loss_has_a_cause_by_how_far_the_event_came(more: tuple[Any, ...], reason: str) -> None:
    near = Area(Circle(50.0), Position(0.0, 0.0))
    pairs, _, _ = JUDGE.verdict(records(published("e", 15.0, area=near), *more))
    assert [(pair["node"], pair["reason"]) for pair in pairs] == [("b", reason)], "the other is not near"


def test_events_are_judged_from_the_last_settled_on_and_settle_with_their_patience() -> None:
    pairs, counted, _ = JUDGE.verdict(
        records(published("old", 10.0), published("new", 10.5), published("open", 20.5),
                published("late", 15.0, late=True), published("other", 15.0, type="Other"))
    )  # fmt: skip
    assert [(pair["event"], pair["is_settled"]) for pair in pairs if pair["node"] == "b"] == [
        ("new", True), ("open", False),
    ]  # fmt: skip
    assert sum(one["events"] for one in counted) == 3, "nobody wants the other, and it counts"
    nobody = replace(JUDGE, matcher=Matcher({}))
    assert nobody.verdict(records(published("new", 15.0)))[0] == []


def test_deliveries_that_come_too_late_to_count_are_reported_with_how_much() -> None:
    rows = (
        published("old", 4.0), row("deliver", 12.0, "b", "old"), row("deliver", 12.0, "c", "old", batch=1),
        row("deliver", 10.0, "b", "unknown"), row("deliver", 20.0, "c", "unknown"),
        row("deliver", 20.1, "d", "unknown"),
        published("late", 15.0, late=True), row("deliver", 16.0, "b", "late"), row("deliver", 9.0, "c", "late"),
    )  # fmt: skip
    _, _, late = JUDGE.verdict(records(*rows))
    assert [(one["event"], one["node"], one["time"], one["reason"], one["behind_s"]) for one in late] == [
        ("old", "b", 12.0, "overdue", 3.0),
        ("unknown", "c", 20.0, "unknown event", None),
        ("late", "b", 16.0, "of a late event", None),
    ]
    assert {(one["batch"], one["kind"], one["network"], one["protocol"]) for one in late} == {
        (2, "deliver", "city", "cbf")
    }  # fmt: skip


def test_the_verdict_is_files_of_what_is_settled_open_and_late_and_counts(tmp_path: Path) -> None:
    positions: Any = SimpleNamespace(trajectories=lambda: PLACES, folder=Folder(str(tmp_path)))
    judge = replace(JUDGE, positions=positions)
    table = table_of(published("e", 15.0), published("open", 20.5), row("deliver", 20.0, "c", "unknown"))
    (batch,) = judge(table.to_batches())
    files = [json.loads(one["value"]) for one in batch.to_pylist() if one["role"] == "file"]
    assert [(file["table"], file["rows"]) for file in files] == [
        ("watched_pairs", 2), ("watched_open", 2), ("watched_late", 1),
    ]  # fmt: skip
    assert all((tmp_path / file["table"] / file["path"]).is_file() for file in files)
    counts = [json.loads(one["value"]) for one in batch.to_pylist() if one["role"] == "count"]
    assert sum(one["pairs"] for one in counts) == 4
    assert list(judge([])) == []


def test_a_node_is_where_the_greatest_of_its_places_of_one_time_is() -> None:
    names = ("network", "protocol", "node", "time", "x_m", "y_m")
    rows = [("n", "p", "a", 2.0, 5.0, 0.0), ("n", "p", "a", 1.0, 1.0, 0.0), ("n", "p", "a", 2.0, 4.0, 9.0),
            ("n", "q", "a", 3.0, 7.0, 8.0)]  # fmt: skip
    found = trajectories_of(pa.Table.from_pylist([dict(zip(names, one, strict=True)) for one in rows]))
    assert {key: (list(one.times), list(one.xs), list(one.ys)) for key, one in found.items()} == {
        ("n", "p", "a"): ([1.0, 2.0], [1.0, 5.0], [0.0, 0.0]), ("n", "q", "a"): ([3.0], [7.0], [8.0]),
    }  # fmt: skip
