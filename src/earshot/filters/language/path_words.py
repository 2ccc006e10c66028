"""The words of paths and documents: a path selects nothing in a document that lacks one of its words.

A document that many filters ask has its words gathered once. Then most filters are answered by one comparison of sets,
and a path that begins with `//name` starts at the elements of that name.

Words are the names of elements and attributes, and attributes with their text or their number: `a`, `id`,
`("id", "5")`, `("id", 5.0)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from earshot.events import Element
from earshot.filters.language.syntax import Compare, Comparison, Condition, LocationPath, NodeKind, PathStep
from earshot.filters.language.values import number

Word = str | tuple[str, str | float]

_number = lru_cache(maxsize=1 << 14)(number)
"Documents have the same few texts again and again."


class DocumentWords:
    """All words of a document, and its elements by their names."""

    __slots__ = ("by_name", "words")

    def __init__(self, root: Element) -> None:
        self.by_name: dict[str, list[Element]] = {}
        attributes: set[tuple[str, str]] = set()
        stack = [root]
        while stack:
            element = stack.pop()
            self.by_name.setdefault(element.name, []).append(element)
            attributes.update(element.attributes.items())
            stack += element.elements
        numbers = {(name, value) for name, text in attributes if (value := _number(text)) == value}
        self.words: frozenset[Word] = frozenset().union(self.by_name, attributes, numbers, dict(attributes))


def words_of(path: LocationPath) -> frozenset[Word]:
    """The words that a document needs for the path to select something."""
    return frozenset(_needed(path, None))


def _needed(path: LocationPath, wanted: str | float | None) -> Iterator[Word]:
    """The words of a path whose last node is this text or number, where one is given."""
    for step in path.steps:
        if step.name not in ("", "*"):
            yield step.name
        for predicate in step.predicates:
            yield from _needed_by(predicate)
    last = path.steps[-1] if path.steps else None
    if wanted is not None and _is_named_attribute(last):
        assert last is not None
        yield last.name, wanted


def _is_named_attribute(step: PathStep | None) -> bool:
    return step is not None and step.kind is NodeKind.ATTRIBUTE and step.name != "*"


def _needed_by(predicate: Condition) -> Iterator[Word]:
    match predicate:
        case LocationPath():
            yield from _needed(predicate, None)
        case Compare(LocationPath() as path, op, literal):
            yield from _needed(path, literal if op is Comparison.EQ else None)
