"""Content-based subscription over an extended ODMRP, by E. Yoneki and J. Bacon.

Join Requests carry the digest of the event to be sent; a broker compares it with the summary of its
subscriptions and joins by a Join Table that carries the summary back. From these the source sets its
multicast groups by content. Forwarding nodes pass a group's data on while their flag is set and
a reporter below them may want it; the last hop filters exactly. Where there is no route, an event travels
on the Join Request itself.

What a broker reports of its own subscriptions is in `local_summaries.py`, what is kept of others' in
`reports.py`, how a source groups its events in `groups.py`, what plain ODMRP (`odmrp.py`) does as well in
`forwarding_mesh.py`. Readings and departures: docs/papers/content-odmrp.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Literal

import msgspec

from earshot.errors import MalformedPacket, SettingsError, UsageError
from earshot.events import Event
from earshot.filters import Subscription
from earshot.filters.summaries.bloom import BloomShape
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.summary import DEFAULT_SHAPE
from earshot.geometry import Position, Velocity
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys, has_expired
from earshot.protocols.common.soft_table import SoftTable
from earshot.protocols.content_odmrp.forwarding_mesh import ForwardingMesh, MeshSettings, RouteBack, mesh_tuning
from earshot.protocols.content_odmrp.groups import ContentGroups
from earshot.protocols.content_odmrp.local_summaries import SLACK, LocalSummaries, LocalSummary, PassRates
from earshot.protocols.content_odmrp.reports import (
    AGGREGATE,
    ReportTable,
    SummaryReport,
    fitting,
    full_report,
    read_summary,
)
from earshot.protocols.machine import NOTHING, QUIET_CHANNEL, Announcement, Channel, Effects, Location, Machine, Timer
from earshot.protocols.tuning import Surroundings, Tunable
from earshot.records import DropReason
from earshot.settings import AtLeastOne, NotNegative, Positive, Share
from earshot.wire import Packet, Whole, Word


@dataclass(frozen=True, slots=True)
class ContentOdmrpSettings(MeshSettings):
    report_interval_s: Positive = 10.0
    "A broker repeats its summary at least this often, joined or not."
    stamps: bool = True
    "In between, a Join Table carries the summary's stamp alone; off: every Join Table carries the summary."
    gather_s: NotNegative = 0.05
    """A node next to the source waits this long for the Join Tables below it, nodes farther away wait less:
    a sixteenth for each hop, which should exceed a hop there and back. Waiting longer saves packets,
    and costs routes where nodes move. 0: each Join Table is passed on by itself, at once."""
    answer_wait_s: float = 0.4
    "A group whose Join Request has no answer by then has no route."
    unanswered_limit: AtLeastOne = 5
    "After this many requests in a row without any answer, events without a known subscriber wait for the refresh."
    acknowledged: bool = False
    """Join Tables go to their next hop alone, acknowledged and repeated by the radio, instead of being
    broadcast. Where packets collide or get lost this saves routes; the paper broadcasts."""
    groups_limit: AtLeastOne = 4
    "A source keeps at most this many groups; section III.D's balance between groups and content."
    group_choice: Literal["smallest", "least-constrained"] = "smallest"
    """Which group an event goes to (section III.D): the smallest that has all its subscribers, or the least
    constrained, which is one for all events of its type."""
    noise_limit: Share = 1.0
    """A group is small enough if at most this share of it does not want the event. 1: any group that has all its
    subscribers; 0: the finest groups, and the most requests. Below 1 groups are split. While forwarding nodes
    examine events, coarse groups cost no data."""
    examine: bool = True
    "Forwarding nodes examine an event and pass it on only where a reporter below them may want it."
    spare_slow_sources: bool = True
    """A source whose events come less often than `refresh_interval_s` offers no groups, so that nobody answers: each of
    its events is due for a Join Request, and its routes would expire unused."""
    advertise: bool = False
    "Advertisement mode: announcing a type floods a Join Request, so that routes exist before the first event."
    predict: bool = False
    "Mobility prediction: refresh when a link on a route is predicted to break."
    range_m: Positive = field(default=100.0, metadata={"scenario": "medium.range_m"})
    "The radio's range, for the prediction."
    refresh_min_s: float = 1.0
    "The prediction never refreshes more often."
    refresh_max_s: float = 20.0
    "The prediction never refreshes less often."
    vector_bits: int = DEFAULT_SHAPE.bits
    "Size of a summary's vectors (m), the same in the whole network."
    vector_hashes: int = DEFAULT_SHAPE.hashes
    "Hashes of a summary's vectors (k), the same in the whole network."
    value_combinations: bool = True
    "A summary also keeps which values belong together in a subscription; off: the paper's four structures alone."
    aggregate: bool = False
    "Section III.C, an option: a node next to the source reports for all nodes below it, in one summary."
    summary_bytes: int = 1000
    "A broker's summary is coarsened to this size."
    greedy_share: float = 0.8
    "A broker whose summary lets this share of all events pass reports that it wants them all. Above 1: never."
    packet_bytes: int = 1400
    "Reports beyond this size are merged into one by the node that passes them on."
    sources_limit: AtLeastOne = 256
    "How many sources a node keeps a route to."
    reports_limit: AtLeastOne = 1024
    "How many brokers' reports are kept for each source; beyond them an unknown reporter wants everything."

    def __post_init__(self) -> None:
        MeshSettings.__post_init__(self)
        self.check_shorter_than_timeout("report_interval_s")
        self.check_shorter_than_timeout("refresh_max_s")
        if self.answer_wait_s <= self.gather_s:
            raise SettingsError(f"answer_wait_s must exceed gather_s, got {self.answer_wait_s:g} and {self.gather_s:g}")
        if not 0 < self.refresh_min_s <= self.refresh_max_s:
            raise SettingsError(
                f"refresh_min_s must lie between 0 and refresh_max_s, got {self.refresh_min_s:g} "
                f"and {self.refresh_max_s:g}"
            )
        if not self.greedy_share > SLACK:
            raise SettingsError(f"greedy_share must exceed {SLACK}, got {self.greedy_share}")
        if not 32 <= self.summary_bytes <= self.packet_bytes - 100:
            raise SettingsError(
                f"summary_bytes must be at least 32 and leave 100 of packet_bytes, got {self.summary_bytes} "
                f"of {self.packet_bytes}"
            )
        try:
            BloomShape(self.vector_bits, self.vector_hashes)
        except UsageError as error:
            raise SettingsError(f"vector_bits and vector_hashes: {error}") from None

    @property
    def shape(self) -> BloomShape:
        """The shape of this network's summaries."""
        return BloomShape(self.vector_bits, self.vector_hashes)


