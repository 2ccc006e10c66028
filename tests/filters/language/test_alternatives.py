"""The parts of alternatives that all users of them share: where a step arrives, and what stays when parts multiply."""

from __future__ import annotations

import pytest

from earshot.filters.index.plans import Plan, _plans
from earshot.filters.language.alternatives import SOMEWHERE, TEXT_NODES, InDocument, Source, arrived
from earshot.filters.language.syntax import Axis, NodeKind, PathStep


@pytest.mark.parametrize(
    ("axis", "kind", "name", "there"),
    [
        (Axis.CHILD, NodeKind.ELEMENT, "b", InDocument("b")),
        (Axis.DESCENDANT, NodeKind.ELEMENT, "b", InDocument("b")),
        (Axis.CHILD, NodeKind.ATTRIBUTE, "id", InDocument("a", "id")),
        (Axis.DESCENDANT, NodeKind.ATTRIBUTE, "id", InDocument("*", "id")),
        (Axis.CHILD, NodeKind.ATTRIBUTE, "*", SOMEWHERE),
        (Axis.CHILD, NodeKind.TEXT, "", InDocument("a", TEXT_NODES)),
        (Axis.DESCENDANT, NodeKind.TEXT, "", InDocument("*", TEXT_NODES)),
        (Axis.CHILD, NodeKind.SELF, "", InDocument("a")),
    ],
)
def test_a_step_arrives_at_nodes_of_a_name(axis: Axis, kind: NodeKind, name: str, there: Source) -> None:
    assert arrived(PathStep(axis, kind, name), InDocument("a")) == there


def alternatives(name: str, count: int) -> list[Plan]:
    return [Plan(needs=(f"{name}{number}",)) for number in range(count)]


@pytest.mark.parametrize(
    ("counts", "kept"),
    [
        ((4, 4), (4, 4)),
        ((16, 1), (16, 1)),
        ((17,), (0,)),
        ((2, 9), (2, 0)),
        ((9, 2), (0, 2)),
        ((3, 2, 3), (3, 2, 0)),
        ((2, 8, 2), (2, 0, 2)),
    ],
)
def test_the_longest_parts_are_left_out_where_all_together_have_more_than_sixteen_alternatives(
    counts: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    found = _plans.all([alternatives(name, count) for name, count in zip("xyz", counts, strict=False)])
    sources = {str(source) for plan in found for source in plan.needs}
    assert tuple(sum(source[0] == name for source in sources) for name in "xyz"[: len(counts)]) == kept
