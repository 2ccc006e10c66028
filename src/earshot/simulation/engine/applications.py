"""The applications on a node: what they have announced and subscribed to, through restarts."""

from __future__ import annotations

from dataclasses import dataclass, field

from earshot.events import Event
from earshot.filters import Subscription
from earshot.geometry import Position, Velocity
from earshot.protocols.machine import Announcement
from earshot.simulation.engine.result import Wish


@dataclass(slots=True)
class Application:
    """A machine loses its memory in a crash; the people and programs that use it do not."""

    announcements: dict[str, Announcement] = field(default_factory=dict)
    "By subject, in the order they were made."
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    wishes: dict[str, Wish] = field(default_factory=dict)
    "The record of each present subscription."
    published: int = 0

    def stamp(self, event: Event, source: str, time: float, position: Position, velocity: Velocity) -> Event:
        """The event as its publishing node sends it: numbered, dated, placed, with the area its type
        was announced for."""
        announcement = self.announcements.get(event.type)
        proximity = None if announcement is None else announcement.proximity
        stamped = event.stamped(
            id=f"{source}-{self.published}",
            source=source,
            time=time,
            position=position,
            velocity=velocity,
            area=None if proximity is None else proximity.area(position),
        )
        self.published += 1
        return stamped
