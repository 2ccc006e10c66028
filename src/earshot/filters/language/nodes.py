"""A document's nodes, numbered in document order, and XPath's axes as ranges of these numbers.

An element's number is followed by those of its attributes, then by those of its children, so what lies below a node
is one range. The axes give the nodes of one node in the axis' own order, or of many nodes at once, each node once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from earshot.errors import FilterTooCostly
from earshot.events import Element
from earshot.filters.language.expressions import NAMED, NODE, REVERSE_AXES, AxisStep

BUDGET = 2_000_000
"One evaluation looks at this many nodes at most, and a long text counts as several."

ELEMENT, ATTRIBUTE, TEXT_NODE, DOCUMENT = range(4)
Numbers = Sequence[int]
"Numbers of nodes."


class DocumentNodes:
    """The nodes of a document, by number: the document itself is 0."""

    def __init__(self, document: Element) -> None:
        self.kinds: list[int] = [DOCUMENT]
        self.names: list[str] = [""]
        self.parents: list[int] = [-1]
        self.ends: list[int] = [0]
        "The last node below each, or itself."
        self.contents: list[Element | str] = [document]
        "The element, or the text of an attribute or a text node."
        self.by_name: dict[str, list[int]] = {}
        "The numbers of the elements of each name."
        self._number(document)

    def _number(self, document: Element) -> None:
        stack: list[tuple[int, Element | str]] = [(0, child) for child in reversed(document.children)]
        while stack:
            parent, child = stack.pop()
            if isinstance(child, str):
                if child:  # an empty text is no node: XML cannot represent it
                    self._add(TEXT_NODE, "", parent, child)
                continue
            number = self._add(ELEMENT, child.name, parent, child)
            self.by_name.setdefault(child.name, []).append(number)
            for name, text in child.attributes.items():
                self._add(ATTRIBUTE, name, number, text)
            stack += [(number, each) for each in reversed(child.children)]
        for number in range(len(self.kinds) - 1, 0, -1):
            parent = self.parents[number]
            self.ends[parent] = max(self.ends[parent], self.ends[number])

    def _add(self, kind: int, name: str, parent: int, content: Element | str) -> int:
        number = len(self.kinds)
        self.kinds.append(kind)
        self.names.append(name)
        self.parents.append(parent)
        self.ends.append(number)
        self.contents.append(content)
        return number

    def text(self, node: int) -> str:
        """XPath's string value."""
        content = self.contents[node]
        return content if isinstance(content, str) else content.text


