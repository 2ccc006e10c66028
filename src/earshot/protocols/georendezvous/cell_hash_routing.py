"""Cell Hash Routing (CHR), by F. Araújo, L. Rodrigues, J. Kaiser, C. Liu and C. Mitidieri (DEBS 2005).

The part a machine holds to reach places instead of nodes (section 2.1): beacons show which neighbouring cells
are populated and by which nodes; a packet goes from cell to cell, each time to a random member of the next
one, until it reaches the home cell of its target, or the node it names. The part sends nothing itself: it
returns what its machine is to do. The geometry is in `cells.py`; readings
and departures in docs/papers/georendezvous.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal

import msgspec

from earshot.errors import SettingsError
from earshot.geometry import Position
from earshot.protocols.georendezvous import cells
from earshot.protocols.georendezvous.cells import Cell, CellGrid, Perimeter
from earshot.protocols.machine import Broadcast, Drop, Effect, Send, StartTimer
from earshot.records import DropReason
from earshot.settings import AtLeastOne, Count, Finite, NotNegative, Positive, check_bounds
from earshot.wire import Packet, Whole, Word

_JITTER: Final = 0.1
"Beacons come this share of their interval earlier or later, so that they do not keep colliding."
MOST_WAITING: Final = 4096
"Packets that wait while a node listens; more are dropped."
_LISTEN: Final = 1.2
"A node listens for this many beacon intervals before it routes: by then it has heard every neighbour once."


@dataclass(frozen=True, slots=True)
class CellSettings:
    """What all nodes of a network agree on about their cells."""

    range_m: Positive = field(default=100.0, metadata={"scenario": "medium.range_m"})
    "How far a node is heard; in a simulation, the range of the scenario's medium."
    cell_side_m: Positive | None = None
    """A cell's side; None: range / (2 * sqrt 2), the largest at which neighbouring cells always hear each other, or
    longer where the network is so sparse that such cells would hold fewer than `cell_nodes` nodes."""
    cell_nodes: NotNegative = 2.0
    """Cells of a network whose density is known hold this many nodes on average, if their members can hear each
    other: with fewer, too many are empty, and the cell graph falls apart. 0: cells keep the paper's side."""
    links: Literal["own", "shared"] = "shared"
    """Which neighbouring cells a packet can go to: those that the node hears itself, which is all of them with the
    paper's side, or those that any member of its cell hears."""
    burst_packets: Count = 2
    """A node that starts, or renews its records, sends this many packets every 50 ms, so that they do not fill its
    queue. 0: all at once."""
    walk_limit: AtLeastOne = 12
    "With shared links, a walk around a face ends after this many steps, at the cell where it began."
    origin_x_m: Finite = field(default=0.0, metadata={"scenario": "area.west_m"})
    "The arbitrary origin of space (section 2.1); in a simulation, the area's south-west corner."
    origin_y_m: Finite = field(default=0.0, metadata={"scenario": "area.south_m"})
    beacon_interval_s: Positive = 1.0
    neighbour_lifespan_s: float = 2.5
    "A neighbour that has been silent for this long expires."
    home_memory_s: NotNegative = 30.0
    "A home cell walks around its perimeter again only after this time (footnote 1). 0: each time."
    hop_limit: AtLeastOne = 200
    "A packet is dropped after this many hops, which a walk may reach where the network changes meanwhile."

    def __post_init__(self) -> None:
        check_bounds(self)
        largest_m, asked = cells.largest_side_m(self.range_m), "nodes would not hear all of the eight cells around"
        largest_text = f"range / (2 * sqrt 2) = {largest_m:g}"
        if self.links == "shared":
            largest_m, asked = self.range_m / math.sqrt(2), "the members of a cell would not hear each other"
            largest_text = f"range / sqrt 2 = {largest_m:g}"
        if self.cell_side_m is not None and self.cell_side_m > largest_m * (1 + 1e-9):
            raise SettingsError(
                f"cell_side_m = {self.cell_side_m:g} is too large for range_m = {self.range_m:g}: {asked}; "
                f"at most {largest_text}"
            )
        if not self.neighbour_lifespan_s > (1 + _JITTER) * self.beacon_interval_s:
            raise SettingsError(
                f"neighbour_lifespan_s must be longer than {1 + _JITTER:g} beacon intervals "
                f"({(1 + _JITTER) * self.beacon_interval_s:g} s), got {self.neighbour_lifespan_s}"
            )

    @property
    def grid(self) -> CellGrid:
        """The cells these settings give."""
        return CellGrid(self.side_m, Position(self.origin_x_m, self.origin_y_m))

    @property
    def side_m(self) -> float:
        """The side that is set, or the paper's, or a longer one that the density asks for."""
        if self.cell_side_m is not None:
            return self.cell_side_m
        paper_m = cells.largest_side_m(self.range_m)
        if self.links == "own" or not self.density_per_m2:
            return paper_m
        return max(paper_m, min(math.sqrt(self.cell_nodes / self.density_per_m2), self.range_m / math.sqrt(2)))

    @property
    def density_per_m2(self) -> float:
        """Nodes a square metre; 0 where that is not known."""
        return 0.0


