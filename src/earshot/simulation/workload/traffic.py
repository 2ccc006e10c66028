"""Traffic: a scenario's publish and subscribe entries, and the actions drawn from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from earshot.errors import ScenarioError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Position, Proximity
from earshot.protocols.common.local_subscriptions import event_types_of
from earshot.protocols.machine import Announcement
from earshot.protocols.services.fences import ANY_TYPE, Fence
from earshot.quality import MOST_HISTORY, PLAIN, Quality
from earshot.records.trajectories import Trajectories
from earshot.settings import Count, Finite, KindTable, NotNegative, Positive, SettingsTable, Share
from earshot.simulation.draws import Span, by_weight
from earshot.simulation.extent import Extent
from earshot.simulation.settings_reader import ShapeSetting, SpanSetting
from earshot.simulation.workload.actions import Action, Unannounce, Unfence, Unsubscribe
from earshot.simulation.workload.generators import EventGenerator, Generator, Generators, structure_of
from earshot.simulation.workload.interests import FilterSource
from earshot.simulation.workload.workload_files import (
    TimedEvent,
    TimedSubscription,
    read_lake_workload,
    read_timed_events,
    read_timed_subscriptions,
)

# When events are published, and by which node. Each class is one kind of `when` table.


Of = Literal["each", "all"]
Choose = Literal["random", "in-turn", "ability"]


@dataclass(frozen=True, slots=True)
class PublishingNode:
    """A node that publishes: its number, its ability, and its own random stream."""

    node: int
    ability: float
    random: Random


class Periodic(KindTable, frozen=True, tag="periodic"):
    """One event in every interval."""

    interval_s: Positive
    "The time from one event to the next."
    of: Of = "each"
    'Whether each publisher has this interval ("each"), or all publishers share it ("all").'
    choose: Choose = "random"
    'With of = "all", the next publisher: a random node, the next in turn, or a random node in proportion to ability.'
    phase: Literal["random", "zero"] = "random"
    'With of = "each", when the first event comes: at a random time in the first interval, or at its start.'
    jitter_s: NotNegative = 0.0
    "Each event is delayed by a random time of up to this much."

    def times(
        self, publishers: Sequence[PublishingNode], random: Random, from_s: float, until_s: float
    ) -> Iterator[tuple[float, PublishingNode]]:
        if self.of == "all":
            next_one = _chooser(publishers, self.choose, random)
            yield from ((time, next_one()) for time in self._ticks(from_s, until_s, random))
            return
        for publisher in publishers:
            start = from_s + (publisher.random.random() * self.interval_s if self.phase == "random" else 0.0)
            yield from ((time, publisher) for time in self._ticks(start, until_s, publisher.random))

    def expected(self, publishers: int, seconds: float) -> float:
        """About how many events are published in this time."""
        return seconds / self.interval_s * (1 if self.of == "all" else publishers)

    def at_rate(self, multiple: float) -> Periodic:
        """The same, this many times as often."""
        return msgspec.structs.replace(self, interval_s=self.interval_s / multiple)

    def _ticks(self, start: float, until_s: float, random: Random) -> Iterator[float]:
        step = 0
        while (time := start + step * self.interval_s) < until_s:
            time += random.uniform(0.0, self.jitter_s) if self.jitter_s else 0.0
            if time < until_s:
                yield time
            step += 1


class Poisson(KindTable, frozen=True, tag="poisson"):
    """Events at random times with a given mean rate."""

    rate_per_s: Positive
    "Events per second."
    of: Of = "all"
    'Whether this is the rate of all publishers together ("all") or of each ("each").'
    choose: Choose = "random"
    'With of = "all", the next publisher: a random node, the next in turn, or a random node in proportion to ability.'

    def times(
        self, publishers: Sequence[PublishingNode], random: Random, from_s: float, until_s: float
    ) -> Iterator[tuple[float, PublishingNode]]:
        if self.of == "all":
            next_one = _chooser(publishers, self.choose, random)
            yield from ((time, next_one()) for time in self._arrivals(from_s, until_s, random))
            return
        for publisher in publishers:
            yield from ((time, publisher) for time in self._arrivals(from_s, until_s, publisher.random))

    def expected(self, publishers: int, seconds: float) -> float:
        """About how many events are published in this time."""
        return seconds * self.rate_per_s * (1 if self.of == "all" else publishers)

    def at_rate(self, multiple: float) -> Poisson:
        """The same, this many times as often."""
        return msgspec.structs.replace(self, rate_per_s=self.rate_per_s * multiple)

    def _arrivals(self, from_s: float, until_s: float, random: Random) -> Iterator[float]:
        time = from_s + random.expovariate(self.rate_per_s)
        while time < until_s:
            yield time
            time += random.expovariate(self.rate_per_s)


class AtTimes(KindTable, frozen=True, tag="at"):
    """Events at given times."""

    times_s: tuple[NotNegative, ...]
    "The times, in seconds from the run's start; those outside from_s..until_s are left out."
    of: Of = "each"
    'Whether each publisher publishes at these times ("each"), or one publisher at each time ("all").'
    choose: Choose = "in-turn"
    'With of = "all", the next publisher: a random node, the next in turn, or a random node in proportion to ability.'

    def times(
        self, publishers: Sequence[PublishingNode], random: Random, from_s: float, until_s: float
    ) -> Iterator[tuple[float, PublishingNode]]:
        next_one = _chooser(publishers, self.choose, random)
        for time in self.times_s:
            if from_s <= time < until_s:
                for publisher in [next_one()] if self.of == "all" else publishers:
                    yield time, publisher

    def expected(self, publishers: int, seconds: float) -> float:
        """How many events are published, at most."""
        return len(self.times_s) * (1 if self.of == "all" else publishers)

    def at_rate(self, multiple: float) -> AtTimes:
        """The same, this many times as often: `repeated` between the given times."""
        times = sorted(self.times_s)
        return msgspec.structs.replace(self, times_s=tuple(time for time, _ in repeated(times, multiple)))


def repeated(times: Sequence[float], multiple: float) -> list[tuple[float, int]]:
    """The times, `multiple` times as many, in order; each with the number of the given time that it repeats.

    The repetitions of a time lie evenly between it and the next. A multiple below 1 leaves out times evenly.
    """
    gaps = [after - before for before, after in pairwise(times)]
    gaps += gaps[-1:] or [1.0] * len(times)
    found: list[tuple[float, int]] = []
    for number, (time, gap) in enumerate(zip(times, gaps, strict=True)):
        count = math.floor((number + 1) * multiple) - math.floor(number * multiple)
        found.extend((time + gap * step / count, number) for step in range(count))
    return found


def _chooser(publishers: Sequence[PublishingNode], choose: Choose, random: Random) -> Any:
    """A function that returns the next publisher."""
    if choose == "in-turn":
        turn = iter(range(1 << 62))
        return lambda: publishers[next(turn) % len(publishers)]
    if choose == "ability":
        sums = list(accumulate(publisher.ability for publisher in publishers))
        return lambda: publishers[by_weight(random, sums)]
    return lambda: random.choice(publishers)


PublishTimes = Periodic | Poisson | AtTimes
"""Every kind of `when` table; a new kind is a new member. `times` gives the time of each publication (at least `from_s`
and below `until_s`) and its publisher."""


Nodes = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrawContext:
    """What is known about a run when its workload is drawn."""

    seed: int
    groups: Mapping[str, Sequence[str]]
    "The nodes of each group."
    trajectories: Trajectories
    abilities: Sequence[float]
    extent: Extent
    warm_up_s: float
    publish_until_s: float
    "The duration without the cool-down."
    duration_s: float

    def chosen(self, who: Who, entry: str) -> list[int]:
        """The numbers of an entry's nodes: drawn by share, chance or count from the nodes it names."""
        pool = self._named(who.nodes, entry)
        random = Random(f"{self.seed}:who:{entry}")
        if who.chance is not None:
            return [node for node in pool if random.random() < who.chance]
        count = who.count if who.share is None else round(who.share * len(pool))
        if count is None:
            return pool
        if count > len(pool):
            raise ScenarioError(f"{entry}: count is {count}, but there are only {len(pool)} nodes to choose from")
        return sorted(random.sample(pool, count))

    def _named(self, nodes: Nodes, entry: str) -> list[int]:
        index = {name: i for i, name in enumerate(self.trajectories.names)}
        if nodes == "all":
            return list(range(len(index)))
        found: set[int] = set()
        for name in (nodes,) if isinstance(nodes, str) else nodes:
            if name in self.groups:
                found.update(index[member] for member in self.groups[name])
            elif name in index:
                found.add(index[name])
            else:
                raise ScenarioError(
                    f"{entry}: nodes: no group and no node is called {name!r}; groups: {_list(self.groups)}"
                )
        return sorted(found)

    def position(self, node: int, time: float) -> Position:
        return Position(*self.trajectories.position(node, time))

    def first_there(self, node: int, time: float) -> float:
        """The first time from `time` on at which the node is present; infinite if there is none."""
        for start, end in self.trajectories.presence[node]:
            if time < end:
                return max(time, start)
        return math.inf


