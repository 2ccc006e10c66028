"""Sessions: which nodes were present, under which protocol, and what they subscribed to and announced.

A session is one node's presence from its join to its leave. `SessionReader` is fed the records of the
kinds in `SESSION_KINDS` in order of time, and keeps the sessions with their subscription spans and
announcement spans. The applications of a live node start and stop with it, so their spans end with the
session; those of a simulated node outlast its absence, so the node's next session takes them over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from earshot.geometry import Area, Proximity
from earshot.records.details import (
    STOPPED,
    UNKNOWN_NETWORK,
    NetworkNames,
    announcement_name,
    read_announce,
    read_join,
    read_subscribe,
)
from earshot.records.schema import Kind

Interval = tuple[float, float]
"From a start until just before an end."
UNKNOWN = "unknown"
"The protocol of a session whose join was not recorded."
SESSION_KINDS = (Kind.JOIN, Kind.LEAVE, Kind.SUBSCRIBE, Kind.UNSUBSCRIBE, Kind.ANNOUNCE, Kind.UNANNOUNCE)
"Kinds of records that sessions are made of."


class SubscriptionSpan(msgspec.Struct, omit_defaults=True):
    """A node's subscription from its start until just before its end; a filter as text."""

    node: str
    subscription: str
    filter: str
    region: Area | None = None
    start: float = 0.0
    end: float = math.inf

    def during(self, intervals: Sequence[Interval]) -> Iterator[SubscriptionSpan]:
        """The parts of the span that lie in the intervals."""
        for since, until in intervals:
            start, end = max(self.start, since), min(self.end, until)
            if start < end:
                yield SubscriptionSpan(self.node, self.subscription, self.filter, self.region, start, end)


class AnnouncementSpan(msgspec.Struct, omit_defaults=True):
    """What a node announces, and within which proximity (None: everywhere), from its start until its end."""

    node: str
    type: str
    proximity: Proximity | None = None
    start: float = 0.0
    end: float = math.inf
    producer: str = ""
    "Which of several producers on the node announces it."

    @property
    def name(self) -> str:
        """The announcement's name, by which it is unannounced."""
        return announcement_name(self.type, self.producer)


Span = TypeVar("Span", SubscriptionSpan, AnnouncementSpan)


class Session(msgspec.Struct, omit_defaults=True):
    """One node from its join to its leave."""

    node: str
    protocol: str = UNKNOWN
    settings: dict[str, Any] = {}
    range_m: float | None = None
    "The emulated range, on live nodes that emulate one."
    start: float = -math.inf
    "When the node joined; minus infinity if that was not recorded."
    end: float = math.inf
    "When the node left; infinity if that was not recorded."
    first: float = math.inf
    "The times of the session's first and last record."
    last: float = -math.inf
    subscriptions: dict[str, list[SubscriptionSpan]] = {}
    "The spans of each subscription; the last span may be open."
    announcements: dict[str, list[AnnouncementSpan]] = {}
    "The spans of each announcement, by its name; the last span may be open."
    network: str = UNKNOWN_NETWORK
    "The name of the node's network (`networks`)."

    @property
    def left(self) -> bool:
        """Whether a record says that the node left."""
        return self.end != math.inf

    def seen(self, first: float, last: float) -> None:
        """Note that the session has records from `first` to `last`."""
        self.first, self.last = min(self.first, first), max(self.last, last)

    def subscribe(self, span: SubscriptionSpan) -> None:
        """Begin a span; an open span with the same id ends."""
        _begin(self.subscriptions, span.subscription, span)

    def unsubscribe(self, subscription: str, time: float) -> None:
        """End the subscription's span, if one is open."""
        _end(self.subscriptions, subscription, time)

    def announce(self, span: AnnouncementSpan) -> None:
        """Begin a span; an open span of the same type and producer ends."""
        _begin(self.announcements, span.name, span)

    def unannounce(self, name: str, time: float) -> None:
        """End the span of the announcement with this name, if one is open."""
        _end(self.announcements, name, time)

    def end_spans(self, time: float) -> None:
        """End all open spans."""
        for id in self.subscriptions:
            _end(self.subscriptions, id, time)
        for name in self.announcements:
            _end(self.announcements, name, time)

    def take_over(self, earlier: Session) -> None:
        """Move an earlier session's open spans into this one."""
        self.subscriptions = _take_open(earlier.subscriptions)
        self.announcements = _take_open(earlier.announcements)

    def forget(self, before: float) -> None:
        """Drop the spans that ended before that time."""
        self.subscriptions = _ending_after(self.subscriptions, before)
        self.announcements = _ending_after(self.announcements, before)


