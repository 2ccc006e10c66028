"""The machine: one node's half of a protocol, without clock, socket, thread or global.

A host (the simulator, or a live node) calls the entry points with what happened and `now`, and
carries out the effects they return. Place comes from an injected location service, chance from an
injected `random.Random`, and how busy the channel is from an injected channel service. There is no
protocol logic here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Protocol

import msgspec

from earshot.events import Event, EventType
from earshot.filters import Subscription, Viewer
from earshot.geometry import STILL, Position, Proximity, Velocity
from earshot.protocols.common.byte_budget import TableBudgets
from earshot.protocols.tuning import Surroundings, Tunable
from earshot.records import DropReason
from earshot.records.details import announcement_name
from earshot.wire import Packet

Timer = Hashable
"A timer's name: a word, or a tuple that begins with one."


@dataclass(frozen=True, slots=True)
class Announcement:
    """An event type that a publisher will publish, and within which proximity (None: everywhere)."""

    event_type: EventType
    proximity: Proximity | None = None
    producer: str = ""
    """Which of several producers on one node announces it, where a protocol can tell them apart
    (`Machine.several_producers`). An announcement of the same type by the same producer replaces the earlier one."""

    @property
    def name(self) -> str:
        """What `unannounce` ends: the type's subject, and the producer's name if it has one."""
        return announcement_name(self.event_type.subject, self.producer)


# Every packet that is passed on makes an effect; a msgspec struct is made five times faster than a frozen dataclass.


class Broadcast(msgspec.Struct, frozen=True, gc=False):
    """Send to every node in range; with a group, to its members only."""

    packet: Packet
    group: int | None = None


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send to one peer; the host calls `unreachable` if that fails."""

    peer: str
    packet: Packet


class StartTimer(msgspec.Struct, frozen=True, gc=False):
    """Call `wake(name)` at that time; a running timer of the same name is replaced."""

    name: Timer
    at: float


class CancelTimer(msgspec.Struct, frozen=True, gc=False):
    """Cancel the timer; does nothing if none of that name runs."""

    name: Timer


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Hand the event to the application, for this subscription."""

    event: Event
    subscription: str
    hops: int = -1


class Drop(msgspec.Struct, frozen=True, gc=False):
    """The machine dropped something, and why: logged and counted, never silent."""

    reason: DropReason
    event: str = ""


class JoinGroup(msgspec.Struct, frozen=True, gc=False):
    """Hear broadcasts to this group from now on."""

    group: int


class LeaveGroup(msgspec.Struct, frozen=True, gc=False):
    """Stop hearing broadcasts to this group."""

    group: int


class Note(msgspec.Struct, frozen=True, gc=False):
    """The machine reports something about itself (its broker, its parent, its mesh): logged only."""

    topic: str
    detail: str


Effect = Broadcast | Send | StartTimer | CancelTimer | Deliver | Drop | JoinGroup | LeaveGroup | Note
Effects = Sequence[Effect]


class NoEffects(list[Effect]):
    """A list that stays empty: all machines share it."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("NOTHING is shared and stays empty; call self.broadcast(...) and return self.effects()")

    append = extend = insert = __iadd__ = __imul__ = __setitem__ = _refuse


NOTHING: list[Effect] = NoEffects()
"What an entry point returns when there is nothing to do."


class Location(Protocol):
    """Where this node is and was, as its host knows it. The last `TRACK_S` seconds at least are known; before them
    a host answers with the oldest position it has."""

    def position(self, time: float) -> Position:
        """The position at that time."""
        ...

    def velocity(self, time: float) -> Velocity:
        """The velocity at that time."""
        ...


TRACK_S = 120.0
"Hosts know where their node was for at least this long: longer than most events live."


@dataclass(frozen=True, slots=True)
class FixedLocation:
    """A node that stays where it is; also the location tests inject."""

    at: Position = Position(0.0, 0.0)
    moving: Velocity = STILL

    def position(self, time: float) -> Position:
        return self.at

    def velocity(self, time: float) -> Velocity:
        return self.moving


def viewer_at(location: Location, event: Event, now: float) -> Viewer:
    """A node as a subscriber when the event was published: where it was and how it moved. An event from a clock that
    runs ahead is judged now."""
    time = event.time if event.time < now else now
    return Viewer(location.position(time), location.velocity(time))


