"""Lives: what the spools of live nodes tell of who was there, under which protocol, wanting what.

A life is one node from its start to its stop. Its wishes stand from `subscribe` until `unsubscribe`,
until it leaves, or, where it never said that it would (it was killed, or it still runs), until its
last record: a node writes one a second. Nodes of one protocol are one network: each protocol in the
spools is judged apart.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from earshot.errors import EarshotError
from earshot.geometry import Position, Proximity, parse_shape
from earshot.pipeline.oracle.oracle import Wish
from earshot.records import Kind

UNKNOWN = "unknown"
"The protocol of a life whose start no spool tells."
DOINGS = (Kind.JOIN, Kind.LEAVE, Kind.SUBSCRIBE, Kind.UNSUBSCRIBE, Kind.ANNOUNCE, Kind.UNANNOUNCE)
"Kinds of records that lives are made of."


@dataclass(slots=True)
class Span:
    """A wish or an announcement of a life: its text, from when until when (None: as long as the life)."""

    text: str
    start: float
    end: float | None = None


@dataclass(slots=True)
class Life:
    """One node from a start to its stop."""

    node: str
    protocol: str = UNKNOWN
    settings: str = "{}"
    first: float = math.inf
    last: float = -math.inf
    left: bool = False
    more: bool = False
    "Whether more of it waits to be read: the watermark waits with it."
    wishes: dict[str, list[Span]] = field(default_factory=dict)
    "By subscription; the last one may still stand."
    announcements: dict[str, list[Span]] = field(default_factory=dict)


class Lives:
    """All lives by name."""

    def __init__(self, lives: dict[str, Life] | None = None) -> None:
        self.lives = lives or {}

    # -- what the records tell

    def seen(self, life: str, node: str, first: float, last: float) -> None:
        """It has records in first..last."""
        known = self.lives.setdefault(life, Life(node))
        known.first, known.last = min(known.first, first), max(known.last, last)

    def has_more(self, life: str, more: bool) -> None:
        """Whether more of it waits to be read."""
        if life in self.lives:
            self.lives[life].more = more

    def tell(self, doings: Iterable[Mapping[str, Any]]) -> None:
        """Records of the kinds in `DOINGS`, in any order between lives, in order of time within one."""
        for row in sorted(doings, key=lambda row: float(row["time"])):
            self._tell(self.lives.setdefault(row["life"], Life(row["node"])), row)

    def _tell(self, life: Life, row: Mapping[str, Any]) -> None:
        time = float(row["time"])
        match row["kind"]:
            case Kind.JOIN:
                told = json.loads(row["detail"])
                life.protocol, life.settings = told["protocol"], json.dumps(told.get("settings", {}), sort_keys=True)
            case Kind.LEAVE:
                life.left = True
                for span in _standing(life.wishes) + _standing(life.announcements):
                    span.end = time
            case Kind.SUBSCRIBE:
                _begin(life.wishes, row["subscription"], Span(row["detail"], time))
            case Kind.UNSUBSCRIBE:
                _end(life.wishes, row["subscription"], time)
            case Kind.ANNOUNCE:
                subject, proximity = _announced(row["detail"])
                _begin(life.announcements, subject, Span(proximity, time))
            case Kind.UNANNOUNCE:
                _end(life.announcements, row["detail"], time)

    # -- what is asked of them

    @property
    def protocols(self) -> list[str]:
        """Of all lives, each once."""
        return sorted({life.protocol for life in self.lives.values()})

    def wishes(self, workload: str = "{}") -> Iterator[Wish]:
        """All wishes; `workload` names a protocol's network, with {} for the protocol."""
        for life in self.lives.values():
            for subscription, spans in life.wishes.items():
                for span in spans:
                    end = life.last if span.end is None else span.end
                    network = workload.format(life.protocol)
                    yield Wish(network, subscription, life.node, span.text, None, span.start, end)

    def announcement_rows(self, workload: str) -> Iterator[dict[str, Any]]:
        """Rows of the table `announcements`."""
        for life in self.lives.values():
            for subject, spans in life.announcements.items():
                for span in spans:
                    yield {
                        "workload": workload.format(life.protocol),
                        "node": life.node,
                        "type": subject,
                        "proximity": span.text or None,
                        "start": span.start,
                        "end": life.last if span.end is None else span.end,
                    }

    def watermark(self, delay_s: float) -> float:
        """No record from before it is expected any more: those who are read to the end are waited for a
        delay, those of whom more is there until it is read."""
        if not self.lives:
            return -math.inf
        newest = max(life.last for life in self.lives.values())
        behind = min((life.last for life in self.lives.values() if life.more), default=math.inf)
        return min(newest - delay_s, behind)

    def forget(self, settled: float, silent_since: float) -> None:
        """Drop what can matter no more: lives that left before all that is open, those that have said
        nothing for long, and wishes that ended."""
        for name, life in list(self.lives.items()):
            if not life.more and life.last < (settled if life.left else silent_since):
                del self.lives[name]
                continue
            for spans in (life.wishes, life.announcements):
                for key, some in list(spans.items()):
                    spans[key] = [span for span in some if span.end is None or span.end >= settled]
                    if not spans[key]:
                        del spans[key]


def _standing(spans: Mapping[str, list[Span]]) -> list[Span]:
    return [some[-1] for some in spans.values() if some[-1].end is None]


def _begin(spans: dict[str, list[Span]], key: str, span: Span) -> None:
    _end(spans, key, span.start)
    spans.setdefault(key, []).append(span)


def _end(spans: dict[str, list[Span]], key: str, time: float) -> None:
    if (some := spans.get(key)) and some[-1].end is None:
        some[-1].end = time


def _announced(detail: str) -> tuple[str, str]:
    """The subject, and the proximity as the table has it; simulated nodes name the subject alone."""
    try:
        told = json.loads(detail)
        if "shape" not in told:
            return str(told["subject"]), ""
        proximity = Proximity(parse_shape(told["shape"]), Position(told["x_m"], told["y_m"]), told["mobile"])
        return str(told["subject"]), msgspec.json.encode(proximity).decode()
    except (ValueError, KeyError, TypeError, EarshotError):
        return detail, ""
