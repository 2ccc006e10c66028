"""XPath over a content tree: does a node meet a condition, which nodes does a path select?

A path is compiled from its last step backwards: each step becomes a function that asks whether the
node it is given leads to a node that the whole path selects. XPath's nodes are `Element`s, and plain
texts for attributes and text nodes. A `//` inside another one remembers what it found for each
element, so that the cost of a filter is at most its length times the document's.
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
Memo = dict[int, dict[int, bool]]
"What the inner `//` steps found in one document: step -> element's identity -> whether found."
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
        pick = _picker(step, inner_from_here)
        return _along(step, lambda node, memo: any(rest(picked, memo) for _, picked in pick(node, memo)), inner)
    tests = [node_test(predicate, inner_from_here) for predicate in step.predicates]
    if rest is not _yes:
        tests.append(rest)
    passes = all_of(tests) if tests else None
    if step.kind is not NodeKind.ELEMENT:
        return _along(step, _text_passes(step, passes), inner)
    if step.axis is Axis.DESCENDANT and not inner:
        return _descendant_passes(step.name, passes)
    return _along(step, _child_passes(step.name, passes), inner)


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
        known = memo.setdefault(step, {})
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
    select = selector(steps)

    def first(node: Node, memo: Memo) -> str:
        selected = select(node, memo)
        return string_value(selected[0]) if selected else ""

    return first


Placed = tuple[int, Node]
"A node and its place among its parent's children; attributes come first."
NodesByPlace = dict[tuple[int, ...], Node]
"Nodes by their places, one number for each level, so that sorting gives document order."


def selector(steps: tuple[PathStep, ...]) -> Callable[[Any, Memo], list[Node]]:
    """All nodes the steps select from a node, in document order."""
    moves = [(step.axis, _picker(step, inner=True)) for step in steps if step.kind is not NodeKind.SELF]

    def select(node: Node, memo: Memo) -> list[Node]:
        nodes: NodesByPlace = {(): node}
        for axis, pick in moves:
            if axis is Axis.DESCENDANT:
                nodes = _with_descendants(nodes)
            nodes = {(*above, place): found for above, node in nodes.items() for place, found in pick(node, memo)}
        return [nodes[place] for place in sorted(nodes)]

    return select


def _with_descendants(nodes: NodesByPlace) -> NodesByPlace:
    """The nodes and all elements below them, each once."""
    found: NodesByPlace = {}
    stack = list(nodes.items())
    while stack:
        place, node = stack.pop()
        if place not in found:
            found[place] = node
            if isinstance(node, Element):
                stack += [((*place, at), child) for at, child in enumerate(node.children) if isinstance(child, Element)]
    return found


def _picker(step: PathStep, inner: bool) -> Callable[[Any, Memo], list[Placed]]:
    """What the step's node test and predicates select directly below a node, in document order."""
    selections = [_selection(predicate, inner) for predicate in step.predicates]

    def pick(node: Node, memo: Memo) -> list[Placed]:
        found = [] if isinstance(node, str) else _candidates(node, step)
        for selection in selections:
            found = selection(found, memo)
        return found

    return pick


def _candidates(node: Element, step: PathStep) -> list[Placed]:
    if step.kind is NodeKind.ATTRIBUTE:
        named = enumerate(node.attributes.items(), -len(node.attributes))
        return [(place, value) for place, (name, value) in named if step.name in ("*", name)]
    if step.kind is NodeKind.TEXT:
        return [(place, part) for place, part in enumerate(node.children) if _is_text(part)]
    return [
        (place, child)
        for place, child in enumerate(node.children)
        if isinstance(child, Element) and step.name in ("*", child.name)
    ]


def _selection(predicate: Condition, inner: bool) -> Callable[[list[Placed], Memo], list[Placed]]:
    """A predicate as a function that selects among nodes."""
    if isinstance(predicate, PositionTest):
        compare, wanted = COMPARE[predicate.op], predicate.number
        return lambda nodes, _: [node for position, node in enumerate(nodes, 1) if compare(position, wanted)]
    test = node_test(predicate, inner)
    return lambda nodes, memo: [placed for placed in nodes if test(placed[1], memo)]
