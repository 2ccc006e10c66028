"""CoDD's synthetic data: what will not do is named, and a scenario draws it as it says."""

from __future__ import annotations

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
