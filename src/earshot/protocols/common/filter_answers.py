"""Which filters an event meets, asked by text: what trees of nodes ask of one event again and again.

The answers are remembered on the event itself, as its `root` and `fields` are: they depend on nothing
but the event and the filter's text. A live node asks for all of its own filters at once, by an index;
in a simulation the next node finds them answered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

from earshot.errors import EarshotError
from earshot.events import Event
from earshot.filters import Filter, FilterIndex

MOST_FILTERS = 1 << 16


@lru_cache(maxsize=MOST_FILTERS)
def read_filter(text: str) -> Filter | None:
    """The filter of a text that came from a peer; None where it is none, or names a consumer's place."""
    try:
        found = Filter.parse(text)
        return found if found.without_viewer_terms() == found else None
    except (EarshotError, RecursionError, ValueError):
        return None


class Answers:
    """What is known of an event: which filters it was asked for, and which of them it meets."""

    __slots__ = ("asked", "later", "met")

    def __init__(self, asked: frozenset[str], met: set[str]) -> None:
        self.asked = asked
        "All at once, at first,"
        self.later: set[str] = set()
        "and one by one since."
        self.met = met


def meets(event: Event, texts: Collection[str], answers: Answers) -> bool:
    """Whether the event meets any of the filters; answers that are missing are found and kept."""
    if not answers.met.isdisjoint(texts):
        return True
    if answers.asked.issuperset(texts):
        return False
    for text in texts:
        if text not in answers.asked and text not in answers.later:
            answers.later.add(text)
            found = read_filter(text)
            if found is not None and found.matches(event):
                answers.met.add(text)
                return True
    return False


class FilterTexts:
    """Filters by text, each wanted by so many holders."""

    def __init__(self) -> None:
        self.holders: dict[str, int] = {}
        self._index: FilterIndex | None = None
        self._all: frozenset[str] | None = None
        "The texts, until they change."

    def __contains__(self, text: str) -> bool:
        return text in self.holders

    def __len__(self) -> int:
        return len(self.holders)

    def hold(self, texts: Iterable[str]) -> list[str]:
        """One more holder for each; those that had none before."""
        new = []
        for text in texts:
            count = self.holders.get(text, 0)
            self.holders[text] = count + 1
            if not count:
                new.append(text)
                self._all = None
                if self._index is not None:
                    self._add(text, self._index)
        return new

    def release(self, texts: Iterable[str]) -> list[str]:
        """One holder less for each; those that have none left."""
        gone = []
        for text in texts:
            count = self.holders.get(text, 0)
            if count > 1:
                self.holders[text] = count - 1
            elif count:
                del self.holders[text]
                gone.append(text)
                self._all = None
                if self._index is not None and text in self._index:
                    self._index.remove(text)
        return gone

    def answers(self, event: Event) -> Answers:
        """What is known of the event, at least for the filters held here."""
        known: Answers | None = event.__dict__.get("filter_answers")
        if known is None:
            if self._index is None:
                self._index = FilterIndex()
                for text in self.holders:
                    self._add(text, self._index)
            if self._all is None:
                self._all = frozenset(self.holders)
            known = event.__dict__["filter_answers"] = Answers(self._all, self._index.match(event))
        return known

    @staticmethod
    def _add(text: str, index: FilterIndex) -> None:
        found = read_filter(text)
        if found is not None:
            index.add(text, found)
