"""Content-based subscription over an extended ODMRP, by E. Yoneki and J. Bacon.

Join Requests carry the digest of the event to be sent; a broker compares it with the summary of its
subscriptions and joins by a Join Table that carries the summary back. From these the source sets its
multicast groups by content. Forwarding nodes pass a group's data on while their flag stands and
someone below them may want it; the last hop filters exactly. Where no route stands, an event rides
on the Join Request itself.

What a broker tells of its own subscriptions is in `own_summaries.py`, what is kept of others' in `reports.py`,
how a source groups its events in `content_groups.py`. Readings and departures: docs/papers/content-odmrp.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

from earshot.errors import MalformedPacket
from earshot.events import Event
from earshot.filters import Subscription
from earshot.filters.summaries.digest import Digest
from earshot.protocols.common.jitter import Jitter
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, has_expired
from earshot.protocols.common.soft_table import SoftTable
from earshot.protocols.content_odmrp.groups import Groups
from earshot.protocols.content_odmrp.link_lifetime import link_lifetime_s
from earshot.protocols.content_odmrp.local_summaries import OwnSummaries
from earshot.protocols.content_odmrp.packets import Data, JoinRequest, JoinTable, Motion
from earshot.protocols.content_odmrp.reports import Report, ReportTable, fitting, read_digest, read_summary
from earshot.protocols.content_odmrp.settings import ContentOdmrpSettings
from earshot.protocols.machine import NOTHING, Announcement, Effects, Location, Machine, Timer
from earshot.records import DropReason
from earshot.wire import Packet


def hold_s(hops: int, gather_s: float) -> float:
    """How long a node so many hops from the source gathers Join Tables: those farther away send first."""
    return gather_s * max(0.0, 1.0 - hops / 16)


@dataclass(frozen=True, slots=True)
class Route:
    """How a source's last Join Request came, and what it offered."""

    upstream: str
    sequence: int
    hops: int
    offers: tuple[tuple[int, Digest], ...]
    lifetime_s: float
    heard_at: float

    @property
    def types(self) -> frozenset[int]:
        return frozenset(digest.type for _, digest in self.offers)


@dataclass(frozen=True, slots=True)
class Told:
    """What a source was last told of our subscriptions, when, and by which way."""

    stamp: int
    upstream: str
    at: float


@dataclass(slots=True)
class Pending:
    """A Join Table in the making."""

    groups: set[int] = field(default_factory=set)
    reports: dict[str, Report] = field(default_factory=dict)
    lifetime_s: float = math.inf

    def add(self, report: Report) -> None:
        """Take a report in; a stamp alone does not replace the summary it belongs to."""
        known = self.reports.get(report.reporter)
        if known is None or report.summary or known.stamp != report.stamp:
            self.reports[report.reporter] = report


