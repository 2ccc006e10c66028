"""Filters by their text: how nodes of an overlay state to each other what they want."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from earshot.errors import EarshotError
from earshot.events import Event
from earshot.filters import Filter, FilterIndex, Subscription
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, could_match

K = TypeVar("K", bound=str | bytes)
V = TypeVar("V")

REMEMBERED_LENGTH = 1 << 21
"Filters of at most this number of characters stay parsed; a parsed filter takes about twenty times its text."


class TextCache(Generic[K, V]):
    """Remembers what `read` says of texts and bytes from peers, up to `length` characters of them in all: a flood of
    long texts must not fill the memory."""

    def __init__(self, read: Callable[[K], V], length: int) -> None:
        self._read: Callable[[K], V] = read
        self._length = length
        self._held = 0
        self._found: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def __call__(self, text: K) -> V:
        try:
            found = self._found[text]
        except KeyError:
            found = self._found[text] = self._read(text)
            # An entry takes some room besides its text.
            self._held += len(text) + 64
            while self._held > self._length:
                self._held -= len(self._found.popitem(last=False)[0]) + 64
            return found
        self._found.move_to_end(text)
        return found


def _parse(text: str) -> Filter | None:
    try:
        found = Filter.parse(text)
        return found if found.without_viewer_terms() == found else None
    except (EarshotError, RecursionError, ValueError):
        return None


read_filter = TextCache(_parse, REMEMBERED_LENGTH)
"The filter that a peer sent as text; None where the text is not a filter, or asks for a consumer's place."


def could_match_any(text: str, types: Iterable[str]) -> bool:
    """Whether the filter that a peer sent as text could match an event of one of these types."""
    filter = read_filter(text)
    return filter is not None and any(could_match(filter, subject) for subject in types)


class FilterTexts:
    """A set of filters, by text; each counts its holders and is in the set while it has one."""

    def __init__(self, index: FilterIndex | None = None) -> None:
        self.holders: dict[str, int] = {}
        self.length = 0
        "Characters in all texts, with 64 for each."
        self._index = FilterIndex() if index is None else index

    def __contains__(self, text: str) -> bool:
        return text in self.holders

    def __len__(self) -> int:
        return len(self.holders)

    def hold(self, texts: Iterable[str]) -> list[str]:
        """Count one more holder of each text. Returns the texts that are new to the set."""
        new = []
        for text in texts:
            self.holders[text] = self.holders.get(text, 0) + 1
            if self.holders[text] == 1:
                new.append(text)
                self.length += len(text) + 64
                if (filter := read_filter(text)) is not None:
                    self._index.add(text, filter)
        return new

    def release(self, texts: Iterable[str]) -> list[str]:
        """Count one holder of each text less. Returns the texts that have left the set."""
        gone = []
        for text in texts:
            count = self.holders.get(text, 0)
            if count > 1:
                self.holders[text] = count - 1
            elif count:
                del self.holders[text]
                gone.append(text)
                self.length -= len(text) + 64
                if text in self._index:
                    self._index.remove(text)
        return gone

    def matching(self, event: Event) -> set[str]:
        """The texts of the filters that the event meets."""
        return self._index.match(event)


class LocalFilterTexts(LocalSubscriptions):
    """What the applications on this node want, also as texts for peers."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        "By subscription, its filter's text without terms about the consumer's place."

    def add(self, subscription: Subscription, now: float) -> None:
        super().add(subscription, now)
        self.texts[subscription.id] = str(subscription.filter.without_viewer_terms())

    def remove(self, subscription_id: str) -> Subscription | None:
        self.texts.pop(subscription_id, None)
        return super().remove(subscription_id)
