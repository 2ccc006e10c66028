"""A node's statistics of recent documents (CoDD, section 3.1): which of them meet a filter, and how
much two filters have in common judged by these documents.

A look-up traces the filter over bitmaps (`SummaryTree` for paths, `FieldBitmaps` for fields), so that its cost follows
the summary's size and not the number of documents. Only the documents that the bitmaps cannot decide are
matched themselves, so the answers are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.filters.filter import Filter
from earshot.filters.language.event_types import is_type_pattern, type_matches
from earshot.filters.language.lowering import loosened
from earshot.filters.language.syntax import (
    Always,
    And,
    AnyItem,
    Approaching,
    Compare,
    Condition,
    Contains,
    Exists,
    Field,
    FieldPlace,
    Holds,
    Inside,
    LocationPath,
    Not,
    Or,
    Receding,
    StartsWith,
    Within,
)
from earshot.filters.language.values import text_of, value_test
from earshot.filters.summaries.summary_tree import (
    LONGEST_TEXT,
    NOTHING,
    Bounds,
    SummaryTree,
    TextBitmaps,
    look_up,
    union,
)

MOST_ANSWERS = 1024
"Answers that are remembered until the next document."


class FieldBitmaps:
    """Which documents have which values of a named field; `size` counts fields and values."""

    def __init__(self) -> None:
        self.by_name: dict[str, TextBitmaps] = {}
        self.size = 0
        self.entered = 0
        "Documents before this number have entered."

    def add(self, event: Event, bit: int) -> None:
        """Enter one document."""
        for name, values in event.fields.items():
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
                raise TypeError(f"{type(condition).__name__} is not a condition on a field")

    def _passing(self, name: str, test: Callable[[Any], bool]) -> Bounds:
        found = self.by_name.get(name)
        return NOTHING if found is None else found.passing(lambda typed: test(typed[1]))

    def retain(self, mask: int, shift: int) -> None:
        """Keep only the documents under the mask, renumbered, and only what they have."""
        self.by_name = {name: one for name, one in self.by_name.items() if one.documents & mask}
        self.size = len(self.by_name) + sum(one.retain(mask, shift) for one in self.by_name.values())


class DataSummary:
    """The latest documents, summarised; `len()` is how many are kept.

    A bitmap is an int; its bits stand for documents until the next `add`, and `ids` names them.
    Adding is cheap: a document enters the bitmaps when something is next asked.
    """

    def __init__(self, documents: int = 200, vertices: int = 50_000, least_documents: int = 20) -> None:
        """Keep at most `documents`, and at most `vertices` places and values in each part of the summary: the
        oldest documents are dropped first. Below `least_documents` the statistics are thin."""
        for name, value in (("documents", documents), ("vertices", vertices), ("least_documents", least_documents)):
            if value < 1:
                raise SettingsError(f"{name} must be at least 1, got {value}")
        self.documents = documents
        self.vertices = vertices
        self.least_documents = least_documents
        self._kept: dict[int, tuple[Hashable, Event]] = {}
        "By number, the oldest first. Bit i is the document number `_first + i`."
        self._numbers: dict[Hashable, int] = {}
        self._first = self._next = 0
        self._types: dict[str, int] = {}
        self._tree = SummaryTree()
        self._fields = FieldBitmaps()
        self._answers: dict[int, tuple[Filter, Bounds, int | None]] = {}
        "By the filter's identity: hashing a large one costs as much as looking it up."

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, document_id: object) -> bool:
        return document_id in self._numbers

    @property
    def is_thin(self) -> bool:
        """Whether there are too few documents to judge by."""
        return len(self._kept) < self.least_documents

    @property
    def all(self) -> int:
        """The bitmap of all documents kept."""
        return (1 << self._next - self._first) - (1 << self._oldest - self._first)

    def add(self, document_id: Hashable, event: Event) -> None:
        """Add a document; one that is already kept changes nothing."""
        if document_id in self._numbers:
            return
        if self._next - self._first >= 2 * self.documents:
            self._renumber()
        self._types[event.type] = self._types.get(event.type, 0) | 1 << self._next - self._first
        self._kept[self._next] = (document_id, event)
        self._numbers[document_id] = self._next
        self._next += 1
        if len(self._kept) > self.documents:
            self._forget_oldest()
        self._answers.clear()

    def matching(self, filter: Filter) -> int | None:
        """The documents that meet the filter, exactly; None where that depends on the viewer's place."""
        _, found, exact = self._answer(filter)
        if exact is None and not filter.needs_viewer:
            exact = found.certain
            for bit, event in self._events(found.possible & ~found.certain):
                if filter.matches(event):
                    exact |= bit
            self._answers[id(filter)] = (filter, found, exact)
        return exact if exact is None else exact & self.all

    def candidates(self, filter: Filter) -> int:
        """The paper's look-up: the documents with all the places and values the filter asks for. A document that has
        them in different elements does not meet it; every document that meets it, for any viewer, is included."""
        return self._answer(filter)[1].possible & self.all

    def selectivity(self, filter: Filter) -> float | None:
        """The share of the documents that meet the filter; None without documents, or if it depends on the viewer."""
        found = self.matching(filter)
        return None if found is None or not self._kept else found.bit_count() / len(self._kept)

    def overlap(self, a: Filter, b: Filter) -> float | None:
        """The extensional overlap: of the documents that meet either filter, the share that meets both.
        None while statistics are thin, or where no document meets either."""
        if self.is_thin:
            return None
        of_a, of_b = self.matching(a), self.matching(b)
        if of_a is None or of_b is None or not of_a | of_b:
            return None
        return (of_a & of_b).bit_count() / (of_a | of_b).bit_count()

    def ids(self, bitmap: int) -> tuple[Hashable, ...]:
        """The documents of a bitmap, the oldest first."""
        return tuple(self._kept[number][0] for number in self._numbers_of(bitmap))

    # Look-ups.

    def _answer(self, filter: Filter) -> tuple[Filter, Bounds, int | None]:
        known = self._answers.get(id(filter))
        if known is None:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            found = self._look_up(filter.condition)
            if filter.type is not None:
                of_type = self._of_type(filter.type)
                found = Bounds(found.certain & of_type, found.possible & of_type)
            known = self._answers[id(filter)] = (filter, found, None)
        return known

    def _of_type(self, wanted: str) -> int:
        """The documents of a type, or of the types that a pattern stands for."""
        if not is_type_pattern(wanted):
            return self._types.get(wanted, 0)
        found = 0
        for type, documents in self._types.items():
            found |= documents if type_matches(wanted, type) else 0
        return found

    def _look_up(self, condition: Condition) -> Bounds:
        match condition:
            case And(terms):
                certain = possible = -1
                for term in terms:
                    found = self._look_up(term)
                    certain &= found.certain
                    possible &= found.possible
                return Bounds(certain, possible)
            case Or(terms):
                return union(self._look_up(term) for term in terms)
            case Not(term):
                found = self._look_up(term)
                return Bounds(~found.possible, ~found.certain)
            case Always():
                return Bounds(-1, -1)
            case Holds() | AnyItem():
                return Bounds(0, self._look_up(loosened(condition)).possible)
            case Within() | Approaching() | Receding() | Inside() | FieldPlace():
                return Bounds(0, -1)
            case (
                Compare(operand=LocationPath())
                | Contains(operand=LocationPath())
                | StartsWith(operand=LocationPath())
                | LocationPath()
            ):
                self._update(self._tree)
                return look_up(self._tree, condition)
            case Compare() | Contains() | StartsWith() | Exists():
                self._update(self._fields)
                return self._fields.look_up(condition)
            case _:
                raise TypeError(f"{type(condition).__name__} is not a condition on an event")

    def _events(self, bitmap: int) -> Iterator[tuple[int, Event]]:
        for number in self._numbers_of(bitmap):
            yield 1 << number - self._first, self._kept[number][1]

    def _numbers_of(self, bitmap: int) -> Iterator[int]:
        left = bitmap & self.all
        while left:
            lowest = left & -left
            yield self._first + lowest.bit_length() - 1
            left ^= lowest

    # Documents enter a part of the summary when it is next asked, and leave all parts together.

    @property
    def _oldest(self) -> int:
        return self._next - len(self._kept)

    def _update(self, part: SummaryTree | FieldBitmaps) -> None:
        """Enter new documents, and drop the oldest ones until the part is small enough; bits keep their places."""
        for number in range(max(part.entered, self._oldest), self._next):
            part.add(self._kept[number][1], 1 << number - self._first)
        part.entered = self._next
        while part.size > self.vertices and self._kept:
            for _ in range(max(1, len(self._kept) // 4)):
                self._forget_oldest()
            part.retain(self.all, 0)

    def _forget_oldest(self) -> None:
        document_id, _ = self._kept.pop(self._oldest)
        del self._numbers[document_id]

    def _renumber(self) -> None:
        """The oldest document kept becomes bit 0."""
        shift, kept = self._oldest - self._first, self.all
        self._tree.retain(kept, shift)
        self._fields.retain(kept, shift)
        self._types = {name: (found & kept) >> shift for name, found in self._types.items() if found & kept}
        self._first = self._oldest
