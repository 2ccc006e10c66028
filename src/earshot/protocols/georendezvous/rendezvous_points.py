"""Topics and their places: which topics a filter speaks of, where a topic hashes to, which are near."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from earshot.filters import Filter
from earshot.filters.language.syntax import And, Axis, Condition, LocationPath, NodeKind, Or
from earshot.geometry import Position


@lru_cache(maxsize=65_536)
def rendezvous_point(topic: str, index: int, origin: Position, width_m: float, height_m: float) -> Position:
    """hash(topic, i): a pseudo-random position in the rectangle north-east of the origin, the same on
    every node (sections 2.2 and 2.3)."""
    digest = hashlib.blake2b(f"{index}:{topic}".encode(), digest_size=16).digest()
    east, north = (int.from_bytes(half, "big") / 2**64 for half in (digest[:8], digest[8:]))
    return origin.moved(east * width_m, north * height_m)


def nearest_points(points: Sequence[Position], position: Position, count: int) -> list[int]:
    """The indexes of the `count` points nearest to the position, nearest first (section 2.4)."""
    by_distance = sorted((position.distance_to(point), index) for index, point in enumerate(points))
    return [index for _, index in by_distance[:count]]


def topics_of(filter: Filter) -> frozenset[str] | None:
    """The event types a filter is confined to; None where it could match any."""
    return frozenset((filter.type,)) if filter.type is not None else _topics(filter.condition)


def _topics(condition: Condition) -> frozenset[str] | None:
    match condition:
        case LocationPath(absolute=True, steps=(first, *_)) if (
            first.axis is Axis.CHILD and first.kind is NodeKind.ELEMENT and first.name != "*"
        ):
            return frozenset((first.name,))
        case And(terms):
            named = [topics for topics in map(_topics, terms) if topics is not None]
            return frozenset.intersection(*named) if named else None
        case Or(terms):
            every: frozenset[str] = frozenset()
            for topics in map(_topics, terms):
                if topics is None:
                    return None
                every |= topics
            return every
        case _:
            return None
