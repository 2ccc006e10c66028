"""What summaries know: a filter as clauses of simple terms, and an event as facts that meet such terms.

A clause is a conjunction; a filter that contains `or` becomes several. Every event the filter matches meets
at least one clause. The reverse is not promised: `not`, `!=`, positions in a document, wildcards and places
are left unconstrained, and an element is known by its own name alone, wherever it stands. An attribute is
known by its element's name and its own (`attribute_name`), a field by its own name; a root's attribute is both.

A summary asks an event and its digest the same questions. A digest knows less, and answers yes where it does
not know.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, reduce
from typing import Protocol

from earshot.events import Element, Event, Value
from earshot.filters.filter import Filter
from earshot.filters.language.event_types import is_type_pattern
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
from earshot.filters.language.values import boolean_of, interval, number_of, text_of
from earshot.filters.summaries.bloom import fingerprint, name_key, type_key

MOST_CLAUSES = 16
"A filter with more alternatives is weakened to fewer, because rows multiply."


@dataclass(frozen=True, slots=True)
class PresenceTerm:
    """There is something of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class RangeTerm:
    """A number of that name reaches into low..high (both included; may be infinite)."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TextTerm:
    """A text of that name is, begins with or contains the given one."""

    name: str
    how: str
    "EQUAL, PREFIX or SUBSTRING"
    text: str


EQUAL, PREFIX, SUBSTRING = "equal", "prefix", "substring"
Term = PresenceTerm | RangeTerm | TextTerm


@dataclass(frozen=True, slots=True)
class Clause:
    """Terms that all hold, for events of one type (None: of any)."""

    type: str | None
    terms: frozenset[Term]


ANY = Clause(None, frozenset())


def clauses_of(filter: Filter) -> list[Clause]:
    """The filter's clauses, simplified; none where no event can match."""
    found = _needed(filter.condition, None)
    if filter.type is not None and not is_type_pattern(filter.type):
        found = _both([Clause(filter.type, frozenset())], found)
    return _distinct(Clause(clause.type, _simplest(clause.terms)) for clause in found)


def _needed(condition: Condition, here: str | None) -> list[Clause]:
    """What must hold for the condition, asked of an element named `here` (None: unknown)."""
    match condition:
        case And(terms):
            return reduce(_both, (_needed(term, here) for term in terms), [ANY])
        case Or(terms):
            return _either(_needed(term, here) for term in terms)
        case Not(term):
            return _refused(term, here)
        case LocationPath():
            return _walked(condition, here)[0]
        case Compare(LocationPath() as path, op, literal):
            found, name = _walked(path, here)
            return _both(found, [_clause(_compared(name, op, literal))])
        case Compare(Field(name), op, literal):
            return [_clause(_compared(name, op, literal))]
        case Contains(operand, literal):
            return _text_term(operand, SUBSTRING, literal, here)
        case StartsWith(operand, literal):
            return _text_term(operand, PREFIX, literal, here)
        case Exists(Field(name)):
            return [_clause(PresenceTerm(name))]
        case Holds() | AnyItem():
            return _needed(loosened(condition), here)
        case _:
            return [ANY]


def _refused(condition: Condition, here: str | None) -> list[Clause]:
    """What must hold for the condition to fail."""
    match condition:
        case Always():
            return []
        case Not(term):
            return _needed(term, here)
        case And(terms):
            return _either(_refused(term, here) for term in terms)
        case Or(terms):
            return reduce(_both, (_refused(term, here) for term in terms), [ANY])
        case _:
            return [ANY]


def _both(left: list[Clause], right: list[Clause]) -> list[Clause]:
    """The product; where it becomes too long, the side with more alternatives is left out."""
    if len(left) * len(right) > MOST_CLAUSES:
        return min(left, right, key=len)
    return _distinct(
        Clause(a.type or b.type, a.terms | b.terms)
        for a in left
        for b in right
        if a.type is None or b.type is None or a.type == b.type
    )


