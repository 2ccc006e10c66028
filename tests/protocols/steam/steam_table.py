"""A tabletop of STEAM nodes that move: nodes in range hear each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from earshot import Event, EventType, Filter, Position, Proximity, Velocity
from earshot.filters import Subscription
from earshot.protocols.machine import Announcement
from earshot.protocols.steam.machine import Steam
from earshot.protocols.steam.packets import SteamSettings
from earshot.protocols.tabletop import Tabletop
from earshot.wire import tag_of

Course = Callable[[float], Position]


@dataclass(frozen=True)
class Walk:
    """A location that follows a function of time."""

    course: Course

    def position(self, time: float) -> Position:
        return self.course(time)

    def velocity(self, time: float) -> Velocity:
        here, later = self.course(time), self.course(time + 1e-3)
        return Velocity((later.x_m - here.x_m) * 1e3, (later.y_m - here.y_m) * 1e3)


def stays(x_m: float, y_m: float = 0.0) -> Course:
    return lambda _: Position(x_m, y_m)


def goes(x_m: float, speed_m_s: float) -> Course:
    return lambda now: Position(x_m + speed_m_s * now, 0.0)


class InRange:
    """The links of a tabletop, by distance now; `cut` pairs hear nothing whatever the distance."""

    def __init__(self, table: SteamTable, range_m: float) -> None:
        self.table, self.range_m = table, range_m

    def __getitem__(self, node: str) -> set[str]:
        here = self.table.where(node)
        return {
            peer
            for peer in self.table.courses
            if peer != node
            and frozenset((node, peer)) not in self.table.severed
            and here.distance_to(self.table.where(peer)) <= self.range_m
        }


@dataclass
class SteamTable:
    """Nodes by name and course, with one radio range."""

    courses: Mapping[str, Course]
    settings: SteamSettings = SteamSettings()
    range_m: float = 200.0
    each: Mapping[str, SteamSettings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.severed: set[frozenset[str]] = set()
        self.machines = {
            node: Steam(node, self.each.get(node, self.settings), Walk(course), Random(node))
            for node, course in self.courses.items()
        }
        self.table = Tabletop(self.machines.values(), ())
        self.table.links = InRange(self, self.range_m)  # type: ignore[assignment]
        self.events: dict[str, Event] = {}
        self._numbers = count(1)

    def where(self, node: str) -> Position:
        return self.courses[node](self.table.now)

    def run(self, until: float) -> None:
        self.table.run(until)

    def announce(self, node: str, event_type: EventType | str, proximity: Proximity | None, producer: str = "") -> None:
        described = EventType(event_type) if isinstance(event_type, str) else event_type
        self.table.do(node, "announce", Announcement(described, proximity, producer))

    def subscribe(self, nodes: Iterable[str], filter: Filter | str, **more: Any) -> None:
        wanted = Filter.of_type(filter) if isinstance(filter, str) else filter
        for node in nodes:
            self.table.do(node, "subscribe", Subscription(f"{node}-wants", node, wanted, **more))

    def publish(
        self, node: str, type: str, content: dict[str, Any] | None = None, producer: str = "", **more: Any
    ) -> str:
        """The event's id, as its host stamps it."""
        now, machine = self.table.now, self.machines[node]
        announced = machine.announcements.by_name.get(f"{type}#{producer}" if producer else type)
        event = Event(type, content or {}, **more).stamped(
            id=f"{node}:{next(self._numbers)}",
            source=node,
            time=now,
            position=self.where(node),
            velocity=machine.location.velocity(now),
            area=announced.area(self.where(node)) if announced else None,
        )
        self.events[event.id] = event
        self.table.do(node, "publish", event)
        return event.id

    def receivers(self, event: str) -> list[str]:
        """The nodes that delivered the event, sorted; a node that delivered it twice appears twice."""
        return sorted(node for node, delivered, _ in self.table.delivered if delivered == event)

    def senders(self, tag: str) -> list[str]:
        """The nodes that sent packets of this kind, in order."""
        return [node for node, packet in self.table.sent if tag_of(packet) == tag]

    def reasons(self, node: str) -> list[str]:
        """Why this node dropped something, in order."""
        return [reason for where, reason in self.table.drops if where == node]
