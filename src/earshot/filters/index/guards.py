"""Tests on an element's own attributes that a path asks for on its way: `[@id]`, `[@id="x"]`, `[@id=5]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from earshot.filters.language.values import number


class Guard(NamedTuple):
    """An attribute there must be and, unless None, the text or the number it must be."""

    attribute: str
    wanted: str | float | None = None

    def holds(self, attributes: Mapping[str, str]) -> bool:
        text = attributes.get(self.attribute)
        if text is None or self.wanted is None:
            return text is not None
        return (text if isinstance(self.wanted, str) else number(text)) == self.wanted


Guards = tuple[Guard, ...]
T = TypeVar("T")


class GuardIndex(Generic[T]):
    """Things behind guards, found by the attributes an element has."""

    def __init__(self) -> None:
        self._by_attribute: dict[str, dict[str | float | None, list[tuple[Guards, T]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_attribute)

    def add(self, guards: Guards, thing: T) -> None:
        """Put a thing behind guards; it is found by the first and checked by the others."""
        first, *others = guards
        by_value = self._by_attribute.setdefault(first.attribute, {})
        by_value.setdefault(first.wanted, []).append((tuple(others), thing))

    def behind(self, attributes: Mapping[str, str]) -> Iterator[T]:
        """All things whose guards hold."""
        for name, text in attributes.items():
            by_value = self._by_attribute.get(name)
            if by_value is None:
                continue
            for value in (None, text, number(text)):
                for others, thing in by_value.get(value, ()):
                    if all(guard.holds(attributes) for guard in others):
                        yield thing
