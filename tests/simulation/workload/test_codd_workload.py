"""CoDD's synthetic data: what will not do is named, and a scenario draws it as it says."""

from __future__ import annotations

from itertools import chain
from random import Random
from typing import Any

import pytest

from earshot.errors import ScenarioError
from earshot.simulation.draws import Span
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.workload.codd_workload import CoddDocuments, CoddQueries
from earshot.simulation.workload.generators import Topics


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"queries": 0}, "queries must be at least 1, got 0"),
        ({"query_buckets": Span(0.0, 3.0)}, "query_buckets must be whole numbers from 1 to 20, got [0, 3]"),
        ({"query_buckets": Span(1.0, 2.5)}, "query_buckets must be whole numbers from 1 to 20, got [1, 2.5]"),
        ({"document_buckets": 21}, "document_buckets must not exceed buckets, got 21"),
        ({"shuffle_buckets": 21}, "shuffle_buckets must be from 0 to 20, got 21"),
        ({"shuffle_every": -1}, "shuffle_every must not be negative, got -1"),
    ],
)
def test_what_will_not_do_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        CoddDocuments(**wrong)
    assert str(caught.value) == message


def test_queries_name_a_publish_entry_of_their_kind() -> None:
    with pytest.raises(ScenarioError, match="whose events are of kind \"buckets\", got 'news'"):
        CoddQueries("news").check({"news": Topics()})
    with pytest.raises(ScenarioError, match='shuffle must be "data"'):
        CoddQueries("news").check({"news": CoddDocuments(shuffle="subscriptions")})


def test_each_subscriber_of_the_scenario_has_a_query_of_its_own() -> None:
    workload = load_scenario("codd").with_({"duration_s": 60.0}).workload(1)
    wanted = [str(action.what.filter) for action in workload if hasattr(action.what, "filter")]
    assert len(wanted) == len(set(wanted)) == 400
    assert sorted(wanted)[:2] == ['Document: word = "q000"', 'Document: word = "q001"']


def test_a_shuffle_splits_some_buckets_and_merges_the_halves_in_pairs() -> None:
    """Each query is in one bucket here, so that halves do not overlap."""
    one = CoddDocuments(queries=90, buckets=4, query_buckets=Span(1.0, 1.0), shuffle_buckets=3, draw_seed=1)
    before, after = one.members(0), one.members(1)
    assert sorted(chain(*before)) == sorted(chain(*after)) == list(range(90))
    assert [len(bucket) for bucket in before] == [25, 20, 31, 14]
    shared = [[len(new & old) for old in before] for new in after]
    assert shared == [[25, 0, 0, 0], [0, 0, 16, 7], [0, 10, 15, 0], [0, 10, 0, 7]]
    assert one.members(2) != after


def test_a_query_is_in_as_many_buckets_as_are_asked_for() -> None:
    one = CoddDocuments(queries=200, buckets=6, query_buckets=Span(2.0, 3.0))
    held = [sum(query in bucket for bucket in one.members(0)) for query in range(200)]
    assert set(held) == {2, 3}


@pytest.mark.parametrize(
    ("every", "start", "expected"),
    [
        (10, 0, [0, 0, 1, 1, 2]), (10, 5, [0, 0, 0, 1, 1]), (0, 0, [0, 0, 0, 0, 0]), (1, 0, [0, 9, 10, 19, 20]),
        (1, 10, [0, 0, 0, 9, 10]),
    ],
)  # fmt: skip
def test_shuffles_come_every_so_many_documents(every: int, start: int, expected: list[int]) -> None:
    one = CoddDocuments(shuffle_every=every, shuffle_from=start)
    assert [one.epoch(number) for number in (0, 9, 10, 19, 20)] == expected


def test_a_document_holds_the_words_of_the_queries_in_its_buckets() -> None:
    one = CoddDocuments(queries=30, buckets=5, document_buckets=2, shuffle_every=0, payload_bytes=7)
    chosen, wanted = one.audience(Random(3), 9)
    assert len(chosen) == 2
    assert chosen == tuple(sorted(chosen))
    assert wanted == one.members(0)[chosen[0]] | one.members(0)[chosen[1]]
    *words, payload = one.draw(Random(3), 9).content.children
    assert [word.children for word in words] == [(f"q{query:03}",) for query in sorted(wanted)]
    assert (payload.name, payload.children) == ("payload", ("x" * 7,))
    assert one.types()[0].subject == "Document"


def test_where_subscriptions_are_shuffled_documents_name_buckets_and_queries_ask_for_theirs() -> None:
    one = CoddDocuments(queries=30, buckets=5, shuffle="subscriptions")
    chosen, _ = one.audience(Random(3), 0)
    assert [word.children for word in one.draw(Random(3), 0).content.children] == [(f"c{i:02}",) for i in chosen]
    for epoch in (0, 1):
        asked = [str(wanted) for wanted in one.filters_in(7, epoch)]
        mine = [i for i, bucket in enumerate(one.members(epoch)) if 7 in bucket]
        assert asked == [f'Document: word = "c{i:02}"' for i in mine]


def test_subscribers_beyond_the_number_of_queries_begin_again() -> None:
    sources = {"news": CoddDocuments(queries=30)}
    drawn = [str(CoddQueries("news").draw(Random(1), number, sources)) for number in (29, 30, 31)]
    assert drawn == [f'Document: word = "q{query:03}"' for query in (29, 0, 1)]
