"""Twig look-ups in a data-summary tree (CoDD, section 3.1): which documents meet a condition?

Tracing a condition over the vertices tells two sets apart: the documents that certainly meet it, and
those that may. They differ only where elements repeat within a document (one `b` has the `c`, another
the `d`), where a text was not kept, and where a filter asks for the order of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from earshot.filters.language.paths import node_test, string_test
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
from earshot.filters.summaries.summary_tree import NOTHING, Bounds, Places, SummaryTree, TextBitmaps, Vertex, union


def look_up(tree: SummaryTree, condition: Condition) -> Bounds:
    """The documents of the tree that meet a condition on theirs."""
    return _Tracing(tree.places).look(condition)(tree.document)


Look = Callable[[Vertex], Bounds]
"For which documents does some element at this vertex meet a condition?"


class _Tracing:
    """Conditions become functions over the vertices of one tree."""

    def __init__(self, places: Places) -> None:
        self.places = places

    def look(self, condition: Condition) -> Look:
        match condition:
            case And(terms):
                return _every([self.look(term) for term in terms])
            case Or(terms):
                looks = [self.look(term) for term in terms]
                return lambda vertex: union(look(vertex) for look in looks)
            case Not(term):
                return _not(self.look(term))
            case LocationPath(steps=steps):
                return self.leads(steps, None)
            case Compare(LocationPath(steps=steps), op, literal):
                return self.leads(steps, string_test(op, literal))
            # Of the first node alone, and the tree has no order.
            case Contains(LocationPath(steps=steps), part):
                return _unsure(self.leads(steps, lambda text: part in text))
            case StartsWith(LocationPath(steps=steps), part):
                return _unsure(self.leads(steps, lambda text: text.startswith(part)))
            case Always():
                return _here
            case _:
                raise TypeError(f"{type(condition).__name__} is no condition on a node")

    def leads(self, steps: tuple[PathStep, ...], last: TextTest | None) -> Look:
        """Some element leads, by these steps, to a node whose string value passes the last test."""
        if not steps or steps[0].kind is NodeKind.SELF:
            return _here if last is None else lambda vertex: vertex.texts.passing(last)
        step, rest = steps[0], steps[1:]
        found = self.elements(step, rest, last) if step.kind is NodeKind.ELEMENT else self.texts(step, rest, last)
        return _unsure(found) if any(isinstance(predicate, PositionTest) for predicate in step.predicates) else found

    def elements(self, step: PathStep, rest: tuple[PathStep, ...], last: TextTest | None) -> Look:
        looks = [self.look(predicate) for predicate in step.predicates if not isinstance(predicate, PositionTest)]
        onward = self.leads(rest, last)
        if onward is not _here:
            looks.append(onward)
        passes, name = _every(looks), step.name
        if step.axis is Axis.DESCENDANT:
            return _Descendants(self.places, name, passes, and_self=False)
        if name == "*":
            return lambda vertex: union(passes(child) for child in vertex.children.values())
        return lambda vertex: passes(vertex.children[name]) if name in vertex.children else NOTHING

    def texts(self, step: PathStep, rest: tuple[PathStep, ...], last: TextTest | None) -> Look:
        """The same for attributes and text nodes, about which everything is known here."""
        if rest and rest[0].kind is not NodeKind.SELF:
            return lambda _vertex: NOTHING  # nothing stands below a text
        tests = [node_test(predicate) for predicate in step.predicates if not isinstance(predicate, PositionTest)]

        def passes(text: str) -> bool:
            return all(test(text, {}) for test in tests) and (last is None or last(text))

        def found(vertex: Vertex) -> Bounds:
            if step.kind is NodeKind.TEXT:
                return vertex.texts.passing(lambda text: text != "" and passes(text))
            return union(texts.passing(passes) for texts in _named(vertex, step.name))

        return _Descendants(self.places, "*", found, and_self=True) if step.axis is Axis.DESCENDANT else found


TextTest = Callable[[str], bool]


def _here(vertex: Vertex) -> Bounds:
    return Bounds(vertex.documents, vertex.documents)


def _every(looks: Sequence[Look]) -> Look:
    """One and the same element must meet them all: certain only where there is but one."""
    if len(looks) < 2:
        return looks[0] if looks else _here

    def every(vertex: Vertex) -> Bounds:
        certain, possible = ~vertex.repeated, vertex.documents
        for look in looks:
            found = look(vertex)
            certain &= found.certain
            possible &= found.possible
            if not possible:
                return NOTHING
        return Bounds(certain, possible)

    return every


def _not(look: Look) -> Look:
    """Some element does not meet it: certain where none may, possible unless the only one does."""

    def some_other(vertex: Vertex) -> Bounds:
        found = look(vertex)
        return Bounds(vertex.documents & ~found.possible, vertex.documents & ~(found.certain & ~vertex.repeated))

    return some_other


def _unsure(look: Look) -> Look:
    """What is found is a superset, and no more is known."""
    return lambda vertex: Bounds(0, look(vertex).possible)


def _named(vertex: Vertex, name: str) -> Iterator[TextBitmaps]:
    if name == "*":
        yield from vertex.attributes.values()
    elif name in vertex.attributes:
        yield vertex.attributes[name]


class _Descendants:
    """What is found at the vertices of a name below one, or at that one itself, too.

    Each is asked once. A few vertices are gathered for themselves; where many are asked about the ones
    below them, each answer is put together from those of its children, so that no filter costs more than
    its length times the tree's size.
    """

    def __init__(self, places: Places, name: str, look: Look, and_self: bool) -> None:
        self.places = places
        self.name = name
        self.look = look
        self.and_self = and_self
        self.left = len(places.all)
        "How many vertices may still be gathered one by one."
        self.found: dict[int, Bounds] = {}
        "By number: what is found at a vertex."
        self.known: dict[int, Bounds] = {}
        "By number: what is found at all vertices below one, or itself."

    def __call__(self, vertex: Vertex) -> Bounds:
        known = self.known.get(vertex.start)
        if known is None:
            below = self.places.below(vertex, self.name)
            if len(below) < self.left:
                self.left -= len(below)
                known = union(map(self._at, below))
                if self.and_self:
                    known = union((known, self._at(vertex)))
                self.known[vertex.start] = known
            else:
                known = self._put_together(vertex)
        return known

    def _at(self, vertex: Vertex) -> Bounds:
        found = self.found.get(vertex.start)
        if found is None:
            found = self.found[vertex.start] = self.look(vertex)
        return found

    def _put_together(self, vertex: Vertex) -> Bounds:
        for each in reversed(self.places.all[vertex.start : vertex.end]):
            if each.start not in self.known:
                parts = [self.known[child.start] for child in each.children.values()]
                if self.and_self:
                    parts.append(self._at(each))
                else:
                    parts.extend(self._at(child) for name, child in each.children.items() if self.name in ("*", name))
                self.known[each.start] = union(parts)
        return self.known[vertex.start]
