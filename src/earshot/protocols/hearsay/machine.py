"""Hearsay: an event is passed on only by a node that still knows somebody to reach.

Whoever can reach most neighbours that lack the event speaks first; the others hear it and fall silent. What was
missed is repaired when neighbours compare digests of what they hold. State is soft and one hop wide: there are no
routes, groups, trees or elections. docs/papers/hearsay.md has the rules with their reasons, and the evaluation.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import ceil, hypot, isfinite
from random import Random

from earshot.events import Event
from earshot.filters import Subscription
from earshot.geometry import Area, Circle, Position
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys
from earshot.protocols.hearsay.digest import (
    DigestSpan,
    HeldDigest,
    digest_size,
    quarter_of,
    salt_at,
    unwrapped,
    wrapped,
)
from earshot.protocols.hearsay.held_events import Copy, LiveEvent, LiveEvents
from earshot.protocols.hearsay.neighbours import KnownNeighbours, Neighbour
from earshot.protocols.hearsay.packets import (
    MOST_ALSO_SAID,
    AlsoSaid,
    HearsaySettings,
    Hello,
    Relayed,
    Said,
    SaidTogether,
)
from earshot.protocols.hearsay.reach import UNKNOWN, Reach
from earshot.protocols.machine import (
    ALONE,
    NOTHING,
    QUIET_CHANNEL,
    WITH_NEIGHBOURS,
    Channel,
    Effects,
    Location,
    Machine,
    Timer,
)
from earshot.protocols.tuning import Surroundings, Tunable, guess
from earshot.records import DropReason
from earshot.wire import Packet, size

CHECK_S = 0.5
"Rule 4: a node asks no more often than this whether it must greet early."
USUAL_SPEED_M_S = 10.0
"Rule 4: a node expects to drift no faster than this, or than twice its speed, and asks no sooner."
USUAL_FRAME_S = 0.003
"The time of a packet on air where the host cannot tell: an event at 1 Mb/s."
FARTHEST_SHARE = 0.62
"Rule 2: of a node's neighbours on a plane, at most this share is beyond the reach of a sender that the node hears."
LEAST_SHARE = 0.2
"Rule 2: on a road the best placed node reaches a smaller share anew. Nodes learn that share; it is at least this."
HELLO_BYTES = 24
"Of a hello without its digest."
SHARE_FADES = 0.98
"Rule 2: with each event a node multiplies the best share that it remembers by this."
FEW = 1.5
"Rule 2: who would reach fewer neighbours than this anew can wait: others may reach them, and repair comes."
LATE_WEIGHT = 0.05
"Rule 4: the weight of the last event in the share of events that came late, by repair."
MOST_LATE = 0.1
"Rule 4: where this share of the events or more comes late, hellos come twice as often."
BUSY = 0.5
"Rule 3: on a channel busier than this, neighbours take turns."
OCCUPIED = 0.25
"Rule 3: on a channel busier than this, a node says together what waits."
TURN_PACKETS = 2.0
"Rule 3: a node's turn comes again after the time of this many packets of each neighbour."
BUSIEST = 0.75
"A channel that is busier than this stretches waits no further: to 4 times."
ANSWER_S = 0.5
"Rule 4: a node that was alone answers the first packet that it hears with a hello, within this time."
REPAIR_BURST_S = 5.0
"Repairs may use the airtime of this many seconds at once."
LEARNT_EVENTS = 2
"The reach is learnt from at most this many events of a digest."
MOST_COPIES = 3
"Places from which an event was heard, remembered to learn the reach."
MOST_WAITING = 4096
"Events that wait to be said; more are only held, and repaired later."

Place = tuple[float, float]
Missed = tuple[str, Neighbour, float, float]
"A neighbour, the chance that it missed what was said, and the chance that it missed it and hears us."


@dataclass(slots=True)
class WaitingToSay:
    """An event that this node will say, unless others reach everybody first."""

    live: LiveEvent
    lacking: dict[str, float]
    "By neighbour, the chance that it still lacks the event."
    at: float
    "When it is to be said."

    @property
    def urgency(self) -> tuple[int, float]:
        """Of several events the one with the lowest is said first."""
        return -_priority(self.live), self.at


def longest_wait_s(neighbours: int, frame_s: float, priority: int, settings: HearsaySettings) -> float:
    """Rule 2: what the worst placed node waits that reaches more than one neighbour anew."""
    crowd = min(max(neighbours / settings.crowd, 1.0), settings.crowd_stretch)
    return settings.wait_frames * frame_s * crowd / (1.0 + max(priority, 0) / 2.0)


def wait_share(gain: float, best_gain: float, nearness: float, draw: float, settings: HearsaySettings) -> float:
    """Rule 2: the share of the longest wait for a node that reaches this many neighbours anew, where the best placed
    would reach `best_gain`. `nearness` is 1 at the sender and 0 at its range: of nodes that reach as many, the
    farthest speaks first. `draw` is uniform from 0 to 1."""
    share = 0.6 * (1.0 - min(1.0, gain / best_gain)) + 0.35 * nearness + 0.05 * draw
    return share * (settings.patience if gain < FEW else 1.0)


def hello_interval_s(neighbours: int, airtime_s: float, late_share: float, settings: HearsaySettings) -> float:
    """Rule 4: longer in a crowd, where each node is less needed, and where the hellos of the neighbourhood would take
    more than their share of the airtime; down to a half where events come late: the node depends on repair."""
    crowd = min(max(neighbours / settings.crowd, 1.0), settings.crowd_stretch)
    wanted_s = settings.hello_interval_s * crowd / (1.0 + min(late_share / MOST_LATE, 1.0))
    return max(wanted_s, (neighbours + 1) * airtime_s / settings.hello_airtime)


def near_area(area: Area, x: float, y: float, margin_m: float) -> bool:
    """Whether the place lies in the area, or no more than the margin outside it."""
    shape, at = area.shape, area.at
    if type(shape) is Circle:
        dx, dy = at.x_m - shape.reference.x_m - x, at.y_m - shape.reference.y_m - y
        return hypot(dx, dy) <= shape.radius_m + margin_m
    centre = area.centre
    dx, dy = centre.x_m - x, centre.y_m - y
    away_m = hypot(dx, dy)
    if away_m <= margin_m:
        return area.contains(centre)
    return area.contains(Position(x + dx * margin_m / away_m, y + dy * margin_m / away_m))


class Hearsay(Machine):
    name = "hearsay"
    paper = "ours: docs/papers/hearsay.md"
    Settings = HearsaySettings
    settings: HearsaySettings

    def __init__(
        self, node: str, settings: HearsaySettings, location: Location, random: Random, channel: Channel = QUIET_CHANNEL
    ) -> None:
        super().__init__(node, settings, location, random, channel)
        self.subscriptions = LocalSubscriptions()
        self.heard = RecentKeys(settings.memory, self.budgets)
        self.live = LiveEvents(settings.memory, settings.carry_bytes)
        self.neighbours = KnownNeighbours(settings.neighbour_limit)
        self.reach = Reach(settings.range_m, settings.reach_trust)
        self.waiting: dict[str, WaitingToSay] = {}
        self.repair_airtime_s = REPAIR_BURST_S * settings.repair_airtime
        "The airtime that repairs may still use."
        self.repair_counted_at = 0.0
        "When that was counted."
        self.settling_s = settings.wait_frames * settings.crowd_stretch * settings.patience * self.frame_s(300)
        "The longest wait for an event of usual size."
        longest_hello_s = self.channel.airtime_s(settings.digest_bytes + HELLO_BYTES)
        usual_s = hello_interval_s(round(settings.crowd), longest_hello_s, 0.0, settings)
        self.alone_s = settings.neighbour_hellos * usual_s
        "Who has not heard anything for longer is alone."
        self.company_at = 0.0
        "When it last heard somebody."
        self.late_share = 0.0
        "Of the events that it heard, those that came late."
        self.best_share = FARTHEST_SHARE
        "Of its neighbours, what this node lately could reach anew at best."
        self.turned_at = self.turn_at = 0.0
        "When it last passed an event on, and when it may again."
        self.started_at = 0.0
        self.hellos = 0
        self.hello_due = 0.0
        self.last_hello: Neighbour | None = None
        "This node as its neighbours see it."
        self.older_until: int | None = None
        "Rule 6: digests have covered the older spans down to this quarter of a second."

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:
        speed = max(around.median_speed_m_s, 0.1)
        hello = guess(around.range_m / (10.0 * speed), 2.0, 8.0)
        moving = f"nodes move at {speed:.2g} m/s and must not leave a tenth of the range unannounced"
        return (
            Tunable("wait_frames", 20.0, 4.0, 64.0, "longer waits save transmissions and cost latency"),
            Tunable("hello_interval_s", hello, 1.0, 16.0, moving),
            Tunable("worth", 0.2, 0.05, 0.5, "how likely a neighbour must lack an event to be spoken for"),
        )

    @classmethod
    def uses_routing(cls, settings: HearsaySettings) -> bool:
        return bool(settings.gateways)

    @classmethod
    def kept_qualities(cls, settings: HearsaySettings) -> frozenset[str]:  # noqa: ARG003
        return ALONE | WITH_NEIGHBOURS

    def start(self, now: float) -> Effects:
        self.started_at = self.repair_counted_at = self.company_at = now
        self.hello_due = now + self.random.uniform(0.0, 1.0)
        self.start_timer("check", at=self.hello_due)
        return self.effects()

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.subscriptions.add(subscription, now)
        return NOTHING

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        self.subscriptions.remove(subscription)
        return NOTHING

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        match packet:
            case Said():
                self.meet(now)
                self.on_said(packet, sender, now)
            case SaidTogether():
                self.meet(now)
                for said in packet.each():
                    self.on_said(said, sender, now)
            case Hello():
                self.meet(now)
                self.on_hello(packet, sender, now)
            case Relayed():
                self.on_relayed(packet, sender, now)
        return self.effects()

    def wake(self, timer: Timer, now: float) -> Effects:
        match timer:
            case "check":
                self.check(now)
            case ("say", str(event_id)):
                self.say(event_id, now)
            case ("relay", str(event_id)):
                self.relay(self.live.by_id.get(event_id), now)
        return self.effects()

    # Rule 1: publish.

    def publish(self, event: Event, now: float) -> Effects:
        """Broadcast it at once, and hold it for the neighbours that miss it. Who is alone only holds it."""
        self.heard.add(event.id)
        if (live := self.hold(event, 0, now)) is not None:
            if self.is_alone(now):
                live.unsaid = True
                self.greet_within(self.settings.hello_interval_s, now)
            else:
                self.speak([live], now)
            self.relay(live, now)
        return self.effects()

    def on_said(self, said: Said, sender: str, now: float) -> None:
        """An event that is new, or another copy of one."""
        if said.event.id not in self.heard.keys:
            self.on_new(said, sender, now)
        elif said.event.id in self.waiting:
            self.on_copy(said, now)

    # Rule 2: the first hearing.

    def on_new(self, said: Said, sender: str, now: float) -> None:
        """Deliver it, hold it, and wait to pass it on if that would reach somebody."""
        if said.at is not None and (known := self.neighbours.by_name.get(sender)) is not None:
            known.seen_at(said.at, now)
        live = self.first_hearing(said.event, said.hops, now)
        if live is None:
            return
        late = said.event.time < self.settled_at(now)
        self.late_share += LATE_WEIGHT * (late - self.late_share)
        self.remember_copy(live, said.at, now)
        if said.hops < self.settings.hop_limit:
            self.pass_on(live, self.missed(said.at, now), said.at, sender, now)
            if self.node in self.settings.gateways:
                self.start_timer(("relay", live.id), now + self.random.uniform(0.0, self.settings.gateway_wait_s))

    def first_hearing(self, event: Event, hops: int, now: float) -> LiveEvent | None:
        """Deliver it and hold it; None if its lifespan has ended."""
        self.heard.add(event.id)
        live = self.hold(event, hops, now)
        if live is None:
            self.drop(DropReason.EXPIRED, event.id)
            return None
        self.subscriptions.deliver_local(self, event, hops, now)
        if hops >= self.settings.hop_limit:
            self.drop(DropReason.HOP_LIMIT, event.id)
        return live

    def missed(self, at: tuple[int, int] | None, now: float) -> list[Missed]:
        """The neighbours that probably did not hear what another node said there, and hear us. Where a place is
        unknown, the share of common neighbours heard it, and all hear us: we hear them."""
        here, worth = self.place(now), self.settings.worth
        if at is not None and here is not None:
            return self.reach.beyond(*at, here, self.neighbours.by_name, now, worth)
        known = list(self.neighbours)
        some = [neighbour for _, neighbour in known]
        heard = [UNKNOWN] * len(some) if at is None else self.reach.chances(*at, some, now, UNKNOWN)
        hear_us = self.hear_us(some, now)
        return [
            (name, neighbour, 1.0 - hears_it, (1.0 - hears_it) * hears_us)
            for (name, neighbour), hears_it, hears_us in zip(known, heard, hear_us, strict=True)
            if (1.0 - hears_it) * hears_us >= worth
        ]

    def pass_on(
        self, live: LiveEvent, missed: list[Missed], at: tuple[int, int] | None, sender: str, now: float
    ) -> None:
        """Wait to say what the sender said there, if that would reach somebody who missed it."""
        event, neighbours = live.event, len(self.neighbours)
        if not missed or event is None:
            return
        lacking: dict[str, float] = {}
        gain = 0.0
        for name, neighbour, lacks, reached in missed:
            if name != sender and name != event.source and self.was_wanted(event, neighbour, now):
                lacking[name] = lacks
                gain += reached
        if not lacking:
            return
        if gain >= FEW:
            self.best_share = max(gain / neighbours, self.best_share * SHARE_FADES, LEAST_SHARE)
        frame_s = self.frame_s(live.size_bytes) / (1.0 - min(self.channel.busy_share(now), BUSIEST))
        nearness = self.nearness(self.place(now), at)
        share = wait_share(gain, self.best_share * neighbours, nearness, self.random.random(), self.settings)
        longest_s = longest_wait_s(neighbours, frame_s, event.priority, self.settings)
        self.wait_to_say(live, lacking, now + longest_s * share)

    def nearness(self, here: Place | None, at: tuple[int, int] | None) -> float:
        """1 at the sender, 0 at its range; random where a place is unknown."""
        if here is None or at is None:
            return self.random.random()
        return max(0.0, 1.0 - hypot(here[0] - at[0], here[1] - at[1]) / self.settings.range_m)

    def hear_us(self, neighbours: Collection[Neighbour], now: float) -> list[float]:
        """The chances of these neighbours to hear us. Where a place is unknown they do, for we hear them."""
        here = self.place(now)
        return [1.0] * len(neighbours) if here is None else self.reach.chances(*here, neighbours, now, 1.0)

    def was_wanted(self, event: Event, neighbour: Neighbour, now: float) -> bool:
        """Whether the neighbour was in the event's area, or almost, when the event was published."""
        if event.area is None or not neighbour.placed:
            return True
        x, y = neighbour.place(min(event.time, now))
        return near_area(event.area, x, y, self.settings.area_margin * self.settings.range_m)

    def wait_to_say(self, live: LiveEvent, lacking: dict[str, float], at: float) -> None:
        if len(self.waiting) >= MOST_WAITING:
            self.drop(DropReason.TOO_MANY_PACKETS_WAITING, live.id)
            return
        self.waiting[live.id] = WaitingToSay(live, lacking, at)
        self.start_timer(("say", live.id), at)

    # Rule 3: heard again while waiting.

    def on_copy(self, said: Said, now: float) -> None:
        """Whom that sender reaches lacks it no longer; with nobody left, stay silent."""
        waiting = self.waiting[said.event.id]
        self.remember_copy(waiting.live, said.at, now)
        by_name, worth, echo = self.neighbours.by_name, self.settings.worth, self.settings.echo
        known = [name for name in waiting.lacking if name in by_name]
        still = [by_name[name] for name in known]
        heard = [UNKNOWN] * len(known) if said.at is None else self.reach.chances(*said.at, still, now, UNKNOWN)
        missed = [waiting.lacking[name] * (1.0 - hears) * echo for name, hears in zip(known, heard, strict=True)]
        left: dict[str, float] = {}
        if missed and max(missed) >= worth:
            hear_us = self.hear_us(still, now)
            lacking = zip(known, missed, hear_us, strict=True)
            left = {name: lacks for name, lacks, hears in lacking if lacks * hears >= worth}
        self.now_lacking(waiting, left)

    def now_lacking(self, waiting: WaitingToSay, left: dict[str, float]) -> None:
        if left:
            waiting.lacking = left
        else:
            del self.waiting[waiting.live.id]
            self.cancel_timer(("say", waiting.live.id))

    def say(self, event_id: str, now: float) -> None:
        """Nobody else reached them all: pass it on. On a busy channel, no sooner than it is our turn: what waits here
        can still be taken back, what waits in the radio's queue cannot."""
        waiting = self.waiting.get(event_id)
        if waiting is None:
            return
        if now < self.turn_at:
            spread_s = (self.turn_at - self.turned_at) * min(len(self.waiting), 16)
            self.start_timer(("say", event_id), self.turn_at + self.random.uniform(0.0, spread_s))
            return
        del self.waiting[event_id]
        live = waiting.live
        if live.event is not None and live.expires > now:
            together, self.turned_at = [live], now
            busy_share = self.channel.busy_share(now)
            if busy_share > OCCUPIED:
                together += self.taken_along(live, now)
            if busy_share > BUSY:
                frame_s = self.frame_s(sum(one.size_bytes for one in together))
                self.turn_at = now + TURN_PACKETS * frame_s * (len(self.neighbours) + 1)
            self.speak(together, now)

    def taken_along(self, first: LiveEvent, now: float) -> list[LiveEvent]:
        """Of what else waits, the most urgent, as much as fits into the packet: a frame costs airtime beside its
        bytes. A node's own events go alone, so that a packet's first event tells whether it passes on those of
        others."""
        taken: list[LiveEvent] = []
        room_bytes = self.settings.together_bytes - first.size_bytes
        if not self.is_of_others(first):
            return taken
        for waiting in sorted(self.waiting.values(), key=lambda one: one.urgency):
            live = waiting.live
            if live.size_bytes <= room_bytes and live.expires > now and self.is_of_others(live):
                room_bytes -= live.size_bytes
                taken.append(live)
                if len(taken) == MOST_ALSO_SAID:
                    break
        for live in taken:
            del self.waiting[live.id]
            self.cancel_timer(("say", live.id))
        return taken

    def is_of_others(self, live: LiveEvent) -> bool:
        """Whether it is held, and another node published it."""
        return live.event is not None and live.event.source != self.node

    def speak(self, together: list[LiveEvent], now: float) -> None:
        """Say these events, in one packet."""
        at, said = self.stated_place(now), list[AlsoSaid]()
        for live in together:
            assert live.event is not None
            live.unsaid = False
            self.remember_copy(live, at, now)
            said.append(AlsoSaid(live.event, live.hops + 1))
        first, *also = said
        if also:
            self.broadcast(SaidTogether(first.event, first.hops, at, tuple(also)))
        else:
            self.broadcast(Said(first.event, first.hops, at))

    # Rule 4: hellos.

    def check(self, now: float) -> None:
        """Greet when it is time, or early when we are not where our neighbours believe us to be."""
        self.live.forget(now)
        allowed_m = self.settings.hello_drift * self.settings.range_m
        drifted_m = 0.0 if self.is_alone(now) else self.drifted_m(now)
        if now >= self.hello_due or drifted_m > allowed_m:
            self.forget_neighbours(now)
            self.greet(now)
            drifted_m = 0.0
        soonest_s = (allowed_m - drifted_m) / max(2.0 * self.location.velocity(now).speed_m_s, USUAL_SPEED_M_S)
        self.start_timer("check", at=min(now + max(soonest_s, CHECK_S), max(self.hello_due, now + 0.01)))

    def is_alone(self, now: float) -> bool:
        """Whether it would have heard of a neighbour if it had any."""
        return now - self.company_at > self.alone_s and not len(self.neighbours)

    def meet(self, now: float) -> None:
        """It hears somebody. Who was alone answers, so that the other knows it soon."""
        if now - self.company_at > self.alone_s:
            self.greet_within(self.random.uniform(0.0, ANSWER_S), now)
        self.company_at = now

    def greet_within(self, span_s: float, now: float) -> None:
        """The next hello comes within this time."""
        if now + span_s < self.hello_due:
            self.hello_due = now + span_s
            self.start_timer("check", at=self.hello_due)

    def forget_neighbours(self, now: float) -> None:
        """Forget those that have been silent for too long, or have moved out of reach."""
        by_name = self.neighbours.by_name
        hear_us = self.hear_us(by_name.values(), now)
        for (name, neighbour), hears in zip(list(by_name.items()), hear_us, strict=True):
            if neighbour.expires <= now or hears == 0.0:
                del by_name[name]

    def drifted_m(self, now: float) -> float:
        """How far we are from where our last hello puts us."""
        here = self.place(now)
        if here is None or self.last_hello is None:
            return 0.0
        x, y = self.last_hello.place(now)
        return hypot(here[0] - x, here[1] - y)

    def greet(self, now: float) -> None:
        """Tell where we are, and what we hold."""
        self.hellos += 1
        velocity = self.location.velocity(now)
        span, events = self.next_digest_span()
        salt = salt_at(now)
        size_bytes = digest_size(len(events), self.settings.digest_bits, self.settings.digest_bytes)
        digest = self.live.digest(events, salt, size_bytes)
        airtime_s = self.channel.airtime_s(size_bytes + HELLO_BYTES)
        alone = self.is_alone(now)
        late_share = 0.0 if alone else self.late_share
        interval_s = hello_interval_s(len(self.neighbours), airtime_s, late_share, self.settings)
        if alone and not events:
            interval_s *= self.settings.crowd_stretch
        hello = Hello(
            self.hellos % 256,
            self.stated_place(now),
            (_tenths(velocity.x_m_s), _tenths(velocity.y_m_s)),
            min(ceil(interval_s), 0xFFFF),
            wrapped(span.since),
            min(span.until - span.since, 0xFFFF) if span.until else 0,
            salt,
            digest,
        )
        self.last_hello = Neighbour(hello, now, now)
        self.hello_due = now + interval_s * self.random.uniform(0.8, 1.2)
        self.broadcast(hello)

    # Rule 6: more events than a digest holds.

    def next_digest_span(self) -> tuple[DigestSpan, list[str]]:
        """The span of the next digest, and the events in it. Newest and older spans take turns where one digest
        cannot hold all. `until` 0: until now."""
        begins = quarter_of(self.started_at)
        capacity = self.settings.digest_bytes * 8 // self.settings.digest_bits
        if len(self.live) <= capacity:
            return DigestSpan(begins, 0), list(self.live.by_id)
        ordered = sorted((live.quarter, live.id) for live in self.live.by_id.values())
        until = self.older_until if self.hellos % 2 else None
        if until is not None:
            ordered = [entry for entry in ordered if entry[0] < until]
        since = ordered[-capacity - 1][0] + 1 if len(ordered) > capacity else begins
        if until is not None:
            self.older_until = since if since > begins else None
        elif self.older_until is None:
            self.older_until = since
        return DigestSpan(since, until or 0), [event_id for quarter, event_id in ordered if quarter >= since]

    # Rule 5: repair.

    def on_hello(self, hello: Hello, sender: str, now: float) -> None:
        """Learn where the neighbour is and what it heard, and say again what it lacks."""
        expires = now + self.settings.neighbour_hellos * hello.again_s
        neighbour = Neighbour(hello, now, expires)
        known = self.neighbours.greeted(sender, neighbour)
        digest = HeldDigest(hello.digest, hello.salt, unwrapped(hello.since, hello.length, now))
        here = self.place(now)
        self.learn_from_numbers(neighbour, known, here, now)
        absent = self.live.lacked(digest)
        if known is not None and neighbour.placed:
            self.learn_from_digest(neighbour, known.greeted_at, digest.span, absent, now)
        lacked = self.worth_repairing(sender, neighbour, absent, now) if absent else []
        if self.waiting:
            self.strike_out(sender, digest)
        if lacked and self.hear_us([neighbour], now)[0] >= self.settings.worth:
            self.repair(sender, lacked, now)

    def worth_repairing(self, name: str, neighbour: Neighbour, absent: list[LiveEvent], now: float) -> list[LiveEvent]:
        """Of the events that the neighbour lacks, those that we hold and that it should have heard."""
        settled_at, lacked = self.settled_at(now), []
        for live in absent:
            event = live.event
            if (
                event is not None
                and (live.unsaid or live.heard_at <= settled_at)
                and live.expires > now
                and live.hops < self.settings.hop_limit
                and live.id not in self.waiting
                and live.offers.get(name, 0) < self.settings.repair_tries
                and event.source != name
                and self.was_wanted(event, neighbour, now)
            ):
                lacked.append(live)
        return lacked

    def settled_at(self, now: float) -> float:
        """Of what was heard before, all waits have ended; what was heard later may still be on its way."""
        return now - self.settling_s

    def repair(self, name: str, lacked: list[LiveEvent], now: float) -> None:
        """Say them again, the most urgent first, each after a random time in which others may come first. A busy
        channel is left to new events."""
        if self.channel.busy_share(now) > BUSIEST:
            return
        earned_s = (now - self.repair_counted_at) * self.settings.repair_airtime
        most_s = REPAIR_BURST_S * self.settings.repair_airtime
        self.repair_airtime_s = min(self.repair_airtime_s + earned_s, most_s)
        self.repair_counted_at = now
        lacked.sort(key=lambda live: (-_priority(live), live.expires, live.id))
        for n, live in enumerate(lacked[: self.settings.repair_batch]):
            frame_s = self.frame_s(live.size_bytes)
            if frame_s > self.repair_airtime_s:
                return
            self.repair_airtime_s -= frame_s
            live.offers[name] = live.offers.get(name, 0) + 1
            longest_s = self.settings.repair_frames * frame_s * (1.0 + n / 2.0)
            self.wait_to_say(live, {name: 1.0}, now + self.random.uniform(0.0, longest_s))

    def strike_out(self, name: str, digest: HeldDigest) -> None:
        """The neighbour holds some of what waits to be said: not for its sake, then."""
        for waiting in list(self.waiting.values()):
            live = waiting.live
            if name in waiting.lacking and digest.span.holds(live.quarter) and not digest.lacks(live.id):
                self.now_lacking(waiting, {one: chance for one, chance in waiting.lacking.items() if one != name})

    # Rule 7: gateways.

    def relay(self, live: LiveEvent | None, now: float) -> None:
        """Send it to the other gateways."""
        if self.node in self.settings.gateways and live is not None and live.event is not None and live.expires > now:
            for gateway in self.settings.gateways:
                if gateway != self.node:
                    self.send(gateway, Relayed(live.event, live.hops + 1))

    def on_relayed(self, packet: Relayed, sender: str, now: float) -> None:
        """Another gateway relays an event to all: say it to the neighbours here, if it is new."""
        event, gateways = packet.event, self.settings.gateways
        if sender not in gateways or self.node not in gateways:
            self.drop(DropReason.NOT_A_GATEWAY, event.id)
            return
        self.cancel_timer(("relay", event.id))
        if event.id not in self.heard.keys:
            live = self.first_hearing(event, packet.hops, now)
            if live is not None and packet.hops < self.settings.hop_limit:
                hear_us = zip(self.neighbours, self.hear_us(self.neighbours.by_name.values(), now), strict=True)
                everybody = [(*known, 1.0, hears) for known, hears in hear_us if hears >= self.settings.worth]
                self.pass_on(live, everybody, None, sender, now)

    # Learning the reach.

    def learn_from_numbers(self, neighbour: Neighbour, known: Neighbour | None, here: Place | None, now: float) -> None:
        """Its hello arrived; the numbers it skipped did not."""
        if here is None or not neighbour.placed:
            return
        self.reach.observe(hypot(neighbour.x - here[0], neighbour.y - here[1]), 1.0, 0.0)
        if known is not None and known.placed:
            skipped = (neighbour.number - known.number - 1) % 256
            if 0 < skipped <= 3:
                x, y = neighbour.place(now - (now - known.greeted_at) / 2.0)
                self.reach.observe(hypot(x - here[0], y - here[1]), 0.0, float(skipped))

    def learn_from_digest(
        self, neighbour: Neighbour, since: float, span: DigestSpan, absent: list[LiveEvent], now: float
    ) -> None:
        """Of the last events before its hello: it missed every copy that we know of, or probably heard the nearest."""
        settled_at, learnt = self.settled_at(now), 0
        for live in reversed(self.live.by_id.values()):
            if live.heard_at <= since or learnt == LEARNT_EVENTS:
                return
            if live.heard_at > settled_at or not live.copies or not span.holds(live.quarter):
                continue
            learnt += 1
            distances_m = [neighbour.distance_m(copy) for copy in live.copies]
            if absent and live in absent:
                for distance_m in distances_m:
                    self.reach.observe(distance_m, 0.0, 1.0)
            else:
                self.reach.observe(min(distances_m), 1.0, 0.0)

    def remember_copy(self, live: LiveEvent, at: tuple[int, int] | None, now: float) -> None:
        if at is not None and len(live.copies) < MOST_COPIES:
            live.copies.append(Copy(now, float(at[0]), float(at[1])))

    # What a node knows about itself and its channel.

    def hold(self, event: Event, hops: int, now: float) -> LiveEvent | None:
        """The event, held until its lifespan ends; None if it has ended. A clock that runs ahead gains nothing."""
        lifespan_s = self.settings.lifespan_s if event.lifespan_s is None else event.lifespan_s
        expires = min(event.time, now) + lifespan_s
        if not isfinite(event.time) or not expires >= now:
            return None
        live = LiveEvent(event, hops, now, expires, size(Said(event, hops, None)))
        self.live.add(live, now)
        return live

    def frame_s(self, size_bytes: int) -> float:
        """The time of a packet on air."""
        return self.channel.airtime_s(size_bytes) or USUAL_FRAME_S

    def place(self, now: float) -> Place | None:
        if not self.settings.knows_place:
            return None
        at = self.location.position(now)
        return at.x_m, at.y_m

    def stated_place(self, now: float) -> tuple[int, int] | None:
        at = self.place(now)
        return None if at is None else (round(at[0]), round(at[1]))


def _tenths(metres_per_second: float) -> int:
    return round(min(max(metres_per_second, -10_000.0), 10_000.0) * 10.0)


def _priority(live: LiveEvent) -> int:
    return live.event.priority if live.event is not None else 0
