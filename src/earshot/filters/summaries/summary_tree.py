"""The data-summary tree of CoDD (section 3.1), and look-ups in it: which documents meet a condition?

A vertex stands for all elements that one sequence of names leads to from the root; bit i of its bitmaps is
document i. A look-up traces a condition over the vertices and finds two sets: the documents that certainly meet it,
and those that may. They differ only where elements repeat within a document (one `b` has the `c`, another
the `d`), where a text was not kept, and where a filter asks for the order of nodes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from earshot.events import Element, Event
from earshot.filters.language.paths import Memo, node_test
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
from earshot.filters.language.values import string_test

LONGEST_TEXT = 64
"Longer texts are not kept: filters do not compare paragraphs."


class Bounds(NamedTuple):
    """The documents that certainly meet a condition, and all that may, including these."""

    certain: int
    possible: int


NOTHING = Bounds(0, 0)


def union(found: Iterable[Bounds]) -> Bounds:
    """The documents of any of them."""
    certain = possible = 0
    for one in found:
        certain |= one[0]
        possible |= one[1]
    return Bounds(certain, possible)


class TextBitmaps:
    """The texts found in one place, each with the documents that have it there."""

    __slots__ = ("by_text", "documents", "unread")

    def __init__(self) -> None:
        self.by_text: dict[Any, int] = {}
        self.documents = 0
        self.unread = 0
        "Documents with a text here that was not kept."

    def note(self, text: Any, bit: int, kept: bool) -> int:
        """Enter a document's text; how many entries that adds."""
        self.documents |= bit
        if not kept:
            self.unread |= bit
            return 0
        known = self.by_text.get(text)
        self.by_text[text] = bit if known is None else known | bit
        return known is None

    def passing(self, test: Callable[[Any], bool]) -> Bounds:
        """The documents with a text here that passes."""
        certain = 0
        for text, documents in self.by_text.items():
            if test(text):
                certain |= documents
        return Bounds(certain, certain | self.unread)

    def retain(self, mask: int, shift: int) -> int:
        """Keep only the documents under the mask, renumbered; how many entries are left."""
        left = {text: (found & mask) >> shift for text, found in self.by_text.items() if found & mask}
        self.by_text, self.documents = left, (self.documents & mask) >> shift
        self.unread = (self.unread & mask) >> shift
        return len(left)


class Vertex:
    """The elements of one place in the documents."""

    __slots__ = ("attributes", "children", "documents", "end", "repeated", "start", "texts")

    def __init__(self) -> None:
        self.start = self.end = 0
        "Its own number, and the one after the last vertex below it, as `Places` counts them."
        self.documents = 0
        self.repeated = 0
        "Documents with more than one element here."
        self.texts = TextBitmaps()
        "The texts of elements that contain no elements; those that do count as unread."
        self.children: dict[str, Vertex] = {}
        self.attributes: dict[str, TextBitmaps] = {}


class Places:
    """All vertices in depth-first order, so that those below one are a range; also by name."""

    def __init__(self, document: Vertex) -> None:
        self.all: list[Vertex] = []
        self.by_name: dict[str, list[Vertex]] = {}
        stack = [("", document)]
        while stack:
            name, vertex = stack.pop()
            vertex.start = len(self.all)
            self.all.append(vertex)
            self.by_name.setdefault(name, []).append(vertex)
            stack.extend(vertex.children.items())
        for vertex in reversed(self.all):
            vertex.end = max((child.end for child in vertex.children.values()), default=vertex.start + 1)

    def below(self, vertex: Vertex, name: str) -> list[Vertex]:
        """The vertices of that name ("*": of any) below another."""
        if name == "*":
            return self.all[vertex.start + 1 : vertex.end]
        named = self.by_name.get(name, [])
        first = bisect_right(named, vertex.start, key=_start)
        return named[first : bisect_left(named, vertex.end, first, key=_start)]


_start = attrgetter("start")


