"""Fences: an application asks for notice when its node enters or leaves announced areas, or others come near."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from earshot.errors import UsageError
from earshot.filters.language.event_types import type_matches
from earshot.geometry import Position
from earshot.protocols.services.announced_types import Key, Statement
from earshot.wire import NodeName, Packet, Whole

LOOK_EVERY_S = 0.25
"How often a node with fences looks where it is."
ANY_TYPE = "**"
PARTED = 1.1
"A node that came within the distance is far away again beyond this many times the distance."


class AreasWanted(Packet, frozen=True, tag="areas-wanted"):
    """A node has fences: all that announce a type with a proximity state it for a while."""

    source: NodeName
    number: Whole
    hops: Whole


class Here(Packet, frozen=True, tag="here"):
    """Where its sender is, for hosts whose frames do not say it."""

    at: Position


class Crossing(StrEnum):
    """What a fence reports."""

    ENTER = "enter"
    "This node is inside the announced area."
    LEAVE = "leave"
    "It is outside again, or the area has ended."
    NEARBY = "nearby"
    "Another node is near."
    FARAWAY = "faraway"
    "It is not, or is no longer heard."


class Crossed(msgspec.Struct, frozen=True, gc=False):
    """Tell the application that it crossed this fence."""

    fence: str
    crossing: Crossing
    peer: str
    "Who announced the area, or came near."
    subject: str = ""
    "The type that the area was announced with."


@dataclass(frozen=True, slots=True)
class Fence:
    """What an application wants a notice of."""

    id: str
    event_type: str | None = None
    "The areas that this type is announced with, or a pattern of types (`city/*`), or `**` for all."
    near_m: float | None = None
    "Nodes that come within this distance, or part."

    def __post_init__(self) -> None:
        if self.event_type is None and self.near_m is None:
            raise UsageError("a fence needs an event type, whose areas count, or a distance to other nodes")
        if self.near_m is not None and not (math.isfinite(self.near_m) and self.near_m > 0):
            raise UsageError(f"near_m must be a positive number of metres, got {self.near_m}")


class Fences:
    """The fences of one node, and on which side of each it is."""

    def __init__(self) -> None:
        self.by_id: dict[str, Fence] = {}
        self._inside: dict[str, set[Key]] = {}
        self._near: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self.by_id)

    def add(self, fence: Fence) -> None:
        self.by_id[fence.id] = fence
        self._inside[fence.id] = set()
        self._near[fence.id] = set()

    def remove(self, id: str) -> None:
        if self.by_id.pop(id, None) is not None:
            del self._inside[id], self._near[id]

    def look(
        self,
        here: Position,
        statements: Mapping[Key, Statement],
        others: Iterable[tuple[str, Position]],
        now: float,
    ) -> Iterator[Crossed]:
        """What has been crossed since the last look."""
        areas = {
            key: area.contains(here)
            for key, statement in statements.items()
            if (area := statement.area(now)) is not None
        }
        away_m = {name: here.distance_to(at) for name, at in others}
        for fence in self.by_id.values():
            if fence.event_type is not None:
                yield from self._areas(fence, fence.event_type, areas)
            if fence.near_m is not None:
                yield from self._nodes(fence, fence.near_m, away_m)

    def _areas(self, fence: Fence, pattern: str, areas: Mapping[Key, bool]) -> Iterator[Crossed]:
        was = self._inside[fence.id]
        wanted = (key for key, inside in areas.items() if inside)
        is_inside = {key for key in wanted if pattern == ANY_TYPE or type_matches(pattern, key[1])}
        for source, subject in sorted(was - is_inside):
            yield Crossed(fence.id, Crossing.LEAVE, source, subject)
        for source, subject in sorted(is_inside - was):
            yield Crossed(fence.id, Crossing.ENTER, source, subject)
        self._inside[fence.id] = is_inside

    def _nodes(self, fence: Fence, near_m: float, away_m: Mapping[str, float]) -> Iterator[Crossed]:
        was = self._near[fence.id]
        is_near = {name for name, metres in away_m.items() if metres <= near_m * (PARTED if name in was else 1.0)}
        for name in sorted(was - is_near):
            yield Crossed(fence.id, Crossing.FARAWAY, name)
        for name in sorted(is_near - was):
            yield Crossed(fence.id, Crossing.NEARBY, name)
        self._near[fence.id] = is_near