AS_WRITTEN: Final[dict[str, Any]] = {
    "jitter_s": 0.0,
    "gather_s": 0.0,
    "stamps": False,
    "examine": False,
    "spare_slow_sources": False,
    "value_combinations": False,
    "greedy_share": 1.1,
    "packet_bytes": 60_000,
}
"""The settings in which the paper's protocol differs from the defaults: Join Tables are broadcast one by one, each with
its summary in the paper's four structures, and none are merged; a forwarding node looks at its flag alone."""

PAPER = ContentOdmrpSettings(**AS_WRITTEN)


PACE_WEIGHT: Final = 0.25
"How much of a source's smoothed interval is its last one."
UNKNOWN_PACE: Final = 3.0
"A source that has not published yet counts as one that publishes once in this many refresh intervals."


class Motion(msgspec.Struct, frozen=True, array_like=True):
    """Where a sender is, how it moves, and how long the route from the source to it will last."""

    position: Position
    velocity: Velocity
    lifetime_s: float


class JoinRequest(Packet, frozen=True, tag="content-odmrp-join-request"):
    """Floods from a source: its groups with their digests, and the event that cannot wait for a route."""

    source: Word
    sequence: Whole
    hops: Whole
    offers: tuple[tuple[Whole, bytes], ...]
    event: Event | None = None
    motion: Motion | None = None