def _either(alternatives: Iterable[list[Clause]]) -> list[Clause]:
    found = _distinct(clause for clauses in alternatives for clause in clauses)
    return found if len(found) <= MOST_CLAUSES else [ANY]


def _distinct(clauses: Iterable[Clause]) -> list[Clause]:
    return list(dict.fromkeys(clauses))


def _clause(term: Term | None) -> Clause:
    return ANY if term is None else Clause(None, frozenset((term,)))


def _walked(path: LocationPath, here: str | None) -> tuple[list[Clause], str | None]:
    """What the path's own steps need, and the name it arrives at."""
    found, name = [ANY], here
    for index, step in enumerate(path.steps):
        clause = ANY
        name = _arrived(step, name)
        if path.absolute and index == 0 and step.axis is Axis.CHILD and step.kind is NodeKind.ELEMENT:
            clause = Clause(name, frozenset())
        elif name is not None:
            clause = _clause(PresenceTerm(name))
        found = _both(found, [clause])
        for predicate in step.predicates:
            found = _both(found, _needed(predicate, name))
    return found, name


def _arrived(step: PathStep, here: str | None) -> str | None:
    match step.kind:
        case NodeKind.ELEMENT:
            return None if step.name == "*" else step.name
        case NodeKind.ATTRIBUTE:
            named = step.name != "*" and step.axis is Axis.CHILD
            return attribute_name(here, step.name) if here is not None and named else None
        case NodeKind.TEXT:
            return here if step.axis is Axis.CHILD else None
        case _:
            return here


def attribute_name(element: str, attribute: str) -> str:
    """The name that clauses and facts use for an element's attribute."""
    return f"{element}@{attribute}"


def _text_term(operand: LocationPath | Field, how: str, literal: str, here: str | None) -> list[Clause]:
    """To XPath, a path that selects nothing has the text "", and "" is in every text."""
    found, name = ([ANY], operand.name) if isinstance(operand, Field) else _walked(operand, here)
    if not literal:
        return [_clause(PresenceTerm(name))] if isinstance(operand, Field) and name else [ANY]
    return _both(found, [_clause(TextTerm(name, how, literal) if name else None)])


def _compared(name: str | None, op: Comparison, literal: Literal) -> Term | None:
    if name is None:
        return None
    if op is Comparison.EQ and isinstance(literal, str):
        return TextTerm(name, EQUAL, literal)
    number = comparable_number(literal)
    numbers = interval(op, number)
    if numbers is None or math.isnan(number):
        return PresenceTerm(name)
    return RangeTerm(name, *numbers)


def comparable_number(value: Value) -> float:
    """The number a value may be compared as: XPath's, or 1 and 0 for true and false; else NaN."""
    number = number_of(value)
    if math.isnan(number):
        boolean = boolean_of(value)
        return number if boolean is None else float(boolean)
    return number


def _simplest(terms: frozenset[Term]) -> frozenset[Term]:
    """One range and one text for each name: each is necessary, so any one of several may represent all."""
    ranges: dict[str, list[RangeTerm]] = {}
    words: dict[str, list[TextTerm]] = {}
    for term in terms:
        if isinstance(term, RangeTerm):
            ranges.setdefault(term.name, []).append(term)
        elif isinstance(term, TextTerm):
            words.setdefault(term.name, []).append(term)
    kept: set[Term] = {_intersection(name, several) for name, several in ranges.items()}
    kept |= {max(several, key=_selectivity) for several in words.values()}
    kept |= {term for term in terms if isinstance(term, PresenceTerm) and term.name not in ranges | words}
    return frozenset(kept)


def _intersection(name: str, ranges: list[RangeTerm]) -> RangeTerm:
    """The range that a single number must be in. Several numbers of one name may meet several ranges together; then
    their span includes both bounds, as the result does with its bounds in order."""
    low = max(one.low for one in ranges)
    high = min(one.high for one in ranges)
    return RangeTerm(name, min(low, high), max(low, high))


def _selectivity(term: TextTerm) -> tuple[int, int, str]:
    return (EQUAL, PREFIX, SUBSTRING).index(term.how) * -1, len(term.text), term.text


