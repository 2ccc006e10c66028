"""Cell Hash Routing (CHR), by F. Araújo, L. Rodrigues, J. Kaiser, C. Liu and C. Mitidieri (DEBS 2005).

The part a machine holds to reach places instead of nodes: beacons tell which cells around are
populated and by whom; a packet goes from cell to cell, each time to a random member of the next
one, until it reaches the home cell of its target, or the node it names. The geometry and the
reasons why this ends are in `cells.py`; readings and departures in docs/papers/georendezvous.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from earshot.errors import SettingsError
from earshot.geometry import Position
from earshot.protocols.georendezvous.cells import (
    HOME,
    Cell,
    Grid,
    Perimeter,
    direction_to,
    largest_side_m,
    step,
    towards,
)
from earshot.protocols.machine import Machine
from earshot.records import DropReason
from earshot.wire import Packet

_JITTER: Final = 0.1
"Beacons come this share of their interval earlier or later, so that they do not keep colliding."
_LISTEN: Final = 1.2
"Beacon intervals that a node listens before it routes: then it has heard every neighbour once."


def check_positive(what: str, value: float) -> None:
    """Refuse a setting that must be a positive number."""
    if not (math.isfinite(value) and value > 0):
        raise SettingsError(f"{what} must be a positive number, got {value}")


@dataclass(frozen=True, slots=True)
class CellSettings:
    """What all nodes of a network agree on about their cells."""

    range_m: float = field(default=100.0, metadata={"scenario": "medium.range_m"})
    "How far a node is heard; a simulated one as far as its scenario's medium says."
    cell_side_m: float | None = None
    "A cell's side; None: range / (2 * sqrt 2), the largest at which neighbouring cells always hear each other."
    origin_x_m: float = 0.0
    "The arbitrary origin of space (section 2.1)."
    origin_y_m: float = 0.0
    beacon_interval_s: float = 1.0
    neighbour_lifespan_s: float = 3.5
    "A neighbour not heard for so long is gone."
    home_memory_s: float = 10.0
    "How long a cell that is home takes itself to be without a new walk around the perimeter (footnote 1)."
    hop_limit: int = 2000
    "Where the network changes while a packet walks it, this ends the walk."

    def __post_init__(self) -> None:
        check_positive("range_m", self.range_m)
        check_positive("beacon_interval_s", self.beacon_interval_s)
        if self.cell_side_m is not None:
            check_positive("cell_side_m", self.cell_side_m)
            if self.cell_side_m > largest_side_m(self.range_m) * (1 + 1e-9):
                raise SettingsError(
                    f"cell_side_m = {self.cell_side_m:g} is too large for range_m = {self.range_m:g}: nodes would not "
                    f"hear all of the eight cells around; at most range / (2 * sqrt 2) = "
                    f"{largest_side_m(self.range_m):g}"
                )
        if not (math.isfinite(self.origin_x_m) and math.isfinite(self.origin_y_m)):
            raise SettingsError(f"the origin must be finite, got {self.origin_x_m}, {self.origin_y_m}")
        if not self.neighbour_lifespan_s > (1 + _JITTER) * self.beacon_interval_s:
            raise SettingsError(
                f"neighbour_lifespan_s must be longer than {1 + _JITTER:g} beacon intervals "
                f"({(1 + _JITTER) * self.beacon_interval_s:g} s), got {self.neighbour_lifespan_s}"
            )
        if not self.home_memory_s >= 0:
            raise SettingsError(f"home_memory_s must be 0 (walk each time) or more, got {self.home_memory_s}")
        if self.hop_limit < 1:
            raise SettingsError(f"hop_limit must be at least 1, got {self.hop_limit}")

    @property
    def grid(self) -> Grid:
        """The cells these settings give."""
        side_m = largest_side_m(self.range_m) if self.cell_side_m is None else self.cell_side_m
        return Grid(side_m, Position(self.origin_x_m, self.origin_y_m))


class Beacon(Packet, frozen=True, tag="chr-beacon"):
    """Here I am. `cell` is None in a farewell; `fresh`: new in this cell, and without its keys."""

    cell: Cell | None
    fresh: bool = False


class Walk(msgspec.Struct, frozen=True, array_like=True):
    """A packet in perimeter mode, on its way around a face."""

    entry: Cell
    "The local minimum where the walk began,"
    first: int
    "and the first edge taken there."
    at: Cell
    "The cell it was sent from last,"
    before: Cell | None
    "and the one before that, for a sender that has to try again; None at the walk's beginning."
    steps: int
    mark: tuple[Cell, int]
    "The edge taken at the last step whose number is a power of two: whoever takes it again goes in circles."

    def as_received(self, cell: Cell) -> Walk | None:
        """The walk as it came to the cell that sent it on; None where it began there."""
        if self.before is None or self.at != cell:
            return None
        mark = (self.entry, self.first)
        return Walk(self.entry, self.first, at=self.before, before=None, steps=self.steps - 1, mark=mark)


class Heading(msgspec.Struct, frozen=True, array_like=True):
    """Where a packet goes; with a walk: in perimeter mode."""

    target: Cell
    node: str = ""
    "The node it is for, last known in the target cell; empty: whoever is in the target's home cell."
    walk: Walk | None = None


class RoutedPacket(Packet, frozen=True):
    """A packet that goes from cell to cell."""

    heading: Heading
    hops: int
    "Transmissions so far."


class Dweller(Protocol):
    """What the machine that holds this part does about its cell."""

    def arrived(self, packet: Any, now: float) -> None:
        """The packet is for this node, or this node's cell is its target's home."""

    def cell_appeared(self, cell: Cell, now: float) -> None:
        """An empty neighbouring cell has become populated."""

    def newcomer(self, node: str, now: float) -> None:
        """A node without keys has come into this node's cell."""

    def cell_left(self, cell: Cell, last: bool, now: float) -> None:
        """This node has gone from that cell to another; `last`: it leaves nobody behind."""