class JoinTable(Packet, frozen=True, tag="content-odmrp-join-table"):
    """Goes back to a source through `next_hop`: the groups that are joined, and reports of who wants what."""

    source: Word
    next_hop: Word
    groups: tuple[Whole, ...]
    reports: tuple[SummaryReport, ...]
    lifetime_s: float | None = None


class Data(Packet, frozen=True, tag="content-odmrp-data"):
    """An event on its way through its group's mesh; `hops` counts the transmissions, this one included."""

    group: Whole
    event: Event
    hops: Whole


def hold_s(hops: int, gather_s: float) -> float:
    """How long a node at this distance from the source gathers Join Tables: nodes farther away send first."""
    return gather_s * max(0.0, 1.0 - hops / 16)


def link_lifetime_s(a: Position, a_velocity: Velocity, b: Position, b_velocity: Velocity, range_m: float) -> float:
    """Seconds until the distance exceeds the range, if both nodes keep their velocity (Su, Lee, Gerla 2000).

    D = (-(ab + cd) + sqrt((a^2 + c^2) r^2 - (ad - bc)^2)) / (a^2 + c^2), with a, c the relative
    velocity and b, d the relative position. Infinite where nothing moves; 0 where they are out of range already.
    """
    x, y = a.x_m - b.x_m, a.y_m - b.y_m
    if math.hypot(x, y) > range_m:
        return 0.0
    speed_x, speed_y = a_velocity.x_m_s - b_velocity.x_m_s, a_velocity.y_m_s - b_velocity.y_m_s
    square = speed_x * speed_x + speed_y * speed_y
    if square == 0.0:
        return math.inf
    across = speed_x * y - x * speed_y
    reach = square * range_m * range_m - across * across
    return max(0.0, (-(speed_x * x + speed_y * y) + math.sqrt(max(0.0, reach))) / square)


@dataclass(frozen=True, slots=True)
class OfferedRoute(RouteBack):
    """How a source's last Join Request came, and what it offered."""

    hops: int
    offers: tuple[tuple[int, Digest], ...]
    lifetime_s: float
    heard_at: float


@dataclass(frozen=True, slots=True)
class SentReport:
    """The last full report that a source was sent, when, and through which neighbour."""

    stamp: int
    upstream: str
    at: float

    def stands(self, report: SummaryReport, route: RouteBack, since: float) -> bool:
        """Whether it says the same to the same neighbour, and was sent after this time."""
        return (self.stamp, self.upstream) == (report.stamp, route.upstream) and self.at > since


@dataclass(slots=True)
class PendingTable:
    """A Join Table that still gathers answers."""

    groups: set[int] = field(default_factory=set)
    reports: dict[str, SummaryReport] = field(default_factory=dict)
    lifetime_s: float = math.inf

    def add(self, groups: set[int], reports: Iterable[SummaryReport], lifetime_s: float) -> None:
        """Add an answer; a stamp alone does not replace the summary it belongs to."""
        self.groups |= groups
        self.lifetime_s = min(self.lifetime_s, lifetime_s)
        for report in reports:
            known = self.reports.get(report.reporter)
            if known is None or report.summary or known.stamp != report.stamp:
                self.reports[report.reporter] = report


class PublishingPace:
    """How often a source publishes: the smoothed time between two events. It begins slow, so that only a source with
    several events in short order counts as fast."""

    def __init__(self, refresh_interval_s: float) -> None:
        self.interval_s = UNKNOWN_PACE * refresh_interval_s
        self._last_at: float | None = None

    def published(self, now: float) -> None:
        if self._last_at is not None:
            self.interval_s += PACE_WEIGHT * (now - self._last_at - self.interval_s)
        self._last_at = now


