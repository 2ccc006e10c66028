"""The CoDD paper's synthetic data (section 4): queries in category buckets, documents for some of the buckets, and
shuffles that change which queries want the same documents.

A document names its readers by words: query number 17 always asks for documents that hold the word `q017`. The
buckets decide which words a document holds together, and change with each shuffle. Under `shuffle = "subscriptions"`
a document names its categories instead, and a shuffle changes what queries ask for: `filters_in` gives the queries of
an epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any, Literal

from earshot.errors import ScenarioError
from earshot.events import Element, Event, EventType
from earshot.filters import Filter
from earshot.settings import AtLeastOne, Count, KindTable
from earshot.simulation.draws import Span
from earshot.simulation.settings_reader import SpanSetting

Members = tuple[frozenset[int], ...]
"The queries in each bucket."
DOCUMENT = "Document"


class CoddDocuments(KindTable, frozen=True, tag="buckets"):
    """Documents for the queries of a few category buckets, as in the CoDD paper's synthetic data."""

    queries: AtLeastOne = 400
    "The number of queries (n)."
    buckets: AtLeastOne = 20
    "The number of category buckets (k)."
    query_buckets: SpanSetting = Span(1.0, 3.0)
    "The number of buckets that a query is in."
    document_buckets: AtLeastOne = 2
    "The number of buckets that a document is for."
    shuffle_every: Count = 200
    "The number of documents between two shuffles of the buckets (cf); 0: no shuffles."
    shuffle_from: Count = 0
    "Every shuffle is delayed by this many documents."
    shuffle_buckets: Count = 4
    "The number of buckets that are split and merged in a shuffle (c = k/5)."
    shuffle: Literal["data", "subscriptions"] = "data"
    "Whether a shuffle changes which documents meet which queries, or what the queries ask for."
    draw_seed: int = 0
    "The seed of the assignment of queries to buckets, and of the shuffles."
    payload_bytes: Count = 0
    "The size of an additional payload."

    def validate(self) -> None:
        low, high = self.query_buckets.low, self.query_buckets.high
        if not (low >= 1 and high <= self.buckets and low.is_integer() and high.is_integer()):
            raise ScenarioError(
                f"query_buckets must be whole numbers from 1 to {self.buckets}, got [{low:g}, {high:g}]"
            )
        if self.document_buckets > self.buckets:
            raise ScenarioError(f"document_buckets must not exceed buckets, got {self.document_buckets}")
        if self.shuffle_buckets > self.buckets:
            raise ScenarioError(f"shuffle_buckets must be from 0 to {self.buckets}, got {self.shuffle_buckets}")

    def types(self) -> tuple[EventType, ...]:
        return (EventType(DOCUMENT, {"word": "string"}),)

    def epoch(self, number: int) -> int:
        """The number of shuffles before this document."""
        return max(0, number - self.shuffle_from) // self.shuffle_every if self.shuffle_every else 0

    def members(self, epoch: int) -> Members:
        """The buckets after this many shuffles."""
        return _members(self, epoch)

    def audience(self, random: Random, number: int) -> tuple[tuple[int, ...], frozenset[int]]:
        """The buckets that a document is for, drawn evenly, and the queries in them."""
        chosen = tuple(sorted(random.sample(range(self.buckets), self.document_buckets)))
        members = self.members(self.epoch(number))
        return chosen, frozenset().union(*(members[bucket] for bucket in chosen))

    def draw(self, random: Random, number: int) -> Event:
        chosen, wanted = self.audience(random, number)
        words = [_word(query) for query in sorted(wanted)] if self.shuffle == "data" else [f"c{i:02}" for i in chosen]
        children = [_element(word) for word in words]
        if self.payload_bytes:
            children.append(Element("payload", {}, ("x" * self.payload_bytes,)))
        return Event(DOCUMENT, Element(DOCUMENT, {}, tuple(children)))

    def filters_in(self, query: int, epoch: int) -> tuple[Filter, ...]:
        """What a query asks for in an epoch."""
        if self.shuffle == "data":
            return (_filter(_word(query)),)
        return tuple(_filter(f"c{i:02}") for i, bucket in enumerate(self.members(epoch)) if query in bucket)


def _word(query: int) -> str:
    return f"q{query:03}"


@lru_cache(maxsize=1 << 14)
def _element(word: str) -> Element:
    """The element that holds the word. Documents share elements, because many hold the same words."""
    return Element("word", {}, (word,))


@lru_cache(maxsize=1 << 14)
def _filter(word: str) -> Filter:
    return Filter.where(f'word = "{word}"', type=DOCUMENT)


@lru_cache(maxsize=1024)
def _members(generator: CoddDocuments, epoch: int) -> Members:
    """A shuffle splits some buckets into two halves each and merges the halves in pairs."""
    random = Random(f"{generator.draw_seed}:buckets:{epoch}")
    if epoch == 0:
        found: list[set[int]] = [set() for _ in range(generator.buckets)]
        low, high = int(generator.query_buckets.low), int(generator.query_buckets.high)
        for query in range(generator.queries):
            for bucket in random.sample(range(generator.buckets), random.randint(low, high)):
                found[bucket].add(query)
        return tuple(map(frozenset, found))
    members = list(_members(generator, epoch - 1))
    chosen = sorted(random.sample(range(generator.buckets), generator.shuffle_buckets))
    halves: list[frozenset[int]] = []
    for bucket in chosen:
        queries = sorted(members[bucket])
        random.shuffle(queries)
        middle = len(queries) // 2
        halves += [frozenset(queries[:middle]), frozenset(queries[middle:])]
    random.shuffle(halves)
    for i, bucket in enumerate(chosen):
        members[bucket] = halves[2 * i] | halves[2 * i + 1]
    return tuple(members)


class CoddQueries(KindTable, frozen=True, tag="buckets"):
    """The queries of the CoDD paper's synthetic data: the first subscriber has the first query, and so on."""

    of: str
    'The publish entry, of kind "buckets", whose documents are asked for.'

    def draw(self, random: Random, number: int, sources: Mapping[str, Any]) -> Filter:
        source = sources[self.of]
        assert isinstance(source, CoddDocuments)
        wanted = source.filters_in(number % source.queries, 0)
        return wanted[0]

    def check(self, sources: Mapping[str, Any]) -> None:
        source = sources.get(self.of)
        if not isinstance(source, CoddDocuments):
            raise ScenarioError(f'of must name a publish entry whose events are of kind "buckets", got {self.of!r}')
        if source.shuffle != "data":
            raise ScenarioError(
                f'publish.{self.of}.events.shuffle must be "data": the subscriptions of a scenario do not change'
            )
