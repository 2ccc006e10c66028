"""XPath over a content tree: does a node meet a condition, which nodes does a path select?

A path is compiled from its last step backwards: each step becomes a function that asks whether the
node it is given leads to a node that the whole path selects. XPath's nodes are `Element`s, and plain
texts for attributes and text nodes. A `//` inside another one, and the first node of a path, are
remembered for each element, so that the cost of a filter is at most its length times the document's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeGuard, TypeVar

from earshot.events import Element
from earshot.filters.language.syntax import (
    Always,
    And,
    Axis,
    Compare,
    Condition,
    Contains,
    LocationPath,
    NodeKind,
    Not,
    Or,
    PathStep,
    PositionTest,
    StartsWith,
)
from earshot.filters.language.values import COMPARE, string_test

Node = Element | str
"An element, or an attribute's or a text node's text."
Place = tuple[int, int]
"Document order: the number of an element or text, and 0; the number of an attribute's element, and its own from 1."


class Memo:
    """What is remembered of one document while a condition is asked of it."""

    __slots__ = ("_numbers", "_root", "known")

    def __init__(self, root: Node) -> None:
        self._root = root
        self._numbers: dict[int, tuple[int, list[int]]] = {}
        self.known: dict[int, dict[int, Any]] = {}
        "What a `//` step found: step -> element's identity -> what was found."

    def place(self, node: Node) -> Place:
        """The place of the node that a path begins at."""
        return (self._number(node)[0], 0) if isinstance(node, Element) else (0, 0)

    def place_below(self, parent: Element, index: int) -> Place:
        """The place of a parent's child, or of its attribute (counted backwards from -1)."""
        number, children = self._number(parent)
        return (children[index], 0) if index >= 0 else (number, index + len(parent.attributes) + 1)

    def _number(self, element: Element) -> tuple[int, list[int]]:
        """An element's number, and its children's; the whole document is numbered when first asked."""
        if not self._numbers:
            count = 0
            stack: list[tuple[Node, list[int]]] = [(self._root, [])]
            while stack:
                node, siblings = stack.pop()
                siblings.append(count)
                if isinstance(node, Element):
                    children: list[int] = []
                    self._numbers[id(node)] = (count, children)
                    stack.extend((child, children) for child in reversed(node.children))
                count += 1
        return self._numbers[id(element)]


NodeTest = Callable[[Any, Memo], bool]

_step_numbers = count()
A = TypeVar("A")
B = TypeVar("B")


def node_test(condition: Condition, inner: bool = False) -> NodeTest:
    """A condition on a node, compiled; `inner` says it is asked of many nodes, found by a `//`."""
    match condition:
        case And(terms):
            return all_of([node_test(term, inner) for term in terms])
        case Or(terms):
            return any_of([node_test(term, inner) for term in terms])
        case Not(term):
            test = node_test(term, inner)
            return lambda node, memo: not test(node, memo)
        case LocationPath(steps=steps):
            return _leads(steps, None, inner)
        case Compare(LocationPath(steps=steps), op, literal):
            return _leads(steps, string_test(op, literal), inner)
        case Contains(LocationPath(steps=steps), text):
            first = _first_text(steps)
            return lambda node, memo: text in first(node, memo)
        case StartsWith(LocationPath(steps=steps), text):
            first = _first_text(steps)
            return lambda node, memo: first(node, memo).startswith(text)
        case Always():
            return _yes
        case _:
            raise TypeError(f"{type(condition).__name__} is not a condition on a node")


def _yes(_node: Node, _memo: Memo) -> bool:
    return True


def all_of(tests: Sequence[Callable[[A, B], bool]]) -> Callable[[A, B], bool]:
    """The conjunction of tests. (A loop, as in `any_of`: a generator for all() would double its time.)"""
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda one, other: first(one, other) and second(one, other)

    def every(one: A, other: B) -> bool:
        for test in tests:  # noqa: SIM110
            if not test(one, other):
                return False
        return True

    return every


def any_of(tests: Sequence[Callable[[A, B], bool]]) -> Callable[[A, B], bool]:
    """The disjunction of tests."""

    def some(one: A, other: B) -> bool:
        for test in tests:  # noqa: SIM110
            if test(one, other):
                return True
        return False

    return some


def string_value(node: Node) -> str:
    """XPath's string value of a node."""
    return node if isinstance(node, str) else node.text


def _leads(steps: tuple[PathStep, ...], last: Callable[[str], bool] | None, inner: bool) -> NodeTest:
    """Whether a node leads, by these steps, to a node whose string value passes the last test."""
    if not steps or steps[0].kind is NodeKind.SELF:
        return _yes if last is None else lambda node, _: last(node if isinstance(node, str) else node.text)
    step = steps[0]
    inner_from_here = inner or step.axis is Axis.DESCENDANT
    rest = _leads(steps[1:], last, inner_from_here)
    if any(isinstance(predicate, PositionTest) for predicate in step.predicates):
        return _along(step, _counted_passes(step, rest, inner_from_here), inner)
    tests = [node_test(predicate, inner_from_here) for predicate in step.predicates]
    if rest is not _yes:
        tests.append(rest)
    passes = all_of(tests) if tests else None
    if step.kind is not NodeKind.ELEMENT:
        return _along(step, _text_passes(step, passes), inner)
    if step.axis is Axis.DESCENDANT and not inner:
        return _descendant_passes(step.name, passes)
    return _along(step, _child_passes(step.name, passes), inner)


