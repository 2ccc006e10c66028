"""The workload: what the nodes' applications do, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from earshot.errors import QualityError
from earshot.events import Event
from earshot.filters import Subscription
from earshot.protocols.machine import Announcement
from earshot.protocols.services.fences import Fence
from earshot.quality import difference


@dataclass(frozen=True, slots=True)
class Unannounce:
    """The node stops publishing events of this subject; of one of several producers, with the announcement's name."""

    subject: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The node ends this subscription."""

    id: str


@dataclass(frozen=True, slots=True)
class Unfence:
    """The node ends this fence."""

    id: str


What = Announcement | Unannounce | Subscription | Unsubscribe | Event | Fence | Unfence


@dataclass(frozen=True, slots=True)
class Action:
    """At `time` the application on node number `node` does `what`.

    An `Event` is unstamped: the publishing host gives it id, source, time, position, velocity and area.
    """

    time: float
    node: int
    what: What


class Workload:
    """Actions in order of time; actions at the same time stay in the given order."""

    def __init__(self, actions: Iterable[Action]) -> None:
        self.actions: tuple[Action, ...] = tuple(sorted(actions, key=lambda action: action.time))

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)


@dataclass(frozen=True, slots=True)
class Services:
    """Which services beside the protocol a workload needs. A workload that needs none costs nothing."""

    wanted: bool = False
    "Some type has attributes, or some node has a fence."
    near: bool = False
    "Some node wants to know which nodes come near."

    @classmethod
    def wanted_by(cls, workload: Workload) -> Services:
        """What this workload needs; QualityError if two announcements of one type have different attributes."""
        attributes: dict[str, Mapping[str, str]] = {}
        fences = []
        for action in workload:
            match action.what:
                case Announcement(event_type=kind):
                    known = attributes.setdefault(kind.subject, kind.attributes)
                    if why := difference(kind.subject, kind.attributes, known, "another announcement"):
                        raise QualityError(why)
                case Fence() as fence:
                    fences.append(fence)
        near = any(fence.near_m is not None for fence in fences)
        return cls(bool(fences) or any(attributes.values()), near)
