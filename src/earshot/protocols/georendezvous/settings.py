"""GeoRendezvous' settings, and the places that a topic hashes to (sections 2.2 to 2.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from earshot.errors import SettingsError
from earshot.geometry import Position
from earshot.protocols.georendezvous.cell_hash_routing import CellSettings
from earshot.protocols.georendezvous.cells import largest_side_m
from earshot.settings import AtLeastOne, Count, NotNegative, Positive

FEWEST_IN_CELL: Final = 1.0
"Cells that hold fewer nodes on average are so often empty that the cell graph falls apart."


@dataclass(frozen=True, slots=True)
class GeoRendezvousSettings(CellSettings):
    """GeoRendezvous' settings, on top of those of its cells."""

    rendezvous: int = 2
    "Symbol n: how many positions a topic hashes to (section 2.3); each costs every publisher its advertisements."
    nearest: int = 1
    "Symbol m: at how many of them, nearest first, a subscriber subscribes (section 2.4)."
    width_m: Positive = field(default=1000.0, metadata={"scenario": "area.width_m"})
    "The rectangle that topics hash into reaches this far east of the origin; in a simulation, as the scenario's area."
    height_m: Positive = field(default=1000.0, metadata={"scenario": "area.height_m"})
    "The rectangle reaches this far north of the origin; in a simulation, as the scenario's area."
    network_nodes: int | None = field(default=None, metadata={"scenario": "node_count"})
    "The number of nodes in that rectangle, where it is known: cells then have room for `cell_nodes`."
    content_at_rendezvous: bool = True
    """Whether rendezvous cells apply subscribers' filters and events' areas, so that only events travel on that a
    subscriber may want; the paper's are topic-only."""
    asked_first: bool = True
    """Whether a publisher notifies all its rendezvous cells. Otherwise it waits until a cell forwards it a
    subscription (section 2.2), which may miss a publisher that moves, and stops when the cell prunes it."""
    place_margin_cells: NotNegative = 2.5
    "A subscriber counts as near an event's area within this many cells of the cell that it named."
    keep_records: Count = 12
    """Members of a cell share records in acknowledged packets of at most this many, to each member. 0: in one
    broadcast, which a busy channel may lose."""
    renew_interval_s: Positive = 20.0
    "How often owners renew their advertisements and subscriptions (section 2.2)."
    renew_cells: Count = 4
    """A record at a point that is this many cells away, or twice as many, is renewed every second, or third time, so
    that distant points cost no more. 0: all are renewed every time."""
    record_lifespan_s: float = 70.0
    "A record that is not renewed for this long, or as many times longer as it is renewed less often, expires."
    choose_after_s: Positive = 1.0
    "How long a subscriber waits for the slower paths of its first notification before it chooses."
    hold_s: Positive = 5.0
    "For this long after its announcement a publisher keeps its events for rendezvous cells that have yet to ask."
    handover_delay_s: Positive = 0.05
    "Members of a cell answer a newcomer after a random part of this, so that only one of them does."
    remembered_events: AtLeastOne = 10_000
    "How many events a node remembers, to recognise duplicates."

    def __post_init__(self) -> None:
        CellSettings.__post_init__(self)
        if self.rendezvous < 1:
            raise SettingsError(f"rendezvous (n) must be at least 1: a topic needs a place, got {self.rendezvous}")
        if not 1 <= self.nearest <= self.rendezvous:
            raise SettingsError(
                f"nearest (m) must lie between 1 and rendezvous (n = {self.rendezvous}), got {self.nearest}: "
                "a subscriber can choose only among the places there are"
            )
        if not self.record_lifespan_s > self.renew_interval_s:
            raise SettingsError(
                f"record_lifespan_s must be longer than renew_interval_s ({self.renew_interval_s:g} s), or records "
                f"expire before they are renewed, got {self.record_lifespan_s}"
            )

    @property
    def density_per_m2(self) -> float:
        return (self.network_nodes or 0) / (self.width_m * self.height_m)

    def doubts(self) -> tuple[str, ...]:
        """What the user should know about the cells' side."""
        paper_m, side_m = largest_side_m(self.range_m), self.side_m
        if not self.density_per_m2:
            if self.cell_side_m is not None or self.links == "own":
                return ()
            return (
                f"georendezvous does not know how many nodes there are, so its cells have the paper's side of "
                f"{paper_m:.0f} m, which leaves many empty below about 40 neighbours a node; give every node the same "
                "network_nodes, width_m and height_m, or the same cell_side_m (`earshot advise` writes them)",
            )
        held, paper_held = self.density_per_m2 * side_m**2, self.density_per_m2 * paper_m**2
        if held < FEWEST_IN_CELL:
            return (
                f"georendezvous' cells of {side_m:.0f} m hold {held:.1f} nodes on average: many are empty, and packets "
                f"do not find their way; leave cell_side_m out with links = shared, or use a radio of longer range",
            )
        if side_m > paper_m and self.cell_side_m is None:
            return (
                f"georendezvous' cells have a side of {side_m:.0f} m and hold {held:.1f} nodes on average; the paper's "
                f"side of {paper_m:.0f} m would hold {paper_held:.1f} and leave many empty",
            )
        return ()

    def renewals(self, cells_away: float) -> int:
        """A record at a point that is this far away skips renewals: only each n-th one is sent. Returns n."""
        return 1 + int(cells_away / self.renew_cells) if self.renew_cells else 1

    def point(self, topic: str, index: int) -> Position:
        """The topic's rendezvous point of that index."""
        origin = Position(self.origin_x_m, self.origin_y_m)
        return rendezvous_point(topic, index, origin, self.width_m, self.height_m)

    def points(self, topic: str) -> list[Position]:
        """The topic's n rendezvous points."""
        return [self.point(topic, index) for index in range(self.rendezvous)]


@lru_cache(maxsize=65_536)
def rendezvous_point(topic: str, index: int, origin: Position, width_m: float, height_m: float) -> Position:
    """hash(topic, i): a pseudo-random position in the rectangle north-east of the origin, the same on
    every node (sections 2.2 and 2.3). Cached: nodes need the points of a few topics again and again."""
    digest = hashlib.blake2b(f"{index}:{topic}".encode(), digest_size=16).digest()
    east, north = (int.from_bytes(half, "big") / 2**64 for half in (digest[:8], digest[8:]))
    return origin.moved(east * width_m, north * height_m)


def nearest_points(points: Sequence[Position], position: Position, count: int) -> list[int]:
    """The indexes of the `count` points nearest to the position, nearest first (section 2.4)."""
    by_distance = sorted((position.distance_to(point), index) for index, point in enumerate(points))
    return [index for _, index in by_distance[:count]]


AS_WRITTEN: Final[dict[str, Any]] = {
    "cell_nodes": 0.0,
    "links": "own",
    "burst_packets": 0,
    "neighbour_lifespan_s": 3.5,
    "home_memory_s": 10.0,
    "hop_limit": 2000,
    "content_at_rendezvous": False,
    "asked_first": False,
    "rendezvous": 8,
    "nearest": 2,
    "keep_records": 0,
    "renew_interval_s": 10.0,
    "renew_cells": 0,
    "record_lifespan_s": 35.0,
}
"The settings in which the paper's protocol differs from the defaults, which are for sparser and busier networks."

PAPER = GeoRendezvousSettings(**AS_WRITTEN)