class ContentOdmrp(Machine):
    name = "content-odmrp"
    paper = "Yoneki, Bacon: An Adaptive Approach to Content-Based Subscription in Mobile Ad Hoc Networks (2004)"
    Settings = ContentOdmrpSettings

    def __init__(
        self,
        node: str,
        settings: ContentOdmrpSettings,
        location: Location,
        random: Random,
        channel: Channel = QUIET_CHANNEL,
    ) -> None:
        super().__init__(node, settings, location, random, channel)
        self.settings: ContentOdmrpSettings = settings
        self.shape = settings.shape
        self.mesh: ForwardingMesh[str, OfferedRoute, tuple[str, int]] = ForwardingMesh(
            settings,
            random,
            self.budgets,
            routes_limit=settings.sources_limit,
            flags_limit=settings.sources_limit * settings.groups_limit,
        )
        "Routes by source, flags by source and group."
        self.subscriptions = LocalSubscriptions()
        # As a source.
        self.pace = PublishingPace(settings.refresh_interval_s)
        self.requested_at: float | None = None
        self.offers = True
        "Whether the last Join Request offered groups, so that brokers could answer it."
        self.unanswered = 0
        "Join Requests since the last answer."
        self.reports = ReportTable(settings.reports_limit, self.shape, self.budgets)
        self.groups = ContentGroups(
            settings.groups_limit, settings.noise_limit, settings.answer_wait_s, settings.group_choice, self.reports
        )
        self.predicted_s: float | None = None
        "The shortest lifetime among the routes that answered the last Join Request; None where none has."
        self.announced: set[str] = set()
        # As a receiver.
        pass_rates = PassRates(settings.greedy_share, settings.sources_limit)
        self.local_summaries = LocalSummaries(
            node, self.subscriptions, self.shape, settings.summary_bytes, settings.value_combinations, pass_rates
        )
        self.sent_reports: SoftTable[str, SentReport] = SoftTable(settings.sources_limit, self.budgets)
        "By source."
        self.pending: dict[str, PendingTable] = {}
        "By source."
        # As a forwarding node.
        self.below: dict[str, ReportTable] = {}
        "By source: the reports that came through this node."
        self.passed_up = RecentKeys(settings.memory, self.budgets)
        "What was passed on of Join Tables, by round."

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:
        follows = {"forwarding_timeout_s": 5.0, "refresh_max_s": 4.0, "report_interval_s": 2.0}
        return mesh_tuning(around, follows)

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        # Ordered by how often they come; most are duplicates, or for other nodes.
        if type(packet) is Data:
            if not self.mesh.heard.add(packet.event.id):
                return NOTHING
            self.on_data(packet, now)
        elif type(packet) is JoinRequest:
            if not self.mesh.heard.add((packet.source, packet.sequence)):
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
                self.report_change(now)
            case "advertise":
                self.advertise(now)
            case "forget":
                self.expire(now)
            case _:
                self._effects += self.mesh.jittered.wake(timer)
        return self.effects()

    # What applications do.

    def start(self, now: float) -> Effects:
        self.mesh.start(now)
        return NOTHING

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.subscriptions.add(subscription, now)
        return self._subscriptions_changed(now)

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        self.subscriptions.remove(subscription)
        return self._subscriptions_changed(now)

    def _subscriptions_changed(self, now: float) -> Effects:
        """Section III.D: sources learn of it at once; several changes at one time make one Join Table."""
        self.local_summaries.changed()
        if len(self.mesh.routes):
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
        """An event that nobody wants is not sent, except where a Join Request is due anyway."""
        self.mesh.heard.add(event.id)
        self.pace.published(now)
        wanting = self.reports.wanting(event, now)
        due = self._refresh_due(now)
        if wanting or due or self._may_still_be_answered():
            self.send_to_group(event, wanting, due, now)
        else:
            self.drop(DropReason.NO_SUBSCRIBER, event.id)
        return self.effects()

    def _may_still_be_answered(self) -> bool:
        """Before the first answers no reporter is known, although there may be subscribers."""
        return not len(self.reports) and 0 < self.unanswered < self.settings.unanswered_limit

    def send_to_group(self, event: Event, wanting: frozenset[str], due: bool, now: float) -> None:
        """As data to the group of those who want it; on a Join Request where one is due or there is no route."""
        group = self.groups.choose(Digest.of(event), event.type, wanting, now)
        if due or not self.groups.has_route(group, now):
            self.send_join_request(event, now)
        else:
            self.broadcast(Data(group.id, event, 1))

    # Section III.E, Join Request.

    def _refresh_due(self, now: float) -> bool:
        """Every interval; with prediction, when the first link on a route to a member is about to break."""
        if self.requested_at is None or not self.offers:
            return True
        settings = self.settings
        interval_s = settings.refresh_interval_s
        if settings.predict and self.predicted_s is not None:
            interval_s = min(max(self.predicted_s, settings.refresh_min_s), settings.refresh_max_s)
        return now - self.requested_at >= interval_s

    def send_join_request(self, event: Event | None, now: float) -> None:
        """The source floods the digests of what is to be sent, and the event that cannot wait."""
        self.groups.regroup(now, self.settings.forwarding_timeout_s)
        self.requested_at = now
        self.offers = not self._is_slow()
        self.unanswered += self.offers
        self.predicted_s = None
        self.mesh.sequence += 1
        self.mesh.heard.add((self.node, self.mesh.sequence))
        motion = self._motion(math.inf, now)
        offers = self.groups.offered(now) if self.offers else ()
        self.broadcast(JoinRequest(self.node, self.mesh.sequence, 1, offers, event, motion))
        self._effects += self.mesh.expire_later(now)

    def _is_slow(self) -> bool:
        """Whether routes would be out of date before this source used them."""
        settings = self.settings
        refreshes = settings.advertise or settings.predict or not settings.spare_slow_sources
        return not refreshes and self.pace.interval_s >= settings.refresh_interval_s

    def advertise(self, now: float) -> None:
        """Advertisement mode: a group for every event of each announced type, refreshed while it is announced."""
        if not self.announced:
            return
        for subject in sorted(self.announced):
            digest = Digest.of_type(subject)
            self.groups.choose(digest, subject, self.reports.wanting_digest([digest], now), now)
        if self._refresh_due(now):
            self.send_join_request(None, now)
        self.start_timer("advertise", at=now + self.settings.refresh_interval_s)

    def on_join_request(self, request: JoinRequest, sender: str, now: float) -> None:
        """Remember the route back, pass the request on, join the groups that local subscribers want."""
        try:
            offers = tuple((group, Digest.from_bytes(digest)) for group, digest in request.offers)
        except MalformedPacket:
            self.drop(DropReason.MALFORMED_DIGEST)
            return
        source, sequence, hops, event = request.source, request.sequence, request.hops, request.event
        lifetime_s = self._route_lifetime_s(request.motion, now)
        route = OfferedRoute(sender, sequence, hops, offers, lifetime_s, now)
        self._effects += self.mesh.keep_route(source, route, now)
        if event is not None and self.mesh.heard.add(event.id):
            self.deliver_local(event, hops, now)
            self.local_summaries.count(event)
        if self._may_matter_beyond(event, offers, now):
            onward = JoinRequest(source, sequence, hops + 1, request.offers, event, self._motion(lifetime_s, now))
            self._effects.append(self.mesh.pass_on(onward, hops, event, now))
        self.join(source, route, now)

    def _may_matter_beyond(self, event: Event | None, offers: tuple[tuple[int, Digest], ...], now: float) -> bool:
        """Whether nodes that hear this node may need the request. Not if everything it offers is of the event's
        type, and the event's area ends more than a radio's range away: until the next request is due nobody comes
        from there."""
        if event is None or event.area is None:
            return True
        area, here = event.area, self.location.position(now)
        if area.at.distance_to(here) <= area.shape.reach_m + self.settings.range_m:
            return True
        type_of_event = Digest.of_type(event.type).type
        return any(digest.type != type_of_event for _, digest in offers)

    def _motion(self, lifetime_s: float, now: float) -> Motion | None:
        if not self.settings.predict:
            return None
        return Motion(self.location.position(now), self.location.velocity(now), min(lifetime_s, 1e6))

    def _route_lifetime_s(self, motion: Motion | None, now: float) -> float:
        """How long the route from the source to this node will last: as long as its shortest-lived link."""
        if motion is None:
            return math.inf
        here, velocity = self.location.position(now), self.location.velocity(now)
        link_s = link_lifetime_s(motion.position, motion.velocity, here, velocity, self.settings.range_m)
        return min(motion.lifetime_s, link_s)

    # Section III.E, Join Table.

    def join(self, source: str, route: OfferedRoute, now: float, changed: bool = False) -> None:
        """Compare the offered digests with the local summary, join the groups that may match, and report."""
        local = self.local_summaries.about(frozenset(digest.type for _, digest in route.offers))
        groups = {group for group, digest in route.offers if local.stated.may_match_digest(digest)}
        report = self.due_report(source, route, local, bool(groups), changed, now)
        if report is not None:
            self._answer(source, route, groups, [report], route.lifetime_s, now)

    def due_report(
        self, source: str, route: OfferedRoute, local: LocalSummary, joins: bool, changed: bool, now: float
    ) -> SummaryReport | None:
        """What a Join Table to this source states; None if there is nothing to state. A broker that joins nothing, but
        wants other events of the type, reports now and then: by its report the source decides where they go."""
        last = self.sent_reports.get(source, now)
        if last is not None and last.stands(local.report, route, now - self.settings.report_interval_s):
            if not joins:
                return None
            return SummaryReport(self.node, local.report.stamp) if self.settings.stamps else local.report
        if not local.stated and not (changed and last is not None):
            return None
        self.sent_reports.put(source, SentReport(local.report.stamp, route.upstream, now), self.mesh.until(now))
        return local.report

    def report_change(self, now: float) -> None:
        """Local subscriptions have changed: report to every source with a known route, without waiting."""
        for source, route in list(self.mesh.routes.items(now)):
            self.join(source, route, now, changed=True)
            if source in self.pending:
                self.send_join_table(source, now)

    def _answer(
        self,
        source: str,
        route: OfferedRoute,
        groups: set[int],
        reports: Iterable[SummaryReport],
        lifetime_s: float,
        now: float,
    ) -> None:
        """Into the Join Table that gathers what answers the last request; later updates do not wait, and as written
        nothing does."""
        if source not in self.pending:
            self.pending[source] = PendingTable()
            if self.settings.gather_s > 0.0:
                gathered_at = route.heard_at + hold_s(route.hops, self.settings.gather_s)
                self.start_timer(("join-table", source), at=max(now, gathered_at))
        self.pending[source].add(groups, reports, lifetime_s)
        if self.settings.gather_s == 0.0:
            self.send_join_table(source, now)

    def send_join_table(self, source: str, now: float) -> None:
        """One Join Table for everything gathered, to the next node on the route to the source."""
        pending = self.pending.pop(source, None)
        if self.settings.gather_s > 0.0:
            self.cancel_timer(("join-table", source))
        route = self.mesh.routes.get(source, now)
        if pending is None or route is None:
            return
        settings = self.settings
        reports = fitting(self._stated(source, pending, route, now), self.node, settings.packet_bytes, self.shape)
        lifetime_s = pending.lifetime_s if settings.predict else None
        table = JoinTable(source, route.upstream, tuple(sorted(pending.groups)), reports, lifetime_s)
        peer = route.upstream if settings.acknowledged else None
        self._effects.append(self.mesh.jittered.send(table, now, peer))

    def _stated(self, source: str, pending: PendingTable, route: OfferedRoute, now: float) -> list[SummaryReport]:
        """What was gathered; next to the source, if it aggregates, one report for all that is known below."""
        below = self.below.get(source)
        if not self.settings.aggregate or route.hops > 1 or below is None:
            return list(pending.reports.values())
        local = self.local_summaries.about(frozenset(digest.type for _, digest in route.offers)).stated
        together = below.merged(local, now).within(self.settings.summary_bytes)
        return [full_report(self.node + AGGREGATE, together.to_bytes())]

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        """A Join Table that could not be delivered: the route is broken until the next request comes."""
        if type(packet) is JoinTable:
            route = self.mesh.routes.get(packet.source, now)
            if route is not None and route.upstream == peer:
                self.mesh.routes.pop(packet.source)
            self.sent_reports.pop(packet.source)
            self.drop(DropReason.NEXT_HOP_UNREACHABLE)
        return self.effects()

    def on_answer(self, table: JoinTable, now: float) -> None:
        """The source updates what it knows of the group's subscriptions."""
        self.unanswered = 0
        for report in table.reports:
            self.reports.hear(report, now, until=self.mesh.until(now))
        self.groups.answered(table.groups, now)
        if table.lifetime_s is not None:
            known_s = math.inf if self.predicted_s is None else self.predicted_s
            self.predicted_s = min(known_s, table.lifetime_s)
        self._effects += self.mesh.expire_later(now)

    # Section III.E, build mesh.

    def on_join_table(self, table: JoinTable, now: float) -> None:
        """A node that is named sets its flag for the groups, and names the next node."""
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
        route = self.mesh.routes.get(table.source, now)
        if route is None:
            self.drop(DropReason.UNKNOWN_SOURCE)
            return
        below = self.below.setdefault(table.source, ReportTable(self.settings.reports_limit, self.shape, self.budgets))
        for report in table.reports:
            below.hear(report, now, self.mesh.until(now))
        for group in table.groups:
            self.mesh.flags.put((table.source, group), True, self.mesh.until(now))
        self._pass_up(table, route, now)

    def _pass_up(self, table: JoinTable, route: OfferedRoute, now: float) -> None:
        """What this round has not passed on yet goes into this node's own Join Table."""
        round_of = (table.source, route.sequence)
        groups = {group for group in table.groups if self.passed_up.add((*round_of, group))}
        reports = [
            report
            for report in table.reports
            if self.passed_up.add((*round_of, report.reporter, report.stamp, bool(report.summary)))
        ]
        if groups or reports:
            lifetime_s = math.inf if table.lifetime_s is None else table.lifetime_s
            self._answer(table.source, route, groups, reports, lifetime_s, now)

    # Section III.E, data forwarding.

    def on_data(self, data: Data, now: float) -> None:
        """Pass on while the flag is set, and where a reporter below may want the event."""
        event = data.event
        if not self.deliver_local(event, data.hops, now):
            return
        if not self.mesh.flags.holds((event.source, data.group), now):
            return
        below = self.below.get(event.source)
        if self.settings.examine and (below is None or not below.wants(event, now)):
            return
        self._effects.append(self.mesh.pass_on(Data(data.group, event, data.hops + 1), data.hops, event, now))

    def deliver_local(self, event: Event, hops: int, now: float) -> bool:
        """To local subscribers, by the exact filter; False where the event is too old to go on."""
        if has_expired(event, self.settings.lifespan_s, now):
            self.drop(DropReason.EXPIRED, event.id)
            return False
        self.subscriptions.deliver_local(self, event, hops, now)
        return True

    # Section III.E, route and subscription maintenance.

    def expire(self, now: float) -> None:
        """Remove what was not refreshed."""
        self.sent_reports.forget(now)
        for reports in (self.reports, *self.below.values()):
            reports.table.forget(now)
        self.below = {source: reports for source, reports in self.below.items() if len(reports)}
        timeout_s = self.settings.forwarding_timeout_s
        self.groups.regroup(now, timeout_s)
        ends = [reports.table.first_end for reports in (self.reports, *self.below.values())]
        first_other_end = min(self.sent_reports.first_end, self.groups.first_end(timeout_s), *ends)
        self._effects += self.mesh.expire(now, first_other_end)
