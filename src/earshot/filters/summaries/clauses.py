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
from functools import cached_property
from typing import Protocol

from earshot.events import Element, Event, Value
from earshot.filters.filter import Filter
from earshot.filters.language.alternatives import TEXT_NODES, Alternatives, InDocument, Source
from earshot.filters.language.event_types import is_type_pattern
from earshot.filters.language.syntax import (
    Comparison,
    Contains,
    Literal,
    StartsWith,
)
from earshot.filters.language.values import boolean_of, interval, number_of, text_of
from earshot.filters.summaries.bloom import fingerprint, name_key, type_key


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
    found = _clauses.of(filter.condition)
    if filter.type is not None and not is_type_pattern(filter.type):
        found = _clauses.all([[Clause(filter.type, frozenset())], found])
    return list(dict.fromkeys(Clause(clause.type, _simplest(clause.terms)) for clause in found))


class _Clauses(Alternatives[Clause]):
    def joined(self, several: tuple[Clause, ...]) -> Clause | None:
        types = {clause.type for clause in several} - {None}
        if len(types) > 1:
            return None
        return Clause(types.pop() if types else None, frozenset().union(*[clause.terms for clause in several]))

    def present(self, source: Source) -> Clause:
        name = _name_of(source)
        return ANY if name is None else _clause(PresenceTerm(name))

    def root(self, source: InDocument) -> Clause:
        return Clause(_name_of(source), frozenset())

    def compared(self, source: Source, op: Comparison, literal: Literal) -> Clause:
        name = _name_of(source)
        if name is None:
            return ANY
        if op is Comparison.EQ and isinstance(literal, str):
            return _clause(TextTerm(name, EQUAL, literal))
        number = comparable_number(literal)
        numbers = interval(op, number)
        if numbers is None or math.isnan(number):
            return _clause(PresenceTerm(name))
        return _clause(RangeTerm(name, *numbers))

    def containing(self, source: Source, term: Contains | StartsWith) -> Clause:
        name = _name_of(source)
        how = SUBSTRING if isinstance(term, Contains) else PREFIX
        return ANY if name is None else _clause(TextTerm(name, how, term.literal))


_clauses = _Clauses(ANY, ANY)


def _clause(term: Term) -> Clause:
    return Clause(None, frozenset((term,)))


def _name_of(source: Source) -> str | None:
    """The name that clauses and facts use for a source; None where it has none."""
    if isinstance(source, str):
        return source
    if source.element == "*":
        return None
    return attribute_name(*source) if source.attribute not in ("", TEXT_NODES) else source.element


def attribute_name(element: str, attribute: str) -> str:
    """The name that clauses and facts use for an element's attribute."""
    return f"{element}@{attribute}"


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
