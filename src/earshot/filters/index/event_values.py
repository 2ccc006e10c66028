"""Simple tests on values, and an event's values as these tests ask for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import Any

import msgspec

from earshot.errors import FilterTooCostly
from earshot.events import Element, Event, Value
from earshot.filters.filter import Filter
from earshot.filters.index.path_moves import ANY
from earshot.filters.language.alternatives import InDocument, Source
from earshot.filters.language.matching import Viewer
from earshot.filters.language.values import boolean_of, number_of, text_of


class SameText(msgspec.Struct, frozen=True, gc=False):
    """A value's text is this one."""

    source: Source
    wanted: str


class SameNumber(msgspec.Struct, frozen=True, gc=False):
    """A value counts as this number."""

    source: Source
    wanted: float


class SameBoolean(msgspec.Struct, frozen=True, gc=False):
    """A value counts as true, or as false."""

    source: Source
    wanted: bool


class Between(msgspec.Struct, frozen=True, gc=False):
    """A value counts as a number not below `low`, and a value, maybe another, as one not above `high`."""

    source: Source
    low: float
    high: float


Same = SameText | SameNumber | SameBoolean
SimpleTest = Same | Between

SAME_AS: dict[type[Same], Callable[[Value], Any]] = {
    SameText: text_of,
    SameNumber: number_of,
    SameBoolean: boolean_of,
}
"The conversion before each kind of comparison."


class EventValues:
    """An event's values by source, gathered when they are first asked for."""

    def __init__(self, event: Event) -> None:
        self.event = event
        content = event.content
        self.named = content if isinstance(content, dict) else None
        "The content, if it is no document; values may be objects and lists."
        self.given_up: frozenset[Hashable] = _NO_FILTERS
        "Filters that were given up as too costly."

    @cached_property
    def _values(self) -> dict[Source, tuple[Value, ...]]:
        return {}

    @cached_property
    def _compared(self) -> dict[tuple[type[SimpleTest], Source], frozenset[Any]]:
        """The converted values of a source, by the kind of test."""
        return {}

    def meet(self, key: Hashable, filter: Filter, viewer: Viewer | None) -> bool:
        """Whether the event meets the filter itself; one that is given up as too costly is noted, and not met."""
        try:
            return key not in self.given_up and filter.matches(self.event, viewer)
        except FilterTooCostly:
            self.given_up |= {key}
            return False

    def has(self, source: Source) -> bool:
        """Whether there is a value."""
        if isinstance(source, InDocument) and not source.attribute:
            return source.element in self._elements
        return bool(self.values(source))

    def values(self, source: Source) -> tuple[Value, ...]:
        """All values, those of a document without repeats."""
        known = self._values.get(source)
        if known is None:
            known = self._values[source] = self._gathered(source)
        return known

    def value(self, source: Source) -> Value | None:
        """The first value, if any."""
        values = self.values(source)
        return values[0] if values else None

    def allow(self, needs: Iterable[Source], tests: Iterable[SimpleTest]) -> bool:
        """Whether there is a value from each source, and values that meet each test."""
        return all(map(self.has, needs)) and all(map(self._meet, tests))

    def _meet(self, test: SimpleTest) -> bool:
        kind = (type(test), test.source)
        compared = self._compared.get(kind)
        if compared is None:
            compare_as = number_of if isinstance(test, Between) else SAME_AS[type(test)]
            compared = self._compared[kind] = frozenset(map(compare_as, self.values(test.source)))
        if isinstance(test, Between):
            return any(number >= test.low for number in compared) and any(number <= test.high for number in compared)
        return test.wanted in compared

    def _gathered(self, source: Source) -> tuple[Value, ...]:
        if not isinstance(source, InDocument):
            return self.event.fields.get(source, ())
        elements = self._elements
        name = source.attribute
        if not name:
            return tuple({element.text: None for element in elements.get(source.element, ())})
        among = elements.values() if source.element == ANY else (elements.get(source.element, []),)
        texts = (element.attributes.get(name) for several in among for element in several)
        return tuple({text: None for text in texts if text is not None})

    @cached_property
    def _elements(self) -> dict[str, list[Element]]:
        """The document's elements by name."""
        found: dict[str, list[Element]] = {}
        stack = [self.event.root]
        while stack:
            element = stack.pop()
            found.setdefault(element.name, []).append(element)
            stack.extend(element.elements)
        return found


_NO_FILTERS: frozenset[Hashable] = frozenset()
