"""Parts of the pipeline by themselves: what identifies a run's code, rows of subscriptions, a range, verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from earshot.geometry import Area, Circle, Position
from earshot.pipeline.campaigns import campaigns
from earshot.pipeline.campaigns.campaigns import DECISIVE_ROOMS, code_digest
from earshot.pipeline.lake.tables import TABLES
from earshot.pipeline.oracle.oracle import _circles
from earshot.pipeline.oracle.reachable import ContactNetwork, _answer_chunk, _packed
from earshot.pipeline.oracle.workloads import area_json, span_of, subscription_row
from earshot.pipeline.reports import report
from earshot.pipeline.reports.replays import with_range
from earshot.pipeline.watch.spool_source import SessionSum
from earshot.records import Record
from earshot.records.sessions import SubscriptionSpan


def test_the_code_of_a_run_is_every_byte_of_the_rooms_that_decide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaigns, "files", lambda _: tmp_path)
    for room in (*DECISIVE_ROOMS, "cli"):
        (tmp_path / room / "deep").mkdir(parents=True)
        (tmp_path / room / "deep" / "one.py").write_text("x = 1\n")
    (tmp_path / "wire.py").write_text("x = 1\n")
    before = code_digest.__wrapped__()
    assert len(before) == 16
    (tmp_path / "cli" / "deep" / "one.py").write_text("x = 2\n")
    assert code_digest.__wrapped__() == before, "how results are printed does not change them"
    seen = {before}
    for file in (tmp_path / "wire.py", *(tmp_path / room / "deep" / "one.py" for room in DECISIVE_ROOMS)):
        file.write_text("x = 2\n")
        seen.add(code_digest.__wrapped__())
    assert len(seen) == 2 + len(DECISIVE_ROOMS)


@pytest.mark.parametrize(
    ("end", "until", "shown"),
    [(9.0, 20.0, 9.0), (20.0, 20.0, 20.0), (21.0, 20.0, None), (math.inf, 20.0, None), (math.inf, math.inf, None),
     (9.0, math.inf, 9.0)],
)  # fmt: skip
def test_a_subscription_that_outlasts_the_run_has_no_end(end: float, until: float, shown: float | None) -> None:
    span = SubscriptionSpan("a", "a/1", "Siren", Area(Circle(5.0), Position(1.0, 2.0)), 3.0, end)
    row = subscription_row("w", span, until)
    assert (row["workload"], row["node"], row["subscription"], row["filter"], row["start"], row["end"]) == (
        "w", "a", "a/1", "Siren", 3.0, shown,
    )  # fmt: skip
    assert span_of(row).region == span.region


def test_areas_of_events_have_a_circle_around_them() -> None:
    area = Area(Circle(5.0), Position(1.0, 2.0))
    rows = [{"workload": "w", "event": "e", "time": 3.0, "area": area_json(area)}]
    (found,) = _circles(pa.Table.from_pylist(rows).to_batches())
    assert found.to_pylist() == [
        {"workload": "w", "event": "e", "time": 3.0, "x_m": 1.0, "y_m": 2.0, "radius_m": 5.0}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("silent", "reach"), [(frozenset(), "at once"), (frozenset({"b"}), "no"), (frozenset({"c", "unknown"}), "at once")]
)
def test_a_node_that_passes_nothing_on_is_the_end_of_a_path(silent: frozenset[str], reach: str) -> None:
    contacts = {
        "a": np.array([0, 1]), "b": np.array([1, 2]), "start": np.array([0.0, 0.0]), "end": np.array([9.0, 9.0]),
    }  # fmt: skip
    packed = _packed(["a", "b", "c"], ("a", "b"), contacts)
    rows = [
        {"event": "e", "node": node, "source": "a", "time": 1.0, "deadline": 5.0} for node in ("c", "b", "far", "c")
    ]
    found = _answer_chunk("w", ContactNetwork(100.0, silent=silent), pa.Table.from_pylist(rows), [packed])
    assert {row["node"]: row["reach"] for row in found.to_pylist()} == {"b": "at once", "c": reach, "far": "no"}
    assert found.num_rows == 3, "two subscriptions of one node are one answer"


@dataclass(frozen=True)
class Seen:
    """A world, as far as its range is looked for."""

    trajectories: Any
    range_m: float | None = None
    notes: tuple[str, ...] = field(default=())


@pytest.mark.parametrize(
    ("places", "known", "found"),
    [
        ([0.0, 30.0, 70.0], None, 70.0), ([0.0, 30.0, math.nan], None, 30.0), ([0.0, 0.0, 0.0], None, None),
        ([math.nan] * 3, None, None), ([0.0, 30.0, 70.0], 100.0, 100.0),
    ],
)  # fmt: skip
def test_a_range_that_is_not_known_is_the_greatest_distance_at_which_a_node_was_heard(
    places: list[float], known: float | None, found: float | None
) -> None:
    at = np.array(places)
    tracks = SimpleNamespace(at=lambda nodes, _: (at[nodes], np.zeros(len(nodes))))
    records: Any = SimpleNamespace(
        event=np.array([0, 0, -1]), node=np.array([1, 2, 2]), peer=np.array([0, 0, 1]), time=np.zeros(3)
    )
    world: Any = with_range(Seen(tracks, known), records, "flooding")  # type: ignore[arg-type]
    assert (world.range_m, len(world.notes)) == (found, int(found is not None and known is None))


def test_up_to_three_verdicts_stand_by_themselves_and_more_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report.parts, "answers", lambda views: [f"{len(views)} counted"])
    monkeypatch.setattr(report.parts, "common_keys", lambda _: ())
    monkeypatch.setattr(report.parts, "verdict_block", lambda _, name, words: (name, words))
    monkeypatch.setattr(report, "assumption_words", lambda rows: rows)
    monkeypatch.setattr(report, "capacity_words", lambda capacity: capacity)
    view: Any = SimpleNamespace(name_without=lambda _: "p", ranking=SimpleNamespace(rows="it assumes"))
    facts: Any = SimpleNamespace(capacity="it carries")
    assert report._verdicts(facts, [view]) == [("p", ["it carries", "it assumes"])]
    assert report._verdicts(facts, [view] * 3) == [("p", ["it assumes"])] * 3
    assert report._verdicts(facts, [view] * 4) == ["4 counted"]


def test_the_records_of_a_session_are_counted_one_by_one() -> None:
    found = SessionSum()
    for time, kind in ((5.0, "send"), (2.0, "publish"), (9.0, "receive")):
        found.add(Record(time=time, node="a", kind=kind))
    found.add(None)
    assert found == SessionSum("a", 2.0, 9.0, 3, 1, 1)


def test_a_watchs_tables_keep_an_hour_of_versions_and_all_others_a_week() -> None:
    kept = {name: table.keep_h for name, table in TABLES.items()}
    assert kept == {name: 1.0 if name.startswith("watch") else 168.0 for name in kept}
