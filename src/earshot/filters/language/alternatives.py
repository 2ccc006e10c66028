"""What a condition needs, as alternatives: each one a conjunction of simple terms about sources of values.

Wherever the condition holds, at least one of its alternatives does. The index (`index/plans.py`) and the summaries
(`summaries/clauses.py`) look filters up by their alternatives. They differ in what one alternative is and in which
terms it can keep, and state that in the methods of `Alternatives` that are theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Generic, NamedTuple, TypeVar

from earshot.filters.language.lowering import loosened
from earshot.filters.language.syntax import (
    Always,
    And,
    AnyItem,
    Axis,
    Compare,
    Comparison,
    Condition,
    Contains,
    Exists,
    Field,
    Holds,
    Literal,
    LocationPath,
    NodeKind,
    Not,
    Or,
    PathStep,
    StartsWith,
)

MOST_ALTERNATIVES = 16
"A part of a filter that would make more is left out: its alternatives multiply with those of the others."


class InDocument(NamedTuple):
    """All values of one kind in a document: the texts of the elements of one name or, with an
    attribute's name, their attributes; "*" for elements of any name."""

    element: str
    attribute: str = ""
    "TEXT_NODES for the elements' own text nodes."


TEXT_NODES = "text()"
SOMEWHERE = InDocument("*")
"Nodes of any name."

Source = str | InDocument
"Where values come from: a field by its name, or somewhere in the document."

One = TypeVar("One")


class Alternatives(ABC, Generic[One]):
    """Conditions to alternatives of one kind."""

    def __init__(self, anything: One, unknown: One) -> None:
        self._anything = anything
        "It always holds."
        self._unknown = unknown
        "It says nothing of when the condition holds."

    @abstractmethod
    def joined(self, several: tuple[One, ...]) -> One | None:
        """All of them as one; None where they exclude each other."""

    @abstractmethod
    def present(self, source: Source) -> One:
        """The source has a value."""

    @abstractmethod
    def compared(self, source: Source, op: Comparison, literal: Literal) -> One:
        """The comparison holds for a value of the source."""

    def containing(self, source: Source, term: Contains | StartsWith) -> One:
        """A value of the source contains a text or begins with it."""
        return self.present(source)

    def root(self, source: InDocument) -> One:
        """The root element has this name."""
        return self.present(source)

    def of(self, condition: Condition, here: InDocument = SOMEWHERE) -> list[One]:
        """The alternatives of a condition, asked of the nodes `here`; none where it never holds."""
        match condition:
            case And(terms):
                return self.all([self.of(term, here) for term in terms])
            case Or(terms):
                return self.either([self.of(term, here) for term in terms])
            case Compare(Field(name), op, literal):
                return [self.compared(name, op, literal)]
            case LocationPath():
                return self.of_path(condition, here)
            case Compare(LocationPath() as path, op, literal):
                found, there = self.walked(path, here)
                return self.all([found, [self.compared(there, op, literal)]])
            case Contains(Field(name)) | StartsWith(Field(name)):
                return [self.containing(name, condition) if condition.literal else self.present(name)]
            case Contains(LocationPath() as path, literal) | StartsWith(LocationPath() as path, literal) if literal:
                found, there = self.walked(path, here)  # without a node, a path's text is ""
                return self.all([found, [self.containing(there, condition)]])
            case Exists(Field(name)):
                return [self.present(name)]
            case Not(term):
                return self._of_failing(term, here)
            case Holds() | AnyItem():
                return self.all([[self._unknown], self.of(loosened(condition), here)])
            case Always():
                return [self._anything]
            case _:
                return [self._unknown]

    def _of_failing(self, condition: Condition, here: InDocument) -> list[One]:
        """The alternatives of the condition's opposite."""
        match condition:
            case Always():
                return []
            case Not(term):
                return self.of(term, here)
            case And(terms):
                return self.either([self._of_failing(term, here) for term in terms])
            case Or(terms):
                return self.all([self._of_failing(term, here) for term in terms])
            case _:
                return [self._unknown]

    def of_path(self, path: LocationPath, here: InDocument) -> list[One]:
        return self.walked(path, here)[0]

    def walked(self, path: LocationPath, here: InDocument) -> tuple[list[One], InDocument]:
        """What the path needs: something of each name along it, and its predicates; and where it arrives."""
        parts = [[self._unknown]]
        for index, step in enumerate(path.steps):
            here = arrived(step, here)
            is_root = path.absolute and not index and step.axis is Axis.CHILD and step.kind is NodeKind.ELEMENT
            parts.append([self.root(here) if is_root else self.present(here)])
            parts += [self.of(predicate, here) for predicate in step.predicates]
        return self.all(parts), here

    def all(self, parts: list[list[One]]) -> list[One]:
        """The product of the parts' alternatives; the longest parts are left out where it would be too long."""
        if prod(map(len, parts)) > MOST_ALTERNATIVES:
            parts = self._with_the_shortest(parts)
        return _distinct(one for several in product(*parts) if (one := self.joined(several)) is not None)

    def _with_the_shortest(self, parts: list[list[One]]) -> list[list[One]]:
        kept, count = parts[:], 1
        for place in sorted(range(len(parts)), key=lambda place: len(parts[place])):
            if count * len(parts[place]) > MOST_ALTERNATIVES:
                kept[place] = [self._unknown]
            count *= len(kept[place])
        return kept

    def either(self, parts: Iterable[list[One]]) -> list[One]:
        found = _distinct(one for part in parts for one in part)
        return found if len(found) <= MOST_ALTERNATIVES else [self._unknown]


def _distinct(several: Iterable[One]) -> list[One]:
    found = list(several)
    return list(dict.fromkeys(found)) if len(found) > 1 else found


def arrived(step: PathStep, here: InDocument) -> InDocument:
    """The nodes that a step leads to from these."""
    above = here.element if step.axis is Axis.CHILD else "*"
    match step.kind:
        case NodeKind.ELEMENT:
            return InDocument(step.name)
        case NodeKind.ATTRIBUTE:
            return SOMEWHERE if step.name == "*" else InDocument(above, step.name)
        case NodeKind.TEXT:
            return InDocument(above, TEXT_NODES)
        case NodeKind.SELF:
            return here
