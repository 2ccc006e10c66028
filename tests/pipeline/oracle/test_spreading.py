"""The kernel of the ceiling against networkx on small random temporal graphs."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.pipeline.oracle import spreading
from earshot.pipeline.oracle.spreading import REACHES, PublishedColumns, reach_of_pairs
from earshot.pipeline.traces.exact_contacts import contact_columns

Contact = tuple[int, int, float, float]
Published = tuple[int, float, float]
"Source, time, deadline."
NODES = 6


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(spreading, "compiled_sweep", lambda: None)
    elif spreading.compiled_sweep() is None:
        pytest.skip("there is no compiler")


def reaches(contacts: list[Contact], events: list[Published], silent: Any = None) -> list[list[str]]:
    """For each event, the answer for each node."""
    source, time, deadline = zip(*events, strict=True)
    columns = PublishedColumns(np.array(source, np.int64), np.array(time), np.array(deadline))
    pairs = [(e, node) for e in range(len(events)) for node in range(NODES)]
    pair_event, pair_node = (np.array(one, np.int64) for one in zip(*pairs, strict=True))
    found = reach_of_pairs(NODES, contact_columns(contacts), columns, pair_event, pair_node, silent)
    words = [REACHES[one] for one in found]
    return [words[at : at + NODES] for at in range(0, len(words), NODES)]


def by_networkx(contacts: list[Contact], event: Published, silent: frozenset[int] = frozenset()) -> list[str]:
    """Every moment at which something changes, one after the other; the graph of that moment as it is."""
    source, published, deadline = event
    moments = sorted({published, *(one[2] for one in contacts), *(one[3] for one in contacts)})
    holders = {source}
    answers = ["no"] * NODES
    for now in moments:
        if not published <= now <= deadline:
            continue
        graph = nx.Graph()
        graph.add_nodes_from(range(NODES))
        graph.add_edges_from((a, b) for a, b, start, end in contacts if start <= now <= end)
        for holder in sorted(holders):
            passing = set(range(NODES)) - (silent - {source if holder == source else -1})
            if holder not in passing:
                continue
            relaying = graph.subgraph(passing - (silent - {holder}))
            component = nx.node_connected_component(relaying, holder)
            holders |= component | {far for near in component for far in graph[near]}
        for node in holders:
            if answers[node] == "no":
                answers[node] = "at once" if now == published else "by carrying"
    return answers


times = st.integers(0, 12).map(float)
pairs = st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)).filter(lambda pair: pair[0] < pair[1])
contacts = st.lists(
    st.tuples(pairs, times, st.integers(0, 4)).map(lambda one: (*one[0], one[1], one[1] + one[2])), max_size=14
)
events = st.lists(
    st.tuples(st.integers(0, NODES - 1), times, st.one_of(st.integers(1, 6).map(float), st.just(math.inf))).map(
        lambda one: (one[0], one[1], one[1] + one[2])
    ),
    min_size=1,
    max_size=70,
)


@settings(max_examples=150, deadline=None)
@given(contacts, events, st.frozensets(st.integers(0, NODES - 1), max_size=2))
def test_the_sweep_agrees_with_networkx(
    contacts: list[Contact], events: list[Published], silent: frozenset[int]
) -> None:
    quiet = np.array(sorted(silent), np.int64) if silent else None
    assert reaches(contacts, events, quiet) == [by_networkx(contacts, event, silent) for event in events]


def test_more_events_than_one_sweep_serves_get_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    contacts = [(int(a), int(b), float(t), float(t + 2)) for a, b, t in rng.integers(0, 6, (40, 3)) if a < b]
    events = [(int(source), float(time), float(time + 3)) for source, time in rng.integers(0, 6, (200, 2))]
    whole = reaches(contacts, events)
    monkeypatch.setattr(spreading, "EVENTS_AT_ONCE", 7)
    assert reaches(contacts, events) == whole


def test_a_contact_that_ends_at_the_publication_still_counts() -> None:
    assert reaches([(0, 1, 0.0, 5.0)], [(0, 5.0, 9.0)])[0][1] == "at once"
    assert reaches([(0, 1, 0.0, 5.0)], [(0, 5.001, 9.0)])[0][1] == "no"


def test_a_contact_that_begins_at_the_end_of_the_lifespan_still_counts() -> None:
    assert reaches([(0, 1, 9.0, 9.0)], [(0, 5.0, 9.0)])[0][1] == "by carrying"
    assert reaches([(0, 1, 9.001, 10.0)], [(0, 5.0, 9.0)])[0][1] == "no"


def test_a_path_must_follow_the_order_of_time() -> None:
    assert reaches([(0, 1, 1.0, 2.0), (1, 2, 3.0, 4.0)], [(0, 0.0, 9.0)])[0][2] == "by carrying"
    assert reaches([(0, 1, 3.0, 4.0), (1, 2, 1.0, 2.0)], [(0, 0.0, 9.0)])[0][2] == "no"


def test_a_silent_node_passes_on_only_its_own_events() -> None:
    links = [(0, 1, 0.0, 9.0), (1, 2, 0.0, 9.0), (1, 3, 5.0, 6.0)]
    assert reaches(links, [(0, 1.0, 9.0), (1, 1.0, 9.0)], np.array([1])) == [
        ["at once", "at once", "no", "no", "no", "no"],
        ["at once", "at once", "at once", "by carrying", "no", "no"],
    ]


def test_a_contact_that_ends_leaves_the_one_that_began_after_it() -> None:
    contacts = [(0, 1, 5.0, 20.0), (0, 2, 0.0, 10.0), (3, 0, 6.0, 20.0)]
    at_once, no = REACHES[spreading.AT_ONCE], REACHES[spreading.NO]
    events = [(0, 8.0, 9.0), (0, 15.0, 18.0)]
    assert reaches(contacts, events) == [
        [at_once, at_once, at_once, at_once, no, no],
        [at_once, at_once, no, at_once, no, no],
    ]


@pytest.mark.parametrize("count", [64, 65, 130])
def test_all_events_may_be_open_at_once_and_keep_apart(count: int) -> None:
    """Nobody reaches the last node, so that every event stays open to its end; each alone has the same answers."""
    contacts = [(0, 1, 10.0, 20.0), (1, 2, 50.0, 120.0), (2, 3, 130.0, 131.0), (3, 4, 0.0, 5.0)]
    events = [(number % 4, float(number), math.inf) for number in range(count)]
    assert reaches(contacts, events) == [answer for event in events for answer in reaches(contacts, [event])]
