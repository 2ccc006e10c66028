"""Queries drawn after a DTD: their shape, and their selectivity once steered."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from earshot.errors import ScenarioError
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.filters.language.syntax import Axis, LocationPath, PathStep
from earshot.simulation.draws import Span
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.workload.dtd import BUILT_IN, Dtd, built_in_dtd, load_dtd, read_dtd
from earshot.simulation.workload.dtd_workload import (
    MOST_NODES,
    MOST_STEPS,
    QueryShape,
    _tilt,
    draw_query,
    steered_pool,
)
from earshot.simulation.workload.generators import XmlDocuments
from earshot.simulation.workload.interests import XPaths

PLAIN = QueryShape(p_star=0.0, p_child=0.0, p_descendant=0.0, steps=(1, 8))
PAPER = QueryShape(p_star=0.2, p_child=0.3, p_descendant=0.2, steps=(3, 8))


def drawn(dtd: Dtd, shape: QueryShape, count: int = 300) -> list[Filter]:
    random = Random("queries")
    return [draw_query(dtd, shape, random) for _ in range(count)]


def steps_of(path: Any) -> list[PathStep]:
    """Every step of a twig, those of its branches too."""
    assert isinstance(path, LocationPath)
    return [
        found for step in path.steps for found in (step, *(one for two in step.predicates for one in steps_of(two)))
    ]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_plain_query_is_a_way_down_the_dtd(name: str) -> None:
    dtd = load_dtd(built_in_dtd(name))
    lengths = set()
    for query in drawn(dtd, PLAIN):
        names = str(query).split("/")[1:]
        lengths.add(len(names))
        assert names[0] == dtd.root
        for above, below in pairwise(names):
            assert below in dtd.children(above)
        assert Filter.parse(str(query)) == query
    assert {1, 2, 3, 4, 5, 6} <= lengths <= set(range(1, 9))


def test_wildcards_branches_and_closures_come_as_often_as_asked() -> None:
    dtd = load_dtd(built_in_dtd("news"))
    steps = [step for query in drawn(dtd, PAPER, 1000) for step in steps_of(query.condition)]
    assert sum(step.name == "*" for step in steps) / len(steps) == pytest.approx(0.2, abs=0.02)
    assert sum(step.axis is Axis.DESCENDANT for step in steps) / len(steps) == pytest.approx(0.2, abs=0.02)
    wide = read_dtd(
        b"<!ELEMENT a (b | c)*><!ELEMENT b (d | e)*><!ELEMENT c (d | e)*><!ELEMENT d EMPTY><!ELEMENT e EMPTY>"
    )
    inner = QueryShape(p_star=0.0, p_child=0.3, p_descendant=0.0, steps=(3, 3))
    forks = [step for query in drawn(wide, inner, 1000) for step in steps_of(query.condition) if step.name in "abc"]
    assert sum(len(step.predicates) == 1 for step in forks) / len(forks) == pytest.approx(0.3, abs=0.03)
    assert {str(query) for query in drawn(wide, QueryShape(0.0, 1.0, 0.0, (2, 2)), 50)} == {"/a[b]/c", "/a[c]/b"}
    assert {str(query) for query in drawn(wide, QueryShape(1.0, 0.0, 1.0, (2, 2)), 50)} == {"//*//*"}


def test_a_query_of_a_recursive_dtd_ends_and_can_be_read_back() -> None:
    dtd = read_dtd(b"<!ELEMENT a (a | b)*><!ELEMENT b (a | b)*>", "a")
    for query in drawn(dtd, QueryShape(0.2, 1.0, 0.2, (MOST_STEPS, MOST_STEPS)), 40):
        assert len(steps_of(query.condition)) <= MOST_NODES * MOST_STEPS
        assert Filter.parse(str(query)) == query


@pytest.mark.parametrize(("levels", "nodes"), [(5, 31), (6, 37)])
def test_a_query_branches_until_it_has_its_most_nodes(levels: int, nodes: int) -> None:
    """With a branch at every node, five levels are 31 nodes. Of six levels the root and its branch are 32; the way
    onward is then five nodes without branches."""
    dtd = read_dtd(b"<!ELEMENT a (a | b)*><!ELEMENT b (a | b)*>", "a")
    (query,) = drawn(dtd, QueryShape(0.0, 1.0, 0.0, (levels, levels)), 1)
    assert len(steps_of(query.condition)) == nodes


def test_a_steered_pool_has_the_mean_asked_for_and_no_query_without_a_match() -> None:
    source = XmlDocuments(dtd="protein")
    dtd, random = source.document_type(), Random("sample")
    sample = [source.draw(random, number) for number in range(100)]
    for wanted in (0.1, 0.25, 0.6):
        pool = steered_pool(dtd, PAPER, sample, 300, wanted, Random("pool"))
        shares = [sum(query.matches(event) for event in sample) / 100 for query in pool.queries]
        weights = [after - before for before, after in zip((0, *pool.cumulative), pool.cumulative, strict=False)]
        mean = sum(map(float.__mul__, shares, map(float, weights))) / pool.cumulative[-1]
        assert mean == pytest.approx(wanted, abs=0.001)
        assert (shares, min(shares) > 0) == (sorted(shares), True)
        picked = Random("pick")
        some = [pool.draw(picked, number) for number in range(200)]
        assert sum(shares[pool.queries.index(query)] for query in some) / 200 == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize(
    ("shares", "mean", "tilt"),
    [
        ((0.0, 1.0), 0.5, 0.0), ((0.0, 1.0), 0.25, -1.099), ((0.0, 0.5, 1.0), 0.75, 1.668),
        ((0.0, 0.001), 1e-9, -200.0), ((0.0, 0.001), 0.001 - 1e-9, 200.0),
    ],
)  # fmt: skip
def test_weights_are_tilted_until_they_have_the_mean_but_never_without_bounds(
    shares: tuple[float, ...], mean: float, tilt: float
) -> None:
    assert _tilt(shares, mean) == pytest.approx(tilt, abs=0.0011)


def test_a_selectivity_out_of_reach_is_refused() -> None:
    dtd = read_dtd(b"<!ELEMENT a (b?)><!ELEMENT b EMPTY>")
    events = [Event.from_xml("<a><b/></a>"), Event.from_xml("<a/>")]
    shape = QueryShape(0.0, 0.0, 0.0, (2, 2))
    with pytest.raises(ScenarioError, match=r"selectivity 0\.3 is out of reach: .* select between 0\.50 and 0\.50"):
        steered_pool(dtd, shape, events, 10, 0.3, Random(1))
    with pytest.raises(ScenarioError, match=r"out of reach: .* select nothing"):
        steered_pool(dtd, shape, events[1:], 10, 0.3, Random(1))


@pytest.mark.parametrize(
    ("name", "selectivity", "kilobytes", "depth"),
    [("news", 0.28, 11.3, 5.83), ("protein", 0.15, 7.65, 4.37), ("customer", 0.31, 4.54, 3.32)],
)
def test_the_built_in_scenarios_are_as_the_paper_measured(
    name: str, selectivity: float, kilobytes: float, depth: float
) -> None:
    workload = load_scenario(f"codd-{name}").workload(seed=3)
    queries = [action.what.filter for action in workload if isinstance(action.what, Subscription)]
    events = [action.what for action in workload if isinstance(action.what, Event)]
    assert (len(queries), len(events)) == (400, 400)
    matches = sum(query.matches(event) for query in queries for event in events[:200])
    assert matches / (400 * 200) == pytest.approx(selectivity, abs=0.03)
    assert sum(len(event.to_xml()) for event in events) / 400e3 == pytest.approx(kilobytes, rel=0.15)
    depths = [level for event in events for level in _depths(event)]
    assert sum(depths) / len(depths) == pytest.approx(depth, abs=0.5)


def _depths(event: Event) -> list[int]:
    found = [(event.root, 1)]
    for element, level in found:
        found.extend((child, level + 1) for child in element.elements)
    return [level for _, level in found]


SCRIPT = """
from hashlib import sha256
from earshot.simulation.scenario.library import load_scenario
short = load_scenario("codd-customer").with_({"duration_s": 40.0})
drawn = [(action.time, action.node, str(getattr(action.what, "filter", action.what))) for action in short.workload(5)]
print(sha256(repr(drawn).encode()).hexdigest())
"""


def test_the_same_seed_gives_the_same_bytes_in_another_process() -> None:
    stated = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert re.fullmatch("[0-9a-f]{64}\n", stated[0])
    assert stated[0] == stated[1]


def test_queries_of_a_published_dtd_are_steered_too(shared_data: Path) -> None:
    source = XmlDocuments(file=shared_data / "yfilter" / "nitf-2-5.dtd", max_elements=80)
    interest, random = XPaths("n", selectivity=0.3), Random("nitf")
    queries = [interest.draw(random, number, {"n": source}) for number in range(60)]
    events = [source.draw(random, number) for number in range(60)]
    assert sum(query.matches(event) for query in queries for event in events) / 3600 == pytest.approx(0.3, abs=0.08)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: XPaths("d", p_star=2), "p_star must be from 0 to 1, got 2"),
        (lambda: XPaths("d", p_child=-1), "p_child must be from 0 to 1, got -1"),
        (lambda: XPaths("d", p_descendant=1.5), "p_descendant must be from 0 to 1, got 1.5"),
        (lambda: XPaths("d", steps=Span(0, 3)), "steps must be whole numbers from 1 to 12, got 0 to 3"),
        (lambda: XPaths("d", steps=Span(2, 17)), "steps must be whole numbers from 1 to 12, got 2 to 17"),
        (lambda: XPaths("d", selectivity=1.0), "selectivity must be between 0 and 1, got 1"),
        (lambda: XPaths("d").check({}), "of: there is no publish entry 'd'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        make()


def test_the_settings_of_queries_become_their_shape() -> None:
    interest = XPaths("d", p_star=0.1, p_child=0.4, p_descendant=0.3, steps=Span(2, 5))
    assert interest.shape == QueryShape(p_star=0.1, p_child=0.4, p_descendant=0.3, steps=(2, 5))


@pytest.mark.parametrize("steps", [1, MOST_STEPS])
def test_the_fewest_and_the_most_steps_may_be_asked_for(steps: int) -> None:
    recursive = read_dtd(b"<!ELEMENT a (a?)>", "a")
    assert XPaths("d", steps=Span(steps, steps)).shape.steps == (steps, steps)
    (query,) = drawn(recursive, QueryShape(0.0, 0.0, 0.0, (steps, steps)), 1)
    assert str(query) == "/a" * steps


def test_queries_are_about_documents_with_a_dtd() -> None:
    with pytest.raises(ScenarioError, match='of must name a publish entry whose events are of kind "xml"'):
        load_scenario("overlay").with_({"subscribe.documents.filters": {"kind": "xpath", "of": "documents"}})


def test_a_wrong_key_names_its_file_and_place() -> None:
    with pytest.raises(ScenarioError, match=r"publish\.documents\.events\.optional: must be from 0 to 1, got 3"):
        load_scenario("codd-news").with_({"publish.documents.events.optional": 3})
    with pytest.raises(ScenarioError, match=r"filters\.p_stat: no such key; did you mean p_star\?"):
        load_scenario("codd-news").with_({"subscribe.documents.filters.p_stat": 0.1})