class Evaluation:
    """One evaluation over a document: what is remembered of it, and how much it may still cost."""

    __slots__ = ("left", "memo", "nodes")

    def __init__(self, nodes: DocumentNodes) -> None:
        self.nodes = nodes
        self.left = BUDGET
        self.memo: dict[int, dict[int, object]] = {}
        "What an expression gave: its number -> the context node -> the value."

    def spend(self, steps: int) -> None:
        """Count some more nodes; FilterTooCostly beyond the budget."""
        self.left -= steps
        if self.left < 0:
            raise FilterTooCostly(
                f"the expression looks at more than {BUDGET:,} nodes of this document; make it more specific: "
                "write a path of names instead of // and of the axes following:: and preceding::"
            )

    def text(self, node: int) -> str:
        text = self.nodes.text(node)
        self.spend(1 + len(text) // 64)
        return text


def axis_of_one(step: AxisStep) -> Callable[[Evaluation, int], Numbers]:
    """The nodes that the step's axis and test lead to from one node, in the axis' order."""
    along = _ALONG[step.axis]
    passing = _passing(step)
    backwards = step.axis in REVERSE_AXES

    def select(evaluation: Evaluation, node: int) -> Numbers:
        found = passing(evaluation, along(evaluation.nodes, node))
        return found[::-1] if backwards else found

    return select


def axis_of_many(step: AxisStep) -> Callable[[Evaluation, Numbers], Numbers]:
    """The nodes that the step's axis and test lead to from any of the nodes, in document order."""
    along = _ALONG[step.axis]
    passing = _passing(step)
    representatives = _REPRESENTATIVES.get(step.axis)

    def select(evaluation: Evaluation, among: Numbers) -> Numbers:
        if len(among) == 1:
            return passing(evaluation, along(evaluation.nodes, among[0]))
        if representatives is not None:
            among = representatives(evaluation.nodes, among)
        found = [passing(evaluation, along(evaluation.nodes, node)) for node in among]
        return found[0] if len(found) == 1 else sorted(set().union(*found))

    return select


def _passing(step: AxisStep) -> Callable[[Evaluation, Numbers], Numbers]:
    """Those of the nodes along the step's axis that pass its test."""
    if step.test == NODE:
        if step.axis not in ("descendant", "following"):
            return _spending(lambda _nodes, numbers: numbers)
        return _spending(lambda nodes, numbers: [one for one in numbers if nodes.kinds[one] != ATTRIBUTE])
    name, wanted = step.name, ATTRIBUTE if step.axis == "attribute" else ELEMENT
    if step.test != NAMED:
        return _spending(lambda nodes, numbers: [one for one in numbers if nodes.kinds[one] == TEXT_NODE])
    if name == "*":
        return _spending(lambda nodes, numbers: [one for one in numbers if nodes.kinds[one] == wanted])
    if step.axis in ("descendant", "following"):
        return _named_in_range(name)
    return _spending(
        lambda nodes, numbers: [one for one in numbers if nodes.names[one] == name and nodes.kinds[one] == wanted]
    )


def _spending(test: Callable[[DocumentNodes, Numbers], Numbers]) -> Callable[[Evaluation, Numbers], Numbers]:
    def passing(evaluation: Evaluation, numbers: Numbers) -> Numbers:
        evaluation.spend(len(numbers) + 1)
        return test(evaluation.nodes, numbers)

    return passing


def _named_in_range(name: str) -> Callable[[Evaluation, Numbers], Numbers]:
    """The elements of a name among many numbers, found without looking at each."""

    def passing(evaluation: Evaluation, numbers: Numbers) -> Numbers:
        named = evaluation.nodes.by_name.get(name, ())
        if not named or not numbers:
            evaluation.spend(1)
            return []
        found = named[bisect_left(named, numbers[0]) : bisect_right(named, numbers[-1])]
        evaluation.spend(len(found) + 1)
        return found

    return passing


# The axes of one node, in document order. Of wide ranges, the node test leaves the attributes out.


def _attributes(nodes: DocumentNodes, node: int) -> range:
    last, end, kinds = node, nodes.ends[node], nodes.kinds
    while last < end and kinds[last + 1] == ATTRIBUTE:
        last += 1
    return range(node + 1, last + 1)


def _children(nodes: DocumentNodes, node: int) -> Numbers:
    found: list[int] = []
    child, end, ends = _attributes(nodes, node).stop, nodes.ends[node], nodes.ends
    while child <= end:
        found.append(child)
        child = ends[child] + 1
    return found


def _descendants(nodes: DocumentNodes, node: int) -> Numbers:
    return range(node + 1, nodes.ends[node] + 1)


def _descendants_and_self(nodes: DocumentNodes, node: int) -> Numbers:
    kinds = nodes.kinds
    return [node, *(one for one in _descendants(nodes, node) if kinds[one] != ATTRIBUTE)]


def _ancestors(nodes: DocumentNodes, node: int) -> Numbers:
    found: list[int] = []
    while (node := nodes.parents[node]) >= 0:
        found.append(node)
    return found[::-1]


def _parent(nodes: DocumentNodes, node: int) -> Numbers:
    return nodes.parents[node : node + 1] if node else ()


def _siblings(nodes: DocumentNodes, node: int) -> Numbers:
    """The children of the node's parent; none for an attribute."""
    return () if nodes.kinds[node] in (ATTRIBUTE, DOCUMENT) else _children(nodes, nodes.parents[node])


def _following_siblings(nodes: DocumentNodes, node: int) -> Numbers:
    siblings = _siblings(nodes, node)
    return siblings[bisect_right(siblings, node) :]


def _preceding_siblings(nodes: DocumentNodes, node: int) -> Numbers:
    siblings = _siblings(nodes, node)
    return siblings[: bisect_left(siblings, node)]


def _following(nodes: DocumentNodes, node: int) -> Numbers:
    """After an attribute comes what follows its element, as libxml2 has it."""
    node = nodes.parents[node] if nodes.kinds[node] == ATTRIBUTE else node
    return range(nodes.ends[node] + 1, len(nodes.kinds))


def _preceding(nodes: DocumentNodes, node: int) -> Numbers:
    node = nodes.parents[node] if nodes.kinds[node] == ATTRIBUTE else node
    kinds, ends = nodes.kinds, nodes.ends
    return [one for one in range(1, node) if ends[one] < node and kinds[one] != ATTRIBUTE]


_ALONG: dict[str, Callable[[DocumentNodes, int], Numbers]] = {
    "ancestor": _ancestors,
    "ancestor-or-self": lambda nodes, node: [*_ancestors(nodes, node), node],
    "attribute": _attributes,
    "child": _children,
    "descendant": _descendants,
    "descendant-or-self": _descendants_and_self,
    "following": _following,
    "following-sibling": _following_siblings,
    "parent": _parent,
    "preceding": _preceding,
    "preceding-sibling": _preceding_siblings,
    "self": lambda _nodes, node: (node,),
}

# Of many nodes, a few lead to everything that all of them lead to.


def _outermost(nodes: DocumentNodes, among: Numbers) -> Numbers:
    kept: list[int] = []
    end = -1
    for node in among:
        if node > end or nodes.kinds[node] == ATTRIBUTE:
            kept.append(node)
            end = max(end, nodes.ends[node])
    return kept


def _first_to_end(nodes: DocumentNodes, among: Numbers) -> Numbers:
    parents, kinds, ends = nodes.parents, nodes.kinds, nodes.ends
    return (min(among, key=lambda node: ends[parents[node] if kinds[node] == ATTRIBUTE else node]),)


def _one_of_each_parent(last: bool) -> Callable[[DocumentNodes, Numbers], Numbers]:
    def representatives(nodes: DocumentNodes, among: Numbers) -> Numbers:
        found: dict[int, int] = {}
        for node in among:
            if nodes.kinds[node] != ATTRIBUTE and (last or nodes.parents[node] not in found):
                found[nodes.parents[node]] = node
        return list(found.values())

    return representatives


_REPRESENTATIVES: dict[str, Callable[[DocumentNodes, Numbers], Numbers]] = {
    "descendant": _outermost,
    "descendant-or-self": _outermost,
    "following": _first_to_end,
    "preceding": lambda _nodes, among: (among[-1],),
    "following-sibling": _one_of_each_parent(last=False),
    "preceding-sibling": _one_of_each_parent(last=True),
}
