"""What brokers report of their subscriptions, as sources and forwarding nodes keep it.

A report is a summary with its stamp; while the summary does not change, the stamp alone is sent. A node
that has not heard the summary that belongs to a stamp assumes that its reporter wants everything: a lost
report costs airtime, never an event.
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
from earshot.protocols.common.byte_budget import TableBudgets
from earshot.protocols.common.soft_table import SoftTable
from earshot.wire import Whole, Word

UNKNOWN = ""
"Stands for the reporters that a full table has no room for."
AGGREGATE = "+"
"Ends the name under which a node reports for many."


class SummaryReport(msgspec.Struct, frozen=True, array_like=True):
    """A broker's summary, or only its stamp where the summary has not changed."""

    reporter: Word
    stamp: Whole
    summary: bytes = b""


def full_report(reporter: str, summary: bytes) -> SummaryReport:
    """A report that carries the summary itself."""
    return SummaryReport(reporter, zlib.crc32(summary), summary)


REMEMBERED_BYTES = 4096
"Longer summaries are read each time: a cache of them could fill the memory."


def read_summary(data: bytes, shape: BloomShape) -> Summary:
    """A peer's summary; MalformedPacket where it cannot be read. Cached: every round repeats the same bytes."""
    return _remembered(data, shape) if len(data) <= REMEMBERED_BYTES else Summary.from_bytes(data, shape)


_remembered = lru_cache(maxsize=4096)(Summary.from_bytes)


@dataclass(frozen=True, slots=True)
class Reporter:
    """A reporter's latest summary; None while only its stamp is known."""

    stamp: int
    summary: Summary | None

    def wants(self, event: Event) -> bool:
        return self.summary is None or self.summary.may_match(event)

    def wants_digest(self, digest: Digest) -> bool:
        return self.summary is None or self.summary.may_match_digest(digest)


class ReportTable:
    """Reporters and what they want, each until it falls silent.

    A reporter for which there is no room is not simply forgotten, since it would miss events: `UNKNOWN` stands for it.
    """

    def __init__(self, capacity: int, shape: BloomShape, budgets: TableBudgets | None = None) -> None:
        self.capacity = capacity
        self.table: SoftTable[str, Reporter] = SoftTable(capacity + 1, budgets)
        "One more place for `UNKNOWN`."
        self.shape = shape

    def __len__(self) -> int:
        return len(self.table)

    def hear(self, report: SummaryReport, now: float, until: float) -> None:
        """Keep what the report states; a reporter that wants nothing any longer is removed."""
        known = self.table.get(report.reporter, now)
        if known is not None and known.stamp == report.stamp and (known.summary is not None or not report.summary):
            self.table.put(report.reporter, known, until)
            return
        summary = read_summary(report.summary, self.shape) if report.summary else None
        if summary is not None and not summary:
            self.table.pop(report.reporter)
        elif known is None and not self._has_room(report.reporter):
            self.table.forget(now)
            kept = self._has_room(report.reporter)
            reporter = Reporter(report.stamp, summary if kept else None)
            self.table.put(report.reporter if kept else UNKNOWN, reporter, until)
        else:
            self.table.put(report.reporter, Reporter(report.stamp, summary), until)

    def _has_room(self, reporter: str) -> bool:
        """Whether one more reporter may be kept, with the place of `UNKNOWN` left free."""
        return len(self.table) < self.capacity and self.table.has_bytes_for(reporter, UNKNOWN)

    def wanting(self, event: Event, now: float) -> frozenset[str]:
        """The reporters that may want the event."""
        return frozenset(name for name, reporter in self.table.items(now) if reporter.wants(event))

    def wanting_digest(self, digests: Iterable[Digest], now: float) -> frozenset[str]:
        """The reporters that may want an event with one of these digests."""
        asked = list(digests)
        return frozenset(name for name, reporter in self.table.items(now) if any(map(reporter.wants_digest, asked)))

    def vague(self, reporters: Iterable[str], now: float) -> bool:
        """Whether one of them reports for many, or is not known: then what they want together does not
        show what each of them wants."""
        for name in reporters:
            reporter = self.table.get(name, now)
            if name.endswith(AGGREGATE) or reporter is None or reporter.summary is None:
                return True
        return False

    def merged(self, local: Summary, now: float) -> Summary:
        """What the reporters and local subscribers want together; everything where a reporter's summary is missing."""
        found = local
        for _, reporter in self.table.items(now):
            found = found.merged(Summary.of_everything(self.shape) if reporter.summary is None else reporter.summary)
        return found

    def wants(self, event: Event, now: float) -> bool:
        """Whether any reporter may want the event."""
        return any(reporter.wants(event) for _, reporter in self.table.items(now))


def fitting(
    reports: Iterable[SummaryReport], node: str, budget_bytes: int, shape: BloomShape
) -> tuple[SummaryReport, ...]:
    """Reports that fit a packet: as they are, or all summaries merged into one in the node's name,
    coarsened where even that is too large (section III.C: a broker that serves many aggregates)."""
    aggregator = node + AGGREGATE
    given = sorted(reports, key=lambda report: report.reporter)
    if _size(given) <= budget_bytes:
        return tuple(given)
    stubs = [report for report in given if not report.summary]
    merged = Summary({}, shape)
    for report in given:
        if report.summary:
            merged = merged.merged(read_summary(report.summary, shape))
    # Stamps that do not fit either are left out: their reporters come with the next full report.
    room = max(budget_bytes // 2, budget_bytes - _size(stubs))
    whole = full_report(aggregator, merged.within(room - len(aggregator) - 10).to_bytes())
    while stubs and _size([*stubs, whole]) > budget_bytes:
        stubs.pop()
    return (*stubs, whole)


def _size(reports: Iterable[SummaryReport]) -> int:
    return sum(len(report.reporter.encode()) + 10 + len(report.summary) for report in reports)
