"""What brokers report of their subscriptions, as sources and forwarding nodes keep it.

A report is a summary with its stamp; while neither changes, the stamp alone is sent. Whoever has
not heard the summary that belongs to a stamp takes its reporter to want everything: a lost report
costs airtime, never an event.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from earshot.events import Event
from earshot.filters.summaries.bloom import BloomShape
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.summary import Summary
from earshot.protocols.common.soft_table import SoftTable

UNKNOWN = ""
"Stands for the reporters a full table has no place for."
AGGREGATE = "+"
"Ends the name under which a node reports for many."


class Report(msgspec.Struct, frozen=True, array_like=True):
    """A broker's summary, or only its stamp where the summary has not changed."""

    reporter: str
    stamp: int
    summary: bytes = b""


def full_report(reporter: str, summary: bytes) -> Report:
    """A report that carries the summary itself."""
    return Report(reporter, zlib.crc32(summary), summary)


@lru_cache(maxsize=8192)
def read_summary(data: bytes, shape: BloomShape) -> Summary:
    """A peer's summary, read once; MalformedPacket where it cannot be."""
    return Summary.from_bytes(data, shape)


@lru_cache(maxsize=8192)
def read_digest(data: bytes) -> Digest:
    """A peer's digest, read once; MalformedPacket where it cannot be."""
    return Digest.from_bytes(data)


@dataclass(frozen=True, slots=True)
class Known:
    """A reporter's summary; None while only its stamp is known."""

    stamp: int
    summary: Summary | None

    def wants(self, event: Event) -> bool:
        return self.summary is None or self.summary.may_match(event)

    def wants_digest(self, digest: Digest) -> bool:
        return self.summary is None or self.summary.may_match_digest(digest)


class ReportTable:
    """Reporters and what they want, each until it falls silent."""

    def __init__(self, capacity: int, shape: BloomShape) -> None:
        self.capacity = capacity
        self.table: SoftTable[str, Known] = SoftTable(capacity + 1)
        "One more place for `UNKNOWN`."
        self.shape = shape
        self.version = 0
        "Rises whenever someone wants something else than before."

    def __len__(self) -> int:
        return len(self.table)

    def hear(self, report: Report, now: float, until: float) -> None:
        """Keep what the report says; a summary that wants nothing is kept by forgetting its reporter."""
        known = self.table.get(report.reporter, now)
        if known is not None and known.stamp == report.stamp and (known.summary is not None or not report.summary):
            self.table.put(report.reporter, known, until)
            return
        self.version += 1
        summary = read_summary(report.summary, self.shape) if report.summary else None
        if summary is not None and not summary:
            self.table.pop(report.reporter)
        elif known is None and len(self.table) >= self.capacity:
            self.table.forget(now)
            kept = len(self.table) < self.capacity
            self.table.put(report.reporter if kept else UNKNOWN, Known(report.stamp, summary if kept else None), until)
        else:
            self.table.put(report.reporter, Known(report.stamp, summary), until)

    def wanting(self, event: Event, now: float) -> frozenset[str]:
        """The reporters that may want the event."""
        return frozenset(reporter for reporter, known in self.table.items(now) if known.wants(event))

    def wanting_digest(self, digests: Iterable[Digest], now: float) -> frozenset[str]:
        """The reporters that may want an event of one of these digests."""
        asked = list(digests)
        return frozenset(
            reporter for reporter, known in self.table.items(now) if any(known.wants_digest(digest) for digest in asked)
        )

    def vague(self, reporters: Iterable[str], now: float) -> bool:
        """Whether one of them stands for many, or for somebody unknown: what they want together does not
        tell what each of them does."""
        for reporter in reporters:
            known = self.table.get(reporter, now)
            if reporter.endswith(AGGREGATE) or known is None or known.summary is None:
                return True
        return False

    def wants(self, event: Event, now: float) -> bool:
        """Whether any reporter may want the event."""
        return any(known.wants(event) for _, known in self.table.items(now))

    def forget(self, now: float) -> None:
        """Let go those who fell silent."""
        before = len(self.table)
        self.table.forget(now)
        self.version += before != len(self.table)


def fitting(reports: Iterable[Report], node: str, budget_bytes: int, shape: BloomShape) -> tuple[Report, ...]:
    """Reports that fit a packet: as they are, or all summaries merged into one in the node's name,
    coarsened where even that is too much (section III.C: a broker that serves many aggregates)."""
    aggregator = node + AGGREGATE
    given = sorted(reports, key=lambda report: report.reporter)
    if _size(given) <= budget_bytes:
        return tuple(given)
    stubs = [report for report in given if not report.summary]
    summaries = tuple(report.summary for report in given if report.summary)
    # Stamps that do not fit either are left out: their reporters come with the next full report.
    room = max(budget_bytes // 2, budget_bytes - _size(stubs))
    whole = full_report(aggregator, _aggregated(summaries, room - len(aggregator) - 10, shape))
    while stubs and _size([*stubs, whole]) > budget_bytes:
        stubs.pop()
    return (*stubs, whole)


@lru_cache(maxsize=2048)
def _aggregated(summaries: tuple[bytes, ...], budget_bytes: int, shape: BloomShape) -> bytes:
    """The summaries merged into one that fits; until one of them changes, every round asks for the same."""
    merged = Summary({}, shape)
    for summary in summaries:
        merged = merged.merged(read_summary(summary, shape))
    return merged.within(budget_bytes).to_bytes()


def _size(reports: Iterable[Report]) -> int:
    return sum(len(report.reporter.encode()) + 10 + len(report.summary) for report in reports)
