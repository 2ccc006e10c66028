"""Worlds and runs for a replay, from rows made here: extent, range, settings, batches, pages beside a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_on_duckdb import Session

from earshot.errors import UsageError
from earshot.events import Event
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.oracle.workloads import event_row, subscription_row
from earshot.pipeline.reports import lake_replays, replays
from earshot.pipeline.reports.catalogues import AnswerableRun, RunExplainer
from earshot.pipeline.reports.lake_replays import LakeCatalogue, write_replays
from earshot.pipeline.reports.recordings import Recording, records_of
from earshot.pipeline.reports.replays import (
    FolderCatalogue,
    _log_batches,
    _run_file,
    _shown_extent,
    is_run_folder,
    settings_of,
    with_range,
    world_from_tables,
)
from earshot.records import Kind
from earshot.records.sessions import SubscriptionSpan
from earshot.simulation.scenario.library import load_scenario
from pipeline.reports.test_recordings import FIRST, SECOND, batch, joined, published, recording, row

POSITIONS = pa.table(
    {"node": ["b", "a", "a"], "time": [0.0, 0.0, 10.0], "x_m": [30.0, 0.0, 0.0], "y_m": [40.0, 0.0, 0.0]}
)


def world(scenario: Any = None) -> Any:
    events = [Event("Siren", {}, id=id, source="a", time=time) for id, time in (("e2", 5.0), ("e1", 5.0), ("e0", 4.0))]
    span = SubscriptionSpan("b", "b/s", "Siren: true")
    return world_from_tables(
        "w", scenario, "city", 3, (0.0, 10.0, 2.0), POSITIONS, [event_row("w", one) for one in events],
        [subscription_row("w", span)], [],
    )  # fmt: skip


def test_a_world_has_its_nodes_events_and_spans_in_order() -> None:
    found = world()
    assert (found.key, found.name, found.seed) == ("w", "city", 3)
    assert (found.start, found.end, found.counted_from) == (0.0, 10.0, 2.0)
    assert (found.nodes, [event.id for event in found.events]) == (["a", "b"], ["e0", "e1", "e2"])
    assert [span.node for span in found.subscriptions] == ["b"]
    assert (found.range_m, found.extent) == (None, None)
    x, y = found.trajectories.at(np.array([0, 1]), np.array([5.0, 0.0]))
    assert (x.tolist(), y.tolist()) == ([0.0, 30.0], [0.0, 40.0])


def test_a_scenario_gives_its_radios_range_and_its_area_if_that_begins_at_the_origin() -> None:
    city = load_scenario("city")
    assert (world(city).range_m, world(city).extent) == (city.medium.range_m, (1000.0, 1000.0))
    moved: Any = SimpleNamespace(area=SimpleNamespace(box=(0.0, 5.0, 10.0, 10.0), width_m=10.0, height_m=5.0))
    assert _shown_extent(moved) is None
    at_origin: Any = SimpleNamespace(area=SimpleNamespace(box=(0.0, 0.0, 10.0, 5.0), width_m=10.0, height_m=5.0))
    assert (_shown_extent(at_origin), _shown_extent(None)) == ((10.0, 5.0), None)


def heard(*rows: dict[str, Any]) -> Any:
    return records_of([batch(*rows)], world())


def test_the_range_is_the_greatest_distance_at_which_a_node_was_heard() -> None:
    """a stands at the origin, b 30 m east and 40 m north of it."""
    far = heard(row(1.0, "b", Kind.RECEIVE, event="e1", peer="a"), row(2.0, "a", Kind.RECEIVE, event="e1", peer="a"))
    found = with_range(world(), far, "steam")
    assert found.range_m == pytest.approx(50.0)
    assert found.notes == [
        "The log does not hold the radio range: drawn is the greatest distance at which a node was heard."
    ]
    near = replace(world(), range_m=7.0)
    assert with_range(near, far, "steam") is near
    plain = world()
    assert with_range(plain, far, "siena") is plain, "it needs routing: packets do not go over one radio"
    assert with_range(plain, heard(), "steam") is plain
    same = heard(row(2.0, "a", Kind.RECEIVE, event="e1", peer="a"))
    assert with_range(plain, same, "steam") is plain
    unknown = heard(
        row(2.0, "b", Kind.RECEIVE, event="e1", peer="nobody"), row(2.0, "b", Kind.SEND, event="", peer="a")
    )
    assert with_range(plain, unknown, "steam") is plain


def test_a_distance_counts_from_node_to_node_and_not_from_the_origin() -> None:
    """3 m east and 4 m north of each other, some 100 m north of the origin."""
    y_m = pa.array([104.0, 100.0, 100.0])
    positions = POSITIONS.set_column(2, "x_m", pa.array([3.0, 0.0, 0.0])).set_column(3, "y_m", y_m)
    found = world_from_tables("w", None, "n", 0, (0, 1, 0), positions, [event_row("w", world().events[0])], [], [])
    records = records_of([batch(row(0.0, "b", Kind.RECEIVE, event="e0", peer="a"))], found)
    assert with_range(found, records, "steam").range_m == pytest.approx(5.0)


def test_a_range_of_a_metre_is_a_range() -> None:
    positions = POSITIONS.set_column(2, "x_m", pa.array([0.6, 0.0, 0.0])).set_column(
        3, "y_m", pa.array([0.8, 0.0, 0.0])
    )
    found = world_from_tables("w", None, "n", 0, (0, 1, 0), positions, [event_row("w", world().events[0])], [], [])
    records = records_of([batch(row(0.0, "b", Kind.RECEIVE, event="e0", peer="a"))], found)
    assert with_range(found, records, "steam").range_m == pytest.approx(1.0)


def test_a_protocol_that_would_have_to_be_loaded_has_no_settings(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit('loaded')\n")
    assert settings_of(f"{tmp_path}/mine.py:Mine", None, {}) is None


# -- folders


GOOD = {"scenario": {}, "protocol": "steam", "settings": {}, "seed": 1}


@pytest.mark.parametrize("name", list(GOOD))
def test_a_folders_file_needs_all_that_was_run_in_the_right_kinds(name: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({**GOOD, "more": 1}))
    assert _run_file(tmp_path) == {**GOOD, "more": 1}
    for wrong in ({**GOOD, name: None}, {key: value for key, value in GOOD.items() if key != name}):
        (tmp_path / "run.json").write_text(json.dumps(wrong))
        with pytest.raises(UsageError, match="does not say what was run"):
            _run_file(tmp_path)


def test_a_folder_is_a_run_if_it_has_both_files(tmp_path: Path) -> None:
    assert not is_run_folder(tmp_path)
    (tmp_path / "run.json").touch()
    assert not is_run_folder(tmp_path)
    with pytest.raises(UsageError, match=r"log.parquet is not a log: "):
        list(_log_batches(tmp_path))
    pq.write_table(pa.Table.from_batches([FIRST]), tmp_path / "log.parquet")
    assert is_run_folder(tmp_path)
    (found,) = _log_batches(tmp_path)
    assert found.num_rows == FIRST.num_rows
    (tmp_path / "log.parquet").write_text("nothing")
    with pytest.raises(UsageError, match=r"log.parquet is not a log: "):
        list(_log_batches(tmp_path))


def test_a_folders_run_has_the_settings_of_its_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {"scenario": {"name": "town", "duration_s": 10.0}, "settings": {"hop_limit": 3}}
    (tmp_path / "run.json").write_text(json.dumps({**GOOD, **about}))
    pq.write_table(pa.Table.from_batches([FIRST]), tmp_path / "log.parquet")
    asked: list[Any] = []
    monkeypatch.setattr(replays, "settings_of", lambda *given: asked.append(given))
    FolderCatalogue([tmp_path]).answerable("world-0", tmp_path.name)
    assert asked == [("steam", None, {"hop_limit": 3})]


# -- recordings


def test_what_happened_exactly_at_the_time_asked_for_is_kept() -> None:
    found = recording().world("w", "n", since=15.0)
    assert (found.nodes, found.start, found.trajectories.time.tolist()) == (["car2"], 15.0, [15.0])
    alone = Recording()
    list(alone.add([batch(joined(20.0, "bus", "steam", 9.0))]))
    assert alone.world("w", "n", since=20.0).nodes == ["bus"]
    assert alone.world("w", "n", since=20.5).nodes == []
    assert (alone.world("w", "n").start, alone.world("w", "n").end) == (0.0, 20.0)


def test_the_first_publication_of_an_event_counts_and_one_without_an_id_takes_its_records() -> None:
    found = Recording()
    plain = Event("Siren", {"speed": 1.0}).to_json()
    twice = [published(3.0, "a", "e"), published(2.0, "b", "e")]
    list(found.add([batch(*twice, row(4.0, "c", Kind.PUBLISH, event="own", detail=plain))]))
    events = found.world("w", "n").events
    assert [(event.id, event.source, event.time) for event in events] == [("e", "b", 2.0), ("own", "c", 4.0)]


def test_texts_that_are_missing_are_empty_and_the_first_receipt_is_each_nodes_and_each_events() -> None:
    """Of a node and an event the earliest, also where their numbers are alike in sum."""
    given = batch(
        *(row(5.0 - k, node, Kind.RECEIVE, event=event, peer="a", packet="p")
          for k, (node, event) in enumerate([("b", "e0"), ("a", "e1"), ("b", "e0"), ("a", "e1"), ("a", "e2")]))
    )  # fmt: skip
    nothing = pa.RecordBatch.from_pylist(
        [{**given.to_pylist()[0], "time": 9.0, "kind": "drop", "detail": None, "packet": None, "peer": None}],
        schema=given.schema,
    )
    found = records_of([given, nothing], world())
    rows = sorted(zip(found.time.tolist(), found.node.tolist(), found.event.tolist(), strict=True))
    assert rows == [(1.0, 0, 2), (2.0, 0, 1), (3.0, 1, 0), (9.0, 1, 0)]
    last = found.time.tolist().index(9.0)
    assert (found.details[found.detail[last]], found.packets[found.packet[last]], found.peer[last]) == ("", "", -1)


# -- answers


def test_the_log_of_an_event_has_its_records_with_names() -> None:
    records = records_of([FIRST, SECOND], recording().world("w", "n"))
    explainer = RunExplainer(recording().world("w", "n"), records)
    entries = [row for one in ("e1", "e0") for row in entries_of(explainer, one)]
    assert ("send", "car2", "", "steam-event") in entries
    assert ("receive", "car10", "car2", "steam-event") in entries
    assert ("deliver", "car10", "", "") in entries
    assert len(entries) == 3


def entries_of(explainer: RunExplainer, event: str) -> list[tuple[str, ...]]:
    """Kind, node, peer and packet of each record of an event."""
    given: list[Any] = []
    number = explainer.world.number_of_event[event]
    keep = pytest.MonkeyPatch()
    with keep.context() as patch:
        patch.setattr("earshot.pipeline.reports.catalogues.EventLog", lambda rows: given.extend(rows))
        explainer._log_of(number)
    return [(str(one["kind"].value), one["node"], one["peer"], one["packet"]) for one in given]


def test_answers_are_of_missed_then_unexpected_then_expected_deliveries() -> None:
    def pairs(*some: tuple[int, int]) -> tuple[Any, Any]:
        return tuple(np.array(column, dtype=np.int32) for column in zip(*some, strict=True))  # type: ignore[return-value]

    asked: list[Any] = []
    explainer: Any = SimpleNamespace(
        world=SimpleNamespace(nodes=["only", "two"], expected=pairs((0, 0), (1, 1), (2, 0))),
        for_pairs=lambda some: asked.extend(some) or list(asked),
    )
    run: Any = replay_of(pairs((2, 0), (1, 0)))
    answered = AnswerableRun(run, explainer).with_answers(3)
    assert (asked, answered.answers) == ([(0, 0), (1, 1), (1, 0)], False)
    asked.clear()
    AnswerableRun(run, explainer).with_answers(9)
    assert asked == [(0, 0), (1, 1), (1, 0), (2, 0)]
    one = SimpleNamespace(world=SimpleNamespace(nodes=["only"], expected=pairs((0, 0), (1, 0))))
    one.for_pairs = explainer.for_pairs
    asked.clear()
    alone: Any = one
    AnswerableRun(replay_of(pairs((1, 0))), alone).with_answers(9)
    assert asked == [(0, 0), (1, 0)]


def replay_of(deliveries: Any) -> Any:
    from earshot.pipeline.reports.catalogues import replayed_run

    found = replayed_run(world(), heard(), "r", "r", "steam", None, {})
    return replace(found, deliveries=deliveries)


# -- a lake's runs


def lake_of(root: Path, runs: Sequence[tuple[str, str, int]], **more: str) -> ArrowLake:
    """A lake with runs, each of a workload and with a seed, and no scenario; `more` is columns of each run."""
    lake = ArrowLake(root)
    for run, workload, seed in runs:
        about = {
            "scenario": "town", "workload": workload, "protocol": "steam", "variant": "steam", "settings": "{}",
            "seed": seed, "duration_s": 10.0, "warm_up_s": 2.0, "status": "done", "took_s": 0.1, **more,
        }  # fmt: skip
        lake.write_rows("runs", [about], run=run)
        lake.write_rows("positions", POSITIONS.to_pylist(), trace=workload)
        events = [event_row(workload, Event("Siren", {}, id="e1", source="a", time=5.0))]
        lake.write_rows(
            "events", [{k: v for k, v in one.items() if k != "workload"} for one in events], workload=workload
        )
        lake.write_rows("expected", [{"event": "e1", "node": "b"}], workload=workload)
        names = ("time", "node", "kind", "event", "peer", "packet", "detail", "subscription", "x_m", "y_m")
        heard_once = row(5.5, "b", Kind.RECEIVE, event="e1", peer="a")
        lake.write_rows("log", [{**dict.fromkeys(names, ""), "x_m": 0.0, "y_m": 0.0, **heard_once}], run=run)
    return lake


def test_a_world_of_a_lake_has_who_is_expected_and_a_range_from_its_log(tmp_path: Path) -> None:
    found = LakeCatalogue(lake_of(tmp_path, [("r1", "w1", 1)])).world("w1")
    assert [(found.events[event].id, found.nodes[node]) for event, node in zip(*found.expected, strict=True)] == [
        ("e1", "b")
    ]
    assert (found.start, found.end, found.counted_from) == (0.0, 10.0, 2.0)
    assert found.range_m == pytest.approx(50.0)


def test_a_lakes_run_shows_all_settings_of_its_protocol_and_those_given_where_nobody_knows_it(tmp_path: Path) -> None:
    given = '{"hop_limit": 3}'
    known = lake_of(tmp_path / "known", [("r1", "w1", 1)], protocol="flooding", settings=given)
    unknown = lake_of(tmp_path / "unknown", [("r1", "w1", 1)], protocol="nobody-knows", settings=given)
    assert [LakeCatalogue(lake).run("w1", "r1").settings for lake in (known, unknown)] == [
        {"hop_limit": 3, "lifespan_s": 60.0, "memory": 4096, "jitter_s": 0.0}, {"hop_limit": 3},
    ]  # fmt: skip


def test_worlds_with_the_same_title_are_told_apart_by_their_keys(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [("r1", "first-world", 1), ("r2", "second", 1), ("r3", "third", 2)])
    assert [(entry.key, entry.title) for entry in LakeCatalogue(lake).worlds()] == [
        ("first-world", "town, seed 1 (first-)"), ("second", "town, seed 1 (second)"), ("third", "town, seed 2"),
    ]  # fmt: skip


def test_replays_of_a_report_are_files_in_a_folder_beside_it(
    quick_spark: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake_of(tmp_path / "lake", [("r1", "w1", 1), ("r2", "w2", 2), ("r3", "w3", 3)])
    lake = Lake(quick_spark, tmp_path / "lake")  # type: ignore[arg-type]
    lake.arrow.write_rows("positions", [], trace="w2")
    monkeypatch.setattr(lake_replays, "MOST_WORLDS", 2)
    asked: list[Any] = []

    def document(root: str, runs: list[str], entry: Any) -> str:
        asked.append((root, runs, entry.key))
        return f"<p>{entry.title}</p>"

    monkeypatch.setattr(lake_replays, "_document", document)
    monkeypatch.setattr(
        lake_replays,
        "each_in_a_task",
        lambda session, items, work: [work(one) for one in items if session is quick_spark],
    )
    links = write_replays(lake, tmp_path / "my page.html", ["r1", "r2", "r3"])
    assert links == {
        "r1": "my%20page-replays/town-seed-1-w1.html#run=r1", "r3": "my%20page-replays/town-seed-3-w3.html#run=r3",
    }  # fmt: skip
    assert asked == [(lake.folder.root, ["r1", "r2", "r3"], "w1"), (lake.folder.root, ["r1", "r2", "r3"], "w3")]
    assert (tmp_path / "my page-replays" / "town-seed-3-w3.html").read_text() == "<p>town, seed 3</p>"
