"""Does an event meet a filter, seen from a consumer?

A filter is compiled once, into functions that call each other; `explain` (in `explaining.py`) says
why. A path is followed from its last step backwards: each step is a function that asks whether the
node it is given leads to a node the whole path selects. XPath's nodes are `Element`s, and plain
texts for attributes and text nodes. A `//` inside another one remembers what it found of each
element, so that no document makes a filter cost more than its length times the document's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, TypeGuard

from earshot.events import Element, Event, Value, value_text
from earshot.filters.ast import (
    Always,
    And,
    Approaching,
    At,
    Axis,
    Compare,
    Comparison,
    Condition,
    Contains,
    Exists,
    Field,
    Inside,
    Literal,
    Not,
    Or,
    Path,
    Receding,
    StartsWith,
    Step,
    Test,
    Within,
)
from earshot.filters.values import aware, boolean_of, moment, number, number_of
from earshot.geometry import STILL, Position, Velocity, closing_speed_m_s

if TYPE_CHECKING:
    from earshot.filters.filter import Filter


@dataclass(frozen=True, slots=True)
class Viewer:
    """A consumer: where it is and how it moves."""

    position: Position
    velocity: Velocity = STILL


Predicate = Callable[[Event, Viewer | None], bool]
Node = Element | str
"An element, or an attribute's or a text node's text."
Memo = dict[int, dict[int, bool]]
"What the inner `//` steps found in one document: step -> element's identity -> found."
NodeTest = Callable[[Any, Memo], bool]

_step_numbers = count()

COMPARE: dict[Comparison, Callable[[Any, Any], bool]] = {
    Comparison.EQ: operator.eq,
    Comparison.NE: operator.ne,
    Comparison.LT: operator.lt,
    Comparison.LE: operator.le,
    Comparison.GT: operator.gt,
    Comparison.GE: operator.ge,
}


def matches(filter: Filter, event: Event, viewer: Viewer | None = None) -> bool:
    """Whether the event meets the filter, seen from the viewer."""
    if filter.type is not None and event.type != filter.type:
        return False
    return filter.predicate(event, viewer)


def predicate(condition: Condition) -> Predicate:
    """A condition on events, compiled."""
    match condition:
        case And(terms):
            return _all([predicate(term) for term in terms])
        case Or(terms):
            return _any([predicate(term) for term in terms])
        case Not(term):
            inner = predicate(term)
            return lambda event, viewer: not inner(event, viewer)
        case Compare(Field(name), op, literal):
            return _any_value(name, value_test(op, literal))
        case Contains(Field(name), literal):
            return _any_value(name, lambda value: literal in text_of(value))
        case StartsWith(Field(name), literal):
            return _any_value(name, lambda value: text_of(value).startswith(literal))
        case Exists(Field(name)):
            return _any_value(name, lambda value: value is not False)
        case Within(distance_m):
            return lambda event, viewer: (
                viewer is not None
                and event.position is not None
                and viewer.position.distance_to(event.position) <= distance_m
            )
        case Approaching():
            return lambda event, viewer: closing(event, viewer) > 0.0
        case Receding():
            return lambda event, viewer: closing(event, viewer) < 0.0
        case Inside(area):
            return lambda event, viewer: event.position is not None and area.contains(event.position)
        case Always():
            return lambda event, viewer: True
        case Path(absolute=True, steps=(Step(Axis.CHILD, Test.ELEMENT, name, ()),)) if name != "*":
            return lambda event, viewer: event.type == name
        case _:
            test = node_test(condition)
            return lambda event, viewer: test(event.document, {})


def _all(tests: list[Predicate]) -> Predicate:
    def every(event: Event, viewer: Viewer | None) -> bool:
        for test in tests:
            if not test(event, viewer):
                return False
        return True

    return every


def _any(tests: list[Predicate]) -> Predicate:
    def some(event: Event, viewer: Viewer | None) -> bool:
        for test in tests:
            if test(event, viewer):
                return True
        return False

    return some


def _any_value(name: str, test: Callable[[Value], bool]) -> Predicate:
    def some(event: Event, viewer: Viewer | None) -> bool:
        for value in event.fields.get(name, ()):
            if test(value):
                return True
        return False

    return some


def closing(event: Event, viewer: Viewer | None) -> float:
    """How fast the consumer and the event's source come closer, in metres a second; 0 where unknown."""
    if viewer is None or event.position is None:
        return 0.0
    return closing_speed_m_s(viewer.position, viewer.velocity, event.position, event.velocity or STILL)


def text_of(value: Value) -> str:
    """A value as text."""
    return value if isinstance(value, str) else value_text(value)