class Channel(Protocol):
    """The channel around this node, as its host measures it. A machine that would send much may ask it first."""

    def busy_share(self, now: float) -> float:
        """The share of about the last 5 s in which this node found the channel busy, its own sending included;
        0 where the host cannot tell."""
        ...

    def airtime_s(self, size_bytes: int) -> float:
        """How long a packet of that size keeps the channel busy; 0 where the host cannot tell."""
        ...


class QuietChannel:
    """A channel that nobody measures: never busy, and packets take no time."""

    def busy_share(self, now: float) -> float:
        return 0.0

    def airtime_s(self, size_bytes: int) -> float:
        return 0.0


QUIET_CHANNEL = QuietChannel()


ALONE = frozenset({"lifespan_s", "priority", "deadline_s"})
"The attributes of an event type that a host keeps by itself."
WITH_NEIGHBOURS = frozenset({"reliability", "history"})
"The attributes for which a host needs its neighbours."


class Machine:
    """The base of every protocol: entry points that do nothing yet, and verbs that make effects.

    An entry point calls the verbs and ends with `return self.effects()`; if nothing happens it
    returns `NOTHING`.
    """

    name: ClassVar[str]
    "Its name in the catalogue."
    paper: ClassVar[str]
    "Where it was published, in one line."
    several_producers: ClassVar[bool] = False
    "Whether one node may announce a type several times, as different producers with proximities of their own."
    needs_routing: ClassVar[bool] = False
    "Whether a `Send` must reach any node by its name, over several hops or infrastructure; else only neighbours."
    needs_two_way_links: ClassVar[bool] = False
    """Whether it sends packets back to the neighbours that it heard, so that what it hears over a link that carries
    nothing back misleads it. A live host then ignores packets from peers that have not answered a challenge."""
    Settings: ClassVar[type[Any]]
    "A frozen dataclass; its defaults are the paper's where the paper gives values."

    def __init__(
        self, node: str, settings: Any, location: Location, random: Random, channel: Channel = QUIET_CHANNEL
    ) -> None:
        self.node = node
        self.settings = settings
        self.location = location
        self.random = random
        self.channel = channel
        self.budgets = TableBudgets()
        "How many bytes its tables may hold. A host may change it before the machine starts."
        self._effects: list[Effect] = []

    @classmethod
    def uses_routing(cls, settings: Any) -> bool:  # noqa: ARG003
        """Whether it needs routing with these settings."""
        return cls.needs_routing

    @classmethod
    def kept_qualities(cls, settings: Any) -> frozenset[str]:
        """The attributes of an event type that hold with these settings (`earshot.quality`). Hosts see to them; for
        `reliability` and `history` a node asks its neighbours, and a protocol over routing may have none."""
        return ALONE if cls.uses_routing(settings) else ALONE | WITH_NEIGHBOURS

    @classmethod
    def doubts(cls, settings: Any) -> tuple[str, ...]:  # noqa: ARG003
        """What a user should be warned of before a run with these settings, a sentence each."""
        return ()

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:  # noqa: ARG003
        """The settings that are worth trying in these surroundings, the most telling first."""
        return ()

    # What happens to a machine.

    def start(self, now: float) -> Effects:
        """The node starts, without any timer running."""
        return NOTHING

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        """The application subscribes."""
        return NOTHING

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        """The application ends the subscription with this id."""
        return NOTHING

    def announce(self, announcement: Announcement, now: float) -> Effects:
        """The application will publish events of this type."""
        return NOTHING

    def unannounce(self, subject: str, now: float) -> Effects:
        """The application will no longer publish events of this type. With several producers, `subject` is the name
        of the announcement that ends."""
        return NOTHING

    def publish(self, event: Event, now: float) -> Effects:
        """The application publishes an event, stamped by its host."""
        return NOTHING

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        """A packet arrived from this peer."""
        return NOTHING

    def wake(self, timer: Timer, now: float) -> Effects:
        """A timer fired."""
        return NOTHING

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        """A `Send` could not be delivered."""
        return NOTHING

    def stop(self, now: float) -> Effects:
        """The node shuts down properly."""
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
        """The effects that the verbs have made since the last call."""
        if not self._effects:
            return NOTHING
        effects, self._effects = self._effects, []
        return effects

    # What a machine knows about itself.

    def viewer_at(self, event: Event, now: float) -> Viewer:
        """This node as a subscriber when the event was published."""
        return viewer_at(self.location, event, now)