class ContentOdmrp(Machine):
    name = "content-odmrp"
    paper = "Yoneki, Bacon: An Adaptive Approach to Content-Based Subscription in Mobile Ad Hoc Networks (2004)"
    medium = "radio"
    Settings = ContentOdmrpSettings

    def __init__(self, node: str, settings: ContentOdmrpSettings, location: Location, random: Random) -> None:
        super().__init__(node, settings, location, random)
        self.settings: ContentOdmrpSettings = settings
        self.shape = settings.shape
        self.subscriptions = LocalSubscriptions()
        self.own = OwnSummaries(node, settings, self.subscriptions)
        self.heard = RecentKeys(settings.memory)
        "Join Requests and events that were dealt with."
        self.passed = RecentKeys(settings.memory)
        "What was passed on of Join Tables, by round."
        self.soon = Jitter(self, settings.jitter_s, random, settings.memory)
        self.forgetting = False
        # As a source.
        self.sequence = 0
        self.requested_at: float | None = None
        self.unanswered = 0
        "Join Requests since the last answer."
        self.reports = ReportTable(settings.reports_limit, self.shape)
        self.groups = Groups(settings.groups_limit, settings.noise_limit, settings.answer_wait_s, self.reports)
        self.predicted_s: float | None = None
        "The shortest lifetime among the routes that answered the last Join Request; None where none has."
        self.announced: set[str] = set()
        # As a receiver and a forwarding node.
        self.routes: SoftTable[str, Route] = SoftTable(settings.sources_limit)
        "By source."
        self.flags: SoftTable[tuple[str, int], bool] = SoftTable(settings.sources_limit * settings.groups_limit)
        "FG_Flag, by source and group."
        self.below: dict[str, ReportTable] = {}
        "By source: the reports that came through us."
        self.told: SoftTable[str, Told] = SoftTable(settings.sources_limit)
        "By source."
        self.pending: dict[str, Pending] = {}
        "By source: the Join Table that waits for others to come in."

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        # The order of how often they come; most are duplicates, or not for us.
        if type(packet) is Data:
            if packet.event.id in self.heard.keys:
                return NOTHING
            self.heard.add(packet.event.id)
            self.on_data(packet, now)
        elif type(packet) is JoinRequest:
            if not self.heard.add((packet.source, packet.sequence)):
                return NOTHING
            self.on_join_request(packet, sender, now)
        elif type(packet) is JoinTable and packet.next_hop == self.node:
            self.on_join_table(packet, now)
        else:
            return NOTHING
        return self.effects()

    def wake(self, timer: Timer, now: float) -> Effects:
        match timer:
            case ("join-table", str(source)):
                self.send_join_table(source, now)
            case "changed":
                self.tell_sources(now)
            case "advertise":
                self.advertise(now)
            case "forget":
                self.forget(now)
            case _:
                self.soon.wake(timer)
        return self.effects()

    # What applications do.

    def start(self, now: float) -> Effects:
        # Numbers go on rising through a restart, so that nobody takes new requests for old ones.
        self.sequence = int(now * 1000)
        return NOTHING

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.subscriptions.add(subscription)
        return self._changed(now)

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        self.subscriptions.remove(subscription)
        return self._changed(now)

    def _changed(self, now: float) -> Effects:
        """Section III.D: sources hear of it at once; several changes at one time make one Join Table."""
        self.own.changed()
        if len(self.routes):
            self.start_timer("changed", at=now)
        return self.effects()

    def announce(self, announcement: Announcement, now: float) -> Effects:
        """Section III.E: in advertisement mode routes are set up before the first event."""
        if self.settings.advertise:
            self.announced.add(announcement.event_type.subject)
            self.start_timer("advertise", at=now)
        return self.effects()

    def unannounce(self, subject: str, now: float) -> Effects:
        self.announced.discard(subject)
        return NOTHING

    def publish(self, event: Event, now: float) -> Effects:
        """To the group of those who want it; on a Join Request where one is due or no route stands."""
        self.heard.add(event.id)
        wanting = self.reports.wanting(event, now)
        due = self._refresh_due(now)
        if not wanting and not due and not self._unsure():
            self.drop(DropReason.NO_SUBSCRIBER, event.id)
            return self.effects()
        group = self.groups.choose(Digest.of(event), event.type, wanting, now)
        if due or not self.groups.stands(group, now):
            self.send_join_request(event, now)
        else:
            self.broadcast(Data(group.id, event, 1))
        return self.effects()

    # As a source.

    def _refresh_due(self, now: float) -> bool:
        """Every interval; with prediction, when the first link on the way to a member is about to break."""
        if self.requested_at is None:
            return True
        settings = self.settings
        interval_s = settings.refresh_interval_s
        if settings.predict and self.predicted_s is not None:
            interval_s = min(max(self.predicted_s, settings.refresh_min_s), settings.refresh_max_s)
        return now - self.requested_at >= interval_s

    def _unsure(self) -> bool:
        """Whether nobody is known because nobody has answered yet, rather than because nobody is there."""
        return not len(self.reports) and 0 < self.unanswered < self.settings.unanswered_limit

    def send_join_request(self, event: Event | None, now: float) -> None:
        """Section III.E, Join Request: the digests of what is to be sent, and the event that cannot wait."""
        self.groups.regroup(now, self.settings.forwarding_timeout_s)
        self.sequence += 1
        self.requested_at = now
        self.unanswered += 1
        self.predicted_s = None
        self.heard.add((self.node, self.sequence))
        motion = self._motion(math.inf, now)
        self.broadcast(JoinRequest(self.node, self.sequence, 1, self.groups.offered(now), event, motion))
        self._forget_later(now)

    def advertise(self, now: float) -> None:
        """A group for every event of each announced type, refreshed while it is announced."""
        if not self.announced:
            return
        for subject in sorted(self.announced):
            digest = Digest.of_type(subject)
            self.groups.choose(digest, subject, self.reports.wanting_digest([digest], now), now)
        if self._refresh_due(now):
            self.send_join_request(None, now)
        self.start_timer("advertise", at=now + self.settings.refresh_interval_s)

    def on_answer(self, table: JoinTable, now: float) -> None:
        """Section III.E: the source updates what it knows of the group's subscriptions."""
        self.unanswered = 0
        for report in table.reports:
            self.reports.hear(report, now, until=now + self.settings.forwarding_timeout_s)
        self.groups.answered(table.groups, now)
        if table.lifetime_s is not None:
            known_s = math.inf if self.predicted_s is None else self.predicted_s
            self.predicted_s = min(known_s, table.lifetime_s)
        self._forget_later(now)

    # As a receiver.

    def on_join_request(self, request: JoinRequest, sender: str, now: float) -> None:
        """Section III.E: remember the way back, pass the request on, join the groups we want."""
        try:
            offers = tuple((group, read_digest(digest)) for group, digest in request.offers)
        except MalformedPacket:
            self.drop(DropReason.MALFORMED_DIGEST)
            return
        lifetime_s = self._lifetime(request.motion, now)
        route = Route(sender, request.sequence, request.hops, offers, lifetime_s, now)
        if self.routes.put(request.source, route, now + self.settings.forwarding_timeout_s):
            self.drop(DropReason.TOO_MANY_SOURCES)
        self._forget_later(now)
        event = request.event
        if event is not None and self.heard.add(event.id):
            self._tell(event, request.hops, now)
            self.own.note(event)
        if request.hops < self.settings.hop_limit:
            motion = self._motion(lifetime_s, now)
            onwards = JoinRequest(request.source, request.sequence, request.hops + 1, request.offers, event, motion)
            self.soon.send(onwards, now)
        else:
            self.drop(DropReason.HOP_LIMIT, event.id if event else "")
        self.join(request.source, route, now)

    def join(self, source: str, route: Route, now: float, changed: bool = False) -> None:
        """Section III.E, Join Table: join the groups whose digest our summary may match. A broker that
        wants other events of the type reports too, now and then: the source decides by it where they go."""
        local, report = self.own.report(route.types)
        groups = {group for group, digest in route.offers if local.may_match_digest(digest)}
        told = self.told.get(source, now)
        known = told is not None and (told.stamp, told.upstream) == (report.stamp, route.upstream)
        if told is not None and known and now - told.at < self.settings.report_interval_s:
            if not groups:
                return
            report = Report(self.node, report.stamp)
        elif not local and not (changed and told is not None):
            return
        else:
            until = now + self.settings.forwarding_timeout_s
            self.told.put(source, Told(report.stamp, route.upstream, now), until)
        pending = self._pending(source, route, now)
        pending.groups |= groups
        pending.add(report)
        pending.lifetime_s = min(pending.lifetime_s, route.lifetime_s)

    def tell_sources(self, now: float) -> None:
        """Our subscriptions have changed: every source we know a way to hears of it, without waiting."""
        for source, route in list(self.routes.items(now)):
            self.join(source, route, now, changed=True)
            if source in self.pending:
                self.send_join_table(source, now)

    def _tell(self, event: Event, hops: int, now: float) -> bool:
        """Deliver the event where it is wanted, exactly; False where it is too old to go on."""
        if has_expired(event, self.settings.lifespan_s, now):
            self.drop(DropReason.EXPIRED, event.id)
            return False
        self.subscriptions.deliver_local(self, event, hops, now)
        return True

    # As a forwarding node.

    def on_join_table(self, table: JoinTable, now: float) -> None:
        """Section III.E, build mesh: who is named sets its flag for the groups, and names the next."""
        try:
            for report in table.reports:
                if report.summary:
                    read_summary(report.summary, self.shape)
        except MalformedPacket:
            self.drop(DropReason.MALFORMED_SUMMARY)
            return
        if table.source == self.node:
            self.on_answer(table, now)
            return
        route = self.routes.get(table.source, now)
        if route is None:
            self.drop(DropReason.UNKNOWN_SOURCE)
            return
        until = now + self.settings.forwarding_timeout_s
        below = self.below.setdefault(table.source, ReportTable(self.settings.reports_limit, self.shape))
        for report in table.reports:
            below.hear(report, now, until)
        for group in table.groups:
            self.flags.put((table.source, group), True, until)
        self._pass_up(table, route, now)

    def _pass_up(self, table: JoinTable, route: Route, now: float) -> None:
        """What this round has not yet passed on goes into our own Join Table."""
        round_of = (table.source, route.sequence)
        groups = [group for group in table.groups if self.passed.add((*round_of, group))]
        reports = [
            report
            for report in table.reports
            if self.passed.add((*round_of, report.reporter, report.stamp, bool(report.summary)))
        ]
        if not groups and not reports:
            return
        pending = self._pending(table.source, route, now)
        pending.groups.update(groups)
        for report in reports:
            pending.add(report)
        if table.lifetime_s is not None:
            pending.lifetime_s = min(pending.lifetime_s, table.lifetime_s)

    def _pending(self, source: str, route: Route, now: float) -> Pending:
        """The Join Table that gathers what answers the last request; later news do not wait."""
        if source not in self.pending:
            self.pending[source] = Pending()
            gathered_at = route.heard_at + hold_s(route.hops, self.settings.gather_s)
            self.start_timer(("join-table", source), at=max(now, gathered_at))
        return self.pending[source]

    def send_join_table(self, source: str, now: float) -> None:
        """One Join Table for all that came in, to the next node on the way to the source."""
        pending = self.pending.pop(source, None)
        self.cancel_timer(("join-table", source))
        route = self.routes.get(source, now)
        if pending is None or route is None:
            return
        settings = self.settings
        reports = fitting(pending.reports.values(), self.node, settings.packet_bytes, self.shape)
        lifetime_s = pending.lifetime_s if settings.predict else None
        table = JoinTable(source, route.upstream, tuple(sorted(pending.groups)), reports, lifetime_s)
        self.soon.send(table, now, peer=route.upstream if settings.acknowledged else None)

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        """A Join Table that could not be delivered: the way back is broken until the next request comes."""
        if type(packet) is JoinTable:
            route = self.routes.get(packet.source, now)
            if route is not None and route.upstream == peer:
                self.routes.pop(packet.source)
            self.told.pop(packet.source)
            self.drop(DropReason.NEXT_HOP_UNREACHABLE)
        return self.effects()

    def on_data(self, data: Data, now: float) -> None:
        """Section III.E, data forwarding: while the flag stands, and where someone below may want it."""
        event = data.event
        if not self._tell(event, data.hops, now) or not self.flags.holds((event.source, data.group), now):
            return
        if self.settings.examine:
            below = self.below.get(event.source)
            if below is None or not below.wants(event, now):
                return
        if data.hops < self.settings.hop_limit:
            self.soon.send(Data(data.group, event, data.hops + 1), now)
        else:
            self.drop(DropReason.HOP_LIMIT, event.id)

    # Mobility prediction.

    def _motion(self, lifetime_s: float, now: float) -> Motion | None:
        if not self.settings.predict:
            return None
        return Motion(self.location.position(now), self.location.velocity(now), min(lifetime_s, 1e6))

    def _lifetime(self, motion: Motion | None, now: float) -> float:
        """How long the way from the source to us will last: as long as its shortest-lived link."""
        if motion is None:
            return math.inf
        here, velocity = self.location.position(now), self.location.velocity(now)
        link_s = link_lifetime_s(motion.position, motion.velocity, here, velocity, self.settings.range_m)
        return min(motion.lifetime_s, link_s)

    # Forgetting.

    def _forget_later(self, now: float) -> None:
        if not self.forgetting:
            self.forgetting = True
            self.start_timer("forget", at=now + self.settings.forwarding_timeout_s)

    def forget(self, now: float) -> None:
        """Let go what was not refreshed."""
        for soft in (self.routes, self.flags, self.told):
            soft.forget(now)
        for reports in (self.reports, *self.below.values()):
            reports.forget(now)
        self.below = {source: reports for source, reports in self.below.items() if len(reports)}
        self.groups.regroup(now, self.settings.forwarding_timeout_s)
        first_end = min(
            self.routes.first_end,
            self.flags.first_end,
            self.told.first_end,
            self.groups.first_end(self.settings.forwarding_timeout_s),
            *(reports.table.first_end for reports in (self.reports, *self.below.values())),
        )
        self.forgetting = first_end < math.inf
        if self.forgetting:
            self.start_timer("forget", at=first_end)
