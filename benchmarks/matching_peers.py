"""What `matching.py` measures: generated conjunctions and events, and the peers that match them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import getitem, iand
from typing import Any

import numpy as np
from bitarray.util import ones
from lxml import etree

from earshot import Filter
from earshot.filters.language.syntax import And, Compare, Comparison, Field

TEXTS = [f"t{number}" for number in range(10)]
NUMBERS = [f"n{number}" for number in range(10)]
NAMES = TEXTS + NUMBERS

Predicate = tuple[str, str, Any, Any]
"A name, `=` and a text, or a name, `in` and the two ends of a range."
Conjunction = tuple[Predicate, ...]
Content = dict[str, Any]
Match = Callable[[Content], set[str]]


@dataclass(frozen=True)
class Workload:
    """Conjunctions of two or three predicates, half on texts and half on numbers, over twenty attributes."""

    filters: int
    texts: int
    "Different texts an attribute may have."
    width: float
    "How much of all numbers a range takes in, on average."
    numbers: int = 100
    "Different numbers an attribute may have; 0 for any fraction."

    def subscriptions(self) -> dict[str, Conjunction]:
        chance = random.Random(7)
        return {f"subscription-{number}": self.conjunction(chance) for number in range(self.filters)}

    def conjunction(self, chance: random.Random) -> Conjunction:
        names = chance.sample(NAMES, chance.choice((2, 3)))
        return tuple(self._text(name, chance) if name in TEXTS else self._range(name, chance) for name in names)

    def _text(self, name: str, chance: random.Random) -> Predicate:
        return (name, "=", f"v{chance.randrange(self.texts)}", None)

    def _range(self, name: str, chance: random.Random) -> Predicate:
        width = self.width * chance.uniform(0.5, 1.5)
        low = chance.uniform(0.0, 1.0 - width)
        if not self.numbers:
            return (name, "in", low, low + width)
        return (name, "in", float(round(low * self.numbers)), float(round((low + width) * self.numbers)))

    def contents(self, count: int) -> list[Content]:
        chance = random.Random(8)
        return [self._content(chance) for _ in range(count)]

    def _content(self, chance: random.Random) -> Content:
        content: Content = {name: f"v{chance.randrange(self.texts)}" for name in TEXTS}
        for name in NUMBERS:
            content[name] = chance.randrange(self.numbers) if self.numbers else chance.random()
        return content

    def values(self, name: str) -> list[Any]:
        """All values an attribute may have."""
        return [f"v{number}" for number in range(self.texts)] if name in TEXTS else list(range(self.numbers))


def filter_of(conjunction: Conjunction) -> Filter:
    terms: list[Compare] = []
    for name, op, low, high in conjunction:
        if op == "=":
            terms.append(Compare(Field(name), Comparison.EQ, low))
        else:
            terms += [Compare(Field(name), Comparison.GE, low), Compare(Field(name), Comparison.LE, high)]
    return Filter(And(tuple(terms)))


def where_of(conjunction: Conjunction) -> str:
    """The conjunction as people write it."""
    return " and ".join(
        f'{name} = "{low}"' if op == "=" else f"{name} in {low!r}..{high!r}" for name, op, low, high in conjunction
    )


def loop(subscriptions: dict[str, Conjunction]) -> Match:
    """What one would write without an index."""
    filters = list(subscriptions.items())

    def match(content: Content) -> set[str]:
        found = set()
        for key, predicates in filters:
            for name, op, low, high in predicates:
                value = content.get(name)
                if value is None:
                    break
                if op == "=":
                    if value != low:
                        break
                elif not low <= value <= high:
                    break
            else:
                found.add(key)
        return found

    return match


def lxml_xpaths(subscriptions: dict[str, Conjunction]) -> Callable[[etree._Element], set[str]]:
    """One compiled XPath a filter, on the event as a document."""
    compiled = [(key, etree.XPath(f"boolean({xpath_of(one)})")) for key, one in subscriptions.items()]

    def match(document: etree._Element) -> set[str]:
        return {key for key, xpath in compiled if xpath(document)}

    return match


def xpath_of(conjunction: Conjunction) -> str:
    terms = [
        f"{name}='{low}'" if op == "=" else f"{name}>={low!r} and {name}<={high!r}"
        for name, op, low, high in conjunction
    ]
    return f"/e[{' and '.join(terms)}]"


def document_of(content: Content) -> etree._Element:
    root = etree.Element("e")
    for name, value in content.items():
        etree.SubElement(root, name).text = str(value)
    return root


def slots_meeting(subscriptions: dict[str, Conjunction], workload: Workload) -> dict[str, dict[Any, list[int]]]:
    """For each attribute and value, the filters with a predicate on the attribute that the value meets."""
    predicates: dict[str, list[tuple[int, Predicate]]] = {name: [] for name in NAMES}
    for slot, conjunction in enumerate(subscriptions.values()):
        for predicate in conjunction:
            predicates[predicate[0]].append((slot, predicate))
    return {
        name: {
            value: [
                slot for slot, (_, op, low, high) in several if (value == low if op == "=" else low <= value <= high)
            ]
            for value in workload.values(name)
        }
        for name, several in predicates.items()
    }


def slots_asking(subscriptions: dict[str, Conjunction]) -> dict[str, set[int]]:
    asking: dict[str, set[int]] = {name: set() for name in NAMES}
    for slot, conjunction in enumerate(subscriptions.values()):
        for name, *_ in conjunction:
            asking[name].add(slot)
    return asking


def integer_bitmaps(subscriptions: dict[str, Conjunction], workload: Workload) -> Match:
    """Per attribute a table value -> bitmap of filters that may match, and-ed; made once, never changed."""
    keys, asking = list(subscriptions), slots_asking(subscriptions)
    everyone = set(range(len(keys)))
    rows = {
        name: {value: _integer((everyone - asking[name]) | set(slots), len(keys)) for value, slots in table.items()}
        for name, table in slots_meeting(subscriptions, workload).items()
    }

    def match(content: Content) -> set[str]:
        left = -1
        for name, value in content.items():
            left &= rows[name][value]
        found = set()
        while left:
            slot = left.bit_length() - 1
            found.add(keys[slot])
            left ^= 1 << slot
        return found

    return match


def _integer(slots: set[int], size: int) -> int:
    bits = bytearray(size // 8 + 1)
    for slot in slots:
        bits[slot >> 3] |= 1 << (slot & 7)
    return int.from_bytes(bits, "little")


def numpy_bitmaps(subscriptions: dict[str, Conjunction], workload: Workload) -> Match:
    """The same with numpy, in the fewest calls. It knows the names and their order, and every value."""
    keys, asking = np.array(list(subscriptions), object), slots_asking(subscriptions)
    everyone, size = set(range(len(keys))), len(keys) // 8 + 1
    met_by = slots_meeting(subscriptions, workload)
    rows = [
        {
            value: _integer((everyone - asking[name]) | set(slots), len(keys)).to_bytes(size, "little")
            for value, slots in met_by[name].items()
        }
        for name in NAMES
    ]
    row, boolean, both = np.dtype((np.uint8, (size,))), np.dtype(np.bool_), np.bitwise_and.reduce

    def match(content: Content) -> set[str]:
        left = both(np.frombuffer(b"".join(map(getitem, rows, content.values())), row))
        slots = np.unpackbits(left, None, None, "little").view(boolean).nonzero()[0]
        return set(keys.take(slots).tolist())

    return match


def bitarray_bitmaps(subscriptions: dict[str, Conjunction], workload: Workload) -> Match:
    """The same with bitarray: what an index without numba would reach if it did nothing else."""
    keys, asking = list(subscriptions), slots_asking(subscriptions)
    rows = []
    for name, table in slots_meeting(subscriptions, workload).items():
        rows.append({value: ones(len(keys)) for value in table})
        for value, slots in table.items():
            for slot in asking[name].difference(slots):
                rows[-1][value][slot] = 0

    def match(content: Content) -> set[str]:
        left = reduce(iand, map(getitem, rows, content.values()), ones(len(keys)))
        return set(map(keys.__getitem__, left.search(1)))

    return match


def roaring_bitmaps(subscriptions: dict[str, Conjunction], workload: Workload) -> Match:
    """The same with roaring bitmaps."""
    from pyroaring import BitMap

    keys, asking = list(subscriptions), slots_asking(subscriptions)
    everyone = set(range(len(keys)))
    rows = {
        name: {value: BitMap((everyone - asking[name]) | set(slots)) for value, slots in table.items()}
        for name, table in slots_meeting(subscriptions, workload).items()
    }

    def match(content: Content) -> set[str]:
        left = BitMap.intersection(*[rows[name][value] for name, value in content.items()])
        return {keys[slot] for slot in left}

    return match


def compiled_counting(subscriptions: dict[str, Conjunction], workload: Workload) -> Match:
    """Count the predicates met, a filter, in machine code; made once, never changed."""
    from numba import njit

    keys = np.array(list(subscriptions), object)
    needed = np.array([len(conjunction) for conjunction in subscriptions.values()], np.uint8)
    postings, starts, places = [], [0], {}
    for name, table in slots_meeting(subscriptions, workload).items():
        for value, slots in table.items():
            places[name, value] = len(starts) - 1
            postings += slots
            starts.append(len(postings))
    flat, bounds = np.array(postings, np.int32), np.array(starts, np.int64)
    counts, met = np.zeros(len(keys), np.uint8), np.zeros(len(keys), np.int64)

    @njit
    def count(wanted, flat, bounds, needed, counts, met):  # type: ignore[no-untyped-def]
        found = 0
        for place in wanted:
            for i in range(bounds[place], bounds[place + 1]):
                slot = flat[i]
                counts[slot] += 1
                if counts[slot] == needed[slot]:
                    met[found] = slot
                    found += 1
        for place in wanted:
            for i in range(bounds[place], bounds[place + 1]):
                counts[flat[i]] = 0
        return found

    def match(content: Content) -> set[str]:
        wanted = np.array([places[item] for item in content.items()])
        return set(keys[met[: count(wanted, flat, bounds, needed, counts, met)]].tolist())

    return match
