"""The ceiling's stages against the kernel in one process, and how work is cut; DuckDB runs the queries."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from spark_on_duckdb import Frame, Session

from earshot.pipeline.lake.tables import EVENTS, REACHABLE, SESSIONS
from earshot.pipeline.oracle import reachable as stage
from earshot.pipeline.oracle.reachable import (
    Ceiling,
    ContactNetwork,
    ReachPlan,
    _plan,
    _tasks,
    ceiling_of,
    network_of,
    radio_range_m,
    reach_in_one_task,
    reach_plans,
    reachable,
)
from earshot.pipeline.oracle.spreading import REACHES, PublishedColumns, reach_of_pairs
from earshot.pipeline.traces.exact_contacts import contacts_of_legs, legs_of
from earshot.simulation.media.links import LinkScript
from earshot.simulation.scenario.library import load_scenario

NODES, STEPS, EVENT_COUNT, RANGE_M, LIFESPAN_S = 14, 40, 24, 90.0, 9.0
NAMES = [f"n{node}" for node in range(NODES)]
POSITIONS = "trace string, node string, time double, x_m double, y_m double"


class Wandering:
    """Nodes that walk about, events of theirs, and every node expected to get each."""

    def __init__(self, seed: int, workload: str) -> None:
        rng = np.random.default_rng(seed)
        places = np.cumsum(rng.normal(0, 14, (STEPS, NODES, 2)), axis=0) + rng.uniform(0, 400, (NODES, 2))
        self.workload = workload
        self.positions = [
            (workload, NAMES[node], float(time), *map(float, places[time, node]))
            for node in range(NODES) for time in range(STEPS)
        ]  # fmt: skip
        self.source = rng.integers(0, NODES, EVENT_COUNT)
        self.time = np.round(rng.uniform(0, STEPS - 1, EVENT_COUNT), 1)
        self.pairs = [(e, n) for e in range(EVENT_COUNT) for n in range(NODES) if n != self.source[e]]

    def events(self, lifespan_s: float | None) -> list[dict[str, Any]]:
        values = {"workload": self.workload, "type": "T", "lifespan_s": lifespan_s, "format": "json", "content": "{}"}
        return [
            {**values, "event": f"e{event}", "source": NAMES[source], "time": float(time), "priority": 0}
            for event, (source, time) in enumerate(zip(self.source, self.time, strict=True))
        ]

    @property
    def expected(self) -> list[tuple[str, str, str]]:
        return [(self.workload, f"e{event}", NAMES[node]) for event, node in self.pairs]

    def truth(self, lifespan_s: float, silent: tuple[int, ...] = ()) -> dict[tuple[str, str, str], str]:
        node, time, x, y = (
            np.array(column) for column in zip(*((NAMES.index(r[1]), *r[2:]) for r in self.positions), strict=True)
        )
        contacts = contacts_of_legs(legs_of(node.astype(np.int64), time, x, y, math.inf), RANGE_M)
        columns = PublishedColumns(self.source, self.time, self.time + lifespan_s)
        event, receiver = (np.array(column) for column in zip(*self.pairs, strict=True))
        none = np.array(silent, dtype=np.int64) if silent else None
        found = reach_of_pairs(NODES, contacts, columns, event, receiver, none)
        return {pair: REACHES[one] for pair, one in zip(self.expected, found, strict=True)}


def answers(rows: list[Any]) -> dict[tuple[str, str, str], str]:
    found = {(row["workload"], row["event"], row["node"]): row["reach"] for row in rows}
    assert len(found) == len(rows), "one answer a pair"
    return found


def frames(session: Session, cases: list[Wandering], lifespan_s: float | None) -> tuple[Any, Any, Any]:
    return (
        session.createDataFrame([row for case in cases for row in case.events(lifespan_s)], EVENTS.ddl),
        session.createDataFrame(
            [row for case in cases for row in (*case.expected, case.expected[0])],
            "workload string, event string, node string",
        ),
        session.createDataFrame([row for case in cases for row in case.positions], POSITIONS),
    )


@pytest.mark.parametrize("lifespan_s", [LIFESPAN_S, None])
@pytest.mark.parametrize("sizes", [(50_000, 8_192, 1), (60, 5, 3)])
def test_the_stages_agree_with_the_kernel_however_they_are_cut(
    quick_spark: Session, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int, int], lifespan_s: float | None
) -> None:
    """Two workloads at once; one more on infrastructure, and one without a network."""
    monkeypatch.setattr(stage, "ROWS_A_STRETCH", sizes[0])
    monkeypatch.setattr(stage, "EVENTS_AT_ONCE", sizes[1])
    monkeypatch.setattr(stage, "ROWS_A_TASK", (100, 1_000_000))
    monkeypatch.setattr(stage, "STRETCHES_A_TASK", sizes[2])
    first, second, wired, unknown = (Wandering(seed, name) for seed, name in enumerate("vwxy"))
    events, expected, positions = frames(quick_spark, [first, second, wired, unknown], lifespan_s)
    networks = {
        "v": ContactNetwork(RANGE_M),
        "w": ContactNetwork(RANGE_M, silent=frozenset({"n3", "n5", "gone"})),
        "x": ContactNetwork(50.0, infrastructure=True),
    }
    plans = reach_plans(events, positions, networks)
    rows = events.transform(reachable(expected, positions, plans)).collect()
    lives = math.inf if lifespan_s is None else lifespan_s
    truth = first.truth(lives) | second.truth(lives, (3, 5)) | dict.fromkeys(wired.expected, "at once")
    assert answers(rows) == truth
    assert {row["range_m"] for row in rows if row["workload"] == "x"} == {50.0}
    assert {row["range_m"] for row in rows if row["workload"] != "x"} == {RANGE_M}
    assert {*first.truth(lives).values()} == {*REACHES}
    assert first.truth(lives) != first.truth(lives, (3, 5))


def one_task(case: Wandering, network: ContactNetwork, lifespan_s: float | None, sessions: Any = None) -> pa.Table:
    names = ("workload", "event", "node")
    expected = [dict(zip(names, row, strict=True)) for row in (*case.expected, case.expected[0])]
    events = pa.Table.from_pylist(case.events(lifespan_s))
    events = events.set_column(
        events.column_names.index("lifespan_s"), "lifespan_s", events.column("lifespan_s").cast(pa.float64())
    )
    positions = pa.Table.from_pylist(
        [dict(zip(("trace", "node", "time", "x_m", "y_m"), row, strict=True)) for row in case.positions]
    )
    return reach_in_one_task(case.workload, network, events, pa.Table.from_pylist(expected), positions, sessions)


@pytest.mark.parametrize("lifespan_s", [LIFESPAN_S, None])
@pytest.mark.parametrize("sizes", [(50_000, 8_192), (60, 5)])
def test_one_task_agrees_with_the_kernel_however_it_is_cut(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int], lifespan_s: float | None
) -> None:
    monkeypatch.setattr(stage, "ROWS_A_STRETCH", sizes[0])
    monkeypatch.setattr(stage, "EVENTS_AT_ONCE", sizes[1])
    case = Wandering(4, "w")
    found = one_task(case, ContactNetwork(RANGE_M, silent=frozenset({"n3"})), lifespan_s)
    assert found.column_names == list(REACHABLE.columns)
    assert answers(found.to_pylist()) == case.truth(math.inf if lifespan_s is None else lifespan_s, (3,))
    assert set(found.column("range_m").to_pylist()) == {RANGE_M}


def test_one_task_needs_no_positions_where_all_reach_each_other_or_nobody_expects_anything() -> None:
    case = Wandering(4, "w")
    found = one_task(case, ContactNetwork(math.inf), None).to_pylist()
    assert answers(found) == dict.fromkeys(case.expected, "at once")
    assert {row["range_m"] for row in found} == {math.inf}
    case.pairs = case.pairs[:1]
    whole = one_task(case, ContactNetwork(RANGE_M), None)
    nothing = reach_in_one_task("w", ContactNetwork(RANGE_M), *(whole.slice(0, 0),) * 3)
    assert (nothing.num_rows, nothing.schema) == (0, whole.schema)


SESSIONS_ROWS = [
    {"workload": "w", "node": name, "start": start, "end": end}
    for name, spans in (("a", [(0.0, None)]), ("b", [(0.0, 3.0), (6.0, 8.0)]), ("c", [(2.0, None)]))
    for start, end in spans
]
"a, b and c stand side by side; b is away from 3 to 6 s and from 8 s, c until 2 s."
TIMES = (0.0, 2.0, 3.0, 4.0, 6.0, 7.9, 9.0)


def beside() -> tuple[list[dict[str, Any]], list[tuple[str, str, str]], list[tuple[Any, ...]]]:
    """a publishes now and then, with a lifespan of 1 s."""
    events = [
        {"workload": "w", "event": f"at {time}", "type": "T", "source": "a", "time": time, "lifespan_s": 1.0,
         "priority": 0, "format": "json", "content": "{}"}
        for time in TIMES
    ]  # fmt: skip
    expected = [("w", f"at {time}", node) for time in TIMES for node in "bc"]
    positions = [("w", node, time, x, 0.0) for node, x in (("a", 0.0), ("b", 5.0), ("c", 9.0)) for time in (0.0, 10.0)]
    return events, expected, positions


PRESENT = {
    ("at 0.0", "b"): "at once",
    ("at 0.0", "c"): "no",
    ("at 2.0", "b"): "at once",
    ("at 2.0", "c"): "at once",
    ("at 4.0", "b"): "no",
    ("at 4.0", "c"): "at once",
    ("at 6.0", "b"): "at once",
    ("at 6.0", "c"): "at once",
    ("at 7.9", "b"): "at once",
    ("at 7.9", "c"): "at once",
    ("at 9.0", "b"): "no",
    ("at 9.0", "c"): "at once",
}


@pytest.mark.parametrize("rows_a_stretch", [50_000, 2])
def test_nodes_are_away_outside_of_their_sessions(
    quick_spark: Session, monkeypatch: pytest.MonkeyPatch, rows_a_stretch: int
) -> None:
    monkeypatch.setattr(stage, "ROWS_A_STRETCH", rows_a_stretch)
    events, expected, positions = beside()
    published = quick_spark.createDataFrame(events, EVENTS.ddl)
    wanted = quick_spark.createDataFrame(expected, "workload string, event string, node string")
    where = quick_spark.createDataFrame(positions, POSITIONS)
    sessions = quick_spark.createDataFrame([*SESSIONS_ROWS, {**SESSIONS_ROWS[0], "workload": "z"}], SESSIONS.ddl)
    network = ContactNetwork(20.0)

    def asked(present: Frame | None) -> dict[tuple[str, str], str]:
        plans = reach_plans(published, where, {"w": network})  # type: ignore[arg-type]
        found = published.transform(reachable(wanted, where, plans, present)).collect()  # type: ignore[arg-type]
        return {key[1:]: reach for key, reach in answers(found).items() if key[1] != "at 3.0"}

    assert asked(sessions) == PRESENT
    assert set(asked(None).values()) == {"at once"}
    tables = [published.toArrow(), wanted.toArrow(), where.toArrow()]
    own = sessions.where("workload = 'w'").toArrow()
    in_one = answers(reach_in_one_task("w", network, *tables, own).to_pylist())
    assert {key[1:]: reach for key, reach in in_one.items() if key[1] != "at 3.0"} == PRESENT
    assert {*answers(reach_in_one_task("w", network, *tables).to_pylist()).values()} == {"at once"}


def test_an_event_is_not_reachable_without_positions(quick_spark: Session) -> None:
    case = Wandering(4, "w")
    events, expected, positions = frames(quick_spark, [case], None)
    nothing = positions.limit(0)
    plans = reach_plans(events, nothing, {"w": ContactNetwork(RANGE_M)})
    assert (plans["w"].rows, plans["w"].origin, plans["w"].stretch_s) == (0, 0.0, 1.0)
    found = events.transform(reachable(expected, nothing, plans)).collect()
    assert answers(found) == dict.fromkeys(case.expected, "no")


# How work is cut.


def test_workloads_are_cut_by_their_own_counts_and_numbered_on(
    quick_spark: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "ROWS_A_STRETCH", 4)
    monkeypatch.setattr(stage, "EVENTS_AT_ONCE", 2)
    values = {"type": "T", "source": "a", "priority": 0, "format": "json", "content": "{}"}
    times = {"b": (3.0, 9.0, 5.0), "a": (7.0,), "c": (1.0, 2.0)}
    lives = {"b": 4.0, "a": None, "c": 2.5}
    events = [
        {**values, "workload": name, "event": f"{time}", "time": time, "lifespan_s": lives[name]}
        for name, some in times.items() for time in some
    ]  # fmt: skip
    positions = [(name, "n", float(time), 0.0, 0.0) for name, count in (("a", 9), ("b", 5)) for time in range(count)]
    networks = {name: ContactNetwork(number) for number, name in enumerate("abz")}
    plans = reach_plans(
        quick_spark.createDataFrame(events, EVENTS.ddl),  # type: ignore[arg-type]
        quick_spark.createDataFrame(positions, POSITIONS),  # type: ignore[arg-type]
        networks,
    )
    assert plans == {
        "a": ReachPlan(networks["a"], 9, 0.0, 8 / 3, 3, 7.0, 1.0, 1, math.inf, 0, 0),
        "b": ReachPlan(networks["b"], 5, 0.0, 2.0, 2, 3.0, 3.0, 2, 4.0, 3, 1),
    }
    assert list(plans) == ["a", "b"]


def plan(
    rows: int = 10, begin: float = 0.0, end: float = 8.0, count: int = 10, first: float = 1.0, last: float = 5.0
) -> ReachPlan:
    return _plan(ContactNetwork(1.0), rows, begin, end, count, first, last, 2.0)


def test_a_plan_cuts_into_the_fewest_equal_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "ROWS_A_STRETCH", 5)
    monkeypatch.setattr(stage, "EVENTS_AT_ONCE", 4)
    assert plan() == ReachPlan(ContactNetwork(1.0), 10, 0.0, 4.0, 2, 1.0, 4 / 3, 3, 2.0, 0, 0)
    assert (plan(rows=11).stretches, plan(rows=0).stretches, plan(rows=1).stretches) == (3, 1, 1)
    assert (plan(count=12).chunks, plan(count=13).chunks, plan(count=1).chunks) == (3, 4, 1)
    assert (plan(begin=2.0).origin, plan(begin=2.0).stretch_s, plan(end=0.0).stretch_s) == (2.0, 3.0, 1.0)
    assert (plan(last=1.0).chunk_s, plan(first=2.0).first) == (1.0, 2.0)


def test_a_contact_goes_to_the_chunks_it_touches_and_one_on_either_side() -> None:
    """Chunks begin at 10, 15, ... 35 s; events live 2 s at most."""
    one = ReachPlan(ContactNetwork(1.0), 0, 0.0, 1.0, 1, 10.0, 5.0, 6, 2.0, 0, 0)
    spans = [(21.0, 22.0), (22.0, 24.9), (0.0, 3.0), (90.0, 99.0), (0.0, 99.0), (26.9, 30.0)]
    start, end = (np.array(column) for column in zip(*spans, strict=True))
    first, after = one.chunks_touching(start, end)
    assert list(zip(first.tolist(), after.tolist(), strict=True)) == [(0, 4), (1, 4), (0, 0), (6, 6), (0, 6), (1, 6)]
    assert one.chunks_touching(np.array([32.0]), np.array([32.0]))[0].tolist() == [3]
    endless = ReachPlan(ContactNetwork(1.0), 0, 0.0, 1.0, 1, 10.0, 5.0, 6, math.inf, 0, 0)
    assert [one.tolist() for one in endless.chunks_touching(np.array([50.0]), np.array([50.0]))] == [[0], [6]]


@pytest.mark.parametrize(
    ("count", "cores", "bounds", "tasks"),
    [
        (0, 2, (10, 100), 1), (9, 2, (10, 100), 1), (25, 2, (10, 100), 2), (79, 2, (10, 100), 7), (95, 2, (10, 100), 8),
        (801, 2, (10, 100), 9), (800, 2, (10, 100), 8), (5, 2, (1, 1), 5), (20, 2, (1, 1), 20), (20, 1, (1, 8), 4),
    ],
)  # fmt: skip
def test_tasks_are_four_a_core_within_their_bounds(count: int, cores: int, bounds: tuple[int, int], tasks: int) -> None:
    assert _tasks(count, cores, bounds) == tasks


# Networks and shares.


def test_a_scenarios_range_is_its_radios_or_endless() -> None:
    base = load_scenario("base").with_({"medium": {"kind": "unit-disk", "range_m": 130.0}})
    assert radio_range_m(base) == 130.0
    assert radio_range_m(base.with_({"medium.kind": "overlay"})) == math.inf
    beside: Any = SimpleNamespace(infrastructure="lte", medium=base.medium)
    assert radio_range_m(beside) == math.inf
    bare: Any = SimpleNamespace(medium=SimpleNamespace())
    assert radio_range_m(bare) == math.inf


def test_a_network_has_its_scenarios_faults_or_reaches_everywhere() -> None:
    cut = {"start_s": 20.0, "end_s": 50.0, "line": [[500, 0], [500, 1000]]}
    base = load_scenario("base").with_(
        {
            "medium": {"kind": "unit-disk", "range_m": 130.0},
            "nodes.node.count": 10,
            "duration_s": 80.0,
            "faults": {"silent_share": 0.3, "partitions": [cut]},
        }
    )
    found = network_of(base, 3, 130.0)
    assert (found.range_m, found.until_s, found.infrastructure, len(found.silent)) == (130.0, 80.0, False, 3)
    assert found.silent < {*base.names()}
    assert found.partitions == base.faults.partitions
    assert found.links == base.medium.links
    assert not found.reaches_everywhere
    wired = ContactNetwork(math.inf, infrastructure=True)
    assert network_of(base, 3, math.inf) == wired
    beside: Any = SimpleNamespace(infrastructure="lte", medium=base.medium, faults=base.faults)
    assert network_of(beside, 3, 130.0) == ContactNetwork(130.0, infrastructure=True)
    overlay = network_of(base.with_({"medium.kind": "overlay"}), 3, math.inf)
    assert (overlay.infrastructure, overlay.reaches_everywhere, len(overlay.silent)) == (False, True, 3)


def test_every_node_reaches_every_other_without_a_range_unless_links_are_scripted() -> None:
    scripted: Any = SimpleNamespace(graph="ring")
    assert ContactNetwork(math.inf).reaches_everywhere
    assert ContactNetwork(5.0, infrastructure=True).reaches_everywhere
    assert not ContactNetwork(5.0).reaches_everywhere
    assert not ContactNetwork(math.inf, links=scripted).reaches_everywhere
    assert ContactNetwork(math.inf, links=scripted, infrastructure=True).reaches_everywhere
    assert ContactNetwork(1.0) == ContactNetwork(1.0, math.inf, LinkScript(), (), frozenset(), math.inf, False)


def test_a_ceiling_counts_the_pairs_by_their_reach(quick_spark: Session) -> None:
    reach = ["at once"] * 3 + ["by carrying"] * 2 + ["no"] * 5
    rows: Any = quick_spark.createDataFrame([(one,) for one in reach], "reach string")
    ceiling = ceiling_of(rows)
    assert ceiling == Ceiling(10, 3, 2)
    assert (ceiling.share, ceiling.share_at_once) == (0.5, 0.3)
    assert str(ceiling) == "reachable at all: 50.0 % (at once 30.0 %)"
    assert ceiling_of(rows.where("reach = 'no'")) == Ceiling(5, 0, 0)
    nothing = ceiling_of(rows.where("reach = 'x'"))
    assert (nothing, nothing.share, nothing.share_at_once) == (Ceiling(0, 0, 0), 1.0, 1.0)
