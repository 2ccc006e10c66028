"""Trees under random churn: no cycle, no orphan for ever, nothing lost through graceful changes, all once."""

from collections import Counter

import pytest
from codd_table import CATEGORIES, SMALL, CoddTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizes import sized

NAMES = [f"n{i:02}" for i in range(14)]
WANTED = st.sets(st.sampled_from(CATEGORIES), min_size=1, max_size=3).map(lambda found: "".join(sorted(found)))
GRACEFUL = st.one_of(
    st.tuples(st.just("join"), st.sampled_from(NAMES), WANTED),
    st.tuples(st.just("leave"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("publish"), st.none(), st.sampled_from(CATEGORIES)),
    st.tuples(st.just("publish"), st.none(), st.sampled_from(CATEGORIES)),
    st.tuples(st.just("wait"), st.none(), st.sampled_from([0.01, 0.05, 0.2, 1.0, 6.0])),
)
ANYHOW = st.one_of(
    GRACEFUL,
    st.tuples(st.just("crash"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("change"), st.sampled_from(NAMES), WANTED),
)


def run_script(script, seed, sources=1):
    table = CoddTable(sources, seed=seed)
    lives: dict[str, float] = {}
    "When each node that is there now came."
    for what, name, detail in script:
        match what:
            case "join" if name not in table.machines:
                table.join(name, detail)
                lives[name] = table.now
            case "leave" if name in table.machines:
                table.leave(name)
                del lives[name]
            case "crash" if name in table.machines:
                table.crash(name)
                del lives[name]
            case "change" if name in table.machines:
                table.subscribe(name, detail)
                lives[name] = table.now
            case "publish":
                for source in table.sources:
                    table.publish(detail, source)
            case "wait":
                table.run(table.now + detail)
    return table, lives


@settings(max_examples=sized(60, 600), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(GRACEFUL, min_size=20, max_size=90), st.integers(0, 1000))
def test_a_node_that_stays_through_graceful_changes_gets_everything_once(script, seed):
    table, lives = run_script(script, seed)
    table.run(table.now + 60.0)
    table.check_tree()
    for name, came in lives.items():
        got = Counter(table.got(name))
        assert all(count == 1 for event, count in got.items() if _during(table, event, came)), name
        expected = {event.id for event, at, there in table.published if at > came and name in there}
        assert expected <= set(got), (name, sorted(expected - set(got)))


@settings(max_examples=sized(60, 600), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ANYHOW, min_size=20, max_size=90), st.integers(0, 1000), st.integers(1, 2))
def test_after_any_churn_all_nodes_are_in_the_tree_again_and_get_everything_once(script, seed, sources):
    table, lives = run_script(script, seed, sources)
    table.run(table.now + 90.0)
    for source in table.sources:
        table.check_tree(source)
    before = len(table.published)
    for category in CATEGORIES:
        for source in table.sources:
            table.publish(category, source)
    table.run(table.now + 5.0)
    for event, _, there in table.published[before:]:
        category = event.content["category"]
        assert there == {name for name, wanted in table.wants.items() if category in wanted}
        assert sorted(node for node, id, _ in table.delivered if id == event.id) == sorted(there)
    for name, came in lives.items():
        got = Counter(table.got(name))
        assert all(count == 1 for event, count in got.items() if _during(table, event, came)), name


def _during(table, event_id, came):
    return any(event.id == event_id and at > came for event, at, _ in table.published)


@pytest.mark.long
def test_churn_with_room_for_many_children():
    settings = type(SMALL)(agents=SMALL.agents, fan_out=6)
    table = CoddTable(settings=settings)
    for name in NAMES:
        table.join(name, "abc")
    table.run(60.0)
    table.check_tree()
