"""The data-summary tree of CoDD (section 3.1): which documents have an element where, and what it says.

A vertex stands for all elements that one way of names down from the root leads to; bit i of its
bitmaps is document i. Tracing a filter over the vertices tells two sets apart: the documents that
certainly match, and those that may. They differ only where elements repeat within a document (one
`b` has the `c`, another the `d`) or where a text was not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from earshot.events import Element
from earshot.filters.ast import (
    Always,
    And,
    At,
    Axis,
    Compare,
    Condition,
    Contains,
    Not,
    Or,
    Path,
    StartsWith,
    Step,
    Test,
)
from earshot.filters.paths import node_test, string_test

LONGEST_TEXT = 64
"Longer texts are not kept: nobody compares a paragraph."


class Bounds(NamedTuple):
    """The documents that certainly meet a condition, and all that may (those among them)."""

    certain: int
    possible: int


NOTHING = Bounds(0, 0)


class Texts:
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

    __slots__ = ("attributes", "children", "documents", "repeated", "texts")

    def __init__(self) -> None:
        self.documents = 0
        self.repeated = 0
        "Documents with more than one element here."
        self.texts = Texts()
        "What the elements without elements inside say; those with some count as unread."
        self.children: dict[str, Vertex] = {}
        self.attributes: dict[str, Texts] = {}


class SummaryTree:
    """Vertices by their ways down from the root; `size` counts them and the texts they keep."""

    def __init__(self) -> None:
        self.document = Vertex()
        "What stands above all roots."
        self.document.documents = self.document.texts.unread = -1
        self.size = 0

    def add(self, root: Element, bit: int) -> None:
        """Enter one document, in a single pass."""
        grown = 0
        stack = [(self.document, root)]
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
                    texts = vertex.attributes[name] = Texts()
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

    def look_up(self, condition: Condition) -> Bounds:
        """The documents that meet a condition on their trees."""
        return _look(condition)(self.document)

    def retain(self, mask: int, shift: int) -> None:
        """Keep only the documents under the mask, renumbered, and only what they have."""
        self.size = 0
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


# A condition becomes a function: for which documents does some element at this vertex meet it?
Look = Callable[[Vertex], Bounds]


def _look(condition: Condition) -> Look:
    match condition:
        case And(terms):
            return _every([_look(term) for term in terms])
        case Or(terms):
            looks = [_look(term) for term in terms]
            return lambda vertex: union(look(vertex) for look in looks)
        case Not(term):
            return _not(_look(term))
        case Path(steps=steps):
            return _leads(steps, None)
        case Compare(Path(steps=steps), op, literal):
            return _leads(steps, string_test(op, literal))
        case Contains(Path(steps=steps), part):
            return _of_the_first(_leads(steps, lambda text: part in text))
        case StartsWith(Path(steps=steps), part):
            return _of_the_first(_leads(steps, lambda text: text.startswith(part)))
        case Always():
            return _here
        case _:
            raise TypeError(f"{type(condition).__name__} is no condition on a node")


def union(found: Iterable[Bounds]) -> Bounds:
    """The documents of any of them."""
    certain = possible = 0
    for one in found:
        certain |= one.certain
        possible |= one.possible
    return Bounds(certain, possible)


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


_of_the_first = _unsure
"The tree has no order: it cannot tell which of several nodes is the first."


def _leads(steps: tuple[Step, ...], last: Callable[[str], bool] | None) -> Look:
    """Some element leads, by these steps, to a node whose string value passes the last test."""
    if not steps or steps[0].test is Test.SELF:
        return _here if last is None else lambda vertex: vertex.texts.passing(last)
    step, rest = steps[0], steps[1:]
    below = _elements(step, rest, last) if step.test is Test.ELEMENT else _attributes_or_texts(step, rest, last)
    if any(isinstance(predicate, At) for predicate in step.predicates):
        below = _unsure(below)
    return below if step.axis is Axis.CHILD else _descendants(below)


def _elements(step: Step, rest: tuple[Step, ...], last: Callable[[str], bool] | None) -> Look:
    looks = [_look(predicate) for predicate in step.predicates if not isinstance(predicate, At)]
    onward = _leads(rest, last)
    if onward is not _here:
        looks.append(onward)
    passes, name = _every(looks), step.name
    if name == "*":
        return lambda vertex: union(passes(child) for child in vertex.children.values())
    return lambda vertex: passes(vertex.children[name]) if name in vertex.children else NOTHING


def _attributes_or_texts(step: Step, rest: tuple[Step, ...], last: Callable[[str], bool] | None) -> Look:
    tests = [node_test(predicate) for predicate in step.predicates if not isinstance(predicate, At)]
    if rest and rest[0].test is not Test.SELF:
        return lambda _vertex: NOTHING  # nothing stands below a text

    def passes(text: str) -> bool:
        return all(test(text, {}) for test in tests) and (last is None or last(text))

    if step.test is Test.TEXT:
        return lambda vertex: vertex.texts.passing(lambda text: text != "" and passes(text))
    return lambda vertex: union(texts.passing(passes) for texts in _named(vertex, step.name))


def _named(vertex: Vertex, name: str) -> Iterator[Texts]:
    if name == "*":
        yield from vertex.attributes.values()
    elif name in vertex.attributes:
        yield vertex.attributes[name]


def _descendants(below: Look) -> Look:
    """What is found directly below the vertex or any under it; each is looked at once."""
    known: dict[int, Bounds] = {}

    def somewhere(vertex: Vertex) -> Bounds:
        if (found := known.get(id(vertex))) is not None:
            return found
        unknown = [vertex]
        for each in unknown:  # grows as it goes
            unknown.extend(child for child in each.children.values() if id(child) not in known)
        for each in reversed(unknown):
            deeper = union(known[id(child)] for child in each.children.values())
            known[id(each)] = union((below(each), deeper))
        return known[id(vertex)]

    return somewhere
