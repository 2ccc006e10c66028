"""What an event says of each name, in the form summaries ask for it.

The same questions are asked of an event and of its digest; a digest knows less, and what it does
not know it answers with yes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from typing import Protocol

from earshot.events import Element, Event, Value, value_text
from earshot.filters.summaries.bloom import fingerprint, name_key, type_key
from earshot.filters.summaries.clauses import attribute_name, comparable_number

Span = tuple[float, float]
"From the smallest to the greatest of a name's numbers."


class Values:
    """All values of one name: their texts' fingerprints, their numbers' span, the texts themselves."""

    def __init__(self, texts: tuple[str, ...], span: Span | None, anything: bool = False) -> None:
        self.texts: tuple[str, ...] | None = texts
        self.span = span
        self.anything = anything
        "True where a value may be compared as something that is neither text nor number, or is unknown."

    @cached_property
    def fingerprints(self) -> frozenset[int]:
        return frozenset(map(fingerprint, self.texts or ()))


class FingerprintedValues(Values):
    """Values of which only fingerprints and span have come over: the texts are unknown."""

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
        """What it says of the name with this key; None where there is no such name."""
        ...


class EventFacts:
    """Facts read from the event itself; texts are gathered only for names that are asked for."""

    def __init__(self, event: Event) -> None:
        self.type = type_key(event.type)
        self.fields = event.fields
        self.named: dict[int, list[Element | Value]] = {}
        "Elements, attributes' texts and flat values by their name's key, shallow ones first."
        self._values: dict[int, Values] = {}
        if isinstance(event.content, Element):
            self._gather(event.content)
            self._add_typed()
        else:
            # XPath may ask for the root's own text, the flat values' texts in a row.
            self._add(event.type, event.root)
            for name, value in event.content.items():
                self._add(name, value)

    @classmethod
    def of(cls, event: Event) -> EventFacts:
        """The event's facts, gathered once; again where a schema has typed its fields since."""
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
        """Values that a schema has typed: a time compares as a time, whatever its text."""
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
            texts[value if isinstance(value, str) else value_text(value)] = None
            numbers.append(comparable_number(value))
            anything = anything or isinstance(value, datetime)
    real = [number for number in numbers if not math.isnan(number)]
    return Values(tuple(texts), (min(real), max(real)) if real else None, anything)


def _texts(element: Element) -> list[str]:
    """The element's string value and, where its text comes in pieces, each piece: XPath's text() nodes."""
    pieces = [child for child in element.children if isinstance(child, str)]
    return [element.text] if len(element.children) == 1 and pieces else [element.text, *pieces]
