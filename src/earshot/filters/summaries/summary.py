"""Summaries: what many subscriptions want, in few bytes, with false positives and never a false negative.

Yoneki and Bacon's four structures (section III.C, `structures.py`), one section an event type. Summaries merge
across subscriptions and brokers; one that exceeds its budget is coarsened: it then wants more, never less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from earshot.errors import MalformedPacket, UsageError
from earshot.events import Event
from earshot.filters.filter import Filter
from earshot.filters.summaries.bloom import BloomShape, type_key
from earshot.filters.summaries.clauses import Clause, EventFacts, KnownFacts, clauses_of
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.sections import EVERYTHING, TypeSection
from earshot.filters.summaries.summary_bytes import BitReader, BitWriter, read_section, write_section

SUMMARY_VERSION = 1
MAX_SUMMARY_BYTES = 1 << 16
SMALLEST_BUDGET = 16
"A summary that wants everything fits in this many bytes."

ANY_TYPE = 0
"The key of the section for filters without a type."

DEFAULT_SHAPE = BloomShape.for_rate(items=64, rate=0.01)
"Vectors for 64 texts a name at 1 %; all brokers of a network must use one shape."


@dataclass(frozen=True)
class Summary:
    """Sections by the event type's key. A value: `merged` and `within` give new ones."""

    sections: dict[int, TypeSection]
    shape: BloomShape = DEFAULT_SHAPE

    @classmethod
    def of(cls, filters: Iterable[Filter], shape: BloomShape = DEFAULT_SHAPE) -> Summary:
        """What any of these filters wants."""
        by_type: dict[int, dict[Clause, None]] = {}
        for filter in filters:
            for clause in clauses_of(filter):
                key = ANY_TYPE if clause.type is None else type_key(clause.type)
                by_type.setdefault(key, {})[clause] = None
        return cls({key: TypeSection.of(clauses, shape) for key, clauses in sorted(by_type.items())}, shape)

    @classmethod
    def of_everything(cls, shape: BloomShape = DEFAULT_SHAPE) -> Summary:
        """It wants every event."""
        return cls({ANY_TYPE: EVERYTHING}, shape)

    def __bool__(self) -> bool:
        """Whether it wants anything."""
        return bool(self.sections)

    def may_match(self, event: Event) -> bool:
        """False only where no summarised filter matches the event."""
        return self._may_match(EventFacts.of(event))

    def may_match_digest(self, digest: Digest) -> bool:
        """The same of an event known by its digest; less precise where the digest knows less."""
        return self._may_match(digest)

    def _may_match(self, facts: KnownFacts) -> bool:
        for key in (facts.type, ANY_TYPE):
            section = self.sections.get(key)
            if section is not None and section.passes(facts):
                return True
        return False

    def merged(self, other: Summary) -> Summary:
        """What either wants."""
        if self.shape != other.shape:
            raise UsageError(f"summaries of shapes {self.shape} and {other.shape} cannot be merged; use one shape")
        sections = dict(self.sections)
        for key, theirs in other.sections.items():
            sections[key] = sections[key].merged(theirs) if key in sections else theirs
        return replace(self, sections=dict(sorted(sections.items())))

    def about(self, types: Iterable[int]) -> Summary:
        """The part that concerns events of the types with these keys."""
        wanted = {*types, ANY_TYPE}
        return replace(self, sections={key: part for key, part in self.sections.items() if key in wanted})

    def wanting_all(self, types: Iterable[int]) -> Summary:
        """This summary, wanting every event of those of its own types that have these keys."""
        whole = {key: EVERYTHING for key in types if key in self.sections}
        return replace(self, sections=self.sections | whole)

    def without_combinations(self) -> Summary:
        """The paper's four structures alone: which values belong together is lost."""
        return _each(self, TypeSection.without_combinations)

    # Bytes.

    def to_bytes(self) -> bytes:
        """A version byte, the shape, then the sections."""
        writer = BitWriter()
        writer.unsigned(SUMMARY_VERSION, 1)
        writer.unsigned(_shape_byte(self.shape), 1)
        writer.count(len(self.sections))
        for key, section in sorted(self.sections.items()):
            writer.unsigned(key, 4)
            write_section(writer, section)
        return bytes(writer.data)

    @classmethod
    def from_bytes(cls, data: bytes, shape: BloomShape = DEFAULT_SHAPE) -> Summary:
        """Read a peer's summary; MalformedPacket where it is of another version or shape, or broken."""
        if len(data) > MAX_SUMMARY_BYTES:
            raise MalformedPacket(f"a summary has {len(data):,} bytes; at most {MAX_SUMMARY_BYTES:,} are read")
        reader = BitReader(data, "summary")
        version = reader.unsigned(1)
        if version != SUMMARY_VERSION:
            raise MalformedPacket(f"a summary has version {version}, this node reads {SUMMARY_VERSION}")
        if reader.unsigned(1) != _shape_byte(shape):
            raise MalformedPacket(
                f"a summary has another shape than this network's {shape.bits} bits, {shape.hashes} hashes"
            )
        sections: dict[int, TypeSection] = {}
        for _ in range(reader.count(MAX_SUMMARY_BYTES // 5)):
            key = reader.unsigned(4)
            if key in sections:
                raise MalformedPacket("a summary holds one type twice")
            sections[key] = read_section(reader, shape)
        reader.end()
        return cls(sections, shape)

    def within(self, budget_bytes: int) -> Summary:
        """This summary, coarsened step by step until its bytes fit: it may want more, never less."""
        if budget_bytes < SMALLEST_BUDGET:
            raise UsageError(f"a summary's budget is at least {SMALLEST_BUDGET} bytes, got {budget_bytes}")
        for coarser in _ladder(self):
            if len(coarser.to_bytes()) <= budget_bytes:
                return coarser
        return Summary.of_everything(self.shape)


def _shape_byte(shape: BloomShape) -> int:
    return (shape.bits.bit_length() - 4) << 4 | (shape.hashes - 1)


# Coarsening: each step gives up the detail that is worth least for its bytes.


def _ladder(summary: Summary) -> Iterator[Summary]:
    """From the summary itself to one that wants every event of its types.

    Combinations are worth most, so the constraints on single names are coarsened first. Where even folded combinations
    do not fit, they are dropped, and the constraints start complete again.
    """
    yield summary
    coarser = summary
    for most in (16, 8, 4, 2, 1):
        yield (coarser := _each(coarser, partial(TypeSection.bridged, most=most)))
    for _ in range(6):
        yield (coarser := _each(coarser, TypeSection.folded))
    for _ in range(6):
        yield (coarser := _each(coarser, _folded_combinations))
    yield (coarser := summary.without_combinations())
    for _ in range(4):
        yield (coarser := _each(coarser, TypeSection.folded))
    for most in (64, 32, 16, 8, 4):
        yield (coarser := _each(coarser, partial(TypeSection.bridged, most=most)))
    yield (coarser := _each(coarser, TypeSection.without_rows))
    yield (coarser := _each(coarser, partial(TypeSection.bridged, most=1)))
    for _ in range(10):
        yield (coarser := _each(coarser, TypeSection.folded))
    yield _each(coarser, lambda _: EVERYTHING)


def _each(summary: Summary, coarser: Callable[[TypeSection], TypeSection]) -> Summary:
    return replace(summary, sections={key: coarser(section) for key, section in summary.sections.items()})


def _folded_combinations(section: TypeSection) -> TypeSection:
    return replace(section, combinations=section.combinations and section.combinations.folded())
