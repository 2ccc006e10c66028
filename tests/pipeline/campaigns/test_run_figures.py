"""The metrics of one run and its pairs, counted by hand, without Spark."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hand_log import airtime, publish, record
from hypothesis import given
from hypothesis import strategies as st

from earshot.pipeline.campaigns.run_figures import LATENCIES, RECEIVERS, _percentiles, figures_of, figures_table
from earshot.pipeline.campaigns.run_pairs import (
    READ,
    RunPairs,
    asked_rows,
    condensed,
    condensed_log,
    loss_cause,
    pairs_of,
    pairs_table,
)
from earshot.pipeline.lake.tables import arrow_schema

WARM_UP_S = 50.0
LOG = [
    publish(49.9, "a", "early", "News"),
    publish(60.0, "a", "e1", "News", x_m=100.0, y_m=300.0),
    publish(130.0, "b", "e2", "Alert", x_m=-10.0, y_m=20.0),
    record(250.0, "b", "publish", event="e3", detail="{}", x_m=30.0),  # without a type, and one half of a place
    *[record(60.0 + n, "a", "send", event="e1", packet="data", bytes=100) for n in range(6)],
    *[record(60.0 + n, "b", "send", packet="hello", bytes=20) for n in range(4)],
    record(60.0, "b", "send", packet="ask", bytes=7),
    record(61.0, "c", "receive", event="e1"),
    *[record(62.0 + n, "d", "receive", event="e1") for n in range(3)],
    record(61.0, "e", "receive", event="e1"),
    *[record(62.0 + n, "f", "receive", event="e1") for n in range(2)],
    record(61.0, "h", "receive", event="e1"),
    record(61.0, "c", "deliver", event="e1", hops=1),
    record(64.0, "d", "deliver", event="e1", hops=4),
    record(66.0, "d", "deliver", event="e1", hops=2),  # once more, over fewer hops
    record(70.0, "e", "deliver", event="e1"),  # nobody wanted it there, and nobody counted its hops
    record(71.0, "f", "drop", event="e1", detail="expired"),
    record(72.0, "f", "drop", event="e1", detail="queue-full"),
    record(73.0, "c", "drop", detail="expired"),
    airtime(50.0, "a", 10.0, 9.0),  # ends with the warm-up
    airtime(60.0, "a", 10.0, 1.0),
    airtime(60.0, "b", 5.0, 2.0),
    airtime(60.0, "c", 4.9, 4.9),  # too short to be the busiest
]
WANTED = {"e1": "cdfg", "e2": "cdg", "unknown": "c"}
REACH = {
    ("e1", "c"): "at once", ("e1", "d"): "by carrying", ("e1", "f"): "at once", ("e1", "g"): "no",
    ("e2", "c"): "by carrying", ("e2", "d"): "at once",
}  # fmt: skip
"Nobody knows how far e2 could have reached g."


def records(log: list[dict[str, Any]], reach: dict[tuple[str, str], str] | None = REACH) -> pa.Table:
    """What is known of a run, condensed."""
    wanted = pa.table(
        {
            "event": [event for event, nodes in WANTED.items() for _ in nodes],
            "node": [node for nodes in WANTED.values() for node in nodes],
        }
    )
    far = None
    if reach is not None:
        rows = [{"event": event, "node": node, "reach": word} for (event, node), word in reach.items()]
        far = pa.Table.from_pylist(rows)
    batches = pa.Table.from_pylist(log, schema=arrow_schema("log")).select(READ).to_batches()
    return condensed([condensed_log(batches, WARM_UP_S), asked_rows(wanted, far)])


Found = dict[tuple[str, str, str], float]


def figures(
    log: list[dict[str, Any]], reach: dict[tuple[str, str], str] | None = REACH, area_m: float = 250.0
) -> Found:
    rows = list(figures_of(records(log, reach), area_m))
    found = {(metric, by, key): value for metric, by, key, value in rows}
    assert len(found) == len(rows), "one row a figure"
    return found


def of(found: Found, by: str, key: str = "") -> dict[str, float]:
    return {metric: value for (metric, *group), value in found.items() if group == [by, key]}


@pytest.fixture(scope="module")
def found() -> Found:
    return figures(LOG)


def test_the_whole_run(found: Found) -> None:
    whole = {name: value for name, value in of(found, "all").items() if name not in RECEIVERS}
    assert whole == pytest.approx(
        {
            "expected": 7, "delivered": 3, "lost": 5, "delivery_ratio": 2 / 7, "precision": 2 / 3,
            "hops": (1 + 2) / 2,
            "latency_p50_s": 2.5, "latency_p95_s": 1.0 + 0.95 * 3.0, "latency_p99_s": 1.0 + 0.99 * 3.0,
            "ceiling": 5 / 6, "ceiling_at_once": 3 / 6, "delivery_of_reachable": 2 / 5,
            "missed_impossible": 1 / 6, "missed_needed_carrying": 1 / 6, "missed_lost": 2 / 6,
            "events": 3, "data_bytes": 600, "control_bytes": 87, "cost": 6 / 3, "control_cost": 5 / 3,
            "bytes_per_delivery": 687 / 3, "duplicates": (2 + 1) / 3, "overhead": (2 + 1) / 8,
            "airtime_mean": 7.9 / 19.9, "airtime_busiest": 2.0 / 5.0,
        }
    )  # fmt: skip


def test_deliveries_by_type_minute_area_and_node(found: Found) -> None:
    news = {
        "expected": 4, "delivered": 3, "lost": 2, "delivery_ratio": 2 / 4, "precision": 2 / 3, "hops": 1.5,
        "latency_p50_s": 2.5, "latency_p95_s": 3.85, "latency_p99_s": 3.97, "ceiling": 3 / 4, "ceiling_at_once": 2 / 4,
        "delivery_of_reachable": 2 / 3, "missed_impossible": 1 / 4, "missed_needed_carrying": 0, "missed_lost": 1 / 4,
    }  # fmt: skip
    alert = {
        "expected": 3, "delivered": 0, "lost": 3, "delivery_ratio": 0, "ceiling": 1, "ceiling_at_once": 1 / 2,
        "delivery_of_reachable": 0, "missed_impossible": 0, "missed_needed_carrying": 1 / 2, "missed_lost": 1 / 2,
    }  # fmt: skip
    nothing = {"expected": 0, "delivered": 0, "lost": 0}
    for by, groups in (
        ("type", {"News": news, "Alert": alert}),
        ("minute", {"1": news, "2": alert, "4": nothing}),
        ("area", {"0,250": news, "-250,0": alert}),
    ):
        assert {key for _, one, key in found if one == by} == set(groups)
        for key, expected in groups.items():
            assert of(found, by, key) == pytest.approx(expected), (by, key)
    assert {key for _, by, key in found if by == "node"} == {*"cdefgh"}, "not those who only publish"
    assert {node: (of(found, "node", node)["expected"], of(found, "node", node)["delivered"]) for node in "cdefgh"} == {
        "c": (2, 1), "d": (2, 1), "e": (0, 1), "f": (1, 0), "g": (2, 0), "h": (0, 0),
    }  # fmt: skip
    assert of(found, "node", "e")["precision"] == 0


def test_losses_by_cause_drops_by_reason_and_packets_by_name(found: Found) -> None:
    assert {key: value for (metric, by, key), value in found.items() if (metric, by) == ("lost", "cause")} == {
        "dropped: queue-full": 1, "impossible": 1, "needed carrying": 1, "never sent": 2,
    }  # fmt: skip
    assert {metric for metric, by, _ in found if by == "cause"} == {"lost"}
    assert {key: value for (_, by, key), value in found.items() if by == "reason"} == {"expired": 2, "queue-full": 1}
    assert [of(found, "packet", name) for name in ("data", "hello", "ask")] == [
        {"sends": 6, "bytes": 600}, {"sends": 4, "bytes": 80}, {"sends": 1, "bytes": 7},
    ]  # fmt: skip


def test_areas_are_as_large_as_asked() -> None:
    assert {key for _, by, key in figures(LOG, area_m=100.0) if by == "area"} == {"100,300", "-100,0"}


def test_without_what_is_reachable_there_is_no_ceiling_and_causes_tell_how_far_events_came() -> None:
    found = figures(LOG, None)
    assert not [metric for metric, *_ in found if "ceiling" in metric or "missed" in metric or "reachable" in metric]
    assert {key: value for (_, by, key), value in found.items() if by == "cause"} == {
        "dropped: queue-full": 1, "never heard": 1, "never sent": 3,
    }  # fmt: skip


def test_a_run_without_sends_deliveries_or_airtime_has_no_shares_of_them() -> None:
    found = figures([row for row in LOG if row["kind"] == "publish"], None)
    whole = {"expected": 7, "delivered": 0, "lost": 7, "delivery_ratio": 0}
    assert of(found, "all") == {
        **whole, "events": 3, "data_bytes": 0, "control_bytes": 0, "cost": 0, "control_cost": 0, "duplicates": 0,
    }  # fmt: skip
    assert list(figures_of(condensed([]))) == []


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        (("queue-full", True, True), "dropped: queue-full"),
        ((None, True, True), "heard, not delivered"),
        ((None, False, True), "never heard"),
        ((None, False, False), "never sent"),
    ],
)
def test_why_a_reachable_event_was_not_delivered(given: tuple[str | None, bool, bool], cause: str) -> None:
    assert loss_cause(*given) == cause


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0.0, 100.0)), max_size=30))
def test_percentiles_of_each_group_are_those_of_numpy(values: list[tuple[int, float]]) -> None:
    group, numbers = (
        (np.array(column) for column in zip(*values, strict=True)) if values else (np.zeros(0), np.zeros(0))
    )
    found = _percentiles(group.astype(np.int64), numbers.astype(np.float64), 4)
    for share, percentiles in zip(LATENCIES.values(), found, strict=True):
        for number in range(4):
            own = [value for where, value in values if where == number]
            expected = float(np.percentile(own, 100 * share)) if own else math.nan
            assert percentiles[number] == pytest.approx(expected, nan_ok=True)
    assert list(LATENCIES.values()) == [0.5, 0.95, 0.99]


def pairs(log: list[dict[str, Any]]) -> RunPairs:
    return pairs_of(records(log))


def test_the_pairs_as_a_table() -> None:
    table = pairs_table("r7", pairs(LOG))
    rows = {(row["event"], row["node"]): row for row in table.to_pylist()}
    assert sorted(rows) == [*(("e1", node) for node in "acdefgh"), *(("e2", node) for node in "bcdg"), ("e3", "b")]
    assert rows["e1", "d"] == {
        "run": "r7", "event": "e1", "node": "d", "published_at": 60.0, "type": "News", "source": "a", "x_m": 100.0,
        "y_m": 300.0, "receptions": 3, "delivered_at": 64.0, "hops": 2, "dropped": None, "wanted": True,
        "reach": "by carrying", "publishes": False, "sent": True, "got": True, "minute": "1", "latency_s": 4.0,
        "cause": None,
    }  # fmt: skip
    lost = {"receptions": 2, "delivered_at": None, "hops": None, "dropped": "queue-full", "wanted": True, "got": False}
    assert rows["e1", "f"].items() >= {**lost, "latency_s": None, "cause": "dropped: queue-full"}.items()
    assert rows["e2", "g"].items() >= {"sent": False, "reach": None, "minute": "2", "publishes": False}.items()
    assert [rows[place]["publishes"] for place in (("e1", "a"), ("e2", "b"), ("e3", "b"))] == [True, True, True]
    assert rows["e1", "e"].items() >= {"wanted": False, "got": True, "hops": None, "cause": None}.items()
    assert rows["e3", "b"]["type"] is None


def test_an_event_that_was_published_twice_counts_from_the_first_time_and_has_the_last_of_the_rest() -> None:
    twice = [
        publish(80.0, "a", "e1", "Alert", x_m=5.0, y_m=300.0),
        publish(70.0, "b", "e1", "News", x_m=9.0),
        record(75.0, "a", "publish", event="e1", detail="{}"),
    ]
    for log in (twice, twice[::-1]):
        found = pairs(log)
        assert (found.events, found.published_at.tolist(), found.type, found.source) == (
            ["e1"],
            [70.0],
            ["News"],
            ["b"],
        )
        assert found.x_m.tolist() == pytest.approx([math.nan], nan_ok=True), "a place that one of them does not know"


def test_an_event_published_twice_lies_furthest_east_and_north() -> None:
    found = pairs([publish(70.0, "a", "e1", "T", x_m=5.0, y_m=300.0), publish(71.0, "a", "e1", "T", x_m=9.0, y_m=20.0)])
    assert (found.x_m.tolist(), found.y_m.tolist()) == ([9.0], [300.0])


def test_a_window_of_airtime_that_was_recorded_twice_counts_twice() -> None:
    windows = [airtime(60.0, "a", 10.0, 1.0), airtime(60.0, "a", 10.0, 1.0), airtime(70.0, "a", 10.0, 4.0)]
    found = of(figures([*LOG[:2], *windows]), "all")
    assert (found["airtime_mean"], found["airtime_busiest"]) == (pytest.approx(6.0 / 30.0), pytest.approx(0.4))


def test_the_rows_of_metrics_have_the_tables_columns() -> None:
    table = figures_table("r7", [("cost", "all", "", 2.0), ("lost", "cause", "impossible", 1.0)])
    assert table.schema.equals(arrow_schema("metrics", with_partitions=True))
    assert table.select(["run", "metric", "by", "key", "value"]).to_pylist() == [
        {"run": "r7", "metric": "cost", "by": "all", "key": "", "value": 2.0},
        {"run": "r7", "metric": "lost", "by": "cause", "key": "impossible", "value": 1.0},
    ]
    assert figures_table("r7", []).num_rows == 0