def value_test(op: Comparison, literal: Literal) -> Callable[[Value], bool]:
    """A field's comparison, as `terms.py` defines it."""
    compare = COMPARE[op]
    if isinstance(literal, bool):
        return lambda value: compare(boolean_of(value), literal)
    if isinstance(literal, float):
        return lambda value: compare(value if type(value) is float else number_of(value), literal)
    compare_plain = _plain_text_test(op, literal)
    time = moment(literal)
    if time is None:
        return compare_plain

    def compare_times(value: Value) -> bool:
        return compare(aware(value), time) if isinstance(value, datetime) else compare_plain(value)

    return compare_times


def _plain_text_test(op: Comparison, literal: str) -> Callable[[Value], bool]:
    compare = COMPARE[op]
    if op in (Comparison.EQ, Comparison.NE):
        return lambda value: compare(text_of(value), literal)
    limit = number(literal)
    return lambda value: compare(number_of(value), limit)


# XPath: conditions on a node.


def node_test(condition: Condition, inner: bool = False) -> NodeTest:
    """A condition on a node, compiled; `inner` says it is asked of many nodes that `//` found."""
    match condition:
        case And(terms):
            tests = [node_test(term, inner) for term in terms]
            return lambda node, memo: all(test(node, memo) for test in tests)
        case Or(terms):
            tests = [node_test(term, inner) for term in terms]
            return lambda node, memo: any(test(node, memo) for test in tests)
        case Not(term):
            test = node_test(term, inner)
            return lambda node, memo: not test(node, memo)
        case Path(steps=steps):
            return _leads(steps, None, inner)
        case Compare(Path(steps=steps), op, literal):
            return _leads(steps, _string_test(op, literal), inner)
        case Contains(Path(steps=steps), literal):
            first = _first_text(steps)
            return lambda node, memo: literal in first(node, memo)
        case StartsWith(Path(steps=steps), literal):
            first = _first_text(steps)
            return lambda node, memo: first(node, memo).startswith(literal)
        case Always():
            return lambda node, memo: True
        case _:
            raise TypeError(f"{type(condition).__name__} is no condition on a node")


def _string_test(op: Comparison, literal: Literal) -> Callable[[str], bool]:
    """XPath's comparison of one node's string value with a literal."""
    compare = COMPARE[op]
    if isinstance(literal, str):
        if op in (Comparison.EQ, Comparison.NE):
            return lambda text: compare(text, literal)
        literal = number(literal)
    return lambda text: compare(number(text), literal)


def string_value(node: Node) -> str:
    """XPath's string value of a node."""
    return node if isinstance(node, str) else node.text


def _leads(steps: tuple[Step, ...], last: Callable[[str], bool] | None, inner: bool) -> NodeTest:
    """Whether a node leads, by these steps, to a node whose string value passes the last test."""
    if not steps or steps[0].test is Test.SELF:
        if last is None:
            return lambda node, memo: True
        return lambda node, memo: last(node if isinstance(node, str) else node.text)
    step = steps[0]
    below_descendants = inner or step.axis is Axis.DESCENDANT
    rest = _leads(steps[1:], last, below_descendants) if len(steps) > 1 or last is not None else None
    here = _leads_here(step, rest, below_descendants)
    if step.axis is Axis.CHILD:
        return here
    return _remembering_descendants(here) if inner else _descendants(here)


def _leads_here(step: Step, rest: NodeTest | None, inner: bool) -> NodeTest:
    """Whether a child, attribute or text of this very node passes the step and the rest of the path."""
    name = step.name
    if step.test is Test.ELEMENT and not any(isinstance(predicate, At) for predicate in step.predicates):
        tests = [node_test(predicate, inner) for predicate in step.predicates]
        if rest is not None:
            tests.append(rest)
        any_name = name == "*"

        def child_leads(node: Node, memo: Memo) -> bool:
            if isinstance(node, str):
                return False
            for child in node.elements:
                if any_name or child.name == name:
                    for test in tests:
                        if not test(child, memo):
                            break
                    else:
                        return True
            return False

        return child_leads
    if step.test is not Test.ELEMENT and not step.predicates:
        texts = _texts(step)
        if rest is None:
            return lambda node, memo: bool(texts(node))
        return lambda node, memo: any(rest(text, memo) for text in texts(node))
    pick = _picker(step, inner)
    if rest is None:
        return lambda node, memo: bool(pick(node, memo))
    return lambda node, memo: any(rest(picked, memo) for _, picked in pick(node, memo))