def _list(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"


class ProximitySettings(SettingsTable, frozen=True):
    """Where a publisher's events are of interest."""

    shape: ShapeSetting
    'As in "circle:300m", "rectangle:100x50m@30", "ellipse:80x40m" or "polygon:0,0 100,0 0,100".'
    mobile: bool = True
    "Whether the area moves with its publisher, or stays where it was announced."
    at: Position | None = None
    "[x, y] of a stationary proximity; by default the publisher's position when it announces."

    def validate(self) -> None:
        if self.mobile and self.at is not None:
            raise ScenarioError("at belongs to a stationary proximity: write mobile = false, or leave at out")

    def proximity(self, naval: Position) -> Proximity:
        return Proximity(self.shape, self.at if self.at is not None else naval, self.mobile)


class RegionSettings(SettingsTable, frozen=True):
    """A subscriber's region of interest."""

    shape: ShapeSetting
    'As in "circle:300m"; see proximity.'
    at: Literal["node", "anywhere"] | Position = "node"
    "Around the subscriber's position when it subscribes, around a random place in the area, or [x, y]."

    def area(self, here: Position, extent: Extent, random: Random) -> Area:
        if isinstance(self.at, Position):
            return Area(self.shape, self.at)
        if self.at == "node":
            return Area(self.shape, here)
        west, south, east, north = extent.box
        return Area(self.shape, Position(random.uniform(west, east), random.uniform(south, north)))


class Who(SettingsTable, frozen=True, kw_only=True):
    """The nodes of an entry."""

    nodes: Nodes = "all"
    'The nodes: "all", a group, a node, "type:bus" (if a trace in a lake has types), or a list of these.'
    share: Share | None = None
    "This share of the nodes, drawn by the seed."
    chance: Share | None = None
    "Each node with this probability."
    count: Count | None = None
    "This many of the nodes, drawn by the seed."

    def validate(self) -> None:
        given = [name for name in ("share", "chance", "count") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ScenarioError(f"write one of share, chance and count, not {' and '.join(given)}")


class PublishEntry(Who, frozen=True, kw_only=True):
    """Which nodes publish what, when, and where it is of interest."""

    events: EventGenerator
    "What they publish."
    when: PublishTimes
    "When they publish."
    from_s: NotNegative | None = None
    "No event is published before this time; by default the end of the warm-up."
    until_s: NotNegative | None = None
    "Publishing ends at this time, and publishers unannounce; by default at the start of the cool-down."
    limit: Count | None = None
    "At most this many events in total."
    announce: bool = True
    "Whether publishers announce their event types first."
    announce_s: SpanSetting = Span(0.0, 1.0)
    "When they announce."
    proximity: ProximitySettings | None = None
    "Where the events are of interest; by default everywhere."
    lifespan_s: Positive | None = None
    "How long an event is of interest; by default the protocol's setting."
    priority: int = 0
    "The events' priority: events of higher priority leave a radio's queue first."
    reliability: Literal["best_effort", "reliable"] = "best_effort"
    'With "reliable", subscribers recover the events they missed; an error if the protocol cannot do that.'
    deadline_s: Positive | None = None
    "An event that is delivered later than this after its publication is recorded as late."
    history: Annotated[int, Meta(ge=0, le=MOST_HISTORY)] = 0
    "A late subscriber gets this many of each publisher's last events."

    @property
    def quality(self) -> Quality:
        """The quality that is announced for the event types. A lifespan or a priority alone is not announced: each
        event carries it."""
        if self.reliability == "best_effort" and self.deadline_s is None and not self.history:
            return PLAIN
        return Quality(self.reliability, self.lifespan_s, self.priority, self.deadline_s, self.history)

    def validate(self) -> None:
        super().validate()
        if self.announce_s.low < 0:
            raise ScenarioError(f"announce_s must not be negative, got {self.announce_s.low:g}")
        if self.from_s is not None and self.until_s is not None and self.until_s <= self.from_s:
            raise ScenarioError(f"until_s must come after from_s, got {self.until_s:g} and {self.from_s:g}")
        if self.proximity is not None and not self.announce:
            raise ScenarioError("a proximity is part of an announcement: leave announce = false out")
        if self.quality != PLAIN and not self.announce:
            raise ScenarioError("reliability, deadline_s and history are announced: leave announce = false out")

    def actions(self, entry: str, context: DrawContext) -> Iterator[Action]:
        """The entry's announcements and events."""
        nodes = context.chosen(self, f"publish.{entry}")
        if not nodes:
            return
        until_s = context.publish_until_s if self.until_s is None else self.until_s
        publishers = [
            PublishingNode(
                node,
                context.abilities[node],
                Random(f"{context.seed}:publish:{entry}:{context.trajectories.names[node]}"),
            )
            for node in nodes
        ]
        if self.announce:
            for publisher in publishers:
                yield from self._announcements(publisher, context)
        for time, node, event in self._events(entry, publishers, context, until_s):
            yield Action(time, node, event)
        if self.announce and self.until_s is not None and self.until_s < context.duration_s:
            for publisher in publishers:
                yield from (
                    Action(until_s, publisher.node, Unannounce(event_type.subject))
                    for event_type in self.events.types()
                )

    def expected(self, pool: int, from_s: float, until_s: float) -> float:
        """About how many events the entry publishes, if it chooses from `pool` nodes. The times are those of the run,
        and count where the entry has none of its own. A `limit` does not count: all events are drawn before it."""
        share = self.share if self.share is not None else self.chance if self.chance is not None else 1.0
        publishers = math.ceil(pool * share) if self.count is None else self.count
        from_s = from_s if self.from_s is None else self.from_s
        until_s = until_s if self.until_s is None else self.until_s
        return self.when.expected(publishers, max(0.0, until_s - from_s))

    def at_rate(self, multiple: float) -> PublishEntry:
        """The same, this many times as often."""
        limit = None if self.limit is None else round(self.limit * multiple)
        return msgspec.structs.replace(self, when=self.when.at_rate(multiple), limit=limit)

    def _announcements(self, publisher: PublishingNode, context: DrawContext) -> Iterator[Action]:
        time = context.first_there(publisher.node, self.announce_s.draw(publisher.random))
        if time >= context.duration_s:
            return
        proximity = self.proximity.proximity(context.position(publisher.node, time)) if self.proximity else None
        attributes = self.quality.attributes()
        for event_type in self.events.types():
            announced = replace(event_type, attributes=attributes) if attributes else event_type
            yield Action(time, publisher.node, Announcement(announced, proximity))

    def _events(
        self, entry: str, publishers: Sequence[PublishingNode], context: DrawContext, until_s: float
    ) -> Iterator[tuple[float, int, Event]]:
        random = Random(f"{context.seed}:publish:{entry}")
        from_s = context.warm_up_s if self.from_s is None else self.from_s
        drawn = self.when.times(publishers, random, from_s, min(until_s, context.duration_s))
        there = [
            (time, publisher.node) for time, publisher in drawn if context.trajectories.present(publisher.node, time)
        ]
        for number, (time, node) in enumerate(sorted(there)[: self.limit]):
            event: Event = self.events.draw(random, number)
            if self.lifespan_s is not None or self.priority:
                lifespan_s = self.lifespan_s if self.lifespan_s is not None else event.lifespan_s
                event = msgspec.structs.replace(event, lifespan_s=lifespan_s, priority=self.priority)
            yield time, node, event


class SubscribeEntry(Who, frozen=True, kw_only=True):
    """Which nodes subscribe to what, when, and for which region."""

    filters: FilterSource
    "What they subscribe to."
    each: SpanSetting = Span(1.0, 1.0)
    "Subscriptions per subscriber."
    at_s: SpanSetting = Span(0.0, 1.0)
    "When they subscribe."
    until_s: Finite | None = None
    "When they unsubscribe; by default never."
    lasting_s: SpanSetting | None = None
    "How long a subscription lasts before its owner replaces it with another."
    region: RegionSettings | None = None
    "Where an event must happen to be of interest; by default anywhere."
    fence: bool = False
    "Whether subscribers are notified when they enter or leave an area that a type of the filter is announced with."
    near_m: Positive | None = None
    "Subscribers are notified when another node comes within this distance, and when it goes away again."

    def validate(self) -> None:
        super().validate()
        if self.each.low < 0 or not (self.each.low.is_integer() and self.each.high.is_integer()):
            raise ScenarioError(f"each must be whole numbers, at least 0, got [{self.each.low:g}, {self.each.high:g}]")
        if self.at_s.low < 0:
            raise ScenarioError(f"at_s must not be negative, got {self.at_s.low:g}")
        if self.until_s is not None and self.until_s <= self.at_s.high:
            raise ScenarioError(f"until_s must come after at_s, got {self.until_s:g} and {self.at_s.high:g}")
        if self.lasting_s is not None and self.lasting_s.low <= 0:
            raise ScenarioError(f"lasting_s must begin above 0, got {self.lasting_s.low:g}")

    def actions(self, entry: str, context: DrawContext, sources: Generators) -> Iterator[Action]:
        """The entry's subscriptions, and their ends."""
        number = 0
        for node in context.chosen(self, f"subscribe.{entry}"):
            name = context.trajectories.names[node]
            random = Random(f"{context.seed}:subscribe:{entry}:{name}")
            for k in range(random.randint(int(self.each.low), int(self.each.high))):
                time = context.first_there(node, self.at_s.draw(random))
                end_s = min(self.until_s if self.until_s is not None else math.inf, context.duration_s)
                generation = 0
                while time < end_s:
                    id = f"{name}/{entry}/{k}" + (f".{generation}" if self.lasting_s else "")
                    wanted = self.filters.draw(random, number, sources)
                    here = context.position(node, time)
                    region = self.region.area(here, context.extent, random) if self.region else None
                    yield Action(time, node, Subscription(id, name, wanted, region))
                    yield from (Action(time, node, fence) for fence in self._fences(id, wanted))
                    time = time + self.lasting_s.draw(random) if self.lasting_s else end_s
                    number += 1
                    generation += 1
                    if min(time, end_s) < context.duration_s:
                        yield Action(min(time, end_s), node, Unsubscribe(id))
                        yield from (
                            Action(min(time, end_s), node, Unfence(fence.id)) for fence in self._fences(id, wanted)
                        )

    def _fences(self, subscription: str, wanted: Filter) -> Iterator[Fence]:
        """The fences that go with a subscription: one for each type, and one for other nodes."""
        types = event_types_of(wanted) if self.fence else ()
        for subject in (ANY_TYPE,) if types is None else sorted(types):
            yield Fence(f"{subscription}/fence/{subject}", subject)
        if self.near_m is not None:
            yield Fence(f"{subscription}/near", near_m=self.near_m)


class OwnWorkload(SettingsTable, frozen=True):
    """A workload of the user's own, in addition to what publish and subscribe draw."""

    events: Path | None = None
    'A .jsonl file; a line is {"time_s": 12.5, "node": "car-03", "type": "Siren", "content": {"speed": 21.5}}, '
    'or with "xml": "<CD>...</CD>" for type and content.'
    subscriptions: Path | None = None
    'A .jsonl file; a line is {"node": "car-03", "filter": "Siren: within 300 m"}, with at_s, until_s, '
    'id and region ({"shape": "circle:300m", "at": [500, 500]}) as options.'
    lake: str | None = None
    "Instead of files, a lake with a workload that `earshot workload` stored."
    workload: str | None = None
    "The workload's name in that lake."
    start_s: Finite | None = None
    "The time in the files or the lake at which the run starts, for a window of a longer trace. Events outside the "
    "window, and events of nodes that are not in it, are left out. By default times count from the run's start."
    announce: bool = True
    "Whether the events' publishers announce their types at the start."
    proximity: ProximitySettings | None = None
    "Where the events are of interest; by default everywhere."

    def validate(self) -> None:
        if (self.lake is None) != (self.workload is None):
            raise ScenarioError("lake and workload belong together: write both or neither")
        if self.lake is not None and (self.events is not None or self.subscriptions is not None):
            raise ScenarioError("write files (events, subscriptions) or a workload in a lake, not both")

    def content(self) -> dict[str, Any]:
        """A digest of a workload in a lake, in place of the lake's path and the workload's name."""
        if self.lake is None or self.workload is None:
            return {}
        return {"lake": None, "workload": None, "content": read_lake_workload(self.lake, self.workload).content}

    def rows(self) -> tuple[Sequence[TimedEvent], Sequence[TimedSubscription]]:
        """The events and the subscriptions, with the times of the files or the lake."""
        if self.lake is not None and self.workload is not None:
            kept = read_lake_workload(self.lake, self.workload)
            return kept.events, kept.subscriptions
        return (
            () if self.events is None else read_timed_events(self.events),
            () if self.subscriptions is None else read_timed_subscriptions(self.subscriptions),
        )

    def actions(self, context: DrawContext, event_rate: float = 1.0) -> Iterator[Action]:
        index = {name: i for i, name in enumerate(context.trajectories.names)}
        events, subscriptions = self.rows()
        if self.start_s is not None:
            start_s = self.start_s
            events = [replace(row, time_s=row.time_s - start_s) for row in events if row.node in index]
            events = [row for row in events if row.time_s >= 0]
            subscriptions = [_from(row, start_s) for row in subscriptions if row.node in index]
        yield from self._subscriptions(subscriptions, index, context)
        yield from self._events(events, index, context, event_rate)

    def _events(
        self, rows: Sequence[TimedEvent], index: Mapping[str, int], context: DrawContext, event_rate: float
    ) -> Iterator[Action]:
        file = self.events or self.workload
        announced: dict[tuple[int, str], EventType] = {}
        for row in _at_rate(rows, event_rate):
            if self.start_s is not None and row.time_s >= context.duration_s:
                continue
            node = _numbered(row.node, index, file)
            if self.announce and (node, row.event.type) not in announced:
                announced[node, row.event.type] = structure_of(row.event)
                time = context.first_there(node, 0.0)
                proximity = self.proximity.proximity(context.position(node, time)) if self.proximity else None
                yield Action(time, node, Announcement(announced[node, row.event.type], proximity))
            if row.time_s < 0:
                raise ScenarioError(f"{file}: an event's time_s must not be negative, got {row.time_s:g}")
            if row.time_s < context.duration_s:
                yield Action(row.time_s, node, row.event)

    def _subscriptions(
        self, rows: Sequence[TimedSubscription], index: Mapping[str, int], context: DrawContext
    ) -> Iterator[Action]:
        for number, row in enumerate(rows):
            node = _numbered(row.node, index, self.subscriptions or self.workload)
            id = row.id or f"{row.node}/own/{number}"
            time = context.first_there(node, row.at_s)
            if time >= context.duration_s or (row.until_s is not None and time >= row.until_s):
                continue
            yield Action(time, node, Subscription(id, row.node, row.filter, row.region))
            if row.until_s is not None and time < row.until_s < context.duration_s:
                yield Action(row.until_s, node, Unsubscribe(id))


def _from(row: TimedSubscription, start_s: float) -> TimedSubscription:
    """The subscription with times that count from `start_s`; one that began earlier begins at 0."""
    until_s = None if row.until_s is None else row.until_s - start_s
    return replace(row, at_s=max(0.0, row.at_s - start_s), until_s=until_s)


def _at_rate(rows: Sequence[TimedEvent], multiple: float) -> Sequence[TimedEvent]:
    """The rows, this many times as often."""
    if multiple == 1.0 or not rows:
        return rows
    ordered = sorted(rows, key=lambda row: row.time_s)
    moments = repeated([row.time_s for row in ordered], multiple)
    return [replace(ordered[number], time_s=time) for time, number in moments]


def _numbered(name: str, index: Mapping[str, int], file: Path | str | None) -> int:
    if name not in index:
        raise ScenarioError(f"{file}: no node is called {name!r}")
    return index[name]


def check_announcements(actions: Sequence[Action]) -> None:
    """All entries of a node announce the same structure and proximity for a subject."""
    known: dict[tuple[int, str], Announcement] = {}
    for action in actions:
        if isinstance(action.what, Announcement):
            key = (action.node, action.what.event_type.subject)
            if _differs(known.setdefault(key, action.what), action.what):
                raise ScenarioError(
                    f"two publish entries announce {key[1]!r} on one node with different structures or proximities; "
                    "give them different nodes or types"
                )


def _differs(a: Announcement, b: Announcement) -> bool:
    if a.event_type != b.event_type or (a.proximity is None) != (b.proximity is None):
        return True
    if a.proximity is None or b.proximity is None:
        return False
    # Navals are not compared: the naval of a mobile proximity is only its publisher's position at that time.
    return (a.proximity.shape, a.proximity.mobile) != (b.proximity.shape, b.proximity.mobile)


Publishes = Mapping[str, PublishEntry]


def generators_of(publish: Publishes) -> dict[str, Generator]:
    """The event generators by publish entry, as interests refer to them."""
    return {name: entry.events for name, entry in publish.items()}
