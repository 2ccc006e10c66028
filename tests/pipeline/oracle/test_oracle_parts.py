"""The oracle's parts without Spark: answers from a lake's rows, candidates of spans, and a user's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from earshot import Event, Position
from earshot.errors import EventError, LakeError, ScenarioError
from earshot.geometry import Area, Circle
from earshot.pipeline.oracle import content_join, matcher, why
from earshot.pipeline.oracle.content_join import _matched, _oracle_of, fit_one_group
from earshot.pipeline.oracle.matcher import CandidateLookup, Matcher, trajectory_of, viewer_at
from earshot.pipeline.oracle.oracle import _accepted, _demands, _refuse
from earshot.pipeline.oracle.own_workloads import (
    _by_suffix,
    _event_rows,
    _from_line,
    _from_xml,
    _here,
    _subscription_rows,
)
from earshot.pipeline.oracle.why import EventLog, Hop, ask_why, explain_receiver
from earshot.pipeline.oracle.workloads import EVENTS_ARROW, area_json, event_row
from earshot.records.sessions import SubscriptionSpan

EVENT = Event("Siren", {"speed": 18}, id="a-0", source="a", time=5.0, position=Position(0, 0))
WANTS = SubscriptionSpan("c", "c/1", "Siren: true", None, 0.0, 6.0)


def record(time: float, node: str, kind: str, peer: str = "", transmission: int = -1, detail: str = "") -> Any:
    names = ("time", "node", "kind", "peer", "transmission", "packet", "detail")
    return dict(zip(names, (time, node, kind, peer, transmission, "flood", detail), strict=True))


# Why.


def test_a_path_is_by_the_first_receipts_and_ends_in_circles_and_at_strangers() -> None:
    log = EventLog(
        [
            record(5.3, "c", "receive", "x", 3), record(5.2, "c", "receive", "b", 2),
            record(5.1, "b", "receive", "a", 1), record(5.1, "b", "receive", "y", 0),
            record(5.2, "d", "receive", "gone"), record(5.0, "e", "receive", "f"),
            record(5.0, "f", "receive", "e"), record(5.4, "a", "receive", "b"),
        ]
    )  # fmt: skip
    assert log.path_to("c", "a") == [Hop(5.1, "y", "b", "flood"), Hop(5.2, "b", "c", "flood")]
    assert log.path_to("d", "a") == [Hop(5.2, "gone", "d", "flood")]
    assert log.path_to("a", "a") == log.path_to("nobody", "a") == []
    assert 2 <= len(log.path_to("e", "a")) <= 9, "two that heard it of each other"


def test_what_is_known_of_a_loss_is_reported() -> None:
    drops = [record(5.0, "d", "drop", detail="queue-full")] * 2 + [record(5.0, "e", "drop", detail="expired")]
    drops += [record(5.0, "e", "drop", detail=f"why {n}") for n in range(9)]
    log = EventLog([record(5.0, "a", "send"), record(5.1, "b", "receive", "a"), *drops])
    assert log.losses_before("b", "a") == ["b heard the event and did not deliver it"]
    assert log.losses_before("e", "a")[:2] == ["e dropped it: expired", "e dropped it: why 0"]
    reported = log.losses_before("z", "a")
    assert reported[:2] == [
        "2 nodes had the event, 1 sent it on; none of them reached z",
        "other nodes lost copies of it: queue-full (2 times)",
    ]
    assert (len(reported), reported[2]) == (6, "other nodes lost copies of it: expired (once)")
    assert EventLog([]).losses_before("a", "a")[0].startswith("1 node had the event, 0 sent it on")


def test_only_expected_misses_say_how_far_a_node_was_reachable() -> None:
    heard = [record(5.1, "c", "receive", "a")]
    missed = explain_receiver(EVENT, "c", [WANTS], None, heard, "by carrying")
    assert missed.reach == "by carrying"
    assert missed.losses == [
        "needed carrying: the node could get it only from a node that kept it until a later contact",
        "c heard the event and did not deliver it",
    ]
    assert explain_receiver(EVENT, "c", [WANTS], None, heard).losses == missed.losses[1:]
    came = explain_receiver(EVENT, "c", [WANTS], None, [*heard, record(5.2, "c", "deliver")], "no")
    assert (came.delivered, came.losses, came.reach) == (True, [], "no")
    other = explain_receiver(EVENT, "d", [WANTS], None, heard, "no")
    assert (other.expected, other.reach, other.losses[0][:7]) == (False, None, "2 nodes")
    assert came.as_json()["path"] == [{"time": 5.1, "sender": "a", "receiver": "c", "packet": "flood"}]


@pytest.mark.parametrize(("time", "expected"), [(1.9, False), (2.0, True), (5.9, True), (6.0, False)])
def test_a_subscription_counts_from_its_start_until_before_its_end(time: float, expected: bool) -> None:
    span = SubscriptionSpan("c", "c/1", "Siren: true", None, 2.0, 6.0)
    event = Event("Siren", {}, id="x", source="a", time=time)
    assert why.expectation(event, "c", [span], None)[0] is expected


class Rows:
    """A lake of plain rows."""

    name = "lake"

    def __init__(self, **tables: list[dict[str, Any]]) -> None:
        self.tables = tables

    def rows(self, table: str, equal: dict[str, Any], **partition: Any) -> list[dict[str, Any]]:
        wanted = {**equal, **partition}
        return [row for row in self.tables[table] if all(row.get(name) == value for name, value in wanted.items())]

    def has(self, table: str, **partition: Any) -> bool:
        return bool(self.rows(table, {}, **partition))


def lake(**changed: Any) -> Any:
    run = {"run": "run-1", "workload": "w", "range_m": 100.0, "status": "done", "error": None}
    positions = [
        {
            "trace": "w",
            "node": "c",
            "time": time,
            "x_m": 10.0 * time,
            "y_m": 0.0,
            "until": time,
            "x_m_s": 10.0,
            "y_m_s": 0.0,
        }
        for time in (9.0, 0.0)
    ]
    tables = {
        "runs": [run, {**run, "run": "run-2", "status": "failed", "error": "KeyError"}, {**run, "run": "other"}],
        "events": [event_row("w", EVENT), event_row("another", EVENT)],
        "positions": positions,
        "subscriptions": [
            {"workload": "w", "subscription": "c/1", "node": "c", "filter": "Siren: true", "region": None, "start": 0.0,
             "end": None}
        ],
        "reachable": [{"workload": "w", "range_m": 100.0, "event": "a-0", "node": "c", "reach": "at once"}],
        "log": [{"run": "run-1", "event": "a-0", **record(5.1, "c", "receive", "a")}],
    }  # fmt: skip
    return Rows(**{**tables, **changed})


def test_a_lake_is_asked_about_one_event_and_one_node_of_a_run() -> None:
    answer = ask_why(lake(), "run-1", "a-0", "c")
    assert (answer.expected, answer.delivered, answer.reach, len(answer.path)) == (True, False, "at once", 1)
    assert answer.losses[0].startswith("lost: when the event was published")
    assert ask_why(lake(), "oth", "a-0", "c").path == [], "of another run's log"
    assert ask_why(lake(reachable=[]), "run-1", "a-0", "c").reach is None
    live = lake()
    live.tables["runs"][0]["range_m"] = None
    assert ask_why(live, "run-1", "a-0", "c").reach is None


@pytest.mark.parametrize(
    ("run", "event", "node", "says"),
    [
        ("none", "a-0", "c", r"^the lake lake has no run 'none'; see them in the report: earshot report lake$"),
        ("run", "a-0", "c", r"^2 runs begin with 'run'; write more of the id$"),
        ("run-2", "a-0", "c", r"^run run-2 failed: KeyError$"),
        ("run-1", "a-9", "c", r"^run run-1 published no event 'a-9'"),
        ("run-1", "a-0", "z", r"^run run-1 has no node 'z'$"),
    ],
)
def test_what_a_lake_does_not_have_is_said(run: str, event: str, node: str, says: str) -> None:
    with pytest.raises(LakeError, match=says):
        ask_why(lake(), run, event, node)


# Candidates.


def test_a_node_is_seen_between_its_first_and_its_last_row() -> None:
    rows = pa.table({"time": [10.0, 0.0], "x_m": [100.0, 0.0], "y_m": [50.0, 0.0]})
    way = trajectory_of(rows)
    there = viewer_at(way, 4.0)
    assert there is not None
    assert there.position == Position(40.0, 20.0)
    assert (viewer_at(way, -0.1), viewer_at(way, 10.1)) == (None, None)


def events(*given: tuple[str, Event]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([event_row(workload, event) for workload, event in given], schema=EVENTS_ARROW)


def test_spans_are_numbered_over_all_workloads_and_events_find_those_of_their_own() -> None:
    def span(number: int, filter: str) -> SubscriptionSpan:
        return SubscriptionSpan(f"n{number}", f"s{number}", filter)

    lookup = CandidateLookup({"w": [span(0, "Siren: true"), span(1, "Jam: true")], "v": [span(2, "Siren: true")]})
    assert lookup.columns["subscription"].to_pylist() == ["s0", "s1", "s2"]
    assert lookup.columns["filter"].to_pylist() == ["Siren: true", "Jam: true", "Siren: true"]
    jam = Event("Jam", {}, id="j", source="z", time=1.0)
    rows, spans = lookup.candidates(events(("v", EVENT), ("w", EVENT), ("w", jam), ("unknown", EVENT)))
    assert sorted(zip(rows.tolist(), spans.tolist(), strict=True)) == [(0, 2), (1, 0), (2, 1)]
    assert [column.tolist() for column in lookup.candidates(events(("unknown", EVENT)))] == [[], []]
    assert (lookup.oracle("v") is None, lookup.oracle("unknown")) == (False, None)


def test_a_worker_keeps_the_indexes_of_its_last_two_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "_lookups", {})
    first, second, third = (Matcher({}) for _ in range(3))
    found = first.lookup()
    assert first.lookup() is found
    second.lookup()
    assert first.lookup() is found
    third.lookup()
    assert list(matcher._lookups) == [second.id, third.id]
    assert first.lookup() is not found


# What Spark's workers do with a batch, or a group.


def subscribed(*rows: tuple[Any, ...]) -> pa.Table:
    names = ("node", "subscription", "filter", "region", "start", "end")
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    return table.set_column(3, "region", table.column("region").cast(pa.string()))


def published(*events: Event) -> pa.Table:
    return pa.Table.from_pylist([event_row("w", event) for event in events], schema=EVENTS_ARROW)


def test_a_group_gives_each_event_with_the_subscriptions_that_agree_and_are_in_force() -> None:
    table = subscribed(
        ("b", "b/1", "Siren: speed > 10", None, 0.0, None),
        ("c", "c/1", "Siren: speed > 20", None, 0.0, None),
        ("d", "d/1", "Siren: true", None, 0.0, 5.0),
        ("e", "e/1", "Siren: true", None, 5.0, 6.0),
        ("a", "a/1", "Siren: true", None, 0.0, None),
        ("f", "f/1", "Siren: true", area_json(Area(Circle(10.0), Position(100.0, 0.0))), 0.0, None),
        ("g", "g/1", "Siren: true", area_json(Area(Circle(10.0), Position(5.0, 0.0))), 0.0, None),
    )
    found = _matched(published(EVENT), table)
    rows = sorted(found.to_pylist(), key=lambda row: str(row["node"]))
    assert [(row["event"], row["node"], row["subscription"]) for row in rows] == [
        ("a-0", "b", "b/1"), ("a-0", "e", "e/1"), ("a-0", "g", "g/1"),
    ]  # fmt: skip
    assert rows[0] == {
        "workload": "w", "event": "a-0", "time": 5.0, "node": "b", "subscription": "b/1",
        "filter": "Siren: speed > 10", "region": None,
    }  # fmt: skip
    assert _matched(published(), table).num_rows == _matched(published(EVENT), table.slice(0, 0)).num_rows == 0


def test_a_worker_keeps_the_last_four_indexes_by_what_is_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_join, "_oracles", {})
    tables = [subscribed((f"n{number}", "s", "Siren: true", None, 0.0, None)) for number in range(5)]
    first, *_ = oracles = [_oracle_of(table) for table in tables[:4]]
    assert [_oracle_of(table) for table in tables[:4]] == oracles
    _oracle_of(tables[4])
    assert len(content_join._oracles) == 4
    assert _oracle_of(tables[1]) is oracles[1]
    assert _oracle_of(tables[0]) is not first


def test_of_the_candidates_those_accept_whose_node_is_where_the_filter_asks() -> None:
    near = {"subscription": "s", "filter": "Siren: within 50 m", "region": None}
    legs = {
        "b": (4.0, 10.0, 0.0, 20.0, 0.0),  # 30 m away when the event is published
        "c": (4.0, 10.0, 0.0, 60.0, 0.0),
        "d": (2.0, 0.0, 190.0, 0.0, -50.0),  # 40 m
        "e": (5.0, 0.0, 190.0, 0.0, -50.0),
    }
    rows = [
        {**event_row("w", EVENT), **near, "node": node,
         **dict(zip(("leg_time", "leg_x_m", "leg_y_m", "leg_x_m_s", "leg_y_m_s"), leg, strict=True))}
        for node, leg in legs.items()
    ]  # fmt: skip
    (found,) = _accepted(pa.Table.from_pylist(rows).to_batches())
    assert found.to_pylist() == [
        {"workload": "w", "event": "a-0", "node": node, "subscription": "s", "why": "content and place"}
        for node in ("b", "d")
    ]
    (nobody,) = _accepted(pa.Table.from_pylist(rows[1:2]).to_batches())
    assert nobody.num_rows == 0


def test_a_subscription_demands_types_a_place_and_a_distance() -> None:
    filters = ["Siren: speed > 10", "Siren: within 50 m", "speed > 1", "Siren: approaching"]
    regions = [None, None, area_json(Area(Circle(1.0), Position(0.0, 0.0))), None]
    batch = pa.RecordBatch.from_pydict({"filter": filters, "region": regions})
    (found,) = _demands([batch])
    assert [tuple(row.values())[2:] for row in found.to_pylist()] == [
        (["Siren"], False, None), (["Siren"], True, 50.0), (None, True, None), (["Siren"], True, None),
    ]  # fmt: skip


def test_positions_are_asked_for_where_somebody_needs_them() -> None:
    with pytest.raises(LakeError, match="needs the positions table"):
        list(_refuse([pa.RecordBatch.from_pydict({"a": [1]})]))


@pytest.mark.parametrize(
    ("events", "subscriptions", "one"),
    [(10_000, 50_000, True), (10_001, 1, False), (1, 50_001, False), (None, 1, False), (1, None, False)],
)
def test_few_events_and_subscriptions_fit_one_group(events: int | None, subscriptions: int | None, one: bool) -> None:
    assert fit_one_group(events, subscriptions) is one


# A user's own files.


def test_a_line_of_events_names_its_node_and_time_and_gets_an_id_of_its_own() -> None:
    text = '\ufeff{"time_s": 3, "node": "car", "type": "Siren", "content": {"speed": 3}}'
    event = _from_line("a.jsonl", text)
    assert (event.source, event.time, event.type, len(event.id)) == ("car", 3.0, "Siren", 16)
    assert _from_line("a.jsonl", text).id == event.id != _from_line("b.jsonl", text).id
    given = _from_line("a.jsonl", '{"id": "x", "source": "bus", "time": 2, "type": "T", "content": {}}')
    assert (given.id, given.source, given.time) == ("x", "bus", 2.0)
    assert _from_line("a", '{"time": 1, "source": "s", "xml": "<CD><price>3</price></CD>"}').type == "CD"
    assert _from_xml("cd.xml", b"<CD><price>3</price></CD>").id == "cd.xml"
    for wrong, says in (("{", "not JSON"), ("[1]", "a line must be a JSON object")):
        with pytest.raises(EventError, match=says):
            _from_line("a", wrong)


def test_rows_of_events_name_the_file_of_a_bad_one() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"path": ["/data/a.jsonl"], "content": ['{"id": "x", "source": "s", "time": 2, "type": "T", "content": {}}']}
    )
    (rows,) = _event_rows("w", _from_line, [batch])
    assert [(row["workload"], row["event"], row["source"], row["time"]) for row in rows.to_pylist()] == [
        ("w", "x", "s", 2.0)
    ]
    wrong = pa.RecordBatch.from_pydict({"path": ["/data/a.jsonl"], "content": ["{" + "x" * 200]})
    with pytest.raises(EventError, match=r"^a\.jsonl: not JSON: .* \(in '\{x{79}'\)$"):
        list(_event_rows("w", _from_line, [wrong]))


def test_lines_of_filters_are_subscriptions_of_their_own_nodes(tmp_path: Path) -> None:
    file = tmp_path / "wanted.txt"
    file.write_text("# comment\n\nSiren: speed > 3\n  Jam: true  \n")
    assert list(_subscription_rows("w", file, ".txt")) == [
        ("w", "line-3", "line-3", "Siren: speed > 3", None, 0.0, None),
        ("w", "line-4", "line-4", "Jam: true", None, 0.0, None),
    ]
    file.write_text("Siren: true\nSiren: >\n")
    with pytest.raises(ScenarioError, match=r"wanted\.txt: line 2: "):
        list(_subscription_rows("w", file, ".txt"))
    table = tmp_path / "wanted.jsonl"
    table.write_text(
        '{"node": "a", "filter": "Siren: true"}\n'
        '{"node": "b", "filter": "Jam: true", "id": "mine", "at_s": 2, "until_s": 9}\n'
    )
    assert [(row[1], row[2], row[5], row[6]) for row in _subscription_rows("w", table, ".jsonl")] == [
        ("a/0", "a", 0.0, None), ("mine", "b", 2.0, 9.0),
    ]  # fmt: skip


def test_files_are_sorted_by_their_endings_and_stand_by_their_whole_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.xml", "b.jsonl", "c.xml", "d.txt"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    found = _by_suffix(["a.xml", Path("b.jsonl"), "c.xml", "s3a://b/e*.xml"], (".jsonl", ".xml"))
    assert found == {
        ".xml": [f"{tmp_path}/a.xml", f"{tmp_path}/c.xml", "s3a://b/e*.xml"], ".jsonl": [f"{tmp_path}/b.jsonl"],
    }  # fmt: skip
    for files, says in (
        (["gone.xml"], r"^gone\.xml: no such file"),
        (["d.txt"], r"^d\.txt: its name does not say what it holds; name it \.jsonl, \.xml$"),
        ([], r"^no file was given$"),
    ):
        with pytest.raises(ScenarioError, match=says):
            _by_suffix(files, (".jsonl", ".xml"))
    with _here("a.xml") as here:
        assert here == Path("a.xml")


def test_a_file_at_an_address_is_copied_here_and_removed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from earshot.pipeline.oracle import own_workloads

    def opened(path: str) -> Any:
        import io

        assert path == "s3a://b/k/wanted.txt"
        return io.BytesIO(b"Siren: true\n")

    monkeypatch.setattr(own_workloads, "open_trace", opened)
    with _here("s3a://b/k/wanted.txt") as copy:
        assert (copy.name, copy.read_bytes()) == ("wanted.txt", b"Siren: true\n")
    assert not copy.exists()
