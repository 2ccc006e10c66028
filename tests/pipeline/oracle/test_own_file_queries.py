"""A user's own files as rows, and events placed from a trace; DuckDB runs the queries in place of Spark."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_on_duckdb import Session

from earshot.errors import EventError, ScenarioError
from earshot.pipeline.lake.tables import EVENTS, SUBSCRIPTIONS
from earshot.pipeline.oracle.own_workloads import own_events, own_subscriptions, placed_from

LEGS = "trace string, node string, time double, x_m double, y_m double, until double, x_m_s double, y_m_s double"

HEAD = "<?xml version='1.0' encoding='UTF-8'?>\n"


def as_rows(frame: Any, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select(*names).collect())


def test_events_are_read_from_files_of_every_kind(quick_spark: Any, tmp_path: Path) -> None:
    lines, document, table = (tmp_path / name for name in ("a.jsonl", "cd.xml", "c.parquet"))
    lines.write_text('{"type": "Siren", "content": {"speed": 3}, "id": "e1", "node": "n", "time_s": 2}\n   \n\n')
    document.write_text("<CD><price>3</price></CD>")
    pq.write_table(pa.table({"type": ["Jam"], "content": ['{"a":1}'], "event": ["e2"], "x_m": [7], "more": [1]}), table)
    found = own_events(quick_spark, "mine", [str(table), str(lines), document])
    assert {*found.columns} == {*EVENTS.columns}
    assert as_rows(found, "workload", "event", "type", "source", "time", "x_m", "format", "content", "priority") == [
        ("mine", "cd.xml", "CD", "", 0.0, None, "xml", f"{HEAD}<CD><price>3</price></CD>", 0),
        ("mine", "e1", "Siren", "n", 2.0, None, "json", '{"speed":3}', 0),
        ("mine", "e2", "Jam", "", 0.0, 7.0, "json", '{"a":1}', 0),
    ]
    assert as_rows(own_events(quick_spark, "mine", [lines, lines]), "event") == [("e1",), ("e1",)]


def test_a_table_of_events_keeps_what_it_says(quick_spark: Any, tmp_path: Path) -> None:
    table = tmp_path / "c.parquet"
    row = {"event": "e", "type": "T", "source": "n", "time": 4, "priority": 3, "format": "xml", "content": "<T/>"}
    row |= {"x_m": 1, "y_m": 2, "x_m_s": 3, "y_m_s": 4, "area": "{}", "lifespan_s": 9, "workload": "of the file"}
    pq.write_table(pa.Table.from_pylist([row]), table)
    found = own_events(quick_spark, "mine", [table])
    assert found.columns == list(EVENTS.columns)
    assert found.collect()[0].asDict() == {**row, "workload": "mine"}
    pq.write_table(pa.table({"type": ["T"], "x": [1]}), table)
    with pytest.raises(EventError, match=r"^a Parquet file of events needs the column 'content'; it has type, x$"):
        own_events(quick_spark, "mine", [table])


def test_subscriptions_are_read_from_a_file_of_each_kind(quick_spark: Any, tmp_path: Path) -> None:
    text, lines, table = (tmp_path / name for name in ("w.txt", "w.jsonl", "w.parquet"))
    text.write_text("# mine\nSiren: true\n")
    lines.write_text('{"node": "a", "filter": "Siren: true", "id": "s", "at_s": 2, "until_s": 9}\n')
    pq.write_table(pa.table({"node": ["a"], "filter": ["Jam: true"], "end": [5], "more": [1]}), table)
    assert as_rows(own_subscriptions(quick_spark, "mine", text), *SUBSCRIPTIONS.columns) == [
        ("mine", "line-2", "line-2", "Siren: true", None, 0.0, None)
    ]
    assert as_rows(own_subscriptions(quick_spark, "mine", str(lines)), *SUBSCRIPTIONS.columns) == [
        ("mine", "s", "a", "Siren: true", None, 2.0, 9.0)
    ]
    assert as_rows(own_subscriptions(quick_spark, "mine", table), *SUBSCRIPTIONS.columns) == [
        ("mine", "a/Jam: true", "a", "Jam: true", None, 0.0, 5.0)
    ]
    row = dict(zip(SUBSCRIPTIONS.columns, ("of the file", "s", "a", "T: true", "{}", 1.0, 2.0), strict=True))
    pq.write_table(pa.Table.from_pylist([row]), table)
    found = own_subscriptions(quick_spark, "mine", table)
    assert found.columns == list(SUBSCRIPTIONS.columns)
    assert found.collect()[0].asDict() == {**row, "workload": "mine"}


def test_files_without_subscriptions_are_refused(quick_spark: Any, tmp_path: Path) -> None:
    text, table = tmp_path / "w.txt", tmp_path / "w.parquet"
    text.write_text("# nothing\n\n")
    with pytest.raises(ScenarioError, match=r"/w\.txt: the file has no subscriptions$"):
        own_subscriptions(quick_spark, "mine", text)
    for columns, lacks in (({"filter": ["T: true"]}, "node"), ({"node": ["a"], "b": ["c"]}, "filter")):
        pq.write_table(pa.table(columns), table)
        with pytest.raises(ScenarioError) as caught:
            own_subscriptions(quick_spark, "mine", table)
        assert str(caught.value) == f"{table}: subscriptions need the column '{lacks}'; it has {', '.join(columns)}"


# Places of a trace.


def placed(session: Any, *events: tuple[str, str, float], max_gap_s: float = math.inf) -> dict[str, tuple[Any, ...]]:
    """Where and how fast the publishers of events were, of which the trace knows a (twice) and b (once)."""
    legs = [
        ("t", "a", 10.0, 100.0, 50.0, 14.0, 2.0, -1.0), ("t", "a", 14.0, 108.0, 46.0, 14.0, 3.0, 3.0),
        ("t", "b", 10.0, 7.0, 8.0, None, 0.0, 0.0),
    ]  # fmt: skip
    values = {"workload": "w", "type": "T", "priority": 0, "format": "json", "content": "{}"}
    rows = [{**values, "event": event, "source": source, "time": time} for event, source, time in events]
    rows.append({**values, "event": "known", "source": "a", "time": 11.0, "x_m": 1.0, "y_m": 2.0, "x_m_s": 3.0})
    rows.append({**values, "event": "half", "source": "a", "time": 12.0, "x_m": 1.0, "x_m_s": 9.0})
    published = session.createDataFrame(rows, EVENTS.ddl)
    found = published.transform(placed_from(session.createDataFrame(legs, LEGS), max_gap_s))
    assert found.columns == list(EVENTS.columns)
    assert found.count() == len(rows)
    return {row["event"]: tuple(row[name] for name in ("x_m", "y_m", "x_m_s", "y_m_s")) for row in found.collect()}


def test_an_event_without_a_place_has_that_of_its_publisher(quick_spark: Session) -> None:
    nowhere = (None, None, None, None)
    found = placed(
        quick_spark, ("before", "a", 9.9), ("first", "a", 10.0), ("between", "a", 13.0), ("last", "a", 14.0),
        ("after", "a", 14.1), ("still", "b", 10.0), ("gone", "b", 10.1), ("stranger", "c", 11.0),
    )  # fmt: skip
    assert found == {
        "before": nowhere, "first": (100.0, 50.0, 2.0, -1.0), "between": (106.0, 47.0, 2.0, -1.0),
        "last": (108.0, 46.0, 3.0, 3.0), "after": nowhere, "still": (7.0, 8.0, 0.0, 0.0), "gone": nowhere,
        "stranger": nowhere, "known": (1.0, 2.0, 3.0, None), "half": (104.0, 48.0, 2.0, -1.0),
    }  # fmt: skip


@pytest.mark.parametrize(("max_gap_s", "there"), [(4.0, True), (3.9, False)])
def test_a_publisher_is_away_in_a_long_gap_but_for_its_ends(
    quick_spark: Session, max_gap_s: float, there: bool
) -> None:
    found = placed(quick_spark, ("first", "a", 10.0), ("between", "a", 13.0), max_gap_s=max_gap_s)
    assert found["first"] == (100.0, 50.0, 2.0, -1.0)
    assert (found["between"][0] is not None) is there
