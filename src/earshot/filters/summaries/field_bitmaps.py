"""Which documents have which values of a named field: what `where` filters ask of a data summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from earshot.events import Value
from earshot.filters.language.matching import text_of, value_test
from earshot.filters.language.syntax import Compare, Condition, Contains, Exists, Field, StartsWith
from earshot.filters.summaries.summary_tree import LONGEST_TEXT, NOTHING, Bounds, TextBitmaps


class FieldBitmaps:
    """Values by field; `size` counts fields and values."""

    def __init__(self) -> None:
        self.by_name: dict[str, TextBitmaps] = {}
        self.size = 0

    def add(self, fields: Mapping[str, tuple[Value, ...]], bit: int) -> None:
        """Enter one document."""
        for name, values in fields.items():
            found = self.by_name.get(name)
            if found is None:
                found = self.by_name[name] = TextBitmaps()
                self.size += 1
            for value in values:
                # To Python 1, 1.0 and True are one key; to a filter they are not.
                kept = not isinstance(value, str) or len(value) <= LONGEST_TEXT
                self.size += found.note((type(value), value), bit, kept)

    def look_up(self, condition: Condition) -> Bounds:
        """The documents that meet a condition on a field."""
        match condition:
            case Compare(Field(name), op, literal):
                return self._passing(name, value_test(op, literal))
            case Contains(Field(name), part):
                return self._passing(name, lambda value: part in text_of(value))
            case StartsWith(Field(name), part):
                return self._passing(name, lambda value: text_of(value).startswith(part))
            case Exists(Field(name)):
                return self._passing(name, lambda value: value is not False)
            case _:
                raise TypeError(f"{type(condition).__name__} is no condition on a field")

    def _passing(self, name: str, test: Callable[[Any], bool]) -> Bounds:
        found = self.by_name.get(name)
        return NOTHING if found is None else found.passing(lambda typed: test(typed[1]))

    def retain(self, mask: int, shift: int) -> None:
        """Keep only the documents under the mask, renumbered, and only what they have."""
        self.by_name = {name: one for name, one in self.by_name.items() if one.documents & mask}
        self.size = len(self.by_name) + sum(one.retain(mask, shift) for one in self.by_name.values())