class SummaryTree:
    """Vertices in a tree of names; `size` counts them and the texts they keep."""

    def __init__(self) -> None:
        self.document = Vertex()
        "The vertex above all roots."
        self.document.documents = self.document.texts.unread = -1
        self.size = 0
        self.entered = 0
        "Documents before this number have entered."
        self._places: Places | None = None

    def add(self, event: Event, bit: int) -> None:
        """Enter one document, in a single pass."""
        grown = 0
        self._places = None
        stack = [(self.document, event.root)]
        while stack:
            above, element = stack.pop()
            vertex = above.children.get(element.name)
            if vertex is None:
                vertex = above.children[element.name] = Vertex()
                grown += 1
            if vertex.documents & bit:
                vertex.repeated |= bit
            else:
                vertex.documents |= bit
            for name, text in element.attributes.items():
                texts = vertex.attributes.get(name)
                if texts is None:
                    texts = vertex.attributes[name] = TextBitmaps()
                    grown += 1
                grown += texts.note(text, bit, len(text) <= LONGEST_TEXT)
            match element.children:
                case ():
                    grown += vertex.texts.note("", bit, True)
                case (str() as text,):
                    grown += vertex.texts.note(text, bit, len(text) <= LONGEST_TEXT)
                case children:
                    vertex.texts.note("", bit, False)
                    stack.extend((vertex, child) for child in children if isinstance(child, Element))
        self.size += grown

    @property
    def places(self) -> Places:
        """Its vertices in order, as they are now."""
        if self._places is None:
            self._places = Places(self.document)
        return self._places

    def retain(self, mask: int, shift: int) -> None:
        """Keep only the documents under the mask, renumbered, and only what they have."""
        self.size = 0
        self._places = None
        stack = [self.document]
        while stack:
            above = stack.pop()
            above.children = {name: one for name, one in above.children.items() if one.documents & mask}
            for vertex in above.children.values():
                vertex.documents = (vertex.documents & mask) >> shift
                vertex.repeated = (vertex.repeated & mask) >> shift
                vertex.attributes = {name: one for name, one in vertex.attributes.items() if one.documents & mask}
                entries = sum(one.retain(mask, shift) for one in (vertex.texts, *vertex.attributes.values()))
                self.size += 1 + len(vertex.attributes) + entries
                stack.append(vertex)


# Look-ups.


def look_up(tree: SummaryTree, condition: Condition) -> Bounds:
    """The documents of the tree that meet a condition on theirs."""
    return _Tracing(tree.places).look(condition)(tree.document)


TextTest = Callable[[str], bool]
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
            # These concern the first node only, and the tree has no order.
            case Contains(LocationPath(steps=steps), part):
                return _unsure(self.leads(steps, lambda text: part in text))
            case StartsWith(LocationPath(steps=steps), part):
                return _unsure(self.leads(steps, lambda text: text.startswith(part)))
            case Always():
                return _here
            case _:
                raise TypeError(f"{type(condition).__name__} is not a condition on a node")

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
            return lambda _vertex: NOTHING  # a text has nothing below it
        tests = [node_test(predicate) for predicate in step.predicates if not isinstance(predicate, PositionTest)]

        def passes(text: str) -> bool:
            return all(test(text, Memo(text)) for test in tests) and (last is None or last(text))

        def found(vertex: Vertex) -> Bounds:
            if step.kind is NodeKind.TEXT:
                return vertex.texts.passing(lambda text: text != "" and passes(text))
            return union(texts.passing(passes) for texts in _named(vertex, step.name))

        return _Descendants(self.places, "*", found, and_self=True) if step.axis is Axis.DESCENDANT else found


def _here(vertex: Vertex) -> Bounds:
    return Bounds(vertex.documents, vertex.documents)


def _every(looks: Sequence[Look]) -> Look:
    """The same element must meet all of them: certain only where a document has one element here."""
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
    """Some element does not meet it: certain where no element may, possible unless the only one does."""

    def some_other(vertex: Vertex) -> Bounds:
        found = look(vertex)
        return Bounds(vertex.documents & ~found.possible, vertex.documents & ~(found.certain & ~vertex.repeated))

    return some_other


def _unsure(look: Look) -> Look:
    """What is found is a superset; nothing is certain."""
    return lambda vertex: Bounds(0, look(vertex).possible)


def _named(vertex: Vertex, name: str) -> Iterator[TextBitmaps]:
    if name == "*":
        yield from vertex.attributes.values()
    elif name in vertex.attributes:
        yield vertex.attributes[name]


class _Descendants:
    """What is found at the vertices of a name below a given one, and with `and_self` also at that one.

    Each vertex is asked once. Small sets of vertices are gathered one by one; beyond a budget, each answer is
    combined from those of the vertex's children, so that no filter costs more than its length times the tree's size.
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
                known = self._combined(vertex)
        return known

    def _at(self, vertex: Vertex) -> Bounds:
        found = self.found.get(vertex.start)
        if found is None:
            found = self.found[vertex.start] = self.look(vertex)
        return found

    def _combined(self, vertex: Vertex) -> Bounds:
        for each in reversed(self.places.all[vertex.start : vertex.end]):
            if each.start not in self.known:
                parts = [self.known[child.start] for child in each.children.values()]
                if self.and_self:
                    parts.append(self._at(each))
                else:
                    parts.extend(self._at(child) for name, child in each.children.items() if self.name in ("*", name))
                self.known[each.start] = union(parts)
        return self.known[vertex.start]