class Beacon(Packet, frozen=True, tag="chr-beacon"):
    """The sender's cell; None in a farewell. `fresh`: new in this cell, and without its keys."""

    cell: Cell | None
    fresh: bool = False


class Walk(msgspec.Struct, frozen=True, array_like=True):
    """A packet in perimeter mode, on its way around a face."""

    entry: Cell
    "The local minimum where the walk began."
    first: Whole
    "The first edge taken there."
    at: Cell
    "The cell that sent it last."
    before: Cell | None
    "The cell that sent it before, for a sender that has to try again; None at the start of the walk."
    steps: Whole
    mark: tuple[Cell, Whole]
    "The edge taken at the last step whose number is a power of two: a walk that takes it again goes in circles."

    def as_received(self, cell: Cell) -> Walk | None:
        """The walk as it came to the cell that passed it on; None where it began there."""
        if self.before is None or self.at != cell:
            return None
        mark = (self.entry, self.first)
        return Walk(self.entry, self.first, at=self.before, before=None, steps=self.steps - 1, mark=mark)


class Heading(msgspec.Struct, frozen=True, array_like=True):
    """Where a packet goes; with a walk: in perimeter mode."""

    target: Cell
    node: Word = ""
    "The node it is for, last known in the target cell; empty: any member of the target's home cell."
    walk: Walk | None = None


class RoutedPacket(Packet, frozen=True):
    """A packet that goes from cell to cell."""

    heading: Heading
    hops: Whole
    "Transmissions so far."


@dataclass(frozen=True, slots=True)
class CellAppeared:
    """An empty neighbouring cell has become populated."""

    cell: Cell


@dataclass(frozen=True, slots=True)
class NodeEntered:
    """A node without keys has come into this node's cell."""

    node: str
    since: float = -math.inf
    "It lacks only what has changed since then: it was a member already, and was not heard for a while."


@dataclass(slots=True)
class CellNeighbour:
    """A node in range, as its beacons show it."""

    cell: Cell
    heard_at: float