def _begin(spans: dict[str, list[Span]], key: str, span: Span) -> None:
    _end(spans, key, span.start)
    spans.setdefault(key, []).append(span)


def _end(spans: Mapping[str, list[Span]], key: str, time: float) -> None:
    if (some := spans.get(key)) and some[-1].end == math.inf:
        some[-1].end = time


def _take_open(spans: dict[str, list[Span]]) -> dict[str, list[Span]]:
    return {key: [some.pop()] for key, some in spans.items() if some and some[-1].end == math.inf}


def _ending_after(spans: dict[str, list[Span]], time: float) -> dict[str, list[Span]]:
    kept = {key: [span for span in some if span.end >= time] for key, some in spans.items()}
    return {key: some for key, some in kept.items() if some}


class SessionReader:
    """All sessions by a key (a node, or one process of a node); the sessions of a key are in order of time."""

    def __init__(self, sessions: dict[str, list[Session]] | None = None, networks: NetworkNames | None = None) -> None:
        self.sessions = sessions if sessions is not None else {}
        self.networks = networks or NetworkNames()

    def __iter__(self) -> Iterator[Session]:
        for some in self.sessions.values():
            yield from some

    def current(self, key: str, node: str) -> Session:
        """The last session of that key; a new session if there is none."""
        some = self.sessions.setdefault(key, [])
        if not some:
            some.append(Session(node))
        return some[-1]

    def read(self, time: float, node: str, kind: str, subscription: str, detail: str, key: str = "") -> None:
        """Read one record; without a key, the node is the key."""
        session = self.current(key or node, node)
        match kind:
            case Kind.JOIN:
                session = self._join(session, key or node, time, detail)
            case Kind.LEAVE:
                session.end = time
                if detail in ("", STOPPED):
                    session.end_spans(time)
            case Kind.SUBSCRIBE:
                wanted = read_subscribe(detail)
                session.subscribe(SubscriptionSpan(node, subscription, wanted.filter, wanted.region, time))
            case Kind.UNSUBSCRIBE:
                session.unsubscribe(subscription, time)
            case Kind.ANNOUNCE:
                announced = read_announce(detail)
                span = AnnouncementSpan(node, announced.subject, announced.proximity, time, producer=announced.producer)
                session.announce(span)
            case Kind.UNANNOUNCE:
                session.unannounce(detail, time)
        session.seen(time, time)

    def _join(self, earlier: Session, key: str, time: float, detail: str) -> Session:
        join = read_join(detail)
        session = earlier
        if earlier.start != -math.inf or earlier.left or earlier.subscriptions or earlier.announcements:
            session = Session(earlier.node)
            self.sessions[key].append(session)
            if join.starts_applications:
                earlier.end_spans(time)
            else:
                session.take_over(earlier)
        session.start = time
        session.protocol, session.settings = join.protocol or UNKNOWN, join.settings
        session.range_m = join.emulate_range_m
        session.network = self.networks.of(join.network)
        return session

    def subscription_spans(self) -> Iterator[SubscriptionSpan]:
        """The subscriptions of all sessions."""
        for session in self:
            for some in session.subscriptions.values():
                yield from some

    def announcement_spans(self) -> Iterator[AnnouncementSpan]:
        """The announcements of all sessions."""
        for session in self:
            for some in session.announcements.values():
                yield from some