# What an event has.

Span = tuple[float, float]
"The smallest and the greatest of a name's numbers."


class Values:
    """All values of one name: their texts' fingerprints, their numbers' span, the texts themselves."""

    def __init__(self, texts: tuple[str, ...], span: Span | None, anything: bool = False) -> None:
        self.texts: tuple[str, ...] | None = texts
        self.span = span
        self.anything = anything
        "Whether a value may be neither text nor number, or is unknown: then every term may hold."

    @cached_property
    def fingerprints(self) -> frozenset[int]:
        return frozenset(map(fingerprint, self.texts or ()))


class FingerprintedValues(Values):
    """Values known only by fingerprints and span: a digest does not carry the texts."""

    def __init__(self, fingerprints: frozenset[int], span: Span | None, anything: bool = False) -> None:
        super().__init__((), span, anything)
        self.texts = None
        self.__dict__["fingerprints"] = fingerprints


ANYTHING = FingerprintedValues(frozenset(), None, anything=True)


class KnownFacts(Protocol):
    """What a summary asks of an event or of its digest."""

    @property
    def type(self) -> int:
        """The event type's key."""
        ...

    def values(self, key: int) -> Values | None:
        """The values of the name with this key; None where there is no such name."""
        ...


class EventFacts:
    """Facts from the event itself; texts are gathered when a name is first asked for."""

    def __init__(self, event: Event) -> None:
        self.type = type_key(event.type)
        self.fields = event.fields
        self.named: dict[int, list[Element | Value]] = {}
        "Elements, attributes' texts and flat values by their name's key, shallow ones first."
        self._values: dict[int, Values] = {}
        if isinstance(event.content, Element):
            self._gather(event.content)
            self._add_typed()
        elif event.is_nested:
            self._gather(event.root)
            for name, values in self.fields.items():
                for value in values:
                    self._add(name, value)
        else:
            # XPath may ask for the root's own text, which is the concatenation of the flat values' texts.
            self._add(event.type, event.root)
            for name, value in event.content.items():
                self._add(name, value)

    @classmethod
    def of(cls, event: Event) -> EventFacts:
        """The event's facts, gathered once, and again after a schema has typed its fields."""
        known = event.__dict__.get("_facts")
        if not isinstance(known, cls) or known.fields is not event.fields:
            known = event.__dict__["_facts"] = cls(event)
        return known

    def values(self, key: int) -> Values | None:
        found = self._values.get(key)
        if found is None and (several := self.named.get(key)) is not None:
            found = self._values[key] = _gathered(several)
        return found

    def _add(self, name: str, value: Element | Value) -> None:
        self.named.setdefault(name_key(name), []).append(value)

    def _gather(self, root: Element) -> None:
        for name, text in root.attributes.items():
            self._add(name, text)
        level = [root]
        while level:
            for element in level:
                self._add(element.name, element)
                for name, text in element.attributes.items():
                    self._add(attribute_name(element.name, name), text)
            level = [child for element in level for child in element.elements]

    def _add_typed(self) -> None:
        """Values that a schema has typed: a time compares as a time."""
        for name, values in self.fields.items():
            for value in values:
                if not isinstance(value, str):
                    self._add(name, value)


def _gathered(several: Iterable[Element | Value]) -> Values:
    texts: dict[str, None] = {}
    numbers: list[float] = []
    anything = False
    for value in several:
        if isinstance(value, Element):
            for text in _texts(value):
                texts[text] = None
                numbers.append(comparable_number(text))
        else:
            texts[text_of(value)] = None
            numbers.append(comparable_number(value))
            anything = anything or isinstance(value, datetime)
    real = [number for number in numbers if not math.isnan(number)]
    return Values(tuple(texts), (min(real), max(real)) if real else None, anything)


def _texts(element: Element) -> list[str]:
    """The element's string value and, where its text comes in pieces, each piece: XPath's text() nodes."""
    pieces = [child for child in element.children if isinstance(child, str)]
    return [element.text] if len(element.children) == 1 and pieces else [element.text, *pieces]