class CellHashRouting:
    """One node's cell, its neighbours, and the next hop of a packet."""

    def __init__(self, node: str, settings: CellSettings, random: Random) -> None:
        self.node = node
        self.settings = settings
        self.random = random
        self.grid = settings.grid
        self.cell: Cell = (0, 0)
        self.neighbours: dict[str, CellNeighbour] = {}
        self.members: dict[Cell, dict[str, None]] = {}
        "The neighbours by cell."
        self.neighbourhood = 0
        self.homes: dict[Cell, float] = {}
        "Targets for which a walk around the home perimeter has shown this cell to be the home, and when."
        self.fresh = True
        self._listening = True
        self._waiting: list[RoutedPacket] = []

    # Beacons: which cells around are populated, and by which nodes.

    def start(self, position: Position, now: float) -> list[Effect]:
        """Listen before routing anything; send the first beacon within the first interval."""
        self.cell = self.grid.cell_of(position)
        interval_s = self.settings.beacon_interval_s
        first_at = now + self.random.random() * interval_s
        return [StartTimer("beacon", at=first_at), StartTimer("listened", at=now + _LISTEN * interval_s)]

    def listened(self) -> list[RoutedPacket]:
        """The node has heard its neighbours: the packets that waited for it, to be routed now."""
        self._listening = False
        waiting, self._waiting = self._waiting, []
        return waiting

    @property
    def is_listening(self) -> bool:
        """Whether the node has yet to hear its neighbours."""
        return self._listening

    def on_beacon_timer(self, now: float) -> list[Effect]:
        """Forget what is out of date, send a beacon, and again after an interval."""
        oldest = now - self.settings.neighbour_lifespan_s
        for node in [node for node, known in self.neighbours.items() if known.heard_at < oldest]:
            self.forget(node)
        self.homes = {target: at for target, at in self.homes.items() if now - at < self.settings.home_memory_s}
        jitter = 1 + _JITTER * (2 * self.random.random() - 1)
        return [Broadcast(self.beacon()), StartTimer("beacon", at=now + jitter * self.settings.beacon_interval_s)]

    def beacon(self) -> Beacon:
        """The beacon that is due; only the first one in a cell is fresh."""
        fresh, self.fresh = self.fresh, False
        return Beacon(self.cell, fresh)

    def on_beacon(self, beacon: Beacon, sender: str, now: float) -> CellAppeared | NodeEntered | None:
        """Section 2.1: beacons show which neighbouring cells are populated, and by which nodes."""
        known = self.neighbours.get(sender)
        if known is not None and known.cell == beacon.cell and not beacon.fresh:
            known.heard_at = now
            return None
        if known is not None:
            self.forget(sender)
        cell = beacon.cell
        if cell is None:
            return None
        self.neighbours[sender] = CellNeighbour(cell, heard_at=now)
        self.members.setdefault(cell, {})[sender] = None
        direction = cells.direction_to(self.cell, cell)
        if direction is not None and not self.neighbourhood >> direction & 1:
            self.neighbourhood |= 1 << direction
            return CellAppeared(cell)
        return NodeEntered(sender) if beacon.fresh and cell == self.cell else None

    def forget(self, node: str) -> None:
        """The node is no longer a neighbour."""
        known = self.neighbours.pop(node, None)
        if known is None:
            return
        members = self.members[known.cell]
        del members[node]
        if not members:
            del self.members[known.cell]
            direction = cells.direction_to(self.cell, known.cell)
            if direction is not None:
                self.neighbourhood &= ~(1 << direction)

    def move_to(self, position: Position) -> Cell | None:
        """This node is there now; the cell it has left, where it is in another one than before."""
        cell = self.grid.cell_of(position)
        if cell == self.cell:
            return None
        left, self.cell = self.cell, cell
        self.neighbourhood = cells.neighbourhood(cell, self.members)
        self.fresh = True
        self.homes.clear()
        return left

    def others(self) -> list[str]:
        """The other members of this node's cell."""
        return list(self.members.get(self.cell, ()))

    def leads(self) -> bool:
        """Whether this node does what exactly one member of the cell should do: the first by name does."""
        return all(self.node < other for other in self.members.get(self.cell, ()))

    def cells_around(self, target: Cell) -> list[str]:
        """A member of each other cell that may keep keys of the target too. In the paper's network there is none."""
        return []

    # Routing.

    def route(self, packet: RoutedPacket, now: float) -> Send | Drop | RoutedPacket | None:
        """Section 2.1, figure 1: the packet's next step, from the cell that `move_to` has set.

        The packet itself: it is for this node, or this node's cell is its target's home. None: it waits until
        the node has heard its neighbours.
        """
        if self._listening:
            if len(self._waiting) >= MOST_WAITING:
                return Drop(DropReason.TOO_MANY_PACKETS_WAITING)
            self._waiting.append(packet)
            return None
        if packet.heading.node == self.node:
            return packet
        return self._next_hop(packet, packet.heading.walk, now)

    def unreachable(self, packet: RoutedPacket, now: float) -> Send | Drop | RoutedPacket | None:
        """A member did not answer: try another one, of the same cell if there is one."""
        walk = packet.heading.walk
        if walk is not None:
            walk = walk.as_received(self.cell)
        return self._next_hop(msgspec.structs.replace(packet, hops=packet.hops - 1), walk, now)

    def _next_hop(self, packet: RoutedPacket, walk: Walk | None, now: float) -> Send | Drop | RoutedPacket:
        """To the next cell. A walk whose last cell is not next to this one cannot be continued."""
        heading = packet.heading
        came_from = None if walk is None else cells.direction_to(self.cell, walk.at)
        if not 0 <= packet.hops < self.settings.hop_limit:
            return lost(packet, DropReason.HOP_LIMIT)
        if heading.node and self._is_near(heading.node):
            return sent(heading.node, packet, Heading(heading.target, heading.node))
        perimeter = None
        if walk is not None and came_from is not None and not self._is_empty(walk.entry):
            perimeter = Perimeter(walk.entry, walk.first)
        direction, onward = cells.step(self.cell, self.neighbourhood, heading.target, perimeter, came_from or 0)
        if walk is not None and onward is perimeter and (self.cell, direction) == walk.mark:
            # Cells have come and gone, and the walk has lost its entry: it starts again.
            direction, onward = cells.step(self.cell, self.neighbourhood, heading.target, None, 0)
        if direction == cells.HOME:
            if perimeter is not None:
                self.homes[heading.target] = now
            return self._arrived(packet)
        begins = onward is not None and onward is not perimeter
        if begins and self._need_not_walk(heading, now):
            return self._arrived(packet)
        if onward is None:
            walk = None
        elif begins or walk is None:
            walk = Walk(*onward, at=self.cell, before=None, steps=1, mark=(self.cell, direction))
        else:
            steps = walk.steps + 1
            mark = walk.mark if steps & (steps - 1) else (self.cell, direction)
            walk = Walk(*onward, at=self.cell, before=walk.at, steps=steps, mark=mark)
        peer = self.random.choice(list(self.members[cells.towards(self.cell, direction)]))
        return sent(peer, packet, Heading(heading.target, heading.node, walk))

    def _need_not_walk(self, heading: Heading, now: float) -> bool:
        """At a local minimum: whether a walk around the face would only show what is known already."""
        if heading.node and self._is_empty(heading.target):
            return True
        return now - self.homes.get(heading.target, -math.inf) < self.settings.home_memory_s

    def _is_empty(self, cell: Cell) -> bool:
        """Whether this is a neighbouring cell without members."""
        direction = cells.direction_to(self.cell, cell)
        return direction is not None and not self.neighbourhood >> direction & 1

    def _is_near(self, node: str) -> bool:
        """Whether the node is known to be in this cell or a neighbouring one."""
        known = self.neighbours.get(node)
        return known is not None and cells.adjacent(self.cell, known.cell)

    def _arrived(self, packet: RoutedPacket) -> Send | Drop | RoutedPacket:
        node = packet.heading.node
        if not node:
            return packet
        if node in self.neighbours:
            # It has moved beyond the neighbouring cells and is still in range.
            return sent(node, packet, Heading(packet.heading.target, node))
        return lost(packet, DropReason.RECEIVER_MOVED)


def sent(peer: str, packet: RoutedPacket, heading: Heading) -> Send:
    """The packet's next hop."""
    return Send(peer, msgspec.structs.replace(packet, heading=heading, hops=packet.hops + 1))


def lost(packet: RoutedPacket, reason: DropReason) -> Drop:
    """The packet ends here."""
    event = getattr(packet, "event", None)
    return Drop(reason, event.id if event is not None else "")
