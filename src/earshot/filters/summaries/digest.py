"""An event's digest: what a summary needs to know of it, in at most 64 bytes.

A version byte, the event type's key, then names with the fingerprints of their texts and their
numbers in 32 bits, shallow names first. Elements that hold elements are named without a value.
Names that do not fit are in a small Bloom filter; an advertisement's digest leaves everything open.
Where a digest does not know, it answers yes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from earshot.errors import MalformedPacket
from earshot.events import Element, Event
from earshot.filters.summaries.bloom import Bloom, BloomShape, type_key
from earshot.filters.summaries.clauses import ANYTHING, EventFacts, FingerprintedValues, Span, Values
from earshot.filters.summaries.summary_bytes import BitReader, BitWriter, rounded_down, rounded_up

DIGEST_VERSION = 1
DIGEST_BYTES = 64
"A digest's largest size."
_OPEN, _PARTIAL = 0x10, 0x20
"Flags beside the version: anything may be there; names that did not fit are in the Bloom filter at the end."
_REST = BloomShape(128, 2)
_HEADER = 7

_TEXT, _NUMBER, _ABOUT, _NAME = range(4)
"What an entry holds: a text; a text and its number; a text and its rounded number; only the name."
_SIZES = (5, 9, 9, 2)


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: int
    key: int
    fingerprint: int = 0
    number: float = 0.0

    def write(self, writer: BitWriter) -> None:
        writer.unsigned(self.key, 2)
        if self.kind != _NAME:
            writer.unsigned(self.fingerprint, 3)
        if self.kind in (_NUMBER, _ABOUT):
            writer.number(self.number)


@dataclass(frozen=True)
class Digest:
    """The bytes and their meaning. Two digests of the same bytes are equal."""

    data: bytes

    @classmethod
    def of(cls, event: Event) -> Digest:
        """The event's digest."""
        known = event.__dict__.get("_digest")
        if not isinstance(known, Digest):
            known = event.__dict__["_digest"] = cls(_written(EventFacts.of(event)))
        return known

    @classmethod
    def of_type(cls, type: str) -> Digest:
        """The digest of an advertisement: any event of this type."""
        return cls(bytes([DIGEST_VERSION | _OPEN]) + type_key(type).to_bytes(4, "little"))

    @classmethod
    def from_bytes(cls, data: bytes) -> Digest:
        """A peer's digest; MalformedPacket where it cannot be read."""
        digest = cls(bytes(data))
        digest._read  # noqa: B018 reading is the check
        return digest

    @property
    def type(self) -> int:
        """The event type's key."""
        return int.from_bytes(self.data[1:5], "little")

    @property
    def open(self) -> bool:
        """Whether it represents any event of its type."""
        return bool(self.data[0] & _OPEN)

    def values(self, key: int) -> Values | None:
        """The values of the name with this key."""
        if self.open or key == self.type & 0xFFFF:
            return ANYTHING
        named, rest = self._read
        found = named.get(key)
        if rest is not None and key in rest:
            return ANYTHING
        return found

    @cached_property
    def _read(self) -> tuple[dict[int, Values], Bloom | None]:
        if len(self.data) > DIGEST_BYTES:
            raise MalformedPacket(f"a digest has {len(self.data)} bytes; at most {DIGEST_BYTES} are read")
        reader = BitReader(self.data, "digest")
        head = reader.unsigned(1)
        if head & 0x0F != DIGEST_VERSION or head & ~(0x0F | _OPEN | _PARTIAL):
            raise MalformedPacket(f"a digest has version {head}, this node reads {DIGEST_VERSION}")
        reader.raw(4)
        if head & _OPEN:
            reader.end()
            return {}, None
        counts = reader.unsigned(2)
        texts: dict[int, set[int]] = {}
        spans: dict[int, list[Span]] = {}
        vague: set[int] = set()
        for kind in range(4):
            for _ in range(counts >> kind * 4 & 15):
                key = reader.unsigned(2)
                if kind == _NAME:
                    vague.add(key)
                    continue
                texts.setdefault(key, set()).add(reader.unsigned(3))
                if kind != _TEXT:
                    spans.setdefault(key, []).append(_span(reader, kind))
        rest = Bloom(_REST, reader.raw(_REST.bits // 8)) if head & _PARTIAL else None
        reader.end()
        named: dict[int, Values] = {
            key: FingerprintedValues(frozenset(prints), _hull(spans.get(key, ()))) for key, prints in texts.items()
        }
        return named | dict.fromkeys(vague, ANYTHING), rest


def _written(facts: EventFacts) -> bytes:
    entries = _entries(facts)
    room = DIGEST_BYTES - _HEADER
    kept: list[_Entry] = entries
    left: set[int] = set()
    if sum(_SIZES[entry.kind] for entry in entries) > room or max(_counts(entries)) > 15:
        kept, left = _fitting(entries, room - _REST.bits // 8)
    writer = BitWriter()
    writer.unsigned(DIGEST_VERSION | (_PARTIAL if left else 0), 1)
    writer.unsigned(facts.type, 4)
    writer.unsigned(sum(count << kind * 4 for kind, count in enumerate(_counts(kept))), 2)
    for entry in sorted(kept, key=lambda entry: (entry.kind, entry.key, entry.fingerprint)):
        entry.write(writer)
    if left:
        writer.data += Bloom.of(_REST, left).data
    return bytes(writer.data)


def _counts(entries: list[_Entry]) -> list[int]:
    """How many entries there are of each kind."""
    return [sum(entry.kind == kind for entry in entries) for kind in range(4)]


def _entries(facts: EventFacts) -> list[_Entry]:
    """One entry a text, shallow names first; the root is known by the type."""
    found: list[_Entry] = []
    for key, several in facts.named.items():
        if key == facts.type & 0xFFFF:
            continue
        vague = any(isinstance(value, Element) and value.elements for value in several)
        values = None if vague else facts.values(key)
        if values is None or values.anything:
            found.append(_Entry(_NAME, key))
            continue
        texts = sorted(values.fingerprints)
        found += [_valued(key, texts[0], values.span), *(_Entry(_TEXT, key, text) for text in texts[1:])]
        if values.span is not None and values.span[0] != values.span[1]:
            found += [_valued(key, texts[0], (values.span[1], values.span[1]))]
    return found


def _valued(key: int, text: int, span: Span | None) -> _Entry:
    if span is None:
        return _Entry(_TEXT, key, text)
    number = span[0]
    near = rounded_down(number)
    if math.isinf(near) and not math.isinf(number):
        near = rounded_up(number)
    return _Entry(_NUMBER if near == number else _ABOUT, key, text, near)


def _fitting(entries: list[_Entry], room: int) -> tuple[list[_Entry], set[int]]:
    """The names that fit with all their entries; the keys of those that do not."""
    by_key: dict[int, list[_Entry]] = {}
    for entry in entries:
        by_key.setdefault(entry.key, []).append(entry)
    kept: list[_Entry] = []
    left: set[int] = set()
    free = [15] * len(_SIZES)
    for key, several in by_key.items():
        size = sum(_SIZES[entry.kind] for entry in several)
        if size > room or any(
            sum(one.kind == kind for one in several) > free[kind] for kind in {e.kind for e in several}
        ):
            left.add(key)
            continue
        kept += several
        room -= size
        for entry in several:
            free[entry.kind] -= 1
    return kept, left


def _span(reader: BitReader, kind: int) -> Span:
    number = reader.number()
    if kind == _NUMBER:
        return number, number
    return _neighbour(number, -1), _neighbour(number, 1)


def _neighbour(number: float, direction: int) -> float:
    """The next number of 32 bits in a direction: what was rounded to this number lies between its neighbours."""
    step = math.nextafter(number, math.inf * direction)
    return rounded_up(step) if direction > 0 else rounded_down(step)


def _hull(spans: list[Span] | tuple[()]) -> Span | None:
    return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