def candidate_test(steps: tuple[PathStep, ...]) -> NodeTest:
    """Whether an element that the first step's name test selects passes its predicates and leads on."""
    tests = [node_test(predicate, True) for predicate in steps[0].predicates]
    return all_of([*tests, _leads(steps[1:], None, True)])


def _counted_passes(step: PathStep, rest: NodeTest, inner: bool) -> NodeTest:
    """Whether one of the nodes that the step selects by their positions leads on."""
    if step.kind is not NodeKind.ELEMENT:
        pick = _picker(step, inner)
        return lambda node, memo: any(rest(picked, memo) for _, picked in pick(node, memo))
    name, any_name = step.name, step.name == "*"
    selections = [_selection(predicate, inner) for predicate in step.predicates]

    def counted_passes(node: Node, memo: Memo) -> bool:
        if isinstance(node, str) or not node.elements:
            return False
        found: list[Indexed] = [(0, child) for child in node.elements if any_name or child.name == name]
        for selection in selections:
            if not found:
                return False
            found = selection(found, memo)
        return any(rest(picked, memo) for _, picked in found)

    return counted_passes


def _along(step: PathStep, here: NodeTest, inner: bool) -> NodeTest:
    """A test of what lies directly below a node, applied along the step's axis."""
    if step.axis is Axis.CHILD:
        return here
    return _remembering_descendants(here) if inner else _descendants(here)


def _child_passes(name: str, passes: NodeTest | None) -> NodeTest:
    """Whether a child element of that name passes."""
    any_name = name == "*"

    def child_passes(node: Node, memo: Memo) -> bool:
        if isinstance(node, str):
            return False
        for child in node.elements:
            if (any_name or child.name == name) and (passes is None or passes(child, memo)):
                return True
        return False

    return child_passes


def _descendant_passes(name: str, passes: NodeTest | None) -> NodeTest:
    """The same for any element below the node, in one loop, because most paths begin with it."""
    any_name = name == "*"

    def descendant_passes(node: Node, memo: Memo) -> bool:
        if isinstance(node, str):
            return False
        stack = [node]
        while stack:
            for child in stack.pop().elements:
                if (any_name or child.name == name) and (passes is None or passes(child, memo)):
                    return True
                if child.elements:
                    stack.append(child)
        return False

    return descendant_passes


def _text_passes(step: PathStep, passes: NodeTest | None) -> NodeTest:
    """Whether an attribute or a text node of the node passes."""
    if step.kind is NodeKind.ATTRIBUTE and step.name != "*":
        return _attribute_passes(step.name, passes)
    texts = _texts(step)
    if passes is None:
        return lambda node, _: bool(texts(node))
    return lambda node, memo: any(passes(text, memo) for text in texts(node))


def _attribute_passes(name: str, passes: NodeTest | None) -> NodeTest:
    def attribute_passes(node: Node, memo: Memo) -> bool:
        if isinstance(node, str) or (value := node.attributes.get(name)) is None:
            return False
        return passes is None or passes(value, memo)

    return attribute_passes


def _texts(step: PathStep) -> Callable[[Node], Sequence[str]]:
    """The attributes or text nodes of a node that pass the step's node test, as texts."""
    name = step.name
    if step.kind is NodeKind.TEXT:
        return lambda node: () if isinstance(node, str) else [part for part in node.children if _is_text(part)]
    if name == "*":
        return lambda node: () if isinstance(node, str) else list(node.attributes.values())

    def attribute(node: Node) -> Sequence[str]:
        if isinstance(node, str) or (value := node.attributes.get(name)) is None:
            return ()
        return (value,)

    return attribute


def _is_text(part: Node) -> TypeGuard[str]:
    """An empty text is not a node: XML cannot represent it."""
    return isinstance(part, str) and part != ""


def _descendants(here: NodeTest) -> NodeTest:
    """Whether the test holds at the node or at any element below it."""

    def somewhere(node: Node, memo: Memo) -> bool:
        if isinstance(node, str):
            return False
        stack = [node]
        while stack:
            element = stack.pop()
            if here(element, memo):
                return True
            stack.extend(element.elements)
        return False

    return somewhere


def _remembering_descendants(here: NodeTest) -> NodeTest:
    """The same for many nodes of one document: each element is tested once."""
    step = next(_step_numbers)

    def somewhere(node: Node, memo: Memo) -> bool:
        if isinstance(node, str):
            return False
        known: dict[int, bool] = memo.known.setdefault(step, {})
        if (found := known.get(id(node))) is not None:
            return found
        unknown = [node]
        for element in unknown:  # grows during the loop
            unknown.extend(child for child in element.elements if id(child) not in known)
        for element in reversed(unknown):
            known[id(element)] = here(element, memo) or any(known[id(child)] for child in element.elements)
        return known[id(node)]

    return somewhere