@dataclass(slots=True)
class Neighbour:
    """A node in range, as its beacons tell."""

    cell: Cell
    heard_at: float


class CellHashRouting:
    """One node's cell, its neighbours, and the way on."""

    def __init__(self, machine: Machine, dweller: Dweller, settings: CellSettings) -> None:
        self.machine = machine
        self.dweller = dweller
        self.settings = settings
        self.grid = settings.grid
        self.cell: Cell = (0, 0)
        self.neighbours: dict[str, Neighbour] = {}
        self.members: dict[Cell, dict[str, None]] = {}
        "Who is in which cell, this node left out."
        self.neighbourhood = 0
        self.homes: dict[Cell, float] = {}
        "Targets whose home perimeter has been walked and found to be this cell's, and when."
        self.fresh = True
        self._looked_at = -math.inf
        self._listening = True
        self._waiting: list[RoutedPacket] = []

    # Who is around.

    def start(self, now: float) -> None:
        """Listen before routing anything; say hello within the first interval."""
        self.cell = self.grid.cell_of(self.machine.location.position(now))
        interval_s = self.settings.beacon_interval_s
        self.machine.start_timer("beacon", at=now + self.machine.random.random() * interval_s)
        self.machine.start_timer("listened", at=now + _LISTEN * interval_s)

    def stop(self) -> None:
        """Say farewell."""
        self.machine.broadcast(Beacon(cell=None))

    def wake(self, timer: str, now: float) -> None:
        """One of this part's two timers, `beacon` or `listened`, ran out."""
        if timer == "beacon":
            self.forget_silent(now)
            self.homes = {target: at for target, at in self.homes.items() if now - at < self.settings.home_memory_s}
            if not self.look_where(now):
                self.say_hello()
            jitter = 1 + _JITTER * (2 * self.machine.random.random() - 1)
            self.machine.start_timer("beacon", at=now + jitter * self.settings.beacon_interval_s)
        else:
            self._listening = False
            waiting, self._waiting = self._waiting, []
            for packet in waiting:
                self.route(packet, now)

    def say_hello(self) -> None:
        self.machine.broadcast(Beacon(self.cell, self.fresh))
        self.fresh = False

    def on_beacon(self, beacon: Beacon, sender: str, now: float) -> None:
        """Section 2.1: beacons tell which neighbouring cells are populated, and by whom."""
        known = self.neighbours.get(sender)
        if known is not None and known.cell == beacon.cell and not beacon.fresh:
            known.heard_at = now
            return
        if known is not None:
            self.forget(sender)
        cell = beacon.cell
        if cell is None:
            return
        self.neighbours[sender] = Neighbour(cell, heard_at=now)
        members = self.members.setdefault(cell, {})
        members[sender] = None
        direction = direction_to(self.cell, cell)
        if direction is not None and not self.neighbourhood >> direction & 1:
            self.neighbourhood |= 1 << direction
            self.dweller.cell_appeared(cell, now)
        if beacon.fresh and cell == self.cell:
            self.dweller.newcomer(sender, now)

    def forget_silent(self, now: float) -> None:
        """Neighbours that have not been heard for too long are gone."""
        oldest = now - self.settings.neighbour_lifespan_s
        for node in [node for node, known in self.neighbours.items() if known.heard_at < oldest]:
            self.forget(node)

    def forget(self, node: str) -> None:
        """The node is not around any more."""
        known = self.neighbours.pop(node, None)
        if known is None:
            return
        members = self.members[known.cell]
        del members[node]
        if not members:
            del self.members[known.cell]
            direction = direction_to(self.cell, known.cell)
            if direction is not None:
                self.neighbourhood &= ~(1 << direction)

    def look_where(self, now: float) -> bool:
        """See which cell this node is in; True where it is another one than before."""
        if now == self._looked_at:
            return False
        self._looked_at = now
        cell = self.grid.cell_of(self.machine.location.position(now))
        if cell == self.cell:
            return False
        left, self.cell = self.cell, cell
        self.neighbourhood = sum(1 << direction for direction in range(8) if towards(cell, direction) in self.members)
        self.fresh = True
        self.homes.clear()
        self.say_hello()
        self.dweller.cell_left(left, left not in self.members, now)
        return True

    def others(self) -> list[str]:
        """The other members of this node's cell."""
        return list(self.members.get(self.cell, ()))

    def leads(self) -> bool:
        """Whether this node does what one member of the cell should do once: the first by name does."""
        return all(self.machine.node < other for other in self.members.get(self.cell, ()))

    # The way on.

    def route(self, packet: RoutedPacket, now: float) -> None:
        """Section 2.1, figure 1: on to the next cell, or arrived.

        Whoever calls this has looked where it is (`look_where`) since the clock last moved.
        """
        if self._listening:
            self._waiting.append(packet)
            return
        if packet.heading.node == self.machine.node:
            self.dweller.arrived(packet, now)
        else:
            self._go_on(packet, packet.heading.walk, now)

    def unreachable(self, packet: Packet, peer: str, now: float) -> None:
        """A member that does not answer is replaced by another, of the same cell if there is one."""
        self.forget(peer)
        if isinstance(packet, RoutedPacket):
            walk = packet.heading.walk
            if walk is not None:
                walk = walk.as_received(self.cell)
            self._go_on(msgspec.structs.replace(packet, hops=packet.hops - 1), walk, now)

    def _go_on(self, packet: RoutedPacket, walk: Walk | None, now: float) -> None:
        """To the next cell. A walk whose last cell is not next to this one cannot be gone on with."""
        heading = packet.heading
        came_from = None if walk is None else direction_to(self.cell, walk.at)
        if not 0 <= packet.hops < self.settings.hop_limit:
            self._lose(packet, DropReason.HOP_LIMIT)
            return
        if heading.node and self._is_near(heading.node):
            self._send(heading.node, packet, Heading(heading.target, heading.node))
            return
        perimeter = None
        if walk is not None and came_from is not None and not self._is_empty(walk.entry):
            perimeter = Perimeter(walk.entry, walk.first)
        direction, onward = step(self.cell, self.neighbourhood, heading.target, perimeter, came_from or 0)
        if walk is not None and onward is perimeter and (self.cell, direction) == walk.mark:
            # Cells have come and gone, and the walk has lost its beginning: it begins anew.
            direction, onward = step(self.cell, self.neighbourhood, heading.target, None, 0)
        if direction == HOME:
            if perimeter is not None:
                self.homes[heading.target] = now
            self._arrive(packet, now)
            return
        begins = onward is not None and onward is not perimeter
        if begins and self._need_not_walk(heading, now):
            self._arrive(packet, now)
            return
        if onward is None:
            walk = None
        elif begins or walk is None:
            walk = Walk(*onward, at=self.cell, before=None, steps=1, mark=(self.cell, direction))
        else:
            steps = walk.steps + 1
            mark = walk.mark if steps & (steps - 1) else (self.cell, direction)
            walk = Walk(*onward, at=self.cell, before=walk.at, steps=steps, mark=mark)
        peer = self.machine.random.choice(list(self.members[towards(self.cell, direction)]))
        self._send(peer, packet, Heading(heading.target, heading.node, walk))

    def _need_not_walk(self, heading: Heading, now: float) -> bool:
        """At a local minimum: whether a walk around the face would only tell what is known already."""
        if heading.node and self._is_empty(heading.target):
            return True
        return now - self.homes.get(heading.target, -math.inf) < self.settings.home_memory_s

    def _is_empty(self, cell: Cell) -> bool:
        """Whether this is a neighbouring cell without members."""
        direction = direction_to(self.cell, cell)
        return direction is not None and not self.neighbourhood >> direction & 1

    def _is_near(self, node: str) -> bool:
        """Whether the node is known to be in this cell or a neighbouring one."""
        known = self.neighbours.get(node)
        return known is not None and max(abs(known.cell[0] - self.cell[0]), abs(known.cell[1] - self.cell[1])) <= 1

    def _arrive(self, packet: RoutedPacket, now: float) -> None:
        node = packet.heading.node
        if not node:
            self.dweller.arrived(packet, now)
        elif node in self.neighbours:
            # It has moved beyond the neighbouring cells and is still in range.
            self._send(node, packet, Heading(packet.heading.target, node))
        else:
            self._lose(packet, DropReason.RECEIVER_MOVED)

    def _send(self, peer: str, packet: RoutedPacket, heading: Heading) -> None:
        self.machine.send(peer, msgspec.structs.replace(packet, heading=heading, hops=packet.hops + 1))

    def _lose(self, packet: RoutedPacket, reason: DropReason) -> None:
        event = getattr(packet, "event", None)
        self.machine.drop(reason, event.id if event is not None else "")
