"""The sessions of watched nodes, read in pieces: how far each is read, and what can be forgotten.

A session is known by its spool: a node's process writes one. Where no leave is recorded (the node
was killed, or still runs), its subscriptions last until its last record: a node writes one a second.
Nodes of one network and protocol can hear each other; each such community is judged apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from earshot.pipeline.oracle.matcher import Spans
from earshot.pipeline.oracle.workloads import announcement_row
from earshot.records.details import NetworkNames
from earshot.records.sessions import Session, SessionReader

Community = tuple[str, str]
"A network and a protocol."


class WatchedSessions(SessionReader):
    """All sessions by spool; `waiting` are the spools that are not read to their end."""

    def __init__(self, networks: dict[str, str] | None = None) -> None:
        super().__init__(None, NetworkNames(networks))
        self.waiting: set[str] = set()

    def seen(self, spool: str, node: str, first: float, last: float) -> None:
        """The spool has records in first..last."""
        self.current(spool, node).seen(first, last)

    def has_more(self, spool: str, more: bool) -> None:
        """Note whether the spool is not read to its end: then the watermark waits for it."""
        (self.waiting.add if more else self.waiting.discard)(spool)

    def read_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Records of `SESSION_KINDS`, in any order between spools, in order of time within one."""
        for row in sorted(rows, key=lambda row: float(row["time"])):
            self.read(float(row["time"]), row["node"], row["kind"], row["subscription"], row["detail"], row["life"])

    @property
    def communities(self) -> list[Community]:
        """Of all sessions, each once."""
        return sorted({(session.network, session.protocol) for session in self})

    def community_of(self) -> list[tuple[str, str, str]]:
        """Each spool, its network and its protocol."""
        return [(spool, some[-1].network, some[-1].protocol) for spool, some in self.sessions.items()]

    def present_nodes(self) -> set[str]:
        """The nodes that have not left."""
        return {some[-1].node for some in self.sessions.values() if not some[-1].left}

    def spans(self, workload: Callable[[str, str], str]) -> Spans:
        """The subscription spans of each community; `workload` names it by network and protocol."""
        found: dict[str, list[Any]] = {}
        for session in self:
            for spans in session.subscriptions.values():
                found.setdefault(workload(session.network, session.protocol), []).extend(_ended(spans, session))
        return found

    def announcement_rows(self, workload: Callable[[str, str], str]) -> list[dict[str, Any]]:
        """Rows of the table `announcements`."""
        return [
            announcement_row(workload(session.network, session.protocol), span)
            for session in self
            for spans in session.announcements.values()
            for span in _ended(spans, session)
        ]

    def watermark(self, delay_s: float) -> float:
        """No record from before this time is expected. Sessions that are read to their end may be late by
        the delay; the others hold the watermark until they are read."""
        newest = max((session.last for session in self), default=-math.inf)
        behind = (self.sessions[spool][-1].last for spool in self.waiting if spool in self.sessions)
        return min(newest - delay_s, min(behind, default=math.inf))

    def forget(self, settled: float, silent_since: float) -> None:
        """Drop what can no longer matter: sessions that ended before all open events, sessions that have
        been silent for long, and spans that ended."""
        for spool, some in list(self.sessions.items()):
            if spool not in self.waiting:
                over = [session.left or session is not some[-1] for session in some]
                some[:] = [
                    session
                    for session, ended in zip(some, over, strict=True)
                    if session.last >= (settled if ended else silent_since)
                ]
            if not some:
                del self.sessions[spool]
            for session in some:
                session.forget(settled)


def _ended(spans: Sequence[Any], session: Session) -> list[Any]:
    """The spans, an open one until the session's last record."""
    return [msgspec.structs.replace(span, end=session.last) if span.end == math.inf else span for span in spans]
