"""The axes of XPath on a document whose nodes are numbered by hand, and what each step costs."""

from __future__ import annotations

import pytest

from earshot import Event
from earshot.errors import FilterTooCostly
from earshot.filters.language import nodes as axes
from earshot.filters.language.expressions import NAMED, NODE, AxisStep
from earshot.filters.language.matching import nodes_of
from earshot.filters.language.nodes import DocumentNodes, Evaluation, axis_of_many, axis_of_one

# 0 the document, 1 r, 2 @k, 3 a, 4 @x, 5 "t", 6 b, 7 c, 8 b, 9 "u", 10 a
TEXT = '<r k="1"><a x="2">t<b/></a><c><b/>u</c><a/></r>'


def document() -> DocumentNodes:
    return nodes_of(Event.from_xml(TEXT))


def step(axis: str, test: str) -> AxisStep:
    return AxisStep(axis, *((NODE, "") if test == "node()" else ("text", "") if test == "text()" else (NAMED, test)))


def test_nodes_are_numbered_in_document_order() -> None:
    nodes = document()
    assert nodes.names == ["", "r", "k", "a", "x", "", "b", "c", "b", "", "a"]
    assert nodes.parents == [-1, 0, 1, 1, 3, 3, 3, 1, 7, 7, 1]
    assert nodes.ends == [10, 10, 2, 6, 4, 5, 6, 9, 8, 9, 10]
    assert [nodes.text(number) for number in (0, 2, 3, 9, 10)] == ["tu", "1", "t", "u", ""]


@pytest.mark.parametrize(
    ("node", "axis", "test", "found"),
    [
        (7, "ancestor", "node()", [1, 0]),
        (7, "ancestor-or-self", "node()", [7, 1, 0]),
        (7, "child", "node()", [8, 9]),
        (7, "descendant", "node()", [8, 9]),
        (7, "descendant-or-self", "node()", [7, 8, 9]),
        (7, "following", "node()", [10]),
        (7, "following-sibling", "*", [10]),
        (7, "parent", "node()", [1]),
        (7, "preceding", "node()", [6, 5, 3]),
        (7, "preceding-sibling", "node()", [3]),
        (10, "preceding-sibling", "*", [7, 3]),
        (7, "self", "node()", [7]),
        (7, "self", "c", [7]),
        (7, "self", "a", []),
        (7, "attribute", "*", []),
        (3, "attribute", "*", [4]),
        (3, "attribute", "x", [4]),
        (3, "attribute", "k", []),
        (3, "child", "x", []),
        (3, "child", "node()", [5, 6]),
        (3, "child", "*", [6]),
        (3, "child", "text()", [5]),
        (3, "following", "node()", [7, 8, 9, 10]),
        (3, "preceding", "node()", []),
        (4, "following", "node()", [7, 8, 9, 10]),
        (4, "following-sibling", "node()", []),
        (4, "parent", "node()", [3]),
        (4, "ancestor", "*", [3, 1]),
        (6, "preceding", "node()", [5]),
        (1, "descendant", "node()", [3, 5, 6, 7, 8, 9, 10]),
        (1, "descendant-or-self", "*", [1, 3, 6, 7, 8, 10]),
        (1, "descendant", "b", [6, 8]),
        (1, "descendant", "r", []),
        (0, "descendant", "r", [1]),
        (1, "descendant", "text()", [5, 9]),
        (3, "following", "b", [8]),
        (8, "following", "b", []),
        (0, "parent", "node()", []),
        (0, "following-sibling", "node()", []),
        (0, "child", "*", [1]),
    ],
)
def test_an_axis_leads_to_these_nodes_in_its_own_order(node: int, axis: str, test: str, found: list[int]) -> None:
    assert list(axis_of_one(step(axis, test))(Evaluation(document()), node)) == found


@pytest.mark.parametrize(
    ("among", "axis", "found"),
    [
        ([3, 7, 10], "following-sibling", [7, 10]),
        ([3, 7, 10], "preceding-sibling", [3, 7]),
        ([6, 8, 9], "preceding-sibling", [5, 8]),
        ([5, 6, 8], "following-sibling", [6, 9]),
        ([3, 4], "following-sibling", [7, 10]),
        ([3, 7, 10], "following", [7, 8, 9, 10]),
        ([4, 7], "following", [7, 8, 9, 10]),
        ([3, 7, 10], "preceding", [3, 5, 6, 7, 8, 9]),
        ([1, 3], "descendant", [3, 5, 6, 7, 8, 9, 10]),
        ([3, 6, 7], "descendant-or-self", [3, 5, 6, 7, 8, 9]),
        ([3, 4, 7], "descendant-or-self", [3, 4, 5, 6, 7, 8, 9]),
        ([3, 7], "child", [5, 6, 8, 9]),
        ([3, 7], "parent", [1]),
        ([6, 8], "ancestor", [0, 1, 3, 7]),
        ([7], "preceding", [3, 5, 6]),
        ([], "child", []),
    ],
)
def test_an_axis_of_several_nodes_leads_to_each_node_once_in_document_order(
    among: list[int], axis: str, found: list[int]
) -> None:
    assert list(axis_of_many(step(axis, "node()"))(Evaluation(document()), among)) == found


@pytest.mark.parametrize(
    ("axis", "test", "cost"),
    [
        ("child", "*", 3 + 1),
        ("child", "node()", 3 + 1),
        ("descendant", "b", 2 + 1),
        ("descendant", "no", 1),
        ("descendant", "*", 9 + 1),
    ],
)
def test_a_step_costs_the_nodes_that_it_looks_at_and_one(axis: str, test: str, cost: int) -> None:
    evaluation = Evaluation(document())
    before = evaluation.left
    axis_of_one(step(axis, test))(evaluation, 1)
    assert before - evaluation.left == cost


def test_an_expression_may_spend_its_budget_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axes, "BUDGET", 10)
    evaluation = Evaluation(document())
    evaluation.spend(10)
    with pytest.raises(FilterTooCostly, match="more than 10 nodes"):
        evaluation.spend(1)


def test_a_text_costs_one_and_one_more_for_each_sixty_four_characters() -> None:
    for length, cost in ((0, 1), (63, 1), (64, 2), (200, 4)):
        evaluation = Evaluation(nodes_of(Event.from_xml(f"<r>{'x' * length}</r>")))
        before = evaluation.left
        assert evaluation.text(1) == "x" * length
        assert before - evaluation.left == cost