# Selecting nodes, in document order.


def _first_text(steps: tuple[PathStep, ...]) -> Callable[[Any, Memo], str]:
    """XPath's string() of a path: the string value of its first node in document order, else ""."""
    step = steps[0]
    if step.kind is NodeKind.SELF:
        return lambda node, _: string_value(node)
    if len(steps) == 1 and step.axis is Axis.CHILD and not step.predicates and step.kind is not NodeKind.ELEMENT:
        texts = _texts(step)
        return lambda node, _: next(iter(texts(node)), "")
    find = _first_node(steps)

    def first(node: Node, memo: Memo) -> str:
        found = find(node, memo)
        return "" if found is None else string_value(found[1])

    return first


def _first_node(steps: tuple[PathStep, ...]) -> Callable[[Any, Memo], tuple[Place, Node] | None]:
    """The first node that the steps select from a node, with its place.

    What children lead to lies in the children's order, so the first child that leads anywhere has the first
    node. A `//` asks this of every element below, and each element remembers its first node.
    """
    pick = _picker(steps[0], inner=True)
    rest = _first_node(steps[1:]) if len(steps) > 1 else None

    def below(node: Node, memo: Memo) -> tuple[Place, Node] | None:
        for index, found in pick(node, memo):
            if rest is None:
                assert isinstance(node, Element)
                return memo.place_below(node, index), found
            if (selected := rest(found, memo)) is not None:
                return selected
        return None

    if steps[0].axis is Axis.CHILD:
        return below
    number = next(_step_numbers)

    def anywhere_below(node: Node, memo: Memo) -> tuple[Place, Node] | None:
        if isinstance(node, str):
            return None
        known: dict[int, tuple[Place, Node] | None] = memo.known.setdefault(number, {})
        if id(node) in known:
            return known[id(node)]
        unknown = [node]
        for element in unknown:  # grows during the loop
            unknown.extend(child for child in element.elements if id(child) not in known)
        for element in reversed(unknown):
            farther = next((found for child in element.elements if (found := known[id(child)]) is not None), None)
            here = below(element, memo)
            known[id(element)] = min(here, farther, key=_place_of) if here and farther else here or farther
        return known[id(node)]

    return anywhere_below


def _place_of(found: tuple[Place, Node]) -> Place:
    return found[0]


Indexed = tuple[int, Node]
"A node and its index among its parent's children; attributes are counted backwards from -1."


def selector(steps: tuple[PathStep, ...]) -> Callable[[Any, Memo], list[Node]]:
    """All nodes the steps select from a node, in document order."""
    moves = [(step.axis, _picker(step, inner=True)) for step in steps if step.kind is not NodeKind.SELF]

    def select(node: Node, memo: Memo) -> list[Node]:
        nodes = {memo.place(node): node}
        for axis, pick in moves:
            if axis is Axis.DESCENDANT:
                nodes = _with_descendants(nodes, memo)
            nodes = {
                memo.place_below(above, index): found
                for above in nodes.values()
                if isinstance(above, Element)
                for index, found in pick(above, memo)
            }
        return [nodes[place] for place in sorted(nodes)]

    return select


def _with_descendants(nodes: dict[Place, Node], memo: Memo) -> dict[Place, Node]:
    """The nodes and all elements below them, each once."""
    found: dict[Place, Node] = {}
    stack = list(nodes.items())
    while stack:
        place, node = stack.pop()
        if place not in found:
            found[place] = node
            if isinstance(node, Element):
                stack += [(memo.place(child), child) for child in node.elements]
    return found


def _picker(step: PathStep, inner: bool) -> Callable[[Any, Memo], list[Indexed]]:
    """What the step's node test and predicates select directly below a node, in document order."""
    selections = [_selection(predicate, inner) for predicate in step.predicates]

    def pick(node: Node, memo: Memo) -> list[Indexed]:
        found = [] if isinstance(node, str) else _candidates(node, step)
        for selection in selections:
            found = selection(found, memo)
        return found

    return pick


def _candidates(node: Element, step: PathStep) -> list[Indexed]:
    if step.kind is NodeKind.ATTRIBUTE:
        named = enumerate(node.attributes.items(), -len(node.attributes))
        return [(index, value) for index, (name, value) in named if step.name in ("*", name)]
    if step.kind is NodeKind.TEXT:
        return [(index, part) for index, part in enumerate(node.children) if _is_text(part)]
    return [
        (index, child)
        for index, child in enumerate(node.children)
        if isinstance(child, Element) and step.name in ("*", child.name)
    ]


def _selection(predicate: Condition, inner: bool) -> Callable[[list[Indexed], Memo], list[Indexed]]:
    """A predicate as a function that selects among nodes."""
    if isinstance(predicate, PositionTest):
        compare, wanted = COMPARE[predicate.op], predicate.number
        return lambda nodes, _: [node for position, node in enumerate(nodes, 1) if compare(position, wanted)]
    test = node_test(predicate, inner)
    return lambda nodes, memo: [indexed for indexed in nodes if test(indexed[1], memo)]