def _texts(step: Step) -> Callable[[Node], Sequence[str]]:
    """The attributes or text nodes of a node that pass the step's node test, as texts."""
    name = step.name
    if step.test is Test.TEXT:
        return lambda node: () if isinstance(node, str) else [part for part in node.children if _is_text(part)]
    if name == "*":
        return lambda node: () if isinstance(node, str) else list(node.attributes.values())

    def attribute(node: Node) -> Sequence[str]:
        if isinstance(node, str) or (value := node.attributes.get(name)) is None:
            return ()
        return (value,)

    return attribute


def _is_text(part: Node) -> TypeGuard[str]:
    """An empty text is no node: XML cannot tell it from nothing."""
    return isinstance(part, str) and part != ""


Placed = tuple[int, Node]
"A node and its place among its parent's children; attributes stand before them all."


def _picker(step: Step, inner: bool) -> Callable[[Any, Memo], list[Placed]]:
    """What the step's node test and predicates select directly below a node, in document order."""
    sieves = [_sieve(predicate, inner) for predicate in step.predicates]

    def pick(node: Node, memo: Memo) -> list[Placed]:
        found = [] if isinstance(node, str) else _candidates(node, step)
        for sieve in sieves:
            found = sieve(found, memo)
        return found

    return pick


def _candidates(node: Element, step: Step) -> list[Placed]:
    if step.test is Test.ATTRIBUTE:
        before = -len(node.attributes)
        named = enumerate(node.attributes.items(), before)
        return [(place, value) for place, (name, value) in named if step.name in ("*", name)]
    if step.test is Test.TEXT:
        return [(place, part) for place, part in enumerate(node.children) if _is_text(part)]
    return [
        (place, child)
        for place, child in enumerate(node.children)
        if isinstance(child, Element) and step.name in ("*", child.name)
    ]


def _sieve(predicate: Condition, inner: bool) -> Callable[[list[Placed], Memo], list[Placed]]:
    if isinstance(predicate, At):
        compare, wanted = COMPARE[predicate.op], predicate.number
        return lambda nodes, memo: [node for position, node in enumerate(nodes, 1) if compare(position, wanted)]
    test = node_test(predicate, inner)
    return lambda nodes, memo: [placed for placed in nodes if test(placed[1], memo)]


def _descendants(here: NodeTest) -> NodeTest:
    """Whether the node or any element below it leads on."""

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
    """The same, asked of many nodes of one document: each element is looked at once."""
    step = next(_step_numbers)

    def somewhere(node: Node, memo: Memo) -> bool:
        if isinstance(node, str):
            return False
        known = memo.setdefault(step, {})
        if (found := known.get(id(node))) is not None:
            return found
        unknown = [node]
        for element in unknown:
            unknown.extend(child for child in element.elements if id(child) not in known)
        for element in reversed(unknown):
            known[id(element)] = here(element, memo) or any(known[id(child)] for child in element.elements)
        return known[id(node)]

    return somewhere


def _first_text(steps: tuple[Step, ...]) -> Callable[[Any, Memo], str]:
    """XPath's string() of a path: the string value of its first node in document order, else ""."""
    step = steps[0]
    if step.test is Test.SELF:
        return lambda node, memo: string_value(node)
    if len(steps) == 1 and step.axis is Axis.CHILD and not step.predicates and step.test is not Test.ELEMENT:
        texts = _texts(step)
        return lambda node, memo: next(iter(texts(node)), "")
    select = selector(steps)

    def first(node: Node, memo: Memo) -> str:
        selected = select(node, memo)
        return string_value(selected[0]) if selected else ""

    return first


Places = dict[tuple[int, ...], Node]
"Nodes by the way down to them from the context, so that sorting gives document order."


def selector(steps: tuple[Step, ...]) -> Callable[[Any, Memo], list[Node]]:
    """All nodes the steps select from a node, in document order."""
    moves = [(step.axis, _picker(step, inner=True)) for step in steps]

    def select(node: Node, memo: Memo) -> list[Node]:
        places: Places = {(): node}
        for axis, pick in moves:
            sources = _with_descendants(places) if axis is Axis.DESCENDANT else places
            places = {(*way, place): picked for way, source in sources.items() for place, picked in pick(source, memo)}
        return [places[way] for way in sorted(places)]

    return select


def _with_descendants(places: Places) -> Places:
    """The nodes and all elements below them, each once."""
    found: Places = {}
    for way in sorted(places):
        if way in found:
            continue
        stack = [(way, places[way])]
        while stack:
            way, node = stack.pop()
            found[way] = node
            if isinstance(node, Element):
                stack.extend(
                    ((*way, place), child) for place, child in enumerate(node.children) if isinstance(child, Element)
                )
    return found


def explain(filter: Filter, event: Event, viewer: Viewer | None = None) -> str:
    """Why the event meets the filter, or which term it fails."""
    from earshot.filters.explaining import explanation

    return explanation(filter, event, viewer)
