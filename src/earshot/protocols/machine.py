"""The machine: one node's half of a protocol, without clock, socket, thread or global.

A host (the simulator, or a live node) calls the entry points with what happened and `now`, and
carries out the effects they return. Place comes from an injected location service, chance from an
injected `random.Random`. There is no protocol logic here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Literal, Protocol

import msgspec

from earshot.events import Event, EventType
from earshot.filters import Subscription, Viewer
from earshot.geometry import STILL, Position, Proximity, Velocity
from earshot.records import DropReason
from earshot.wire import Packet

Timer = Hashable
"A timer's name: a word, or a tuple that begins with one."


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a publisher intends to publish, and within which proximity (None: everywhere)."""

    event_type: EventType
    proximity: Proximity | None = None


# Effects are made for every packet that is passed on: a msgspec struct takes a fifth of a frozen dataclass's time.


class Broadcast(msgspec.Struct, frozen=True, gc=False):
    """Send to every node in range; with a group, to its members only."""

    packet: Packet
    group: int | None = None


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send to one peer; comes back through `unreachable` where that cannot be done."""

    peer: str
    packet: Packet


class StartTimer(msgspec.Struct, frozen=True, gc=False):
    """Call `wake(name)` at that time; a running timer of the same name is replaced."""

    name: Timer
    at: float


class CancelTimer(msgspec.Struct, frozen=True, gc=False):
    """Forget the timer; nothing happens where none runs."""

    name: Timer


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Hand the event to the application, for this subscription."""

    event: Event
    subscription: str
    hops: int = -1


class Drop(msgspec.Struct, frozen=True, gc=False):
    """Something was let go, and why: logged, counted, never silent."""

    reason: DropReason
    event: str = ""


class JoinGroup(msgspec.Struct, frozen=True, gc=False):
    """Hear broadcasts to this group from now on."""

    group: int


class LeaveGroup(msgspec.Struct, frozen=True, gc=False):
    """Stop hearing broadcasts to this group."""

    group: int


class Note(msgspec.Struct, frozen=True, gc=False):
    """Something the machine wants known about itself (its broker, its parent, its mesh): logged only."""

    topic: str
    detail: str


Effect = Broadcast | Send | StartTimer | CancelTimer | Deliver | Drop | JoinGroup | LeaveGroup | Note
Effects = Sequence[Effect]
NOTHING: list[Effect] = []
"What an entry point returns where nothing is to be done. Never appended to."


class Location(Protocol):
    """Where this node is, as its host knows it."""

    def position(self, now: float) -> Position:
        """The position at that time."""
        ...

    def velocity(self, now: float) -> Velocity:
        """The velocity at that time."""
        ...


@dataclass(frozen=True, slots=True)
class FixedLocation:
    """A node that stays where it is; also the location tests inject."""

    at: Position = Position(0.0, 0.0)
    moving: Velocity = STILL

    def position(self, now: float) -> Position:
        return self.at

    def velocity(self, now: float) -> Velocity:
        return self.moving


class Machine:
    """The base of every protocol: entry points that do nothing yet, and the verbs that make effects.

    An entry point uses the verbs and ends with `return self.effects()`; where nothing happens it
    returns `NOTHING` at once.
    """

    name: ClassVar[str]
    "The catalogue's name for it."
    paper: ClassVar[str]
    "Where it comes from, in one line."
    medium: ClassVar[Literal["radio", "overlay"]] = "radio"
    Settings: ClassVar[type[Any]]
    "A frozen dataclass whose defaults are the paper's."

    def __init__(self, node: str, settings: Any, location: Location, random: Random) -> None:
        self.node = node
        self.settings = settings
        self.location = location
        self.random = random
        self._effects: list[Effect] = []

    # What happens to a machine.

    def start(self, now: float) -> Effects:
        """The node comes up."""
        return NOTHING

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        """The application wants what this filter matches."""
        return NOTHING

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        """The application no longer wants it."""
        return NOTHING

    def announce(self, announcement: Announcement, now: float) -> Effects:
        """The application will publish events of this type."""
        return NOTHING

    def unannounce(self, subject: str, now: float) -> Effects:
        """It no longer will."""
        return NOTHING

    def publish(self, event: Event, now: float) -> Effects:
        """The application publishes an event, stamped by its host."""
        return NOTHING

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        """A packet arrived from a peer in range, or from a known one."""
        return NOTHING

    def wake(self, timer: Timer, now: float) -> Effects:
        """A timer ran out."""
        return NOTHING

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        """A `Send` could not be delivered."""
        return NOTHING

    def stop(self, now: float) -> Effects:
        """The node goes down in good order."""
        return NOTHING

    # What a machine asks of its host.

    def broadcast(self, packet: Packet, group: int | None = None) -> None:
        self._effects.append(Broadcast(packet, group))

    def send(self, peer: str, packet: Packet) -> None:
        self._effects.append(Send(peer, packet))

    def start_timer(self, name: Timer, at: float) -> None:
        self._effects.append(StartTimer(name, at))

    def cancel_timer(self, name: Timer) -> None:
        self._effects.append(CancelTimer(name))

    def deliver(self, event: Event, subscription: str, hops: int = -1) -> None:
        self._effects.append(Deliver(event, subscription, hops))

    def drop(self, reason: DropReason, event: str = "") -> None:
        self._effects.append(Drop(reason, event))

    def join_group(self, group: int) -> None:
        self._effects.append(JoinGroup(group))

    def leave_group(self, group: int) -> None:
        self._effects.append(LeaveGroup(group))

    def note(self, topic: str, detail: str) -> None:
        self._effects.append(Note(topic, detail))

    def effects(self) -> Effects:
        """What has been asked since the last time, handed over."""
        effects, self._effects = self._effects, []
        return effects

    # What a machine knows of itself.

    def viewer(self, now: float) -> Viewer:
        """This node as a consumer: where it is and how it moves."""
        return Viewer(self.location.position(now), self.location.velocity(now))
