"""The workload: what the nodes' applications do, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from earshot.events import Event
from earshot.filters import Subscription
from earshot.protocols.machine import Announcement


@dataclass(frozen=True, slots=True)
class Unannounce:
    """The node stops publishing events of this subject."""

    subject: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The node ends this subscription."""

    id: str


What = Announcement | Unannounce | Subscription | Unsubscribe | Event


@dataclass(frozen=True, slots=True)
class Action:
    """At `time` the application on node number `node` does `what`.

    An `Event` is unstamped: the publishing host gives it id, source, time, position, velocity and area.
    """

    time: float
    node: int
    what: What


class Workload:
    """Actions in order of time; those at the same time in the order given."""

    def __init__(self, actions: Iterable[Action]) -> None:
        self.actions: tuple[Action, ...] = tuple(sorted(actions, key=lambda action: action.time))

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)
