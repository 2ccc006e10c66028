"""The data-summary tree of CoDD (section 3.1): which documents have an element where, and what it says.

A vertex stands for all elements that one way of names down from the root leads to; bit i of its
bitmaps is document i. `twigs.py` traces filters over it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

from earshot.events import Element

LONGEST_TEXT = 64
"Longer texts are not kept: nobody compares a paragraph."


class Bounds(NamedTuple):
    """The documents that certainly meet a condition, and all that may (those among them)."""

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
        "Its own number, and that behind the last vertex below it, as `Places` counts them."
        self.documents = 0
        self.repeated = 0
        "Documents with more than one element here."
        self.texts = TextBitmaps()
        "What the elements without elements inside say; those with some count as unread."
        self.children: dict[str, Vertex] = {}
        self.attributes: dict[str, TextBitmaps] = {}


class Places:
    """All vertices in depth-first order, so that those below one are a range; by name, too."""

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
    """Vertices by their ways down from the root; `size` counts them and the texts they keep."""

    def __init__(self) -> None:
        self.document = Vertex()
        "What stands above all roots."
        self.document.documents = self.document.texts.unread = -1
        self.size = 0
        self._places: Places | None = None

    def add(self, root: Element, bit: int) -> None:
        """Enter one document, in a single pass."""
        grown = 0
        self._places = None
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
